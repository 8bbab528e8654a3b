"""Runs stress tests: the whole pipeline in worlds where the truth is known."""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray
from surestep._blocks import code_here
from surestep._settings import check_setting
from surestep.algorithms.contract import Improver
from surestep.certificates import Certifier
from surestep.certificates.registry import Asked, check_certifier
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import InvalidParameter, OutOfTime, SurestepError
from surestep.model.problem import Problem
from surestep.parallel import map_as_done, map_in_order
from surestep.rehearsal.block import (
    CALIBRATING,
    LUCK,
    REPORTING,
    KeptBlocks,
    Outcomes,
    RehearsalPlan,
    WorldBlock,
    run_block,
)
from surestep.rehearsal.result import (
    LIMITS,
    Calibration,
    Rehearsal,
    calibrated_rank,
    draws_below,
)
from surestep.rehearsal.sources import size_of
from surestep.rehearsal.worlds import ActionsAlike, WorldKind, default_family, least_of_luck

Progress = Callable[[int, int], None]  # blocks done, blocks in all

SIZES = (0.5, 1.0, 2.0, 5.0, 10.0)
MOST_OF_A_KIND = 1_000_000  # worlds
LARGEST_SIZE = 1_000_000
AGREEMENT = 1e-9  # of the largest value: more than evaluating the truth can be off


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
    least_lucky = least_of_luck(certifier.delta)
    alike = plan._replace(
        kinds=(equal_actions(problem, (certifier, belief)),), worlds=max(worlds, least_lucky)
    )
    calibrates = certifier.calibrates and any(kind.calibrates for kind in plan.kinds)
    blocks = plan.blocks(CALIBRATING, (own_size,)) if calibrates else []
    blocks += [*alike.blocks(LUCK, (own_size,)), *plan.blocks(REPORTING, data_sizes)]
    # In rounds, so that all kinds get equally far; but the fewest worlds of luck come before all.
    due = {
        block.place: -1 if block.stage == LUCK and block.first < least_lucky else block.first
        for block in blocks
    }
    blocks.sort(key=lambda block: due[block.place])
    kept = None if folder is None else KeptBlocks(folder, made_with).about(plan)
    function = partial(run_elsewhere, code_here()) if engine == "ray" else run_block
    mapped = partial(map_as_done, function, engine=engine, workers=workers, address=address)
    outcomes = run_blocks(blocks, kept, mapped, progress, time_limit)
    reached = worlds if len(outcomes) == len(blocks) else due[blocks[len(outcomes)].place]
    if time_limit is not None and reached < min(least_worlds, worlds):
        raise OutOfTime(
            f"the time limit of {time_limit:g} s ended the stress test after {max(reached, 0)} of "
            f"{worlds} worlds of each kind, expected at least {least_worlds}, and all in which "
            "luck alone is seen"
        )
    by_place = {block.place: outcome for block, outcome in zip(blocks, outcomes, strict=False)}
    plan = plan._replace(worlds=reached)
    alike = alike._replace(worlds=max(reached, least_lucky))

    def of_stage(part: RehearsalPlan, stage: int) -> list[Outcomes]:
        # The last block may have been planned for more worlds than there are after a time limit.
        return [
            by_place[block.place].of_first(block.last - block.first)
            for block in part.blocks(stage, ())
        ]

    tolerance = tolerance_of(problem)
    calibration = None
    if calibrates:
        calibration = calibrated(plan, of_stage(plan, CALIBRATING), tolerance)
    reported, lucky = of_stage(plan, REPORTING), of_stage(alike, LUCK)

    def in_worlds(name: str) -> FloatArray:
        parts = [getattr(outcome, name) for outcome in reported]
        return np.concatenate([np.zeros((0, len(factors))), *parts])

    def by_luck(name: str) -> FloatArray:
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
    kept: KeptBlocks | None,
    mapped: Callable[[Sequence[WorldBlock]], Generator[tuple[int, Outcomes], None, None]],
    progress: Progress | None,
    time_limit: float | None,
) -> list[Outcomes]:
    """Returns the outcomes of the blocks, in order; of the first ones where time was over."""
    until = math.inf if time_limit is None else monotonic() + time_limit
    outcomes = [None if kept is None else kept.read(block) for block in blocks]
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
                kept.write(blocks[place], outcome)
            outcomes[place] = outcome
    return list(itertools.takewhile(lambda outcome: outcome is not None, outcomes))  # type: ignore[arg-type]


def run_elsewhere(code: str, block: WorldBlock) -> Outcomes:
    """Runs a block on another machine; refused where that has other code than this process."""
    if code_here() != code:
        raise SurestepError(
            f"{platform.node()} would make a block with other sources or versions than the process "
            "that asks for it; expected the same surestep, Python and packages on all machines"
        )
    return run_block(block)


def equal_actions(problem: Problem, judges: Sequence[Certifier | None]) -> ActionsAlike:
    """Returns the kind of worlds of luck alone, with noise where one of the judges expects some."""
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
    check_certifier(certifier)
    if not certifier.calibrates:
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected one that draws, as "
            "Posterior does: only draws are calibrated"
        )
    plan = planned(problem, algorithm, certifier, rng=rng, worlds=worlds, family=family)
    if not any(kind.calibrates for kind in plan.kinds):
        raise InvalidParameter("no kind of world in the family calibrates, expected one that does")
    blocks = plan.blocks(CALIBRATING, (size_of(problem),))
    outcomes = list(map_in_order(run_block, blocks, workers=workers))
    return calibrated(plan, outcomes, tolerance_of(problem))


def tolerance_of(problem: Problem) -> float:
    """Returns the difference up to which claims and truths count as equal."""
    return AGREEMENT * max(abs(bound) for bound in (*problem.value_bounds, 1e-300))


def calibrated(plan: RehearsalPlan, outcomes: list[Outcomes], tolerance: float) -> Calibration:
    """Returns the calibration of a certifier, by the worlds of the first stage."""
    draws = np.concatenate(
        [outcome.draws[:, 0] for outcome in outcomes if outcome.draws is not None]
    )
    gain = np.concatenate([outcome.gain[:, 0] for outcome in outcomes])
    below = draws_below(draws, gain, tolerance).reshape(-1, plan.worlds)
    names = tuple(kind.name for kind in plan.kinds if kind.calibrates)
    judge = plan.certifier
    ranks = tuple(calibrated_rank(counted, judge.draws, judge.delta) for counted in below)
    return Calibration(judge.draws, judge.rank, ranks, names)


def claims_of_rank(calibration: Calibration | None, outcomes: list[Outcomes]) -> FloatArray | None:
    """Returns the claims L by the calibrated rank [W, Z]; None where there is none."""
    if calibration is None or calibration.rank == 0:
        return None
    draws = [outcome.draws for outcome in outcomes if outcome.draws is not None]
    return np.concatenate([drawn[:, :, calibration.rank - 1] for drawn in draws])


def limits_of(problem: Problem, outside: BoolArray) -> tuple[str, ...]:
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
    """Checks the arguments of a stress test; returns its plan, in which certifiers are lighter."""
    arrays.expect("problem", problem, Problem)
    if not hasattr(algorithm, "improve"):
        raise InvalidParameter(f"algorithm is {algorithm!r}, expected one of surestep.algorithms")
    check_certifier(certifier)
    if obstacle := Asked.of(certifier).why_not_rehearsed:
        raise InvalidParameter(f"{obstacle}; expected a claim about ρ")
    check_setting("worlds", worlds, Annotated[int, Meta(ge=0, le=MOST_OF_A_KIND)])
    kinds: tuple[WorldKind, ...] = ()
    if worlds > 0:
        kinds = default_family(problem, certifier) if family is None else read_family(family)
    return RehearsalPlan(
        problem,
        algorithm.lighter() if isinstance(algorithm, AutoNWedge) else algorithm,
        certifier.lighter(),
        None if belief is None else belief.lightest(),
        kinds,
        int(arrays.generator(rng).integers(2**63 - 1)),
        worlds,
    )


def read_family(family: Sequence[WorldKind]) -> tuple[WorldKind, ...]:
    """Returns the kinds of worlds; refuses none, and one that comes twice."""
    names = [kind.name for kind in family if hasattr(kind, "world")]
    if not family or len(set(names)) < len(family):
        raise InvalidParameter(
            f"family is {family!r:.200}, expected at least one kind of world, and none twice"
        )
    return tuple(family)


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
