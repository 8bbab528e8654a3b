"""Check: what a test found about one assumption of a claim, as facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from surestep._arrays import is_number

CheckCode = Literal[
    "markov-next-state",  # does the step before tell the next state, beyond state and action?
    "markov-reward",  # does it tell the reward, beyond the whole transition?
    "model-returns",  # the model's value of what was done, against what episodes earned
    "drift-next-state",  # do early and late episodes differ in next states?
    "drift-reward",  # … and in rewards?
    "behavior-memory",  # does the step before tell the action, beyond the state?
    "hidden-causes",  # how strong they would have to be
    "enough-data",  # where the new policy goes, and where the log was
    "other-cuts",  # the gain with half and twice the bins
]
Outcome = Literal["passed", "failed", "told", "unchecked"]  # told: a figure, and no test
WhyUnchecked = Literal[
    "no-episodes",  # counts, or loose transitions
    "too-large",  # more rows than are loaded
    "refused",  # counting refuses the log
    "nothing-to-compare",  # no two rows with the same present and another past
    "nothing-varies",  # outcomes are the same wherever they can be compared
    "no-discount",  # nobody said one, or it is 1
    "no-claim",  # no gain is claimed
    "no-result",  # a log by itself claims nothing
    "no-bins",  # no column is binned by a rule
    "no-source",  # the log cannot be read again
    "no-change",  # the new policy does what the current one does
]
# The figures of each check that is made, beside those that all have.
FIGURES: Mapping[CheckCode, tuple[str, ...]] = {
    "markov-next-state": (),
    "markov-reward": (),
    "model-returns": ("states",),
    "drift-next-state": (),
    "drift-reward": (),
    "behavior-memory": (),
    "hidden-causes": ("proved", "estimated", "lower"),  # two break-even ε, and the claim
    "enough-data": (
        *("scarce_share", "scarce_states", "scarce_decisions"),
        *("open_share", "open_states", "open_decisions"),
    ),
    "other-cuts": ("half", "own", "twice", "claim"),
}


class Mark(NamedTuple):
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
    one_an_episode: bool | None = None  # whether these are at most one row an episode and group
    noticed: float | None = None  # the smallest effect that four of five such logs would show
    figures: Mapping[str, float] = field(default_factory=dict)
    picture: tuple[Mark, ...] = ()

    @classmethod
    def unchecked(cls, code: CheckCode, why: WhyUnchecked) -> Check:
        """Returns that an assumption was not checked, and why."""
        return cls(code=code, outcome="unchecked", why=why)

    def to_json(self) -> dict[str, Any]:
        """Returns what JSON can hold."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["figures"] = dict(self.figures)
        fields["picture"] = [mark._asdict() for mark in self.picture]
        return fields

    @classmethod
    def read(cls, content: object) -> Check:
        """Reads what `to_json` wrote; ValueError where that is no check."""
        if not isinstance(content, dict) or set(content) != set(cls.__slots__):
            raise ValueError(f"a check is {content!r}")
        code, outcome, why = (content[name] for name in ("code", "outcome", "why"))
        known = code in FIGURES if isinstance(code, str) else False
        if not known or outcome not in get_args(Outcome):
            raise ValueError(f"a check is {content!r}")
        if (why in get_args(WhyUnchecked)) != (outcome == "unchecked"):
            raise ValueError(f"a check was {outcome}, because of {why!r}")
        for name in ("level", "p_value", "statistic", "noticed"):
            must_be_finite(name, content[name], optional=True)
        if not (content["rows"] is None or type(content["rows"]) is int):
            raise ValueError(f"the rows of a check are {content['rows']!r}")
        if content["one_an_episode"] not in (None, True, False):
            raise ValueError(f"one_an_episode of a check is {content['one_an_episode']!r}")
        figures = content["figures"]
        expected = () if outcome == "unchecked" else FIGURES[code]
        if not isinstance(figures, dict) or sorted(figures) != sorted(expected):
            raise ValueError(f"the figures of a check are {figures!r}")
        for name, value in figures.items():
            must_be_finite(name, value)
        return cls(**{**content, "picture": tuple(map(read_mark, content["picture"]))})


def read_mark(content: object) -> Mark:
    """Reads a part of a picture; ValueError where that is none."""
    if not isinstance(content, dict) or set(content) != set(Mark._fields):
        raise ValueError(f"a part of a picture is {content!r}")
    if not isinstance(content["name"], str) or not isinstance(content["marked"], bool):
        raise ValueError(f"a part of a picture is {content!r}")
    for name in ("low", "high", "value", "beside"):
        must_be_finite(name, content[name], optional=name == "beside")
    return Mark(**content)


def must_be_finite(name: str, value: object, *, optional: bool = False) -> None:
    """Refuses what is no finite number."""
    if value is None and optional:
        return
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name} of a check is {value!r}")
