"""The Dirichlet priors: which weight each state has in a row, and each start."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from support.problems import uniform_problem
from surestep import Counts, Policy
from surestep.certificates import Posterior
from surestep.certificates.drawn import DrawnQuestion, posteriors_of
from surestep.certificates.posterior import model_draws
from surestep.certificates.prior import (
    ADVERSE,
    adverse_questions,
    adverse_rows,
    mean_model,
    prior_of,
    prior_statements,
)
from surestep.kernels.posterior import Row, Rows, weigh_row
from surestep.model.successors import Successors

# Four states, the last of which ends episodes; pair 0 may lead to three states, pair 1 to one.
TIMES = np.zeros((4, 1, 4), int)
TIMES[0, 0, [0, 2]], TIMES[1, 0, 3], TIMES[2, 0, 3] = [5, 3], 4, 2


def problem_of(times=TIMES):
    counts = Counts.from_dense(times, rewards=np.zeros((4, 1)), terminal=[False] * 3 + [True])
    return uniform_problem(counts, 0.5, (0.0, 1.0))


def supported(times=TIMES):
    problem = problem_of(times)
    support = Successors(problem.counts.pairs, [0, 3, 4, 6, 6], [0, 1, 2, 3, 0, 3])
    return replace(problem, support=support)


@pytest.mark.parametrize(
    ("name", "alpha", "total", "start"),
    [("weight", 1.5, 6.0, 2.0), ("uniform", 1.0, 4.0, 1.0), ("jeffreys", 0.5, 2.0, 0.5)],
)
def test_a_weight_is_shared_among_the_states_and_a_start_is_no_end(name, alpha, total, start):
    prior = prior_of(problem_of(), name, 6.0)
    assert (prior.alpha, prior.total, prior.start_alpha) == (alpha, total, start)
    (rows,) = prior.rows
    assert rows.given.size == 0  # rows are about all states
    assert rows.weight == total
    assert not rows.pooled.any()
    assert rows.elsewhere.tolist() == [0.25, 0.5, 0.75, 1.0]


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
    problem = uniform_problem(counts, 0.5, (0.0, 1.0))
    prior = prior_of(problem, "pooled", float(weight))
    assert (prior.alpha, prior.total) == (None, float(weight))
    settings = Posterior(prior="pooled", prior_weight=float(weight))
    models = model_draws(problem, settings)
    every = np.ones(6)
    question = DrawnQuestion(models, every, every[np.newaxis])
    rows, shapes = posteriors_of([question]).rows, np.empty((6, 3))
    for pair in range(6):
        target, shape = np.empty(3, np.int32), np.empty(3)
        first, last = counts.offsets[pair : pair + 2]
        state = counts.offsets[[pair // 2 * 2, pair // 2 * 2 + 2]]
        row = Row(pair, 0, first, last, *state, model=0, apart=1, limit=10**6)
        weigh_row.py_func(rows, row, 0, target, shape)
        assert target.tolist() == [0, 1, 2]
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
    once = np.zeros((4, 1, 4), int)  # a state that was visited once, and others never
    once[0, 0, 1] = 1
    for times in (TIMES, once):
        problem = supported(times)
        inside = problem.support
        offsets = np.minimum(np.arange(5), 3) * 4
        everywhere = Successors(inside.pairs, offsets, np.tile(np.arange(4), 3))
        for support in (inside, everywhere):
            (found,) = prior_of(replace(problem, support=support), "pooled", 6.0).rows
            assert found.times.sum() == times.sum()
            for pair in range(3):
                given = slice(*support.offsets[pair : pair + 2])
                base = np.array(exact_base(times, pair, Fraction(6)), float)
                base = base[support.successor[given]]
                assert found.given[given] == pytest.approx(6 * base / base.sum(), rel=1e-12)


def test_the_cautious_prior_is_two_and_one_against_the_policy():
    cautious, even, pooled = (
        prior_of(problem_of(), name, 6.0) for name in ("cautious", "weight", "pooled")
    )
    assert (cautious.alpha, cautious.total, cautious.start_alpha) == (1.5, 6.0, 2.0)
    assert (pooled.alpha, pooled.total, pooled.start_alpha) == (None, 6.0, 2.0)
    for found, alone in zip(cautious.rows, (*even.rows, *pooled.rows), strict=True):
        for law, expected in zip(found, alone, strict=True):
            np.testing.assert_array_equal(law, expected)
    first, second, last = map(str, prior_statements(problem_of(), "cautious", cautious))
    assert "over all 4 states, with weight 1.5 each, or with a weight of 6 that lies" in first
    assert first.endswith("under either prior, and the claim is the smaller one.")
    assert second == "The latter prior was read off the same data, so this is no exact posterior."
    assert last.startswith("Under a third prior, which was read off the data too, a weight of 0.2 ")
    assert last.endswith("the claim is the smallest one of the three.")
    assert len(prior_statements(problem_of(), "weight", even)) == 1
    assert prior_statements(supported(), "pooled", pooled)[-1].values == {"prior": "pooled"}


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
    (rows,) = prior.rows
    assert rows.given.tolist() == weights
    assert rows.times.tolist() == [5, 0, 3, 4, 0, 2]
    assert (prior.alpha, prior.total) == (alpha, total)


def dense_values(times, weight, reward, policies, discount):
    """V of each policy [P, S] in (times + weight) / (n + Σ weight), with dense tables."""
    rows = times + weight
    rows = rows / np.maximum(rows.sum(axis=2, keepdims=True), 1e-300)
    values = []
    for policy in policies:
        chain = np.einsum("sa,sat->st", policy, rows)
        values.append(
            np.linalg.solve(np.eye(len(rows)) - discount * chain, (policy * reward).sum(axis=1))
        )
    return np.array(values)


@st.composite
def worlds(draw):
    """Times [S, 2, S], known rewards [S, 2], and two policies; the last state ends episodes."""
    size = draw(st.integers(2, 5))
    times = draw(arrays(np.int64, (size, 2, size), elements=st.sampled_from([0, 0, 1, 2, 7])))
    times[-1] = 0
    reward = draw(arrays(np.float64, (size, 2), elements=st.integers(-3, 3)))
    reward[-1] = 0.0
    chances = draw(arrays(np.float64, (2, size), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
    return times, reward, np.stack([chances, 1 - chances], axis=-1)


def question_in(times, reward, policies, discount, support=None):
    """π_b and π_I of a world as a question under the cautious prior."""
    size = len(times)
    terminal = np.arange(size) == size - 1
    counts = Counts.from_dense(times, rewards=reward, terminal=terminal)
    if support is not None:
        support = Successors(
            counts.pairs,
            np.minimum(np.arange(2 * size + 1), 2 * size - 2) * len(support),
            np.tile(support, 2 * size - 2),
        )
    problem = uniform_problem(counts, discount, (-99.0, 99.0), support=support)
    problem = replace(problem, behavior=Policy.from_dense(counts, policies[0]))
    settings = Posterior()
    models = model_draws(problem, settings)
    ours = Policy.from_dense(counts, policies[1]).probability
    return DrawnQuestion(models, problem.behavior.probability, ours[np.newaxis])


@given(world=worlds(), discount=st.sampled_from([0.0, 0.5, 0.9, 0.99]), given_ones=st.booleans())
def test_a_little_weight_leads_to_where_the_policy_gains_the_least(world, discount, given_ones):
    times, reward, policies = world
    size = len(times)
    allowed = np.arange(size)
    question = question_in(times, reward, policies, discount, allowed if given_ones else None)
    weight = np.full(times.shape, 5 / size)
    weight[-1] = 0.0  # an end leads nowhere
    theirs, ours = dense_values(times, weight, reward, policies, discount)
    gain = ours - theirs
    if (policies[0] == policies[1]).all():
        assert adverse_questions(question) == []
        return
    ((asked, places),) = adverse_questions(question)
    assert places == [0]
    (rows,), scale = asked.models.rows, max(np.abs(gain).max(), 1e-12)
    if given_ones:
        heavy = rows.successor[rows.given > 0]
        assert np.allclose(rows.given[rows.given > 0], ADVERSE)
        assert heavy.size == 2 * size - 2  # one of each row
    else:
        assert rows.weight == ADVERSE
        assert not rows.pooled.any()
        heavy = np.flatnonzero(np.diff(rows.elsewhere, prepend=0.0))
    assert np.unique(heavy).size == 1
    assert gain[heavy[0]] <= gain.min() + 1e-8 * scale


def test_among_given_successors_each_row_has_its_own_worst():
    rows = Rows(
        np.array([0, 2, 2, 5]), np.array([0, 1, 0, 1, 2], np.int32), np.zeros(5, np.int64),
        np.zeros(5), np.ones(5), np.zeros(1), np.zeros(0), np.zeros(0),
    )  # fmt: skip
    each = adverse_rows(rows, np.array([3.0, 2.0, 1.0])).given
    assert each.tolist() == [0, ADVERSE, 0, 0, ADVERSE]
    some = adverse_rows(rows, np.array([np.inf, np.inf, 1.0])).given  # nothing else ends
    assert some.tolist() == [ADVERSE / 2, ADVERSE / 2, 0, 0, ADVERSE]


@given(world=worlds())
def test_without_a_discount_the_weight_leads_to_where_both_may_end(world):
    times, reward, policies = world
    size = len(times)
    ((asked, _),) = adverse_questions(question_in(times, reward, policies, 1.0)) or [(None, None)]
    if asked is None:
        assert (policies[0] == policies[1]).all()
        return
    there = int(np.argmax(asked.models.rows[0].elsewhere))
    for policy in policies:
        ways = np.einsum("sa,sat->st", policy, times) + np.eye(size)
        assert np.linalg.matrix_power(ways, size)[there, -1] > 0


def test_what_was_never_seen_earns_what_others_do_on_average_in_the_mean_model():
    # One state, two actions; the first was seen twice, and earned 3 on the way to the end.
    times = np.zeros((2, 2, 2), int)
    times[0, 0, 1] = 2
    counts = Counts.from_dense(times, reward_sums=6.0 * (times > 0), terminal=[False, True])
    problem = uniform_problem(counts, 0.5, (-9.0, 9.0))
    settings = Posterior()
    mdp = mean_model(model_draws(problem, settings))
    assert mdp.expected_reward.tolist() == pytest.approx([3, 3, 0, 0, 0])
    assert mdp.dense().P[0, 0].tolist() == pytest.approx([0, 2 / 7, 5 / 7])
    assert mdp.dense().P[2, 0].tolist() == [0.5, 0.5, 0]
