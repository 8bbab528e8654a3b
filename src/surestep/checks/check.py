"""Defines `Check`, the finding about one assumption, and `CheckKind`, its test and sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.model import Certificate, DecisionLog, Pairs
from surestep.planning.tilted import WorstCase

Outcome = Literal["passed", "failed", "told", "unchecked"]  # told: a figure without a test

# Why an assumption was not tested.
WHY: Mapping[str, str] = {
    "no-episodes": "Not tested: without whole episodes the previous step of a row is unknown.",
    "too-large": "Not tested: the log has too many rows to load, in too few episodes to draw some.",
    "refused": "Not tested: counting refuses the log as it is.",
    "nothing-to-compare": "Not tested: no rows of the same kind differ in what is compared.",
    "nothing-varies": "Nothing to test: steps of one kind always earned the same.",
    "too-small": "Not tested: the log is too small to show even a large effect.",
    "no-steps": "Not tested: no certificate that was asked for needs the steps of this signal.",
    "no-discount": "Not tested: values need a discount below 1.",
    "behavior-known": "Here the current policy is known, and decides by the situation alone.",
    "no-claim": "No gain is claimed, so none can fall.",
    "not-assumed": "The claim does not need this: it compares whole episodes by the recorded "
    "probabilities of their actions.",
    "no-result": "A result of `improve` says how strong they would have to be.",
    "no-change": "Nothing to test: the new policy does what the current one does.",
    "behavior-given": "Nothing to test: the current policy was given, not estimated.",
    "behavior-of-all": "Not tested: the current policy was not estimated from the first part of "
    "the log alone.",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a picture: a bar from `low` to `high`, or an interval with a value in it."""

    name: str
    low: float
    high: float
    value: float
    beside: float | None = None  # another value to show beside it
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The finding about one assumption.

    Parameters
    ----------
    code : str
        The code of the check, a key of `CHECKS`.
    outcome : {"passed", "failed", "told", "unchecked"}
        "told" is a figure without a test; "unchecked" means that nothing was tested.
    why : str, optional
        The reason where nothing was tested.
    level : float, optional
        The test fails where the p-value is at most that.
    p_value : float, optional
        The p-value of the test.
    statistic : float, optional
        The number of standard deviations from what luck does.
    rows : int, optional
        The number of rows of the log that were compared.
    episodes : tuple of int, optional
        The episodes that were drawn, and of how many; None where all were looked at.
    one_an_episode : bool, optional
        Whether the rows are at most one an episode and group.
    noticed : float, optional
        The smallest effect that four of five such logs would show.
    figures : dict of float, optional
        The numbers that the sentences of the check name.
    picture : tuple of Mark, optional
        The bars of its picture.
    signal : str, optional
        The signal whose rewards were tested, or the columns; None for the first signal.

    Examples
    --------
    >>> from surestep.checks import check_log
    >>> from surestep.environments import make
    >>> gridworld = make("gridworld")
    >>> first, *_ = check_log(gridworld.sample(100, 1), discount=0.95)
    >>> first.code, first.outcome
    ('markov-next-state', 'passed')
    """

    code: str
    outcome: Outcome
    why: str | None = None  # the reason why nothing was tested: a code of WHY
    level: float | None = None  # it fails if the p-value is at most this
    p_value: float | None = None
    statistic: float | None = None  # standard deviations from the mean under chance alone
    rows: int | None = None  # of the log that were compared
    episodes: tuple[int, int] | None = None  # drawn of how many; None where all were looked at
    one_an_episode: bool | None = None  # whether these are at most one row an episode and group
    # The smallest effect that four of five such logs would show; of returns, what would have failed
    noticed: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    picture: tuple[Mark, ...] = ()
    signal: str | None = None  # whose rewards, or which columns; None for the first signal

    def __post_init__(self) -> None:
        if self.code not in CHECKS:
            raise ValueError(f"there is no check {self.code!r}; expected one of {[*CHECKS]}")
        if (self.why in WHY) != (self.outcome == "unchecked"):
            raise ValueError(f"the check {self.code} is {self.outcome}, and the reason {self.why}")
        kind = CHECKS[self.code]
        known = ((),) if self.why else (kind.figures, *kind.figures_also)
        if sorted(self.figures) not in map(sorted, known):
            raise ValueError(f"the check {self.code} has the figures {', '.join(self.figures)}")

    @classmethod
    def failing(cls, code: str, fails: bool, **figures: float) -> Self | None:
        """Returns a failed check, or None, which has no line on a page.

        Parameters
        ----------
        code : str
            The code of the check.
        fails : bool
            Whether it fails.
        **figures : float
            The figures of the check.

        Returns
        -------
        Check or None
            The failed check.
        """
        return cls(code=code, outcome="failed", figures=figures) if fails else None

    @classmethod
    def unchecked(cls, code: str, why: str) -> Self:
        """Returns the check of an assumption that was not tested.

        Parameters
        ----------
        code : str
            The code of the check.
        why : str
            The code of the reason.

        Returns
        -------
        Check
            The check, without numbers.
        """
        return cls(code=code, outcome="unchecked", why=why)


class GivenLog(NamedTuple):
    """The input of a check of a log: the log or drawn episodes of it, seed and level."""

    log: DecisionLog
    seed: int  # to which each check adds its own number
    level: float  # of each test
    names: Sequence[str] = ()  # [S]
    discount: float | None = None
    whole: DecisionLog | None = None  # the same with rows whose next state is unknown
    parts: Sequence[IntArray] | None = None  # [N] each, to compare; None: of equal length


class GivenPractice(NamedTuple):
    """A log whose first part estimates π_b, and the gain over the practice of the rest."""

    given: GivenLog
    late: BoolArray  # [N]: rows after the first part
    gain: float | None  # estimated; None if the model of the rest has no values


class GivenPolicy(NamedTuple):
    """The new policy of a result, its visits, and those of the log."""

    pairs: Pairs
    probability: FloatArray  # [P]
    behavior: FloatArray  # [P]
    visits: IntArray  # [P]: in the rows that chose the policy
    held_out_visits: IntArray  # [P]: in the rows that judge it
    decided: BoolArray  # [P]: something is decided in the state
    time: FloatArray  # [S]: visits of the new policy in the estimated model
    is_open: BoolArray  # [S]: the state has a bin that is open to one side
    names: Sequence[str]  # [S]


class GivenCauses(NamedTuple):
    """A gain that hidden causes may undo, and columns of the state to compare causes with."""

    estimate: WorstCase  # the gain, from the data that judge
    drawn: WorstCase | None  # the gain in models drawn from the posterior; None without a belief
    belief: Certificate | None
    robust: Callable[[float], float] | None  # odds → robust claim; None if it is not above 0
    visits: IntArray  # [K] in the whole log
    columns: Mapping[str, Sequence[str]]  # column of the state → its texts [S]


class GivenStock(NamedTuple):
    """Holds where episodes began, and where those are that were not over at the log's end."""

    first: IntArray  # [S]: episodes that began there
    last: IntArray  # [S]: episodes that go on there
    gain: FloatArray  # [S]: of the new policy, from there on
    interval: Callable[[IntArray], tuple[float, float, float]]  # starts [S] → gain and its ends
    names: Sequence[str]  # [S]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenResult:
    """The input of a check of a result."""

    certificates: Sequence[Certificate]
    gain: float  # estimated, if possible from data that did not choose the policy
    returns: tuple[float, float] | None  # the smallest and the largest return of an episode
    gap: Mapping[str, float] | None  # figures of a gap between the model and the episodes, if any
    rewards_vary: bool
    policy: GivenPolicy | None  # None if the policy changes nothing
    practice: GivenPractice | str  # or the code of WHY nothing is tested
    causes: GivenCauses | str  # or the code of WHY nothing is told
    declared: tuple[Check, ...] = ()  # empty unless the log contradicts the declared policy
    stock: GivenStock | None = None  # None if the policy changes nothing, or without episodes


Sentences = str | Callable[[Check], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """A kind of check: the test of an assumption, and the sentences about its outcome.

    Sentences may name figures: {claim}, {gain:+} with its sign, {share:%}, {visits:row} counted,
    {noticed:2} with two digits.
    """

    code: str
    title: str  # the assumption; the failure if only failures are shown
    broken: str = ""  # the title of a failure
    failed: Sentences
    passed: Sentences = ""
    told: Sentences = ""  # if it can also fail; else `failed` says it
    always: str = ""  # a sentence before those of every outcome
    aside: str = ""  # says when it fails, if it has no p-value
    noticed: str = ""  # names the smallest effect that the test would have noticed
    figures: tuple[str, ...] = ()  # names of its figures if it is tested
    figures_also: tuple[tuple[str, ...], ...] = ()  # other names it may have, also in old results
    against: str | None = None  # the code of the assumption that a failure contradicts
    forbids_proof: Callable[[Check, Certificate], bool] | None = None  # None: it never does
    asks: bool = False  # whether a failure asks a question that must be answered first
    of_log: Callable[[GivenLog], Check | None] | None = None  # None: no line
    of_result: Callable[[GivenResult], Check | None] | None = None  # None: no line


CHECKS: dict[str, CheckKind] = {}  # filled by the package, in the order of the page
