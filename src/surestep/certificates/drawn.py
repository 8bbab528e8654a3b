"""Policies compared in models drawn from a posterior: Δ_k, each with its errors taken off.

Memory is bounded by drawing in chunks. A draw depends on the seed and its own number alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray, offsets_of, run_lengths
from surestep.errors import CertificateRefused, NotConverged
from surestep.kernels.chain import chain_rows, chain_sizes
from surestep.kernels.posterior import REMAINDER, SINGLY, draw_models, evaluate_drawn
from surestep.model.counts import Counts
from surestep.planning.chain import Chain, change_range, largest, solve_krylov, solve_sweeps
from surestep.planning.proof import SMALLEST_NORMAL, longest_horizon

SMALL = 128  # states up to which a dense elimination is the fastest
ACCURACY = 1e-7  # of the largest reward and value: the error that iterations aim for
KRYLOV_STEPS, SWEEPS_PER_STEP = 500, 40


class RewardDraws(NamedTuple):
    """What rewards are drawn from; in the order in which the kernel takes the fields."""

    per_pair: int  # one reward a pair [K], not one a transition [T]
    noisy: int  # mean rewards are Beta distributed between their bounds
    first: FloatArray  # the reward, NaN where it is unknown; or the first shape
    second: FloatArray  # the second shape
    low: float
    span: float
    atoms: FloatArray  # what unknown rewards are drawn from; none: uniform between the bounds
    copies: IntArray

    def range_of(self) -> tuple[float, float]:
        """The least and the largest reward that a draw can have."""
        ends = [self.low, self.low + self.span] if self.span > 0 or self.noisy else []
        values = np.concatenate([ends, self.atoms, np.zeros(0) if self.noisy else self.first])
        values = values[~np.isnan(values)]
        return float(values.min(initial=0.0)), float(values.max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelDraws:
    """A posterior over models, given by its Dirichlet rows, rewards and starts."""

    counts: Counts
    discount: float
    value_bounds: tuple[float, float]
    alpha: float  # α of every state in every row
    start_alpha: float  # α of every start; 0: starts are known
    rewards: RewardDraws
    seed: int

    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(low, high) of what follows a transition into what is left over, and of the value there.

        They hold in the drawn model, whose values the given bounds need not contain.
        """
        low, high = self.rewards.range_of()
        ending = self.counts.unseen_reward()
        least, most = min(low, float(ending.min())), max(high, float(ending.max()))
        steps = 1 / (1 - self.discount)
        worst = min(self.value_bounds[0], least * steps)
        best = max(self.value_bounds[1], most * steps)
        return (low + self.discount * worst, high + self.discount * best), (worst, best)


class Gains(NamedTuple):
    """Δ of each policy in each draw, at least; and what was taken off for evaluating it."""

    lower: FloatArray  # [P, draws]
    error: float  # the largest error of a Δ
    left_over: float  # the largest weight that was given to no state


class Chunk(NamedTuple):
    """Drawn models, in the order in which the kernels take the fields; see `draw_models`."""

    ends: IntArray  # [B, K+1]
    target: IndexArray  # [B, cells]
    share: FloatArray  # [B, cells]
    reward: FloatArray  # [B, K]
    rest: FloatArray  # [B, K]
    initial: FloatArray  # [B, S]
    initial_rest: FloatArray  # [B]


def drawn_gains(
    models: ModelDraws, behavior: FloatArray, policies: FloatArray, draws: int, memory: int
) -> Gains:
    """ρ(π, M_k) − ρ(π_b, M_k) for policies [P, K] and k = 0 … draws − 1, less all errors."""
    everyone = np.concatenate([behavior[np.newaxis], policies])
    counts = models.counts
    used = (everyone > 0).any(axis=0) & ~counts.terminal[counts.pairs.state]
    (rest_worth, rest_value), errors = worst_for_policies(models, len(policies)), []
    gains, start = [], np.zeros((len(everyone), counts.pairs.num_states))
    warm, left_over, done = False, 0.0, 0
    cells = expected_cells(models, used)
    while done < draws:
        size = min(draws - done, draws_at_once(models, cells, memory))
        chunk = draw_chunk(models, used, done, size, cells)
        if (chunk.ends[:, -1] < 0).any():
            cells *= 2
            continue
        if counts.pairs.num_states <= SMALL:
            found, error = solved(models, chunk, everyone, rest_worth, rest_value)
        else:
            if not warm:  # every draw starts from the values of the first
                iterated(models, chunk, 0, everyone, rest_worth, rest_value, start)
                warm = True
            parts = [
                iterated(models, chunk, b, everyone, rest_worth, rest_value, start.copy())
                for b in range(size)
            ]
            found, error = (np.stack([part[i] for part in parts]) for i in (0, 1))
        both = error[:, :1] + error[:, 1:]
        gains.append(found[:, 1:] - found[:, :1] - both)
        errors.append(float(both.max()))
        left_over = max(left_over, float(chunk.rest.max()), float(chunk.initial_rest.max()))
        done += size
    lower = np.ascontiguousarray(np.concatenate(gains).T)
    lower[(policies == behavior).all(axis=1)] = 0.0  # π_b loses nothing, however it is evaluated
    return Gains(lower, max(errors), left_over)


def worst_for_policies(models: ModelDraws, policies: int) -> tuple[FloatArray, FloatArray]:
    """What is left over is worth the most for π_b, which comes first, and the least for others."""
    worths = [np.array([high, *[low] * policies]) for low, high in models.ends()]
    return worths[0], worths[1]


def expected_cells(models: ModelDraws, used: BoolArray) -> int:
    """How many transitions a drawn model has, with some to spare."""
    counts = models.counts
    seen = np.diff(np.concatenate([[0], np.cumsum(counts.times > 0)])[counts.offsets])
    unseen = counts.pairs.num_states - seen[used]
    if models.alpha >= SINGLY:
        more = float(unseen.sum())
    else:
        sticks = np.minimum(unseen, 1.0 + models.alpha * unseen * -math.log(REMAINDER))
        more = float(sticks.sum()) + 8 * math.sqrt(float(sticks.sum())) + 16
    return int(seen[used].sum() + more)


def draws_at_once(models: ModelDraws, cells: int, memory: int) -> int:
    """How many drawn models fit into so many bytes."""
    pairs = models.counts.pairs
    each = 12 * cells + 24 * pairs.num_pairs + 8 * pairs.num_states
    if each > memory:
        raise CertificateRefused(
            f"one drawn model takes {each / 2**20:.0f} MiB, expected at most {memory / 2**20:.0f}; "
            "take a smaller prior weight, or more memory"
        )
    return memory // each


def draw_chunk(
    models: ModelDraws, used: BoolArray, first_draw: int, size: int, cells: int
) -> Chunk:
    """The draws `first_draw` … `first_draw + size − 1`."""
    counts, pairs = models.counts, models.counts.pairs
    num_pairs = pairs.num_pairs
    started = np.flatnonzero(counts.starts)
    shares = counts.starts / counts.starts.sum()
    chunk = Chunk(
        np.zeros((size, num_pairs + 1), np.int64),
        np.empty((size, cells), np.int32),
        np.empty((size, cells)),
        np.empty((size, num_pairs)),
        np.empty((size, num_pairs)),
        np.tile(shares, (size, 1)),
        np.zeros(size),
    )
    draw_models(
        models.seed,
        first_draw,
        models.alpha,
        used,
        np.where(counts.terminal[pairs.state], counts.unseen_reward(), 0.0),
        counts.offsets,
        counts.successor,
        counts.times,
        *models.rewards,
        models.start_alpha,
        started.astype(np.int32),
        counts.starts[started],
        startable(counts),
        *chunk,
    )
    return chunk


def startable(counts: Counts) -> BoolArray:
    """The states [S] in which an episode may start: not where it is over, unless one did."""
    allowed: BoolArray = ~counts.terminal | (counts.starts > 0)
    return allowed


def solved(
    models: ModelDraws,
    chunk: Chunk,
    policies: FloatArray,
    rest_worth: FloatArray,
    rest_value: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """ρ [B, P] and its error [B, P], all draws at once by elimination."""
    shape = (len(chunk.ends), len(policies))
    found, residual, scale = np.empty(shape), np.empty(shape), np.empty(shape)
    evaluate_drawn(
        models.counts.pairs.offsets,
        models.discount,
        *chunk,
        policies,
        rest_worth,
        rest_value,
        found,
        residual,
        scale,
    )
    return found, proven_error(models, chunk, residual, scale)


def iterated(
    models: ModelDraws,
    chunk: Chunk,
    draw: int,
    policies: FloatArray,
    rest_worth: FloatArray,
    rest_value: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """ρ [P] and its error [P] in one draw, by iterations from `start` [P, S], left at the values."""
    ends, initial = chunk.ends[draw], chunk.initial[draw]
    found, residual, scale = (np.empty(len(policies)) for _ in range(3))
    for p, policy in enumerate(policies):
        reward = chunk.reward[draw] + chunk.rest[draw] * rest_worth[p]
        chain = chain_of(models, ends, chunk.target[draw], chunk.share[draw], reward, policy)
        steps = 1 / (1 - models.discount)
        size = float(np.abs(reward).max()) + float(np.abs(start[p]).max())
        target = ACCURACY * size / steps
        value, left = solve_krylov(chain, start[p], target, KRYLOV_STEPS)
        if left > target:
            value, left = solve_sweeps(chain, value, target, int(SWEEPS_PER_STEP * steps) + 1)
        start[p] = value
        residual[p] = largest(change_range(chain, value))
        scale[p] = float(np.abs(reward).max()) + float(np.abs(value).max())
        found[p] = float(initial @ value) + chunk.initial_rest[draw] * rest_value[p]
    return found, proven_error(models, chunk, residual, scale)


def chain_of(
    models: ModelDraws,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    policy: FloatArray,
) -> Chain:
    """The chain that a policy [K] makes of one drawn model."""
    pairs = models.counts.pairs
    discount = np.full(pairs.num_pairs, models.discount)
    lengths, earned = np.empty(pairs.num_states, np.int64), np.empty(pairs.num_states)
    chain_sizes(pairs.offsets, ends, discount, reward, policy, lengths, earned)
    offsets = offsets_of(lengths)
    successor, weight = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    chain_rows(
        pairs.offsets, ends, target, share, discount, policy, offsets, successor, weight
    )
    return Chain(offsets, successor, weight, earned)


def proven_error(
    models: ModelDraws, chunk: Chunk, residual: FloatArray, scale: FloatArray
) -> FloatArray:
    """(residual + rounding) / (1 − γ), with room for the sum over the starts."""
    pairs = models.counts.pairs
    longest = int(run_lengths(pairs.offsets).max()) * int(np.diff(chunk.ends, axis=1).max())
    terms = longest + pairs.num_states + 8
    rounding = terms * 2.0**-52 * (scale + SMALLEST_NORMAL)
    errors: FloatArray = (residual + rounding) * longest_horizon(models.discount)
    if not np.isfinite(errors).all():
        raise NotConverged("values of a drawn model are too large for doubles; scale them down")
    return errors
