"""The page of an inspection: what a log holds and what looks wrong in it, for readers and print."""

from __future__ import annotations

from surestep._words import counted, number, percent, short
from surestep.checks import summary
from surestep.io.logs.findings import Example
from surestep.report.charts.histogram import Layer, histogram
from surestep.report.charts.svg import Bar, Caption, Tone, bar_chart
from surestep.report.html import Element, Node, asset, document, element, label
from surestep.report.page_tables import (
    Cell,
    Column,
    Row,
    data_table,
    facts,
    figure,
    key,
    label_cells,
    number_columns,
    row,
    small,
)
from surestep.report.pages.checks import HEADING, checks_content
from surestep.report.words.inspection import (
    discount_words,
    ends_words,
    fit,
    rewards_words,
    visits_words,
)
from surestep.results.chart_bins import Bin
from surestep.results.inspection import Inspection, reward_edges

MOST_ACTIONS = 12  # columns of the table of visits
SECTIONS = (
    ("coverage", "Coverage"),
    ("visits", "Visits"),
    ("limits", "What the log is too thin for"),
    ("checks", HEADING),
    ("suspicious", "Suspicious rows"),
    ("spread", "Episodes and rewards"),
    ("columns", "Columns"),
    ("next", "Next step"),
)


def inspection_page(inspection: Inspection, following: str) -> str:
    """Returns the whole page; `following` is the command that one might run next."""
    title = f"Inspection of {inspection.source}"
    body = element(
        "main",
        heading(inspection),
        coverage_section(inspection),
        visits_section(inspection),
        limits_section(inspection),
        section("checks", checks_content(inspection.checks)),
        suspicious_section(inspection),
        spread_section(inspection),
        columns_section(inspection),
        next_section(inspection, following),
        class_="sheet",
    )
    return document(title, [body], style=asset("page.css"), script=asset("page.js"))


def section(identity: str, *content: Node) -> Element:
    """Returns a part of the page under its heading."""
    return element("section", element("h2", dict(SECTIONS)[identity]), content, id=identity)


# ---- the parts --------------------------------------------------------------------------------


def heading(inspection: Inspection) -> Node:
    """Returns what was looked at, and the numbers that matter most."""
    episodes = inspection.episodes
    free, many = inspection.states_with_choice, len(inspection.suspicions)
    refused = inspection.refused
    worst = "counting refuses the log as it is" if refused else "counting takes the log as it is"
    contents = [element("li", element("a", text, href=f"#{name}")) for name, text in SECTIONS]
    return [
        element("p", "A look at a log", class_="eyebrow"),
        element("h1", label(inspection.source)),
        element("nav", element("ol", contents), class_="contents", aria_label="Contents"),
        element(
            "div",
            key(
                "Decisions",
                f"{inspection.rows:,}",
                "rows, loose transitions"
                if episodes is None
                else f"rows in {counted(episodes.number, 'episode')}: {ends_words(inspection)}",
            ),
            key(
                "States with a choice",
                [f"{free:,}", small(f" of {inspection.states:,}")],
                f"have two or more actions with more than {inspection.n_wedge:,} visits",
                mood="good" if free else "bad",
            ),
            key(
                "Suspicious rows",
                counted(many, "kind") if many else "none",
                worst,
                mood="bad" if refused else "" if many else "good",
            ),
            key(
                "Assumptions",
                assumptions_value(inspection),
                summary(inspection.checks),
                mood="bad" if inspection.failed_checks else "",
            ),
            class_="keys four",
        ),
    ]


def assumptions_value(inspection: Inspection) -> str:
    """Returns how many assumptions fail, for large letters."""
    failed = len(inspection.failed_checks)
    return f"{failed:,} fail" + ("s" if failed == 1 else "") if failed else "none fails"


def coverage_section(inspection: Inspection) -> Element:
    """Returns how often pairs are visited, and how many states that leaves a choice in."""
    coverage, n_wedge, total = inspection.coverage, inspection.n_wedge, inspection.visits
    share = percent(coverage.visits_trusted / total) if total else "none"
    pairs, spread = counted(coverage.pairs, "pair"), coverage.visits
    bars = [Bar(bin_name(bin), bin.times, bin_tone(bin, n_wedge)) for bin in coverage.histogram]
    by_trusted = [
        Bar(str(i), times, "green" if i > 1 else "orange")
        for i, times in enumerate(inspection.states_by_trusted)
        if times or i < 3
    ]
    pairs_caption = Caption(
        "pairs-by-visits",
        "Pairs by their visits",
        f"{coverage.trusted:,} of {pairs} have more than {n_wedge:,} visits; "
        f"{coverage.never:,} have none.",
    )
    states_caption = Caption(
        "states-by-choice",
        "States by trusted actions",
        f"How many states have 0, 1, 2 or more actions with more than {n_wedge:,} visits.",
    )
    return section(
        "coverage",
        element(
            "p",
            f"{counted(inspection.states, 'state')} and "
            f"{counted(len(inspection.actions), 'action')} make {pairs}, of which "
            f"{coverage.never:,} were never visited. "
            "A visit is a row of which one knows where it led",
            f"; at {counted(inspection.unfinished, 'row')} the recording stopped"
            if inspection.unfinished
            else None,
            f". {counted(coverage.trusted, 'pair')} with more than N∧ = {n_wedge:,} visits have "
            f"{share} of all visits.",
            f" A visited pair has {spread.lowest:,} to {spread.highest:,} visits; half of them "
            f"have at most {spread.median:,}."
            if spread
            else None,
        ),
        figure(
            bar_chart(pairs_caption, bars, "visits"),
            f"How many pairs have how many visits. Green: more than N∧ = {n_wedge:,}, which SPIBB "
            "may change. Orange: it keeps what was done before. Red: never tried.",
            numbers=bin_table(inspection),
        ),
        figure(
            bar_chart(states_caption, by_trusted, "trusted actions"),
            "How many states have how many actions to choose from. With fewer than two there is "
            "nothing to improve by this log.",
            numbers=tried_table(inspection),
        ),
    )


def bin_table(inspection: Inspection) -> Element:
    """Returns the numbers of the first picture."""
    rows = [
        row(Cell(visits_words(bin)), Cell(f"{bin.times:,}"))
        for bin in inspection.coverage.histogram
    ]
    columns = [Column("visits"), Column("pairs", "number")]
    return data_table("bins", "Pairs by their visits", columns, rows)


def tried_table(inspection: Inspection) -> Element:
    """Returns the numbers of the second picture, and the same for actions tried at all."""
    rows = [
        row(Cell(f"{i:,}"), Cell(f"{trusted:,}"), Cell(f"{tried:,}"))
        for i, (trusted, tried) in enumerate(
            zip(inspection.states_by_trusted, inspection.states_by_tried, strict=True)
        )
        if trusted or tried or i < 3
    ]
    trusted_heading = f"states with so many above {inspection.n_wedge:,} visits"
    columns = [
        *number_columns("actions", trusted_heading, "states with so many tried"),
    ]
    return data_table("tried", "States by their actions", columns, rows)


def visits_section(inspection: Inspection) -> Element:
    """Returns visits by states and actions, and every action by itself."""
    order = inspection.actions_by_visits[:MOST_ACTIONS]
    columns = [
        *(Column(label(name)) for name in inspection.columns.state),
        *(
            Column(label(", ".join(inspection.action_name(inspection.actions[i].action))), "number")
            for i in order
        ),
    ]
    rows = [
        row(
            *label_cells(inspection.state_name(use.state)),
            *(visits_cell(use.visits[i], inspection.n_wedge) for i in order),
        )
        for use in inspection.busiest
    ]
    caption = (
        f"Visits in {len(inspection.busiest):,} of {counted(inspection.states, 'state')}, the "
        f"busiest first, and {len(order):,} of {counted(len(inspection.actions), 'action')}. In "
        f"brackets: at most {inspection.n_wedge:,} visits; a dot: none."
    )
    total = inspection.visits or 1
    actions = [
        row(
            *label_cells(inspection.action_name(use.action)),
            Cell(f"{use.visits:,}", use.visits),
            Cell(percent(use.visits / total), use.visits),
            Cell(f"{use.states:,}", use.states),
            Cell(f"{use.trusted_states:,}", use.trusted_states),
        )
        for use in inspection.actions
    ]
    action_columns = [
        *(Column(label(name)) for name in inspection.columns.action),
        *number_columns(
            "visits",
            "share",
            "states where it was tried",
            f"… more than {inspection.n_wedge:,} times",
        ),
    ]
    return section(
        "visits",
        data_table("states", caption, columns, rows, sortable=True),
        data_table("actions", "All actions", action_columns, actions, sortable=True),
    )


def visits_cell(visits: int, n_wedge: int) -> Cell:
    """Returns a number of visits, marked where it is too small."""
    if visits > n_wedge:
        return Cell(element("b", f"{visits:,}"), visits)
    return Cell(f"({visits:,})" if visits else "·", visits)


def limits_section(inspection: Inspection) -> Element:
    """Returns what cannot be learned from the log."""
    words: Node = "Every state has actions to choose from."
    if inspection.cautions:
        items = [element("li", label_free(caution.says)) for caution in inspection.cautions]
        words = element("ul", items, class_="plain")
    policy = inspection.overlap and element(
        "p", "The policy ", label(inspection.overlap.policy), f": {fit(inspection)}."
    )
    mood = "caution" if inspection.cautions else "good"
    return section("limits", policy, element("div", words, class_=f"box {mood}"))


def label_free(sentence: str) -> Element:
    """Returns a sentence that quotes labels, whose direction marks must not leave it."""
    return element("bdi", sentence.translate({9: "\u2409", 10: "\u240a"}))


def suspicious_section(inspection: Inspection) -> Element:
    """Returns the kinds of suspicious rows with their first places."""
    if not inspection.suspicions:
        return section("suspicious", element("div", "None found.", class_="box good"))
    parts: list[Node] = []
    for i, suspicion in enumerate(inspection.suspicions):
        columns = [Column("file"), Column("row", "number"), Column("episode"), Column("step")]
        rows = [Row(example_cells(example)) for example in suspicion.examples]
        where = "Where" if suspicion.times <= len(rows) else "The first places"
        tag = element("span", "refused by counting", class_="tag") if suspicion.refused else None
        parts += [
            element("h3", label_free(suspicion.says), " ", tag),
            data_table(f"suspicion-{i}", where, [*columns, Column("what is there")], rows)
            if rows
            else None,
        ]
    return section("suspicious", parts)


def example_cells(example: Example) -> list[Cell]:
    """Returns where a row stands, and what is there."""
    texts = (example.file or "(in memory)", None, example.episode, example.step)
    cells = [Cell("–" if text is None else label(text)) for text in texts]
    cells[1] = Cell(f"{example.row:,}")
    value: Node = "nothing" if example.value is None else label(example.value)
    return [*cells, Cell(value)]


def spread_section(inspection: Inspection) -> Element:
    """Returns how long episodes are, and what rewards there are."""
    parts: list[Node] = []
    episodes, rewards = inspection.episodes, inspection.rewards
    if episodes is not None and episodes.rows is not None:
        spread = episodes.rows
        caption = Caption(
            "episode-rows",
            "Episodes by their rows",
            f"From {spread.lowest:,} to {spread.highest:,} rows, median {spread.median:,}.",
        )
        times = [bin.times for bin in episodes.histogram]
        words = f"{counted(episodes.number, 'episode')}: {ends_words(inspection)}. "
        parts.append(
            figure(
                histogram(caption, episodes.edges, [Layer(times)], "rows", "episode"),
                words + caption.description,
            )
        )
    if rewards is not None and len(rewards.bins) > 1:
        edges = reward_edges(rewards)
        first, _, third = rewards.quartiles
        caption = Caption(
            "rewards",
            "Rows by their rewards",
            f"{rewards_words(rewards)}; the middle half lies from {number(first)} to "
            f"{number(third)}.",
        )
        parts.append(
            figure(
                histogram(caption, edges, [Layer(rewards.bins)], "reward", "row"),
                f"{counted(rewards.number, 'reward')}: {caption.description}",
            )
        )
    elif rewards is not None:
        parts.append(element("p", f"All rewards shown here are {number(rewards.low)}."))
    return section("spread", parts or element("p", "No reward is a number."))


def columns_section(inspection: Inspection) -> Element:
    """Returns which column means what."""
    entries = [
        (role.replace("_", " "), label(inspection.columns.described(role)))
        for role in inspection.columns.shown
    ]
    return section("columns", facts(entries))


def next_section(inspection: Inspection, following: str) -> Element:
    """Returns what to do with the log."""
    words = "Improve the behavior behind this log:"
    if inspection.refused:
        words = "Counting refuses the log as it is. Mend the rows that it refuses, then:"
    return section(
        "next",
        element("p", words),
        element("pre", following),
        [element("p", sentence) for sentence in discount_words(inspection)],
    )


# ---- words ------------------------------------------------------------------------------------


def bin_name(bin: Bin) -> str:
    """Returns the name of a bin below its bar, where there is little room."""
    if bin.high == 0:
        return "never"
    if bin.low == bin.high:
        return str(bin.low)
    return f"{bin.low}–{bin.high}" if bin.high < 100 else f"{short(bin.low)}+"


def bin_tone(bin: Bin, n_wedge: int) -> Tone:
    """Returns green where SPIBB would trust the pairs of a bin."""
    return "green" if bin.low > n_wedge else "orange" if bin.high else "vermilion"
