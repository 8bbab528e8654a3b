"""The paper's bounds: its printed numbers, high-precision truth, and laws that must hold."""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri_exp

from support.known_worlds import CAPTIONS
from support.problems import uniform_problem
from surestep import Counts
from surestep.bounds import (
    BOUNDS,
    FactoredBound,
    KSuccessor,
    ProblemSize,
    compare_bounds,
    equivalent_n_wedge,
    n_wedge,
    zeta,
)
from surestep.bounds import loss as formulas
from surestep.bounds.loss import BetaBound, odds_against, symmetric_beta_width
from surestep.errors import InvalidParameter

SIZES = st.builds(
    ProblemSize,
    st.integers(1, 10**12),
    st.integers(1, 10**6),
    st.floats(-300, -1e-3).map(lambda e: 10.0**e),
)
SIZE = ProblemSize(25, 4, 0.1, value_bound=1.0, discount=0.95)


@pytest.mark.parametrize(("states", "actions", "spibb", "two", "beta"), CAPTIONS)
def test_the_papers_captions_come_out(states, actions, spibb, two, beta):
    size = ProblemSize(states, actions, 0.1)
    assert equivalent_n_wedge(spibb, size, given="spibb", wanted="2s") == two
    assert equivalent_n_wedge(spibb, size, given="spibb", wanted="beta") == beta
    for gain, value_bound, discount in ((0.0, 1.0, 0.95), (0.2, 0.6, 0.99)):
        whole = replace(size, value_bound=value_bound, discount=discount)
        loss = zeta("spibb", spibb, whole, gain=gain)
        assert n_wedge("2s", loss, whole, gain=gain) == two
        assert n_wedge("beta", loss, whole, gain=gain) == beta


@pytest.mark.parametrize(
    ("states", "spibb", "two", "beta"),
    [
        (100, 1.00226e8, 2.09471e7, 15_893_461),
        (1_000, 9.01679e8, 2.68418e7, 21_603_345),
        (10**7, 8.87231e12, 5.04202e7, 44_733_709),
    ],
)
def test_the_theory_figures_values_come_out(states, spibb, two, beta):
    size = replace(SIZE, states=states)
    assert n_wedge("spibb", 0.1, size) == pytest.approx(spibb, rel=1e-5)
    assert n_wedge("2s", 0.1, size) == pytest.approx(two, rel=1e-5)
    assert n_wedge("beta", 0.1, size) == beta


@pytest.mark.parametrize("name", BOUNDS)
@given(visits=st.integers(1, 10**9), size=SIZES)
def test_n_wedge_inverts_zeta(name, visits, size):
    size = replace(size, value_bound=2.0, discount=0.9)
    loss = zeta(name, visits, size)
    found = n_wedge(name, loss, size)
    # Where many visits give the same double, the first of them is the answer.
    assert found <= visits
    assert zeta(name, found, size) == loss
    if zeta(name, max(visits - 1, 1), size) > loss:
        assert found == visits


def test_a_gain_pays_for_a_loss():
    # 0.3 − 0.1 is left to lose; a gain may be as sure as a ζ below 0.
    assert n_wedge("2s", -0.1, SIZE, gain=0.3) == n_wedge("2s", 0.2, SIZE)
    assert n_wedge("2s", 0.3, SIZE, gain=-0.1) == n_wedge("2s", 0.2, SIZE)


@pytest.mark.parametrize("name", BOUNDS)
@given(loss=st.floats(-9, 3).map(lambda e: 10.0**e), size=SIZES)
def test_n_wedge_is_enough_and_one_less_is_not(name, loss, size):
    size = replace(size, value_bound=1.0, discount=0.95)
    found = n_wedge(name, loss, size)
    assert zeta(name, found, size) <= loss
    if found > 1:
        assert zeta(name, found - 1, size) > loss or float(found - 1) == float(found)


@pytest.mark.parametrize("name", BOUNDS)
@given(size=SIZES, visits=st.lists(st.integers(1, 10**15), min_size=2, max_size=8, unique=True))
def test_radii_fall_with_visits(name, size, visits):
    radii = BOUNDS[name].radius(np.sort(visits), size)
    assert (np.diff(radii) <= 0).all()
    assert (radii >= 0).all()


@given(
    first=st.one_of(
        st.floats(0, 17).map(lambda e: math.floor(10.0**e)),
        st.integers(2**16, 2**20).map(lambda n: n - n % 2**10 - 30),  # around knots
        st.integers(2**50 - 60, 2**50 + 60),  # where the inverse beta function is left
    ),
    log_share=st.one_of(st.floats(-1e4, -1e-3), st.floats(-701, -699)),
    noise=st.sampled_from([0.0, 1e-15, 1e-12]),
)
def test_the_beta_width_never_rises_whatever_the_last_digits_of_the_library_are(
    first, log_share, noise
):
    """Each machine has a library of its own, so this one's last digits are shaken too."""

    def blurred(function):
        def answer(*args):
            exact = np.asarray(function(*args))
            return exact * (1 + noise * np.sin(1e9 * np.frexp(exact)[0]))

        return answer

    with pytest.MonkeyPatch.context() as patch:
        for name in ("betainccinv", "betaincinv"):
            patch.setattr(formulas, name, blurred(getattr(formulas, name)))
        widths = symmetric_beta_width(np.arange(first, first + 60).astype(float), log_share)
    assert (np.diff(widths) <= 0).all()
    assert (widths >= 0).all()
    assert (widths <= 1).all()


@given(log_visits=st.floats(0, 17), log_share=st.floats(-1e4, -1e-9))
def test_the_beta_width_between_knots_is_what_the_library_says_there(log_visits, log_share):
    visits = np.floor(10.0**log_visits)
    exact = 1 / np.sqrt(1 + odds_against(np.minimum(visits, 2.0**50) / 2 + 1, log_share))
    expected = exact * np.sqrt(min(1.0, 2.0**50 / visits))
    assert symmetric_beta_width(visits, log_share) == pytest.approx(expected, rel=1e-11)


@settings(max_examples=25)
@given(
    visits=st.integers(1, 3000),
    states=st.integers(1, 1000),
    delta=st.sampled_from([0.5, 0.1, 1e-3, 1e-9]),
)
def test_the_beta_radius_is_the_papers_in_high_precision(visits, states, delta):
    """1 − 2·I⁻¹(δ_T/2; a, a): the tail beyond the radius, integrated with 40 digits, is δ_T/2."""
    size = ProblemSize(states, 4, delta)
    radius = mpmath.mpf(float(BetaBound().radius(visits, size)))
    with mpmath.workdps(40):
        a = mpmath.mpf(visits) / 2 + 1
        tail = mpmath.betainc(a, a, 0, (1 - radius) / 2, regularized=True)
        expected = mpmath.mpf(delta) / (mpmath.mpf(states) ** 2 * 16) / 2
        rounded = a * mpmath.mpf(2) ** -53 / (1 - radius)  # as the radius is a double
        assert abs(tail / expected - 1) < mpmath.mpf("1e-9") + rounded


def beta_width_bracket(visits, log_share):
    """Lower and upper bounds of `symmetric_beta_width`, from the logarithm of δ_T alone.

    Let x = δ_T/2 = P(t > r), z(q) = Φ⁻¹(1 − q), and C = ∫(1 − t²)^(N/2) dt = √π Γ(s)/Γ(s + ½) with
    s = N/2 + 1; √(s − ¼) ≤ Γ(s + ½)/Γ(s) ≤ √s (Watson 1959).

    Upper: put t = sin θ. P(θ > φ) = C⁻¹ ∫_φ cos^(N+1) θ dθ, and cos θ ≤ exp(−θ²/2) on [0, π/2], so
    x ≤ C⁻¹ √(2π/(N+1)) Φ(−φ√(N+1)) ≤ √((N+2)/(N+1)) Φ(−φ√(N+1)) by C ≥ √(2π/(N+2)). Hence
    φ ≤ z(x √((N+1)/(N+2))) / √(N+1), and r = sin φ.

    Lower: put t = tanh u. P(u > y) = C⁻¹ ∫_y sech^(N+2) u du, and sech u ≥ exp(−u²/2), so
    x ≥ √(1 − 1/(2N+4)) Φ(−y√(N+2)) by C ≤ √(2π/(N + 3/2)). Hence
    y ≥ z(x / √(1 − 1/(2N+4))) / √(N+2), and r = tanh y.
    """
    log_x = log_share - math.log(2)
    squeeze = 0.5 * np.log1p(-1.0 / (visits + 2.0))  # ln √((N+1)/(N+2))
    stretch = 0.5 * np.log1p(-0.5 / (visits + 2.0))  # ln √(1 − 1/(2N+4))
    angle = -ndtri_exp(log_x + squeeze) / np.sqrt(visits + 1.0)
    lower = np.tanh(-ndtri_exp(np.minimum(log_x - stretch, -math.log(2))) / np.sqrt(visits + 2.0))
    return lower, np.sin(np.minimum(angle, math.pi / 2))


@given(log_visits=st.floats(0, 15), log_share=st.floats(-699, -0.01))
def test_the_bracket_holds_the_beta_width(log_visits, log_share):
    visits = np.floor(10.0**log_visits)
    lower, upper = beta_width_bracket(visits, log_share)
    width = symmetric_beta_width(visits, log_share)
    assert lower <= width * (1 + 1e-12)
    assert width <= upper * (1 + 1e-12)


def normal_tail_quantile(q):
    """The z with P(Z > z) = q for a standard normal Z, with the digits of the context."""
    guess = mpmath.sqrt(-2 * mpmath.log(q)) if q < 0.1 else mpmath.mpf("0.5")
    return mpmath.findroot(lambda z: mpmath.log(mpmath.erfc(z / mpmath.sqrt(2)) / (2 * q)), guess)


@pytest.mark.parametrize("visits", [1, 7, 40])
@pytest.mark.parametrize("log_share", [-0.001, -0.5, -6.0, -80.0, -699.0])
def test_the_bracket_is_that_of_its_proof(visits, log_share):
    with mpmath.workdps(40):
        n, x = mpmath.mpf(visits), mpmath.exp(mpmath.mpf(log_share)) / 2
        angle = normal_tail_quantile(x * mpmath.sqrt((n + 1) / (n + 2))) / mpmath.sqrt(n + 1)
        upper = mpmath.sin(min(angle, mpmath.pi / 2))
        most = x / mpmath.sqrt(1 - 1 / (2 * n + 4))
        lower = mpmath.tanh(normal_tail_quantile(most) / mpmath.sqrt(n + 2)) if most < 0.5 else 0
        expected = float(lower), float(upper)
    found = beta_width_bracket(np.asarray(float(visits)), log_share)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(visits=st.integers(1, 10**15), actions=st.integers(1, 10))
def test_the_beta_radius_does_not_fall_where_the_share_stops_being_a_double(visits, actions):
    states = [10**e for e in range(1, 13)]
    radii = [float(BetaBound().radius(visits, ProblemSize(s, actions, 1e-300))) for s in states]
    assert all(b >= a * (1 - 1e-12) for a, b in itertools.pairwise(radii))


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("loss", [1e-30, 1e-140, 1e-160, 5e-324])
def test_the_smallest_losses_still_get_an_answer(name, loss):
    found = n_wedge(name, loss, SIZE)
    assert isinstance(found, int)
    assert zeta(name, found, SIZE) <= loss


@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_the_loss_is_the_factor_times_the_value_bound_times_the_radius_less_the_gain(gain):
    size = replace(SIZE, value_bound=2.5)
    split = math.sqrt(2 / 60 * math.log(8 * 25**2 * 4**2 / 0.1))
    assert zeta("2s", 60, size, gain=gain) == pytest.approx(
        4 / 0.05 * 2.5 * split - gain, rel=1e-12
    )
    row = math.sqrt(2 / 60 * math.log(2 * 25 * 4 * 2**25 / 0.1))
    assert zeta("spibb", 60, size, gain=gain) == pytest.approx(
        4 / 0.05 * 2.5 * row - gain, rel=1e-12
    )
    five = math.sqrt(2 / 60 * math.log(2 * 25**2 * 4**2 * 2**5 / (4 * 0.1)))
    expected = pytest.approx(4 / 0.05 * 2.5 * five - gain, rel=1e-12)
    assert zeta(KSuccessor(5), 60, size, gain=gain) == expected
    assert {BOUNDS[name].loss_factor(0.75) for name in ("spibb", "2s", "ks", "beta")} == {16.0}
    assert (BOUNDS["spi"].loss_factor(0.75), BOUNDS["spi-no-gamma"].loss_factor(0.75)) == (6.0, 8.0)


def test_two_successors_are_the_best_number_of_successors_and_three_ties():
    size = ProblemSize(50, 4, 0.1)
    radii = [float(KSuccessor(k).radius(100, size)) for k in range(2, 7)]
    assert radii[0] == float(BOUNDS["2s"].radius(100, size))
    assert radii[1] == float(BOUNDS["ks"].radius(100, size))
    assert radii[0] == pytest.approx(radii[1], rel=1e-12)
    assert radii == sorted(radii)


def test_branching_two_is_lemma_1_and_is_refused_for_splits():
    size = ProblemSize(25, 4, 0.1, branching=2)
    lemma = math.sqrt(2 / 60 * math.log(8 * 25 * 4 / 0.1))
    assert float(BOUNDS["spibb"].radius(60, size)) == pytest.approx(lemma, rel=1e-12)
    for name in ("2s", "beta", "ks"):
        with pytest.raises(InvalidParameter, match="branching is 2, but this bound is about spl"):
            BOUNDS[name].radius(60, size)


def test_standard_spi_has_gamma_in_its_loss_and_no_gain():
    loss = zeta("spi", 100, SIZE)
    assert zeta("spi-no-gamma", 100, SIZE) == pytest.approx(loss / 0.95, rel=1e-12)
    assert zeta("spibb", 100, SIZE) == pytest.approx(2 * loss / 0.95, rel=1e-12)
    with pytest.raises(InvalidParameter, match="standard SPI has no gain"):
        zeta("spi", 100, SIZE, gain=0.1)


def test_what_each_bound_covers_is_declared():
    rows = {name for name, bound in BOUNDS.items() if bound.covers == "row"}
    assert rows == {"spi", "spi-no-gamma", "spibb"}
    assert {bound.standing for bound in BOUNDS.values()} == {"as-published"}


def test_which_bound_needs_the_fewest_visits():
    few = replace(SIZE, states=2, actions=2)  # 2² < 4·2·2
    assert n_wedge("spibb", 0.1, few) < n_wedge("2s", 0.1, few)
    large = replace(SIZE, states=10**6)
    narrow = replace(large, branching=3)  # 2³ is far below 4|S||A|
    assert n_wedge("spibb", 0.1, narrow) < n_wedge("beta", 0.1, large)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0, expected a number above 0 and below 1"),
        ({"states": 0}, "states is 0, expected a whole number of at least 1"),
        ({"discount": 1.0}, "discount is 1.0, expected a number above 0 and below 1"),
        ({"value_bound": 0.0}, "value_bound is 0.0, expected a number above 0"),
        ({"value_bound": math.inf}, "value_bound is inf, expected a number above 0"),
        ({"value_bound": None}, "value_bound of the size is None, expected a number"),
        ({"discount": None}, "discount of the size is None, expected a number"),
        ({"branching": 26}, "branching is 26, expected at most the number of states, 25"),
        ({"branching": 0}, "branching is 0, expected a whole number of at least 1"),
    ],
)
def test_terms_out_of_range_are_refused_by_name(wrong, message):
    with pytest.raises(InvalidParameter, match=message):
        zeta("spibb", 10, replace(SIZE, **wrong))


def test_the_ends_of_the_ranges_are_allowed():
    one = replace(SIZE, states=1, actions=1, branching=1)
    assert zeta("spibb", 1, one) == pytest.approx(80 * math.sqrt(2 * math.log(2 * 2 / 0.1)))
    whole = replace(SIZE, states=7, actions=1)
    assert zeta("spibb", 1, replace(whole, branching=7)) == zeta("spibb", 1, whole)
    assert float(BetaBound().radius(10**400, ProblemSize(25, 4, 0.1))) == 0.0


@pytest.mark.parametrize("k", [1, 0, 2.0, True, None])
def test_a_split_has_at_least_two_successors(k):
    with pytest.raises(InvalidParameter, match=r"k is .*, expected a whole number of at least 2"):
        KSuccessor(k)


def test_unknown_methods_are_refused_with_the_closest_names():
    with pytest.raises(InvalidParameter, match=r"method is 'spib'; did you mean spibb or spi"):
        zeta("spib", 10, SIZE)
    with pytest.raises(InvalidParameter, match="the number of visits is 0, expected at least 1"):
        zeta("spibb", 0, SIZE)
    for loss, gain in (
        (0.0, 0.0),
        (-0.1, 0.1),
        (-1.0, 0.5),
        (0.1, -0.2),
        (math.inf, 0.0),
        (None, 0.0),
    ):
        with pytest.raises(InvalidParameter, match=r"expected zeta \+ gain above 0"):
            n_wedge("spibb", loss, SIZE, gain=gain)
    with pytest.raises(InvalidParameter, match="different loss factors"):
        equivalent_n_wedge(10, SIZE, given="spi", wanted="2s")


def test_all_bounds_side_by_side_say_what_each_says_alone():
    answers = compare_bounds(
        replace(SIZE, value_bound=None, branching=7), (-0.5, 1.0), visits=10**8, wanted_zeta=0.1
    )
    assert [answer.method for answer in answers] == list(BOUNDS)
    for answer in answers:
        known = replace(SIZE, branching=7) if answer.covers == "row" else SIZE
        assert answer.zeta == zeta(answer.method, 10**8, known)
        assert answer.n_wedge == n_wedge(answer.method, 0.1, known)
        assert answer.says_nothing == (answer.zeta >= 1.5)
        assert answer.refusal is None
    with_gain = compare_bounds(SIZE, (0.0, 1.0), visits=100, gain=0.2)
    refused = {answer.method for answer in with_gain if answer.refusal is not None}
    assert refused == {"spi", "spi-no-gamma"}
    assert all(answer.says_nothing for answer in with_gain if answer.refusal is None)
    assert all(answer.n_wedge is None for answer in with_gain)


def test_a_loss_of_the_whole_span_says_nothing():
    visits = n_wedge("2s", 1.9, SIZE)
    loss = zeta("2s", visits, SIZE)
    assert 1 < loss < 2
    for low, nothing in ((1 - loss, True), (1 - loss - 1e-9, False)):
        bounds = (low, 1.0)  # 1 − (1 − loss) is loss without rounding
        answer = compare_bounds(SIZE, bounds, visits=visits)[3]
        assert (answer.method, answer.zeta, answer.says_nothing) == ("2s", loss, nothing)
    # V_max is the larger magnitude, on whichever side of 0 it lies.
    for bounds in ((-1.0, 0.25), (-0.25, 1.0)):
        assert compare_bounds(SIZE, bounds, visits=visits)[3].zeta == loss


@pytest.mark.parametrize("value_bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), ("0", 1.0)])
def test_value_bounds_without_a_span_are_refused(value_bounds):
    with pytest.raises(InvalidParameter, match=r"expected (a number|the lower one first)"):
        compare_bounds(SIZE, value_bounds, visits=100)


@settings(max_examples=100)
@given(
    name=st.sampled_from(list(BOUNDS)),
    states=st.integers(1, 10**12),
    actions=st.integers(1, 10**6),
    visits=st.integers(1, 10**15),
    value_bound=st.floats(1e-300, 1e300),
    discount=st.floats(1e-12, 1 - 1e-12),
    exponent=st.floats(-300, -1e-6),
)
def test_no_corner_of_the_parameters_overflows_or_warns(
    name, states, actions, visits, value_bound, discount, exponent
):
    """Warnings are errors here."""
    size = ProblemSize(states, actions, 10.0**exponent, value_bound=value_bound, discount=discount)
    loss = zeta(name, visits, size)
    assert loss >= 0
    assert not math.isnan(loss)
    if 0 < loss < math.inf:
        assert zeta(name, n_wedge(name, loss, size), size) <= loss


def test_the_size_of_a_problem_has_its_terms():
    counts = Counts.from_dense(np.ones((3, 2, 3), int), rewards=np.zeros((3, 2)))
    problem = uniform_problem(counts, 0.5, (-7.0, 2.0))
    assert ProblemSize.of(problem, 0.2) == ProblemSize(3, 2, 0.2, value_bound=7.0, discount=0.5)


def test_the_factored_bound_is_the_chance_that_coupled_draws_differ():
    size = ProblemSize(4, 2, 0.1)
    bound = FactoredBound(columns=3, nodes=7, values=2)
    radius = math.sqrt(2 / 500 * math.log(2 * 7 * 2**2 / 0.1))
    expected = 2 * (1 - (1 - radius / 2) ** 3)
    assert float(bound.radius(500, size)) == pytest.approx(expected, rel=1e-12)
    assert expected < 3 * radius
    assert float(bound.radius(1, size)) == 2.0
    # The TV distance of two products is at most that chance: brute force over all outcomes.
    rng = np.random.default_rng(1)
    for _ in range(50):
        ours, theirs = rng.dirichlet([1, 1, 1], (2, 3))
        both = [np.multiply.outer(np.multiply.outer(*p[:2]), p[2]) for p in (ours, theirs)]
        each = np.abs(ours - theirs).sum(axis=1) / 2
        assert np.abs(both[0] - both[1]).sum() <= 2 * (1 - np.prod(1 - each)) + 1e-12
