"""Alarms: facts about a result that a reader must see first, as codes with their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from surestep.model import Certificate

AlarmCode = Literal[
    "claim-above-estimate",
    "claim-above-returns",  # more than the log's episodes earned is claimed
    "time-in-scarce-states",  # most of the new policy's time, while the log is hardly there
    "time-in-open-bins",  # the same for bins that are open to one side
    "baseline-gap",  # between what the model says of π_b, and what its episodes earned
    "rewards-vary",  # a claim takes rewards for exact that vary
    "acted-on-more",  # a claim rests on states, and whoever acted looked at more than these
    "first-on-few",  # first choices in changed states rest on few decisions
    "not-markov",  # the step before tells the next state, beyond state and action
    "rewards-remember",  # … or the reward
    "values-off",  # the model's values are not what episodes earned from there on
    "drift",  # late episodes go on otherwise than early ones
    "reward-drift",  # … or pay otherwise
    "behavior-remembers",  # the step before tells the action, beyond the state
    "practice-changed",  # actions differ since the part of the log that told π_b
]
FIGURES: Mapping[AlarmCode, tuple[str, ...]] = {
    "claim-above-estimate": ("claim", "estimate"),
    "claim-above-returns": ("claim", "low", "high"),
    "time-in-scarce-states": ("share", "decisions"),
    "time-in-open-bins": ("share", "decisions"),
    "baseline-gap": ("model", "low", "high"),
    "rewards-vary": (),
    "acted-on-more": (),
    "first-on-few": ("situations", "visits", "decisions"),  # the last two of the worst of them
    "not-markov": ("p_value", "level"),
    "rewards-remember": ("p_value", "level"),
    "values-off": ("p_value", "level"),
    "drift": ("p_value", "level"),
    "reward-drift": ("p_value", "level"),
    "behavior-remembers": ("p_value", "level"),
    "practice-changed": ("p_value", "level"),
}

# The assumption of a claim that an alarm is evidence against.
SPEAKS_AGAINST: Mapping[AlarmCode, str] = {
    "acted-on-more": "no-hidden-causes",
    "behavior-remembers": "no-hidden-causes",
    "not-markov": "markov",
    "rewards-remember": "markov",
    "values-off": "markov",
    "drift": "markov",
    "reward-drift": "markov",
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """A code, and the numbers that its sentence is made of."""

    code: AlarmCode
    figures: Mapping[str, float | int]

    def __post_init__(self) -> None:
        """Checks that the figures are those of the code."""
        if sorted(self.figures) != sorted(FIGURES[self.code]):
            raise ValueError(f"the alarm {self.code} has the figures {', '.join(self.figures)}")


def doubts(certificate: Certificate, alarms: Sequence[Alarm]) -> int:
    """Counts the alarms by which the log speaks against something that the certificate assumes."""
    assumed = {assumption.code for assumption in certificate.assumptions}
    return sum(SPEAKS_AGAINST.get(alarm.code) in assumed for alarm in alarms)
