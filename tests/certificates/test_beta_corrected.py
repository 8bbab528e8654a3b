"""The mended beta bound as a certificate: an exact oracle, models at the edge, and its promise.

Seeds are fixed; a bound that fails with probability δ would fail a test here once in 10⁶ times.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from support.oracles import solve_exactly
from surestep import Counts, Policy, Problem, certify
from surestep.algorithms import SPIBB
from surestep.bounds import BetaCorrected, BetaCorrectedPosterior
from surestep.certificates import CorrectedBeta, Robust, verify
from surestep.certificates.beta_corrected import reward_spread
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model import Statement, Successors

RARE = 1e-6
BOUNDS = {"beta-corrected": BetaCorrected(), "beta-corrected-posterior": BetaCorrectedPosterior()}
BOTH = pytest.mark.parametrize("bound", BOUNDS)


def world(rng, states=3, actions=2, visits=200):
    """A chain of decisions that ends in the last state: its rows, and counts of fixed visits."""
    P = rng.dirichlet(np.full(states, 0.7), (states, actions))
    table = np.array([[rng.multinomial(visits, row) for row in state] for state in P])
    P[-1], table[-1] = 0.0, 0
    return P, table


def problem_of(table, rewards, **changes):
    """The problem with these counts and known rewards; episodes are over in the last state."""
    states = table.shape[0]
    starts = np.zeros(states, int)
    starts[0] = 1
    counts = Counts.from_dense(
        table, rewards=rewards, starts=starts, terminal=np.arange(states) == states - 1
    )
    spread = (np.max(rewards) - min(np.min(rewards), 0.0)) * 10
    settings = {
        "behavior": Policy.uniform(counts),
        "discount": 0.9,
        "value_bounds": (float(-spread), float(spread)),
    }
    return Problem(counts=counts, **settings | changes)


def some_policy(problem, rng):
    """Any policy that does all that can be done, in any proportion."""
    pairs = problem.counts.pairs
    return Policy.from_dense(pairs, rng.dirichlet(np.ones(pairs.num_actions), pairs.num_states))


# ---- the claim --------------------------------------------------------------------------------


def exact_terms(problem, policy, errors, rewards):
    """ρ(π, M̂) and loss(π) in rationals, by the discounted visits of all pairs."""
    states, actions = problem.num_states, problem.num_actions
    discount, (low, high) = Fraction(problem.discount), problem.value_bounds
    chance, table = policy.dense(), np.zeros((states, actions, states), int)
    pairs, counts = problem.counts.pairs, problem.counts
    pair = np.repeat(np.arange(pairs.num_pairs), np.diff(counts.offsets))
    table[pairs.state[pair], pairs.action[pair], counts.successor] = counts.times
    rows = [
        [[Fraction(int(n), max(int(row.sum()), 1)) for n in row] for row in state]
        for state in table
    ]
    matrix = [[Fraction(int(s == t)) for s in range(states)] for t in range(states)]
    for s in range(states):
        for a in range(actions):
            for t in range(states):
                matrix[t][s] -= discount * Fraction(chance[s, a]) * rows[s][a][t]
    visits = solve_exactly(matrix, [Fraction(int(s == 0)) for s in range(states)])
    earned, loss = Fraction(0), Fraction(0)
    for s in range(states - 1):
        for a in range(actions):
            often = visits[s] * Fraction(chance[s, a])
            paid = [Fraction(float(r)) for r in np.broadcast_to(rewards, table.shape)[s, a]]
            earned += often * sum(p * r for p, r in zip(rows[s][a], paid, strict=True))
            spread = discount * (Fraction(high) - Fraction(low)) + max(paid) - min(paid)
            loss += often * Fraction(float(errors[s, a])) / 2 * spread
    return earned, loss


@BOTH
@pytest.mark.parametrize("per", ["pair", "transition"])
@settings(max_examples=settings.default.max_examples // 2)
@given(seed=st.integers(0, 10**6))
def test_the_claim_is_that_of_exact_arithmetic(bound, per, seed):
    rng = np.random.default_rng(seed)
    _, table = world(rng, states=int(rng.integers(2, 5)), visits=int(rng.integers(1, 300)))
    states, actions, _ = table.shape
    rewards = rng.normal(size=(states, actions, 1 if per == "pair" else states))
    rewards[-1] = 0.0
    problem = problem_of(table, rewards[:, :, 0] if per == "pair" else rewards)
    policy = some_policy(problem, rng)
    found = certify(problem, policy, CorrectedBeta(bound=bound, delta=0.2))
    share = 0.2 / ((states - 1) * actions)
    errors = BOUNDS[bound].row_error(table, share)
    (ours, our_loss), (theirs, their_loss) = (
        exact_terms(problem, each, errors, rewards) for each in (policy, problem.behavior)
    )
    expected = ours - theirs - our_loss - their_loss
    assert found.lower <= expected
    assert found.lower == pytest.approx(float(expected), abs=1e-6 * found.span)
    largest = min(errors[:-1].max(), 2.0)
    assert found.figures["largest_row_error"] == pytest.approx(largest, abs=1e-8)
    assert found.standing == ("asymptotic" if bound == "beta-corrected" else "posterior")
    assert verify(found, problem, policy) == found


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), per=st.sampled_from(["pair", "transition"]))
def test_the_claim_holds_for_every_model_within_the_errors(seed, per):
    rng = np.random.default_rng(seed)
    _, table = world(rng, visits=int(rng.integers(5, 2000)))
    states, actions, _ = table.shape
    rewards = rng.normal(size=(states, actions, 1 if per == "pair" else states))
    rewards[-1] = 0.0
    discount = float(rng.choice([0.3, 0.9]))
    problem = problem_of(table, rewards[:, :, 0] if per == "pair" else rewards, discount=discount)
    policy = some_policy(problem, rng)
    errors = BetaCorrected().row_error(table, 0.1 / ((states - 1) * actions))
    values = []
    for _ in range(20):
        P = table / np.maximum(table.sum(axis=2, keepdims=True), 1)
        for s in range(states - 1):
            for a in range(actions):
                source, target = rng.permutation(states)[:2]
                moved = min(errors[s, a] / 2, P[s, a, source])
                P[s, a, source] -= moved
                P[s, a, target] += moved
        for each in (policy, problem.behavior):
            chance = each.dense()
            step = np.einsum("sa,sat->st", chance, P)
            earned = np.einsum("sa,sat,sat->s", chance, P, np.broadcast_to(rewards, P.shape))
            values.append(np.linalg.solve(np.eye(states) - discount * step, earned))
    # The narrowest bounds that are true of all these models: the claim is at its boldest.
    bounds = (float(np.min(values)), float(np.max(values)))
    found = certify(replace(problem, value_bounds=bounds), policy, CorrectedBeta())
    differences = [
        ours[0] - theirs[0] for ours, theirs in zip(values[::2], values[1::2], strict=True)
    ]
    assert found.lower <= min(differences) + 1e-9 * found.span


def test_fewer_successors_lose_less_and_one_loses_nothing():
    table = np.zeros((4, 2, 4), int)
    table[0] = [[0, 40, 10, 0], [0, 0, 60, 0]]
    table[1:3] = [[0, 0, 0, 30], [0, 0, 0, 30]]
    rewards = [[0.0, 0.0], [1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]
    problem = problem_of(table, rewards, value_bounds=(0.0, 3.0))
    policy = Policy.from_dense(problem.counts, [[0, 1]] + [[0.5, 0.5]] * 3)
    seen = np.array([[1, 2], [2], [3], [3], [3], [3], [], []], dtype=object)
    known = Successors(
        problem.counts.pairs,
        np.cumsum([0, *map(len, seen)]),
        np.concatenate([np.array(row, int) for row in seen]),
    )
    narrow = replace(problem, support=known)
    wide, near = (certify(each, policy, CorrectedBeta()) for each in (problem, narrow))
    assert near.lower > wide.lower
    assert known.statement() in near.assumptions
    assert (near.figures["successors"], "successors" in wide.figures) == (7, False)
    # π_b takes the one row that is not known, half of the time; only its error is left.
    error = float(BetaCorrected().row_error([40, 10], 0.1))
    loss = 0.5 * 0.9 * error / 2 * 3.0
    gain = 0.9 * (3.0 - (0.5 * (0.8 * 1 + 0.2 * 3) + 0.5 * 3))
    assert near.lower == pytest.approx(gain - loss, abs=1e-7)
    certain = Policy.from_dense(problem.counts, [[0, 1]] + [[0.3, 0.7]] * 3)
    sure = certify(replace(narrow, behavior=policy), certain, CorrectedBeta())
    assert sure.figures["loss"] <= 1e-9
    assert verify(near, narrow, policy) == near


def alike(rows, certain=0):
    """Rows that stay 30 times and end 10 times, and rows that can only end, with their supports."""
    states = rows + certain + 1
    table = np.zeros((states, 1, states), int)
    here = np.arange(states - 1)
    table[here, 0, -1] = 10
    table[here[:rows], 0, here[:rows]] = 30
    problem = problem_of(table, np.zeros((states, 1)), value_bounds=(0.0, 1.0))
    counts = problem.counts
    support = Successors(counts.pairs, counts.offsets, counts.successor)
    return replace(problem, support=support)


@BOTH
def test_only_rows_with_several_successors_share_the_level(bound):
    alone = CorrectedBeta(bound=bound, delta=0.05).errors(alike(1))
    assert 0.05 < alone[0] < 1
    assert alone[1] == 0.0
    three = CorrectedBeta(bound=bound, delta=0.15).errors(alike(3, certain=2))
    assert three == pytest.approx([alone[0]] * 3 + [0.0] * 3)
    assert CorrectedBeta(bound=bound, delta=0.05).errors(alike(2))[0] > alone[0] + 1e-3
    assert (CorrectedBeta(bound=bound).errors(alike(0, certain=1)) == 0).all()


@BOTH
def test_a_claim_says_whether_visits_are_fixed_or_chances_drawn(bound):
    (*_, last) = CorrectedBeta(bound=bound).assumptions(alike(1))
    assert last.code == ("visits-fixed" if bound == "beta-corrected" else "splits-prior")


def test_the_behavior_policy_loses_nothing():
    problem = problem_of(np.zeros((2, 2, 2), int), [[1.0, 2.0], [0.0, 0.0]])
    found = certify(problem, problem.behavior, CorrectedBeta())
    assert found.lower == 0.0
    assert found.notes == (Statement("nothing-changed"),)


def test_with_much_data_a_gain_is_proved():
    table = np.zeros((3, 2, 3), int)
    table[0] = [[0, 30_000, 70_000], [0, 80_000, 20_000]]
    table[1] = [[0, 0, 50_000]] * 2
    problem = problem_of(table, [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], value_bounds=(0.0, 1.0))
    policy = SPIBB(n_wedge=10).improve(problem).policy
    found = certify(problem, policy, CorrectedBeta())
    assert 0.15 < found.lower < 0.225  # 0.9 · 0.5 · (0.8 − 0.3) is the gain in the estimate
    # A set that looks at the worst case itself can say more.
    assert certify(problem, policy, Robust(known_start=True)).lower > found.lower


# ---- the promise ------------------------------------------------------------------------------


def allowed_failures(number, delta):
    """What a bound that fails with probability δ exceeds once in 10⁶ tests of so many draws."""
    return int(scipy.stats.binom.ppf(1 - RARE, number, delta))


def test_claims_are_wrong_at_most_as_often_as_they_may_be():
    rng, delta, number = np.random.default_rng(5), 0.3, 100
    wrong = 0
    for _ in range(number):
        P, table = world(rng, states=4, visits=int(rng.choice([5, 40, 1000])))
        rewards = rng.normal(size=table.shape[:2])
        values, rewards[-1] = [], 0.0
        problem = problem_of(table, rewards)
        policy = SPIBB(n_wedge=1).improve(problem).policy
        for each in (policy, problem.behavior):
            chance = each.dense()
            step = np.einsum("sa,sat->st", chance, P)
            matrix = np.eye(4) - problem.discount * step
            values.append(np.linalg.solve(matrix, (chance * rewards).sum(axis=1)))
        bounds = (float(np.min(values)), float(np.max(values)))
        judged = replace(problem, value_bounds=bounds)
        found = certify(judged, policy, CorrectedBeta(delta=delta))
        wrong += found.lower > values[0][0] - values[1][0]
    assert wrong <= allowed_failures(number, delta)


@pytest.mark.parametrize(
    ("bound", "visits"), [("beta-corrected", 400), ("beta-corrected-posterior", 30)]
)
def test_where_one_split_is_all_there_is_little_is_given_away(bound, visits):
    # Right leads to a good or a bad end, left to nothing; so the error of one row is all.
    rng, delta, number = np.random.default_rng(visits), 0.4, 120
    rewards = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]])
    offsets, successor = np.array([0, 1, 3, 4, 5, 6, 7, 7, 7]), np.array([3, 1, 2, 3, 3, 3, 3])
    wrong = 0
    for _ in range(number):
        p = rng.random() if bound == "beta-corrected-posterior" else 0.37
        table = np.zeros((4, 2, 4), int)
        good = rng.binomial(visits, p)
        table[0] = [[0, 0, 0, visits], [0, good, visits - good, 0]]
        table[1:3, :, 3] = visits
        problem = problem_of(table, rewards, value_bounds=(-1.0, 1.0))
        known = Successors(problem.counts.pairs, offsets, successor)
        left, right = (
            Policy.from_dense(problem.counts, [row] + [[0.5, 0.5]] * 3) for row in np.eye(2)
        )
        problem = replace(problem, behavior=left, support=known)
        found = certify(problem, right, CorrectedBeta(bound=bound, delta=delta))
        assert found.figures["gain"] == pytest.approx(0.9 * (2 * good / visits - 1))
        wrong += found.lower > 0.9 * (2 * p - 1)
    # One of the two sides is what counts, so about δ/2 of the claims are wrong.
    assert number * delta / 5 < wrong <= allowed_failures(number, delta)


# ---- refusals ---------------------------------------------------------------------------------


def test_a_pair_with_too_few_visits_is_named():
    table = np.zeros((3, 2, 3), int)
    table[0] = [[0, 5, 5], [0, 3, 0]]
    table[1] = [[0, 0, 9], [0, 0, 0]]
    problem = problem_of(table, np.ones((3, 2)))
    policy = Policy.from_dense(problem.counts, [[1, 0], [1, 0], [1, 0]])
    text = (
        "a policy takes state 1, action 1, which the data visits 0 times; the bound "
        r"beta-corrected needs more than 0 of every pair that is taken; 1 of 6 pairs is affected"
    )
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, policy, CorrectedBeta())
    seldom = Policy.from_dense(problem.counts, [[0.5, 0.5], [1, 0], [0.5, 0.5]])
    fine = replace(problem, behavior=seldom)
    assert certify(fine, policy, CorrectedBeta()).figures["n_wedge"] == 2
    assert certify(fine, policy, CorrectedBeta(n_wedge=2)).standing == "asymptotic"
    text = "state 0, action 1, which the data visits 3 times; .* more than 3 of every pair"
    with pytest.raises(CertificateRefused, match=text):
        certify(fine, policy, CorrectedBeta(n_wedge=3))


def test_rewards_that_are_not_known_are_refused():
    table = np.zeros((2, 2, 2), int)
    table[0] = [[5, 5], [3, 3]]
    summed = Counts.from_dense(
        table, reward_sums=table.sum(axis=2).astype(float), terminal=[False, True]
    )
    problem = Problem(
        counts=summed, behavior=Policy.uniform(summed), discount=0.5, value_bounds=(0.0, 2.0)
    )
    policy = Policy.from_dense(summed, [[1, 0], [0.5, 0.5]])
    with pytest.raises(CertificateRefused, match="the rewards are not known"):
        certify(problem, policy, CorrectedBeta())
    table[0, 0] = [0, 5]
    some = Counts.from_dense(table, rewards=np.ones(table.shape), terminal=[False, True])
    kept = some.times > 0
    partial = replace(
        some,
        offsets=np.array([0, 1, 3, 3, 3]),
        successor=some.successor[kept],
        times=some.times[kept],
        rewards=replace(some.rewards, values=some.rewards.values[kept]),
    )
    text = "known rewards of state 0, action 0 are given for 1 of the 2 states .* 1 of 4 pairs"
    with pytest.raises(CertificateRefused, match=text):
        certify(replace(problem, counts=partial), policy, CorrectedBeta())
    known = Successors(partial.pairs, np.array([0, 1, 3, 3, 3]), np.array([1, 0, 1]))
    assert certify(replace(problem, counts=partial, support=known), policy, CorrectedBeta())


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_discounts_that_the_formula_has_no_use_for_are_refused(discount):
    problem = problem_of(np.ones((2, 2, 2), int) * [[[1]], [[0]]], np.ones((2, 2)))
    policy = Policy.from_dense(problem.counts, [[1, 0], [1, 0]])
    with pytest.raises(CertificateRefused, match="discount is"):
        certify(replace(problem, discount=discount), policy, CorrectedBeta())


@pytest.mark.parametrize(
    ("name", "value"),
    [("bound", "beta"), ("bound", None), ("delta", 0.0), ("delta", "x"), ("n_wedge", 0),
     ("n_wedge", 1.5), ("n_wedge", 2**62)],
)  # fmt: skip
def test_bad_settings_are_refused(name, value):
    with pytest.raises(InvalidParameter, match=f"{name} is"):
        CorrectedBeta(**{name: value})


def test_value_bounds_that_the_claim_itself_contradicts_are_refused():
    table = np.zeros((2, 2, 2), int)
    table[0, :, 1] = 10**6
    problem = problem_of(table, np.array([[0.0, 9.0], [0.0, 0.0]]), value_bounds=(0.0, 1.0))
    policy = SPIBB(n_wedge=5).improve(problem).policy
    with pytest.raises(CertificateRefused, match="by the data the policies differ by at least"):
        certify(problem, policy, CorrectedBeta())


def test_a_claim_may_be_as_large_as_values_can_differ(monkeypatch):
    table = np.zeros((2, 2, 2), int)
    table[0, :, 1] = 5
    problem = problem_of(table, np.zeros((2, 2)), value_bounds=(-1.0, 2.0))
    policy = Policy.from_dense(problem.counts, [[1, 0], [1, 0]])
    terms = {"gain": 4.0, "loss": 1.0}
    monkeypatch.setattr(CorrectedBeta, "terms", lambda *arguments: terms)
    assert certify(problem, policy, CorrectedBeta()).lower == 3.0
    terms["loss"] = 1.0 - 2.0**-50
    with pytest.raises(RefutedBounds, match=r"value_bounds is \(-1\.0, 2\.0\), but by the data"):
        certify(problem, policy, CorrectedBeta())


def test_rewards_spread_over_what_may_come():
    table = np.zeros((3, 1, 3), int)
    table[0, 0], table[1, 0, 2] = [1, 2, 0], 4
    rewards = np.array([[[5.0, -1.0, 7.0]], [[2.0, 9.0, 3.0]], [[0.0, 0.0, 0.0]]])
    problem = problem_of(table, rewards)
    assert reward_spread(problem).tolist() == [8.0, 7.0, 0.0]
    known = Successors(problem.counts.pairs, [0, 2, 3, 3], [0, 1, 2])
    assert reward_spread(replace(problem, support=known)).tolist() == [6.0, 0.0, 0.0]
    assert reward_spread(problem_of(table, rewards[:, :, 0])).tolist() == [0.0] * 3


@BOTH
def test_errors_are_computed_up_to_so_many_visits_and_down_to_such_levels(bound):
    def problem(visits):
        table = np.array([[[0, visits]], [[0, 0]]])
        return problem_of(table, np.zeros((2, 1)), value_bounds=(0.0, 1.0))

    most = 10**15
    assert CorrectedBeta(bound=bound).errors(problem(most))[0] < 1e-6
    with pytest.raises(CertificateRefused, match="1000000000000001 visits and 1 rows"):
        CorrectedBeta(bound=bound).errors(problem(most + 1))
    # The share of the one row is divided between its two states.
    assert CorrectedBeta(bound=bound, delta=2e-100).errors(problem(9))[0] == 2.0
    with pytest.raises(CertificateRefused, match=r"9 visits and 1 rows .* delta = 1\.9e-100"):
        CorrectedBeta(bound=bound, delta=1.9e-100).errors(problem(9))
