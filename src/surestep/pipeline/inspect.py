"""Inspecting a log: from the facts that one look at it found to what they mean for learning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.description import DEFAULTS, WORDS_FOR_BEHAVIOR
from surestep.errors import InvalidParameter, said
from surestep.io.labels.behavior import BehaviorTable, read_behavior_table
from surestep.io.labels.bin_rules import DECIMAL
from surestep.io.labels.label import Label, joined
from surestep.io.labels.label_tables import places_or_none
from surestep.io.logs.inspection import LogFacts, inspect_log
from surestep.io.logs.source import LogSource
from surestep.pipeline.checks import inspection_checks
from surestep.results.chart_bins import Bin
from surestep.results.inspection import (
    ActionUse,
    Caution,
    Coverage,
    EpisodeLengths,
    Inspection,
    Overlap,
    Spread,
    StateUse,
)

BUSIEST = 30  # states whose visits are listed
LENGTH_BINS = 24
MANY = 100  # different numbers in a column, or states, from which on bins are proposed
SOME = 10  # different numbers in a column, from which on it is a measurement


def inspect(
    source: LogSource,
    *,
    n_wedge: int = DEFAULTS["least_visits"] - 1,
    behavior: object = None,
) -> Inspection:
    """Looks at a log; a pair with more than `n_wedge` visits is one that SPIBB would trust.

    By default that is the least N∧ that `improve` would choose.
    `behavior` is a table of the policy that is said to have made the log, such as a path; by
    default the one that the description of the log names.
    """
    if isinstance(n_wedge, bool) or not isinstance(n_wedge, int) or n_wedge < 0:
        raise InvalidParameter(f"n_wedge is {n_wedge!r}, expected a whole number of 0 or more")
    facts = inspect_log(source)
    roles, table = source.columns, None
    named = source.description.behavior.policy
    behavior = named if behavior is None and named not in WORDS_FOR_BEHAVIOR else behavior
    if behavior is not None:
        table = read_behavior_table(behavior, roles.state, roles.action, facts.binnings)
    trusted = facts.visits > n_wedge
    by_tried = states_by_pairs(facts, facts.visits > 0)
    overlap, mismatches = (None, []) if table is None else compare(facts, table)
    by_trusted = states_by_pairs(facts, trusted)
    actions = action_use(facts, trusted)
    return Inspection(
        source=source.table.name,
        columns=source.columns,
        n_wedge=n_wedge,
        rows=facts.rows,
        unfinished=facts.unfinished,
        states=len(facts.states),
        states_only_reached=facts.only_reached,
        actions=actions,
        episodes=episode_lengths(facts),
        rewards=facts.rewards,
        coverage=coverage(facts, n_wedge),
        states_by_tried=by_tried,
        states_by_trusted=by_trusted,
        busiest=busiest_states(facts),
        overlap=overlap,
        cautions=(
            *cautions(facts, n_wedge, actions, by_tried, by_trusted),
            *fine_columns(facts, source),
            *rare_pairs(facts),
            *mismatches,
        ),
        suspicions=facts.suspicions,
        names=source.description.names,
        checks=inspection_checks(source, facts),
    )


# ---- coverage ---------------------------------------------------------------------------------


def coverage(facts: LogFacts, n_wedge: int) -> Coverage:
    """Counts the visits of pairs."""
    pairs = len(facts.states) * len(facts.actions)
    visits = facts.visits[facts.visits > 0]
    trusted = visits[visits > n_wedge]
    ones = np.ones_like(visits)
    return Coverage(
        pairs,
        pairs - visits.size,
        trusted.size,
        int(trusted.sum()),
        spread(visits, ones),
        (
            Bin(0, 0, pairs - visits.size),
            *binned(visits, ones, visit_edges(visits, n_wedge)),
        ),
    )


def visit_edges(visits: IntArray, n_wedge: int) -> list[int]:
    """Returns where bins of visits begin: 1, 2, 5, 10, 20, … and just above N∧, none near it."""
    largest = int(visits.max(initial=1))
    round_numbers = [
        factor * 10**power for power in range(len(str(largest))) for factor in (1, 2, 5)
    ]
    beyond = n_wedge + 1
    apart = [edge for edge in round_numbers if edge == 1 or abs(edge - beyond) > 0.2 * beyond]
    return sorted(edge for edge in {*apart, beyond} if edge <= largest)


def binned(values: IntArray, times: IntArray, edges: Sequence[int]) -> tuple[Bin, ...]:
    """Counts the values, each so many times, that lie from each edge to before the next."""
    if values.size == 0:
        return ()
    place = np.searchsorted(edges, values, side="right") - 1
    number = np.zeros(len(edges), np.int64)
    np.add.at(number, place, times)
    last = [*(edge - 1 for edge in edges[1:]), int(values.max())]
    return tuple(map(Bin, edges, last, number.tolist()))


def spread(values: IntArray, times: IntArray) -> Spread | None:
    """Quartiles of values that are there so many times each: the smallest with that share below."""
    if values.size == 0:
        return None
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(times[order])
    places = [np.searchsorted(4 * upto, quarter * upto[-1]) for quarter in (1, 2, 3)]
    marks = (int(values[order][place]) for place in (0, *places, -1))
    return Spread(*marks)


def states_by_pairs(facts: LogFacts, counted: BoolArray) -> tuple[int, ...]:
    """Counts the states in which 0, 1, … all actions are counted."""
    number = np.bincount(facts.state[counted], minlength=len(facts.states))
    numbers: list[int] = np.bincount(number, minlength=len(facts.actions) + 1).tolist()
    return tuple(numbers)


def action_use(facts: LogFacts, trusted: BoolArray) -> tuple[ActionUse, ...]:
    """Counts for each action how often it was taken, and in how many states."""
    size = len(facts.actions)
    visits = np.zeros(size, np.int64)
    np.add.at(visits, facts.action, facts.visits)
    states = np.bincount(facts.action[facts.visits > 0], minlength=size)
    sure = np.bincount(facts.action[trusted], minlength=size)
    numbers = (column.tolist() for column in (visits, states, sure))
    return tuple(map(ActionUse, facts.actions, *numbers))


def busiest_states(facts: LogFacts) -> tuple[StateUse, ...]:
    """Returns the states with most visits, equal ones in the order of their labels."""
    total = np.zeros(len(facts.states), np.int64)
    np.add.at(total, facts.state, facts.visits)
    chosen = np.argsort(-total, kind="stable")[:BUSIEST]
    begin, end = (np.searchsorted(facts.state, chosen, side) for side in ("left", "right"))
    used = list[StateUse]()
    for state, first, last in zip(chosen, begin, end, strict=True):
        row = np.zeros(len(facts.actions), np.int64)
        row[facts.action[first:last]] = facts.visits[first:last]
        used.append(StateUse(facts.states[state], tuple(row.tolist())))
    return tuple(used)


def episode_lengths(facts: LogFacts) -> EpisodeLengths | None:
    """Counts the episodes by length, in bins of equal width."""
    episodes = facts.episodes
    if episodes is None:
        return None
    bins: tuple[Bin, ...] = ()
    if episodes.number:
        low, high = int(episodes.lengths[0]), int(episodes.lengths[-1])
        width = -(-(high - low + 1) // LENGTH_BINS)
        bins = binned(episodes.lengths, episodes.times, range(low, high + 1, width))
    return EpisodeLengths(
        episodes.number,
        episodes.terminated,
        episodes.truncated,
        episodes.without_end,
        spread(episodes.lengths, episodes.times),
        bins,
    )


# ---- what this means ----------------------------------------------------------------------------


def cautions(
    facts: LogFacts,
    n_wedge: int,
    actions: Sequence[ActionUse],
    by_tried: Sequence[int],
    by_trusted: Sequence[int],
) -> list[Caution]:
    """Returns warnings about what the log is too thin for."""
    raised = list[Caution]()
    states, more = len(facts.states), f"more than {n_wedge:,} visits"
    free = sum(by_trusted[2:])
    if free == 0:
        raised.append(
            Caution(
                "nothing to choose",
                f"No state has two actions with {more}: with N∧ = {n_wedge:,} SPIBB changes "
                "nothing. Take a smaller N∧, coarser states, or more data.",
            )
        )
    elif free < states:
        raised.append(
            Caution(
                "kept states",
                f"{states - free:,} of {states:,} states have fewer than two actions with {more}: "
                "with this N∧ SPIBB does there what was done before.",
            )
        )
    alone = sum(by_tried[1:2])
    if alone:
        raised.append(
            Caution(
                "no comparison",
                f"In {alone:,} of {states:,} states only one action was ever tried, so "
                "nothing can be said about any other there.",
            )
        )
    seldom = [repr(joined(use.action)) for use in actions if use.visits <= n_wedge]
    if seldom:
        raised.append(
            Caution(
                "seldom action",
                f"{some_of(seldom)}: at most {n_wedge:,} visits in "
                "the whole log, too few to be trusted anywhere.",
            )
        )
    return raised


def fine_columns(facts: LogFacts, source: LogSource) -> Iterator[Caution]:
    """Yields the columns of so many different numbers that states should be made of them."""
    states = different_numbers(facts.states, source.columns.state, facts, source)
    actions = different_numbers(facts.actions, source.columns.action, facts, source)
    for column, texts in (states | actions).items():
        if len(texts) > MANY:
            rule = f"{column}:quantiles=10"
            binning = said("bins=" + repr([rule]), f"--bin {rule}")
            whole = all(map(str.isdigit, texts))
            yield Caution(
                "fine column",
                f"Column {column!r} has {len(texts):,} different numbers, each "
                f"{'a state' if column in states else 'an action'} of its own. "
                f"{'Unless they are names, as of clusters, bin' if whole else 'Bin'} it, such as "
                f"with {binning}.",
            )
    measured = [column for column, texts in states.items() if len(texts) > SOME]
    if len(measured) > 1 and len(facts.states) > MANY:
        yield Caution(
            "several measurements",
            f"Columns {some_of([*map(repr, measured)])} are numbers, and make "
            f"{len(facts.states):,} states together. Bin them.",
        )


def different_numbers(
    labels: Sequence[Label], columns: Sequence[str], facts: LogFacts, source: LogSource
) -> dict[str, set[str]]:
    """Returns the different texts of each column that holds numbers and is not binned."""
    different = dict[str, set[str]]()
    for place, column in enumerate(columns):
        texts = {label[place] for label in labels}
        if (
            column not in facts.binnings
            and texts
            and all(re.fullmatch(DECIMAL, text, re.ASCII) for text in texts)
        ):
            different[column] = texts
    return different


# ---- overlap: how often a log takes what a policy takes, by its own frequencies or by a table ----

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
