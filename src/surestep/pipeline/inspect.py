"""Inspects a log: counts visits, and warns of what makes it hard to learn from."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import surestep.results.inspection as results
from surestep._arrays import BoolArray, IntArray
from surestep.description import DEFAULTS, WORDS_FOR_BEHAVIOR, key_text
from surestep.errors import InvalidParameter, said
from surestep.io.counts.labelled import positions
from surestep.io.labels.binning import DECIMAL
from surestep.io.labels.label_tables import PairTable, read_lifted
from surestep.io.labels.vocabulary import Label, joined
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.inspection import LogFacts, inspect_log
from surestep.io.logs.source import LogSource
from surestep.pipeline.checks import inspection_checks
from surestep.pipeline.evidence import with_learnt_states
from surestep.results.plots import VisitBin, visit_bins

BUSIEST = 30  # states whose visits are listed
MANY = 100  # different numbers in a column, or states, from which on bins are proposed
SOME = 10  # different numbers in a column, from which on it is a measurement
RARE_SHARE = 0.01  # of a state's rows
DEVIATIONS = 5  # standard deviations of the number of rows, and one row for rounding
NAMED = 3  # labels that a sentence lists

# Sentences on thin spots of a log, and on differences from the policy said to have made it.
CAUTIONS: Mapping[str, str] = {
    "nothing to choose": "No state has two actions with more than {n_wedge:,} visits: with N∧ = "
    "{n_wedge:,} SPIBB changes nothing. Take a smaller N∧, coarser states, or more data.",
    "kept states": "{number:,} of {states:,} states have fewer than two actions with more than "
    "{n_wedge:,} visits: with this N∧ SPIBB does there what was done before.",
    "no comparison": "In {number:,} of {states:,} states only one action was ever tried, so "
    "nothing can be said about any other there.",
    "seldom action": "{names}: at most {n_wedge:,} visits in the whole log, too few to be trusted "
    "anywhere.",
    "fine column": "Column {column!r} has {number:,} different numbers, each {role} of its own. "
    "{bin} it, such as with {rule}.",
    "several measurements": "Columns {names} are numbers, and make {states:,} states together. "
    "Bin them, such as with {rule}.",
    "thin overlap": "{pairs} taken in less than 1 % of the rows of their state, such as {names}: "
    "an estimate that weighs rows by 1/π_b rests on few heavy rows there.",
    "unknown state": "The policy says nothing about {number:,} of {states:,} states of the log, "
    "such as {names}: it cannot have made this log.",
    "impossible pair": "{pairs} in the log, but never taken by the policy, such as {names}: it "
    "cannot have made this log.",
    "unlikely pair": "{pairs} taken far more or less often than the policy says (over "
    "{deviations} standard deviations), such as {names}: has another policy made this log?",
    "never seen": "{pairs} taken by the policy, but never in the log, such as {names}: nobody "
    "knows where that leads.",
}


def caution(
    kind: str, number: int = 0, names: Sequence[str] = (), **values: object
) -> results.Caution:
    """Makes a caution about `number` things; its text lists the first of `names`."""
    pairs = f"{number:,} pair{' is' if number == 1 else 's are'}"
    some = ", ".join(names[:NAMED]) + (", …" if max(number, len(names)) > NAMED else "")
    values |= {"pairs": pairs, "names": some, "deviations": DEVIATIONS}
    return results.Caution(kind, CAUTIONS[kind].format(number=number, **values))


def inspect(
    source: LogSource, *, n_wedge: int = DEFAULTS["least_visits"] - 1, behavior: object = None
) -> results.Inspection:
    """Looks at a log; a pair with more than `n_wedge` visits is one that SPIBB would trust.

    By default that is the least N∧ that `improve` would choose.
    `behavior` is a table of the policy that is said to have made the log, such as a path; by
    default the one that the description of the log names.
    """
    if isinstance(n_wedge, bool) or not isinstance(n_wedge, int) or n_wedge < 0:
        raise InvalidParameter(f"n_wedge is {n_wedge!r}, expected a whole number of 0 or more")
    discount = source.description.stakes.discount
    source = with_learnt_states(source, 1.0 if discount is None else discount)
    facts = inspect_log(source)
    roles = source.columns
    overlap = None
    mismatches = list[results.Caution]()
    said = source.description
    named = None if said.structure else said.behavior.policy  # beside a structure it is rules
    behavior = named if behavior is None and named not in WORDS_FOR_BEHAVIOR else behavior
    if behavior is not None:
        table = read_lifted(behavior, roles, facts.states, facts.binnings, policy=True)
        overlap, mismatches = compare(facts, table)
    by_tried, by_trusted = (states_by_pairs(facts, least) for least in (0, n_wedge))
    uses = (
        sums_by(facts.action, taken, len(facts.actions)).tolist()
        for taken in (facts.visits, facts.visits > 0, facts.visits > n_wedge)
    )
    actions = tuple(map(results.ActionUse, facts.actions, *uses))
    return results.Inspection(
        source=source.table.name,
        columns=roles,
        n_wedge=n_wedge,
        rows=facts.rows,
        unfinished=int((facts.taken - facts.visits).sum()),
        states=len(facts.states),
        states_only_reached=facts.only_reached,
        actions=actions,
        episodes=facts.episodes,
        rewards=facts.rewards,
        coverage=coverage(facts, n_wedge),
        states_by_tried=by_tried,
        states_by_trusted=by_trusted,
        busiest=tuple(busiest_states(facts)),
        overlap=overlap,
        cautions=(
            *thin_places(n_wedge, actions, by_tried, by_trusted),
            *fine_columns(facts, roles),
            *rare_pairs(facts),
            *mismatches,
        ),
        suspicions=facts.suspicions,
        names=source.description.names,
        checks=inspection_checks(source, facts),
    )


# ---- coverage ---------------------------------------------------------------------------------


def coverage(facts: LogFacts, n_wedge: int) -> results.Coverage:
    """Counts the visits of pairs."""
    pairs = len(facts.states) * len(facts.actions)
    visits = facts.visits[facts.visits > 0]
    trusted = visits[visits > n_wedge]
    never = pairs - visits.size
    bins = (VisitBin(0, 0, never), *visit_bins(visits, n_wedge)[1:])
    return results.Coverage(pairs, never, trusted.size, int(trusted.sum()), bins)


def states_by_pairs(facts: LogFacts, least: int) -> tuple[int, ...]:
    """Counts the states in which 0, 1, … all actions have more than `least` visits."""
    number = np.bincount(facts.state[facts.visits > least], minlength=len(facts.states))
    return tuple(np.bincount(number, minlength=len(facts.actions) + 1).tolist())


def sums_by(place: IntArray, values: IntArray | BoolArray, size: int) -> IntArray:
    """Returns `size` sums; each adds up the values whose `place` is its index."""
    return np.bincount(place, values, size).astype(np.int64)


def busiest_states(facts: LogFacts) -> Iterator[results.StateUse]:
    """Yields the states with most visits, equal ones in the order of their labels."""
    total = sums_by(facts.state, facts.visits, len(facts.states))
    for state in np.argsort(-total, kind="stable")[:BUSIEST]:
        pairs = slice(*np.searchsorted(facts.state, (state, state + 1)))
        row = sums_by(facts.action[pairs], facts.visits[pairs], len(facts.actions))
        yield results.StateUse(facts.states[state], tuple(row.tolist()))


# ---- what this means ----------------------------------------------------------------------------


def thin_places(
    n_wedge: int,
    actions: Sequence[results.ActionUse],
    by_tried: Sequence[int],
    by_trusted: Sequence[int],
) -> Iterator[results.Caution]:
    """Yields cautions about states and actions with too few visits."""
    states = sum(by_trusted)
    free = sum(by_trusted[2:])
    alone = sum(by_tried[1:2])
    if free == 0:
        yield caution("nothing to choose", n_wedge=n_wedge)
    elif free < states:
        yield caution("kept states", states - free, states=states, n_wedge=n_wedge)
    if alone:
        yield caution("no comparison", alone, states=states)
    seldom = [repr(joined(use.action)) for use in actions if use.visits <= n_wedge]
    if seldom:
        yield caution("seldom action", names=seldom, n_wedge=n_wedge)


def fine_columns(facts: LogFacts, columns: ColumnMapping) -> Iterator[results.Caution]:
    """Yields cautions about columns with so many different numbers that they should be binned."""

    def rule(*names: str) -> str:
        number = 4 if len(names) > 1 else 10
        rules = {name: {"quantiles": number} for name in names}
        return said(
            f"bins={rules!r}",
            " ".join(f"--set bins.{key_text(name)}.quantiles={number}" for name in names),
        )

    states = different_numbers(facts.states, columns.state, facts)
    for column, texts in (states | different_numbers(facts.actions, columns.action, facts)).items():
        if len(texts) > MANY:
            whole = all(map(str.isdigit, texts))
            words = {
                "role": "a state" if column in states else "an action",
                "bin": "Unless they are names, as of clusters, bin" if whole else "Bin",
            }
            yield caution("fine column", len(texts), column=column, rule=rule(column), **words)
    measured = [column for column, texts in states.items() if len(texts) > SOME]
    if len(measured) > 1 and len(facts.states) > MANY:
        yield caution(
            "several measurements",
            names=[*map(repr, measured)],
            states=len(facts.states),
            rule=rule(*measured[:NAMED]),
        )


def different_numbers(
    labels: Sequence[Label], columns: Sequence[str], facts: LogFacts
) -> dict[str, set[str]]:
    """Returns the different texts of each column that holds numbers and is not binned."""
    texts = {column: {label[i] for label in labels} for i, column in enumerate(columns)}
    return {
        column: different
        for column, different in texts.items()
        if column not in facts.binnings
        and different
        and all(re.fullmatch(DECIMAL, text, re.ASCII) for text in different)
    }


# ---- overlap: how often a log takes what a policy takes, by its own frequencies or by a table ----


def rare_pairs(facts: LogFacts) -> Iterator[results.Caution]:
    """Yields a caution if actions were tried in few rows of a state: thin overlap."""
    rows = sums_by(facts.state, facts.taken, len(facts.states))
    rare = facts.taken < RARE_SHARE * rows[facts.state]
    if rare.any():
        yield caution("thin overlap", int(rare.sum()), pair_names(facts, rare))


def compare(facts: LogFacts, table: PairTable) -> tuple[results.Overlap, list[results.Caution]]:
    """Compares the log with the policy said to have made it; returns overlap and cautions."""
    words = table.vocabulary
    policy = table.probability
    known = positions(facts.states, words.state_places)[facts.state] >= 0
    # [K] the log's pairs among the policy's
    pair = table.find(facts.states, facts.actions, facts.state, facts.action)
    chance = np.where(pair >= 0, policy[pair], 0.0)
    rows = sums_by(facts.state, facts.taken, len(facts.states))
    mean = rows[facts.state] * chance
    impossible = known & (chance == 0)
    slack = DEVIATIONS * np.sqrt(mean * (1 - chance)) + 1
    unlikely = known & ~impossible & (np.abs(facts.taken - mean) > slack)
    unknown = np.unique(facts.state[~known])
    ours = positions(words.states, facts.states)
    expected = np.append(rows, 0)[ours][table.pairs.state] * policy
    expected[pair[pair >= 0]] = 0.0
    never = np.argsort(-expected, kind="stable")[: np.count_nonzero(expected)]
    first = zip(table.pairs.state[never[:NAMED]], table.pairs.action[never[:NAMED]], strict=True)
    counts = (never.size, int(impossible.sum()), int(unlikely.sum()), unknown.size)
    names = {
        "never seen": [pair_name(words.states[s], words.actions[a]) for s, a in first],
        "impossible pair": pair_names(facts, impossible),
        "unlikely pair": pair_names(facts, unlikely),
        "unknown state": [repr(joined(facts.states[s])) for s in unknown[:NAMED]],
    }
    overlap = results.Overlap(table.name, *counts, len(set(words.states) - set(facts.states)))
    return overlap, [
        caution(kind, number, names[kind], states=len(facts.states))
        for kind, number in zip(names, counts, strict=True)
        if number
    ]


def pair_name(state: Label, action: Label) -> str:
    """Names a pair: 'service' in 'good, high'."""
    return f"{joined(action)!r} in {joined(state)!r}"


def pair_names(facts: LogFacts, chosen: BoolArray) -> list[str]:
    """Names the first of the chosen pairs."""
    return [
        pair_name(facts.states[facts.state[k]], facts.actions[facts.action[k]])
        for k in np.flatnonzero(chosen)[:NAMED]
    ]
