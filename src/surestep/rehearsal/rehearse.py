"""The rehearsal: the whole pipeline in worlds where the truth is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, expect, expect_count, is_number
from surestep.algorithms import Improver, needs_log
from surestep.certificates import Certifier, Posterior, Trajectory
from surestep.certificates.posterior import with_few_draws
from surestep.certificates.registry import check_certifier
from surestep.errors import InvalidParameter
from surestep.model.problem import Problem
from surestep.parallel import map_in_order
from surestep.rehearsal.block import Block, Outcomes, run_block
from surestep.rehearsal.calibration import Calibration, calibration_of, draws_below
from surestep.rehearsal.collecting import DataSize, size_of
from surestep.rehearsal.result import LIMITS, Rehearsal
from surestep.rehearsal.worlds import ActionsAlike, WorldKind, default_family

Progress = Callable[[int, int], None]  # blocks done, blocks in all

SIZES = (0.5, 1.0, 2.0, 5.0, 10.0)
SMALL = 128  # states up to which worlds are worked on together
TOGETHER = 25  # worlds of a block
CALIBRATING, REPORTING, LUCK = 0, 1, 2  # the stages have worlds of their own
AGREEMENT = 1e-9  # of the largest value: more than evaluating the truth can be off


def rehearse(
    problem: Problem,
    algorithm: Improver,
    certifier: Certifier,
    *,
    rng: np.random.Generator,
    worlds: int = 100,
    sizes: Sequence[float] = SIZES,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Rehearsal:
    """Improves and certifies in `worlds` worlds of each kind, at each size, and compares: a test.

    Sizes are multiples of the user's data. A posterior certificate is first calibrated, in as many
    other worlds of the same kinds at size 1. What luck alone would claim is seen in as many worlds
    in which all actions are alike. Nothing but the problem is looked at, and the result
    depends on the generator's state, not on the number of workers.
    """
    expect("rng", rng, np.random.Generator)
    expect_count("worlds", worlds)
    check_pipeline(problem, algorithm, certifier)
    kinds = default_family(problem, certifier) if family is None else read_family(family)
    factors = read_sizes(sizes)
    own_size = size_of(problem)
    data_sizes = tuple(own_size.times(factor) for factor in factors)
    lighter = with_few_draws(certifier) if isinstance(certifier, Posterior) else certifier
    plan = Plan(problem, algorithm, lighter, kinds, int(rng.integers(2**63 - 1)), worlds)
    calibrates = isinstance(plan.certifier, Posterior) and any(kind.calibrates for kind in kinds)
    stages = [plan.blocks(CALIBRATING, (own_size,))] if calibrates else []
    alike = plan._replace(kinds=(actions_alike(problem, certifier),)).blocks(LUCK, (own_size,))
    blocks = [*stages, alike, plan.blocks(REPORTING, data_sizes)]
    total = sum(map(len, blocks))
    found: list[Outcomes] = []
    for outcome in map_in_order(run_block, itertools.chain(*blocks), workers=workers):
        found.append(outcome)
        if progress is not None:
            progress(len(found), total)
    tolerance = tolerance_of(problem)
    calibration = None
    if calibrates:
        calibration = calibrated(plan, found[: len(blocks[0])], tolerance)
    reported = found[-len(blocks[-1]) :]
    lucky = found[-len(blocks[-1]) - len(alike) : -len(blocks[-1])]
    outside = np.concatenate([each.outside for each in reported]) > tolerance
    return Rehearsal(
        kind=certifier.name,
        delta=certifier.delta,
        family=tuple(kind.name for kind in kinds),
        member=np.repeat(np.arange(len(kinds)), worlds),
        sizes=factors,
        episodes=tuple(size.episodes for size in data_sizes),
        horizon=tuple(size.horizon for size in data_sizes),
        own_episodes=own_size.episodes,
        gain=np.concatenate([each.gain for each in reported]),
        claim=np.concatenate([each.claim for each in reported]),
        calibrated_claim=claims_of_rank(calibration, reported),
        calibration=calibration,
        tolerance=tolerance,
        outside=outside,
        limits=limits_of(problem, outside),
        luck=np.concatenate([each.claim[:, 0] - each.gain[:, 0] for each in lucky]),
    )


def actions_alike(problem: Problem, certifier: Certifier) -> ActionsAlike:
    """Worlds of luck alone, with noise where the certificate expects some."""
    if problem.counts.rewards.known or getattr(certifier, "rewards", None) != "bounded":
        return ActionsAlike()
    assert isinstance(certifier, Posterior)
    return ActionsAlike((float(certifier.reward_low or 0.0), float(certifier.reward_high or 0.0)))


def calibrate(
    problem: Problem,
    algorithm: Improver,
    certifier: Posterior,
    *,
    rng: np.random.Generator,
    worlds: int = 100,
    family: Sequence[WorldKind] | None = None,
    workers: int = 1,
) -> Calibration:
    """The first half of a rehearsal alone: what the worlds leave of a posterior certificate."""
    expect("rng", rng, np.random.Generator)
    expect("certifier", certifier, Posterior)
    expect_count("worlds", worlds)
    check_pipeline(problem, algorithm, certifier)
    kinds = default_family(problem, certifier) if family is None else read_family(family)
    if not any(kind.calibrates for kind in kinds):
        raise InvalidParameter("no kind of world in the family calibrates, expected one that does")
    seed = int(rng.integers(2**63 - 1))
    plan = Plan(problem, algorithm, with_few_draws(certifier), kinds, seed, worlds)
    blocks = plan.blocks(CALIBRATING, (size_of(problem),))
    found = list(map_in_order(run_block, blocks, workers=workers))
    return calibrated(plan, found, tolerance_of(problem))


def tolerance_of(problem: Problem) -> float:
    """Claims and truths this close count as equal."""
    return AGREEMENT * max(abs(bound) for bound in (*problem.value_bounds, 1e-300))


class Plan(NamedTuple):
    """What is rehearsed, in which worlds, and from which seed."""

    problem: Problem
    algorithm: Improver
    certifier: Certifier
    kinds: tuple[WorldKind, ...]
    seed: int
    worlds: int  # of each kind

    def blocks(self, stage: int, sizes: tuple[DataSize, ...]) -> list[Block]:
        """The worlds of a stage, in blocks that do not depend on the number of workers."""
        together = TOGETHER if self.problem.num_states <= SMALL else 1
        whole_episodes = needs_log(self.algorithm) or isinstance(self.certifier, Trajectory)
        return [
            Block(
                problem=self.problem,
                algorithm=self.algorithm,
                certifier=self.certifier,
                kind=kind,
                sizes=sizes,
                whole_episodes=whole_episodes,
                seed=self.seed,
                stage=stage,
                member=member,
                first=first,
                last=min(first + together, self.worlds),
            )
            for member, kind in enumerate(self.kinds)
            if kind.calibrates or stage != CALIBRATING
            for first in range(0, self.worlds, together)
        ]


def calibrated(plan: Plan, outcomes: list[Outcomes], tolerance: float) -> Calibration:
    """The calibration of a certifier with draws, by the worlds of the first stage."""
    assert isinstance(plan.certifier, Posterior)
    draws = np.concatenate([each.draws[:, 0] for each in outcomes if each.draws is not None])
    gain = np.concatenate([each.gain[:, 0] for each in outcomes])
    below = draws_below(draws, gain, tolerance).reshape(-1, plan.worlds)
    names = tuple(kind.name for kind in plan.kinds if kind.calibrates)
    return calibration_of(list(below), names, plan.certifier)


def claims_of_rank(calibration: Calibration | None, outcomes: list[Outcomes]) -> FloatArray | None:
    """What is claimed by the calibrated rank [W, Z]; None where there is none."""
    if calibration is None or calibration.rank == 0:
        return None
    draws = [each.draws for each in outcomes if each.draws is not None]
    return np.concatenate([each[:, :, calibration.rank - 1] for each in draws])


def limits_of(problem: Problem, outside: BoolArray) -> tuple[str, ...]:
    """What the rehearsal does not say."""
    sentences = list(LIMITS)
    if problem.behavior_is_estimated:
        sentences.append("The behavior policy was estimated, but counts as known in every world.")
    if outside.any():
        sentences.append(
            f"In {np.count_nonzero(outside)} of {outside.size} cases a true value lay outside of "
            "the given value bounds; a certificate that relies on them is not to blame there."
        )
    return tuple(sentences)


# ---- reading what a caller hands over ---------------------------------------------------------


def check_pipeline(problem: Problem, algorithm: Improver, certifier: Certifier) -> None:
    """Refuses what cannot be rehearsed."""
    expect("problem", problem, Problem)
    if not hasattr(algorithm, "improve"):
        raise InvalidParameter(f"algorithm is {algorithm!r}, expected one of surestep.algorithms")
    check_certifier(certifier)
    if isinstance(certifier, Trajectory) and certifier.claim == "horizon":
        raise InvalidParameter(
            f"the claim is about the first {certifier.horizon} steps only, but worlds are compared "
            "by ρ; expected claim='performance'"
        )
    if not problem.single_discount < 1:
        raise InvalidParameter(
            f"discount is {problem.discount}, but in some worlds episodes never end; expected less "
            "than 1"
        )


def read_family(family: Sequence[WorldKind]) -> tuple[WorldKind, ...]:
    """At least one kind of world, none of them twice."""
    kinds = tuple(family)
    for kind in kinds:
        if not hasattr(kind, "world"):
            raise InvalidParameter(f"family holds {kind!r}, expected kinds of worlds")
    names = [kind.name for kind in kinds]
    if not kinds or len(set(names)) < len(names):
        raise InvalidParameter(
            f"family is {', '.join(names) or 'empty'}, expected at least one kind of world, and "
            "none twice"
        )
    return kinds


def read_sizes(sizes: Sequence[float]) -> tuple[float, ...]:
    """Rising positive multiples of the data."""
    if not (isinstance(sizes, Sequence) and len(sizes) > 0 and all(map(is_number, sizes))):
        raise InvalidParameter(f"sizes is {sizes!r}, expected multiples of the data, such as 1, 2")
    factors = tuple(float(size) for size in sizes)
    rising = all(a < b for a, b in itertools.pairwise((0.0, *factors)))
    if not rising or not math.isfinite(factors[-1]):
        raise InvalidParameter(f"sizes is {sizes!r}, expected positive numbers that rise")
    return factors
