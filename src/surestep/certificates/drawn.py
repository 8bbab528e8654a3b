"""Policies compared in models drawn from a posterior: Δ_k, each with its errors taken off.

Memory is bounded by drawing in chunks. A draw depends on the seed and its own number alone.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from surestep._arrays import BoolArray, FloatArray, offsets_of, run_lengths
from surestep.certificates.stepping import VALUES_STEPPING, step_until_near
from surestep.errors import CertificateRefused, NotConverged
from surestep.kernels._device import PROCESSOR, Machine, brought_home, machine_for_tasks
from surestep.kernels._types import RoomSize, is_there
from surestep.kernels.drawn import (
    VALUES_BESIDE,
    Aim,
    Chunk,
    Performance,
    eliminate_drawn,
    iterate_drawn,
    room_to_eliminate,
)
from surestep.kernels.posterior import (
    REMAINDER,
    Bases,
    Blocks,
    DirichletPosterior,
    PriorRows,
    RewardDraws,
    draw_models,
    room_to_draw,
)
from surestep.model.counts import Counts
from surestep.parallel import available_cores
from surestep.planning.horizons import longest_horizon
from surestep.planning.proof import SMALLEST_NORMAL

SMALL = 128  # states up to which a dense elimination is the fastest
ACCURACY = 1e-6  # of the largest reward and value: the error that iterations aim for
BUSY, BLOCK_PAIRS = 1 << 16, 64  # tasks that keep a GPU busy, and the least pairs of one
ENOUGH, FIRST_STEPS = 0.01, 1.0  # steps are counted up to a residual of 0.01, from no guess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelDraws:
    """A posterior over models, given by its Dirichlet rows, rewards and starts."""

    counts: Counts
    rows: PriorRows
    others: tuple[PriorRows, ...] = ()  # of further priors, under which the same is drawn again
    discount: float
    value_bounds: tuple[float, float]
    start_weight: FloatArray  # [S] of the posterior of starts; empty where they are known
    rewards: RewardDraws
    seed: int

    @property
    def priors(self) -> int:
        """Returns the number of priors."""
        return 1 + len(self.others)

    def apart(self) -> list[ModelDraws]:
        """Returns the posterior under each prior by itself."""
        return [replace(self, rows=rows, others=()) for rows in (self.rows, *self.others)]


class Gains(NamedTuple):
    """Δ of each policy in each draw, at least; and what was taken off for evaluating it."""

    lower: FloatArray  # [P, draws]
    error: float  # the largest error of a Δ


def drawn_gains(
    models: ModelDraws, behavior: FloatArray, policies: FloatArray, draws: int, memory: int
) -> list[Gains]:
    """ρ(π, M_k) − ρ(π_b, M_k) for policies [P, K] and k = 0 … draws − 1, less all errors.

    Returns them under each prior. Models are drawn under all of them at once, where they fit.
    """
    everyone = np.concatenate([behavior[np.newaxis], policies])
    counts = models.counts
    used = (everyone > 0).any(axis=0) & ~counts.terminal[counts.pairs.state]
    machine = machine_for_tasks(draws)
    blocks, done, room = blocks_of(models, used, machine, draws), 0, None
    compared = [Comparison(each, everyone) for each in models.apart()]
    while done < draws:
        if room is None:
            cells = int(blocks.cells[-1])
            if machine.gpu is not None:
                memory = int(machine.gpu.free / 2)
            if models.others and sum(bytes_of(models, cells)) > memory:
                return [
                    gains
                    for alone in models.apart()
                    for gains in drawn_gains(alone, behavior, policies, draws, memory)
                ]
            room = room_for(models, cells, draws, memory, machine, len(everyone))
        chunk = room.first(models.priors * (draws - done))
        draw_chunk(models, used, done, chunk, blocks)
        if (chunk.ends < 0).any():
            blocks, room = blocks._replace(cells=2 * blocks.cells), None
            continue
        size = len(chunk.ends) // models.priors
        for p, each in enumerate(compared):
            each.compare(chunk.part(p * size, size))
        done += size
    return [each.gains() for each in compared]


class Comparison:
    """Policies [P, K], π_b first, compared in one chunk of models after the other."""

    def __init__(self, models: ModelDraws, everyone: FloatArray) -> None:
        self.models, self.everyone = models, everyone
        self.start = np.zeros((len(everyone), models.counts.pairs.num_states))
        self.steps: float | None = None
        self.lower: list[FloatArray] = []
        self.errors: list[FloatArray] = []

    def compare(self, chunk: Chunk) -> None:
        """Compares the policies in the models of a chunk."""
        models, everyone, start = self.models, self.everyone, self.start
        low, high = models.value_bounds
        if self.steps is None:  # iterations in every draw start from the values of the first
            self.steps = float(np.max(step_bounds(models, chunk.part(0, 1), everyone)))
            performances(models, chunk.part(0, 1), everyone, start, self.steps, keep=True)
        performance, error = performances(models, chunk, everyone, start, self.steps, keep=False)
        self.errors.append(np.minimum(error[:, :1] + error[:, 1:], 2 * (high - low)))
        self.lower.append(held_gains(models, performance) - self.errors[-1])

    def gains(self) -> Gains:
        """Returns the gains in all models so far."""
        low, high = self.models.value_bounds
        behavior, policies = self.everyone[0], self.everyone[1:]
        lower = np.ascontiguousarray(np.concatenate(self.lower).T)
        lower = np.maximum(lower, low - high)  # nothing loses more
        lower[(policies == behavior).all(axis=1)] = 0.0  # π_b loses nothing, however evaluated
        return Gains(lower, float(np.concatenate(self.errors).max()))


def held_gains(models: ModelDraws, performance: FloatArray) -> FloatArray:
    """ρ(π) − ρ(π_b) [B, P] of π_b, which comes first, and the others, held to the value bounds.

    Values of a drawn model may be outside of them. Where they are not, holding changes nothing; so
    the rank of a truth that meets the bounds is the same whatever the others count. They count the
    less favourable of Δ and of Δ with ρ cut off at the bounds, since where both are cut off at the
    same bound, a loss would look like none.
    """
    cut = np.clip(performance, *models.value_bounds)
    gains: FloatArray = np.minimum(performance[:, 1:] - performance[:, :1], cut[:, 1:] - cut[:, :1])
    return gains


def performances(
    models: ModelDraws,
    chunk: Chunk,
    policies: FloatArray,
    start: FloatArray,
    steps: float,
    *,
    keep: bool,
) -> tuple[FloatArray, FloatArray]:
    """ρ [B, P] of policies in drawn models, and its error [B, P].

    Iterations expect that it takes about so many steps until an episode ends or is discounted.
    """
    performance = evaluated(models, chunk, policies, Aim(ACCURACY, steps, keep), start)
    horizon = step_bounds(models, chunk, policies)
    proven = np.isfinite(horizon)
    error = proven_error(models, performance.residual, performance.scale, horizon)
    return np.where(proven, performance.mean, 0.0), error


def evaluated(
    models: ModelDraws, chunk: Chunk, policies: FloatArray, aim: Aim, start: FloatArray
) -> Performance:
    """Evaluates policies [P, K] in drawn models: by elimination, or from `start` [P, S]."""
    size, shape = len(chunk.ends), (len(chunk.ends), len(policies))
    offsets, discount = models.counts.pairs.offsets, models.discount
    performance = Performance(np.empty(shape), np.empty(shape), np.empty(shape))
    if models.counts.pairs.num_states <= SMALL:
        room = room_to_eliminate(models.counts.pairs.num_states)
        eliminate_drawn.all(size, room, offsets, discount, chunk, policies, performance)
        return performance
    if is_there(chunk.share):
        with suppress(MemoryError):
            stepped = step_until_near(chunk, offsets, discount, policies, aim, start)
            if stepped is not None:
                return stepped
        home: tuple[Any, ...] = tuple(brought_home(array) for array in chunk)
        chunk = Chunk(*home)
    none = RoomSize()
    iterate_drawn.all(size, none, offsets, discount, chunk, policies, aim, start, performance)
    return performance


def step_bounds(models: ModelDraws, chunk: Chunk, policies: FloatArray) -> FloatArray:
    """Returns a bound on the discounted steps of each policy in each drawn model [B, P].

    That is 1/(1 − γ), or without a discount max w/θ for the expected number w > 0 of steps, if
    w − P w ≥ θ > 0; ∞ where doubles cannot prove that an episode ends.
    """
    shape = (len(chunk.ends), len(policies))
    if models.discount < 1:
        return np.full(shape, longest_horizon(models.discount))
    ticking = chunk._replace(reward=np.ones_like(chunk.reward))
    zeros = np.zeros((len(policies), models.counts.pairs.num_states))
    try:
        steps = evaluated(models, ticking, policies, Aim(ENOUGH, FIRST_STEPS, keep=False), zeros)
    except ZeroDivisionError:  # which a GPU does not know
        steps = None
    if steps is None or not np.isfinite(steps.mean).all():
        raise CertificateRefused(
            "in a drawn model an episode never ends, at discount 1; expected less than 1",
            code="never-ends",
        )
    theta = 1 - steps.residual - terms_of(models) * 2.0**-52 * steps.scale
    proven = (theta > 0) & (steps.mean > 0)
    bounds: FloatArray = np.where(proven, steps.scale / np.where(proven, theta, 1.0), np.inf)
    return bounds


def blocks_of(models: ModelDraws, used: BoolArray, machine: Machine, draws: int) -> Blocks:
    """Returns the blocks in which models are drawn; all pairs at once but on a GPU.

    There are as many as keep a GPU busy; but every task draws what all rewards of a model have in
    common, so that blocks are no smaller than that.
    """
    rewards, number = models.rewards, 1
    if machine.gpu is not None:
        common = len(rewards.atoms) + rewards.group_offsets.size
        number = max(1, min(BUSY // draws, used.size // max(common, BLOCK_PAIRS)))
    firsts = np.linspace(0, used.size, number + 1).astype(np.int64)
    block = np.repeat(np.arange(number), np.diff(firsts))
    cells = np.array([expected_cells(models, used & (block == i)) for i in range(number)])
    return Blocks(firsts, offsets_of(cells))


def expected_cells(models: ModelDraws, used: BoolArray) -> int:
    """Estimates the transitions of a drawn model, with some to spare."""
    counts = models.counts
    rows = models.rows
    if rows.given.size > 0:
        return int(run_lengths(rows.offsets)[used].sum())
    if rows.singly:
        return int(np.count_nonzero(used)) * counts.pairs.num_states
    seen = np.diff(np.concatenate([[0], np.cumsum(counts.times > 0)])[counts.offsets])[used]
    sticks = np.minimum(counts.pairs.num_states - seen, 2.0 - rows.weight * math.log(REMAINDER))
    more = float(sticks.sum())
    return int(seen.sum() + more + 8 * math.sqrt(more) + 16)


def bytes_of(models: ModelDraws, cells: int) -> tuple[int, int]:
    """Returns what one draw of so many transitions takes, and what evaluating it takes besides.

    Evaluating a large model takes a thinner copy and some more values on every core that does so.
    """
    pairs = models.counts.pairs
    one_model = 12 * cells + 16 * pairs.num_pairs + 8 * pairs.num_states
    large = pairs.num_states > SMALL
    beside = one_model + 8 * VALUES_BESIDE * pairs.num_states if large else 0  # on every core
    return models.priors * one_model, beside


def room_for(
    models: ModelDraws,
    cells: int,
    draws: int,
    memory: int,
    machine: Machine = PROCESSOR,
    policies: int = 1,
) -> Chunk:
    """Arrays for as many draws of models of so many transitions as fit into `memory` bytes.

    On a GPU, where all models are evaluated at once, each needs what others need on a core.
    """
    one_draw, beside = bytes_of(models, cells)
    if one_draw + beside > memory:
        raise CertificateRefused(
            f"one drawn model takes {(one_draw + beside) / 2**20:.0f} MiB, expected at most "
            f"{memory / 2**20:.0f}; take a smaller prior weight, or more memory",
            code="too-little-memory",
        )
    cores = min(available_cores(), memory // (one_draw + beside))
    most = (memory - cores * beside) // one_draw
    if machine.gpu is not None:
        values = 8 * VALUES_STEPPING * policies * models.counts.pairs.num_states
        most = max(1, memory // (one_draw + models.priors * (beside + values)))
    return chunk_on(machine, models, cells, models.priors * min(draws, most))


def chunk_on(machine: Machine, models: ModelDraws, cells: int, size: int) -> Chunk:
    """Returns arrays for so many drawn models, with their starts, as far as these are known."""
    pairs = models.counts.pairs
    small = pairs.num_states <= SMALL  # a thread has all of a model then, else a state

    def rows(columns: int, dtype: DTypeLike = np.float64) -> Any:
        return machine.rows(size, columns, dtype, side_by_side=small)

    ends, initial = rows(pairs.num_pairs + 1, np.int64), rows(pairs.num_states)
    ends[:] = 0
    initial[:] = machine.own(models.counts.starts / models.counts.starts.sum())
    return Chunk(ends, rows(cells, np.int32), rows(cells), rows(pairs.num_pairs), initial)


def draw_chunk(
    models: ModelDraws,
    used: BoolArray,
    first_draw: int,
    chunk: Chunk,
    blocks: Blocks | None = None,
) -> None:
    """The draws `first_draw` … into the chunk, those under the first prior first.

    Without blocks, each model is drawn in one go.
    """
    counts, pairs = models.counts, models.counts.pairs
    if blocks is None:
        blocks = Blocks(np.array([0, pairs.num_pairs]), np.array([0, chunk.share.shape[1]]))
    posterior = DirichletPosterior(
        models.seed,
        pairs.offsets,
        used,
        np.where(counts.terminal[pairs.state], counts.unseen_reward(), 0.0),
        models.rows,
        Bases.of([models.rows, *models.others]),
        np.cumsum(models.rows.times, dtype=np.float64),
        models.rows.singly,
        models.start_weight,
        models.rewards,
    )
    tasks = len(chunk.ends) // models.priors * (blocks.pairs.size - 1)
    draw_models.all(tasks, room_to_draw(posterior), posterior, first_draw, blocks, chunk)


def startable(counts: Counts) -> BoolArray:
    """The states [S] in which an episode may start: not where it is over, unless one did."""
    allowed: BoolArray = ~counts.terminal | (counts.starts > 0)
    return allowed


def terms_of(models: ModelDraws) -> int:
    """Returns the number of rounded terms in a residual, with room for the sum over the starts."""
    pairs = models.counts.pairs
    return (int(run_lengths(pairs.offsets).max()) + 1) * pairs.num_states + 8


def proven_error(
    models: ModelDraws, residual: FloatArray, scale: FloatArray, horizon: FloatArray
) -> FloatArray:
    """(residual + rounding) times the steps; where nothing bounds those, more than any gain."""
    rounding = terms_of(models) * 2.0**-52 * (scale + SMALLEST_NORMAL)
    low, high = models.value_bounds
    proven = np.isfinite(horizon)
    steps = np.where(proven, horizon, 0.0)
    errors: FloatArray = np.where(proven, (residual + rounding) * steps, 2 * (high - low))
    if not np.isfinite(errors).all():
        raise NotConverged("values of a drawn model are too large for doubles; scale them down")
    return errors
