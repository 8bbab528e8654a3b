"""The policy pair by pair: advantages, trust and changes, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.algorithms import SPIBB, BasicRL
from surestep.io.labels.vocabulary import Vocabulary
from surestep.results.table import PolicyTable

WORDS = Vocabulary(("ward",), ("drug",), (("a",), ("b",), ("end",)), (("x",), ("y",)))


def improved(algorithm):
    """State a is left for b (x) or for the end (y); b only for the end; γ is ½."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0, 1], times[0, 1, 2], times[1, 0, 2], times[1, 1, 2] = 10, 30, 20, 5
    rewards = [[1.0, 2.0], [4.0, 8.0], [0.0, 0.0]]
    counts = Counts.from_dense(times, rewards=rewards, terminal=[False, False, True])
    behavior = Policy.from_dense(counts, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    problem = Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0.0, 9.0))
    quiet = np.array([False, False, True])
    found = algorithm.improve(problem)
    model = problem.estimate()
    return PolicyTable.of(WORDS, problem, model, found, quiet, judging=None, delta=0.1)


def test_q_and_advantage_are_those_of_the_new_policy():
    table = improved(BasicRL())
    # b is worth 8, so x is worth 1 + ½ · 8 in a, and y 2; π_b gets ¼ · 5 + ¾ · 2 there.
    assert table.q.tolist() == [5.0, 2.0, 4.0, 8.0, 0.0, 0.0]
    assert table.advantage.tolist() == [2.25, -0.75, -2.0, 2.0, 0.0, 0.0]
    assert table.probability[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert table.behavior[:4].tolist() == [0.25, 0.75, 0.5, 0.5]
    assert table.trusted is None


def test_pairs_with_more_visits_than_n_wedge_are_trusted():
    assert improved(SPIBB(n_wedge=10)).trusted[:4].tolist() == [False, True, True, False]
    assert improved(SPIBB(n_wedge=9)).trusted[:4].tolist() == [True, True, True, False]


def test_states_change_where_probability_moves_and_something_is_decided():
    table = improved(BasicRL())
    assert table.changed.tolist() == [True, True, False]
    assert table.decided.tolist() == [True] * 4 + [False] * 2
    assert table.num_deciding == 2
    moved = table.behavior.copy()
    assert replace(table, probability=moved).changed.tolist() == [False] * 3
    moved[:2] += [1e-13, -1e-13]  # no more than rounding
    moved[2:4] += [1e-11, -1e-11]
    assert replace(table, probability=moved).changed.tolist() == [False, True, False]
    nothing, little = np.zeros(6), np.array([1e-12, 0.0, 2e-12, 0.0, 1.0, 0.0])
    table = replace(table, behavior=nothing, probability=little)
    assert table.changed.tolist() == [False, True, False]


def test_tables_are_equal_by_value():
    assert improved(BasicRL()) == improved(BasicRL())
    assert improved(BasicRL()) != improved(SPIBB(n_wedge=10))
    assert improved(BasicRL()).policy == Policy(improved(BasicRL()).pairs, [1, 0, 0, 1, 1, 0])
    with pytest.raises(TypeError, match="unhashable"):
        hash(improved(BasicRL()))
