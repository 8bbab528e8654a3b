"""Reads small tables of labels (lists, pairs, policies) and checks that a log fits them."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._files import read_path
from surestep._names import twice
from surestep.description import Description
from surestep.errors import (
    InvalidLog,
    InvalidParameter,
    InvalidPolicy,
    ShapeMismatch,
    named_in_errors,
    said,
)
from surestep.io.counts.labelled import LabelledCounts, positions
from surestep.io.labels.binning import DECIMAL, Binning
from surestep.io.labels.vocabulary import (
    Label,
    Vocabulary,
    in_order,
    joined,
    label_text,
    unknown_label,
)
from surestep.io.logs.columns import ROLES, ColumnMapping, by_name, closest
from surestep.io.logs.findings import first_row_where
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import Table, connected, find_table, types_of
from surestep.io.sql import as_texts, sql_text
from surestep.model import Pairs, Policy

PROBABILITY = ("probability", "prob", "p", "behavior_prob", "pscore")
Binnings = Mapping[str, Binning] | None


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs in a table of a user, one a row; a policy also has their probabilities."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels in order
    pairs: Pairs
    probability: (
        arrays.FloatArray
    )  # [K]; 1 without a policy; a log must not take pairs of probability 0
    rows: Mapping[str, Sequence[Label]] = field(default_factory=dict)  # their labels by role

    def marked(self, vocabulary: Vocabulary, pairs: Pairs) -> arrays.BoolArray:
        """Tells of each pair [K] whether the table has it.

        Refuses a text that no state or action has. A combination of texts that the log never shows
        marks no pair.
        """
        self.check_known("state", vocabulary)
        self.check_known("action", vocabulary)
        found = self.find(vocabulary.states, vocabulary.actions, pairs.state, pairs.action)
        return np.asarray(found >= 0)

    def find(
        self,
        states: Sequence[Label],
        actions: Sequence[Label],
        state: arrays.IntArray,
        action: arrays.IntArray,
    ) -> arrays.IntArray:
        """Returns the pairs [N] of numbered labels; −1 where the table has none."""
        own_state = positions(states, self.vocabulary.state_places)[state]
        own_action = positions(actions, self.vocabulary.action_places)[action]
        pair = self.pairs.find(np.maximum(own_state, 0), np.maximum(own_action, 0))
        return np.where((own_state >= 0) & (own_action >= 0), pair, -1)

    def check_known(self, role: str, vocabulary: Vocabulary) -> None:
        """Refuses a text that no known label has in that column, unless it names a bin of it."""
        places: Mapping[Label, int] = getattr(vocabulary, f"{role}_places")
        columns: tuple[str, ...] = getattr(vocabulary, f"{role}_columns")
        unknown = [label for label in dict.fromkeys(self.rows[role]) if label not in places]
        for i, column in enumerate(columns):
            texts = {label[i] for label in places}
            binning = vocabulary.binnings.get(column)
            for label in unknown:
                if label[i] not in texts and (binning is None or binning.place(label[i]) is None):
                    raise InvalidLog(
                        f"{self.name}, row {self.rows[role].index(label) + 1:,}: "
                        f"{unknown_label(role, columns, label, places)}; "
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
    """Reads the pairs in a file (CSV, Parquet, JSON lines) or a table in memory.

    States and actions are in the columns of the log, or in a column of a usual name; a `policy` has
    π(a|s) in a column such as `probability`. Other columns are ignored, and so are their bins. A
    binned column has numbers or labels of bins.
    """
    roles = {"state": states, "action": actions}
    bins = {x: rule for x, rule in (binnings or {}).items() if x in (*states, *actions)}
    last = {"probability": PROBABILITY[:1]} if policy else {}
    table = read_label_table(source, {**roles, **last}, bins)
    known = [tuple(in_order(table.labels[role], roles[role], bins)) for role in roles]
    words = Vocabulary(tuple(states), tuple(actions), known[0], known[1], bins)
    state = positions(table.labels["state"], words.state_places)
    action = positions(table.labels["action"], words.action_places)
    pairs = words.pairs_of(np.stack([state, action], axis=1))
    probability: arrays.FloatArray = np.ones(pairs.num_pairs)
    if policy:
        place = pairs.find(state, action)
        for row, text in enumerate(table.last):
            plain = text.replace(",", ".")  # a comma can only be that of decimals
            number = float(plain) if re.fullmatch(DECIMAL, plain) else np.nan
            if not 0 <= number <= 1:
                raise InvalidPolicy(
                    f"{table.name}, row {row + 1:,}, column {table.column!r}: found {text!r}, "
                    "expected a number from 0 to 1"
                )
            probability[place[row]] = number
        with named_in_errors(table.name, InvalidPolicy):
            probability = Policy(pairs, probability).probability
    return PairTable(table.name, words, pairs, probability, table.labels)


def read_lifted(
    source: object,
    columns: ColumnMapping,
    known: Sequence[Label],
    binnings: Mapping[str, Binning],
    *,
    policy: bool = False,
) -> PairTable:
    """Reads pairs like `read_pairs`; the table may leave out the columns of the memory.

    Then each row holds for all states in `known`, the states of the log, that agree with it in
    the other columns.
    """
    present = columns.present
    with connected(table_in(source)) as database:
        there = types_of(database)
    if not columns.memory or any(name in there for name in columns.state[len(present) :]):
        return read_pairs(source, columns.state, columns.action, binnings, policy=policy)
    table = read_pairs(source, present, columns.action, binnings, policy=policy)
    words = table.vocabulary
    width = len(present)
    if not policy:
        now = tuple(dict.fromkeys(label[:width] for label in known))
        table.check_known("state", replace(words, states=now))
    states = in_order(
        (label for label in known if label[:width] in words.state_places), columns.state, binnings
    )
    lifted = replace(words, state_columns=columns.state, states=tuple(states), binnings=binnings)
    runs = [
        np.flatnonzero(table.pairs.state == words.state_places[label[:width]]) for label in states
    ]
    pair: arrays.IntArray = np.concatenate(runs)
    owner = np.repeat(np.arange(len(runs)), [run.size for run in runs])
    listed = np.stack([owner, table.pairs.action[pair]], axis=1)
    rows = {"state": states, "action": table.rows["action"]}
    return PairTable(table.name, lifted, lifted.pairs_of(listed), table.probability[pair], rows)


class LabelTable(NamedTuple):
    """The labels of a table in the order of its rows, and the texts of its last column."""

    name: str  # for messages
    labels: dict[str, list[Label]]  # by role
    column: str  # the name of the last column, which has the probabilities of a policy
    last: list[str]  # the texts of that column


def read_label_table(
    source: object, roles: Mapping[str, Sequence[str]], binnings: Binnings
) -> LabelTable:
    """Reads the columns of each role: 'state' and 'action' as in the log, or 'probability'.

    A role of one column may use one of its usual names. Refuses empty cells and repeated labels.
    A binned column has numbers or labels of bins.
    """
    table = table_in(source)
    name = table.name
    wanted = [(role, column) for role, columns in roles.items() for column in columns]
    with connected(table) as database:
        there = [*types_of(database)]
        with named_in_errors(name, InvalidLog):
            columns = [
                column
                for role, asked in roles.items()
                for column in usual_columns(role, asked, there)
            ]
        database.execute("SET preserve_insertion_order = true")
        rows = database.execute(f"SELECT {as_texts(columns)} FROM log").fetchall()
    if not rows:
        raise InvalidLog(f"{name} has no row, expected at least one")
    texts: dict[str, list[list[str]]] = {role: [] for role in roles}
    for (role, asked), column, cells in zip(wanted, columns, zip(*rows, strict=True), strict=True):
        binning = (binnings or {}).get(asked) if role in ROLES else None
        texts[role].append(texts_of(name, column, list(cells), binning))
    labels = {role: [*zip(*texts[role], strict=True)] for role in roles if role in ROLES}
    for first, again in twice(zip(*labels.values(), strict=True)):
        shown = (f"{role} {joined(labels[role][again])!r}" for role in labels)
        raise InvalidLog(
            f"{name}, row {again + 1:,}: {', '.join(shown)} is there again, after row "
            f"{first + 1:,}; expected each once"
        )
    return LabelTable(name, labels, columns[-1], texts[role][-1])


def table_in(source: object) -> Table:
    """Returns the `Table` for a path, or for a table in memory."""
    if isinstance(source, str | os.PathLike):
        return find_table(Description(files=str(read_path(source))))
    return find_table(Description(), source)


def usual_columns(role: str, wanted: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
    """Returns the `wanted` columns; a single missing one is replaced by one with a usual name."""
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


def texts_of(name: str, column: str, cells: list[str | None], binning: Binning | None) -> list[str]:
    """Returns the labels of a column; refuses empty cells, and bins numbers if given a binning."""
    known = dict[str | None, str]()
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
            raise InvalidLog(f"{name}, row {cells.index(cell) + 1:,}, {problem}") from None
    return [known[cell] for cell in cells]


def check_listed(
    role: str,
    columns: Sequence[str],
    listed: Sequence[Label],
    logged: Sequence[Label],
    *,
    where: str,
    log: LogSource | None,
) -> None:
    """Refuses a log with a label that is not listed in `where`; names its row in the `log`."""
    known = {label: index for index, label in enumerate(listed)}
    for label in logged:
        if label not in known:
            raise ShapeMismatch(
                f"{first_with(log, {role: label})}the log has the {role} {joined(label)!r}, "
                f"which {where} does not have: {unknown_label(role, columns, label, known)}"
            )


def first_with(log: LogSource | None, labels: Mapping[str, Label]) -> str:
    """Returns the first row with these labels by role, to begin a message: 'FILE, row 3: '."""
    if log is None:
        return ""
    with connected(log.table, log.memory_limit) as database:
        roles = log.roles(database)
        conditions = list[str]()
        for role, label in labels.items():
            for code, text in zip(getattr(roles, role), label, strict=True):
                binning = roles.binnings.get(code.column)
                told = text if binning is None else str(binning.place(text))
                conditions.append(f"CAST({code.sql} AS VARCHAR) = {sql_text(told)}")
        place, _ = first_row_where(log.table, database, " AND ".join(conditions), code.column)
    return place and f"{place.rpartition(', column ')[0]}: "


def check_log_fits(table: PairTable, counts: LabelledCounts, log: LogSource | None = None) -> None:
    """Refuses a log with a state that the table lacks, or an action of probability 0 there."""
    words = table.vocabulary
    rows = counts.transitions
    decided = [label for label, yes in zip(counts.states, counts.decided, strict=True) if yes]
    check_listed("state", words.state_columns, words.states, decided, where=table.name, log=log)
    pair = table.find(counts.states, counts.actions, rows.state, rows.action)
    for t, more in arrays.first_where((pair < 0) | (table.probability[pair] == 0), "transition"):
        there = counts.states[rows.state[t]]
        what = counts.actions[rows.action[t]]
        fault = "gives it probability 0 there" if pair[t] >= 0 else "does not list it there"
        raise ShapeMismatch(
            f"{first_with(log, {'state': there, 'action': what})}the log takes action "
            f"{joined(what)!r} in state {joined(there)!r}, but {table.name} {fault}; expected a "
            f"row with a probability above 0{more}"
        )


# ---- the policy that made a log, from the logged probabilities of its actions -----------------


SAME = 1e-9  # relative; probabilities this close differ by rounding only


def propensities_vary(counts: LabelledCounts) -> bool:
    """Tells whether some action was logged with different probabilities in one state."""
    rows = counts.transitions
    if rows.lowest is None or not rows.state.size:
        return False
    _, least, most = propensity_ranges(
        counts, rows.state * np.int64(len(counts.actions)) + rows.action
    )
    return bool((most - least > SAME * most).any())


def propensity_ranges(
    counts: LabelledCounts, pair: arrays.IntArray
) -> tuple[arrays.IntArray, arrays.FloatArray, arrays.FloatArray]:
    """Returns the pairs of the transitions, each once, with its least and greatest propensity."""
    rows = counts.transitions
    order = np.argsort(pair, kind="stable")
    assert rows.lowest is not None
    assert rows.highest is not None
    seen, first = np.unique(pair[order], return_index=True)
    least = np.minimum.reduceat(rows.lowest[order], first)
    return seen, least, np.maximum.reduceat(rows.highest[order], first)


def policy_from_propensities(
    pairs: Pairs, seen: arrays.IntArray, least: arrays.FloatArray, most: arrays.FloatArray
) -> tuple[Policy, int, int]:
    """Returns π_b from the lowest and the highest logged probability of each pair.

    `seen` [n] numbers the pairs that the log shows, each once; `least` and `most` [n] are in
    (0, 1]. Actions never seen in a state share evenly what the seen ones leave of 1. Also returns
    in how many states they do, and in how many no row decides: there all are equally likely.
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
    logged = np.zeros(pairs.num_pairs)
    logged[seen] = most
    known = arrays.marked(seen, pairs.num_pairs)
    lengths = arrays.run_lengths(pairs.offsets)
    total = arrays.run_sums(logged, pairs.offsets)
    decided = arrays.run_sums(known.astype(np.int64), pairs.offsets)
    unseen = lengths - decided
    nobody = decided == 0
    short = ~nobody & (total < 1 - arrays.SUM_TOLERANCE)
    wrong = (total > 1 + arrays.SUM_TOLERANCE) | (short & (unseen == 0))
    for s, others in arrays.first_where(wrong, "state"):
        raise InvalidLog(
            f"the logged probabilities of the actions seen in {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected {'at most ' if unseen[s] else ''}1; check the column of "
            f"probabilities, and list all actions if there are more{others}"
        )
    left = np.where(short | nobody, 1 - total, 0.0)
    share = np.repeat(left / np.maximum(unseen, 1), lengths)
    policy = Policy(pairs, np.where(known, logged, share))
    return policy, int(np.count_nonzero(short)), int(np.count_nonzero(nobody))
