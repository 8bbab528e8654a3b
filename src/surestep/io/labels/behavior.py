"""A policy as a table, one row a state and action with its probability, and how a log fits it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    SUM_TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    refuse_where,
    run_lengths,
    run_sums,
)
from surestep.errors import InvalidLog, InvalidPolicy, ShapeMismatch, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.bin_rules import DECIMAL
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import joined
from surestep.io.labels.label_tables import (
    PROBABILITY,
    LabelTable,
    Locate,
    check_listed,
    found_at,
    nowhere,
    others,
    places_or_none,
)
from surestep.io.labels.pair_table import PairTable, read_pairs
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Pairs, Policy


@dataclass(frozen=True, slots=True)
class BehaviorTable:
    """The policy of a table: its pairs are exactly the rows, those of probability 0 included."""

    name: str  # for messages
    vocabulary: Vocabulary  # labels in order
    policy: Policy

    @property
    def pairs(self) -> Pairs:
        """The pairs of state and action that the table has."""
        return self.policy.pairs

    @property
    def possible(self) -> BoolArray:
        """Returns the pairs [K] that a log of this policy may have."""
        return self.policy.probability > 0


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
    roles = {"state": state_columns, "action": action_columns, "probability": PROBABILITY[:1]}
    table, pair, read = read_pairs(source, roles, binnings)
    probability = np.zeros(table.pairs.num_pairs)
    probability[pair] = read_probabilities(read)
    try:
        policy = Policy(table.pairs, probability)
    except InvalidPolicy as problem:
        raise InvalidPolicy(f"{table.name}: {problem}") from None
    return BehaviorTable(table.name, table.vocabulary, policy)


def read_probabilities(table: LabelTable) -> FloatArray:
    """The last column as numbers from 0 to 1, where a comma can only be that of decimals."""
    known = dict[str, float]()
    for text in dict.fromkeys(table.last):
        plain = text.replace(",", ".")
        known[text] = float(plain) if re.fullmatch(DECIMAL, plain) else np.nan
        if not 0 <= known[text] <= 1:
            raise InvalidPolicy(
                f"{table.name}, row {table.last.index(text) + 1:,}, column {table.column!r}: found "
                f"{text!r}, expected a number from 0 to 1"
            )
    return np.array([known[text] for text in table.last])


def check_log_fits(
    table: BehaviorTable | PairTable, counts: LabelledCounts, locate: Locate = nowhere
) -> None:
    """Refuses a log that this policy cannot have made, or that has other pairs than there are.

    Every state in which the log decides must be in the table, and every action that it takes there
    must have a row, for a policy one with a probability above 0. `locate` finds the row that is at
    fault.
    """
    words, rows = table.vocabulary, counts.transitions
    decided = [label for label, yes in zip(counts.states, counts.decided, strict=True) if yes]
    check_listed("state", words.state_columns, words.states, decided, locate, table.name)
    state = places_or_none(words.state_places, counts.states)[rows.state]
    action = places_or_none(words.action_places, counts.actions)[rows.action]
    pair = np.where(action >= 0, table.pairs.find(state, np.maximum(action, 0)), -1)
    impossible = (pair < 0) | ~table.possible[pair]
    if not impossible.any():
        return
    first = int(np.argmax(impossible))
    same = (rows.state == rows.state[first]) & (rows.action == rows.action[first])
    times = int(rows.times[same].sum())
    taken = np.stack([rows.state[impossible], rows.action[impossible]])
    there, what = counts.states[rows.state[first]], counts.actions[rows.action[first]]
    expected = "does not list it there; expected a row for it"
    if pair[first] >= 0:
        expected = "gives it probability 0 there; expected a probability above 0"
    raise ShapeMismatch(
        f"{found_at(locate({'state': there, 'action': what}))}the log takes action "
        f"{joined(what)!r} in state {joined(there)!r} {times:,} time{'s' if times > 1 else ''}, "
        f"but {table.name} {expected}{others(np.unique(taken, axis=1).shape[1], 'pairs')}"
    )


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

    def found(i: int) -> str:
        span = str(least[i]) if least[i] == most[i] else f"between {least[i]} and {most[i]}"
        return f"the logged probability of {pairs.pair_name(int(seen[i]))} is {span}"

    of_rows = said("behavior='row-propensities'", "--behavior row-propensities")
    refuse_where(
        ~((least > 0) & (least <= most) & (most <= 1)),
        lambda i: (
            f"{found(i)}, expected above 0 and at most 1: it is that of an action that was taken"
        ),
        "pair",
        InvalidLog,
    )
    refuse_where(
        most - least > SAME * most,
        lambda i: (
            f"{found(i)}: the policy that made the log looks at more than the state columns, or "
            "changed on the way; add the columns that it looks at to the state, or say "
            f"{of_rows}: then it is estimated in every state, and whole episodes are weighted by "
            "what their rows say"
        ),
        "pair",
        InvalidLog,
    )
    logged, known = np.zeros(pairs.num_pairs), np.zeros(pairs.num_pairs, np.bool_)
    logged[seen], known[seen] = most, True
    return completed(pairs, logged, known)


def completed(pairs: Pairs, logged: FloatArray, known: BoolArray) -> LoggedPolicy:
    """The policy of the logged probabilities [K], with the rest of each state where it belongs."""
    lengths = run_lengths(pairs.offsets)
    total = run_sums(logged, pairs.offsets)
    decided = run_sums(known.astype(np.int64), pairs.offsets)
    unseen, nobody = lengths - decided, decided == 0
    short = ~nobody & (total < 1 - SUM_TOLERANCE)
    refuse_where(
        (total > 1 + SUM_TOLERANCE) | (short & (unseen == 0)),
        lambda s: (
            f"the logged probabilities of the actions seen in {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected {'at most ' if unseen[s] else ''}1; check the column of "
            "probabilities, and list all actions if there are more"
        ),
        "state",
        InvalidLog,
    )
    left = np.where(short | nobody, 1 - total, 0.0)
    share = np.repeat(left / np.maximum(unseen, 1), lengths)
    policy = Policy(pairs, np.where(known, logged, share))
    return LoggedPolicy(policy, int(np.count_nonzero(short)), int(np.count_nonzero(nobody)))
