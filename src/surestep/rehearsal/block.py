"""Some worlds of one kind: data of every size, the whole pipeline on each, and the truth.

What happens in a world depends on the seed, the stage, the kind and the number of the world alone,
never on the block or the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray, IntArray, run_owners, weighted_rows
from surestep.algorithms import (
    SPIBB,
    BasicRL,
    BetaSPIBB,
    Improver,
    TwoSuccessorSPIBB,
    improve_batch,
)
from surestep.certificates import Certifier, certify_batch
from surestep.certificates.episodes import holds_out, training_for
from surestep.certificates.protocol import Believer, believes
from surestep.certificates.registry import only_believed
from surestep.choosing_n_wedge import AutoNWedge, choose_batch
from surestep.errors import CertificateRefused, InvalidParameter, NeverEnds
from surestep.model.batch import MDPBatch
from surestep.model.certificate import Certificate
from surestep.model.counts import LoggedRewards
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.problem_batch import CountsBatch, ProblemBatch
from surestep.planning.batch import endless_members, evaluate_batch
from surestep.rehearsal.collecting import DataSize, problem_of
from surestep.rehearsal.sources import Data, World
from surestep.rehearsal.worlds import WorldKind

COMPILED = (BasicRL, SPIBB, TwoSuccessorSPIBB, BetaSPIBB)  # see `improve_batch`


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Worlds `first` … `last − 1` of one kind."""

    problem: Problem
    algorithm: Improver
    certifier: Certifier
    belief: Believer | None  # what is only believed, if that is not the claim itself
    kind: WorldKind
    sizes: tuple[DataSize, ...]
    whole_episodes: bool  # the pipeline looks at them, so counts are not enough
    seed: int
    stage: int  # worlds of different stages are independent
    member: int
    first: int
    last: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Stage, kind and first world."""
        return self.stage, self.member, self.first

    def rng(self, world: int, part: int) -> np.random.Generator:
        """The source of one part of one world: the truth (0), or the data of a size (1 …)."""
        key = (self.stage, self.member, world, part)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


class Outcomes(NamedTuple):
    """Gains and claims that came out, world by world [B] and size by size [Z]."""

    gain: FloatArray  # [B, Z] the true Δ of the policy that the pipeline proposed
    claim: FloatArray  # [B, Z] L; NaN where none was made
    draws: FloatArray | None  # [B, Z, n] the Δ_k behind the claim, sorted; NaN where none was made
    belief: FloatArray  # [B, Z] L of what is only believed; NaN where there is none
    outside: FloatArray  # [B, Z] by how much a true value lies outside of the value bounds, or 0

    def of_first(self, worlds: int) -> Outcomes:
        """Returns what came out in the first worlds alone."""
        return Outcomes(*(None if each is None else each[:worlds] for each in self))  # type: ignore[arg-type]


def run_block(block: Block) -> Outcomes:
    """Every world of the block, at every size."""
    numbers = range(block.first, block.last)
    if block.kind.is_one_world:
        worlds = [block.kind.world(block.problem, block.rng(block.first, 0))] * len(numbers)
    else:
        worlds = [block.kind.world(block.problem, block.rng(world, 0)) for world in numbers]
    truths = [world.truth for world in worlds]
    models = MDPBatch.from_models(truths[:1] if block.kind.is_one_world else truths)
    parts = [run_size(block, worlds, models, z) for z in range(len(block.sizes))]
    return Outcomes(
        np.stack([part.gain for part in parts], axis=1),
        np.stack([part.claim for part in parts], axis=1),
        None
        if parts[0].draws is None
        else np.stack([part.draws for part in parts if part.draws is not None], axis=1),
        np.stack([part.belief for part in parts], axis=1),
        np.stack([part.outside for part in parts], axis=1),
    )


def run_size(block: Block, worlds: list[World], models: MDPBatch, z: int) -> Outcomes:
    """Every world of the block at one size: arrays without the axis of sizes."""
    size, rngs = block.sizes[z], [block.rng(w, 1 + z) for w in range(block.first, block.last)]
    data = [
        (world.record if block.whole_episodes else world.collect)(*size, rng)
        for world, rng in zip(worlds, rngs, strict=True)
    ]
    problems = [
        problem_of(block.problem, world.truth, each)
        for world, each in zip(worlds, data, strict=True)
    ]
    seeds = [int(rng.integers(2**63 - 1)) for rng in rngs]
    certifiers = [seeded(block.certifier, seed) for seed in seeds]
    # Of equal seeds, as a seed may decide which part of the log chooses.
    believers = [] if block.belief is None else [seeded(block.belief, each) for each in seeds]
    splitters = next((each for each in (certifiers, believers) if each and holds_out(each[0])), [])
    policies = proposed(block, worlds, models, data, problems, splitters)
    claims, draws = claimed(certifiers, problems, policies)
    beliefs = np.full(len(problems), np.nan)
    if believers:
        beliefs, _ = claimed(believers, problems, policies)
    elif only_believed(block.certifier.name):
        beliefs = claims
    gain, outside = true_gains(block.problem, models, policies)
    return Outcomes(gain, claims, draws, beliefs, outside)


def seeded(certifier: Certifier, seed: int) -> Certifier:
    """Returns the certifier with a seed of the world's own, where it has one."""
    if not hasattr(certifier, "seed"):
        return certifier
    changed: Certifier = replace(certifier, seed=seed)  # type: ignore[type-var]
    return changed


def proposed(
    block: Block,
    worlds: list[World],
    models: MDPBatch,
    data: list[Data],
    problems: list[Problem],
    splitters: Sequence[Certifier],
) -> FloatArray:
    """Returns π_I [B, K] of each data set, or of its training part where there are splitters."""
    algorithm = block.algorithm
    chosen_from: list[Problem | None] = [*problems]
    if splitters:
        chosen_from = [*map(training_or_none, problems, splitters)]
    inner = algorithm.algorithm if isinstance(algorithm, AutoNWedge) else algorithm
    # Without a discount data sets may show policies that never end, each for itself.
    alone = bool(splitters) or block.problem.single_discount == 1
    if alone or not isinstance(inner, COMPILED):
        behavior = block.problem.behavior.probability
        return np.stack([improved(algorithm, each, behavior) for each in chosen_from])
    batch = batch_of(block.problem, worlds, models, data)
    if isinstance(algorithm, AutoNWedge):
        return choose_batch(algorithm, batch, problems)
    return improve_batch(inner, batch).policy


def training_or_none(problem: Problem, certifier: Certifier) -> Problem | None:
    """The training part; None where so few episodes leave none."""
    try:
        return training_for(problem, certifier)
    except InvalidParameter:
        return None


def improved(algorithm: Improver, problem: Problem | None, behavior: FloatArray) -> FloatArray:
    """π_I [K]; π_b where no data may choose, or where every candidate for N∧ is refused.

    So too where π_b never ends in the estimate, as recordings that were cut may have it.
    """
    try:
        return behavior if problem is None else algorithm.improve(problem).policy.probability
    except (CertificateRefused, NeverEnds):
        return behavior


def batch_of(
    problem: Problem, worlds: list[World], models: MDPBatch, data: list[Data]
) -> ProblemBatch:
    """The data sets of all worlds as one batch, on the terms of the problem."""
    truths = [world.truth for world in worlds]
    times = spread(models, truths, [each.times for each in data], np.int64)
    logged = problem.counts.rewards
    if logged.known and logged.per == "pair":
        rewards = logged
    else:
        earned = spread(models, truths, [each.earned for each in data], np.float64)
        rewards = LoggedRewards(earned, "transition", False)
    return ProblemBatch(
        counts=CountsBatch(
            models.pairs,
            models.offsets,
            models.successor,
            times,
            rewards,
            np.stack([each.starts for each in data]),
            problem.counts.terminal,
        ),
        behavior=problem.behavior,
        discount=problem.single_discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
    )


def claimed(
    certifiers: Sequence[Certifier], problems: list[Problem], probabilities: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """L [B] and, where it comes from draws, those [B, n]; NaN where the certificate is refused."""
    first = certifiers[0]
    policies = [
        Policy(problem.counts.pairs, row)
        for problem, row in zip(problems, probabilities, strict=True)
    ]
    if believes(first):
        draws = np.stack([*map(sorted_gains, certifiers, problems, policies)])
        return draws[:, first.rank - 1], draws
    if all(each == first for each in certifiers):
        found = certify_batch(problems, policies, first)
    else:
        found = [
            certify_batch([problem], [policy], certifier)[0]
            for certifier, problem, policy in zip(certifiers, problems, policies, strict=True)
        ]
    return np.array([lower_or_nan(claim) for claim in found]), None


def lower_or_nan(claim: Certificate | CertificateRefused) -> float:
    """L; NaN where nothing is claimed."""
    if isinstance(claim, CertificateRefused) or claim.lower is None:
        return np.nan
    return claim.lower


def sorted_gains(certifier: Any, problem: Problem, policy: Policy) -> FloatArray:
    """The draws of a posterior certificate, rising; NaN where it is refused."""
    try:
        return np.sort(certifier.gains(problem, [policy])[0])
    except CertificateRefused:
        return np.full(certifier.draws, np.nan)


def true_gains(
    problem: Problem, models: MDPBatch, policies: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """ρ(π_I) − ρ(π_b) in each truth [B], and how far values lie outside of the value bounds.

    A policy that may never end, where nothing is discounted, is worth the lower value bound.
    """
    endless = np.zeros(len(policies), np.bool_)
    if problem.single_discount == 1:
        endless = endless_members(models, policies)
    ending = np.where(endless[:, np.newaxis], problem.behavior.probability, policies)
    ours = np.where(
        endless[:, np.newaxis], problem.value_bounds[0], evaluate_batch(models, ending).value
    )
    theirs = evaluate_batch(models, problem.behavior).value
    gain = weighted_rows(ours, models.initial) - weighted_rows(theirs, models.initial)
    gain[(policies == problem.behavior.probability).all(axis=1)] = 0.0
    low, high = problem.value_bounds
    highest = np.maximum(ours.max(axis=1), theirs.max(axis=1)) - high
    lowest = low - np.minimum(ours.min(axis=1), theirs.min(axis=1))
    return gain, np.maximum(0.0, np.maximum(highest, lowest))


# ---- one shape for many truths ----------------------------------------------------------------


def spread(
    models: MDPBatch, truths: list[FiniteMDP], values: Sequence[AnyArray], kind: type
) -> AnyArray:
    """Values over the transitions of each truth, over those of the batch [B, T]."""
    union = keys_of(models)
    result: AnyArray = np.zeros((len(values), union.size), kind)
    place: dict[int, IntArray] = {}
    for row, truth, each in zip(result, truths, values, strict=True):
        if id(truth) not in place:
            place[id(truth)] = np.searchsorted(union, keys_of(truth))
        row[place[id(truth)]] = each
    return result


def keys_of(model: FiniteMDP | MDPBatch) -> IntArray:
    """A number for each transition: pair · S + successor, rising."""
    return run_owners(model.offsets) * np.int64(model.num_states) + model.successor
