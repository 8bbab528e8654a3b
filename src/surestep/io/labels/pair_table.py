"""Pairs of state and action in a table, one row each, in the users' own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.errors import InvalidLog
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label, joined
from surestep.io.labels.label_tables import LabelTable, others, places_or_none, read_label_table
from surestep.io.labels.vocabulary import Vocabulary, in_order, unknown_label
from surestep.model import Pairs


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs that a table has; a log may have no others where they are all that there are."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels in order
    pairs: Pairs

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
        unknown = [label for label in getattr(self.vocabulary, f"{role}s") if label not in places]
        for i, column in enumerate(columns):
            texts, binning = {label[i] for label in places}, vocabulary.binnings.get(column)
            strange = [label for label in unknown if label[i] not in texts]
            if binning is not None:
                strange = [label for label in strange if binning.place(label[i]) is None]
            if strange:
                raise InvalidLog(
                    f"{self.name} has the {role} {joined(strange[0])!r}: "
                    f"{unknown_label(role, columns, strange[0], places)}; leave its rows out, or "
                    f"list all {role}s that there are (--{role}s)"
                    f"{others(len(strange), f'{role}s')}"
                )


def read_pairs(
    source: object, roles: Mapping[str, Sequence[str]], binnings: Mapping[str, Binning] | None
) -> tuple[PairTable, IntArray, LabelTable]:
    """Returns the pairs in a file or a table in memory, the pair of each row, and what was read.

    States and actions have the columns of the log, or the usual names of a single one; others than
    those of these roles are not looked at. In a binned column stand numbers or labels of bins.
    """
    table, bins = read_label_table(source, roles, binnings), binnings or {}
    states, actions = tuple(roles["state"]), tuple(roles["action"])
    state_of, action_of = table.labels["state"], table.labels["action"]
    known = tuple(in_order(state_of, states, bins)), tuple(in_order(action_of, actions, bins))
    words = Vocabulary(states, actions, *known, bins)
    state = places_or_none(words.state_places, state_of)
    action = places_or_none(words.action_places, action_of)
    pairs = words.pairs_of(np.stack([state, action], axis=1))
    return PairTable(table.name, words, pairs), pairs.find(state, action), table
