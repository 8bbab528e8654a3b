"""Some worlds of one kind: data of every size, the whole pipeline on each, and the truth.

What happens in a world depends on the seed, the stage, the kind and the number of the world alone,
never on the block or the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray, IntArray, run_owners
from surestep.algorithms import Improver
from surestep.certificates import Certifier
from surestep.certificates.episodes import holds_out
from surestep.certificates.protocol import Believer, believes
from surestep.certificates.registry import only_believed
from surestep.errors import CertificateRefused
from surestep.model.batch import MDPBatch
from surestep.model.counts import LoggedRewards
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.problem_batch import CountsBatch, ProblemBatch
from surestep.rehearsal.collecting import DataSize, problem_of
from surestep.rehearsal.sources import Data, World
from surestep.rehearsal.worlds import WorldKind
from surestep.trials import claimed, plans_together, proposed_each, proposed_together, true_gains


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
    claims, draws = claims_and_draws(certifiers, problems, policies)
    beliefs = np.full(len(problems), np.nan)
    if believers:
        beliefs, _ = claims_and_draws(believers, problems, policies)
    elif only_believed(block.certifier.name):
        beliefs = claims
    terms = block.problem
    true = true_gains(models, policies, terms.behavior, terms.value_bounds)
    return Outcomes(true.gain, claims, draws, beliefs, true.outside)


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
    # Without a discount data sets may show policies that never end, each for itself.
    alone = splitters or block.problem.single_discount == 1 or not plans_together(block.algorithm)
    if alone:
        return proposed_each(block.algorithm, problems, splitters).policy
    batch = batch_of(block.problem, worlds, models, data)
    return proposed_together(block.algorithm, batch, problems).policy


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


def claims_and_draws(
    certifiers: Sequence[Certifier], problems: list[Problem], policies: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """L [B] and, where it comes from draws, those [B, n]; NaN where the certificate is refused."""
    first = certifiers[0]
    if not believes(first):
        return claimed(certifiers, problems, policies).lower, None
    draws = np.stack([*map(sorted_gains, certifiers, problems, policies)])
    return draws[:, first.rank - 1], draws


def sorted_gains(certifier: Any, problem: Problem, policy: FloatArray) -> FloatArray:
    """The draws of a posterior certificate, rising; NaN where it is refused."""
    try:
        return np.sort(certifier.gains(problem, [Policy(problem.counts.pairs, policy)])[0])
    except CertificateRefused:
        return np.full(certifier.draws, np.nan)


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
