"""Alarms: facts about a result that a reader must see first, as codes with their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

AlarmCode = Literal[
    "claim-above-estimate",  # claim, estimate
    "claim-above-returns",  # claim, low, high: more than the log's episodes earned is claimed
    "time-in-scarce-states",  # share of the new policy's time, decisions of the log there
    "time-in-open-bins",  # the same for bins that are open to one side
    "baseline-gap",  # model, low, high: what the model says of π_b, and what its episodes earned
    "bounds-from-data",  # low, high: a proof rests on value bounds that were read off the data
    "rewards-vary",  # a claim takes rewards for exact that vary
    "first-on-few",  # changed states whose first choice rests on few decisions; visits, decisions
]


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
        numbers = isinstance(figures, dict) and all(
            isinstance(each, int | float) and not isinstance(each, bool)
            for each in figures.values()
        )
        if code not in get_args(AlarmCode) or not numbers:
            raise ValueError(f"an alarm is {content!r}")
        return cls(code, figures)
