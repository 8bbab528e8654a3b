"""Runs the whole pipeline in a block of worlds of one kind, on data of every size.

The outcome of a world depends on the seed, the stage, the kind and the number of the world alone,
never on the block or the worker.

Finished blocks may be kept in a folder, so that a stress test that was interrupted can go on. A
block has a digest of the problem, the settings, the versions and the sources that made it. One with
another digest is made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep._blocks import BlockFolder, code_here, digest_of
from surestep.algorithms.contract import Improver
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.episodes import holds_out, needs_episodes
from surestep.certificates.registry import only_believed
from surestep.errors import CertificateRefused
from surestep.kernels.devices import device_in_use
from surestep.model.batch import MDPBatch
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.parallel import map_in_threads
from surestep.rehearsal.sources import DataSize, World, problem_of
from surestep.rehearsal.worlds import WorldKind
from surestep.trials import claimed, proposed_each, true_gains

SMALL = 128  # states up to which worlds are worked on together
TOGETHER = 5  # worlds of a block
TOGETHER_ON_GPU = 250  # which fewer would leave idle
# The stages have worlds of their own.
CALIBRATING = 0
REPORTING = 1
LUCK = 2
MOST_AT_ONCE = 2**24  # steps of logs, and transitions of worlds, whose data are held at a time


class RehearsalPlan(NamedTuple):
    """A plan of a stress test: the pipeline to run, the worlds, and the seed."""

    problem: Problem
    algorithm: Improver
    certifier: Certifier
    belief: Certifier | None  # whose claim is only believed, beside the certifier
    kinds: tuple[WorldKind, ...]
    seed: int
    worlds: int  # of each kind

    @property
    def whole_episodes(self) -> bool:
        """Tells whether the pipeline looks at whole episodes, so that counts are not enough."""
        judges = (self.certifier, self.belief)
        return needs_log(self.algorithm) or any(
            judge is not None and needs_episodes(judge) for judge in judges
        )

    def blocks(self, stage: int, sizes: tuple[DataSize, ...]) -> list[WorldBlock]:
        """Returns the worlds of a stage, in blocks that do not depend on the number of workers."""
        together = 1
        if self.problem.num_states <= SMALL:
            together = TOGETHER if device_in_use() == "cpu" else TOGETHER_ON_GPU
        return [
            WorldBlock(self, kind, sizes, stage, member, first, min(first + together, self.worlds))
            for member, kind in enumerate(self.kinds)
            if kind.calibrates or stage != CALIBRATING
            for first in range(0, self.worlds, together)
        ]


class WorldBlock(NamedTuple):
    """Worlds `first` … `last − 1` of one kind, and the sizes of the data that they give."""

    plan: RehearsalPlan
    kind: WorldKind
    sizes: tuple[DataSize, ...]
    stage: int  # worlds of different stages are independent
    member: int
    first: int
    last: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Returns stage, kind and first world."""
        return self.stage, self.member, self.first

    def rng(self, world: int, part: int) -> np.random.Generator:
        """Returns the generator of one part of a world: the truth (0), or data of a size (1 …)."""
        key = (self.stage, self.member, world, part)
        return np.random.default_rng(np.random.SeedSequence(self.plan.seed, spawn_key=key))


class Source(NamedTuple):
    """A world, the amount of data to collect there, and the generator to do so."""

    world: World
    size: DataSize
    rng: np.random.Generator


class Judged(NamedTuple):
    """The proposals and claims of the pipeline for several data sets [B]."""

    policy: FloatArray  # [B, K]
    claim: FloatArray
    draws: FloatArray | None  # [B, n]
    belief: FloatArray


class Outcomes(NamedTuple):
    """Gains and claims that came out, world by world [B] and size by size [Z]."""

    gain: FloatArray  # [B, Z] the true Δ of the policy that the pipeline proposed
    claim: FloatArray  # [B, Z] L; NaN where none was made
    draws: FloatArray | None  # [B, Z, n] the Δ_k behind the claim, sorted; NaN where none was made
    belief: FloatArray  # [B, Z] L of what is only believed; NaN where there is none
    outside: FloatArray  # [B, Z] by how much a true value lies outside of the value bounds, or 0

    def of_first(self, worlds: int) -> Outcomes:
        """Returns the outcomes of the first worlds alone."""
        return Outcomes(*(None if values is None else values[:worlds] for values in self))  # type: ignore[arg-type]


def run_block(block: WorldBlock) -> Outcomes:
    """Runs the pipeline in every world of the block, at every size."""
    numbers = range(block.first, block.last)
    terms = block.plan.problem
    if block.kind.is_one_world:
        worlds = [block.kind.world(terms, block.rng(block.first, 0))] * len(numbers)
    else:
        worlds = [block.kind.world(terms, block.rng(world, 0)) for world in numbers]
    truths = [world.truth for world in worlds]
    models = MDPBatch.from_models(truths[:1] if block.kind.is_one_world else truths)
    sources = [
        Source(world, size, block.rng(number, 1 + z))
        for z, size in enumerate(block.sizes)
        for number, world in zip(numbers, worlds, strict=True)
    ]
    parts = [judged(block.plan, several) for several in at_once(block.plan, sources)]
    policies = np.concatenate([part.policy for part in parts])
    true = true_gains(models, policies, terms.behavior, terms.value_bounds)

    def by_world(figures: Sequence[FloatArray]) -> FloatArray:
        every = np.concatenate(figures)
        by_size = every.reshape(len(block.sizes), len(numbers), *every.shape[1:])
        return np.ascontiguousarray(by_size.swapaxes(0, 1))

    draws = [part.draws for part in parts if part.draws is not None]
    return Outcomes(
        gain=by_world([true.gain]),
        claim=by_world([part.claim for part in parts]),
        draws=by_world(draws) if draws else None,
        belief=by_world([part.belief for part in parts]),
        outside=by_world([true.outside]),
    )


def at_once(plan: RehearsalPlan, sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Yields sources that follow each other, as many as may be held at a time; one at least.

    Episodes are expected to be as long as those of the problem; a single one is a stream.
    """
    counts = plan.problem.counts
    several: list[Source] = []
    held = 0.0
    mean_length = float(counts.visits.sum() / counts.starts.sum())
    for source in sources:
        episodes, horizon = source.size
        rows = horizon if episodes == 1 else episodes * min(horizon, mean_length)
        size = source.world.truth.successor.size + (rows if plan.whole_episodes else 0)
        if several and held + size > MOST_AT_ONCE:
            yield several
            several = []
            held = 0.0
        several.append(source)
        held += size
    yield several


def judged(plan: RehearsalPlan, sources: Sequence[Source]) -> Judged:
    """Collects the data of all sources; proposes policies and makes claims for all together."""
    if plan.whole_episodes:
        data = [source.world.record(*source.size, source.rng) for source in sources]
    else:
        data = map_in_threads(
            lambda source: source.world.collect(*source.size, source.rng), sources
        )
    problems = [
        problem_of(plan.problem, source.world.truth, collected)
        for source, collected in zip(sources, data, strict=True)
    ]
    seeds = [int(source.rng.integers(2**63 - 1)) for source in sources]
    certifiers = [seeded(plan.certifier, seed) for seed in seeds]
    # Of equal seeds, as a seed may decide which part of the log chooses.
    believers = [] if plan.belief is None else [seeded(plan.belief, seed) for seed in seeds]
    splitters = certifiers if holds_out(certifiers[0]) else believers
    if splitters and not holds_out(splitters[0]):
        splitters = []
    policies = proposed_each(plan.algorithm, problems, splitters).policy
    claims, draws = claims_and_draws(certifiers, problems, policies)
    beliefs = np.full(len(problems), np.nan)
    if believers:
        beliefs, _ = claims_and_draws(believers, problems, policies)
    elif only_believed(plan.certifier.name):
        beliefs = claims
    return Judged(policies, claims, draws, beliefs)


def seeded(certifier: Certifier, seed: int) -> Certifier:
    """Returns the certifier with a seed of the world's own, where it has one."""
    own = {"seed": seed} if hasattr(certifier, "seed") else {}
    changed: Certifier = replace(certifier, **own)  # type: ignore[type-var]
    return changed


def claims_and_draws(
    certifiers: Sequence[Certifier], problems: list[Problem], policies: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Returns L [B], and the sorted draws [B, n] of kinds that calibrate; NaN where refused."""
    first = certifiers[0]
    if not first.calibrates:
        return claimed(certifiers, problems, policies).lower, None
    several = [
        [Policy(problem.counts.pairs, policy)]
        for problem, policy in zip(problems, policies, strict=True)
    ]
    draws = np.stack(
        [
            np.full(first.draws, np.nan) if isinstance(gains, CertificateRefused) else gains[0]
            for gains in first.gains_each(certifiers, problems, several)
        ]
    )
    draws.sort(axis=1)
    return draws[:, first.rank - 1], draws


# ---- finished blocks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """A folder that keeps the finished blocks of a stress test; see `rehearse`."""

    folder: Path
    made_with: str = ""  # all else that decides outcomes, such as versions

    def about(self, plan: RehearsalPlan) -> KeptBlocks:
        """Returns the blocks of one stress test, whose digest has the sources too."""
        return KeptBlocks(self.folder, digest_of((self.made_with, code_here(), plan[:4])))

    def read(self, block: WorldBlock) -> Outcomes | None:
        """Returns the outcomes of a block; None where the folder does not have them."""
        kept = BlockFolder(self.folder).read("-".join(map(str, block.place)))
        if kept is None or kept.made_by != self.made_by(block):
            return None
        return Outcomes(**{name: kept.arrays.get(name) for name in Outcomes._fields})  # type: ignore[arg-type]

    def write(self, block: WorldBlock, outcomes: Outcomes) -> None:
        """Writes the outcomes of a block."""
        arrays = {name: values for name, values in outcomes._asdict().items() if values is not None}
        BlockFolder(self.folder).write("-".join(map(str, block.place)), self.made_by(block), arrays)

    def made_by(self, block: WorldBlock) -> str:
        """Returns a digest of all that decides the outcomes of a block."""
        return digest_of((self.made_with, block.plan.seed, block[1:]))
