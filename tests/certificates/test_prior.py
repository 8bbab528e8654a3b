"""The Dirichlet priors: which weight each state has in a row, and each start."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surestep import Counts, Policy, Problem
from surestep.certificates.prior import (
    WEIGHTS,
    likeliest_weight,
    prior_of,
    prior_statements,
    priors_of,
)
from surestep.kernels.posterior import Base, Row, weigh_all
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
    assert prior.rows.given.size == 0  # rows are about all states
    assert prior.rows.weight == total
    assert not prior.rows.pooled.any()
    assert prior.rows.elsewhere.tolist() == [0.25, 0.5, 0.75, 1.0]


def exact_base(table, state, weight):
    """m(·|s) by rationals: the steps of the state, those of all states, and all states alike."""
    size = len(table)
    every = table.sum(axis=(0, 1))
    own = table[state].sum(axis=0)
    shares = [(Fraction(int(n)) + weight / size) / (int(every.sum()) + weight) for n in every]
    return [
        (Fraction(int(n)) + weight * share) / (int(own.sum()) + weight)
        for n, share in zip(own, shares, strict=True)
    ]


@given(
    table=arrays(np.int64, (3, 2, 3), elements=st.sampled_from([0, 0, 1, 2, 7])),
    weight=st.fractions(Fraction(1, 100), 100),
)
def test_a_row_is_believed_to_do_what_was_seen_and_what_its_state_does(table, weight):
    # A row is drawn around (times + c · m) / (n + c).
    counts = Counts.from_dense(table, rewards=np.zeros((3, 2)))
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.5, value_bounds=(0.0, 1.0)
    )
    prior = prior_of(problem, "pooled", float(weight))
    assert (prior.alpha, prior.total) == (None, float(weight))
    shapes = np.empty((6, 3))
    for pair in range(6):
        target, shape = np.empty(3, np.int32), np.empty(3)
        first, last = counts.offsets[pair : pair + 2]
        state = counts.offsets[[pair // 2 * 2, pair // 2 * 2 + 2]]
        row = Row(pair, first, last, *state, model=0, apart=1, limit=10**6)
        base = Base(prior.rows.pooled[pair], prior.rows.elsewhere)
        end = weigh_all.py_func(prior.rows, base, row, 0, target, shape)
        assert (end, target.tolist()) == (3, [0, 1, 2])
        shapes[pair] = shape
    for pair, shape in enumerate(shapes):
        times = table[pair // 2, pair % 2]
        base = exact_base(table, pair // 2, weight)
        mean = [
            (int(n) + weight * m) / (int(times.sum()) + weight)
            for n, m in zip(times, base, strict=True)
        ]
        assert shape.sum() == pytest.approx(times.sum() + float(weight), rel=1e-12)
        assert shape / shape.sum() == pytest.approx(np.array(mean, float), rel=1e-9, abs=1e-15)


def test_a_pooled_weight_within_given_successors_is_that_of_all_states_without_the_others():
    problem = supported()
    inside = problem.support
    everywhere = Successors(inside.pairs, np.minimum(np.arange(5), 3) * 4, np.tile(np.arange(4), 3))
    for support in (inside, everywhere):
        found = prior_of(replace(problem, support=support), "pooled", 6.0).rows
        assert found.times.sum() == 14
        for pair in range(3):
            given = slice(*support.offsets[pair : pair + 2])
            base = np.array(exact_base(TIMES, pair, Fraction(6)), float)[support.successor[given]]
            assert found.given[given] == pytest.approx(6 * base / base.sum(), rel=1e-12)


def test_a_state_that_was_visited_once_or_never_has_its_share_of_a_pooled_weight():
    times = np.zeros((3, 1, 3), int)
    times[0, 0, 1] = 1
    counts = Counts.from_dense(times, rewards=np.zeros((3, 1)))
    support = Successors(counts.pairs, [0, 2, 4, 6], [0, 1, 1, 2, 0, 2])
    problem = replace(problem_of(), counts=counts, behavior=Policy.uniform(counts), support=support)
    found = prior_of(problem, "pooled", 6.0).rows.given
    for pair in range(3):
        given = slice(2 * pair, 2 * pair + 2)
        base = np.array(exact_base(times, pair, Fraction(6)), float)[support.successor[given]]
        assert found[given] == pytest.approx(6 * base / base.sum(), rel=1e-12)


def test_the_cautious_prior_is_two():
    even, pooled = priors_of(problem_of(), "cautious", 6.0)
    assert (even.name, even.alpha, even.start_alpha) == ("weight", 1.5, 2.0)
    assert (pooled.name, pooled.total, pooled.start_alpha) == ("pooled", 6.0, 2.0)
    first, last = map(str, prior_statements(problem_of(), (even, pooled)))
    assert "over all 4 states, with weight 1.5 each, or with a weight of 6 that lies" in first
    assert first.endswith("under either prior, and the claim is the smaller one.")
    assert last == "The latter prior was read off the same data, so this is no exact posterior."
    assert len(prior_statements(problem_of(), (even,))) == 1
    assert prior_statements(supported(), (pooled,))[-1].values == {"prior": "pooled"}


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
    assert prior.rows.given.tolist() == weights
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
