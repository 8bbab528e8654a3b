"""Runs stress tests: the whole pipeline in worlds where the truth is known.

Worlds of one kind are run in blocks, on data of every size. The outcome of a world depends on the
seed, the stage, the kind and the number of the world alone, never on the block or the worker.

Finished blocks may be kept in a folder, so that a stress test that was interrupted can go on. A
block has a digest of the problem, the settings, the versions and the sources that made it. One with
another digest is made again.
"""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._blocks import BlockFolder, code_here, digest_of
from surestep._settings import check_setting
from surestep.algorithms.contract import Improver
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.episodes import holds_out, needs_episodes
from surestep.certificates.registry import Asked, check_certifier, only_believed
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused, InvalidParameter, OutOfTime, SurestepError
from surestep.kernels.devices import device_in_use
from surestep.model import MDPBatch, Policy, Problem
from surestep.parallel import map_as_done, map_in_threads
from surestep.rehearsal.result import (
    LIMITS,
    Calibration,
    Rehearsal,
    calibrated_rank,
    draws_below,
)
from surestep.rehearsal.sources import DataSize, World, problem_of, size_of
from surestep.rehearsal.worlds import ActionsAlike, WorldKind, default_family
from surestep.trials import claimed, proposed_each, true_gains

Progress = Callable[[int, int], None]  # blocks done, blocks in all

SIZES = (0.5, 1.0, 2.0, 5.0, 10.0)
MOST_OF_A_KIND = 1_000_000  # worlds
LARGEST_SIZE = 1_000_000
AGREEMENT = 1e-9  # of the largest value: more than evaluating the truth can be off
LEAST_OF_LUCK = 10  # worlds with equal actions: beliefs there are always counted
MOST_FOR_DELTA = 100  # of them that a small δ asks for
SMALL = 128  # states up to which worlds are worked on together
TOGETHER = 5  # worlds of a block
TOGETHER_ON_GPU = 250  # a GPU would idle with fewer
# The stages have worlds of their own.
CALIBRATING = 0
REPORTING = 1
LUCK = 2
MOST_AT_ONCE = 2**24  # steps of logs, and transitions of worlds, whose data are held at a time


def rehearse(
    problem: Problem,
    algorithm: Improver,
    certifier: Certifier,
    *,
    rng: np.random.Generator | int,
    belief: Certifier | None = None,
    worlds: int = 100,
    sizes: Sequence[float] = SIZES,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
    made_with: str = "",
    time_limit: float | None = None,
    least_worlds: int = 1,
) -> Rehearsal:
    """Runs a stress test: improves and certifies in worlds where the truth is known, and compares.

    Parameters
    ----------
    problem : Problem
        The data; nothing else is looked at.
    algorithm : Algorithm or AutoNWedge
        The algorithm that proposes policies.
    certifier : Certifier
        The kind of certificate to test. One that calibrates, as a posterior does, is first
        calibrated, in as many other worlds of the same kinds at size 1.
    rng : numpy.random.Generator or int
        The generator, or its seed. The result depends on it, not on the number of workers.
    belief : Certifier, optional
        A certifier beside it, whose claims are only believed; it is counted how often they are
        wrong. Without one these are the claims themselves, if they are only believed.
    worlds : int, default 100
        The number of worlds of each kind, and of worlds in which all actions are alike, where only
        luck can look like a gain. With 0 there are only the latter, as few as δ needs.
    sizes : sequence of float, default (0.5, 1, 2, 5, 10)
        Amounts of data in a world, as multiples of the problem's data.
    family : sequence of WorldKind, optional
        The kinds of worlds; by default `default_family`.
    workers : int, default 1
        The number of processes.
    engine : {"local", "ray"}
        Where to run: on this machine, or on a Ray cluster, whose machines must have the same code.
    address : str, optional
        The address of the cluster.
    progress : callable, optional
        Called with the numbers of worlds that are done and of all worlds.
    folder : Path, optional
        A folder for finished blocks of worlds; those that it has are not made again.
    made_with : str, default ""
        Whatever else decides the outcomes, such as versions; blocks that the folder has from
        something else are made again.
    time_limit : float, optional
        Seconds after which to stop; the result then has as many worlds as were reached.
    least_worlds : int, default 1
        The fewest worlds of each kind that a time limit may leave.

    Returns
    -------
    Rehearsal
        The outcomes of the stress test.

    Raises
    ------
    InvalidParameter
        Where the claim cannot be held against a world, or a setting is wrong.
    OutOfTime
        Where a time limit leaves too few worlds.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> posterior = surestep.certificates.Posterior(draws=19, starts="known")
    >>> found = surestep.rehearse(problem, SPIBB(n_wedge=5), posterior, rng=0, worlds=9, sizes=[1])
    >>> found.worlds, found.summary(1.0).harmed.happened
    (9, 0)
    """
    plan = planned(
        problem, algorithm, certifier, belief=belief, rng=rng, worlds=worlds, family=family
    )
    factors = read_sizes(sizes)
    own_size = size_of(problem)
    data_sizes = tuple(own_size.times(factor) for factor in factors)
    # Enough worlds to measure what luck alone claims in a share δ of them, up to a limit.
    least_lucky = max(LEAST_OF_LUCK, min(arrays.least_draws(certifier.delta), MOST_FOR_DELTA))
    alike = plan._replace(
        kinds=(equal_actions(problem, (certifier, belief)),), worlds=max(worlds, least_lucky)
    )
    calibrates = certifier.calibrates and any(kind.calibrates for kind in plan.kinds)
    blocks = plan.blocks(CALIBRATING, (own_size,)) if calibrates else []
    blocks += [*alike.blocks(LUCK, (own_size,)), *plan.blocks(REPORTING, data_sizes)]
    # In rounds, so that all kinds get equally far; but the fewest worlds of luck come before all.
    due = {
        block.key: -1 if block.stage == LUCK and block.first < least_lucky else block.first
        for block in blocks
    }
    blocks.sort(key=lambda block: due[block.key])
    kept = None if folder is None else BlockFolder(folder)
    if kept is not None:
        made_with = digest_of((made_with, code_here(), plan[:4]))
    function = partial(run_elsewhere, code_here()) if engine == "ray" else run_block
    mapped = partial(map_as_done, function, engine=engine, workers=workers, address=address)
    outcomes = run_blocks(
        blocks,
        mapped,
        kept=kept,
        made_with=made_with,
        progress=progress,
        time_limit=time_limit,
    )
    reached = worlds if len(outcomes) == len(blocks) else due[blocks[len(outcomes)].key]
    if time_limit is not None and reached < min(least_worlds, worlds):
        raise OutOfTime(
            f"the time limit of {time_limit:g} s ended the stress test after {max(reached, 0)} of "
            f"{worlds} worlds of each kind, expected at least {least_worlds}, and all in which "
            "luck alone is seen"
        )
    done = sorted(
        zip(blocks, outcomes, strict=False), key=lambda each: (each[0].member, each[0].first)
    )

    def of_stage(stage: int, number: int) -> list[Outcomes]:
        # After a time limit there may be fewer worlds of a kind than were planned, or done.
        return [
            Outcomes(*(values[: number - block.first] for values in outcome))
            for block, outcome in done
            if block.stage == stage and block.first < number
        ]

    tolerance = tolerance_of(problem)
    plan = plan._replace(worlds=reached)
    calibration = (
        calibrated(plan, of_stage(CALIBRATING, reached), tolerance) if calibrates else None
    )
    reported = of_stage(REPORTING, reached)
    lucky = of_stage(LUCK, max(reached, least_lucky))

    def in_worlds(name: str) -> arrays.FloatArray:
        parts = [getattr(outcome, name) for outcome in reported]
        return np.concatenate([np.zeros((0, len(factors))), *parts])

    def by_luck(name: str) -> arrays.FloatArray:
        return np.concatenate([(getattr(out, name) - out.gain)[:, 0] for out in lucky])

    outside = in_worlds("outside") > tolerance
    return Rehearsal(
        kind=certifier.name,
        delta=certifier.delta,
        family=tuple(kind.name for kind in plan.kinds),
        member=np.repeat(np.arange(len(plan.kinds)), reached),
        sizes=factors,
        episodes=tuple(size.episodes for size in data_sizes),
        horizon=tuple(size.horizon for size in data_sizes),
        own_episodes=own_size.episodes,
        gain=in_worlds("gain"),
        claim=in_worlds("claim"),
        calibrated_claim=claims_of_rank(calibration, reported),
        calibration=calibration,
        tolerance=tolerance,
        outside=outside,
        limits=limits_of(problem, outside),
        luck=by_luck("claim"),
        belief=in_worlds("belief"),
        lucky_belief=by_luck("belief"),
    )


def run_blocks(
    blocks: Sequence[WorldBlock],
    mapped: Callable[[Sequence[WorldBlock]], Generator[tuple[int, Outcomes], None, None]],
    *,
    kept: BlockFolder | None,
    made_with: str,
    progress: Progress | None,
    time_limit: float | None,
) -> list[Outcomes]:
    """Returns the outcomes of the blocks in order, up to the first one unfinished in time.

    `kept` has finished blocks, each with a digest of `made_with` and of all else that decides it.
    """
    until = math.inf if time_limit is None else monotonic() + time_limit

    def code_of(block: WorldBlock) -> str:
        return digest_of((made_with, block.plan.seed, block[1:]))

    outcomes: list[Outcomes | None] = [None] * len(blocks)
    for place, block in enumerate(blocks):
        stored = None if kept is None else kept.read(block.key)
        if stored is not None and stored.made_by == code_of(block):
            outcomes[place] = Outcomes(**stored.arrays)
    missing = [place for place, outcome in enumerate(outcomes) if outcome is None]
    worlds = np.array([block.last - block.first for block in blocks])
    # Closed here: what interrupts the end of the workers is raised, as anywhere else.
    with closing(mapped([blocks[place] for place in missing])) as made:
        for left in range(len(missing), -1, -1):
            if progress is not None:
                done = [outcome is not None for outcome in outcomes]
                progress(int(worlds[done].sum()), int(worlds.sum()))
            if left == 0 or monotonic() >= until:
                break
            number, outcome = next(made)
            place = missing[number]
            if kept is not None:
                kept.write(blocks[place].key, code_of(blocks[place]), outcome._asdict())
            outcomes[place] = outcome
    return list(itertools.takewhile(lambda outcome: outcome is not None, outcomes))  # type: ignore[arg-type]


def run_elsewhere(code: str, block: WorldBlock) -> Outcomes:
    """Runs a block on another machine; refuses a machine whose code differs from this process's."""
    if code_here() != code:
        raise SurestepError(
            f"{platform.node()} would make a block with other sources or versions than the process "
            "that asks for it; expected the same surestep, Python and packages on all machines"
        )
    return run_block(block)


def equal_actions(problem: Problem, judges: Sequence[Certifier | None]) -> ActionsAlike:
    """Returns the kind of worlds with equal actions, with noise if one of the judges expects it."""
    noises = [judge.noise for judge in judges if judge is not None and judge.noise is not None]
    return ActionsAlike(noises[0] if noises and not problem.counts.rewards.known else None)


def calibrate(
    problem: Problem,
    algorithm: Improver,
    certifier: Certifier,
    *,
    rng: np.random.Generator | int,
    worlds: int = 100,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
) -> Calibration:
    """Calibrates a certifier that draws in simulated worlds, without the rest of a stress test.

    Parameters
    ----------
    problem : Problem
        The data.
    algorithm : Algorithm or AutoNWedge
        The algorithm that proposes policies.
    certifier : Certifier
        One that calibrates, such as `Posterior`.
    rng : numpy.random.Generator or int
        The generator, or its seed.
    worlds : int, default 100
        The number of worlds of each kind, at least 1/δ − 1.
    family : sequence of WorldKind, optional
        The kinds of worlds; by default `default_family`.
    workers : int, default 1
        The number of processes.

    Returns
    -------
    Calibration
        The rank that the worlds leave to the certificate.

    Raises
    ------
    InvalidParameter
        Where the certifier, or no kind of world, calibrates.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[0, 30], [0, 20]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.9, value_bounds=(0.0, 1.0))
    >>> posterior = surestep.certificates.Posterior(draws=19, starts="known")
    >>> surestep.rehearsal.calibrate(problem, SPIBB(n_wedge=5), posterior, rng=0, worlds=19).rank
    2
    """
    plan = planned(problem, algorithm, certifier, rng=rng, worlds=worlds, family=family)
    if not certifier.calibrates:
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected one that draws, as "
            "Posterior does: only draws are calibrated"
        )
    if not any(kind.calibrates for kind in plan.kinds):
        raise InvalidParameter("no kind of world in the family calibrates, expected one that does")
    made = map_as_done(run_block, plan.blocks(CALIBRATING, (size_of(problem),)), workers=workers)
    return calibrated(plan, [outcomes for _, outcomes in made], tolerance_of(problem))


def tolerance_of(problem: Problem) -> float:
    """Returns the difference up to which claims and truths count as equal."""
    return AGREEMENT * max(abs(bound) for bound in (*problem.value_bounds, 1e-300))


def calibrated(plan: RehearsalPlan, outcomes: list[Outcomes], tolerance: float) -> Calibration:
    """Returns the calibration of a certifier, by the worlds of the first stage."""
    draws = np.concatenate([outcome.draws[:, 0] for outcome in outcomes])
    gain = np.concatenate([outcome.gain[:, 0] for outcome in outcomes])
    below = draws_below(draws, gain, tolerance).reshape(-1, plan.worlds)
    names = tuple(kind.name for kind in plan.kinds if kind.calibrates)
    judge = plan.certifier
    return Calibration(
        judge.draws,
        judge.rank,
        tuple(calibrated_rank(counted, judge.draws, judge.delta) for counted in below),
        names,
    )


def claims_of_rank(
    calibration: Calibration | None, outcomes: list[Outcomes]
) -> arrays.FloatArray | None:
    """Returns the claims L [W, Z] by the calibrated rank; None without calibration."""
    if calibration is None or calibration.rank == 0:
        return None
    return np.concatenate([outcome.draws[:, :, calibration.rank - 1] for outcome in outcomes])


def limits_of(problem: Problem, outside: arrays.BoolArray) -> tuple[str, ...]:
    """Returns sentences about the limits of the stress test."""
    sentences = list(LIMITS)
    if problem.behavior_is_estimated:
        sentences.append("The behavior policy was estimated, but counts as known in every world.")
    if problem.single_discount == 1:
        sentences.append(
            "Worlds in which the behavior policy may never end are left out, and a new policy that "
            "may never end counts as worth the lower value bound in every state."
        )
    if outside.any():
        sentences.append(
            f"In {np.count_nonzero(outside)} of {outside.size} cases a true value lay outside of "
            "the given value bounds; a certificate that relies on them is not to blame there."
        )
    return tuple(sentences)


# ---- reading what a caller hands over ---------------------------------------------------------


def planned(
    problem: Problem,
    algorithm: Improver,
    certifier: Certifier,
    *,
    rng: np.random.Generator | int,
    worlds: int,
    family: Sequence[WorldKind] | None,
    belief: Certifier | None = None,
) -> RehearsalPlan:
    """Checks the arguments of a stress test; returns its plan, with lighter certifiers."""
    arrays.expect("problem", problem, Problem)
    if not hasattr(algorithm, "improve"):
        raise InvalidParameter(f"algorithm is {algorithm!r}, expected one of surestep.algorithms")
    check_certifier(certifier)
    if obstacle := Asked.of(certifier).why_not_rehearsed:
        raise InvalidParameter(f"{obstacle}; expected a claim about ρ")
    check_setting("worlds", worlds, Annotated[int, Meta(ge=0, le=MOST_OF_A_KIND)])
    kinds: tuple[WorldKind, ...] = ()
    if worlds > 0:
        kinds = default_family(problem, certifier) if family is None else tuple(family)
        names = [kind.name for kind in kinds if hasattr(kind, "world")]
        if not kinds or len(set(names)) < len(kinds):
            raise InvalidParameter(
                f"family is {family!r:.200}, expected at least one kind of world, and none twice"
            )
    return RehearsalPlan(
        problem,
        algorithm.lighter() if isinstance(algorithm, AutoNWedge) else algorithm,
        certifier.lighter(),
        None if belief is None else belief.lightest(),
        kinds,
        int(arrays.generator(rng).integers(2**63 - 1)),
        worlds,
    )


def read_sizes(sizes: Sequence[float]) -> tuple[float, ...]:
    """Returns sizes as numbers; refuses all but positive multiples that rise."""
    if isinstance(sizes, Sequence) and len(sizes) > 0 and all(map(arrays.is_number, sizes)):
        factors = tuple(float(size) for size in sizes)
        rising = all(a < b for a, b in itertools.pairwise((0.0, *factors)))
        if rising and factors[-1] <= LARGEST_SIZE:
            return factors
    raise InvalidParameter(
        f"sizes is {sizes!r}, expected multiples of the data that rise, such as 1, 2, up to "
        f"{LARGEST_SIZE:,}"
    )


# ---- worlds in blocks ---------------------------------------------------------------------------


class RehearsalPlan(NamedTuple):
    """The plan of a stress test: the pipeline to run, the worlds, and the seed."""

    problem: Problem
    algorithm: Improver
    certifier: Certifier
    belief: Certifier | None  # a second certifier, whose claims are beliefs
    kinds: tuple[WorldKind, ...]
    seed: int
    worlds: int  # of each kind

    @property
    def whole_episodes(self) -> bool:
        """Tells whether the pipeline looks at whole episodes, so that counts are not enough."""
        return needs_log(self.algorithm) or any(
            judge is not None and needs_episodes(judge) for judge in (self.certifier, self.belief)
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
    def key(self) -> str:
        """Returns the name of the block, and of its file: stage, kind and first world."""
        return f"{self.stage}-{self.member}-{self.first}"

    def rng(self, world: int, part: int) -> np.random.Generator:
        """Returns the generator of one part of a world: the truth (0), or data of a size (1 …)."""
        return np.random.default_rng(
            np.random.SeedSequence(self.plan.seed, spawn_key=(self.stage, self.member, world, part))
        )


class Source(NamedTuple):
    """A world, the amount of data to collect there, and the generator to do so."""

    world: World
    size: DataSize
    rng: np.random.Generator


class Outcomes(NamedTuple):
    """The true gains and the claims of a stress test, by world [B] and data size [Z]."""

    gain: arrays.FloatArray  # [B, Z] the true Δ of the policy that the pipeline proposed
    claim: arrays.FloatArray  # [B, Z] L; NaN where none was made
    draws: (
        arrays.FloatArray
    )  # [B, Z, n] the Δ_k behind the claim, sorted, NaN where none was made; or n 0
    belief: arrays.FloatArray  # [B, Z] L of the belief; NaN where there is none
    outside: (
        arrays.FloatArray
    )  # [B, Z] by how much a true value lies outside of the value bounds, or 0


def run_block(block: WorldBlock) -> Outcomes:
    """Runs the pipeline in every world of the block, at every size."""
    numbers = range(block.first, block.last)
    terms = block.plan.problem
    different = numbers[:1] if block.kind.is_one_world else numbers
    worlds = [block.kind.world(terms, block.rng(number, 0)) for number in different]
    models = MDPBatch.from_models([world.truth for world in worlds])
    sources = [
        Source(world, size, block.rng(number, 1 + z))
        for z, size in enumerate(block.sizes)
        for number, world in zip(numbers, itertools.cycle(worlds), strict=False)
    ]
    parts = [judged(block.plan, several) for several in at_once(block.plan, sources)]
    policies, claim, draws, belief = map(np.concatenate, zip(*parts, strict=True))
    true = true_gains(models, policies, terms.behavior, terms.value_bounds)

    def by_world(every: arrays.FloatArray) -> arrays.FloatArray:
        by_size = every.reshape(len(block.sizes), len(numbers), *every.shape[1:])
        return np.ascontiguousarray(by_size.swapaxes(0, 1))

    return Outcomes(*map(by_world, (true.gain, claim, draws, belief, true.outside)))


def at_once(plan: RehearsalPlan, sources: Sequence[Source]) -> list[list[Source]]:
    """Groups consecutive sources so that the data of each group fit in memory.

    A group exceeds the limit by less than one source. Episodes are expected to be as long as those
    of the problem; a single episode takes all its steps.
    """
    mean_length = float(plan.problem.counts.visits.sum() / plan.problem.counts.starts.sum())
    groups: dict[int, list[Source]] = {}
    held = 0.0
    for source in sources:
        groups.setdefault(int(held // MOST_AT_ONCE), []).append(source)
        episodes, horizon = source.size
        rows = horizon if episodes == 1 else episodes * min(horizon, mean_length)
        held += source.world.truth.successor.size + (rows if plan.whole_episodes else 0)
    return [*groups.values()]


def judged(
    plan: RehearsalPlan, sources: Sequence[Source]
) -> tuple[arrays.FloatArray, arrays.FloatArray, arrays.FloatArray, arrays.FloatArray]:
    """Collects the data of all sources; proposes policies and makes claims for all together.

    Returns the policies [B, K], the claims [B], the draws [B, n] behind them, and the beliefs [B].
    """
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
    # With equal seeds, since a seed may decide which part of the log chooses.
    believers = [] if plan.belief is None else [seeded(plan.belief, seed) for seed in seeds]
    splitters = next((one for one in (certifiers, believers) if one and holds_out(one[0])), [])
    policies = proposed_each(plan.algorithm, problems, splitters).policy
    claims, draws = claims_and_draws(certifiers, problems, policies)
    beliefs = np.full(len(problems), np.nan)
    if believers:
        beliefs, _ = claims_and_draws(believers, problems, policies)
    elif only_believed(plan.certifier.name):
        beliefs = claims
    return policies, claims, draws, beliefs


def seeded(certifier: Certifier, seed: int) -> Certifier:
    """Returns the certifier with this seed, if it has a seed."""
    own = {"seed": seed} if hasattr(certifier, "seed") else {}
    return replace(certifier, **own)  # type: ignore[type-var]


def claims_and_draws(
    certifiers: Sequence[Certifier], problems: list[Problem], policies: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns L [B], and the sorted draws [B, n] of kinds that calibrate; NaN where refused.

    Other kinds have no draws: n is 0.
    """
    first = certifiers[0]
    if not first.calibrates:
        return claimed(certifiers, problems, policies).lower, np.empty((len(problems), 0))
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
