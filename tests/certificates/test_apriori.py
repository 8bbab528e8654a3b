"""The a-priori certificate: its gain in exact arithmetic, and the policies that it covers."""

import runpy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.oracles import exact_value, solve_exactly
from support.strategies import policies, problems
from surestep import Counts, Policy, Problem, certify, estimate_behavior, performance
from surestep.algorithms import SPIBB
from surestep.bounds import BOUNDS, ProblemSize, zeta
from surestep.certificates import APriori, apriori
from surestep.errors import CertificateRefused
from surestep.model import Statement

SCRIPT = Path(__file__).parents[2] / "examples" / "where_bounds_fail.py"
cases = SimpleNamespace(**runpy.run_path(str(SCRIPT)))

BOOTSTRAPPING = [name for name, bound in BOUNDS.items() if bound.bootstraps]
STANDARD = [name for name, bound in BOUNDS.items() if not bound.bootstraps]
N_WEDGES = st.integers(1, 30)
TINY = 1e-13  # no change


def discounted(problem):
    """Whether the bounds are about such a problem."""
    return 0 < problem.discount < 1


USABLE = problems().filter(discounted)
VISITED = problems(all_visited=True).filter(discounted)


def exact_performance(problem, policy, unseen_worth):
    """ρ(π, M̂) in rationals from the counts themselves, with unseen pairs worth the given value."""
    counts, pairs = problem.counts, problem.counts.pairs
    n, discount = pairs.num_states, Fraction(problem.discount)
    rewards = counts.rewards
    matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    right = [Fraction(0)] * n
    for k, share in enumerate(policy.probability):
        s, visits = int(pairs.state[k]), int(counts.visits[k])
        if visits == 0:
            worth = Fraction(unseen_worth)
            if counts.terminal[s]:
                known = rewards.known and rewards.per == "pair"
                worth = Fraction(float(rewards.values[k])) if known else Fraction(0)
            right[s] += Fraction(float(share)) * worth
            continue
        for t in range(int(counts.offsets[k]), int(counts.offsets[k + 1])):
            chance = Fraction(int(counts.times[t]), visits)
            if chance == 0:
                continue
            of = k if rewards.per == "pair" else t
            over = 1 if rewards.known else visits if rewards.per == "pair" else counts.times[t]
            reward = Fraction(float(rewards.values[of])) / int(over)
            right[s] += Fraction(float(share)) * chance * reward
            matrix[s][int(counts.successor[t])] -= Fraction(float(share)) * chance * discount
    starts = [Fraction(int(each), int(counts.starts.sum())) for each in counts.starts]
    return sum(a * b for a, b in zip(starts, solve_exactly(matrix, right), strict=True))


def exact_gain(problem, policy):
    """The estimated gain, with unseen pairs at their worst for π_I and at their best for π_b."""
    low, high = problem.value_bounds
    return exact_performance(problem, policy, low) - exact_performance(
        problem, problem.behavior, high
    )


def loss_of(bound, n, problem, delta):
    """f(γ) · V_max · radius(N), which tests of bounds hold against the paper and 40 digits."""
    return zeta(bound, n, ProblemSize.of(problem, delta))


def moved(policy, source, target, mass):
    """The policy with some probability moved from one pair to another."""
    probability = policy.probability.copy()
    probability[source] -= mass
    probability[target] += mass
    return Policy(policy.pairs, probability)


@pytest.mark.parametrize("bound", BOOTSTRAPPING)
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=USABLE, n_wedge=N_WEDGES, delta=st.sampled_from([0.01, 0.1, 0.5]))
def test_the_claim_is_the_gain_less_the_loss(bound, problem, n_wedge, delta):
    policy = SPIBB(n_wedge=n_wedge).improve(problem).policy
    found = certify(problem, policy, APriori(bound=bound, delta=delta, n_wedge=n_wedge))
    assume(found.figures["changed_pairs"])
    loss, gain = loss_of(bound, n_wedge, problem, delta), float(exact_gain(problem, policy))
    scale = 1e-9 * max(problem.value_bound, 1.0)
    assert found.figures["loss"] == pytest.approx(loss, rel=1e-9)
    assert found.figures["gain"] == pytest.approx(gain, abs=scale)
    assert found.lower == pytest.approx(gain - loss, rel=1e-9, abs=scale)
    assert (found.delta, found.standing, found.kind) == (delta, "as-published", "a-priori")
    assert found.span == problem.value_bounds[1] - problem.value_bounds[0]
    assert not found.notes


@given(problem=USABLE, n_wedge=N_WEDGES)
def test_what_evaluation_may_be_off_is_taken_off_the_claim(problem, n_wedge):
    policy = SPIBB(n_wedge=n_wedge).improve(problem).policy
    figures = certify(problem, policy, APriori(n_wedge=n_wedge)).figures
    assume(figures["changed_pairs"])
    models = [problem.estimate_with_unseen_worth(worth) for worth in problem.value_bounds]
    ours, theirs = (
        sum(Fraction(float(i)) * v for i, v in zip(model.initial, value, strict=True))
        for model, value in (
            (models[0], exact_value(models[0], policy.probability)),
            (models[1], exact_value(models[1], problem.behavior.probability)),
        )
    )
    assert Fraction(figures["gain"]) <= ours - theirs
    assert 0 < figures["evaluation_error"] <= 1e-6 * problem.value_bound


@pytest.mark.parametrize("bound", STANDARD)
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=VISITED, data=st.data())
def test_standard_spi_covers_any_policy_but_credits_no_gain(bound, problem, data):
    policy = data.draw(policies(problem.counts.pairs))
    asked = ~problem.counts.terminal[problem.counts.pairs.state]
    found = certify(problem, policy, APriori(bound=bound))
    assume(found.figures["changed_pairs"])
    n = int(problem.counts.visits[asked].min())
    assert found.figures["n_wedge"] == n
    loss, gain = loss_of(bound, n, problem, 0.1), float(exact_gain(problem, policy))
    assert found.lower == pytest.approx(
        min(gain, 0.0) - loss, rel=1e-9, abs=1e-9 * max(problem.value_bound, 1.0)
    )
    with pytest.raises(CertificateRefused, match=rf"needs at least {n + 1} of every pair"):
        certify(problem, policy, APriori(bound=bound, n_wedge=n + 1))


@st.composite
def moves(draw):
    """A problem, an N∧, and two pairs of one state between which π_b can move: one is scarce."""
    problem, n_wedge = draw(USABLE), draw(N_WEDGES)
    pairs, visits = problem.counts.pairs, problem.counts.visits
    choices = [
        (k, j)
        for k in np.flatnonzero(problem.behavior.probability > 0)
        for j in range(pairs.num_pairs)
        if j != k and pairs.state[j] == pairs.state[k] and min(visits[j], visits[k]) <= n_wedge
    ]
    assume(choices)
    source, target = draw(st.sampled_from(choices))
    return problem, n_wedge, int(source), int(target)


@pytest.mark.parametrize("bound", BOOTSTRAPPING)
@settings(max_examples=settings.default.max_examples // 2)
@given(case=moves(), share=st.sampled_from([1e-11, 0.1, 1.0]))
def test_a_policy_that_changes_a_scarce_pair_is_refused_and_the_pair_named(bound, case, share):
    problem, n_wedge, source, target = case
    pairs, visits = problem.counts.pairs, problem.counts.visits
    improved = SPIBB(n_wedge=n_wedge).improve(problem).policy
    certify(problem, improved, APriori(bound=bound, n_wedge=n_wedge))
    mass = share * problem.behavior.probability[source]
    assume(mass > 2e-12)
    wrong = [k for k in sorted((source, target)) if visits[k] <= n_wedge]
    text = (
        f"the policy changes {pairs.pair_name(wrong[0])}, which the data visits "
        f"{visits[wrong[0]]} times; the bound {bound} needs more than {n_wedge}; "
    )
    with pytest.raises(CertificateRefused) as refused:
        certify(
            problem,
            moved(problem.behavior, source, target, mass),
            APriori(bound=bound, n_wedge=n_wedge),
        )
    assert str(refused.value).startswith(text)
    assert f"; {len(wrong)} of " in str(refused.value)


@given(case=moves())
def test_a_change_within_rounding_is_none_but_is_paid_for(case):
    problem, n_wedge, source, target = case
    assume(problem.behavior.probability[source] > 2 * TINY)
    policy = moved(problem.behavior, source, target, TINY)
    found = certify(problem, policy, APriori(n_wedge=n_wedge))
    steps = 1 / (1 - problem.discount)
    assert found.lower == pytest.approx(-4 * TINY * found.span * steps, rel=0.01)
    assert found.lower < 0


@given(problem=USABLE, n_wedge=N_WEDGES)
def test_the_largest_n_wedge_that_covers_the_policy_is_found(problem, n_wedge):
    policy = SPIBB(n_wedge=n_wedge).improve(problem).policy
    found = certify(problem, policy, APriori())
    assume(found.figures["changed_pairs"])
    largest = found.figures["n_wedge"]
    assert largest >= n_wedge
    given_too = certify(problem, policy, APriori(n_wedge=largest))
    assert (given_too.lower, given_too.figures) == (found.lower, found.figures)
    assert found.lower >= certify(problem, policy, APriori(n_wedge=n_wedge)).lower
    with pytest.raises(CertificateRefused, match=f"needs more than {largest + 1}"):
        certify(problem, policy, APriori(n_wedge=largest + 1))


def two_doors(visits, **changes):
    """A problem with one state of two actions, visited so many times, and an end."""
    table = np.zeros((2, 2, 2), int)
    table[0, :, 1] = visits
    counts = Counts.from_dense(table, rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    settings = {"discount": 0.5, "value_bounds": (-1.0, 1.0)} | changes
    return Problem(counts=counts, behavior=Policy.uniform(counts), **settings)


def always_right(problem):
    """The policy that takes the better action, and keeps π_b at the end."""
    return Policy.from_dense(problem.counts, [[0.0, 1.0], [0.5, 0.5]])


@pytest.mark.parametrize("visits", [0, 1])
def test_one_visit_of_a_changed_pair_is_too_few_for_any_n_wedge(visits):
    problem = two_doors([50, visits])
    policy = always_right(problem)
    text = rf"state 0, action 1, which the data visits {visits} times; .* needs more than 1;"
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, policy, APriori())
    with pytest.raises(CertificateRefused, match=r"needs at least \d+ of every pair"):
        certify(problem, policy, APriori(bound="spi", n_wedge=visits + 1))


def test_enough_data_certifies_a_gain():
    problem = two_doors([10**5, 10**5])
    policy = always_right(problem)
    found = certify(problem, policy, APriori())
    assert 0.3 < found.lower < 0.5  # the truth, if the estimate is right
    assert not found.says_nothing
    assert certify(two_doors([5, 5]), policy, APriori()).says_nothing


@pytest.mark.parametrize("n_wedge", [10**3, pytest.param(10**5, marks=pytest.mark.slow)])
def test_what_was_never_seen_is_no_gain_any_more(n_wedge):
    # The counterexample of docs/bounds.md: with unseen doors at 0 the bound allows a smaller loss
    # than there is (10⁵) or even claims a gain (10⁶), whatever the N∧ is.
    rng = np.random.default_rng(1)
    doors, right = 10 * n_wedge, int(cases.SLACK * n_wedge)
    tried = np.bincount(rng.integers(doors, size=right), minlength=doors)
    ends = np.array([False, False, False, True])
    log = replace(cases.maze_counts(9 * right, tried), terminal=ends)
    truth = cases.estimate_mdp(cases.maze_counts(1, np.ones(doors, int)), 0.5)
    shares = np.concatenate([[0.9, 0.1], np.full(doors, 1 / doors), [1.0, 1.0]])
    behavior = Policy(log.pairs, shares)
    problem = Problem(counts=log, behavior=behavior, discount=0.5, value_bounds=(-1.0, 1.0))
    policy = SPIBB(n_wedge=n_wedge).improve(problem).policy
    estimate = problem.estimate()
    difference = performance(truth, policy) - performance(truth, behavior)
    naive = performance(estimate, policy) - performance(estimate, behavior)
    assert naive > 0 > difference
    found = certify(problem, policy, APriori(n_wedge=n_wedge))
    assert found.figures["gain"] < difference  # so that no N∧ and no δ make it a wrong claim
    assert found.lower < difference


@given(problem=USABLE, data=st.data())
def test_the_gain_is_at_most_that_of_any_way_to_complete_the_estimate(problem, data):
    policy = data.draw(policies(problem.counts.pairs))
    low, high = problem.value_bounds
    worths = np.random.default_rng(0).uniform(low, high, problem.counts.pairs.num_pairs)
    model = problem.estimate_with_unseen_worth(0.0)
    ending = np.where(problem.unseen_pairs(), worths, model.ending_reward)
    completed = replace(model, ending_reward=ending)
    gain = performance(completed, policy) - performance(completed, problem.behavior)
    assert float(exact_gain(problem, policy)) <= gain + 1e-9 * problem.value_bound


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("discount", [0.0, 1.0, np.full(4, 0.5)], ids=["0", "1", "per pair"])
def test_discounts_without_a_bound_are_refused(bound, discount):
    problem = two_doors([9, 9], discount=discount)
    for policy in (problem.behavior, always_right(problem)):
        with pytest.raises(CertificateRefused, match=r"discount .*expected"):
            certify(problem, policy, APriori(bound=bound))


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0.0, 0.0), "value_bounds is"),
        ((-1e308, 1e308), "value_bounds is"),
        ((-1.0, 0.2), "earns 1 to 1, but values between value_bounds"),  # which rewards contradict
    ],
)
def test_value_bounds_without_a_claim_are_refused(bounds, words):
    problem = two_doors([9, 9], value_bounds=bounds)
    with pytest.raises(CertificateRefused, match=words):
        certify(problem, always_right(problem), APriori())


def assumed(problem, **settings):
    """The codes of the assumptions."""
    claim = certify(problem, problem.behavior, APriori(**settings))
    return [assumption.code for assumption in claim.assumptions]


def test_the_assumptions_say_what_is_known_and_what_is_not():
    known = two_doors([9, 9])
    assert {"behavior-known", "rewards-known", "n-wedge-fixed"} <= {*assumed(known)}
    assert "n-wedge-fixed" not in assumed(known, n_wedge=3)
    bounded = Statement("values-bounded", {"low": -1.0, "high": 1.0})
    assert bounded in certify(known, known.behavior, APriori()).assumptions
    guessed = replace(known, behavior=estimate_behavior(known.counts))
    assert "behavior-estimated" in assumed(guessed)
    table = np.zeros((2, 1, 2), int)
    table[0, 0, 1] = 3
    observed = Counts.from_dense(table, reward_sums=[[1.0], [0.0]])
    summed = replace(known, counts=observed, behavior=Policy.uniform(observed))
    assert "mean-rewards-exact" in assumed(summed)


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_gaps_of_a_bound_are_among_its_assumptions(bound):
    codes = assumed(two_doors([9, 9]), bound=bound)
    split = bound in ("2s", "ks", "beta")
    assert ("radius-of-one-split" in codes) == ("later-splits-unvisited" in codes) == split
    assert ("interval-centred" in codes) == ("split-prior-uniform" in codes) == (bound == "beta")
    assert ("rare-pairs-known" in codes) == (bound in BOOTSTRAPPING)


def test_the_largest_change_that_is_none_is_paid_for_on_both_pairs():
    problem = two_doors([9, 9])
    left = Policy.from_dense(problem.counts, [[1.0, 0.0], [0.5, 0.5]])
    nearly = Policy.from_dense(problem.counts, [[1.0 - 1e-12, 1e-12], [0.5, 0.5]])
    change = 1.0 - (1.0 - 1e-12)
    assert change < 1e-12
    found = certify(replace(problem, behavior=left), nearly, APriori())
    assert (found.figures["changed_pairs"], found.figures["n_wedge"]) == (0, None)
    assert found.lower == pytest.approx(-2 * (1e-12 + change) * 2.0 / 0.5, rel=1e-12)


@pytest.mark.parametrize("bound", STANDARD)
def test_standard_spi_asks_for_one_visit_at_least(bound):
    once = two_doors([9, 1])
    assert certify(once, always_right(once), APriori(bound=bound)).figures["n_wedge"] == 1
    never = two_doors([9, 0])
    with pytest.raises(CertificateRefused, match="needs at least 1 of every pair"):
        certify(never, always_right(never), APriori(bound=bound))


def test_a_weighted_sum_of_values_may_be_off_by_its_roundings(monkeypatch):
    found = SimpleNamespace(value=np.array([5.0, 2.0**52]), error_bound=0.25)
    monkeypatch.setattr(apriori, "evaluate_with_bound", lambda mdp, policy: found)
    for initial, terms in (([1.0, 0.0], 3), ([0.0, 1.0], 3), ([0.5, 0.5], 4)):
        value, error = apriori.performance_with_bound(SimpleNamespace(initial=initial), None)
        assert value == np.array(initial) @ found.value
        assert error == terms + 0.25
