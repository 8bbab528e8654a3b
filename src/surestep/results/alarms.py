"""Alarms: facts about a result that a reader must see first, as codes with their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from surestep._arrays import is_number

AlarmCode = Literal[
    "claim-above-estimate",
    "claim-above-returns",  # more than the log's episodes earned is claimed
    "time-in-scarce-states",  # most of the new policy's time, while the log is hardly there
    "time-in-open-bins",  # the same for bins that are open to one side
    "baseline-gap",  # between what the model says of π_b, and what its episodes earned
    "bounds-from-data",  # a proof rests on value bounds that were read off the data
    "rewards-vary",  # a claim takes rewards for exact that vary
    "first-on-few",  # first choices in changed states rest on few decisions
]
FIGURES: Mapping[AlarmCode, tuple[str, ...]] = {
    "claim-above-estimate": ("claim", "estimate"),
    "claim-above-returns": ("claim", "low", "high"),
    "time-in-scarce-states": ("share", "decisions"),
    "time-in-open-bins": ("share", "decisions"),
    "baseline-gap": ("model", "low", "high"),
    "bounds-from-data": ("low", "high"),
    "rewards-vary": (),
    "first-on-few": ("situations", "visits", "decisions"),  # the last two of the worst of them
}


class Alarm(NamedTuple):
    """A code, and the numbers that its sentence is made of."""

    code: AlarmCode
    figures: Mapping[str, float]

    @classmethod
    def read(cls, content: object) -> Alarm:
        """Reads what a record holds; ValueError where that is no alarm."""
        if not isinstance(content, dict) or set(content) != {"code", "figures"}:
            raise ValueError(f"an alarm is {content!r}")
        code, figures = content["code"], content["figures"]
        known = isinstance(code, str) and code in FIGURES
        if not known or not isinstance(figures, dict) or sorted(figures) != sorted(FIGURES[code]):
            raise ValueError(f"an alarm is {content!r}")
        if not all(is_number(figure) and math.isfinite(figure) for figure in figures.values()):
            raise ValueError(f"an alarm is {content!r}")
        return cls(code, figures)
