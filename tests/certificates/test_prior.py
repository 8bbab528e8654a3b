"""The Dirichlet priors: which weight each state has in a row, and each start."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.certificates.prior import WEIGHTS, likeliest_weight, prior_of
from surestep.model.successors import Successors

# Four states, the last of which ends episodes; pair 0 may lead to three states, pair 1 to one.
TIMES = np.zeros((4, 1, 4), int)
TIMES[0, 0, [0, 2]], TIMES[1, 0, 3], TIMES[2, 0, 3] = [5, 3], 4, 2


def problem_of(support=None):
    counts = Counts.from_dense(TIMES, rewards=np.zeros((4, 1)), terminal=[False] * 3 + [True])
    return Problem(
        counts=counts,
        behavior=Policy.uniform(counts),
        discount=0.5,
        value_bounds=(0.0, 1.0),
        support=support,
    )


def supported():
    problem = problem_of()
    support = Successors(problem.counts.pairs, [0, 3, 4, 6, 6], [0, 1, 2, 3, 0, 3])
    return replace(problem, support=support)


@pytest.mark.parametrize(
    ("name", "alpha", "total", "start"),
    [("weight", 1.5, 6.0, 2.0), ("uniform", 1.0, 4.0, 1.0), ("jeffreys", 0.5, 2.0, 0.5)],
)
def test_a_weight_is_shared_among_the_states_and_a_start_is_no_end(name, alpha, total, start):
    prior = prior_of(problem_of(), name, 6.0)
    assert (prior.alpha, prior.total, prior.start_alpha) == (alpha, total, start)
    assert prior.rows.weight.size == 0  # rows are about all states


@pytest.mark.parametrize(
    ("name", "weights", "alpha", "total"),
    [
        ("weight", [2.0, 2.0, 2.0, 6.0, 3.0, 3.0], None, 6.0),
        ("uniform", [1.0] * 6, 1.0, None),
        ("jeffreys", [0.5] * 6, 0.5, None),
        ("own", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None, None),
    ],
)
def test_given_successors_share_the_weight_of_their_row(name, weights, alpha, total):
    problem = supported()
    own = replace(problem.support, weight=np.arange(1.0, 7.0))
    prior = prior_of(replace(problem, support=own), name, 6.0)
    assert prior.rows.weight.tolist() == weights
    assert prior.rows.times.tolist() == [5, 0, 3, 4, 0, 2]
    assert (prior.alpha, prior.total) == (alpha, total)


def test_empirical_bayes_chooses_among_quarters_of_powers_of_two():
    assert WEIGHTS[[0, 40, 44, -1]].tolist() == [2.0**-10, 1.0, 2.0, 2.0**20]
    assert (WEIGHTS[1:] / WEIGHTS[:-1]).tolist() == pytest.approx([2**0.25] * 120)
    problem = problem_of()
    best = likeliest_weight(problem.counts, problem.support_sizes())
    assert prior_of(problem, "empirical-bayes", 6.0).total == pytest.approx(best)


def test_what_was_never_seen_says_nothing_about_weights():
    """A stored transition that cannot come has no share of a weight (warnings are errors)."""
    problem = supported()
    cube = np.zeros((4, 1, 4))
    stored = Counts.from_dense(TIMES, rewards=cube, terminal=problem.counts.terminal)
    assert stored.times.size == 16
    sizes = problem.support_sizes()
    assert sizes.tolist() == [3, 1, 2, 0]
    assert likeliest_weight(stored, sizes) == likeliest_weight(problem.counts, sizes)
