"""What other settings would have given: another N∧, another δ, and any number of visits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from surestep.algorithms import Algorithm
from surestep.bounds import BOUNDS, zeta
from surestep.certificates import Certifier
from surestep.errors import SurestepError
from surestep.model import Problem
from surestep.model.problem import Improvement
from surestep.pipeline.certifying import certified, certifier_for, with_delta
from surestep.results.findings import DeltaPoint, NWedgePoint, ZetaCurve

N_WEDGE_SETTINGS = ("n_wedge", "spibb_n_wedge")
DELTAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
LARGEST_POWER = 12  # ζ is drawn for up to 10¹² visits
NO_CLAIM = "no-claim"


def n_wedge_setting(algorithm: Any) -> str | None:
    """The setting that says N∧, where the algorithm, or the class of one, has it."""
    names = [field.name for field in dataclasses.fields(algorithm)]
    return next((name for name in N_WEDGE_SETTINGS if name in names), None)


def n_wedge_grid(most_visits: int, used: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, … up to the first that trusts no pair, and the one that was used.

    >>> n_wedge_grid(80, 7)
    (1, 2, 5, 7, 10, 20, 50, 100)
    """
    grid = [digit * 10**power for power in range(19) for digit in (1, 2, 5)]
    enough = next(i for i, n_wedge in enumerate(grid) if n_wedge >= most_visits)
    return tuple(sorted({*grid[: enough + 1], used}))


def n_wedge_curve(
    problem: Problem,
    algorithm: Algorithm,
    gain_of: Callable[[Improvement], float],
    delta: float,
    progress: Callable[[int, int], None],
) -> tuple[NWedgePoint, ...]:
    """The whole improvement once more for every N∧ of a grid; nothing where there is no N∧."""
    setting = n_wedge_setting(algorithm)
    if setting is None:
        return ()
    visits = problem.counts.visits
    grid = n_wedge_grid(int(visits.max()), max(1, getattr(algorithm, setting)))
    points = []
    for done, n_wedge in enumerate(grid):
        progress(done, len(grid))
        changed: Algorithm = dataclasses.replace(algorithm, **{setting: n_wedge})  # type: ignore[type-var]
        improvement = changed.improve(problem)
        claim = certified(problem, improvement, certifier_for(changed, improvement, delta))
        used = n_wedge if improvement.n_wedge is None else improvement.n_wedge
        points.append(
            NWedgePoint(
                n_wedge,
                int((visits > used).sum()),
                gain_of(improvement),
                None if claim.kind == NO_CLAIM else claim.lower,
            )
        )
    progress(len(grid), len(grid))
    return tuple(points)


def delta_curve(
    problem: Problem, improvement: Improvement, certifier: Certifier
) -> tuple[DeltaPoint, ...]:
    """L of the same policy at other levels; nothing where the certifier refuses it."""
    levels = sorted({*DELTAS, certifier.delta})
    claims = [certified(problem, improvement, with_delta(certifier, delta)) for delta in levels]
    return tuple(
        DeltaPoint(delta, claim.lower)
        for delta, claim in zip(levels, claims, strict=True)
        if claim.kind != NO_CLAIM
    )


def zeta_curves(problem: Problem, delta: float) -> tuple[ZetaCurve, ...]:
    """ζ of every bound over the number of visits, without any gain; none where γ has no bound."""
    visits = tuple(digit * 10**power for power in range(LARGEST_POWER) for digit in (1, 2, 5))
    curves = []
    for name, bound in BOUNDS.items():
        try:
            losses = tuple(
                zeta(
                    name,
                    count,
                    states=problem.num_states,
                    actions=problem.num_actions,
                    value_bound=problem.value_bound,
                    discount=problem.single_discount,
                    delta=delta,
                )
                for count in visits
            )
        except SurestepError:  # γ is 0 or 1, or all values are 0: the bound says why elsewhere
            continue
        curves.append(ZetaCurve(name, bound.standing, visits, losses))
    return tuple(curves)
