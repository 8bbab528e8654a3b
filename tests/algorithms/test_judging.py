"""What the algorithms share: ties, known rewards, and the lowest value in place of scarce pairs."""

import numpy as np
import pytest

import surestep
from support.problems import uniform_problem
from surestep import Counts, Pairs, Policy
from surestep.algorithms import SPIBB, BasicRL, RaMDP, SoftSPIBB
from surestep.algorithms.contract import improvement_of, tie_of
from surestep.errors import InvalidParameter, ShapeMismatch
from surestep.model.counts import LoggedRewards


def counts_of(values, per, known):
    """Two states and one action; the second transition of state 0 was never seen."""
    return Counts(
        Pairs.full(2, 1),
        [0, 2, 3],
        [0, 1, 0],
        [4, 0, 3],
        LoggedRewards(np.array(values), per, known),
        [1, 1],
        [False, False],
    )


def problem_of(counts):
    return uniform_problem(counts, 0.5, (-7.0, 9.0))


@pytest.mark.parametrize(
    "algorithm", [SPIBB(0), SoftSPIBB(epsilon=1.0, step="approx"), RaMDP(kappa=0.1), BasicRL()]
)
def test_what_an_algorithm_finds_has_the_values_of_pairs_in_the_estimated_mdp(algorithm):
    counts = Counts.from_dense([[[3, 1], [0, 9]], [[0, 2], [5, 5]]], rewards=[[1.0, 0], [0, 2.0]])
    problem = problem_of(counts)
    plan, tables = algorithm.improve(problem).plan, problem.estimate().dense()
    q = tables.R + 0.5 * tables.P @ plan.value
    np.testing.assert_allclose(counts.pairs.dense(plan.q), q, rtol=1e-12)


def test_a_policy_from_elsewhere_is_an_improvement_as_it_is():
    problem = problem_of(counts_of([1.0, 3.0], "pair", True))
    found = surestep.improvement_of(problem, problem.behavior)
    assert found.policy is problem.behavior
    assert found.plan.value == pytest.approx([2.0, 4.0])  # 1/(1 − ½), and 3 + ½ · 2
    assert (found.plan.iterations, found.n_wedge) == (0, None)
    made = improvement_of(problem, problem.behavior, 5, 2)
    assert (made.plan.iterations, made.n_wedge) == (5, 2)
    with pytest.raises(ShapeMismatch, match=r"the problem .* the policy"):
        surestep.improvement_of(problem, Policy.uniform(Pairs.full(3, 3)))
    for wrong in ([[1.0]], found):
        with pytest.raises(InvalidParameter, match=r"policy is of type \w+, expected Policy"):
            surestep.improvement_of(problem, wrong)


def test_ties_are_a_share_of_the_largest_value_and_twice_as_much_is_none():
    q = np.array([0.0, 0.0, -8.0])
    tie = tie_of(q)
    assert tie_of(q / 2) == tie / 2 > 0
    counts = Counts.from_dense([[[5], [5], [5]]], rewards=[[0.0, 0.0, 0.0]])
    step = SoftSPIBB(epsilon=1e3).step_in(problem_of(counts))
    q[1] = 2 * tie
    assert step(q).tolist() == [0.0, 1.0, 0.0]
    q[1] = tie / 8  # so near, the lowest action that π_b takes keeps what it has
    assert step(q)[0] > 0
