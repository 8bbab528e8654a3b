"""Room for drawn models, their rewards, and what their values may be off."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support.posterior_examples import chunk_of, gains_in
from support.problems import uniform_problem
from surestep import Counts, Pairs, Policy
from surestep.certificates import Posterior, drawn
from surestep.certificates.posterior import model_draws
from surestep.errors import CertificateRefused, NotConverged
from surestep.kernels.drawn import VALUES_BESIDE
from surestep.kernels.posterior import PIECES, Blocks
from surestep.model import LoggedRewards

# Five states of which the last ends episodes; state 0 leads to two of them, state 1 to one.
TABLE = np.zeros((5, 2, 5), int)
TABLE[0, 0, [1, 2]] = 4
TABLE[1, 0, 0] = 1


def models_of(**terms):
    counts = Counts.from_dense(
        TABLE, rewards=np.arange(10.0).reshape(5, 2) / 9, terminal=[False] * 4 + [True]
    )
    problem = uniform_problem(counts, 0.75, (-1.0, 8.0))
    settings = Posterior(prior="weight")
    return replace(model_draws(problem, settings), **terms)


@pytest.mark.parametrize("memory", [10_000, 123_457])
def test_drawn_models_fill_the_memory_that_they_may_take(memory):
    models = models_of()
    chunk = drawn.room_for(models, 30, 10**9, memory)
    each = sum(array[0].nbytes for array in chunk)
    assert memory - each < sum(array.nbytes for array in chunk) <= memory + 8 * len(chunk.ends)
    assert len(drawn.room_for(models, 30, 3, memory).ends) == 3  # and no more than are asked for


@pytest.mark.parametrize("priors", [1, 2])
def test_what_evaluating_large_models_takes_is_left_free(priors, monkeypatch):
    models = models_of()
    models = replace(models, rows=models.rows * priors)
    monkeypatch.setattr(drawn, "SMALL", 4)
    chunk = drawn.room_for(models, 30, 1, 10**6)
    each = sum(array[0].nbytes for array in chunk) - 8  # one more end
    one_draw = priors * (each + 8 * VALUES_BESIDE * 5)
    for memory in range(one_draw, 40 * one_draw, 997):
        assert len(drawn.room_for(models, 30, 10**9, memory).ends) == priors * (memory // one_draw)
    monkeypatch.setattr(drawn, "SMALL", 5)  # up to there an elimination takes nothing
    size = len(drawn.room_for(models, 30, 10**9, 100_000).ends)
    assert size == priors * (100_000 // (priors * each))


def test_what_does_not_fit_is_refused(monkeypatch):
    models = models_of()
    monkeypatch.setattr(drawn, "SMALL", 4)
    each = sum(array[0].nbytes for array in drawn.room_for(models, 30, 1, 10**6)) - 8
    least = each + 8 * VALUES_BESIDE * 5
    assert len(drawn.room_for(models, 30, 10**9, least).ends) == 1
    assert len(drawn.room_for(models, 30, 10**9, 3 * least).ends) == 3
    with pytest.raises(CertificateRefused, match="one drawn model takes 0 MiB, expected at most 0"):
        drawn.room_for(models, 30, 10**9, least - 1)
    with pytest.raises(CertificateRefused, match="takes 6 MiB, expected at most 1;"):
        drawn.room_for(models, 2**19, 10**9, 2**20)


@pytest.mark.parametrize("weight", [0.3, 5.0])  # a broken stick, and every state by itself
@pytest.mark.parametrize("rewards", ["pair", "transition"])
@pytest.mark.parametrize("starts", ["known", "posterior"])
def test_models_drawn_under_two_priors_are_those_drawn_under_each(weight, rewards, starts):
    earned = np.arange(10.0).reshape(5, 2)
    counts = Counts.from_dense(TABLE, rewards=earned, terminal=[False] * 4 + [True])
    if rewards == "transition":
        sums = LoggedRewards(1.0 * counts.successor * counts.times, "transition", False)
        counts = replace(counts, rewards=sums)
    problem = uniform_problem(counts, 0.75, (-9.0, 36.0))
    behavior = problem.behavior
    settings = Posterior(prior_weight=weight, starts=starts)
    models = model_draws(problem, settings)
    assert (models.rows[0].weight * PIECES >= problem.num_states) == (weight == 5.0)
    used = np.isin(np.arange(10), [0, 1, 2, 4, 5, 6, 7])  # those of the end have no rows
    chunk = chunk_of(models, used, 7)
    assert (chunk.ends[:, -1] > 0).all()
    for p, alone in enumerate(models.apart()):
        single = chunk_of(alone, used, 7)
        part = chunk._make(array[7 * p : 7 * p + 7] for array in chunk)
        for name in ("ends", "reward", "initial"):
            np.testing.assert_array_equal(getattr(part, name), getattr(single, name))
        for b, end in enumerate(single.ends[:, -1]):
            np.testing.assert_array_equal(part.target[b, :end], single.target[b, :end])
            np.testing.assert_array_equal(part.share[b, :end], single.share[b, :end])
    other = Policy.deterministic(counts.pairs, [1, 0, 1, 0, 0]).probability[np.newaxis]
    questions = [
        drawn.DrawnQuestion(each, behavior.probability, other) for each in (models, *models.apart())
    ]
    apart = gains_in(questions[1:], 9, 2**20)
    room = drawn.room_for(models, drawn.expected_cells(models, np.ones(10, bool)), 1, 2**20)
    both = sum(array.nbytes for array in room) - 8 * len(room.ends)
    for memory in (2**20, both, both // 2):  # all draws at once, one after the other, not even one
        (together,) = gains_in(questions[:1], 9, memory)
        for gains, (single,) in zip(together, apart, strict=True):
            np.testing.assert_array_equal(gains.lower, single.lower)
            assert gains.error == single.error
    assert (apart[0][0].lower != apart[1][0].lower).any()


@pytest.mark.parametrize("weight", [0.3, 5.0])  # a broken stick, and every state by itself
@pytest.mark.parametrize("rewards", ["pair", "transition"])
@pytest.mark.parametrize("blocks", [1, 3])  # of pairs, as on a GPU
def test_signals_of_a_log_share_their_rows_and_starts_and_change_no_bit(
    weight, rewards, blocks, monkeypatch
):
    counts = Counts.from_dense(TABLE, rewards=np.zeros((5, 2)), terminal=[False] * 4 + [True])
    settings, questions = Posterior(prior_weight=weight, starts="posterior"), []
    for signal, bounds in enumerate([(-9.0, 36.0), (0.0, 20.0), (0.0, 20.0)]):
        earned = (1.0 + signal) * (counts.observed if rewards == "pair" else counts.times)
        sums = earned * np.arange(earned.size) if signal < 2 else 0 * earned
        of_signal = replace(counts, rewards=LoggedRewards(1.0 * sums, rewards, False))
        if signal == 2:  # of other steps
            of_signal = replace(of_signal, times=counts.times + 1)
        problem = uniform_problem(of_signal, 0.75, bounds)
        models = model_draws(problem, settings)
        other = Policy.deterministic(counts.pairs, [1, 0, 1, 0, 0]).probability[np.newaxis]
        questions.append(drawn.DrawnQuestion(models, problem.behavior.probability, other))
    assert drawn.sharing(questions) == [[0, 1], [2]]
    in_blocks = Blocks(np.array([0, 10]), np.array([0, 60]))
    if blocks == 3:
        in_blocks = Blocks(np.array([0, 3, 4, 10]), np.array([0, 30, 42, 120]))
    monkeypatch.setattr(drawn, "blocks_of", lambda *_: in_blocks)
    for memory in (2**20, 2**15):  # all draws at once, or some
        together = gains_in(questions, 9, memory)
        for question, gains in zip(questions, together, strict=True):
            ((alone, *others),) = gains_in([question], 9, 2**20)
            for found, expected in zip(gains, [alone, *others], strict=True):
                np.testing.assert_array_equal(found.lower, expected.lower)
                assert found.error == expected.error
    assert (together[0][0].lower != together[1][0].lower).any()


def test_what_values_may_be_off_grows_with_their_terms():
    models = models_of()
    one = np.ones((1, 2))
    steps = 4 * one
    assert drawn.proven_error(models, one, 0 * one, steps) == pytest.approx(steps, rel=1e-9)
    # Two pairs a state and the start make 3 terms for each of 5 states, and 8 to spare.
    rounding = (3 * 5 + 8) * 2.0**-52 * 4
    found = drawn.proven_error(models, 0 * one, one, steps)
    assert found == pytest.approx(rounding * one, rel=1e-9)
    for large in (math.inf, math.nan):
        with pytest.raises(NotConverged, match="too large for doubles"):
            drawn.proven_error(models, np.array([[0.0, large]]), one, steps)
    # Where nothing bounds the steps, an error of a gain is as large as two values differ, twice.
    low, high = models.value_bounds
    endless = drawn.proven_error(models, one, one, math.inf * one)
    for judged in (models, replace(models, alone=True)):
        gains = drawn.DrawnQuestion(judged, np.ones(10), np.zeros((1, 10))).gains(0 * one, endless)
        assert gains.error == 2 * (high - low)


@pytest.mark.parametrize(
    ("found", "residual", "scale", "steps"),
    [
        (0.0, 0.2, 4.0, math.inf),
        (2.0, 1.0, 4.0, math.inf),
        (2.0, 0.0, 2.0**40, 2.0**40 / (1 - (2 * 2 + 8) * 2.0**-12)),  # terms of rounding
    ],
)
def test_steps_are_bounded_by_what_is_proven(found, residual, scale, steps, monkeypatch):
    def solve(size, *given):
        *_, performance = given
        performance.mean[:], performance.residual[:], performance.scale[:] = found, residual, scale

    monkeypatch.setattr(drawn, "solve_drawn", SimpleNamespace(all=solve))
    counts = SimpleNamespace(pairs=Pairs.full(2, 1))
    models = SimpleNamespace(counts=counts, discount=1.0, horizon=None)
    chunk = drawn.Chunk(*(np.zeros((1, 1)) for _ in range(5)))
    bound = drawn.step_bounds(models, chunk, [np.ones((1, 2))])
    assert bound == pytest.approx(np.array([[steps]]), rel=1e-12)
