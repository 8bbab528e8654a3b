"""Describes a log and an improvement once, for TOML files, the command line and Python.

Options and their help, docstrings, the checks of values and run.json follow from `Description`. A
key that was not given is None or empty; `DEFAULTS` has its default.

Imports are light, as `surestep --help` reads this module.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from surestep._files import read_whole
from surestep._names import unknown
from surestep.errors import InvalidParameter

SUFFIX = ".toml"
SEEN = "seen"  # only actions that the log shows are possible
AUTO: Literal["auto"] = "auto"
WORDS_FOR_BEHAVIOR = ("uniform", "estimate", "propensities", "row-propensities")
LARGEST = 1e100  # of a number that says what may be earned: squares of it are finite


class Part(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A base of the tables of a description: refuses undeclared keys, and omits keys not given."""

    def given(self) -> dict[str, Any]:
        """Returns the keys that were given, as JSON has them; a list of one text is that text."""
        content: dict[str, Any] = plain(msgspec.to_builtins(self))
        return {name: value for name, value in content.items() if value != {}}


Thing = TypeVar("Thing")
Several = str | tuple[str, ...]
Label = str | int | float | bool
Sign = Annotated[str, Meta(min_length=1, max_length=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[float, Meta(gt=0, lt=1)]
Amount = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Range = tuple[Amount, Amount]
Size = Annotated[int, Meta(ge=2, le=1000)] | Literal["auto"]
Natural = Annotated[int, Meta(ge=0)]
Episodes = Annotated[int, Meta(ge=1, le=10**9)]


class About(Part, frozen=True):
    """Says what readers of the page want to know of the log and of the analysis."""

    title: Annotated[str | None, Meta(description="The heading of the page.")] = None
    population: Annotated[
        str | None,
        Meta(description="Whom or what the log is about: patients of two hospitals."),
    ] = None
    period: Annotated[str | None, Meta(description="When the log was recorded.")] = None
    author: Annotated[str | None, Meta(description="Who made the analysis.")] = None
    date: Annotated[str | None, Meta(description="When the analysis was made.")] = None


class Columns(Part, frozen=True):
    """Names the column of each role; those with a usual name are found by themselves."""

    state: Annotated[
        Several | None,
        Meta(description="The state; repeat it for several columns."),
    ] = None
    action: Annotated[
        Several | None,
        Meta(description="The action; repeat it for several columns."),
    ] = None
    reward: Annotated[str | None, Meta(description="The reward.")] = None
    next_state: Annotated[Several | None, Meta(description="The state that follows.")] = None
    episode: Annotated[str | None, Meta(description="To which episode a row belongs.")] = None
    step: Annotated[str | None, Meta(description="The number of the step, or a time stamp.")] = None
    terminated: Annotated[
        str | None,
        Meta(description="Whether the episode ended with this step."),
    ] = None
    truncated: Annotated[
        str | None,
        Meta(description="Whether a clock stopped the recording there."),
    ] = None
    propensity: Annotated[
        str | None,
        Meta(description="The probability that the action had."),
    ] = None
    time: Annotated[
        str | None,
        Meta(
            description="When it was decided, or the episode began, if the log's order is another."
        ),
    ] = None
    known_before: Annotated[
        Several | None,
        Meta(
            description="A column that was known before the decision: one of the state with "
            "values that stand in last rows only, or one that a query chooses rows "
            "by; repeat it for several."
        ),
    ] = None


class Bin(Part, frozen=True):
    """The bins of a column of numbers, or states learnt from several columns of measurements."""

    quantiles: Annotated[int, Meta(ge=2, le=1000)] | None = None
    width: Annotated[float, Meta(gt=0, le=LARGEST)] | None = None
    edges: Annotated[tuple[Amount, ...], Meta(min_length=1)] | None = None
    tree: Size | None = None  # leaves
    kmeans: Size | None = None  # clusters
    columns: Several | None = None  # of a tree, or of clusters

    def __post_init__(self) -> None:
        rules = [name for name in RULES if getattr(self, name) is not None]
        if len(rules) != 1:
            raise ValueError(f"Expected one of {', '.join(RULES)}")
        if bool(self.columns) != (rules[0] in LEARNT):
            raise ValueError("Expected columns beside tree or kmeans, and only there")


LEARNT = ("tree", "kmeans")
RULES = ("quantiles", "width", "edges", *LEARNT)


class MemoryKeys(Part, frozen=True):
    """Says how much of an episode's past belongs to a situation."""

    steps: Annotated[
        Annotated[int, Meta(ge=0, le=10)] | None,
        Meta(
            description="Situations also have the columns of so many steps before, with what was "
            "done there; 0: none."
        ),
    ] = None


class Reader(Part, frozen=True):
    """Options of DuckDB's reader of text files, under its own names."""

    delim: Sign | None = None
    quote: Sign | None = None
    nullstr: Several | None = None
    decimal_separator: Literal[".", ","] | None = None
    thousands: Sign | None = None
    timestampformat: str | None = None
    skip: Natural | None = None
    encoding: Literal["utf-8", "latin-1"] | None = None


class Behavior(Part, frozen=True):
    """The policy that made the log."""

    policy: Annotated[
        str | None,
        Meta(
            description="The policy that made the log: a table of state, action, probability; "
            "uniform (a randomised trial); propensities, or row-propensities where "
            "they vary within a state; or estimate."
        ),
    ] = None
    logger: Annotated[
        Literal["adaptive", "fixed"] | None,
        Meta(
            description="One that is adaptive may have learnt on the way, so the first part of "
            "the log chooses the policy; with one that is fixed, a part drawn at "
            "random does."
        ),
    ] = None


class Stakes(Part, frozen=True):
    """Says what may be earned, and how much later steps count: γ of the paper is `discount`."""

    discount: Annotated[
        Fraction | None,
        Meta(description="How much the next step counts (γ), from 0 to 1."),
    ] = None
    running: Annotated[
        Range | None,
        Meta(description="A step after which it goes on earns between these."),
    ] = None
    ending: Annotated[
        Range | None,
        Meta(description="A step that ends its episode earns between these."),
    ] = None
    returns: Annotated[
        Range | None,
        Meta(
            description="The lowest and highest total from any step to the end, unless that is 0."
        ),
    ] = None
    unit: Annotated[
        str | None,
        Meta(description="What rewards are, and per what, for readers: € per pump."),
    ] = None
    per: Annotated[
        Episodes | None,
        Meta(description="Count totals and shares per so many episodes, such as 100."),
    ] = None
    horizon: Annotated[
        Annotated[int, Meta(ge=1, le=1_000)] | None,  # each takes a sweep
        Meta(
            description="Count totals and shares within so many steps (decisions), also where "
            "episodes do not end."
        ),
    ] = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in RANGES if getattr(self, name) is not None}
        for name, (low, high) in given.items():
            if low > high:
                raise ValueError(f"Expected the lower number of {name} first")
        if given and not any(map(any, given.values())):
            raise ValueError(
                "Expected a range of rewards: what steps may earn is declared as 0 to 0, so that "
                "nothing can be gained"
            )


RANGES = ("running", "ending", "returns")


class LimitKeys(Part, frozen=True):
    """Says what can be done at all, and what may be recommended."""

    possible: Annotated[
        str | None,
        Meta(
            description="What can be done in a state: `seen`, only what the log shows there; or a"
            " table of state, action with all pairs that there are."
        ),
    ] = None
    allowed: Annotated[
        str | None,
        Meta(description="A table of state, action: no other is taken more often than before."),
    ] = None
    states: Annotated[
        str | None,
        Meta(description="A file with all states that there are, where the log shows fewer."),
    ] = None
    actions: Annotated[
        str | None,
        Meta(description="A file with all actions that there are."),
    ] = None


class Guideline(Part, frozen=True):
    """A policy that should be followed, compared with the current and the new one."""

    policy: Annotated[
        str | None,
        Meta(
            description="A table of state, action: what the guideline says; states that it leaves "
            "out go on as before."
        ),
    ] = None


class SignalRule(Part, frozen=True):
    """A number that steps earn: the first is improved, the others must not get worse."""

    column: str
    running: Range | None = None
    ending: Range | None = None
    returns: Range | None = None
    discount: Fraction | None = None
    per: Episodes | None = None
    cost: bool = False
    not_worse_by: Annotated[float, Meta(ge=0, le=LARGEST)] | None = None

    def __post_init__(self) -> None:
        Stakes(**self.stakes)

    @property
    def stakes(self) -> dict[str, Any]:
        """Returns the stakes that were given; ranges of a cost are negated."""
        given = {name: getattr(self, name) for name in RANGES}
        if self.cost:
            given = {name: ends and (0.0 - ends[1], 0.0 - ends[0]) for name, ends in given.items()}
        given["discount"] = self.discount
        return {name: value for name, value in given.items() if value is not None}


class Unsafe(Part, frozen=True):
    """States that are not to be reached more often than before, or than a number says."""

    states: Annotated[
        str | None,
        Meta(description="A condition on the columns of the state, such as pressure = 'critical'."),
    ] = None
    within: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="N steps (decisions): such a state counts as reached at the start, or "
            "after one of the first N decisions."
        ),
    ] = None
    at_most: Annotated[
        Literal["as before"] | Fraction | None,
        Meta(description="The chance to get there: `as before`, or a number."),
    ] = None
    not_worse_by: Annotated[
        Fraction | None,
        Meta(description="By how much that chance may rise."),
    ] = None

    def __post_init__(self) -> None:
        limits = (self.within, self.at_most, self.not_worse_by)
        if self.states is None and any(limit is not None for limit in limits):
            raise ValueError("Expected the key `states`, a condition on the columns of the state")
        if isinstance(self.at_most, float) and self.not_worse_by is not None:
            raise ValueError("Expected not_worse_by only where at_most is 'as before'")


class GroupKeys(Part, frozen=True):
    """Groups of episodes, whose gains are shown one by one."""

    columns: Annotated[
        Several | None,
        Meta(description="Columns whose values at the start of an episode make groups."),
    ] = None
    not_worse_by: Annotated[
        Annotated[float, Meta(ge=0, le=LARGEST)] | None,
        Meta(description="No group may lose more than that: it limits the choice and is judged."),
    ] = None
    least: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Episodes that a group needs to be shown; smaller ones are put together."),
    ] = None

    def __post_init__(self) -> None:
        if self.not_worse_by is not None and self.columns is None:
            raise ValueError("Expected the key `columns`, whose values make groups")


class MethodKeys(Part, frozen=True):
    """Says how the policy is improved, and how claims are made: N∧, ζ and δ of the paper."""

    algorithm: Annotated[
        str | None,
        Meta(description="The algorithm, such as spibb:n_wedge=50; see `surestep algorithms`."),
    ] = None
    n_wedge: Annotated[
        Natural | Literal["auto"] | None,
        Meta(description="Pairs visited at most so often (N∧) keep their probability; or `auto`."),
    ] = None
    zeta: Annotated[
        Amount | None,
        Meta(description="Choose the N∧ at which SPIBB's bound claims a loss of at most ζ."),
    ] = None
    least_visits: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Pairs visited less are not taken more often, unless N∧ is given."),
    ] = None
    rules: Annotated[
        Natural | None,
        Meta(
            description="The most rules of a policy that is preferred to a table, if it promises "
            "nine tenths; 0: none."
        ),
    ] = None
    delta: Annotated[
        Share | None,
        Meta(description="The chance that the claim is wrong (δ)."),
    ] = None
    unseen: Annotated[
        Literal["pessimistic", "terminal"] | None,
        Meta(
            description="What a pair is worth that was never tried: pessimistic, or 0 (terminal)."
        ),
    ] = None
    certificates: Annotated[
        Several | None,
        Meta(description="Kinds of claims, such as robust:set=l1; the result stands by the first."),
    ] = None
    train_share: Annotated[
        Share | None,
        Meta(description="The share of the log that chooses the policy; the rest judges it."),
    ] = None
    worlds: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | None,
        Meta(description="Worlds of each kind in the stress test; 0: none."),
    ] = None


class NodeKeys(Part, frozen=True):
    """Says what the next value of a column, the end or the reward depends on, as a table."""

    parents: Several | None = None
    action: str | dict[str, Several] | None = None
    known: str | tuple[str | dict[str, Label], ...] | None = None
    edge: Label | None = None
    learnt: bool = False
    values: str | Annotated[tuple[str | Amount, ...], Meta(min_length=1)] | None = None
    terms: tuple[dict[str, Several | Amount], ...] | None = None  # of the reward

    def __post_init__(self) -> None:
        for case in self.cases:
            if case != "same" and "is" not in case:
                raise ValueError(
                    f"Expected known to have 'is' in each case, or 'same'; found {case!r}"
                )
        for term in self.terms or ():
            texts = [key for key, value in term.items() if not isinstance(value, float)]
            if texts != ["of"]:
                raise ValueError(
                    "Expected each term to have 'of', columns or 'action', and else numbers; found "
                    f"{plain(term)}"
                )

    @property
    def labels(self) -> tuple[str, ...]:
        """Returns the values as texts."""
        return tuple(v if isinstance(v, str) else f"{v:.15g}" for v in several(self.values))

    @property
    def cases(self) -> tuple[str | dict[str, Label], ...]:
        """Returns what is known, as a tuple; one word may be given alone."""
        return (self.known,) if isinstance(self.known, str) else self.known or ()


class Description(Part, frozen=True):
    """A log, and the improvement that is asked for."""

    files: Annotated[
        Several | None,
        Meta(description="The files of the log, or patterns of them."),
    ] = None
    query: Annotated[
        str | None,
        Meta(description="SQL that prepares the rows of the table `log`."),
    ] = None
    tables: Annotated[
        dict[str, str],
        Meta(description="Further tables of the query: a file for each name."),
    ] = {}
    reader: Annotated[
        Reader,
        Meta(description="How text files are written, in the words of DuckDB's reader."),
    ] = Reader()
    case: Annotated[
        str | None,
        Meta(
            description="The column of the files that says whose rows belong together, for a query."
        ),
    ] = None
    ends: Annotated[
        Literal["complete", "clock", "random"] | None,
        Meta(
            description="How episodes end, where no column tells: complete, with their last row; "
            "clock, recording stops after so many steps, or at a date with steps of "
            "equal length; random, it is known to stop at random, whatever was done."
        ),
    ] = None
    columns: Annotated[
        Columns,
        Meta(
            description="The columns of each role, where they have other names than usual, such as "
            '{"state": "ward"}.'
        ),
    ] = Columns()
    bins: Annotated[
        dict[str, Bin],
        Meta(
            description="Bins of a column: quantiles, width, edges; or states of several: tree, "
            "kmeans."
        ),
    ] = {}
    memory: MemoryKeys = MemoryKeys()
    behavior: Behavior = Behavior()
    stakes: Stakes = Stakes()
    signals: Annotated[
        dict[str, SignalRule],
        Meta(
            description="Numbers that steps earn: column, running, ending, returns, cost, "
            "discount, per. The first is improved, and others get worse by at most not_worse_by."
        ),
    ] = {}
    unsafe: Annotated[
        Unsafe,
        Meta(
            description="States that are not to be reached more often: states, within, at_most, "
            "not_worse_by."
        ),
    ] = Unsafe()
    groups: Annotated[
        GroupKeys,
        Meta(
            description="Groups by values at the start of an episode: columns, not_worse_by, least "
            "(30). Without columns, those of the state."
        ),
    ] = GroupKeys()
    limits: LimitKeys = LimitKeys()
    guideline: Guideline = Guideline()
    method: MethodKeys = MethodKeys()
    structure: Annotated[
        dict[str, NodeKeys],
        Meta(
            description="What the next value of each column of the state depends on: parents, "
            'action, known, edge, values; also end and reward. Parents and action may be "learn".'
        ),
    ] = {}
    names: Annotated[
        dict[str, dict[str, str]],
        Meta(description="What people call the values of a column, on the page and the screen."),
    ] = {}
    about: Annotated[
        About,
        Meta(description="For readers of the page: title, population, period, author, date."),
    ] = About()


TABLES: dict[str, type[Part]] = {
    "about": About,
    "columns": Columns,
    "reader": Reader,
    "memory": MemoryKeys,
    "behavior": Behavior,
    "stakes": Stakes,
    "unsafe": Unsafe,
    "groups": GroupKeys,
    "limits": LimitKeys,
    "guideline": Guideline,
    "method": MethodKeys,
    "bins": Bin,
    "signals": SignalRule,
    "structure": NodeKeys,
}


def descriptions(part: type[Part], before: str = "") -> dict[str, str]:
    """Returns the meaning of every key of a table, by its path: the description of its field."""
    meanings = dict[str, str]()
    for name, kind in get_type_hints(part, include_extras=True).items():
        table = getattr(kind, "__origin__", kind)
        if isinstance(table, type) and issubclass(table, Part):
            meanings |= descriptions(table, f"{name}.") or {name: kind.__metadata__[0].description}
        elif hasattr(kind, "__metadata__"):
            meanings[before + name] = kind.__metadata__[0].description
    return meanings


HELP = descriptions(Description)
HOW_TO_READ = (  # a log
    "query",
    "tables",
    "reader",
    "case",
    "ends",
    "columns",
    "bins",
    "memory",
)
DEFAULT_CERTIFICATES = ("stitched", "posterior", "robust")  # the main one first
DEFAULT_OF_COUNTS = ("robust",)  # counts cannot be split into two parts
# Defaults of keys: values that hold for any data, or words.
DEFAULTS: dict[str, Any] = {
    "behavior": "propensities, else estimate",
    "algorithm": "spibb",
    "n_wedge": AUTO,
    "least_visits": 10,
    "rules": 12,
    "delta": 0.1,
    "running": "as seen in the log; 0 if only the other is given",
    "ending": "as seen in the log; 0 if only the other is given",
    "unseen": "pessimistic",
    "certificates": f"{', '.join(DEFAULT_CERTIFICATES)}; of counts {DEFAULT_OF_COUNTS[0]}",
    "train_share": "0.5 of up to 100 episodes, falling to 0.3 of 500 and more",
    "logger": "adaptive",
    "worlds": "10, or what δ needs, as far as that takes about a quarter of a minute of one core; "
    "beyond, only those that say how often beliefs are wrong",
}
# Arguments of Python by one word, and the paths of their keys; `behavior` is the policy.
PATHS = {
    name: f"{table}.{name}"
    for table in ("behavior", "stakes", "limits", "method")
    for name in TABLES[table].__struct_fields__
} | {"behavior": "behavior.policy", "guideline": "guideline.policy", "memory": "memory.steps"}
# The keys that have an option of their own; all others are given by --set.
READING = (*(f"columns.{role}" for role in Columns.__struct_fields__), "ends")
ASKING = ("behavior.policy", "stakes.discount", "stakes.running", "stakes.ending")
IMPROVING = ("method.algorithm", "method.certificates", "method.delta", "method.worlds")
OPTIONS = {
    path: f"--{path.rpartition('.')[2].replace('_', '-')}"
    for path in (*READING, *ASKING, *IMPROVING)
} | {"behavior.policy": "--behavior", "method.certificates": "--certificate"}
FILE_KEYS = (
    "behavior.policy",
    "guideline.policy",
    *(f"limits.{name}" for name in LimitKeys.__struct_fields__),
)


# ---- from values that a user gave -------------------------------------------------------------


def described(content: Mapping[str, Any], source: str = "") -> Description:
    """Converts nested values to a description; a refusal names the key.

    `source` is the file that they stand in.
    """
    try:
        return with_first_signal(msgspec.convert(plain(content), Description))
    except msgspec.ValidationError as problem:
        raise InvalidParameter(f"{source and f'{source}: '}{refusal(problem, content)}") from None


def structure_keys(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, NodeKeys]:
    """Converts the tables of a structure; a refusal names the key."""
    return described({"structure": tables}).structure


def with_first_signal(description: Description) -> Description:
    """Returns the description with the first signal as its reward; refused beside another one."""
    for name, rule in description.signals.items():
        told: dict[str, Any] = {
            "columns.reward": rule.column,
            "stakes.running": None,
            "stakes.ending": None,
            **{f"stakes.{key}": value for key, value in rule.stakes.items()},
        }
        for path, ours in told.items():
            theirs = at(description, path)
            if theirs not in (None, ours):
                raise InvalidParameter(
                    f"{path} is {theirs!r} beside [signals], of which the first, "
                    f"{name!r}, says it; expected no other word for it"
                )
        if rule.not_worse_by is not None:
            raise InvalidParameter(
                f"signals.{name}.not_worse_by is given, but the first signal is improved; expected "
                "it at the others"
            )
        for other, further in [*description.signals.items()][1:]:
            if {*further.stakes} <= {"discount"}:
                raise InvalidParameter(
                    f"signals.{other} says neither running nor ending, so that nothing could be "
                    "proved of it; expected what its steps may earn, or `returns`"
                )
        return msgspec.structs.replace(
            description,
            columns=msgspec.structs.replace(description.columns, reward=rule.column),
            stakes=msgspec.structs.replace(description.stakes, **rule.stakes),
        )
    return description


def in_words(**said: Any) -> dict[str, Any]:
    """Nests arguments of Python functions as in a description; leaves out those that are None."""
    content = dict[str, Any]()
    for name, value in said.items():
        if value is not None:
            put(content, PATHS.get(name, name), value)
    return content


def at(described_in: object, path: str) -> Any:
    """Returns the value at a path such as 'stakes.discount'; None if there is none."""
    return attrgetter(path)(described_in)


def is_word(path: str, given: object) -> bool:
    """Tells whether the value at a path such as 'limits.possible' is a word, not a file."""
    words = {"behavior.policy": WORDS_FOR_BEHAVIOR, "limits.possible": (SEEN,)}
    return isinstance(given, str) and given in words.get(path, ())


def several(given: str | Sequence[Thing] | None) -> tuple[str | Thing, ...]:
    """Returns texts or numbers as a tuple; one text may be given alone."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def put(content: dict[str, Any], path: str, value: Any) -> None:
    """Sets the value at a path such as 'stakes.discount'."""
    *tables, name = path.split(".")
    for table in tables:
        content = content.setdefault(table, {})
    content[name] = value


def merged(below: Mapping[str, Any], above: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """Merges nested values; `above` wins over `below`. `within` is the key of both."""
    both = dict(below)
    for name, value in above.items():
        inside = both.get(name)
        if isinstance(value, Mapping) and isinstance(inside, Mapping):
            if within == "bins" and {*RULES} & {*value}:  # another rule, of the same columns
                kept = ("columns",) if {*LEARNT} & {*value} else ()
                inside = {key: inside[key] for key in kept if key in inside}
            both[name] = merged(inside, value, name)
        else:
            both[name] = value
    return both


def assignment(text: str) -> dict[str, Any]:
    """Returns what `--set stakes.discount=0.9` says; a word needs no quotes.

    >>> assignment("method.algorithm=spibb"), assignment("bins.age.edges=[40, 60]")
    ({'method': {'algorithm': 'spibb'}}, {'bins': {'age': {'edges': [40, 60]}}})
    """
    name, equals, value = text.partition("=")
    for line in (text, f"{name} = {json.dumps(value.strip())}"):  # a key may have a = in quotes
        if not equals or "\n" in name or (line is text and "\n" in text):
            continue
        with suppress(ValueError, RecursionError):  # also numbers of more digits than Python reads
            return tomllib.loads(line)
    raise InvalidParameter(f"--set is {text!r}, expected KEY=VALUE such as stakes.discount=0.9")


def plain(value: Any) -> Any:
    """Returns a value without numbers of NumPy, paths and tuples; a list of one text is that text.

    >>> plain({"state": ["ward"], "edges": (1, 2)})
    {'state': 'ward', 'edges': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inside) for name, inside in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        values = [plain(inside) for inside in value]
        return values[0] if len(values) == 1 and isinstance(values[0], str) else values
    return value


KINDS = {
    "float": "a number", "int": "a whole number", "str": "a text", "array": "a list",
    "object": "a table of keys", "bool": "true or false",
}  # fmt: skip


def refusal(problem: Exception, content: Mapping[str, Any]) -> str:
    """Returns a sentence that names the wrong key and says what is wrong with it."""
    reason, _, place = str(problem).partition(" - at `")
    path = place.rstrip("`").removeprefix("$").strip(".")
    table = path.partition("[")[0]
    if "[...]" in path:
        path = path.replace("[...]", f".{key_text(first_wrong(table, content))}", 1)
    if field := re.search(r"unknown field `(.*)`", reason):
        known = TABLES.get(table, Description).__struct_fields__
        where = f" in [{path}]" if path else ""
        return str(unknown(f"there is no key {field[1]!r}{where}", field[1], known))
    reason = re.sub(r"^Invalid enum value .*", "Expected another word", reason)
    reason = re.sub(r"`(.*?)`", lambda kinds: in_kinds(kinds[1]), reason)
    reason = f"{reason[0].lower()}{reason[1:]}".replace(", got", "; found")
    value: Any = plain(content)
    for name in re.findall(r'(?<=")[^"]+(?=")|[^".\[\]]+', path):
        if isinstance(value, list):
            value = dict(zip(map(str, range(len(value))), value, strict=True))
        value = value.get(name) if isinstance(value, dict) else None
    found = f" is {value!r:.60}," if value is not None else ":"
    meaning = HELP.get(path, HELP.get(table.partition(".")[0], ""))
    return f"{path or 'the description'}{found} {reason}{meaning and f' ({meaning[:-1]})'}"


def first_wrong(table: str, content: Mapping[str, Any]) -> str:
    """Returns the first of bins, signals or names that cannot be read."""
    for name, inside in content[table].items():
        try:
            msgspec.convert(plain(inside), TABLES.get(table, dict[str, str]))
        except msgspec.ValidationError:
            return str(name)
    return "..."


def in_kinds(kinds: str) -> str:
    """Words the kinds of a value for a sentence: 'int | null' is 'a whole number'."""
    return " or ".join(KINDS.get(kind, kind) for kind in kinds.split(" | ") if kind != "null")


# ---- files ------------------------------------------------------------------------------------


def read_toml(path: str | Path) -> dict[str, Any]:
    """Returns the content of a TOML file."""
    try:
        return tomllib.loads(read_whole(Path(path)).decode())
    except (ValueError, RecursionError) as problem:
        raise InvalidParameter(f"{path} is not written as TOML: {problem}") from None


def description_of(files: Sequence[str], said: Mapping[str, Any]) -> Description:
    """Reads a description (TOML), or makes one for the files of a log.

    Values in `said` win over those of the file.
    """
    if not any(str(file).endswith(SUFFIX) for file in files):
        return described(merged({"files": files}, said))
    if len(files) > 1:
        raise InvalidParameter(
            f"{len(files)} logs are given, and one of them is a description ({SUFFIX}); expected "
            "one description, or the files of a log"
        )
    folder = Path(files[0]).parent
    below = with_files(read_toml(files[0]), lambda name: str(folder / name))
    if not below.get("files"):
        raise InvalidParameter(f"{files[0]} names no files, expected the key `files`")
    return described(merged(below, said), files[0])


def given_as(source: object, **words: Any) -> tuple[Description, object]:
    """Returns the description of a log, and the log itself if it is an object, not files.

    `source` is a description, one or several paths, a `LogSource`, counts, or a table in memory.
    `words` are further arguments of Python, which win; those that are None are left out.
    """
    told = in_words(**words)
    if isinstance(source, Description):
        return described(merged(source.given(), told)), None
    opened = getattr(source, "description", None)
    if isinstance(opened, Description):
        for name in HOW_TO_READ:
            if name in told:
                raise InvalidParameter(
                    f"{name} is given beside a {type(source).__name__}, which knows how it is "
                    "read; give it to read_log"
                )
        return described(merged(opened.given(), told)), source
    if not isinstance(source, str | os.PathLike | list | tuple):
        return described(told), source
    paths = source if isinstance(source, list | tuple) else [source]
    return description_of([os.fspath(path) for path in paths], told), None


def with_files(content: Mapping[str, Any], renamed: Callable[[str], Any]) -> dict[str, Any]:
    """Returns nested values with every name of a file changed by `renamed`."""

    def each(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: each(file) for name, file in value.items()}
        if isinstance(value, list | tuple):
            return [*map(each, value)]
        return renamed(value) if isinstance(value, str) else value

    moved = {x: each(y) if x in ("files", "tables") else y for x, y in content.items()}
    for path in FILE_KEYS:
        table, _, name = path.partition(".")
        said = moved.get(table)
        if isinstance(said, dict) and name in said and not is_word(path, said[name]):
            moved[table] = said | {name: each(said[name])}
    return moved


def written(value: Any) -> str:
    """Returns a value as TOML.

    >>> written({"edges": [1, 2.5], "a b": "ward"})
    '{ edges = [1, 2.5], "a b" = "ward" }'
    """
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key_text(name)} = {written(inside)}" for name, inside in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def key_text(name: str) -> str:
    """Returns a key as TOML has it, with quotes where it needs some."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else written(name)


def leaves(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the paths and values of nested values, as `--set` takes them."""
    for name, value in content.items():
        path = f"{before}{key_text(name)}"
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def command(
    verb: str, description: Description, *more: str, quote: Callable[[str], str] = shlex.quote
) -> str:
    """Returns the command line for a description: its options, and --set for all other keys."""
    content = description.given()
    files = several(content.pop("files", "LOG"))
    words = ["surestep", verb, *(f"./{x}" if x.startswith("-") else x for x in files)]  # no option
    for path, value in leaves(content):
        match path in OPTIONS, value:
            case True, [float(), float()]:
                words += [OPTIONS[path], *map(repr, value)]
            case True, list():
                words += [word for text in value for word in (OPTIONS[path], str(text))]
            case True, _:
                words += [OPTIONS[path], str(value)]
            case _:
                words += ["--set", f"{path}={written(value)}"]
    return " ".join(map(quote, [*words, *more]))


def without_folders(description: Description) -> Description:
    """Returns a description for a result's record: names of files without folders."""
    return described(with_files(description.given(), lambda file: Path(file).name))
