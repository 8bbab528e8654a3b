"""The rehearsal: the whole pipeline in worlds where the truth is known."""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray
from surestep._blocks import code_here
from surestep._settings import check_setting
from surestep.algorithms.contract import Improver
from surestep.certificates import Asked, Certifier
from surestep.certificates.posterior import Posterior, fewest_draws, with_few_draws
from surestep.certificates.registry import check_certifier
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
from surestep.rehearsal.result import LIMITS, Calibration, Rehearsal, calibration_of, draws_below
from surestep.rehearsal.sources import size_of
from surestep.rehearsal.worlds import ActionsAlike, WorldKind, default_family, least_of_luck

Progress = Callable[[int, int], None]  # blocks done, blocks in all

SIZES = (0.5, 1.0, 2.0, 5.0, 10.0)
MOST_OF_A_KIND = 1_000_000  # worlds
LARGEST_SIZE = 1_000_000
AGREEMENT = 1e-9  # of the largest value: more than evaluating the truth can be off


class TimeLimit(NamedTuple):
    """A time to stop at, and the least number of worlds of each kind by then."""

    seconds: float
    least_worlds: int = 1


def rehearse(
    problem: Problem,
    algorithm: Improver,
    certifier: Certifier,
    *,
    rng: np.random.Generator | int,
    belief: Posterior | None = None,
    worlds: int = 100,
    sizes: Sequence[float] = SIZES,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Progress | None = None,
    kept: KeptBlocks | None = None,
    time_limit: TimeLimit | None = None,
) -> Rehearsal:
    """Improves and certifies in `worlds` worlds of each kind, at each size, and compares: a test.

    Sizes are multiples of the user's data. A posterior certificate is first calibrated, in as many
    other worlds of the same kinds at size 1. What luck alone would claim is seen in as many worlds
    in which all actions are alike, and so is how often a `belief` is wrong that is held beside the
    certificate; without one it is the claim itself, if that is only believed. With 0 worlds there
    are only these, as few as `least_of_luck`. Nothing but the problem is looked at, and the result
    depends on the generator's state, not on the number of workers.

    `engine` "local" is `workers` processes of this machine, "ray" the cluster at `address`, whose
    machines must have the same code.

    Blocks that `kept` has are not made again, and those that are made are kept there, each as soon
    as it is done. After a time limit the rehearsal is one of as many worlds as were reached, or
    `OutOfTime` where these are too few.
    """
    plan = planned(problem, algorithm, certifier, belief, rng, worlds, family)
    kinds, factors, own_size = plan.kinds, read_sizes(sizes), size_of(problem)
    data_sizes = tuple(own_size.times(factor) for factor in factors)
    least_lucky = least_of_luck(certifier.delta)
    alike = plan._replace(
        kinds=(actions_alike(problem, (certifier, belief)),), worlds=max(worlds, least_lucky)
    )
    calibrates = isinstance(certifier, Posterior) and any(kind.calibrates for kind in kinds)
    stages = [(alike, LUCK, (own_size,)), (plan, REPORTING, data_sizes)]
    if calibrates:
        stages.insert(0, (plan, CALIBRATING, (own_size,)))
    blocks = [block for part, stage, at in stages for block in part.blocks(stage, at)]
    # In rounds, so that all kinds get equally far; but the fewest worlds of luck come before all.
    due = {
        block.place: -1 if block.stage == LUCK and block.first < least_lucky else block.first
        for block in blocks
    }
    blocks.sort(key=lambda block: due[block.place])
    here = None if kept is None else kept.about(plan)
    function = partial(run_elsewhere, code_here()) if engine == "ray" else run_block
    mapped = partial(map_as_done, function, engine=engine, workers=workers, address=address)
    outcomes = run_blocks(blocks, here, mapped, progress, time_limit)
    done = len(outcomes)
    reached = worlds if done == len(blocks) else due[blocks[done].place]
    if time_limit is not None and reached < min(time_limit.least_worlds, worlds):
        raise OutOfTime(
            f"the time limit of {time_limit.seconds:g} s ended the stress test after "
            f"{max(reached, 0)} of {worlds} worlds of each kind, expected at least "
            f"{time_limit.least_worlds}, and all in which luck alone is seen"
        )
    by_place = {block.place: outcome for block, outcome in zip(blocks, outcomes, strict=False)}
    plan, alike = plan._replace(worlds=reached), alike._replace(worlds=max(reached, least_lucky))

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
        family=tuple(kind.name for kind in kinds),
        member=np.repeat(np.arange(len(kinds)), reached),
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


def with_fewest_draws(algorithm: Improver) -> Improver:
    """Returns the same algorithm; posteriors that choose its N∧ have as few draws as beliefs."""
    if not isinstance(algorithm, AutoNWedge):
        return algorithm

    def lighter(judge: Certifier | None) -> Any:
        if not isinstance(judge, Posterior):
            return judge
        return judge.with_draws(fewest_draws(judge.delta))

    chooser, other = lighter(algorithm.certifier), lighter(algorithm.otherwise)
    return replace(algorithm, certifier=chooser, otherwise=other)


def run_blocks(
    blocks: Sequence[WorldBlock],
    kept: KeptBlocks | None,
    mapped: Callable[[Sequence[WorldBlock]], Iterator[tuple[int, Outcomes]]],
    progress: Progress | None,
    time_limit: TimeLimit | None,
) -> list[Outcomes]:
    """Returns the outcomes of the blocks, in order; of the first ones where time was over."""
    until = math.inf if time_limit is None else monotonic() + time_limit.seconds
    outcomes = [None if kept is None else kept.read(block) for block in blocks]
    missing = [place for place, outcome in enumerate(outcomes) if outcome is None]
    made = mapped([blocks[place] for place in missing])
    worlds = np.array([block.last - block.first for block in blocks])
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
    """Runs a block on another machine; refused where that has other code than whoever asks."""
    if code_here() != code:
        raise SurestepError(
            f"{platform.node()} would make a block with other sources or versions than the process "
            "that asks for it; expected the same surestep, Python and packages on all machines"
        )
    return run_block(block)


def actions_alike(problem: Problem, judges: Sequence[Certifier | None]) -> ActionsAlike:
    """Returns the kind of worlds of luck alone, with noise where one of the judges expects some."""
    noises = [
        judge.noise for judge in judges if isinstance(judge, Posterior) and judge.noise is not None
    ]
    return ActionsAlike(noises[0] if noises and not problem.counts.rewards.known else None)


def calibrate(
    problem: Problem,
    algorithm: Improver,
    certifier: Posterior,
    *,
    rng: np.random.Generator | int,
    worlds: int = 100,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
) -> Calibration:
    """The first half of a rehearsal alone: what the worlds leave of a posterior certificate."""
    if not isinstance(certifier, Posterior):
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected one that draws, as "
            "Posterior does: only draws are calibrated"
        )
    plan = planned(problem, algorithm, certifier, None, rng, worlds, family)
    if not any(kind.calibrates for kind in plan.kinds):
        raise InvalidParameter("no kind of world in the family calibrates, expected one that does")
    blocks = plan.blocks(CALIBRATING, (size_of(problem),))
    outcomes = list(map_in_order(run_block, blocks, workers=workers))
    return calibrated(plan, outcomes, tolerance_of(problem))


def tolerance_of(problem: Problem) -> float:
    """Claims and truths this close count as equal."""
    return AGREEMENT * max(abs(bound) for bound in (*problem.value_bounds, 1e-300))


def calibrated(plan: RehearsalPlan, outcomes: list[Outcomes], tolerance: float) -> Calibration:
    """The calibration of a certifier with draws, by the worlds of the first stage."""
    assert isinstance(plan.certifier, Posterior)
    draws = np.concatenate(
        [outcome.draws[:, 0] for outcome in outcomes if outcome.draws is not None]
    )
    gain = np.concatenate([outcome.gain[:, 0] for outcome in outcomes])
    below = draws_below(draws, gain, tolerance).reshape(-1, plan.worlds)
    names = tuple(kind.name for kind in plan.kinds if kind.calibrates)
    return calibration_of(list(below), names, plan.certifier)


def claims_of_rank(calibration: Calibration | None, outcomes: list[Outcomes]) -> FloatArray | None:
    """Returns the claims L by the calibrated rank [W, Z]; None where there is none."""
    if calibration is None or calibration.rank == 0:
        return None
    draws = [outcome.draws for outcome in outcomes if outcome.draws is not None]
    return np.concatenate([drawn[:, :, calibration.rank - 1] for drawn in draws])


def limits_of(problem: Problem, outside: BoolArray) -> tuple[str, ...]:
    """Returns sentences about what the rehearsal does not say."""
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
    belief: Posterior | None,
    rng: np.random.Generator | int,
    worlds: int,
    family: Sequence[WorldKind] | None,
) -> RehearsalPlan:
    """Returns the plan, in which posteriors have few draws; refuses what cannot be rehearsed."""
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
    lighter = with_few_draws(certifier) if isinstance(certifier, Posterior) else certifier
    beside = None if belief is None else replace(belief, draws=fewest_draws(belief.delta))
    seed = int(arrays.generator(rng).integers(2**63 - 1))
    chooser = with_fewest_draws(algorithm)
    return RehearsalPlan(problem, chooser, lighter, beside, kinds, seed, worlds)


def read_family(family: Sequence[WorldKind]) -> tuple[WorldKind, ...]:
    """At least one kind of world, none of them twice."""
    names = [kind.name for kind in family if hasattr(kind, "world")]
    if not family or len(set(names)) < len(family):
        raise InvalidParameter(
            f"family is {family!r:.200}, expected at least one kind of world, and none twice"
        )
    return tuple(family)


def read_sizes(sizes: Sequence[float]) -> tuple[float, ...]:
    """Rising positive multiples of the data."""
    if isinstance(sizes, Sequence) and len(sizes) > 0 and all(map(arrays.is_number, sizes)):
        factors = tuple(float(size) for size in sizes)
        rising = all(a < b for a, b in itertools.pairwise((0.0, *factors)))
        if rising and factors[-1] <= LARGEST_SIZE:
            return factors
    raise InvalidParameter(
        f"sizes is {sizes!r}, expected multiples of the data that rise, such as 1, 2, up to "
        f"{LARGEST_SIZE:,}"
    )
