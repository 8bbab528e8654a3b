"""The ways to read a log, beyond the roles of its columns, each declared once.

All else follows from a declaration: the options of the commands that read logs
(`surestep.cli.options`), the parameters of run.json and their types (`surestep.results.record`),
how they are read back, and the command that makes a result again (`surestep.pipeline.recording`). A
new way is a field of `Reading`, a parameter of `surestep.read_log`, and whatever uses it: a format
of files, or `surestep.io.logs.preparing`.

Nothing is imported here that takes its time: `surestep --help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from surestep.declaring import Choice, Term, Text, Texts, declared
from surestep.errors import InvalidParameter, said

DELIMITERS = {",": ",", ";": ";", "|": "|", "tab": "\t"}  # as users say it → as it is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The way to read a log, as a user said it."""

    bins: Sequence[str] = field(
        default=(),
        metadata=declared(
            shape=Texts(),
            option="--bin",
            metavar="COLUMN:RULE",
            help="Bin a column of numbers: age:quantiles=10, pressure:width=5 or x:edges=0,1,5.",
        ),
    )
    delimiter: str | None = field(
        default=None,
        metadata=declared(
            shape=Choice(tuple(DELIMITERS)),
            by_default="by the first lines",
            void=True,
            help="The sign between the columns of text files.",
        ),
    )

    time_format: str | None = field(
        default=None,
        metadata=declared(
            shape=Text(),
            metavar="FORM",
            by_default="ISO 8601, such as 2025-03-31 14:05",
            void=True,
            help="How time stamps are written, such as %d/%m/%Y %H:%M.",
        ),
    )
    ends: str | None = field(
        default=None,
        metadata=declared(
            shape=Choice(("complete", "clock")),
            void=True,
            help="How all episodes end. complete: the last row ends its episode, unless it is "
            "truncated; clock: one that does not is the last by the clock, because recording stops "
            "after so many steps, or at a date with steps of equal length.",
        ),
    )

    def __post_init__(self) -> None:
        """Checks every value; several texts become a tuple."""
        for name, way in READING.items():
            value = getattr(self, name)
            if isinstance(way.shape, Texts):
                object.__setattr__(self, name, texts(name, value))
            elif isinstance(way.shape, Text) and not isinstance(value, str | None):
                raise InvalidParameter(f"{name} is {value!r}, expected a text")
            elif isinstance(way.shape, Choice) and value not in (*way.shape.words, DEFAULTS[name]):
                expected = ", ".join(map(repr, way.shape.words))
                raise InvalidParameter(f"{name} is {value!r}, expected one of {expected}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Reading:
        """Returns the reading of options or of run.json; None stands for what nobody said."""
        return cls(**{name: given[name] for name in READING if given[name] is not None})

    def parameters(self) -> dict[str, Any]:
        """Returns every way by name, as run.json has it."""
        return {name: getattr(self, name) for name in READING}

    def words(self) -> list[str]:
        """Returns the words of a command line that say this; none for what is taken anyway."""
        return [
            word
            for name, value in self.parameters().items()
            if value != DEFAULTS[name]
            for word in READING[name].words_for(name, value)
        ]


READING: dict[str, Term] = {each.name: each.metadata["term"] for each in fields(Reading)}
DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Reading)}


def ends_said(how: str) -> str:
    """Returns how it is said that all episodes end so."""
    return said(f"ends={how!r}", f"--ends {how}")


def texts(name: str, given: object) -> tuple[str, ...]:
    """Checks and returns several texts."""
    several = tuple(given) if isinstance(given, list | tuple) else (None,)
    if not all(isinstance(each, str) for each in several):
        raise InvalidParameter(f"{name} are {given!r}, expected a list of texts")
    return several


USUAL = Reading()
