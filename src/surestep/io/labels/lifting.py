"""Lifting: tables about single rows, said of histories.

A table of a policy, or of pairs, that has the columns of the present row says the same of every
history that ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from surestep._arrays import IntArray, offsets_of
from surestep.io.labels.behavior import BehaviorTable
from surestep.io.labels.binning import Binning
from surestep.io.labels.histories import History
from surestep.io.labels.label import Label
from surestep.io.labels.label_tables import places_or_none
from surestep.io.labels.pair_table import PairTable
from surestep.io.labels.vocabulary import Vocabulary, in_order
from surestep.model import Pairs, Policy

Table = TypeVar("Table", BehaviorTable, PairTable)


def lifted(
    table: Table, columns: Sequence[str], states: Sequence[Label], binnings: Mapping[str, Binning]
) -> Table:
    """Returns the table over those of the states, of these columns, whose present row it has.

    A table that is not about single rows, or whose columns are these, stays what it is.
    """
    words = table.vocabulary
    history = History.among(columns, words.action_columns)
    if history is None or words.state_columns != history.state:
        return table
    width = len(history.state)
    known = [label for label in states if label[:width] in words.state_places]
    vocabulary = Vocabulary(
        history.columns,
        words.action_columns,
        tuple(in_order(known, history.columns, binnings)),
        words.actions,
        binnings,
    )
    pairs, like = copied(table.pairs, vocabulary, width, words)
    if isinstance(table, PairTable):
        return replace(table, vocabulary=vocabulary, pairs=pairs, lifted=True)
    policy = Policy(pairs, table.policy.probability[like])
    return replace(table, vocabulary=vocabulary, policy=policy, lifted=True)


def copied(
    pairs: Pairs, vocabulary: Vocabulary, width: int, words: Vocabulary
) -> tuple[Pairs, IntArray]:
    """Returns the pairs of every history, and which pair [K] of its present row each one is."""
    present = places_or_none(words.state_places, [label[:width] for label in vocabulary.states])
    first, lengths = pairs.offsets[present], np.diff(pairs.offsets)[present]
    offsets = offsets_of(lengths)
    like = np.arange(int(offsets[-1])) + np.repeat(first - offsets[:-1], lengths)
    state = np.repeat(np.arange(present.size), lengths)
    return vocabulary.pairs_of(np.stack([state, pairs.action[like]], axis=1)), like
