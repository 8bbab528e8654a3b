"""Overlap: how often a log takes what a policy takes, by its own frequencies or by a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.io.labels.behavior import BehaviorTable
from surestep.io.labels.label import Label, joined
from surestep.io.labels.tables import places_or_none
from surestep.io.logs.inspection import LogFacts
from surestep.results.inspection import Caution, Overlap

RARE_SHARE = 0.01  # of a state's rows
DEVIATIONS = 5  # standard deviations of the number of rows, and one row for rounding
NAMED = 3  # labels that a sentence lists


def rows_by_state(facts: LogFacts) -> IntArray:
    """Counts the rows that decide in each state [S]."""
    total = np.zeros(len(facts.states), np.int64)
    np.add.at(total, facts.state, facts.taken)
    return total


def rare_pairs(facts: LogFacts) -> list[Caution]:
    """Actions that are tried in a state, but in few of its rows: thin overlap."""
    rare = facts.taken < RARE_SHARE * rows_by_state(facts)[facts.state]
    if not rare.any():
        return []
    share = f"{RARE_SHARE:.0%}".replace("%", " %")
    says = (
        f"{pairs_words(int(rare.sum()))} taken in less than {share} of the rows of their state, "
        f"such as {pair_names(facts, rare)}: an estimate that weighs rows by 1/π_b rests on few "
        "heavy rows there."
    )
    return [Caution("thin overlap", says)]


def compare(facts: LogFacts, table: BehaviorTable) -> tuple[Overlap, list[Caution]]:
    """Compares the log with the policy that is said to have made it; what there is to be said."""
    pair, known = places_in(facts, table)
    chance = np.where(pair >= 0, table.policy.probability[pair], 0.0)
    mean = rows_by_state(facts)[facts.state] * chance
    impossible = known & (chance == 0)
    slack = DEVIATIONS * np.sqrt(mean * (1 - chance)) + 1
    unlikely = known & ~impossible & (np.abs(facts.taken - mean) > slack)
    unknown = np.unique(facts.state[~known])
    expected = expected_rows(facts, table)
    expected[pair[pair >= 0]] = 0.0
    never_seen = np.argsort(-expected, kind="stable")[: np.count_nonzero(expected)]
    words = table.vocabulary
    overlap = Overlap(
        table.name,
        never_seen.size,
        int(impossible.sum()),
        int(unlikely.sum()),
        unknown.size,
        len(set(words.states) - set(facts.states)),
    )
    cautions = list[Caution]()
    if unknown.size:
        names = some_of([repr(joined(facts.states[s])) for s in unknown[:NAMED]], unknown.size)
        cautions.append(
            Caution(
                "unknown state",
                f"The policy says nothing about {unknown.size:,} of {len(facts.states):,} states "
                f"of the log, such as {names}: it cannot have made this log.",
            )
        )
    if impossible.any():
        cautions.append(
            Caution(
                "impossible pair",
                f"{pairs_words(overlap.impossible)} in the log, but never taken by the policy, "
                f"such as {pair_names(facts, impossible)}: it cannot have made this log.",
            )
        )
    if unlikely.any():
        cautions.append(
            Caution(
                "unlikely pair",
                f"{pairs_words(overlap.unlikely)} taken far more or less often than the policy "
                f"says (over {DEVIATIONS} standard deviations), such as "
                f"{pair_names(facts, unlikely)}: has another policy made this log?",
            )
        )
    if never_seen.size:
        state, action = table.pairs.state[never_seen], table.pairs.action[never_seen]
        first = [
            pair_name(words.states[s], words.actions[a])
            for s, a in zip(state[:NAMED], action[:NAMED], strict=True)
        ]
        cautions.append(
            Caution(
                "never seen",
                f"{pairs_words(never_seen.size)} taken by the policy, but never in the log, such "
                f"as {some_of(first, never_seen.size)}: nobody knows where that leads.",
            )
        )
    return overlap, cautions


def places_in(facts: LogFacts, table: BehaviorTable) -> tuple[IntArray, BoolArray]:
    """Returns each log pair's place in the table [K], −1 for none; and is its state known [K]?"""
    words = table.vocabulary
    state = places_or_none(words.state_places, facts.states)[facts.state]
    action = places_or_none(words.action_places, facts.actions)[facts.action]
    pair = table.pairs.find(np.maximum(state, 0), np.maximum(action, 0))
    return np.where((state >= 0) & (action >= 0), pair, -1), state >= 0


def expected_rows(facts: LogFacts, table: BehaviorTable) -> FloatArray:
    """Returns the rows in which the policy would take each pair of the table, on average [K]."""
    rows = np.append(rows_by_state(facts), 0)
    ours = places_or_none(
        {label: i for i, label in enumerate(facts.states)}, table.vocabulary.states
    )
    expected: FloatArray = rows[ours][table.pairs.state] * table.policy.probability
    return expected


def pairs_words(number: int) -> str:
    """'1 pair is' or '3 pairs are'."""
    return f"{number:,} pair is" if number == 1 else f"{number:,} pairs are"


def pair_name(state: Label, action: Label) -> str:
    """'service' in 'good, high'."""
    return f"{joined(action)!r} in {joined(state)!r}"


def pair_names(facts: LogFacts, chosen: BoolArray) -> str:
    """The first of the chosen pairs in words."""
    first = np.flatnonzero(chosen)
    names = [
        pair_name(facts.states[facts.state[k]], facts.actions[facts.action[k]])
        for k in first[:NAMED]
    ]
    return some_of(names, first.size)


def some_of(names: Sequence[str], total: int | None = None) -> str:
    """The first names, and that there are more."""
    shown = ", ".join(names[:NAMED])
    return shown if (total or len(names)) <= NAMED else f"{shown}, …"
