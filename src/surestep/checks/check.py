"""Check: what a test found about one assumption of a claim, as facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

CheckCode = Literal[
    "markov-next-state",  # does the step before tell the next state, beyond state and action?
    "markov-reward",  # does it tell the reward, beyond the whole transition?
    "model-returns",  # the model's value of what was done, against what episodes earned
    "drift-next-state",  # do blocks of episodes in time differ in next states?
    "drift-reward",  # … and in rewards?
    "behavior-memory",  # does the step before tell the action, beyond the state?
    "practice-changed",  # do actions differ after the part of the log that told π_b?
    "hidden-causes",  # how strong they would have to be
    "enough-data",  # where the new policy goes, and where the log was
]
Outcome = Literal["passed", "failed", "told", "unchecked"]  # told: a figure, and no test
WhyUnchecked = Literal[
    "no-episodes",  # counts, or loose transitions
    "too-large",  # more rows than are loaded, in few episodes
    "refused",  # counting refuses the log
    "nothing-to-compare",  # no two rows with the same present and another past
    "nothing-varies",  # outcomes are the same wherever they can be compared
    "too-small",  # so few rows would show no effect
    "no-discount",  # nobody said one, or it is 1
    "no-claim",  # no gain is claimed
    "not-assumed",  # the claim stands whatever is hidden
    "no-result",  # a log by itself claims nothing
    "no-change",  # the new policy does what the current one does
    "behavior-given",  # π_b is not estimated
    "behavior-of-all",  # π_b is not estimated from the first part of the log
]
# The figures of each check that is made, beside those that all have.
FIGURES: Mapping[CheckCode, tuple[str, ...]] = {
    "markov-next-state": (),
    "markov-reward": (),
    "model-returns": ("states",),
    "drift-next-state": (),
    "drift-reward": (),
    "behavior-memory": (),
    # Of the new policy over π_b of the rest, in the model of the rest; `has_gain` 0 where none is
    "practice-changed": ("gain", "has_gain"),
    "hidden-causes": ("proved", "estimated", "lower"),  # two break-even ε, and the claim
    "enough-data": (
        *("scarce_share", "scarce_states", "scarce_decisions"),
        *("open_share", "open_states", "open_decisions"),
    ),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a picture: a bar from `low` to `high`, or an interval with a value in it."""

    name: str
    low: float
    high: float
    value: float
    beside: float | None = None  # what the value is compared with
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The finding about one assumption."""

    code: CheckCode
    outcome: Outcome
    why: WhyUnchecked | None = None  # where nothing was checked
    level: float | None = None  # it fails where the p-value is at most that
    p_value: float | None = None
    statistic: float | None = None  # standard deviations from what luck does
    rows: int | None = None  # of the log that were compared
    episodes: tuple[int, int] | None = None  # drawn of how many; None where all were looked at
    one_an_episode: bool | None = None  # whether these are at most one row an episode and group
    # The smallest effect that four of five such logs would show; of returns, what would have failed
    noticed: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    picture: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        """Checks that figures are those of the code, and that only what is unchecked has a why."""
        figures = () if self.outcome == "unchecked" else FIGURES[self.code]
        if sorted(self.figures) != sorted(figures):
            raise ValueError(f"the check {self.code} has the figures {', '.join(self.figures)}")
        if (self.why is None) == (self.outcome == "unchecked"):
            raise ValueError(f"the check {self.code} is {self.outcome}, and the reason {self.why}")

    @classmethod
    def unchecked(cls, code: CheckCode, why: WhyUnchecked) -> Check:
        """Returns that an assumption was not checked, and why."""
        return cls(code=code, outcome="unchecked", why=why)
