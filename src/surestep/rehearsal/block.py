"""Some worlds of one kind: data of every size, the whole pipeline on each, and the truth.

What happens in a world depends on the seed, the stage, the kind and the number of the world alone,
never on the block or the worker.

Finished blocks may be kept in a folder, so that a rehearsal that was interrupted can go on. A block
knows what made it: the problem, the settings, the versions and the sources. One that something else
made is made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep._blocks import BlockFolder, code_here, digest_of
from surestep.algorithms.contract import Improver
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.episodes import holds_out, needs_episodes
from surestep.certificates.posterior import Posterior, gains_each
from surestep.certificates.registry import only_believed
from surestep.certificates.stitched import FEW_SERIES
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
CALIBRATING, REPORTING, LUCK = 0, 1, 2  # the stages have worlds of their own
MOST_AT_ONCE = 2**24  # steps of logs, and transitions of worlds, whose data are held at a time


class RehearsalPlan(NamedTuple):
    """A plan: the pipeline that is rehearsed, the worlds, and the seed."""

    problem: Problem
    algorithm: Improver
    certifier: Certifier
    belief: Posterior | None  # what is only believed, if that is not the claim itself
    kinds: tuple[WorldKind, ...]
    seed: int
    worlds: int  # of each kind

    @property
    def whole_episodes(self) -> bool:
        """Tells whether the pipeline looks at whole episodes, so that counts are not enough."""
        judges = [self.certifier, *([] if self.belief is None else [self.belief])]
        return needs_log(self.algorithm) or any(map(needs_episodes, judges))

    def blocks(self, stage: int, sizes: tuple[DataSize, ...]) -> list[WorldBlock]:
        """The worlds of a stage, in blocks that do not depend on the number of workers."""
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
        """Stage, kind and first world."""
        return self.stage, self.member, self.first

    def rng(self, world: int, part: int) -> np.random.Generator:
        """The source of one part of one world: the truth (0), or the data of a size (1 …)."""
        key = (self.stage, self.member, world, part)
        return np.random.default_rng(np.random.SeedSequence(self.plan.seed, spawn_key=key))


class Source(NamedTuple):
    """A world, and how much data it is to give, by which numbers."""

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
        """Returns what came out in the first worlds alone."""
        return Outcomes(*(None if values is None else values[:worlds] for values in self))  # type: ignore[arg-type]


def run_block(block: WorldBlock) -> Outcomes:
    """Every world of the block, at every size."""
    numbers, terms = range(block.first, block.last), block.plan.problem
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
    policies, claims, draws, beliefs = map(joined, zip(*parts, strict=True))
    true = true_gains(models, policies, terms.behavior, terms.value_bounds)
    outcomes = true.gain, claims, draws, beliefs, true.outside

    def by_world(figures: FloatArray) -> FloatArray:
        by_size = figures.reshape(len(block.sizes), len(numbers), *figures.shape[1:])
        return np.ascontiguousarray(by_size.swapaxes(0, 1))

    return Outcomes(*(None if each is None else by_world(each) for each in outcomes))  # type: ignore[arg-type]


def joined(parts: Sequence[Any]) -> Any:
    """Returns the figures of one part after the other; None where there are none."""
    return None if parts[0] is None else np.concatenate(parts)


def at_once(plan: RehearsalPlan, sources: Sequence[Source]) -> Iterator[list[Source]]:
    """Yields sources that follow each other, as many as may be held at a time; one at least.

    Episodes are expected to be as long as those of the problem; a single one is a stream.
    """
    counts, several, held = plan.problem.counts, list[Source](), 0.0
    mean_length = float(counts.visits.sum() / counts.starts.sum())
    for source in sources:
        episodes, horizon = source.size
        rows = horizon if episodes == 1 else episodes * min(horizon, mean_length)
        size = source.world.truth.successor.size + (rows if plan.whole_episodes else 0)
        if several and held + size > MOST_AT_ONCE:
            yield several
            several, held = [], 0.0
        several.append(source)
        held += size
    yield several


def judged(plan: RehearsalPlan, sources: Sequence[Source]) -> Judged:
    """The data of all sources, judged together."""
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
    splitters = next(
        (judges for judges in (certifiers, believers) if judges and holds_out(judges[0])), []
    )
    policies = proposed_each(plan.algorithm, problems, splitters).policy
    claims, draws = claims_and_draws(certifiers, problems, policies)
    beliefs = np.full(len(problems), np.nan)
    if believers:
        beliefs, _ = claims_and_draws(believers, problems, policies)
    elif only_believed(plan.certifier.name):
        beliefs = claims
    return Judged(policies, claims, draws, beliefs)


def seeded(certifier: Certifier, seed: int) -> Certifier:
    """Returns the certifier with a seed of the world's own, where it has one, and few series."""
    own = {"seed": seed} if hasattr(certifier, "seed") else {}
    if hasattr(certifier, "series"):
        own["series"] = min(certifier.series, FEW_SERIES)
    changed: Certifier = replace(certifier, **own)  # type: ignore[type-var]
    return changed


def claims_and_draws(
    certifiers: Sequence[Certifier], problems: list[Problem], policies: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """L [B] and, where it comes from draws, those [B, n]; NaN where the certificate is refused."""
    believers = [certifier for certifier in certifiers if isinstance(certifier, Posterior)]
    if not believers:
        return claimed(certifiers, problems, policies).lower, None
    first = believers[0]
    several = [
        [Policy(problem.counts.pairs, policy)]
        for problem, policy in zip(problems, policies, strict=True)
    ]
    draws = np.stack(
        [
            np.full(first.draws, np.nan) if isinstance(gains, CertificateRefused) else gains[0]
            for gains in gains_each(believers, problems, several)
        ]
    )
    draws.sort(axis=1)
    return draws[:, first.rank - 1], draws


# ---- finished blocks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """A folder of finished blocks; `made_with` says what all of them were made with."""

    folder: Path
    made_with: str = ""  # by default nothing is told; `about` adds what a rehearsal knows

    def about(self, plan: RehearsalPlan) -> KeptBlocks:
        """Returns the blocks of one rehearsal, which know the sources too."""
        return KeptBlocks(self.folder, digest_of((self.made_with, code_here(), plan[:4])))

    def read(self, block: WorldBlock) -> Outcomes | None:
        """Returns the outcomes of a block; None where they have to be found out."""
        kept = BlockFolder(self.folder).read("-".join(map(str, block.place)))
        if kept is None or kept.made_by != self.made_by(block):
            return None
        return Outcomes(**{name: kept.arrays.get(name) for name in Outcomes._fields})  # type: ignore[arg-type]

    def write(self, block: WorldBlock, outcomes: Outcomes) -> None:
        """Keeps what came out of a block."""
        arrays = {name: values for name, values in outcomes._asdict().items() if values is not None}
        BlockFolder(self.folder).write("-".join(map(str, block.place)), self.made_by(block), arrays)

    def made_by(self, block: WorldBlock) -> str:
        """Returns a digest of all that decides what comes out of a block."""
        return digest_of((self.made_with, block.plan.seed, block[1:]))
