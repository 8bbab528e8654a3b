"""Limits: no pair that is closed is taken more often than by π_b, whatever the algorithm."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.constraints import CONSTRAINTS
from contract.settings import SETTINGS, needs_log
from support.strategies import logged_problems, problems
from surestep import Counts, Problem, evaluate_with_bound
from surestep.algorithms import (
    ALGORITHMS,
    SPIBB,
    BasicRL,
    Promise,
    Provable,
    RaMDP,
    RMin,
    RobustMDP,
    improve_batch,
)
from surestep.algorithms.contract import (
    NO_LIMITS,
    Limited,
    Limits,
    improvement_of,
    kept_where,
    limited,
)
from surestep.certificates import Robust
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import InvalidParameter
from surestep.model import Pairs, Policy
from surestep.model.batch import ProblemBatch
from surestep.planning import q_values

CASES = [algorithm for name in ALGORITHMS for algorithm in SETTINGS[name]]
FEW = settings(max_examples=max(settings.default.max_examples // 10, 2))  # of each of many cases
SEEDS = st.integers(0, 2**32 - 1)


def closed_at_random(problem, seed):
    return np.random.default_rng(seed).random(problem.counts.pairs.num_pairs) < 0.4


def assert_within(problem, closed, policy):
    excess = policy.probability - problem.behavior.probability
    assert excess[closed].max(initial=0.0) <= 1e-12


@pytest.mark.parametrize("algorithm", CASES, ids=repr)
@FEW
@given(data=st.data(), seed=SEEDS, least=st.sampled_from([0, 3]))
def test_every_algorithm_keeps_to_limits_and_to_itself(algorithm, data, seed, least):
    problem = data.draw(logged_problems() if needs_log(algorithm) else problems())
    limits = Limits(least_visits=least, allowed=~closed_at_random(problem, seed))
    closed = limits.closed(problem.counts)
    np.testing.assert_array_equal(closed, ~limits.allowed | (problem.counts.visits < least))
    found = limited(algorithm, limits).improve(problem)
    assert_within(problem, closed, found.policy)
    if algorithm.name in CONSTRAINTS:
        CONSTRAINTS[algorithm.name](algorithm, problem, found)
    value = evaluate_with_bound(problem.estimate(), found.policy)
    np.testing.assert_allclose(found.plan.value, value.value, atol=1e-7, rtol=1e-9)
    if Promise.NEVER_WORSE in algorithm.promises:
        usual = evaluate_with_bound(problem.estimate(), problem.behavior)
        slack = 4 * (value.error_bound + usual.error_bound) / (1 - problem.discount)
        initial = problem.estimate().initial
        assert initial @ value.value >= initial @ usual.value - slack - 1e-9
    alone = limited(algorithm, Limits(allowed=np.ones_like(closed)))
    assert alone.improve(problem).policy == algorithm.improve(problem).policy


@given(problem=problems(generic=True), seed=SEEDS, n_wedge=st.integers(0, 12))
def test_a_closed_pair_is_one_seen_too_seldom(problem, seed, n_wedge):
    allowed = ~closed_at_random(problem, seed)
    floor = Limits(least_visits=n_wedge + 1)
    bold = Limited(algorithm=BasicRL(), limits=floor).improve(problem).policy
    np.testing.assert_allclose(
        bold.probability, SPIBB(n_wedge=n_wedge).improve(problem).policy.probability, atol=1e-9
    )
    both = replace(floor, allowed=allowed)
    one = limited(SPIBB(n_wedge=n_wedge), Limits(allowed=allowed)).improve(problem).policy
    other = limited(BasicRL(), both).improve(problem).policy
    np.testing.assert_allclose(one.probability, other.probability, atol=1e-9)


BUDGETED = [each for each in CASES if "e |π" in each.constraint or "e (π" in each.constraint]


def three_arms(visits):
    """One decision between three arms, the first of which is best and the last one worst."""
    times = np.zeros((2, 3, 2), int)
    times[0, :, 1] = visits
    counts = Counts.from_dense(
        times,
        reward_sums=times * np.array([2.0, 1.0, 0.0])[:, np.newaxis],
        starts=[1, 0],
        enabled=[[True] * 3, [True, False, False]],
        terminal=[False, True],
    )
    behavior = Policy(counts.pairs, np.array([0.5, 0.3, 0.2, 1.0]))
    return Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0, 4))


@pytest.mark.parametrize("algorithm", [each for each in BUDGETED if not needs_log(each)], ids=repr)
def test_a_budget_is_not_exceeded_where_the_best_is_closed(algorithm):
    problem, algorithm = three_arms((10_000, 5, 10_000)), replace(algorithm, epsilon=0.1)
    limits = Limits(allowed=np.array([False, True, True, True]))
    free = algorithm.improve(problem)
    assert free.policy.probability[0] > 0.51
    found = limited(algorithm, limits).improve(problem)
    CONSTRAINTS[algorithm.name](algorithm, problem, found)
    assert found.policy.probability[0] == 0.5
    # What the budget pays for goes to the best that is left.
    assert found.policy.probability[1] > 0.3
    if algorithm.name == "lower-soft-spibb":
        return  # what it proposes has nothing but the best
    held = kept_where(~limits.allowed, free.policy, problem.behavior)
    with pytest.raises(AssertionError):  # as it would be, were the policy only held to π_b
        CONSTRAINTS[algorithm.name](algorithm, problem, replace(free, policy=held))


def test_those_that_test_a_policy_test_the_one_within_the_limits():
    problem = three_arms((10_000_000, 10_000_000, 10_000_000))
    allowed = np.array([False, True, True, True])
    found = limited(RobustMDP(), Limits(allowed=allowed)).improve(problem).policy.probability
    np.testing.assert_allclose(found[:3], [0.5, 0.3, 0.2], atol=1e-12)
    np.testing.assert_allclose(RobustMDP().improve(problem).policy.probability[:3], [1, 0, 0])


@given(problem=problems(), least=st.integers(1, 12), kappa=st.floats(0, 3))
def test_what_was_hardly_seen_stays_as_it_was(problem, least, kappa):
    for algorithm in (BasicRL(), RaMDP(kappa=kappa)):
        found = limited(algorithm, Limits(least_visits=least)).improve(problem)
        scarce = problem.counts.visits < least
        behavior = problem.behavior.probability
        np.testing.assert_allclose(found.policy.probability[scarce], behavior[scarce], atol=1e-12)
        if not scarce.any():
            assert found.policy == algorithm.improve(problem).policy


@dataclass(frozen=True)
class Heedless:
    """Takes the last action of every state, whatever is closed."""

    name = "heedless"

    def improve(self, problem):
        pairs = problem.counts.pairs
        last = np.zeros(pairs.num_pairs)
        last[pairs.offsets[1:] - 1] = 1.0
        return improvement_of(problem, Policy(pairs, last), 1)


@given(problem=problems(), seed=SEEDS)
def test_an_algorithm_that_does_not_look_is_held_to_the_limits(problem, seed):
    closed, proposed = closed_at_random(problem, seed), Heedless().improve(problem).policy
    found = Limited(algorithm=Heedless(), limits=Limits(allowed=~closed)).improve(problem).policy
    assert_within(problem, closed, found)
    behavior = problem.behavior.probability
    if not (proposed.probability > behavior)[closed].any():
        assert found == proposed
    else:  # then all that is closed is as it was
        np.testing.assert_allclose(found.probability[closed], behavior[closed], atol=1e-12)


@given(problem=problems(), seed=SEEDS, n_wedge=st.integers(0, 9), least=st.integers(0, 12))
def test_many_data_sets_keep_to_limits_as_one_does(problem, seed, n_wedge, least):
    counts, batch = problem.counts, ProblemBatch.from_problems([problem])
    for allowed in (None, ~closed_at_random(problem, seed)):
        limits = Limits(least_visits=least, allowed=allowed)
        algorithm = limited(SPIBB(n_wedge=n_wedge), limits)
        assert limits.follow_from(n_wedge) == (allowed is None and least <= n_wedge + 1)
        (many,), one = improve_batch(algorithm, batch).policy, algorithm.improve(problem).policy
        q = q_of(problem, one)
        value = [
            np.add.reduceat(each * q, counts.pairs.offsets[:-1]) for each in (many, one.probability)
        ]
        np.testing.assert_allclose(*value, atol=1e-7, rtol=1e-9)  # equal up to ties
        assert_within(problem, limits.closed(counts), Policy(counts.pairs, many))


@given(problem=problems(), seed=SEEDS)
def test_every_candidate_for_n_wedge_keeps_to_the_limits(problem, seed):
    closed = closed_at_random(problem, seed)
    for algorithm in (SPIBB(n_wedge=1), RMin(n_wedge=1)):
        limits = Limits(least_visits=2, allowed=~closed)
        auto = AutoNWedge(algorithm=algorithm, certifier=Robust(), limits=limits)
        beside = replace(auto, beside=(Provable(rounds=1),), one_action=True)
        for each in beside.tables(problem, beside.algorithms(5)):
            assert_within(problem, limits.closed(problem.counts), each.policy)


def q_of(problem, policy):
    return q_values(problem.estimate(), evaluate_with_bound(problem.estimate(), policy).value)


def test_the_rest_keeps_the_proportions_of_the_algorithm():
    pairs = Pairs.full(2, 3)
    behavior = Policy(pairs, np.array([0.5, 0.3, 0.2, 0.5, 0.25, 0.25]))
    policy = Policy(pairs, np.array([0.9, 0.06, 0.04, 1.0, 0.0, 0.0]))
    kept = np.array([True, False, False, True, False, False])
    found = kept_where(kept, policy, behavior).probability
    # State 0: half stays, and the rest is shared 6 to 4. State 1: the policy has nothing elsewhere.
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2, 0.5, 0.25, 0.25], atol=1e-12)


def test_a_floor_is_a_whole_number():
    with pytest.raises(InvalidParameter, match=r"least_visits is 0\.5, expected a whole number"):
        Limits(least_visits=0.5)


def test_limits_are_equal_by_value():
    allowed = np.array([True, False])
    assert Limits() == NO_LIMITS != Limits(allowed=allowed) == Limits(allowed=allowed.copy())
    assert Limits(allowed=allowed) != Limits(allowed=~allowed)
    assert limited(BasicRL(), NO_LIMITS) == BasicRL()
