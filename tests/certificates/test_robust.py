"""Robust claims: sound for all models in the set, and better with more data."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.robust_examples import EVERY, RANGE, SETS, STRICT, set_of, small_counts, small_problem
from support.strategies import policies, problems
from surestep import Counts, Policy, Problem, certify, performance, sample_counts
from surestep.algorithms import SPIBB
from surestep.certificates import Robust
from surestep.certificates.uncertainty import sorted_counts
from surestep.environments import make
from surestep.model import Statement
from surestep.model.counts import LoggedRewards
from surestep.planning.rectangular import Earnings

# ---- soundness --------------------------------------------------------------------------------


def true_difference(problem, P, R, ends, initial, policy):
    """ρ(π_I) − ρ(π_b) by solving linear systems over dense tables [K, S]."""
    pairs, counts = problem.counts.pairs, problem.counts
    reward = np.where(ends, counts.unseen_reward(), (P * R).sum(axis=1))
    rows = np.where(ends[:, np.newaxis], 0.0, P)
    values = []
    for each in (policy, problem.behavior):
        chooses = np.zeros((pairs.num_states, pairs.num_pairs))
        chooses[pairs.state, np.arange(pairs.num_pairs)] = each.probability
        system = np.eye(pairs.num_states) - problem.discount * (chooses @ rows)
        values.append(np.linalg.solve(system, chooses @ reward))
    return initial @ (values[0] - values[1]), values


def some_start(models, rng):
    """A start distribution of the set."""
    if models.starts is None:
        return models.initial
    size, one = models.initial.size, np.ones(1)
    stored = np.zeros(np.count_nonzero(models.initial))
    earnings = Earnings(stored, 0 * one, 0 * one)
    found = models.starts.worst(earnings, one, rng.normal(size=size))
    return np.bincount(found.successor, found.probability, minlength=size)


def rewards_at(problem, models, rng):
    """Rewards [K, S] of the set: between the ends of each pair or transition."""
    low, high, rows = models.models.low, models.models.high, models.models.rows
    counts = problem.counts
    weight = rng.random(counts.visits.size)
    table = np.repeat(
        (low.outside + weight * (high.outside - low.outside))[:, np.newaxis],
        models.initial.size,
        axis=1,
    )
    owner = np.repeat(np.arange(weight.size), np.diff(rows.offsets))
    between = low.stored + weight[owner] * (high.stored - low.stored)
    # Counts of dense tables are sorted, so that their transitions are those of the rows.
    table[owner, counts.successor] = between
    return table


def rows_at(models, rng):
    """Rows [K, S] of the set, each the worst one for some values; and which pairs end."""
    worlds = models.models
    size = worlds.pairs.num_states
    chosen = [worlds.rows.worst(worlds.low, worlds.discount, rng.normal(size=size)) for _ in "abc"]
    room = chosen[0].offsets
    P = np.zeros((worlds.pairs.num_pairs, size))
    for k in range(P.shape[0]):
        found, run = chosen[rng.integers(3)], slice(*room[k : k + 2])
        P[k] = np.bincount(found.successor[run], found.probability[run], minlength=size)
    return P, np.diff(room) == 0


@EVERY
@STRICT
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=problems(), data=st.data())
def test_the_claim_holds_for_members_of_the_set(kind, strict, problem, data):
    policy = data.draw(policies(problem.counts.pairs))
    delta = data.draw(st.sampled_from([0.01, 0.5]))
    known_start = data.draw(st.booleans())
    certifier = Robust(set=kind, strict=strict, delta=delta, known_start=known_start, **RANGE)
    models = set_of(problem, certifier)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    found = certify(problem, policy, certifier)
    for _ in range(5):
        P, ends = rows_at(models, rng)
        R, initial = rewards_at(problem, models, rng), some_start(models, rng)
        truth, values = true_difference(problem, P, R, ends, initial, policy)
        low, high = problem.value_bounds
        if min(map(np.min, values)) >= low and max(map(np.max, values)) <= high:
            assert found.lower <= truth + 1e-9 * found.span
            assert found.figures["lowest_performance"] <= initial @ values[0] + 1e-9 * found.span
            assert found.figures["highest_behavior"] >= initial @ values[1] - 1e-9 * found.span


def plain_iteration(step, size, discount):
    """The fixed point of a contraction, by as many sweeps as doubles have use for."""
    value = np.zeros(size)
    for _ in range(1 if discount == 0 else int(40 / (1 - discount))):
        value = step(value)
    return step(value)


@EVERY
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=problems(max_states=3), data=st.data())
def test_the_claim_is_at_least_either_bound_and_their_common_fixed_point(kind, problem, data):
    assume(problem.discount <= 0.95)
    policy = data.draw(policies(problem.counts.pairs))
    certifier = Robust(set=kind, **RANGE)
    models = set_of(problem, certifier)
    worlds, (low, high) = models.models, problem.value_bounds
    opposite = worlds.mirrored()
    pairs = problem.counts.pairs

    def expected(policy, q):
        return np.add.reduceat(policy.probability * q, pairs.offsets[:-1])

    def fixed(step):
        return plain_iteration(step, pairs.num_states, problem.discount)

    behavior = problem.behavior
    ours = fixed(lambda v: np.maximum(expected(policy, worlds.worst(v).q), low))
    theirs = fixed(lambda v: np.maximum(expected(behavior, worlds.worst(v).q), low))
    best = -fixed(lambda v: np.maximum(expected(behavior, opposite.worst(v).q), -high))
    least, most = worlds.worst(theirs).q, -opposite.worst(-best).q
    change = policy.probability - behavior.probability
    gain = np.add.reduceat(np.where(change > 0, change * least, change * most), pairs.offsets[:-1])
    earnings = Earnings.of_pairs(gain[pairs.state], worlds.rows.offsets)
    step = replace(worlds, low=earnings, high=earnings)
    first = models.least_start(ours) + models.least_start(-best)
    second = models.least_start(fixed(lambda v: expected(policy, step.worst(v).q)))
    both = fixed(lambda v: np.maximum(expected(policy, step.worst(v).q), ours - best))
    found = certify(problem, policy, certifier)
    slack = 1e-8 * max(found.span, 1.0)
    assert found.lower >= max(first, second) - slack
    assert found.lower == pytest.approx(models.least_start(both), abs=slack)
    assert found.figures["difference"] == pytest.approx(models.least_start(ours - best), abs=slack)
    assert found.lower <= models.least_start(both)  # errors are taken off


@EVERY
@STRICT
@settings(max_examples=8)
@given(problem=problems())
def test_the_behavior_policy_itself_loses_nothing(kind, strict, problem):
    found = certify(problem, problem.behavior, Robust(set=kind, strict=strict, **RANGE))
    assert found.lower == 0
    assert found.figures["difference"] <= 0
    assert found.notes == (Statement("nothing-changed"),)


# ---- data and claims --------------------------------------------------------------------------


@EVERY
@STRICT
def test_more_data_of_the_same_kind_claims_more(kind, strict):
    counts = small_counts()
    policy = Policy.from_dense(counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    claims = [
        certify(small_problem(scale), policy, Robust(set=kind, strict=strict)).lower
        for scale in (1, 10, 100, 1000, 10**6)
    ]
    assert (np.diff(claims) > 0).all()


@EVERY
def test_strict_claims_are_weaker_and_knowing_the_start_helps(kind):
    problem = small_problem(100)
    policy = Policy.from_dense(problem.counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    strict = certify(problem, policy, Robust(set=kind))
    assert certify(problem, policy, Robust(set=kind, strict=False)).lower > strict.lower
    assert certify(problem, policy, Robust(set=kind, known_start=True)).lower > strict.lower
    assert certify(problem, policy, Robust(set=kind, delta=0.01)).lower < strict.lower


def test_a_small_change_can_cost_little_only():
    # By values alone, all that is unknown about either policy counts, changed or not.
    problem = small_problem(100)
    changed = Policy.from_dense(problem.counts, [[0.499, 0.501], [0.5, 0.5], [0.5, 0.5]])
    found = certify(problem, changed, Robust())
    assert found.figures["difference"] < -0.5
    assert -0.05 < found.lower < 0


@pytest.mark.parametrize(("kind", "least"), [("interval", 14), ("two-successor", 14), ("l1", 9)])
def test_wet_chicken_is_certified_from_the_data_of_many_trajectories(kind, least):
    benchmark = make("wet-chicken")
    claims = []
    for episodes in (10**3, 10**5):
        counts = sample_counts(
            benchmark.mdp, benchmark.collector, episodes, 10, np.random.default_rng(episodes)
        )
        known = LoggedRewards(benchmark.mdp.expected_reward, "pair", True)
        problem = Problem(
            counts=replace(counts, rewards=known),
            behavior=benchmark.behavior,
            discount=benchmark.discount,
            value_bounds=benchmark.value_bounds,
        )
        policy = SPIBB(n_wedge=10).improve(problem).policy
        found = certify(problem, policy, Robust(strict=False, set=kind))
        truth = performance(benchmark.mdp, policy) - performance(benchmark.mdp, benchmark.behavior)
        assert found.lower < truth
        claims.append(found.lower)
    assert claims[0] < 0 < least < claims[1]


def test_observed_rewards_claim_less_than_known_ones():
    known = small_problem(100)
    policy = Policy.from_dense(known.counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    visits = known.counts.pairs.dense(known.counts.visits)
    sums = visits * np.array([[0.5, 1.0], [0.0, 2.0], [0.0, 0.0]])
    observed = small_problem(counts=small_counts(100, reward_sums=sums))
    wide = certify(observed, policy, Robust(reward_low=0.0, reward_high=2.0))
    assert wide.lower < certify(known, policy, Robust()).lower
    wider = certify(observed, policy, Robust(reward_low=-1.0, reward_high=2.0))
    assert wider.lower < wide.lower


@pytest.mark.parametrize("kind", SETS)
def test_the_order_in_which_successors_are_stored_does_not_matter(kind):
    counts = small_counts()
    runs = itertools.pairwise(counts.offsets.tolist())
    order = np.concatenate([np.arange(*ends)[::-1] for ends in runs])
    turned = Counts(
        counts.pairs, counts.offsets, counts.successor[order], counts.times[order],
        counts.rewards, counts.starts, counts.terminal,
    )  # fmt: skip
    policy = Policy.from_dense(counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    first, second = (
        certify(small_problem(counts=each), policy, Robust(set=kind)).lower
        for each in (counts, turned)
    )
    assert first == pytest.approx(second, abs=1e-12)


def test_successors_may_be_out_of_order_in_one_row_only():
    counts = small_counts()
    order = np.arange(counts.times.size)
    last = slice(*counts.offsets[2:4])  # of the last row that was seen
    order[last] = order[last][::-1]
    turned = Counts(
        counts.pairs, counts.offsets, counts.successor[order], counts.times[order],
        counts.rewards, counts.starts, counts.terminal,
    )  # fmt: skip
    assert sorted_counts(turned) == counts
    assert sorted_counts(counts) is counts
