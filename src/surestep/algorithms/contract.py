"""The contract of an algorithm: settings, one verb, and the promises it makes.

An algorithm *declares* its promises, and one suite of tests holds every algorithm to exactly those.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar, Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._names import unknown
from surestep.errors import InvalidParameter
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.problem import Improvement, Problem


class Promise(Enum):
    """A property that holds for every problem."""

    KEEPS_BEHAVIOR = "keeps π_b without data"
    NEVER_WORSE = "never worse than π_b in the estimated MDP"
    REACHES_OPTIMUM = "reaches the optimum as every pair's visits grow"
    OPTIMAL_IN_CLASS = "optimal in its class of policies"
    RENUMBERING = "values do not depend on the numbers of states and actions"


class Improver(Protocol):
    """Whatever proposes a policy for a problem."""

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy it proposes."""
        ...


class Algorithm(Improver, Protocol):
    """A frozen dataclass of settings with one verb.

    One that looks at whole episodes (`problem.log`) has `looks_at_log` = True besides.
    """

    name: ClassVar[str]  # in the registry and on the command line
    source: ClassVar[str]  # the paper it comes from
    constraint: ClassVar[str]  # what holds for its policies, in words; empty: nothing

    @property
    def promises(self) -> frozenset[Promise]:
        """Returns the promises that it makes with these settings."""
        ...


def check_whole(name: str, value: object, lowest: int, why: str) -> None:
    """Refuses a setting that is no whole number of at least `lowest`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < lowest:  # type: ignore[operator]
        raise InvalidParameter(
            f"{name} is {arrays.shown(value)}, expected a whole number of at least {lowest}: {why}"
        )
    if value > LARGEST_TOTAL:  # type: ignore[operator]
        raise InvalidParameter(
            f"{name} is {arrays.shown(value)}, expected {LARGEST_TOTAL} at most: {why}"
        )


def check_range(name: str, value: object, low: float, high: float, why: str) -> None:
    """Refuses a setting that is no finite number from `low` to `high`, both included."""
    if not (arrays.is_number(value) and math.isfinite(value) and low <= value <= high):
        span = f"from {low:g} to {high:g}" if high < math.inf else f"of at least {low:g}"
        raise InvalidParameter(f"{name} is {arrays.shown(value)}, expected a number {span}: {why}")


def check_delta(value: object) -> None:
    """Refuses a δ outside (0, 1)."""
    if not (arrays.is_number(value) and 0 < value < 1):
        raise InvalidParameter(
            f"delta is {arrays.shown(value)}, expected more than 0 and less than 1: it is the "
            "probability with which the bound behind the setting may fail"
        )


def check_choice(name: str, value: object, choices: tuple[str, ...], why: str) -> None:
    """Refuses a word that is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise unknown(f"{name} is {value!r}", value, choices, f": {why}")
