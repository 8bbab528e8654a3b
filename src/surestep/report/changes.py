"""Writes the sections on changes of the policy: the largest ones, and a table of all."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from surestep._words import Scale, counted, harmless, listed, percent
from surestep.report.groups import harmed_in
from surestep.results.findings import Findings, PolicyTable, StateChange
from surestep.results.plots import gaining_action, kept_states, moves_in
from surestep.sections import Amount, Column, Item, Mood, Section, Table, numbers

MOST_MATTER = 3  # changes on the first screen
MOST_ROWS = 5_000  # situations in the table
MOST_MOVES = 4  # actions of a situation that are shown
MEMORY = r"(.*) (\d+ steps? before)"  # matches the name of a column of the memory
SIGNS: dict[str | None, tuple[str, Mood]] = {
    "confirmed": ("✓", "good"),
    "open": ("?", "plain"),
    "contradicted": ("✗", "bad"),
    None: ("•", "plain"),
}


class Advice(NamedTuple):
    """Changes with the same advice, in situations that differ in at most one column."""

    changes: list[StateChange]
    situation: tuple[tuple[str, ...], ...]  # the texts of each column
    gain: float  # the part of the estimated gain that the changes bring


def changed_items(findings: Findings, *, contradicted: bool = False) -> Iterator[Item]:
    """Lists the changes with the largest share of the gain; joins changes with the same advice.

    Lists only changes that the rows set aside contradict if `contradicted`, else only others.
    """
    table = findings.table
    asked = [c for c in findings.changes if (c.evidence == "contradicted") == contradicted]
    for advice in sorted(together(table, asked), key=lambda advice: -advice.gain)[:MOST_MATTER]:
        evidence = advice.changes[0].evidence
        gaining = [gaining_action(table, change.state) for change in advice.changes]
        aside = int(table.held_out_visits[gaining].sum())
        times = f"{int(table.visits[gaining].sum()) + aside:,} times"
        seen = (
            f"Seen {times}."
            if evidence is None
            else f"{evidence.capitalize()}: seen {times}, {aside:,} of them in rows set aside."
        )
        if findings.chosen_gain > 0:
            part = percent(abs(advice.gain) / findings.chosen_gain)
            seen += f" {'Costs' if advice.gain < 0 else 'Brings'} {part} of the estimated gain."
        columns = [*zip(table.vocabulary.state_columns, advice.situation, strict=True)]
        worse = "".join(harmed_in(findings.record, *column) for column in columns)
        yield Item(
            situation_words(columns),
            f"keep what you do: worse for “{worse}”"
            if worse
            else moves_words(table, [change.state for change in advice.changes]),
            seen,
            *SIGNS["contradicted" if worse else evidence],
        )


def situation_words(columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Returns the texts of columns in a line; those of a memory in the order of time.

    >>> situation_words([("sound", ["left"]), ("sound 1 step before", ["left", "right"])])
    '1 step before: sound left or right; now: sound left'
    """
    times = dict[str, list[str]]()
    for name, texts in columns:
        remembered = re.fullmatch(MEMORY, name)
        column, time = remembered.groups() if remembered else (name, "now")
        said = f"{harmless(column)} {listed([*map(harmless, texts)], 'or')}"
        times.setdefault(time, []).append(said)
    if len(times) == 1:
        return ", ".join(said for parts in times.values() for said in parts)
    return "; ".join(f"{time}: {', '.join(parts)}" for time, parts in reversed(times.items()))


def together(table: PolicyTable, changes: Sequence[StateChange]) -> Iterator[Advice]:
    """Joins changes of equal advice whose situations differ in one column; keeps their order.

    Advice is equal if the new policies are the same to the digit, and so is the evidence.
    """
    words = table.vocabulary

    def advice(change: StateChange) -> tuple[object, ...]:
        run = slice(*table.pairs.offsets[change.state : change.state + 2].tolist())
        return change.evidence, table.pairs.action[run].tobytes(), table.probability[run].tobytes()

    kinds = {change.state: advice(change) for change in changes}
    groups: dict[object, list[StateChange]] = {}  # those that differ in one column only
    for change in changes:
        name = words.state_name(change.state)
        for i in range(len(name)):
            key = (kinds[change.state], i, name[:i], name[i + 1 :])
            groups.setdefault(key, []).append(change)
    taken: set[int] = set()
    for change in changes:
        if change.state in taken:
            continue
        name = words.state_name(change.state)
        alike = [groups[kinds[change.state], i, name[:i], name[i + 1 :]] for i in range(len(name))]
        free = [[one for one in group if one.state not in taken] for group in alike]
        column = max(range(len(name)), key=lambda i: len(free[i]))
        best = free[column]
        taken |= {one.state for one in best}
        texts: list[tuple[str, ...]] = [(text,) for text in name]
        texts[column] = tuple(words.state_name(one.state)[column] for one in best)
        yield Advice(best, tuple(texts), math.fsum(one.contribution for one in best))


def moves_words(table: PolicyTable, states: Sequence[int]) -> str:
    """Returns how often actions are taken before and after in states of the same advice."""
    pairs, changed = moves_in(table, states[0])
    if not changed:
        return "as before"
    first = table.pairs.offsets[states[0]]
    words = []
    for pair in pairs[: min(changed, MOST_MOVES)].tolist():
        name = ", ".join(map(harmless, table.vocabulary.action_name(int(table.pairs.action[pair]))))
        places = [table.pairs.offsets[state] + pair - first for state in states]
        before = table.behavior[places]
        after = float(table.probability[pair])
        low = percent(float(before.min()))
        high = percent(float(before.max()))
        today = f"today {low}" if low == high else f"today between {low} and {high}"
        if after == 1.0:
            return f"always {name} ({today} of the time)"
        often = f"{percent(after)} of the time" if after else "never"
        words.append(f"{name} {often} ({today})")
    left = pairs.size - len(words)
    others = "as before" if changed <= len(words) else "in policy.csv"
    return "; ".join(words) + (f"; {counted(left, 'other')} {others}" if left else "")


def table_section(findings: Findings) -> Section:
    """Returns a table of all situations and their actions, the changed ones first."""
    table = findings.table
    shares = Scale.of(change.contribution for change in findings.changes)
    gains = Scale.of(change.advantage for change in findings.changes)
    changes = {change.state: change for change in findings.changes[:MOST_ROWS]}
    states = [*changes, *kept_states(findings)[: max(MOST_ROWS // 20 - len(changes), 0)].tolist()]
    rows = []
    for state in states:
        change = changes.get(state)
        time = float(findings.behavior_occupancy[state])
        worth: list[str | Amount] = (
            ["–", "–", "unchanged"]
            if change is None
            else [
                Amount(gains.signed(change.advantage), change.advantage),
                Amount(shares.signed(change.contribution), change.contribution),
                change.evidence or "changed",
            ]
        )
        rows.append(
            [
                *table.vocabulary.state_name(state),
                moves_words(table, [state]),
                Amount(percent(time), time),
                Amount(f"{int(table.all_decisions[state]):,}", float(table.all_decisions[state])),
                *worth,
            ]
        )
    columns = [
        *(Column(name) for name in table.vocabulary.state_columns),
        Column("Actions"),
        *numbers("Time spent there", "Seen in the log", f"One decision gains{gains.unit}"),
        *numbers(f"Share in the gain{shares.unit}"),
        Column("By the rows set aside"),
    ]
    missing = table.num_deciding - len(rows)
    more = f" In policy.csv: {counted(missing, 'further situation')}." if missing else ""
    return Section(
        "changes",
        "All changes",
        ["The gain of one decision is against what the current policy does there on average."],
        tables=[
            Table(
                "situations",
                f"Situations, those with the largest share in the gain first.{more}",
                columns,
                rows,
                sortable=True,
            )
        ],
        folded=True,
    )
