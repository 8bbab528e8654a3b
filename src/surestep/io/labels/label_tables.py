"""Small tables about labels, from a file or memory: lists, pairs, and policies; how a log fits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import SUM_TOLERANCE, BoolArray, FloatArray, IntArray
from surestep._files import read_path
from surestep._names import twice
from surestep.description import Description
from surestep.errors import InvalidLog, InvalidParameter, InvalidPolicy, ShapeMismatch, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.binning import DECIMAL, Binning
from surestep.io.labels.vocabulary import (
    Label,
    Vocabulary,
    in_order,
    joined,
    label_text,
    unknown_label,
)
from surestep.io.logs.columns import ROLES, by_name, closest
from surestep.io.logs.findings import first_where
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import connected, find_table, named_in_errors, types_of
from surestep.io.sql import as_texts, sql_text
from surestep.model import Pairs, Policy

PROBABILITY = ("probability", "prob", "p", "behavior_prob", "pscore")
Text = str | None  # None where a cell is empty
Binnings = Mapping[str, Binning] | None
Columns = Sequence[str]
Labels = Sequence[Label]


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs that a table has, one row each; those of a policy with their probabilities."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels in order
    pairs: Pairs
    probability: FloatArray  # [K]; a log may have no pair of probability 0; 1 without a policy
    rows: Mapping[str, Sequence[Label]] = field(default_factory=dict)  # their labels by role

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
        unknown = [label for label in dict.fromkeys(self.rows[role]) if label not in places]
        for i, column in enumerate(columns):
            texts, binning = {label[i] for label in places}, vocabulary.binnings.get(column)
            for label in unknown:
                if label[i] not in texts and (binning is None or binning.place(label[i]) is None):
                    row = self.rows[role].index(label) + 1
                    raise InvalidLog(
                        f"{self.name}, row {row:,}: {unknown_label(role, columns, label, places)}; "
                        f"leave its rows out, or list all {role}s that there are (--{role}s)"
                    )


def read_pairs(
    source: object,
    states: Sequence[str],
    actions: Sequence[str],
    binnings: Binnings = None,
    *,
    policy: bool = False,
) -> PairTable:
    """Returns the pairs in a file (CSV, Parquet, JSON lines) or a table in memory.

    States and actions have the columns of the log, or the usual names of a single one; for a
    `policy`, `probability` says π(a|s). Others are not looked at. In a binned column stand numbers
    or labels of bins.
    """
    roles, bins = {"state": states, "action": actions}, binnings or {}
    last = {"probability": PROBABILITY[:1]} if policy else {}
    table = read_label_table(source, {**roles, **last}, bins)
    known = [tuple(in_order(table.labels[role], roles[role], bins)) for role in roles]
    words = Vocabulary(tuple(states), tuple(actions), known[0], known[1], bins)
    state = places_or_none(words.state_places, table.labels["state"])
    action = places_or_none(words.action_places, table.labels["action"])
    pairs = words.pairs_of(np.stack([state, action], axis=1))
    probability: FloatArray = np.ones(pairs.num_pairs)
    if policy:
        probability[pairs.find(state, action)] = [read_probability(table, x) for x in table.last]
        try:
            probability = Policy(pairs, probability).probability
        except InvalidPolicy as problem:
            raise InvalidPolicy(f"{table.name}: {problem}") from None
    return PairTable(table.name, words, pairs, probability, table.labels)


def read_probability(table: LabelTable, text: str) -> float:
    """Reads a number from 0 to 1, in which a comma can only be that of decimals."""
    plain = text.replace(",", ".")
    number = float(plain) if re.fullmatch(DECIMAL, plain) else np.nan
    if not 0 <= number <= 1:
        raise InvalidPolicy(
            f"{table.name}, row {table.last.index(text) + 1:,}, column {table.column!r}: found "
            f"{text!r}, expected a number from 0 to 1"
        )
    return number


class LabelTable(NamedTuple):
    """The labels of a table in the order of its rows, and the texts of its last column."""

    name: str  # for messages
    labels: dict[str, list[Label]]  # by role
    column: str  # of the probabilities, or of what comes last
    last: list[str]  # its texts


def read_label_table(
    source: object, roles: Mapping[str, Sequence[str]], binnings: Binnings
) -> LabelTable:
    """Reads the columns of each role: 'state' and 'action' as in the log, or 'probability'.

    A role of one column may have it under a usual name. Every cell says something, and no labels
    are there twice. In a binned column stand numbers or labels of bins.
    """
    wanted = [(role, column) for role, columns in roles.items() for column in columns]
    name, columns, rows = read_cells(source, roles)
    texts: dict[str, list[list[str]]] = {role: [] for role in roles}
    for (role, asked), column, cells in zip(wanted, columns, zip(*rows, strict=True), strict=True):
        binning = (binnings or {}).get(asked) if role in ROLES else None
        texts[role].append(texts_of(name, column, list(cells), binning))
    labels = {role: [*zip(*texts[role], strict=True)] for role in roles if role in ROLES}
    check_each_once(name, labels)
    return LabelTable(name, labels, columns[-1], texts[role][-1])


def read_cells(
    source: object, roles: Mapping[str, Sequence[str]]
) -> tuple[str, list[str], list[tuple[Text, ...]]]:
    """Returns the name of a table, its columns of these roles, and their cells row by row."""
    if isinstance(source, str | os.PathLike):
        table = find_table(Description(files=str(read_path(source))))
    else:
        table = find_table(Description(), source)
    with connected(table) as database:
        there = [*types_of(database)]
        with named_in_errors(table):
            found = [usual_columns(role, columns, there) for role, columns in roles.items()]
        columns = [column for each in found for column in each]
        database.execute("SET preserve_insertion_order = true")
        rows = database.execute(f"SELECT {as_texts(columns)} FROM log").fetchall()
    if not rows:
        raise InvalidLog(f"{table.name} has no row, expected at least one")
    return table.name, columns, rows


def usual_columns(role: str, wanted: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
    """Returns the columns of a role: those wanted, or, if it is one only, one of a usual name."""
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return wanted
    usual = ROLES[role].aliases if role in ROLES else PROBABILITY
    near = by_name(role, columns, usual) if len(wanted) == 1 else ()
    if not near:
        raise InvalidLog(
            f"there is no column {missing[0]!r} for the {role}; {closest(missing[0], columns)}"
        )
    return near


def texts_of(name: str, column: str, cells: list[Text], binning: Binning | None) -> list[str]:
    """Returns a column in which every row says something; numbers are binned where it is."""
    known = dict[Text, str]()
    for cell in dict.fromkeys(cells):
        try:
            if cell is None:
                raise InvalidParameter(f"column {column!r}: found nothing, expected a value")
            if binning is not None and "," in cell:
                raise InvalidParameter(
                    f"column {column!r}: found {cell!r}, expected a number with a decimal point, "
                    "since the column is binned"
                )
            known[cell] = label_text(column, cell, binning)
        except InvalidParameter as problem:
            row = cells.index(cell) + 1
            raise InvalidLog(f"{name}, row {row:,}, {problem}") from None
    return [known[cell] for cell in cells]


def check_each_once(name: str, labels: Mapping[str, list[Label]]) -> None:
    """Refuses a row whose labels are those of an earlier one."""
    for first, again in twice(zip(*labels.values(), strict=True)):
        texts = (f"{role} {joined(labels[role][again])!r}" for role in labels)
        raise InvalidLog(
            f"{name}, row {again + 1:,}: {', '.join(texts)} is there again, after row "
            f"{first + 1:,}; expected each once"
        )


def places_or_none(known: Mapping[Label, int], labels: Sequence[Label]) -> IntArray:
    """Returns the place of each label, −1 for one that is unknown."""
    return np.array([known.get(label, -1) for label in labels], np.int64)


def check_listed(
    role: str, columns: Columns, listed: Labels, logged: Labels, where: str, log: LogSource | None
) -> None:
    """Refuses a log with a label that is not listed; the `log` says in which row it is."""
    known = {label: index for index, label in enumerate(listed)}
    for label in logged:
        if label not in known:
            raise ShapeMismatch(
                f"{first_with(log, **{role: label})}the log has the {role} {joined(label)!r}, "
                f"which {where} does not have: {unknown_label(role, columns, label, known)}"
            )


def first_with(log: LogSource | None, **labels: Label) -> str:
    """Returns where a log has these labels of roles first, to begin a message: 'FILE, row 3: '."""
    if log is None:
        return ""
    with connected(log.table, log.memory_limit) as database:
        roles, alike = log.roles(database), list[str]()
        for role, label in labels.items():
            for code, text in zip(getattr(roles, role), label, strict=True):
                binning = roles.binnings.get(code.column)
                told = text if binning is None else str(binning.place(text))
                alike.append(f"CAST({code.sql} AS VARCHAR) = {sql_text(told)}")
        place, _ = first_where(log.table, database, " AND ".join(alike), code.column)
    return place and f"{place.rpartition(', column ')[0]}: "


def check_log_fits(table: PairTable, counts: LabelledCounts, log: LogSource | None = None) -> None:
    """Refuses a log that decides in states, or takes actions, of which the table has no chance."""
    words, rows = table.vocabulary, counts.transitions
    decided = [label for label, yes in zip(counts.states, counts.decided, strict=True) if yes]
    check_listed("state", words.state_columns, words.states, decided, table.name, log)
    state = places_or_none(words.state_places, counts.states)[rows.state]
    action = places_or_none(words.action_places, counts.actions)[rows.action]
    pair = np.where(action >= 0, table.pairs.find(state, np.maximum(action, 0)), -1)
    impossible = (pair < 0) | (table.probability[pair] == 0)
    for t, more in arrays.first_where(impossible, "transition"):
        there, what = counts.states[rows.state[t]], counts.actions[rows.action[t]]
        found = "gives it probability 0 there" if pair[t] >= 0 else "does not list it there"
        raise ShapeMismatch(
            f"{first_with(log, state=there, action=what)}the log takes action {joined(what)!r} in "
            f"state {joined(there)!r}, but {table.name} {found}; expected a row with a probability "
            f"above 0{more}"
        )


# ---- the policy that made a log, from the probabilities that its rows name --------------------


SAME = 1e-9  # relative: two probabilities so close are one, written with different rounding


class LoggedPolicy(NamedTuple):
    """The policy, and in how many states it rests on more than the log."""

    policy: Policy
    states_completed: int  # what is left of 1 was spread evenly over the actions never seen there
    states_unseen: int  # nobody decided there, so every action is equally likely


def propensities_vary(counts: LabelledCounts) -> bool:
    """Tells whether some action was logged with different probabilities in one state."""
    rows = counts.transitions
    if rows.lowest is None or not rows.state.size:
        return False
    pair = rows.state * np.int64(len(counts.actions)) + rows.action
    _, least, most = propensity_ranges(counts, pair)
    return bool((most - least > SAME * most).any())


def propensity_ranges(
    counts: LabelledCounts, pair: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Returns the pairs of the transitions, each once, with its least and greatest propensity."""
    rows, order = counts.transitions, np.argsort(pair, kind="stable")
    assert rows.lowest is not None
    assert rows.highest is not None
    seen, first = np.unique(pair[order], return_index=True)
    least = np.minimum.reduceat(rows.lowest[order], first)
    return seen, least, np.maximum.reduceat(rows.highest[order], first)


def policy_from_propensities(
    pairs: Pairs, seen: IntArray, least: FloatArray, most: FloatArray
) -> LoggedPolicy:
    """π_b from the lowest and the highest probability that the log gives each pair it shows.

    `seen` [n] numbers the pairs that the log shows, each once; `least` and `most` [n] are in
    (0, 1]. What the actions seen in a state leave of 1 is shared evenly by the actions never seen
    there.
    """
    of_rows = said("behavior='row-propensities'", "--behavior row-propensities")
    for i, others in arrays.first_where(most - least > SAME * most, "pair"):
        raise InvalidLog(
            f"the logged probability of {pairs.pair_name(int(seen[i]))} is between {least[i]} and "
            f"{most[i]}: the policy that made the log looks at more than the state columns, or "
            "changed on the way; add the columns that it looks at to the state, or say "
            f"{of_rows}: then it is estimated in every state, and whole episodes are weighted by "
            f"what their rows say{others}"
        )
    logged, known = np.zeros(pairs.num_pairs), np.zeros(pairs.num_pairs, np.bool_)
    logged[seen], known[seen] = most, True
    return completed(pairs, logged, known)


def completed(pairs: Pairs, logged: FloatArray, known: BoolArray) -> LoggedPolicy:
    """The policy of the logged probabilities [K], with the rest of each state where it belongs."""
    lengths = arrays.run_lengths(pairs.offsets)
    total = arrays.run_sums(logged, pairs.offsets)
    decided = arrays.run_sums(known.astype(np.int64), pairs.offsets)
    unseen, nobody = lengths - decided, decided == 0
    short = ~nobody & (total < 1 - SUM_TOLERANCE)
    wrong = (total > 1 + SUM_TOLERANCE) | (short & (unseen == 0))
    for s, others in arrays.first_where(wrong, "state"):
        raise InvalidLog(
            f"the logged probabilities of the actions seen in {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected {'at most ' if unseen[s] else ''}1; check the column of "
            f"probabilities, and list all actions if there are more{others}"
        )
    left = np.where(short | nobody, 1 - total, 0.0)
    share = np.repeat(left / np.maximum(unseen, 1), lengths)
    policy = Policy(pairs, np.where(known, logged, share))
    return LoggedPolicy(policy, int(np.count_nonzero(short)), int(np.count_nonzero(nobody)))
