"""Maps the labels of a user (texts of columns) to the states and actions of a model."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, product
from typing import Any, Self

import numpy as np

import surestep._arrays as arrays
from surestep._names import did_you_mean, twice
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import DECIMAL, Binning
from surestep.io.labels.learnt_states import LearntStates
from surestep.model import Pairs

Label = tuple[str, ...]  # one text a column
Names = Mapping[str, Mapping[str, str]]  # column → text of the log → display name
# A text, a number, a sequence of them, a mapping column → text or number, or a row of pandas.
Given = object
MOST_COMPARED = 10_000  # labels that are compared with an unknown one, to suggest the closest


def joined(label: Label) -> str:
    r"""Joins the texts of several columns: 'ward 3, high'. A comma inside gets a backslash.

    >>> joined(("ward 3", "a,b"))
    'ward 3, a\\,b'
    """
    if len(label) == 1:
        return label[0]
    return ", ".join(text.replace("\\", "\\\\").replace(",", "\\,") for text in label)


def called(label: Label, columns: Sequence[str], names: Names) -> Label:
    """Replaces the texts of a label by their display names.

    >>> called(("1", "0"), ("iv_fluid", "vasopressor"), {"iv_fluid": {"1": "low"}})
    ('low', '0')
    """
    if not names:
        return label
    return tuple(
        names.get(column, {}).get(text, text) for column, text in zip(columns, label, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The labels of states and actions, in the order of the model, one text a column.

    Columns with a binning hold numbers in the users' tables; their texts are the labels of bins.
    `names` are display names for pages and screens.
    """

    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    binnings: Mapping[str, Binning] = field(default_factory=dict, hash=False)  # by column
    names: Names = field(default_factory=dict, hash=False)  # by column
    learnt: Mapping[str, LearntStates] = field(default_factory=dict, hash=False)  # by column
    state_places: Mapping[Label, int] = field(init=False, repr=False, compare=False)
    action_places: Mapping[Label, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Checks columns, labels and binnings once, and remembers where each label stands."""
        for role in ("state", "action"):
            columns = read_columns(role, getattr(self, f"{role}_columns"))
            labels = check_labels(role, columns, getattr(self, f"{role}s"))
            places = {label: index for index, label in enumerate(labels)}
            own = {f"{role}_columns": columns, f"{role}s": labels, f"{role}_places": places}
            arrays.keep(self, **own)
        known = (*self.state_columns, *self.action_columns)
        for what, given in (("is binned", self.binnings), ("has names", self.names)):
            for column in given:
                if column not in known:
                    raise InvalidParameter(
                        f"column {column!r} {what}, but is neither of the state nor of the action"
                        f"{nearest(column, known)}"
                    )

    def state_name(self, state: int) -> Label:
        """Returns the display name of a state, one text a column."""
        return called(self.states[state], self.state_columns, self.names)

    def action_name(self, action: int) -> Label:
        """Returns the display name of an action, one text a column."""
        return called(self.actions[action], self.action_columns, self.names)

    def picked(self, states: arrays.IntArray, actions: arrays.IntArray) -> Self:
        """Returns the vocabulary of these states and actions, in this order."""
        return replace(
            self,
            states=tuple(self.states[s] for s in states),
            actions=tuple(self.actions[a] for a in actions),
        )

    def index(self, role: str, given: Given) -> int:
        """Returns the number of a state or an action, given as text, texts, or a row of columns.

        A number stands for its text, and in a binned column for its bin.
        """
        places: Mapping[Label, int] = getattr(self, f"{role}_places")
        columns, values, label = self.read(role, given)
        if label in places:
            return places[label]
        fell = [
            f"{value} in column {column!r} falls into the bin {text!r}"
            for column, value, text in zip(columns, values, label, strict=True)
            if column in self.binnings and value != text
        ]
        binned = f"{' and '.join(fell)}: " if fell else ""
        raise InvalidParameter(f"{binned}{unknown_label(role, columns, label, places)}")

    def read(self, role: str, given: Given) -> tuple[tuple[str, ...], list[object], Label]:
        """Returns the columns of a role, their values in `given`, and the label of these.

        Learnt states are added to a row of measurements that lacks them.
        """
        columns: tuple[str, ...] = getattr(self, f"{role}_columns")
        places: Mapping[Label, int] = getattr(self, f"{role}_places")
        if hasattr(given, "items"):
            row = dict(given.items())  # a mapping, or a row of pandas
            missing = {name: states for name, states in self.learnt.items() if name not in row}
            given = row | {name: states.label(row) for name, states in missing.items()}
        values = given_values(role, columns, given)
        label = tuple(
            label_text(column, value, self.binnings.get(column))
            for column, value in zip(columns, values, strict=True)
        )
        # A row of pandas has one type for all numbers, and so has a column: 3 becomes 3.0 beside
        # a 0.5, and the label of a 3 that is given may be '3.0'.
        other = tuple(
            text
            if not arrays.is_number(value)
            else text.removesuffix(".0")
            if isinstance(value, float)
            else f"{text}.0"
            for text, value in zip(label, values, strict=True)
        )
        either = islice(product(*zip(label, other, strict=True)), MOST_COMPARED)
        return columns, values, next((x for x in (label, other, *either) if x in places), label)

    def pairs_of(self, enabled: object) -> Pairs:
        """Returns the pairs of a list [n, 2] of (state, action), in any order.

        Every state needs an action; one that ends episodes has an action that leads nowhere.
        """
        given = arrays.whole_numbers("enabled pairs", enabled, None, InvalidParameter)
        listed = given.reshape(-1, 2)
        state, action = listed[np.lexsort((listed[:, 1], listed[:, 0]))].T
        arrays.indices("enabled state", state, len(self.states), InvalidParameter)
        return Pairs(
            arrays.offsets_of(np.bincount(state, minlength=len(self.states))),
            action,
            len(self.actions),
            tuple(map(joined, self.states)),
            tuple(map(joined, self.actions)),
        )


def in_order(
    labels: Iterable[Label], columns: Sequence[str], binnings: Mapping[str, Binning]
) -> list[Label]:
    """Sorts labels column by column: bins by their numbers, everything else after them, as text.

    >>> in_order([(">= 10",), ("2 to < 10",), ("< 2",)], ["age"], {"age": Binning((2, 10))})
    [('< 2',), ('2 to < 10',), ('>= 10',)]
    """

    @cache
    def rank(column: str, text: str) -> tuple[bool, int, str]:
        binning = binnings.get(column)
        place = None if binning is None else binning.place(text)
        return place is None, place or 0, text

    return sorted(set(labels), key=lambda label: [*map(rank, columns, label)])


def given_values(role: str, columns: Sequence[str], given: Given) -> list[object]:
    """Returns one value a column from a mapping, a sequence or a single value."""
    if isinstance(given, Mapping):
        missing = next((column for column in columns if column not in given), None)
        if missing is not None:
            raise InvalidParameter(
                f"column {missing!r} is missing, expected {', '.join(columns)}"
                f"{nearest(missing, [*map(str, given)])}"
            )
        return [given[column] for column in columns]
    values = list(given) if isinstance(given, tuple | list) else [given]
    if len(values) != len(columns):
        raise InvalidParameter(
            f"{role} {given!r} has {len(values)} values, expected {len(columns)}: "
            f"{', '.join(columns)}"
        )
    return values


def label_text(column: str, value: object, binning: Binning | None) -> str:
    """Returns the text of a value in a column; a number in a binned column is binned.

    A text that says a number is binned too: no label of a bin is a number.
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if not isinstance(value, str) and not arrays.is_number(value):
        raise InvalidParameter(
            f"column {column!r} is {value!r}, expected a text, a number, true or false"
        )
    if not isinstance(value, str) and np.isnan(value):
        raise InvalidParameter(f"column {column!r} is NaN, expected a label or a number")
    if binning is None:
        return str(value)
    if isinstance(value, str) and not re.fullmatch(DECIMAL, value, re.ASCII):
        return value
    number = float(value)
    if not np.isfinite(number):
        raise InvalidParameter(f"column {column!r} is {value!r}, expected a finite number to bin")
    return binning.label(binning.index(number))


def unknown_label(
    role: str, columns: Sequence[str], label: Label, known: Mapping[Label, int]
) -> str:
    """Explains why a label is unknown: the text of one column, or the combination of texts."""
    for i, (column, text) in enumerate(zip(columns, label, strict=True)):
        texts = {other[i]: None for other in islice(known, MOST_COMPARED)}
        if text not in texts and not any(text == other[i] for other in known):
            return f"no {role} has {text!r} in column {column!r}{nearest(text, list(texts))}"
    texts = {joined(other): None for other in islice(known, MOST_COMPARED)}
    return f"there is no {role} {joined(label)!r}{nearest(joined(label), list(texts))}"


def nearest(text: str, known: Sequence[str]) -> str:
    """Returns the end of a message: the closest known texts, or the first few of them."""
    near = difflib.get_close_matches(text, known, n=3)
    if near:
        return f"; {did_you_mean(map(repr, near))}"
    return f"; known are {', '.join(map(repr, known[:3]))}{', …' if len(known) > 3 else ''}"


def read_columns(role: str, columns: Any) -> tuple[str, ...]:
    """Checks and returns names of columns, at least one, each once."""
    texts = isinstance(columns, tuple | list) and all(isinstance(name, str) for name in columns)
    if not columns or not texts or len(set(columns)) < len(columns):
        raise InvalidParameter(f"{role} columns are {columns!r}, expected names, each once")
    return tuple(columns)


def check_labels(role: str, columns: Sequence[str], labels: Any) -> tuple[Label, ...]:
    """Checks and returns labels of one text a column, at least one, each once."""
    for i, label in enumerate(labels):
        texts = label if isinstance(label, tuple | list) else ()
        if len(texts) != len(columns) or not all(isinstance(text, str) for text in texts):
            raise InvalidParameter(
                f"label of {role} {i} is {label!r}, expected {len(columns)} "
                f"text{'s' if len(columns) > 1 else ''}, one a column ({', '.join(columns)})"
            )
    known = tuple(map(tuple, labels))
    for _, i in twice(known):
        raise InvalidParameter(f"{role} label {joined(known[i])!r} is given twice, again at {i}")
    if not known:
        raise InvalidParameter(f"there is no {role}, expected at least one label")
    return known


def with_names(vocabulary: Vocabulary, names: Names) -> Vocabulary:
    """Adds display names by column and text; refuses a column without any known text.

    A column of the memory has those of the column that it remembers.
    """
    told = {name: re.sub(r" \d+ steps? before$", "", name) for name in vocabulary.state_columns}
    inherited = {name: names[own] for name, own in told.items() if own in names}
    words = replace(vocabulary, names={**inherited, **names})
    for columns, labels in (
        (words.state_columns, words.states),
        (words.action_columns, words.actions),
    ):
        for place, column in enumerate(columns):
            texts = {label[place] for label in labels}
            if column in names and not texts & set(names[column]):
                raise InvalidParameter(
                    f"column {column!r} is never {' or '.join(map(repr, list(names[column])[:3]))},"
                    f" which have names; known are {', '.join(map(repr, sorted(texts)[:3]))}"
                )
    return words
