"""Pairs of state and action in a table, one row each, in the users' own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.errors import InvalidLog, SurestepError
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label, joined
from surestep.io.labels.label_tables import (
    LabelTable,
    columns_of,
    others,
    places_or_none,
    read_label_table,
)
from surestep.io.labels.vocabulary import Vocabulary, in_order, unknown_label
from surestep.model import Pairs


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs that a table has; a log may have no others where they are all that there are."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels in order
    pairs: Pairs

    for_states: ClassVar = "rows that say what can be done there"  # expected of the table
    for_pairs: ClassVar = "a row for it"

    @property
    def possible(self) -> BoolArray:
        """Returns the pairs [K] that a log may have."""
        return np.ones(self.pairs.num_pairs, np.bool_)

    def marked(self, vocabulary: Vocabulary, pairs: Pairs) -> BoolArray:
        """Returns which of these pairs [K], over these labels, the table has.

        Refused are labels that no state and no action has. A state of several columns may be one
        that nobody met: there is nothing to say of it then.
        """
        self.check_known("state", vocabulary)
        self.check_known("action", vocabulary)
        state = places_or_none(self.vocabulary.state_places, vocabulary.states)[pairs.state]
        action = places_or_none(self.vocabulary.action_places, vocabulary.actions)[pairs.action]
        known = (state >= 0) & (action >= 0)
        place = self.pairs.find(np.maximum(state, 0), np.maximum(action, 0))
        marked: BoolArray = known & (place >= 0)
        return marked

    def check_known(self, role: str, vocabulary: Vocabulary) -> None:
        """Refuses a text that no label of the role has in its column, nor could have as a bin."""
        places: Mapping[Label, int] = getattr(vocabulary, f"{role}_places")
        columns: tuple[str, ...] = getattr(vocabulary, f"{role}_columns")
        labels: tuple[Label, ...] = getattr(self.vocabulary, f"{role}s")
        texts = [{label[i] for label in places} for i in range(len(columns))]

        def strange(label: Label) -> bool:
            return any(
                text not in texts[i] and not is_bin(vocabulary.binnings.get(columns[i]), text)
                for i, text in enumerate(label)
            )

        unknown = [label for label in labels if label not in places and strange(label)]
        if unknown:
            raise InvalidLog(
                f"{self.name} has the {role} {joined(unknown[0])!r}: "
                f"{unknown_label(role, columns, unknown[0], places)}; leave its rows out, or list "
                f"all {role}s that there are (--{role}s){others(len(unknown), f'{role}s')}"
            )


def is_bin(binning: Binning | None, text: str) -> bool:
    """Tells whether a text is the label of a bin."""
    return binning is not None and binning.place(text) is not None


def read_pair_table(
    source: object,
    state_columns: Sequence[str],
    action_columns: Sequence[str],
    binnings: Mapping[str, Binning] | None = None,
) -> PairTable:
    """Returns the pairs in a file (CSV, Parquet, JSON lines) or a table in memory.

    States and actions have the columns of the log, or the usual names of a single one; others are
    not looked at. In a binned column stand numbers or labels of bins.
    """
    rows = read_pairs(source, state_columns, action_columns, binnings, InvalidLog)
    return PairTable(rows.table.name, rows.vocabulary, rows.pairs)


class LabelledPairs(NamedTuple):
    """A table with a row a pair of state and action."""

    table: LabelTable
    vocabulary: Vocabulary
    pairs: Pairs
    pair: IntArray  # of each row


def read_pairs(
    source: object,
    state_columns: Sequence[str],
    action_columns: Sequence[str],
    binnings: Mapping[str, Binning] | None,
    error: type[SurestepError],
    beside: Callable[[Sequence[str]], tuple[str, ...]] = lambda columns: (),
) -> LabelledPairs:
    """Reads a table with the columns of state and action, and those to be read `beside` them."""
    states, actions, bins = tuple(state_columns), tuple(action_columns), binnings or {}
    width = len(states)

    def choose(columns: Sequence[str]) -> tuple[str, ...]:
        named = (*columns_of("state", states, columns), *columns_of("action", actions, columns))
        return (*named, *beside(columns))

    table = read_label_table(source, choose)
    state_of = table.labels(slice(width), bins, states)
    action_of = table.labels(slice(width, width + len(actions)), bins, actions)
    check_each_once(table.name, state_of, action_of, error)
    known = tuple(in_order(state_of, states, bins)), tuple(in_order(action_of, actions, bins))
    vocabulary = Vocabulary(states, actions, *known, bins)
    state = places_or_none(vocabulary.state_places, state_of)
    action = places_or_none(vocabulary.action_places, action_of)
    pairs = vocabulary.pairs_of(np.stack([state, action], axis=1))
    return LabelledPairs(table, vocabulary, pairs, pairs.find(state, action))


def check_each_once(
    name: str, states: Sequence[Label], actions: Sequence[Label], error: type[SurestepError]
) -> None:
    """Refuses a state and action that are there twice."""
    first = dict[tuple[Label, Label], int]()
    for row, pair in enumerate(zip(states, actions, strict=True), start=1):
        if first.setdefault(pair, row) != row:
            raise error(
                f"{name}, row {row:,}: state {joined(pair[0])!r}, action {joined(pair[1])!r} is "
                f"there again, after row {first[pair]:,}; expected each state and action once"
            )
