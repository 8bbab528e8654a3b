"""The data behind the result: how much there is, where it is thin, and what more would help."""

from __future__ import annotations

from surestep._words import counted, number, percent, short
from surestep.report.charts.small_bars import share_bar
from surestep.report.charts.svg import Bar, Caption, bar_chart
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import (
    Cell,
    Column,
    amount,
    data_table,
    facts,
    figure,
    label_cells,
    number_columns,
    row,
)
from surestep.report.pages.shared_parts import action_words
from surestep.results.chart_bins import Bin, visit_bins
from surestep.results.findings import Findings, WantedPair
from surestep.results.ranking import thinnest_states
from surestep.results.table import PolicyTable

THINNEST, MOST_WANTED = 10, 20


def data_section(findings: Findings) -> Element:
    """Returns what the log holds, and the situations it says least about."""
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
    """Returns how many pairs the log knows well, in one sentence or two."""
    pairs, never, trusted = findings.table.coverage
    start = (
        f"There are {counted(pairs, 'pair')} of a situation and an action that is possible there. "
    )
    if trusted is None or findings.n_wedge is None:
        return f"{start}The log never shows {never:,} of them."
    wedge, log = f"N∧ = {counted(findings.n_wedge, 'time')}", chooser(findings.table)
    if trusted == pairs:
        return f"{start}{log.capitalize()} shows every one of them more than {wedge}."
    return (
        f"{start}{log.capitalize()} shows {trusted:,} of them more than {wedge}: only these may be "
        f"taken more often than before. Of the other {pairs - trusted:,}, {never:,} were never "
        "seen in all of the log."
    )


def chooser(table: PolicyTable) -> str:
    """Returns what counts towards N∧: the log, or a part of it where the rest judges."""
    return "the part of the log that chose" if table.held_out_visits.any() else "the log"


def visits_figure(findings: Findings) -> Element:
    """Returns how many pairs have how many visits in what chose the policy."""
    table, log = findings.table, chooser(findings.table)
    bins = visit_bins(table.visits[table.decided], findings.n_wedge)
    bars = [visit_bar(bin, findings.n_wedge) for bin in bins]
    caption = Caption(
        "visits-picture",
        f"How often {log} shows each pair of situation and action",
        "Bars: "
        + "; ".join(f"{bar.name} visits, {counted(int(bar.value), 'pair')}" for bar in bars),
    )
    text = f"Pairs of situation and action, by the number of times {log} shows them."
    if findings.n_wedge is not None:
        text += (
            f" Blue: more than N∧ = {counted(findings.n_wedge, 'time')}, enough to be changed. "
            "Orange: too rarely for that."
        )
    numbers = data_table(
        "visits-numbers",
        "Pairs by number of visits",
        [Column("Visits"), Column("Pairs", "number")],
        [row(Cell(bar.name), Cell(f"{int(bar.value):,}")) for bar in bars],
    )
    return figure(bar_chart(caption, bars, f"times seen in {log}"), text, numbers=numbers)


def visit_bar(bin: Bin, n_wedge: int | None) -> Bar:
    """Returns the bar of a bin: blue where its pairs are trusted."""
    if bin.high == 0:
        return Bar("never", bin.times, "vermilion")
    enough = n_wedge is None or bin.low > n_wedge
    return Bar(f"≤ {short(bin.high)}", bin.times, "blue" if enough else "orange")


def thin_table(findings: Findings) -> Node:
    """Returns the situations that the log shows least for the time the new policy spends there."""
    table = findings.table
    silent, decisions = table.num_silent, table.all_decisions
    judging = decisions - table.decisions
    beside = ["… of them in the part that judges"] if judging.any() else []
    rows = [
        row(
            *label_cells(table.vocabulary.state_name(state)),
            Cell(percent(float(findings.occupancy[state])), float(findings.occupancy[state])),
            Cell(f"{int(decisions[state]):,}", float(decisions[state])),
            *(Cell(f"{int(judging[state]):,}", float(judging[state])) for _ in beside),
        )
        for state in thinnest_states(findings)[:THINNEST]
    ]
    columns = [
        *(Column(label(name)) for name in table.vocabulary.state_columns),
        *number_columns("Time the new policy spends there", "Decisions in the log", *beside),
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
    """Returns the size of the log."""
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
        ("Decisions counted", f"{int(findings.table.all_decisions.sum()):,}"),
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
    """Returns where more data could be worth most."""
    wanted = findings.wanted[:MOST_WANTED]
    return element(
        "section",
        element("h2", "What data would help most"),
        wanted_words(findings) if wanted else nothing_wanted(findings),
        wanted_table(findings, wanted) if wanted else None,
        id="wanted",
    )


def nothing_wanted(findings: Findings) -> Element:
    """Returns why no pair is listed."""
    reason = (
        "The method behind this policy has no number of visits from which on it trusts an action."
        if findings.n_wedge is None
        else "No action that is kept for lack of data looks better than what the new policy does."
    )
    return element("p", reason)


def wanted_words(findings: Findings) -> Element:
    """Returns what the table is about."""
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
    """Returns the pairs worth exploring, the most promising first."""
    table, largest = findings.table, max(entry.promise for entry in wanted)
    words = table.vocabulary
    columns = [
        *(Column(label(name)) for name in words.state_columns),
        Column("Action"),
        *number_columns(f"Seen in {chooser(table)}", "More visits needed", "Promise"),
    ]
    rows = [
        row(
            *label_cells(words.state_name(int(table.pairs.state[entry.pair]))),
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
        )
        for entry in wanted
    ]
    return data_table(
        "wanted-pairs", "Actions worth seeing more often", columns, rows, sortable=True
    )
