"""Worst and best cases over sets of MDPs, against linear programs, vertices and Storm.

Many sets in one compiled loop, against the loop that does one set at a time.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.oracles import exact_value, largest_gap, solve_exactly, worst_row
from support.storm_oracle import storm_interval_optimum
from support.strategies import REWARDS, all_pairs, mdps, policies
from surestep import FiniteMDP, Pairs, Policy, optimal
from surestep.errors import InvalidParameter, NotConverged
from surestep.planning import robust
from surestep.planning.rectangular import (
    Earnings,
    RectangularSet,
    rows_along_trees,
    rows_in_balls,
    rows_in_intervals,
)
from surestep.planning.robust import (
    best_value,
    best_values,
    groups_of_one_kind,
    l1_ball,
    robust_optimal,
    worst_value,
    worst_values,
)

KINDS = ("intervals", "l1", "trees")


class Ball(NamedTuple):
    """What `l1_ball` makes a set of."""

    center: FiniteMDP
    radius: np.ndarray
    outside_reward: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


@st.composite
def balls(draw, **sizes):
    """Balls around small models, of all radii."""
    center = draw(mdps(**sizes))
    size = center.num_pairs

    def per_pair(values):
        return np.array(draw(st.lists(values, min_size=size, max_size=size)))

    end = center.ending_reward
    return Ball(
        center,
        per_pair(st.sampled_from([0.0, 0.1, 0.7, 1.5, 2.0])),
        outside_reward=per_pair(REWARDS),
        lowest=end - per_pair(st.integers(0, 3)),
        highest=end + per_pair(st.integers(0, 3)),
    )


def lp_backup(ball, value, sign):
    """min_p Σ p (R + Γ v) for every pair (sign 1), or max_p (sign −1), by linear programs."""
    mdp = ball.center
    q = np.empty(mdp.num_pairs)
    for k in range(mdp.num_pairs):
        run = slice(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
        if run.start == run.stop:
            q[k] = ball.lowest[k] if sign > 0 else ball.highest[k]
            continue
        center, worth = np.zeros(mdp.num_states), ball.outside_reward[k] + mdp.discount[k] * value
        center[mdp.successor[run]] = mdp.probability[run]
        worth[mdp.successor[run]] = mdp.reward[run] + mdp.discount[k] * value[mdp.successor[run]]
        q[k] = worth @ worst_row(center, sign * worth, ball.radius[k])
    return q


def assert_fixed_point(ball, plan, after):
    """The plan's value is that of the contraction which takes it to `after`."""
    slowest = 1 / (1 - ball.center.discount.max())
    scale = max(1.0, np.abs(plan.value).max(), np.abs(ball.center.reward).max(initial=0))
    # |V − v| ≤ |Tv − v| / (1 − γ), and the linear programs are exact to about 1e-10.
    assert np.abs(after - plan.value).max() <= 2 * plan.error_bound + 1e-9 * scale
    assert plan.error_bound <= 1e-8 * scale * slowest


def expected(pairs, probability, q):
    """Σ_a π q in every state."""
    return np.add.reduceat(probability * q, pairs.offsets[:-1])


@settings(max_examples=30)
@given(data=st.data())
def test_worst_and_best_values_of_a_policy_are_fixed_points_of_linear_programs(data):
    ball = data.draw(balls(max_states=4, max_actions=2))
    policy = data.draw(policies(ball.center.pairs))
    for plan, sign in (
        (worst_value(l1_ball(*ball), policy), 1),
        (best_value(l1_ball(*ball), policy), -1),
    ):
        q = lp_backup(ball, plan.value, sign)
        assert_fixed_point(ball, plan, expected(ball.center.pairs, policy.probability, q))
        assert plan.policy == policy


@settings(max_examples=30)
@given(data=st.data())
def test_the_robust_policy_has_the_best_worst_case(data):
    ball = data.draw(balls(max_states=4, max_actions=3))
    plan = robust_optimal(l1_ball(*ball))
    q = lp_backup(ball, plan.value, 1)
    assert_fixed_point(ball, plan, np.maximum.reduceat(q, ball.center.pairs.offsets[:-1]))
    own = worst_value(l1_ball(*ball), plan.policy)
    assert np.abs(own.value - plan.value).max() <= 2 * (own.error_bound + plan.error_bound)


@given(data=st.data())
def test_a_ball_of_radius_0_holds_its_center_only(data):
    ball = data.draw(balls(max_states=4))
    center, still = ball.center, np.zeros(ball.center.num_pairs)
    end = center.ending_reward
    ball = l1_ball(*ball._replace(radius=still, lowest=end, highest=end))
    policy = data.draw(policies(center.pairs))
    truth = exact_value(center, policy.probability)
    for plan in (worst_value(ball, policy), best_value(ball, policy)):
        assert largest_gap(plan.value, truth) <= plan.error_bound
    best, robust = optimal(center), robust_optimal(ball)
    assert np.abs(best.value - robust.value).max() <= best.error_bound + robust.error_bound


@given(data=st.data())
def test_a_policy_is_worth_something_between_its_worst_and_its_best_case(data):
    ball = data.draw(balls(max_states=4))
    policy = data.draw(policies(ball.center.pairs))
    truth = np.array([float(v) for v in exact_value(ball.center, policy.probability)])
    models = l1_ball(*ball)
    worst, best = worst_value(models, policy), best_value(models, policy)
    assert (worst.value - worst.error_bound <= truth).all()
    assert (truth <= best.value + best.error_bound).all()


def test_the_policy_of_a_plan_is_the_one_given_or_the_best_one():
    # Where the first action leads anywhere at worst, the second one is the better, for less.
    mdp = FiniteMDP.from_dense(np.eye(2)[[[0, 0], [1, 1]]], [[1.0, 0.9], [-1.0, -1.0]], 0.9)
    nothing = np.zeros(4)
    ball = l1_ball(mdp, np.array([1.0, 0.0, 0.0, 0.0]), nothing, nothing, nothing)
    plan = robust_optimal(ball)
    assert plan.policy.dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert plan.value == pytest.approx([9.0, -10.0], rel=1e-9)
    uniform = Policy.uniform(mdp)
    for verb in (worst_value, best_value):
        assert verb(ball, uniform).policy is uniform


def test_mass_goes_to_states_that_were_never_seen():
    # One pair that stays; state 1 is worth −10, and 0.4 of the mass may move there.
    center = FiniteMDP(
        Pairs.full(2, 1), [0, 1, 1], [0], [1.0], [1.0], [0.5, 0.5], [1.0, 0.0], [0.0, -10.0]
    )
    ball = l1_ball(center, *np.array([[0.8, 0.0], [3.0, 0.0], [0.0, -10.0], [0.0, -10.0]]))
    worst = worst_value(ball, Policy.uniform(center)).value
    # v = 0.6 (1 + v/2) + 0.4 (3 − 5)
    assert worst == pytest.approx([-0.2 / 0.7, -10.0])


def test_without_discounting_there_is_no_worst_case():
    center = FiniteMDP(Pairs.full(2, 1), [0, 1, 1], [1], [1.0], [1.0], [1.0, 0.5], [1.0, 0.0])
    with pytest.raises(InvalidParameter, match="discount of state 0, action 0 is 1, expected less"):
        l1_ball(center, np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))


# ---- intervals --------------------------------------------------------------------------------


@st.composite
def interval_sets(draw, max_states=3, least=0.0):
    """Sets of intervals in which some states are not stored, and their ends as tables [K, S]."""
    pairs = draw(all_pairs(max_states, 2, min_states=2))
    states, size = pairs.num_states, pairs.num_pairs
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    center = rng.dirichlet(np.ones(states), size)
    stored = (rng.random(center.shape) < 0.7) if least == 0 else np.ones(center.shape, bool)
    width = draw(st.sampled_from([0.05, 0.3, 1.0]))
    low, high = np.maximum(center - width, least), np.minimum(center + width, 1.0)
    elsewhere = np.maximum(np.where(stored, 0.0, high).max(axis=1), 0.01)
    low, high = np.where(stored, low, 0.0), np.where(stored, high, elsewhere[:, np.newaxis])
    pair, successor = np.nonzero(stored)
    rows = rows_in_intervals(
        np.concatenate([[0], np.cumsum(stored.sum(axis=1))]),
        successor.astype(np.int32),
        low[pair, successor],
        high[pair, successor],
        elsewhere,
        ends=np.zeros(size, bool),
        support=states,
    )
    earnings = Earnings.of_pairs(rng.random(size), rows.offsets)
    discount = draw(st.sampled_from([0.0, 0.5, 0.9, 0.99]))
    models = RectangularSet(pairs, np.full(size, discount), rows, earnings, earnings)
    return models, low, high


def vertices(low, high):
    """The vertices of {p: low ≤ p ≤ high, Σ p = 1}: all entries but one are at an end."""
    found = []
    for free in range(low.size):
        others = [i for i in range(low.size) if i != free]
        for ends in itertools.product((0, 1), repeat=low.size - 1):
            row = np.empty(low.size)
            row[others] = [(low, high)[end][i] for end, i in zip(ends, others, strict=True)]
            row[free] = 1 - row[others].sum()
            if low[free] - 1e-12 <= row[free] <= high[free] + 1e-12:
                found.append(row)
    return np.unique(np.round(found, 14), axis=0)


def lowest_of_all(models, corners, policy):
    """min over all choices of a vertex for each row of V^π, in every state."""
    pairs, reward, discount = models.pairs, models.low.outside, models.discount
    chooses = np.zeros((pairs.num_states, pairs.num_pairs))
    chooses[pairs.state, np.arange(pairs.num_pairs)] = policy
    used = [c if share > 0 else c[:1] for c, share in zip(corners, policy, strict=True)]
    rows = np.array([np.stack(choice) for choice in itertools.product(*used)])
    systems = np.eye(pairs.num_states) - chooses @ (discount[:, np.newaxis] * rows)
    right = np.broadcast_to((chooses @ reward)[:, np.newaxis], (*systems.shape[:2], 1))
    return np.linalg.solve(systems, right)[..., 0].min(axis=0)


@settings(max_examples=15)
@given(case=interval_sets(), data=st.data())
def test_the_worst_case_is_the_worst_of_all_vertices(case, data):
    models, low, high = case
    corners = [vertices(*ends) for ends in zip(low, high, strict=True)]
    policy = data.draw(policies(models.pairs))
    plan = worst_value(models, policy)
    expected = lowest_of_all(models, corners, policy.probability)
    assert plan.value == pytest.approx(expected, abs=1e-8)
    assert np.abs(plan.value - expected).max() <= plan.error_bound + 1e-10
    mirrored = RectangularSet(models.pairs, models.discount, models.rows, -models.low, -models.low)
    best = best_value(models, policy).value
    assert best == pytest.approx(-lowest_of_all(mirrored, corners, policy.probability), abs=1e-8)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.05, 0.3]), data=st.data())
@pytest.mark.slow
def test_without_a_discount_sweeps_from_the_floor_rise_to_the_worst_of_all_vertices(
    seed, width, data
):
    rng, pairs = np.random.default_rng(seed), Pairs.full(3, 2)
    over = pairs.state == 2
    center = rng.dirichlet(np.ones(3), pairs.num_pairs)
    low, high = np.maximum(center - width, 0.05), np.minimum(center + width, 1.0)
    rows = rows_in_intervals(
        np.concatenate([[0], np.cumsum(np.where(over, 0, 3))]),
        np.tile(np.arange(3), 4).astype(np.int32),
        *(ends[~over].ravel() for ends in (low, high)),
        np.full(pairs.num_pairs, 0.01),
        ends=over,
        support=3,
    )
    earnings = Earnings.of_pairs(rng.normal(size=pairs.num_pairs), rows.offsets)
    models = RectangularSet(pairs, np.ones(pairs.num_pairs), rows, earnings, earnings)
    policy = data.draw(policies(pairs))
    corners = [vertices(*ends) for ends in zip(low, high, strict=True)]
    ending = replace(models, discount=np.where(over, 0.0, 1.0))
    expected = lowest_of_all(ending, corners, policy.probability)
    found = worst_value(models, policy, np.full(3, -1000.0))
    assert (found.value <= expected + 1e-9).all()
    assert found.value == pytest.approx(expected, abs=1e-4)
    # Where values are known to be higher, the floor is what stays.
    assert (worst_value(models, policy, expected + 1.0).value >= expected + 1.0).all()
    mirrored = -lowest_of_all(ending.mirrored(), corners, policy.probability)
    assert (best_value(models, policy, np.full(3, 1000.0)).value >= mirrored - 1e-9).all()


def test_without_a_discount_or_a_floor_there_is_no_worst_case():
    rows = rows_in_balls(
        np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), np.zeros(1), np.zeros(1, bool)
    )
    earnings = Earnings.of_pairs(np.ones(1), rows.offsets)
    models = RectangularSet(Pairs.full(1, 1), np.ones(1), rows, earnings, earnings)
    with pytest.raises(InvalidParameter, match="the discount is 1"):
        worst_value(models, Policy.uniform(models.pairs))
    with pytest.raises(InvalidParameter, match="the discount is 1"):
        robust_optimal(models)


@settings(max_examples=25)
@given(case=interval_sets())
def test_the_robust_policy_is_the_best_of_all_against_all_vertices(case):
    models, low, high = case
    corners = [vertices(*ends) for ends in zip(low, high, strict=True)]
    runs = itertools.pairwise(models.pairs.offsets.tolist())
    values = []
    for choice in itertools.product(*(range(a, b) for a, b in runs)):
        policy = np.zeros(models.pairs.num_pairs)
        policy[list(choice)] = 1.0
        values.append(lowest_of_all(models, corners, policy))
    assert robust_optimal(models).value == pytest.approx(np.max(values, axis=0), abs=1e-8)


@settings(max_examples=2 * settings.default.max_examples)
@given(case=interval_sets(), data=st.data())
def test_no_value_is_below_the_floor_nor_above_the_ceiling(case, data):
    models, low, high = case
    policy = data.draw(policies(models.pairs))
    plain = worst_value(models, policy).value, best_value(models, policy).value
    shift = np.array(data.draw(st.lists(REWARDS, min_size=plain[0].size, max_size=plain[0].size)))
    for plan, bound, sign, reached in (
        (worst_value(models, policy, plain[0] + shift), plain[0] + shift, 1, plain[0]),
        (best_value(models, policy, plain[1] + shift), plain[1] + shift, -1, plain[1]),
    ):
        corners = [vertices(*ends) for ends in zip(low, high, strict=True)]
        q = models.low.outside + models.discount * np.array(
            [sign * (sign * (rows @ plan.value)).min() for rows in corners]
        )
        after = np.add.reduceat(policy.probability * q, models.pairs.offsets[:-1])
        after = sign * np.maximum(sign * after, sign * bound)
        scale = max(1.0, np.abs(bound).max())
        assert np.abs(after - plan.value).max() <= 2 * plan.error_bound + 1e-9 * scale
        assert (sign * (plan.value - np.where(sign * shift > 0, bound, reached)) >= -1e-6).all()


@settings(max_examples=20)
@given(case=interval_sets(max_states=5, least=1e-3))
def test_robust_values_of_intervals_are_storms(case):
    models, low, high = case
    discount = float(models.discount[0])
    expected = storm_interval_optimum(
        low, high, models.pairs.offsets[:-1], models.low.outside, discount
    )
    assert robust_optimal(models).value == pytest.approx(expected, abs=1e-8 / (1 - discount))


@pytest.mark.parametrize("discount", [0.9, 0.9999])
def test_few_rounds_are_enough_for_discounts_near_1(discount):
    states, actions, width = 500, 3, 4
    rng = np.random.default_rng(7)
    size = states * actions
    center = rng.dirichlet(np.ones(width), size)
    successor = (np.repeat(np.arange(states), actions)[:, np.newaxis] + np.arange(4)) % states
    rows = rows_in_intervals(
        np.arange(size + 1) * width,
        successor.ravel().astype(np.int32),
        np.maximum(center - 0.1, 0).ravel(),
        np.minimum(center + 0.1, 1).ravel(),
        np.full(size, 0.01),
        ends=np.zeros(size, bool),
        support=states,
    )
    earnings = Earnings.of_pairs(rng.random(size), rows.offsets)
    models = RectangularSet(
        Pairs.full(states, actions), np.full(size, discount), rows, earnings, earnings
    )
    for plan in (robust_optimal(models), best_value(models, Policy.uniform(models.pairs))):
        assert plan.iterations <= 25
        assert plan.error_bound <= 1e-4 * np.abs(plan.value).max()


# ---- discounts near 1 -------------------------------------------------------------------------

NEAR_ONE = [
    *(0.9, 1 - 1e-5, 1 - 1e-9),
    *(pytest.param(between, marks=pytest.mark.slow) for between in (0.999, 1 - 1e-7, 1 - 1e-8)),
]


def staying(discount, reward):
    """One state that is never left, or to another one that is worth the same."""
    rows = rows_in_balls(
        np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), np.ones(1), np.zeros(1, bool)
    )
    earnings = Earnings.of_pairs(np.array([float(reward)]), rows.offsets)
    return RectangularSet(Pairs.full(1, 1), np.array([discount]), rows, earnings, earnings)


def both_loops(models, policy, floor):
    """What the loop for one set says, and what the one for many says."""
    return worst_value(models, policy, floor), *worst_values([models], [policy], [floor])


@pytest.mark.parametrize("discount", NEAR_ONE)
@pytest.mark.parametrize("reward", [-1, 1])
@pytest.mark.parametrize("share", [-2.0, -0.5, 0.0, 0.5, 2.0])
def test_a_floor_that_is_far_away_is_reached_in_few_rounds(discount, reward, share):
    models = staying(discount, reward)
    policy, horizon = Policy.uniform(models.pairs), float(1 / (1 - Fraction(discount)))
    expected = max(reward, share) * horizon
    for plan in both_loops(models, policy, np.array([share * horizon])):
        assert plan.iterations <= 4
        assert abs(plan.value[0] - expected) <= plan.error_bound + 1e-12 * abs(expected)
        assert plan.error_bound <= 1e-3 * max(horizon, abs(expected))


def exact_vertices(low, high):
    """`vertices` in rationals."""
    low, high = ([Fraction(float(end)) for end in ends] for ends in (low, high))
    found = []
    for free in range(len(low)):
        for ends in itertools.product((low, high), repeat=len(low)):
            row = [end[i] for i, end in enumerate(ends)]
            row[free] = 1 - sum(row) + row[free]
            if low[free] <= row[free] <= high[free]:
                found.append(row)
    return found


def exact_game(models, low, high, floor, policies):
    """max over policies and sets of states held at the floor of the min over vertices of V^π."""
    pairs, size = models.pairs, models.pairs.num_states
    discount = Fraction(float(models.discount[0]))
    reward = [Fraction(float(r)) for r in models.low.outside]
    corners = [exact_vertices(*ends) for ends in zip(low, high, strict=True)]
    best = None
    for policy in policies:
        share = [Fraction(float(p)) for p in policy]
        used = [c if p > 0 else c[:1] for c, p in zip(corners, share, strict=True)]
        for held in itertools.product((False, True), repeat=size):
            worst = None
            for rows in itertools.product(*used):
                matrix = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
                right = [Fraction(float(floor[s])) if held[s] else Fraction(0) for s in range(size)]
                for k, s in enumerate(pairs.state.tolist()):
                    if not held[s]:
                        right[s] += share[k] * reward[k]
                        for j in range(size):
                            matrix[s][j] -= share[k] * discount * rows[k][j]
                value = solve_exactly(matrix, right)
                worst = value if worst is None else list(map(min, worst, value))
            best = worst if best is None else list(map(max, best, worst))
    return best


@pytest.mark.parametrize("discount", NEAR_ONE)
@settings(max_examples=8)
@given(data=st.data())
def test_values_near_discount_1_are_those_of_exact_rationals(discount, data):
    models, low, high = data.draw(interval_sets(max_states=2))
    models = replace(models, discount=np.full(models.pairs.num_pairs, discount))
    policy = data.draw(policies(models.pairs))
    share = data.draw(st.sampled_from([-1.0, 0.3, 0.5, 0.7]))
    floor = np.array([share, share + 0.1]) / (1 - discount)
    truth = exact_game(models, low, high, floor, [policy.probability])
    for plan in both_loops(models, policy, floor):
        assert plan.iterations <= 20
        # Ends that add up to 1 within rounding only: see ROW_EXCESS.
        near = 1e-14 / (1 - discount) * np.abs(plan.value).max()
        assert largest_gap(plan.value, truth) <= plan.error_bound + near
        assert plan.error_bound <= 1e-3 * (1 + np.abs(plan.value).max())


@pytest.mark.parametrize("discount", NEAR_ONE)
def test_robust_policies_near_discount_1_take_few_rounds_or_are_refused(discount):
    rng = np.random.default_rng(5)
    for _ in range(5):
        states, size = 12, 36
        center = rng.dirichlet(np.full(states, 0.3), size)
        rows = rows_in_balls(
            np.arange(size + 1) * states,
            np.tile(np.arange(states), size).astype(np.int32),
            center.ravel(),
            rng.random(size),
            np.zeros(size, bool),
        )
        earnings = Earnings.of_pairs(rng.random(size), rows.offsets)
        models = RectangularSet(
            Pairs.full(states, 3), np.full(size, discount), rows, earnings, earnings
        )
        if discount > 1 - 2e-9:
            with pytest.raises(NotConverged, match="discounts further below 1"):
                robust_optimal(models)
            continue
        plan = robust_optimal(models)
        assert plan.iterations <= 30
        own = worst_value(models, plan.policy)
        assert np.abs(own.value - plan.value).max() <= own.error_bound + plan.error_bound


def random_set(pairs, kind, rng, discount):
    """A set with successors, ends, rewards and widths of its own."""
    states, size = pairs.num_states, pairs.num_pairs
    ends = rng.random(size) < 0.2
    stored = (rng.random((size, states)) < rng.choice([0.3, 0.8, 1.0])) & ~ends[:, np.newaxis]
    pair, successor = np.nonzero(stored)
    offsets = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    width = rng.choice([0.0, 0.1, 0.5, 2.0])
    center = stored * rng.dirichlet(np.ones(states), size)
    center = (center / np.maximum(center.sum(axis=1, keepdims=True), 1e-300))[pair, successor]
    if kind == "l1":
        radius = np.where(stored.any(axis=1), rng.random(size) * width, 2.0)
        rows = rows_in_balls(
            offsets, successor.astype(np.int32), center, np.minimum(radius, 2), ends
        )
    elif kind == "trees":
        trees = rows_along_trees(offsets, successor.astype(np.int32), ends, states)
        chance = rng.random(trees.node_offsets[-1])
        rows = trees._replace(low=np.maximum(chance - width, 0), high=np.minimum(chance + width, 1))
    else:
        rows = rows_in_intervals(
            offsets,
            successor.astype(np.int32),
            np.maximum(center - width, 0),
            np.minimum(center + width, 1),
            np.where(stored.any(axis=1), max(width, 0.01), 1.0),
            ends=ends,
            support=states,
        )
    stored_reward, ending = rng.normal(size=pair.size), rng.normal(size=size)
    low = Earnings(stored_reward, rng.normal(size=size), ending)
    high = Earnings(stored_reward + rng.random(), low.outside + 0.5, ending + rng.random())
    return RectangularSet(pairs, np.full(size, discount), rows, low, high)


@st.composite
def batches(draw, kind):
    """Some sets over the same pairs, with a policy each."""
    pairs = draw(all_pairs(6, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    discount = draw(st.sampled_from([0.0, 0.5, 0.95]))
    sets = [random_set(pairs, kind, rng, discount) for _ in range(draw(st.integers(1, 4)))]
    return sets, [draw(policies(pairs)) for _ in sets]


def assert_alike(found, single):
    """Both are within their proven errors of one truth."""
    assert (np.abs(found.value - single.value) <= found.error_bound + single.error_bound).all()
    assert found.error_bound <= 1e-7 * (1 + np.abs(single.value).max())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_batch_says_of_each_set_what_one_call_says(kind, data):
    sets, chosen = data.draw(batches(kind))
    plain = [worst_value(*each).value for each in zip(sets, chosen, strict=True)]
    # Floors that bind nowhere, somewhere and everywhere.
    shift = data.draw(st.sampled_from([-100.0, 0.0, 1.0]))
    tilt = np.linspace(-1, 1, plain[0].size)
    floors = [value + shift + tilt for value in plain]
    found = worst_values(sets, chosen, floors)
    for plan, *each in zip(found, sets, chosen, floors, strict=True):
        assert_alike(plan, worst_value(*each))
        assert plan.policy is each[1]
    ceilings = [-floor for floor in floors]
    for plan, *each in zip(
        best_values(sets, chosen, ceilings), sets, chosen, ceilings, strict=True
    ):
        assert_alike(plan, best_value(*each))


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_loop_finds_good_values_by_itself(kind, monkeypatch):
    def not_called(*_):
        raise AssertionError("left to the other loop")

    monkeypatch.setattr(robust, "worst_value", not_called)
    pairs, rng = Pairs.full(40, 3), np.random.default_rng(3)
    sets = [random_set(pairs, kind, rng, 0.98) for _ in range(12)]
    uniform = [Policy.uniform(pairs)] * len(sets)
    plans = worst_values(sets, uniform, [np.full(40, -1.0)] * len(sets))
    assert max(plan.iterations for plan in plans) <= 200


def test_sets_of_up_to_128_states_over_the_same_pairs_and_of_one_kind_are_joined():
    def sets(*states, rows=(None, None, None, None)):
        pairs = [Pairs.full(size, 1) for size in states]
        discount = np.full(1, 0.9)
        return [
            SimpleNamespace(pairs=p, rows=r, discount=discount)
            for p, r in zip(pairs, rows, strict=False)
        ]

    assert groups_of_one_kind(sets(128, 128)) == [[0, 1]]
    assert groups_of_one_kind(sets(129, 129)) == []
    assert groups_of_one_kind(sets(128, 127, 129, 128)) == [[0, 3], [1]]
    assert groups_of_one_kind(sets(2, 2, rows=(SimpleNamespace(), None))) == [[0], [1]]


def test_sets_that_the_loop_cannot_do_are_done_one_by_one(monkeypatch):
    rng = np.random.default_rng(1)
    small, other = Pairs.full(4, 2), Pairs.full(5, 1)
    sets = [random_set(small, "l1", rng, 0.9), random_set(other, "trees", rng, 0.9)]
    chosen = [Policy.uniform(small), Policy.uniform(other)]
    floors = [np.full(4, -100.0), np.full(5, -100.0)]
    for plan, *each in zip(worst_values(sets, chosen, floors), sets, chosen, floors, strict=True):
        assert_alike(plan, worst_value(*each))
    assert worst_values([], [], []) == []
    loose = np.array([[-1.0, 1.0]])
    settled = robust.settle_together
    monkeypatch.setattr(
        robust, "settle_together", lambda *given: settled(*given)._replace(residuals=loose)
    )
    (plan,) = worst_values(sets[:1], chosen[:1], floors[:1])
    assert_alike(plan, worst_value(sets[0], chosen[0], floors[0]))


def test_what_cannot_be_proven_is_refused():
    pairs = Pairs.full(3, 1)
    near_one = random_set(pairs, "l1", np.random.default_rng(0), 1 - 1e-15)
    with pytest.raises(NotConverged, match="too near 1"):
        worst_values([near_one], [Policy.uniform(pairs)], [np.zeros(3)])
