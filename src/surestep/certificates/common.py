"""The checks and assumptions that several kinds of certificates share."""

from __future__ import annotations

from dataclasses import dataclass

import surestep._arrays as arrays
from surestep.errors import InvalidParameter
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.problem import Problem
from surestep.model.statements import Statement

LARGEST = 1e150  # rewards up to here have squares that are doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The needs of a kind of certificate beside counts; one that holds out has `training`."""

    episodes: bool = False  # the log itself, not its counts alone
    held_out: bool = False  # a part of the log that had no part in choosing the policy
    return_bounds: bool = False  # bounds on the returns of single episodes
    exact_rewards: bool = False  # rewards that are known: means of others count as exact
    calibration: bool = False  # worlds in which its draws are calibrated; see `Believer`


def check_delta(delta: object) -> None:
    """Refuses a δ outside (0, 1)."""
    if not (arrays.is_number(delta) and 0 < delta < 1):
        raise InvalidParameter(
            f"delta is {arrays.shown(delta)}, expected more than 0 and less than 1"
        )


def check_n_wedge(n_wedge: object) -> None:
    """Refuses an N∧ that is no count, or more than any log can have; None leaves it open."""
    if n_wedge is None:
        return
    arrays.expect_count("n_wedge", n_wedge)
    if n_wedge > LARGEST_TOTAL:  # type: ignore[operator]
        raise InvalidParameter(f"n_wedge is above {LARGEST_TOTAL}, which no log can reach")


def log_statements(problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions of every claim by counts about the log and who made it."""
    return (
        Statement("markov"),
        Statement("no-hidden-causes"),
        Statement("nothing-beyond-given"),
        Statement("behavior-estimated")
        if problem.behavior_is_estimated
        else Statement("behavior-known"),
    )


def values_statement(problem: Problem) -> Statement:
    """Returns the assumption that every value lies within the bounds of the problem."""
    low, high = problem.value_bounds
    return Statement("values-bounded", {"low": low, "high": high})
