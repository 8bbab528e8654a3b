"""A policy as a table, one row a state and action with its probability, and how a log fits it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.errors import InvalidLog, InvalidPolicy, ShapeMismatch
from surestep.io.bin_rules import DECIMAL
from surestep.io.binning import Binning
from surestep.io.label_table import (
    LabelTable,
    Locate,
    columns_of,
    found_at,
    nowhere,
    others,
    read_label_table,
)
from surestep.io.labelled_counts import Label, LabelledCounts, joined
from surestep.io.log_columns import closest
from surestep.io.vocabulary import Vocabulary, unknown_label
from surestep.model import Pairs, Policy

PROBABILITY = ("probability", "prob", "p", "behavior_prob", "pscore")


@dataclass(frozen=True, slots=True)
class BehaviorTable:
    """The policy of a table: its pairs are exactly the rows, those of probability 0 included."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels rise, like those of counts
    policy: Policy

    @property
    def pairs(self) -> Pairs:
        """The pairs of state and action that the table has."""
        return self.policy.pairs


def read_behavior_table(
    source: object,
    state_columns: Sequence[str],
    action_columns: Sequence[str],
    binnings: Mapping[str, Binning] | None = None,
) -> BehaviorTable:
    """The policy in a file (CSV, Parquet, JSON lines) or a table in memory.

    States and actions have the columns of the log, or the usual names of a single one, and
    `probability` says π_b(a|s). In a binned column stand numbers or labels of bins.
    """
    states, actions, bins = tuple(state_columns), tuple(action_columns), binnings or {}

    def choose(columns: Sequence[str]) -> tuple[str, ...]:
        return (
            *columns_of("state", states, columns),
            *columns_of("action", actions, columns),
            probability_column(columns),
        )

    table = read_label_table(source, choose)
    width = len(states)
    state_of = table.labels(slice(width), bins, states)
    action_of = table.labels(slice(width, -1), bins, actions)
    check_each_once(table.name, state_of, action_of)
    known = tuple(sorted(set(state_of))), tuple(sorted(set(action_of)))
    vocabulary = Vocabulary(states, actions, *known, bins)
    state = places(vocabulary.state_places, state_of)
    action = places(vocabulary.action_places, action_of)
    pairs = vocabulary.pairs_of(np.stack([state, action], axis=1))
    probability = np.zeros(pairs.num_pairs)
    probability[pairs.find(state, action)] = read_probabilities(table)
    try:
        return BehaviorTable(table.name, vocabulary, Policy(pairs, probability))
    except InvalidPolicy as problem:
        raise InvalidPolicy(f"{table.name}: {problem}") from None


def probability_column(columns: Sequence[str]) -> str:
    """The column of probabilities, by its name or one of its aliases, in any case of letters."""
    if PROBABILITY[0] in columns:
        return PROBABILITY[0]
    found = [name for name in columns if name.lower() in PROBABILITY]
    if len(found) > 1:
        raise InvalidLog(
            f"the probability may be column {' or '.join(map(repr, found))}; call the right one "
            f"{PROBABILITY[0]!r}"
        )
    if not found:
        raise InvalidLog(
            f"no column says what the probability is; {closest(PROBABILITY[0], columns)}; call it "
            f"{PROBABILITY[0]!r}"
        )
    return found[0]


def read_probabilities(table: LabelTable) -> FloatArray:
    """The last column as numbers from 0 to 1."""
    cells = [row[-1] for row in table.rows]
    known = dict[str | None, float]()
    for text in dict.fromkeys(cells):
        known[text] = float(text) if text is not None and re.fullmatch(DECIMAL, text) else np.nan
        if not 0 <= known[text] <= 1:
            raise InvalidPolicy(
                f"{table.name}, row {cells.index(text) + 1:,}, column {table.columns[-1]!r}: found "
                f"{'nothing' if text is None else repr(text)}, expected a number from 0 to 1"
            )
    return np.array([known[text] for text in cells])


def check_each_once(name: str, states: Sequence[Label], actions: Sequence[Label]) -> None:
    """Refuses a state and action that are there twice."""
    first = dict[tuple[Label, Label], int]()
    for row, pair in enumerate(zip(states, actions, strict=True), start=1):
        if first.setdefault(pair, row) != row:
            raise InvalidPolicy(
                f"{name}, row {row:,}: state {joined(pair[0])!r}, action {joined(pair[1])!r} is "
                f"there again, after row {first[pair]:,}; expected each state and action once"
            )


def check_log_fits(table: BehaviorTable, counts: LabelledCounts, locate: Locate = nowhere) -> None:
    """Refuses a log that this policy cannot have made.

    Every state in which the log decides must be in the table, and every action that it takes there
    must have a probability above 0. `locate` finds the row that is at fault.
    """
    words, rows = table.vocabulary, counts.transitions
    for role in ("state", "action"):
        ours, theirs = getattr(words, f"{role}_columns"), getattr(counts, f"{role}_columns")
        if ours != theirs:
            raise ShapeMismatch(
                f"the {role} is {', '.join(ours)} in {table.name} and {', '.join(theirs)} in the "
                "log; expected the same columns"
            )
    state = places(words.state_places, counts.states)
    action = places(words.action_places, counts.actions)
    missing = np.flatnonzero(counts.decided & (state < 0))
    if missing.size:
        label = counts.states[missing[0]]
        hint = unknown_label("state", words.state_columns, label, words.state_places)
        raise ShapeMismatch(
            f"{found_at(locate({'state': label}))}the log decides in the unknown state "
            f"{joined(label)!r}: in {table.name}, {hint}; expected rows that say what the policy "
            f"does there{others(missing.size, 'states')}"
        )
    check_possible(table, counts, state[rows.state], action[rows.action], locate)


def check_possible(
    table: BehaviorTable,
    counts: LabelledCounts,
    state: IntArray,
    action: IntArray,
    locate: Locate,
) -> None:
    """Refuses a log that takes an action which the policy never takes."""
    rows = counts.transitions
    pair = np.where(action >= 0, table.pairs.find(state, np.maximum(action, 0)), -1)
    listed = pair >= 0
    impossible = ~listed | (table.policy.probability[pair] == 0)
    if not impossible.any():
        return
    first = int(np.argmax(impossible))
    same = (rows.state == rows.state[first]) & (rows.action == rows.action[first])
    times = int(rows.times[same].sum())
    taken = np.stack([rows.state[impossible], rows.action[impossible]])
    there, what = counts.states[rows.state[first]], counts.actions[rows.action[first]]
    raise ShapeMismatch(
        f"{found_at(locate({'state': there, 'action': what}))}the log takes action "
        f"{joined(what)!r} in state {joined(there)!r} {times:,} time{'s' if times > 1 else ''}, "
        f"but {table.name} {'gives it probability 0' if listed[first] else 'does not list it'} "
        f"there; expected a probability above 0{others(np.unique(taken, axis=1).shape[1], 'pairs')}"
    )


def places(known: Mapping[Label, int], labels: Sequence[Label]) -> IntArray:
    """Where each label stands, −1 for one that is unknown."""
    return np.array([known.get(label, -1) for label in labels], np.int64)
