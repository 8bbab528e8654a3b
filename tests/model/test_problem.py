"""Problem: what it demands of its parts, and what the rules for unseen pairs mean."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.frozen import arrays_of
from support.problems import problem_of
from support.strategies import counts, policies
from surestep import Counts, Improvement, MDPBatch, Plan, Policy, Problem, estimate_mdp, evaluate
from surestep.algorithms.contract import valued_at_lowest
from surestep.algorithms.pessimistic import estimate_with_known_rewards
from surestep.errors import InvalidPolicy, NeverEnds
from surestep.rehearsal.completion import completed
from surestep.transforms import two_successor

BOUNDS = st.tuples(st.floats(-100, 100), st.floats(-100, 100)).map(sorted).map(tuple)


@given(log=counts(), bounds=BOUNDS)
def test_by_default_the_estimate_is_the_mle_mdp(log, bounds):
    problem = problem_of(log, value_bounds=bounds)
    assert problem.unseen == "terminal"
    assert problem.estimate() == estimate_mdp(log, 0.9)


@given(data=st.data(), bounds=BOUNDS)
def test_a_pessimist_gives_unseen_pairs_the_lower_bound_except_at_known_ends(data, bounds):
    log = data.draw(counts())
    visited = np.zeros(log.pairs.num_states, bool)
    visited[log.pairs.state[log.visits > 0]] = True
    wish = np.array(
        data.draw(st.lists(st.booleans(), min_size=visited.size, max_size=visited.size))
    )
    terminal = wish & ~visited
    log = Counts(
        log.pairs, log.offsets, log.successor, log.times, log.rewards, log.starts, terminal
    )
    plain = problem_of(log, value_bounds=bounds).estimate()
    found = problem_of(log, value_bounds=bounds, unseen="pessimistic").estimate()
    unseen = (log.visits == 0) & ~terminal[log.pairs.state]
    assert (found.expected_reward[unseen] == bounds[0]).all()
    assert (np.diff(found.offsets)[unseen] == 0).all()
    assert np.array_equal(found.expected_reward[~unseen], plain.expected_reward[~unseen])
    for name in ("pairs", "offsets", "successor", "probability", "reward", "discount", "initial"):
        assert np.array_equal(getattr(found, name), getattr(plain, name)), name


def test_the_rules_for_unseen_pairs_give_the_values_they_promise():
    # State 0 goes to state 1 (never left) or to state 2 (where episodes are known to end).
    table = np.zeros((3, 1, 3), int)
    table[0, 0] = [0, 1, 1]
    log = Counts.from_dense(table, reward_sums=[[2.0], [0.0], [0.0]], terminal=[False, False, True])
    hopeful, wary = problem_of(log), problem_of(log, unseen="pessimistic")
    assert evaluate(hopeful.estimate(), hopeful.behavior).tolist() == [1.0, 0.0, 0.0]
    assert evaluate(wary.estimate(), wary.behavior) == pytest.approx([1 - 0.9 * 7 / 2, -7.0, 0.0])


@given(bounds=BOUNDS)
def test_the_value_bound_is_the_larger_magnitude(bounds):
    problem = problem_of(Counts.from_dense([[[1]]], rewards=[[0.0]]), value_bounds=bounds)
    assert problem.value_bound == max(-bounds[0], bounds[1])
    assert problem.value_bounds == bounds


def test_value_bounds_may_be_whole_numbers_or_a_list():
    problem = problem_of(Counts.from_dense([[[1]]], rewards=[[0.0]]), value_bounds=[-3, np.int8(2)])
    assert problem.value_bounds == (-3.0, 2.0)
    assert all(type(bound) is float for bound in problem.value_bounds)


@given(data=st.data())
def test_a_behavior_may_be_a_table_or_a_flat_array(data):
    log = data.draw(counts())
    policy = data.draw(policies(log.pairs))
    for table in (policy.dense(), policy.dense().tolist(), policy.probability):
        problem = Problem(counts=log, behavior=table, discount=0.9, value_bounds=(-1.0, 1.0))
        assert problem.behavior == policy
    with pytest.raises(InvalidPolicy, match="sum to"):
        replace(problem, behavior=2 * policy.dense())


def test_at_discount_one_policies_that_never_end_have_no_value():
    endless = problem_of(Counts.from_dense([[[1]]], rewards=[[0.0]]), discount=1).estimate()
    with pytest.raises(NeverEnds, match="state 0 never ends under the policy"):
        evaluate(endless, Policy.uniform(endless))
    for unseen in ("terminal", "pessimistic"):
        changed = problem_of(Counts.from_dense([[[1]]], rewards=[[0.0]]), discount=1, unseen=unseen)
        estimates = (
            changed.estimate(),
            valued_at_lowest(changed, np.array([False])),
            estimate_with_known_rewards(changed),
            completed(changed, "self-loop"),
            two_successor(changed.estimate()).mdp,
            two_successor(changed.estimate()).original,
            MDPBatch.from_models([changed.estimate()]).model(0),
        )
        assert [estimate.endless for estimate in estimates] == [None] * len(estimates)
    straight = Counts.from_dense([[[0, 1]], [[0, 0]]], rewards=[[2.0], [3.0]])
    estimated = problem_of(straight, discount=1).estimate()
    assert evaluate(estimated, Policy.uniform(estimated)).tolist() == [5.0, 3.0]


@pytest.mark.parametrize("discount", [np.array(0.5), np.float32(0.5), np.array(1), np.int8(1)])
def test_a_number_of_numpy_is_a_discount(discount):
    log = Counts.from_dense([[[1]]], rewards=[[0.0]])
    problem = problem_of(log, discount=discount)
    assert problem == problem_of(log, discount=float(discount))
    assert type(problem.discount) is float
    assert problem.estimate() == estimate_mdp(log, discount)


def test_plans_are_frozen_values_that_an_improvement_carries():
    log = Counts.from_dense([[[1]]], rewards=[[1.0]])
    value = np.array([10.0])
    plan = Plan(Policy.uniform(log), value, 1, 0.0, 0.0, q=value)
    improvement = Improvement(policy=plan.policy, plan=plan)
    value[:] = 3.0
    assert improvement.plan.value.tolist() == improvement.plan.q.tolist() == [10.0]
    assert not any(array.flags.writeable for _, array in arrays_of(improvement))
