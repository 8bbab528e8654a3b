"""The data behind the result: how much there is, where it is thin, and what more would help."""

from __future__ import annotations

import numpy as np

from surestep._arrays import run_sums
from surestep.report.charts.small_bars import share_bar
from surestep.report.charts.svg import Bar, Caption, bar_chart
from surestep.report.html import Element, Node, element, label
from surestep.report.numbers import counted, number, percent, short
from surestep.report.pages.changes import action_words
from surestep.report.tables import (
    Cell,
    Column,
    Row,
    amount,
    data_table,
    facts,
    figure,
    label_cells,
)
from surestep.results.findings import Findings, WantedPair

THINNEST, MOST_WANTED = 10, 20
FEWEST_BETWEEN = 2  # a power of ten nearer to N∧ than this factor is no bin's end


def data_section(findings: Findings) -> Element:
    """What the log holds, and the situations it says least about."""
    return element(
        "section",
        element("h2", "Where the data is thin"),
        element("p", coverage_words(findings)),
        visits_figure(findings),
        thin_table(findings),
        element("h3", "What the log holds"),
        facts(log_facts(findings)),
        id="data",
    )


def coverage_words(findings: Findings) -> str:
    """How many pairs the log knows well, in one sentence or two."""
    table = findings.table
    decided = table.decided
    pairs, never = int(decided.sum()), int((table.visits[decided] == 0).sum())
    start = (
        f"There are {counted(pairs, 'pair')} of a situation and an action that is possible there. "
    )
    if table.trusted is None or findings.n_wedge is None:
        return f"{start}The log never shows {never:,} of them."
    trusted = int(table.trusted.sum())
    if trusted == pairs:
        return f"{start}The log shows every one of them more than N∧ = {findings.n_wedge:,} times."
    return (
        f"{start}The log shows {trusted:,} of them more than N∧ = {findings.n_wedge:,} times: only "
        f"there the new policy may differ. {pairs - trusted:,} are kept as they were, {never:,} of "
        "which were never seen."
    )


def visits_figure(findings: Findings) -> Element:
    """How many pairs have how many visits."""
    bars = visit_bars(findings)
    caption = Caption(
        "visits-picture",
        "How often the log shows each pair of situation and action",
        "Bars: "
        + "; ".join(f"{bar.name} visits, {counted(int(bar.value), 'pair')}" for bar in bars),
    )
    text = "Pairs of situation and action, by the number of times the log shows them."
    if findings.n_wedge is not None:
        text += (
            f" Blue: more than N∧ = {findings.n_wedge:,} times, enough to be changed. Orange: too "
            "rarely for that."
        )
    table = data_table(
        "visits-numbers",
        "Pairs by number of visits",
        [Column("Visits"), Column("Pairs", "number")],
        [Row([Cell(bar.name), Cell(f"{int(bar.value):,}")]) for bar in bars],
    )
    return figure(bar_chart(caption, bars, "times seen in the log"), text, numbers=table)


def visit_bars(findings: Findings) -> list[Bar]:
    """Bins between powers of ten, one of which ends at N∧."""
    visits, n_wedge = findings.table.visits[findings.table.decided], findings.n_wedge
    largest = int(visits.max(initial=1))
    ends = [10**power for power in range(1, len(str(largest)) + 1)]
    if n_wedge is not None and 0 < n_wedge < ends[-1]:
        apart = [end for end in ends[:-1] if max(end / n_wedge, n_wedge / end) >= FEWEST_BETWEEN]
        ends = sorted({*apart, n_wedge, ends[-1]})
    bars = [Bar("never", int((visits == 0).sum()), "vermilion")]
    low = 1
    for high in ends:
        inside = int(((visits >= low) & (visits <= high)).sum())
        enough = n_wedge is None or low > n_wedge
        bars.append(Bar(f"≤ {short(high)}", inside, "blue" if enough else "orange"))
        low = high + 1
        if low > largest:
            break
    return bars


def thin_table(findings: Findings) -> Node:
    """The situations that the log shows least, for how often the new policy will be there."""
    table = findings.table
    visits = run_sums(table.visits, table.pairs.offsets)
    decided = np.flatnonzero(visits > 0)
    scarcity = findings.occupancy[decided] / visits[decided]
    thinnest = decided[np.argsort(-scarcity, kind="stable")][:THINNEST]
    silent = int(((visits == 0) & ~table.quiet).sum())
    rows = [
        Row(
            [
                *label_cells(table.vocabulary.states[state]),
                Cell(percent(float(findings.occupancy[state])), float(findings.occupancy[state])),
                Cell(f"{int(visits[state]):,}", float(visits[state])),
            ]
        )
        for state in thinnest
    ]
    columns = [
        *(Column(label(name)) for name in table.vocabulary.state_columns),
        Column("Time the new policy spends there", "number"),
        Column("Decisions in the log", "number"),
    ]
    if not rows:
        return None
    return [
        element("h3", "Least known for how often they will be met"),
        data_table(
            "thin",
            "The situations with the fewest logged decisions for the time spent there",
            columns,
            rows,
            sortable=True,
        ),
        element(
            "p",
            f"{counted(silent, 'situation')} {'has' if silent == 1 else 'have'} no decision in the "
            "log at all: episodes end there, or the log never got there.",
            class_="aside",
        )
        if silent
        else None,
    ]


def log_facts(findings: Findings) -> list[tuple[Node, Node]]:
    """The size of the log."""
    data = findings.data
    left_out = sum(data.dropped.values())
    dropped: list[Node] = [
        element("li", f"{many:,}: ", label(why)) for why, many in sorted(data.dropped.items())
    ]
    entries: list[tuple[Node, Node]] = [
        ("Rows", f"{data.rows:,}"),
        (
            "Rows left out",
            [f"{left_out:,}", element("ul", dropped, class_="plain")] if left_out else "none",
        ),
        ("Decisions counted", f"{int(findings.table.visits.sum()):,}"),
        ("Different transitions", f"{data.transitions:,}"),
        (
            "Episodes",
            "unknown: loose transitions" if data.episodes is None else f"{data.episodes:,}",
        ),
    ]
    if data.terminated is not None:
        entries.append(("… that came to their end", f"{data.terminated:,}"))
    if data.truncated is not None:
        entries.append(("… that were cut off", f"{data.truncated:,}"))
    return entries


# ---- what data would help most -------------------------------------------------------------------


def wanted_section(findings: Findings) -> Element:
    """Where more data could be worth most."""
    wanted = findings.wanted[:MOST_WANTED]
    return element(
        "section",
        element("h2", "What data would help most"),
        wanted_words(findings) if wanted else nothing_wanted(findings),
        wanted_table(findings, wanted) if wanted else None,
        id="wanted",
    )


def nothing_wanted(findings: Findings) -> Element:
    """Why no pair is listed."""
    reason = (
        "The method behind this policy has no number of visits from which on it trusts an action."
        if findings.n_wedge is None
        else "No action that is kept for lack of data looks better than what the new policy does."
    )
    return element("p", reason)


def wanted_words(findings: Findings) -> Element:
    """What the table is about."""
    shown = min(len(findings.wanted), MOST_WANTED)
    listed = (
        f" The {shown} most promising of {len(findings.wanted):,} are listed."
        if shown < len(findings.wanted)
        else ""
    )
    return element(
        "p",
        "These actions look better than what the new policy does, but were seen too rarely to be "
        "trusted. Trying them more often, where that is safe, would show whether they are. The "
        f"promise is how much better they look, times how often one is there.{listed}",
    )


def wanted_table(findings: Findings, wanted: tuple[WantedPair, ...]) -> Element:
    """Pairs worth exploring, the most promising first."""
    table, largest = findings.table, max(entry.promise for entry in wanted)
    words = table.vocabulary
    states = np.searchsorted(table.pairs.offsets, [entry.pair for entry in wanted], "right") - 1
    columns = [
        *(Column(label(name)) for name in words.state_columns),
        Column("Action"),
        Column("Seen so far", "number"),
        Column("More visits needed", "number"),
        Column("Promise", "number"),
    ]
    rows = [
        Row(
            [
                *label_cells(words.states[state]),
                Cell(action_words(table, entry.pair)),
                Cell(f"{int(table.visits[entry.pair]):,}", float(table.visits[entry.pair])),
                Cell(f"{entry.more_visits:,}", entry.more_visits),
                Cell(
                    [
                        share_bar(entry.promise / largest if largest > 0 else 0.0, "blue"),
                        amount(number(entry.promise, 3)),
                    ],
                    entry.promise,
                ),
            ]
        )
        for state, entry in zip(states, wanted, strict=True)
    ]
    return data_table(
        "wanted-pairs", "Actions worth seeing more often", columns, rows, sortable=True
    )
