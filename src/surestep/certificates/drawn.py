"""Policies compared in models drawn from a posterior: Δ_k, each with its errors taken off.

Memory is bounded by drawing in chunks. A draw depends on the seed and its own number alone.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import refused
from surestep.errors import CertificateRefused, NotConverged
from surestep.kernels.devices import PROCESSOR, Machine, brought_home, machine_for_tasks, usable_gpu
from surestep.kernels.drawn import (
    ENDLESS,
    PARTS,
    VALUES_BESIDE,
    Chunk,
    Performance,
    iterate_drawn,
    room_to_solve,
    solve_drawn,
    step_drawn,
)
from surestep.kernels.posterior import (
    PIECES,
    Blocks,
    Posteriors,
    RewardDraws,
    Rows,
    draw_models,
    room_to_draw,
)
from surestep.kernels.records import line, places
from surestep.kernels.types import RoomSize, is_there
from surestep.model import Counts, FiniteMDP
from surestep.planning.horizons import longest_horizon
from surestep.planning.proof import SMALLEST_NORMAL

SMALL = 128  # states up to which a dense elimination is the fastest
NEAR = 2**25  # bytes of models that the processor draws at once for several data sets
ACCURACY = 1e-6  # of the largest reward and value: the error that iterations aim for
BUSY, BLOCK_PAIRS = 1 << 16, 64  # tasks that keep a GPU busy, and the least pairs of one
ENOUGH = 0.01  # steps are counted up to a residual of 0.01
MOST_STEPS = 1_000  # where it takes more, the processor knows better ways
MIXED = 3  # earlier steps
VALUES_STEPPING = PARTS + 3 * MIXED + 8  # for every state of a model, under every policy
RIDGE = 1e-12  # of the squares: keeps the equations of a mixture solvable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelDraws:
    """A posterior over models, given by its Dirichlet rows, rewards and starts."""

    counts: Counts
    rows: tuple[Rows, ...]  # under each prior
    discount: float
    value_bounds: tuple[float, float]
    start_weight: arrays.FloatArray  # [S] of the posterior of starts; empty where they are known
    rewards: RewardDraws
    extreme: float = 0.0  # visits that an end of the range of rewards weighs against a policy
    seed: int
    draws: int
    horizon: int | None = None  # the steps that count, if only ends are worth something
    alone: bool = False  # Δ is ρ(π) itself

    def apart(self) -> "list[ModelDraws]":
        """Returns one posterior for each prior."""
        return [replace(self, rows=(rows,)) for rows in self.rows]


class Gains(NamedTuple):
    """A lower bound of Δ of each policy in each draw, and the error of evaluation in it."""

    lower: arrays.FloatArray  # [P, draws]
    error: float  # the largest error of a Δ


class DrawnQuestion(NamedTuple):
    """The policies to compare in the models of one posterior."""

    models: ModelDraws
    behavior: arrays.FloatArray  # [K]
    policies: arrays.FloatArray  # [P, K]

    @property
    def everyone(self) -> arrays.FloatArray:
        """Returns all policies [1 + P, K], π_b first."""
        return np.concatenate([self.behavior[np.newaxis], self.policies])

    @property
    def used(self) -> arrays.BoolArray:
        """Returns the pairs [K] that some policy takes, before the end of an episode."""
        taken: arrays.BoolArray = self.everyone.max(axis=0) > 0
        return taken & ~self.models.counts.terminal[self.models.counts.pairs.state]

    @property
    def kind(self) -> tuple[object, ...]:
        """Returns a key: questions with the same key may be answered together."""
        models = self.models
        return (
            models.counts.pairs.offsets.tobytes(),
            models.discount,
            models.draws,
            len(models.rows),
            models.rewards.per_pair,
            models.rewards.least.size,
            models.rewards.more.size,
            models.rows[0].given.size == 0,
            models.start_weight.size,
            models.horizon,
            models.alone,
        )

    def gains(self, worth: arrays.FloatArray, error: arrays.FloatArray) -> Gains:
        """ρ(π) − ρ(π_b), held to the value bounds, less errors, by ρ [draws, 1 + P or more].

        Values of a drawn model may be outside of the bounds. Where they are not, holding changes
        nothing; so the rank of a truth that meets the bounds is the same whatever the others count.
        They count the less favourable of Δ and of Δ with ρ cut off at the bounds, since where both
        are cut off at the same bound, a loss would look like none. A ρ(π) that is asked for alone
        is cut off itself.
        """
        low, high = self.models.value_bounds
        theirs, ours = worth[:, :1], worth[:, 1 : 1 + len(self.policies)]
        errors = error[:, 1 : 1 + len(self.policies)]
        held = np.clip(ours, low, high)
        if not self.models.alone:
            errors = errors + error[:, :1]
            held = np.minimum(ours - theirs, held - np.clip(theirs, low, high))
        errors = np.minimum(errors, 2 * (high - low))
        least = np.maximum(np.ascontiguousarray((held - errors).T), low - high)  # none lose more
        if not self.models.alone:
            same = (self.policies == self.behavior).all(axis=1)
            least[same] = 0.0  # π_b loses nothing, however evaluated
        return Gains(least, float(errors.max()))


def drawn_gains_each(questions: Sequence[DrawnQuestion], memory: int) -> list[list[Gains]]:
    """ρ(π, M_k) − ρ(π_b, M_k) for policies [P, K] and k = 0 … draws − 1, less all errors.

    Returns them for each data set, under each prior. Models of data sets that follow each other are
    drawn at once, where they are of one kind.
    """
    groups = [[*group] for _, group in groupby(questions, key=attrgetter("kind"))]
    return [gains for group in groups for gains in gains_of_group(group, memory)]


def is_small(models: ModelDraws) -> bool:
    """Tells whether models are evaluated by elimination."""
    return models.counts.pairs.num_states <= SMALL


def gains_of_group(group: list[DrawnQuestion], memory: int) -> list[list[Gains]]:
    """Returns the gains of data sets of one kind, under each prior.

    Large ones are drawn alone. Small ones take no more memory together than the processor has near
    at hand. If not even one draw fits, each data set is drawn alone, and then under each prior.
    """
    first = group[0].models
    if len(group) > 1 and not is_small(first):
        return [gains_of_group([question], memory)[0] for question in group]
    under_each = [question for question in group for _ in first.rows]
    everyone = [question.everyone for question in under_each]
    machine = machine_for_tasks(first.draws * len(group))
    most = memory
    if machine.gpu is not None:
        most = int(machine.gpu.free / 2)
    elif len(group) > 1:
        most = min(memory, NEAR)
    try:
        chunks = drawn_chunks(group, most, machine)
        outcomes = [performances(first, chunk, everyone) for chunk in chunks]
    except CertificateRefused as refusal:
        if refusal.code == "too-little-memory" and len(group) > 1:
            return [gains_of_group([question], memory)[0] for question in group]
        if refusal.code == "too-little-memory" and len(first.rows) > 1:
            alone = [group[0]._replace(models=models) for models in first.apart()]
            return [[gains_of_group([question], memory)[0][0] for question in alone]]
        raise
    worth, errors = (
        np.concatenate([part.reshape(len(everyone), -1, part.shape[1]) for part in parts], axis=1)
        for parts in zip(*outcomes, strict=True)
    )
    gains = [*map(DrawnQuestion.gains, under_each, worth, errors)]
    return [gains[i : i + len(first.rows)] for i in range(0, len(gains), len(first.rows))]


def performances(
    models: ModelDraws,
    chunk: Chunk,
    everyone: Sequence[arrays.FloatArray],
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """ρ [B, P] of the policies of each data set in its drawn models, and its error [B, P]."""
    horizon = step_bounds(models, chunk, everyone)  # refuses episodes that never end
    proven = np.isfinite(horizon)
    performance = evaluated(models, chunk, everyone, ACCURACY, np.where(proven, horizon, 1.0))
    error = proven_error(models, performance.residual, performance.scale, horizon)
    return np.where(proven, performance.mean, 0.0), error


def evaluated(
    models: ModelDraws,
    chunk: Chunk,
    everyone: Sequence[arrays.FloatArray],
    accuracy: float,
    steps: arrays.FloatArray,
) -> Performance:
    """Evaluates the policies of each data set in its models.

    If only some steps count, these are counted; else it is done by elimination, or by iteration.
    Where some data sets have fewer policies than others, the rest is 0. Large models are those of
    one data set; the error that iterations aim for is `accuracy`, if an episode takes `steps`
    [B, P].
    """
    pairs = models.counts.pairs
    model = (pairs.offsets, models.discount, chunk)
    size = len(chunk.ends)
    small = is_small(models)
    if is_there(chunk.share) and not small:
        if models.horizon is None:
            with suppress(MemoryError):
                stepped = step_until_near(*model, everyone[0], accuracy / steps)
                if stepped is not None:
                    return stepped
        chunk = Chunk(*map(brought_home, chunk))
    performance = Performance(*np.zeros((3, size, max(map(len, everyone)))))
    asked = (line(everyone), places(everyone), performance)
    if models.horizon is None and not small:
        iterate_drawn.all(size, RoomSize(), *model, everyone[0], accuracy, steps, performance)
        return performance
    counted = ENDLESS if models.horizon is None else models.horizon
    # All of a large model is too much for one thread of a GPU.
    solve = solve_drawn.all if small else solve_drawn.on_processor
    room = room_to_solve(pairs.num_states, counted)
    solve(size, room, pairs.offsets, models.discount, counted, chunk, *asked)
    return performance


def step_bounds(
    models: ModelDraws, chunk: Chunk, everyone: Sequence[arrays.FloatArray]
) -> arrays.FloatArray:
    """Bounds the discounted number of steps of each policy in each drawn model [B, P].

    That is 1/(1 − γ), or those that count and one more, since each is rounded once, and so is the
    mean over the starts. Without a discount it is max w/θ for the expected number w > 0 of steps,
    if w − P w ≥ θ > 0; ∞ where doubles cannot prove that an episode ends.
    """
    shape = (len(chunk.ends), max(map(len, everyone)))
    if models.horizon is not None:
        return np.full(shape, models.horizon + 1.0)
    if models.discount < 1:
        return np.full(shape, longest_horizon(models.discount))
    ticking = chunk._replace(reward=np.ones_like(chunk.reward))
    try:
        steps = evaluated(models, ticking, everyone, ENOUGH, np.ones(shape))
    except ZeroDivisionError:  # which a GPU does not know
        steps = None
    if steps is None or not np.isfinite(steps.mean).all():
        raise refused("never-ends")
    theta = 1 - steps.residual - terms_of(models) * 2.0**-52 * steps.scale
    proven = (theta > 0) & (steps.mean > 0)
    return np.where(proven, steps.scale / np.where(proven, theta, 1.0), np.inf)


def drawn_chunks(
    group: Sequence[DrawnQuestion], memory: int, machine: Machine = PROCESSOR
) -> Iterator[Chunk]:
    """Yields the draws of the models of each data set, as many at once as fit into memory.

    In a chunk they are ordered by data set, then by prior, then by draw. The next chunk takes the
    place of the one before.
    """
    first = group[0].models
    most = max(1 + len(question.policies) for question in group)
    of_a_draw = len(group) * len(first.rows)
    blocks = blocks_of(group, machine)
    posteriors = posteriors_of(group)
    done = 0
    room = None
    while done < first.draws:
        if room is None:
            room = room_for(
                first,
                int(blocks.cells[-1]),
                first.draws,
                memory,
                data_sets=len(group),
                machine=machine,
                policies=most,
            )
        size = min(len(room.ends) // of_a_draw, first.draws - done)
        chunk = Chunk._make(array[: size * of_a_draw] for array in room)
        tasks = (posteriors.firsts.size - 1) * size * (blocks.pairs.size - 1)
        draw_models.all(tasks, room_to_draw(posteriors), posteriors, done, blocks, chunk)
        if (chunk.ends < 0).any():  # rows turned out longer than expected
            blocks = blocks._replace(cells=2 * blocks.cells)
            room = None
            continue
        yield chunk
        done += size


def blocks_of(group: Sequence[DrawnQuestion], machine: Machine) -> Blocks:
    """Returns the blocks in which models are drawn; all pairs at once but on a GPU.

    There are as many as keep a GPU busy; but every task draws what all rewards of a model have in
    common, so that blocks are no smaller than that.
    """
    number = 1
    num_pairs = group[0].behavior.size
    if machine.gpu is not None:
        rewards = [question.models.rewards for question in group]
        common = max(len(one.atoms) + one.group_offsets.size for one in rewards)
        busy = BUSY // (group[0].models.draws * len(group))
        number = max(1, min(busy, num_pairs // max(common, BLOCK_PAIRS)))
    firsts = np.linspace(0, num_pairs, number + 1).astype(np.int64)
    block = np.repeat(np.arange(number), np.diff(firsts))
    cells = [
        max(expected_cells(question.models, question.used & (block == i)) for question in group)
        for i in range(number)
    ]
    return Blocks(firsts, arrays.offsets_of(np.array(cells)))


def expected_cells(models: ModelDraws, used: arrays.BoolArray) -> int:
    """Estimates the transitions of a drawn model, with some to spare."""
    counts = models.counts
    rows = models.rows[0]
    weight = float(rows.weight[0])
    if rows.given.size > 0:
        return int(arrays.run_lengths(rows.offsets)[used].sum())
    if weight * PIECES >= rows.elsewhere.size:  # every state has a piece of its own
        return int(np.count_nonzero(used)) * counts.pairs.num_states
    seen = arrays.run_sums((counts.times > 0).astype(np.int64), counts.offsets)[used]
    sticks = np.minimum(counts.pairs.num_states - seen, 2.0 + weight * PIECES)
    more = float(sticks.sum())
    return int(seen.sum() + more + 8 * math.sqrt(more) + 16)


def room_for(
    models: ModelDraws,
    cells: int,
    draws: int,
    memory: int,
    *,
    data_sets: int = 1,
    machine: Machine = PROCESSOR,
    policies: int = 1,
) -> Chunk:
    """Returns arrays for as many draws of models of so many transitions as fit into `memory` bytes.

    To evaluate a large model, or any on a GPU, takes some more values.
    """
    pairs = models.counts.pairs
    of_a_draw = data_sets * len(models.rows)
    one_model = 12 * cells + 16 * pairs.num_pairs + 8 * pairs.num_states
    beside = 0 if is_small(models) else 8 * VALUES_BESIDE * pairs.num_states
    if of_a_draw * one_model + beside > memory:
        takes = (of_a_draw * one_model + beside) / 2**20
        raise refused("too-little-memory", takes=takes, most=memory / 2**20)
    if machine.gpu is not None:
        beside += 8 * VALUES_STEPPING * policies * pairs.num_states
    size = of_a_draw * min(draws, max(1, memory // (of_a_draw * (one_model + beside))))
    side_by_side = is_small(models)  # a thread has all of a model then, else a state
    columns = (pairs.num_pairs + 1, cells, cells, pairs.num_pairs, pairs.num_states)
    kinds = (np.int64, np.int32, np.float64, np.float64, np.float64)
    return Chunk(
        *(
            machine.rows(size, number, kind, side_by_side=side_by_side)
            for number, kind in zip(columns, kinds, strict=True)
        )
    )


def drawn_models(models: ModelDraws, memory: int) -> Iterator[FiniteMDP]:
    """Yields the models drawn under the first prior; rewards are those of pairs."""
    every = np.ones(models.counts.pairs.num_pairs)  # for which all rows are drawn
    question = DrawnQuestion(models.apart()[0], every, every[np.newaxis])
    for chunk in drawn_chunks([question], memory):
        for ends, target, share, reward, initial in zip(*chunk, strict=True):
            pair = arrays.run_owners(ends)
            order = np.lexsort((target[: pair.size], pair))
            yield FiniteMDP(
                models.counts.pairs,
                ends,
                target[order],
                share[order],
                reward[pair],
                np.full(models.counts.pairs.num_pairs, models.discount),
                initial,
                np.where(arrays.run_lengths(ends) == 0, reward, 0.0),
                endless=None,
            )


def posteriors_of(group: Sequence[DrawnQuestion]) -> Posteriors:
    """Returns the posteriors of several data sets as kernels take them."""
    data_sets = [question.models for question in group]
    first = data_sets[0]
    rows = [models.rows[0] for models in data_sets]
    under_each = zip(*(models.rows for models in data_sets), strict=True)
    priors = [prior for under_one in under_each for prior in under_one]
    rewards = [models.rewards for models in data_sets]
    counts = [models.counts for models in data_sets]
    starts = [models.start_weight for models in data_sets]
    drawn = first.start_weight.size > 0
    shared = sharing(group)
    return Posteriors(
        places(map(np.array, shared)),
        line(map(np.array, shared)),
        len(first.rows),
        np.array([models.seed for models in data_sets]),
        first.counts.pairs.offsets,
        line(question.used for question in group),
        line(np.where(one.terminal[one.pairs.state], one.unseen_reward(), 0.0) for one in counts),
        line(starts if drawn else (one.starts / one.starts.sum() for one in counts)),
        drawn,
        Rows(
            arrays.offsets_of(line(arrays.run_lengths(one.offsets) for one in rows)),
            line(one.successor for one in rows),
            line(one.times for one in rows),
            line(one.sums for one in rows),
            line(prior.given for prior in priors),
            line(one.weight for one in rows),
            line(prior.pooled for prior in priors),
            line(prior.elsewhere for prior in priors),
        ),
        RewardDraws(rewards[0].per_pair, *map(line, [*zip(*rewards, strict=True)][1:])),
        places(one.group_offsets for one in rewards),
        places(one.atoms for one in rewards),
    )


def sharing(group: Sequence[DrawnQuestion]) -> list[list[int]]:
    """Groups the places of data sets that share rows, starts and seed, as signals do."""
    different: dict[tuple[object, ...], list[int]] = {}
    for place, question in enumerate(group):
        models = question.models
        laws = [law for rows in models.rows for law in rows]
        starts = models.start_weight, models.counts.starts
        key = models.seed, *(law.tobytes() for law in (question.used, *starts, *laws))
        different.setdefault(key, []).append(place)
    return [*different.values()]


def terms_of(models: ModelDraws) -> int:
    """Returns the number of rounded terms in a residual, with room for the sum over the starts."""
    pairs = models.counts.pairs
    return (int(arrays.run_lengths(pairs.offsets).max()) + 1) * pairs.num_states + 8


def proven_error(
    models: ModelDraws,
    residual: arrays.FloatArray,
    scale: arrays.FloatArray,
    horizon: arrays.FloatArray,
) -> arrays.FloatArray:
    """Returns (residual + rounding) times the steps; ∞ where nothing bounds the steps."""
    rounding = terms_of(models) * 2.0**-52 * (scale + SMALLEST_NORMAL)
    proven = np.isfinite(horizon)
    errors: arrays.FloatArray = np.where(proven, (residual + rounding) * horizon, np.inf)
    if not np.isfinite(errors[proven]).all():
        raise NotConverged("values of a drawn model are too large for doubles; scale them down")
    return errors


# ---- on a GPU ------------------------------------------------------------------------------------


def step_until_near(
    pair_offsets: arrays.IntArray,
    discount: float,
    chunk: Chunk,
    policies: arrays.FloatArray,
    aim: arrays.FloatArray,
) -> Performance | None:
    """Evaluates policies [P, K] in large drawn models on a GPU, up to residuals `aim` · scale.

    All states of all models step at once. A step v ↦ F(v) = r_π + W v + c takes off by c the part
    of an error that all states have in common: v + c is off by c (γ − 1) more than v in every
    state. The rest shrinks by steps that are mixed with earlier ones, each to where its change
    would have the least squares (Anderson mixing; Walker and Ni 2011). That decides how soon an
    error is small, but not how it is proven: by r_π + W v − v. Returns None where that takes too
    many steps.
    """
    machine = Machine(usable_gpu())
    size = len(chunk.ends)
    number = len(policies)
    chosen = machine.own(policies)
    offsets = machine.own(pair_offsets)
    small_enough = machine.own(aim).reshape(-1)
    value = machine.own(np.zeros((size * number, pair_offsets.size - 1)))
    parts = machine.empty(len(value), value.shape[1] * PARTS)
    most = machine.empty(size, number)
    for p in range(number):
        most[:, p] = ((chosen[p] > 0) * abs(chunk.reward)).max(axis=1)
    steps: list[tuple[Any, Any]] = []
    for _ in range(MOST_STEPS):
        step_drawn.all(parts.size, RoomSize(), offsets, discount, chunk, chosen, value, parts)
        change = parts.reshape(*value.shape, PARTS).sum(axis=2) - value
        residual = abs(change).max(axis=1)
        scale = most.reshape(-1) + abs(value).max(axis=1)
        if (residual <= small_enough * scale).all():
            break
        if discount < 1:
            change += discount / (1 - discount) * change.mean(axis=1)[:, np.newaxis]
        steps = [*steps, (value + change, change)][-MIXED - 1 :]
        value = mixed(steps)
    else:
        return None
    mean = (value.reshape(size, number, -1) * chunk.initial[:, np.newaxis]).sum(axis=2)
    figures = (mean, residual.reshape(size, number), scale.reshape(size, number))
    return Performance(*(brought_home(figure) for figure in figures))


def mixed(steps: Sequence[tuple[Any, Any]]) -> Any:
    """Returns the value that follows the last few steps, each a result [R, S] and its change.

    It is the last result, moved to where its change would have the least squares, row by row.
    """
    result, change = steps[-1]
    images = [after[1] - before[1] for before, after in pairwise(steps)]
    if not images:
        return result
    squares = np.stack(
        [np.stack([(a * b).sum(axis=1) for a in images], axis=1) for b in images], axis=1
    )
    aim = np.stack([(image * change).sum(axis=1) for image in images], axis=1)
    ridge = RIDGE * squares.max(axis=(1, 2)) + np.finfo(float).tiny
    for i in range(len(images)):
        squares[:, i, i] += ridge
    weights = np.linalg.solve(squares, aim[:, :, np.newaxis])
    for i, (before, after) in enumerate(pairwise(steps)):
        result = result - weights[:, i] * (after[0] - before[0])
    return result
