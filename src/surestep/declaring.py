"""Declarations: all that is said once of something that a user may say.

What a value looks like and within which limits, what is taken where nobody says anything, and the
words of its option. The options of the command line, the parameters of run.json and the command
that makes a result again follow from it: for terms in `surestep.terms`, for the ways to read a log
in `surestep.io.logs.reading`.

Nothing is imported here that takes its time: `surestep --help` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

# ---- what a value looks like ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A number; without limits, whoever uses it checks it."""

    limits: tuple[float, float] | None = None
    open: bool = False  # the limits themselves are not allowed
    why: str = ""
    recorded: ClassVar[Any] = float | int  # in run.json

    @property
    def words(self) -> str:
        """Returns what is expected: '0 to 1'."""
        if self.limits is None:
            return "a number"
        low, high = self.limits
        words = f"more than {low:g} and less than {high:g}" if self.open else f"{low:g} to {high:g}"
        return f"{words}: {self.why}" if self.why else words


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; without a least one, whoever uses it checks it."""

    least: int | None = None
    why: str = ""
    or_auto: bool = False  # the word `auto` will do
    recorded: ClassVar[Any] = int


class Bounds:
    """Two finite numbers, the lower one first."""

    recorded: ClassVar[Any] = tuple[float | int, float | int]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    recorded: ClassVar[Any] = str


class Text:
    """A text, such as the name of a file."""

    recorded: ClassVar[Any] = str


class Texts:
    """Several texts, one a time that the option is given."""

    recorded: ClassVar[Any] = list[str]


class AlgorithmName:
    """The name of an algorithm, which is recorded with all its settings."""

    recorded: ClassVar[Any] = dict


class AlgorithmSettings:
    """Settings by name, which are recorded with the algorithm."""

    recorded: ClassVar[Any] = None


Shape = Number | Whole | Bounds | Choice | Text | Texts | AlgorithmName | AlgorithmSettings


# ---- what is declared of a term ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """All that others need to know of a term."""

    shape: Shape
    help: str  # of its option
    option: str = ""  # where it is not that of the name
    metavar: str | None = None
    label: str = ""  # on the screen; empty: its name
    required: bool = False
    default: Any = None  # what is taken where nobody said anything, whatever the data are
    by_default: str = ""  # else: in words, what is taken
    void: bool = False  # other terms may leave it without a meaning; then null is recorded

    @property
    def has_default(self) -> bool:
        """Tells whether anything is taken where nobody said anything."""
        return self.default is not None or bool(self.by_default)

    @property
    def full_help(self) -> str:
        """Returns the help, with what is taken by default."""
        usual = self.by_default or ("" if self.default is None else str(self.default))
        return f"{self.help}  [default: {usual}]" if usual else self.help

    @property
    def recorded(self) -> Any:
        """Returns the type of the parameter in run.json; None where it has none of its own."""
        kind = self.shape.recorded
        always = (self.required or self.has_default) and not self.void
        return kind if kind is None or always else kind | None

    def option_for(self, name: str) -> str:
        """Returns the option that gives the term: '--train-share'."""
        return self.option or f"--{name.replace('_', '-')}"

    def words_for(self, name: str, value: Any) -> list[str]:
        """Returns the words of a command line that give this value; none for None."""
        option = self.option_for(name)
        match self.shape, value:
            case _, None:
                return []
            case Bounds(), (low, high):
                return [option, repr(low), repr(high)]
            case Texts(), texts:
                return [word for text in texts for word in (option, str(text))]
            case AlgorithmSettings(), settings:
                given = [f"{setting}={value}" for setting, value in settings.items()]
                return [word for text in given for word in (option, text)]
        return [option, value if isinstance(value, str) else repr(value)]


def declared(**declaration: Any) -> dict[str, Term]:
    """Returns the metadata of a field: its declaration as a term."""
    return {"term": Term(**declaration)}
