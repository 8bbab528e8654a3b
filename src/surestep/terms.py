"""The terms of an improvement, each declared once.

A declaration says what a value looks like and within which limits, what is taken where nobody says
anything, and the words of its option. All else follows from it: the options of the command line
(`surestep.cli.terms`), the checks (`surestep.pipeline.terms`), the parameters of run.json and their
types (`surestep.results.record`), how they are read back, and the command that makes a result
again (`surestep.pipeline.recording`). A new term is a field of `Declared`, a parameter of
`surestep.improve`, and whatever uses it.

Nothing is imported here that takes its time: `surestep --help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from surestep.algorithms import Algorithm
    from surestep.certificates import Certifier
    from surestep.certificates.episodes import Logger
    from surestep.model.problem import UnseenRule

AUTO: Literal["auto"] = "auto"
DEFAULT_ALGORITHM = "spibb"
DEFAULT_LEAST_VISITS = 10
DEFAULT_DELTA = 0.1
DEFAULT_UNSEEN: UnseenRule = "pessimistic"
# The first is the one that a result stands by. It is settled before the data.
DEFAULT_CERTIFICATES = ("stitched", "posterior", "robust", "a-priori")
DEFAULT_OF_COUNTS = ("robust", "a-priori")  # counts cannot be split into two parts
DEFAULT_TRAIN_SHARE = 0.3
DEFAULT_LOGGER: Logger = "adaptive"


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


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two finite numbers, the lower one first."""

    recorded: ClassVar[Any] = list


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    recorded: ClassVar[Any] = str


@dataclass(frozen=True, slots=True)
class Text:
    """A text, such as the name of a file."""

    recorded: ClassVar[Any] = str


@dataclass(frozen=True, slots=True)
class Texts:
    """Several texts, one a time that the option is given."""

    recorded: ClassVar[Any] = list


@dataclass(frozen=True, slots=True)
class AlgorithmName:
    """The name of an algorithm, which is recorded with all its settings."""

    recorded: ClassVar[Any] = dict


@dataclass(frozen=True, slots=True)
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


# ---- the terms --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The terms of an improvement, as a user gave them; None where nothing was said."""

    discount: float = field(
        metadata=declared(
            shape=Number((0, 1)),
            required=True,
            help="γ, from 0 to 1: how much the next step counts.",
        )
    )
    algorithm: str | Algorithm | None = field(  # a name, or settings
        default=None,
        metadata=declared(
            shape=AlgorithmName(),
            default=DEFAULT_ALGORITHM,
            metavar="NAME",
            help="The algorithm, one of `surestep algorithms`.",
        ),
    )
    n_wedge: int | Literal["auto"] | None = field(
        default=None,
        metadata=declared(
            shape=Whole(or_auto=True),
            by_default=AUTO,
            void=True,
            label="N∧",
            help="N∧: pairs visited at most this often keep their probability. `auto` takes the "
            "one with the largest lower bound.",
        ),
    )
    zeta: float | None = field(
        default=None,
        metadata=declared(
            shape=Number(),
            help="Choose the N∧ at which SPIBB's bound claims a loss of at most ζ.",
        ),
    )
    settings: Mapping[str, Any] = field(  # of a named algorithm
        default_factory=dict,
        metadata=declared(
            shape=AlgorithmSettings(),
            option="--setting",
            metavar="NAME=VALUE",
            help="A setting of the algorithm, such as epsilon=0.1.",
        ),
    )
    least_visits: int | None = field(
        default=None,
        metadata=declared(
            shape=Whole(1, "what was seen less often stays"),
            default=DEFAULT_LEAST_VISITS,
            void=True,
            metavar="N",
            label="least visits of what may change",
            help="Pairs visited less often keep their probability, whatever the algorithm; an "
            "--n-wedge that is given holds instead.",
        ),
    )
    delta: float | None = field(
        default=None,
        metadata=declared(
            shape=Number((0, 1), open=True),
            default=DEFAULT_DELTA,
            label="δ",
            help="δ: the chance that the claim is wrong.",
        ),
    )
    value_bounds: tuple[float, float] | None = field(
        default=None,
        metadata=declared(
            shape=Bounds(),
            by_default="what the rewards observed allow",
            label="value bounds, from the rewards observed,",
            help="Every value lies between these.",
        ),
    )
    reward_bounds: tuple[float, float] | None = field(
        default=None,
        metadata=declared(
            shape=Bounds(),
            help="Every reward lies between these.  [default: those observed]",
        ),
    )
    reward_at_end: tuple[float, float] | None = field(  # an episode pays once, at its end
        default=None,
        metadata=declared(
            shape=Bounds(),
            help="Episodes pay only once, at their end, a reward between these; values lie there "
            "too.",
        ),
    )
    return_bounds: tuple[float, float] | None = field(  # of whole episodes
        default=None,
        metadata=declared(
            shape=Bounds(),
            help="Every episode returns between these, and so does its rest from any step on, "
            "unless that is 0.",
        ),
    )
    unseen: UnseenRule | None = field(
        default=None,
        metadata=declared(
            shape=Choice(("pessimistic", "terminal")),
            default=DEFAULT_UNSEEN,
            label="worth of what nobody tried",
            help="The value of a pair that was never tried: the lower value bound (pessimistic), "
            "or 0 (terminal).",
        ),
    )
    certificates: Sequence[str | Certifier] | None = field(  # the one to stand by first
        default=None,
        metadata=declared(
            shape=Texts(),
            by_default=f"{', '.join(DEFAULT_CERTIFICATES)}; of counts "
            f"{', '.join(DEFAULT_OF_COUNTS)}",
            option="--kind",
            metavar="KIND[:SETTING=VALUE,...]",
            help="A certificate to make, such as robust:set=l1; the result stands by the first.",
        ),
    )
    train_share: float | None = field(  # of the log, which chooses the policy; the rest judges it
        default=None,
        metadata=declared(
            shape=Number(
                (0, 1),
                open=True,
                why="that part chooses the policy, and the rest judges it; 0 is for a policy that "
                "was made without this log",
            ),
            default=DEFAULT_TRAIN_SHARE,
            void=True,
            label="share of the log that chooses the policy",
            help="The share of the log that chooses the policy; the rest judges it.",
        ),
    )
    logger: Logger | None = field(  # whether whoever made the log may have learnt on the way
        default=None,
        metadata=declared(
            shape=Choice(("adaptive", "fixed")),
            default=DEFAULT_LOGGER,
            void=True,
            help="adaptive: whoever made the log may have learnt on the way, so its first part "
            "chooses the policy; fixed: a part drawn at random does.",
        ),
    )
    worlds: int | None = field(  # of each kind in the stress test; 0: none
        default=None,
        metadata=declared(
            shape=Whole(),
            by_default="10, or what δ needs, as far as that takes about half a minute of one core; "
            "beyond, only those that say how often beliefs are wrong",
            label="worlds of each kind in the stress test",
            help="The number of worlds of each kind in the stress test; 0: none.",
        ),
    )


TERMS: dict[str, Term] = {each.name: each.metadata["term"] for each in fields(Declared)}

# What an improvement takes beside the log, and is no term: read and recorded as evidence.
SOURCES: dict[str, Term] = {
    "behavior": Term(
        shape=Text(),
        by_default="propensities, else estimate",
        metavar="POLICY|estimate|propensities",
        label="behavior policy",
        help="The policy that made the log: a table of state, action, probability; the "
        "propensities in the log; or an estimate from it.",
    ),
    "states": Term(
        shape=Text(),
        metavar="FILE",
        help="A file with all states that there are, where the log shows fewer.",
    ),
    "actions": Term(shape=Text(), metavar="FILE", help="A file with all actions that there are."),
}


def label_of(name: str) -> str:
    """Returns what a parameter is called on the screen."""
    term = TERMS.get(name) or SOURCES.get(name)
    return term.label or name if term else name
