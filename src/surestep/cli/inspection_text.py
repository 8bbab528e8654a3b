"""An inspection in the terminal: numbers, bars and tables that are readable without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surestep.io.logs.findings import Example
from surestep.report.numbers import counted, percent, signed
from surestep.report.words.checks import (
    HEADING,
    TITLES,
    check_words,
    noticed_words,
    summary_words,
    test_words,
)
from surestep.report.words.inspection import (
    discount_words,
    ends_words,
    fit,
    rewards_words,
    suspicion_words,
    visits_words,
)
from surestep.results.chart_bins import Bin
from surestep.results.inspection import Inspection, Spread

STATES, ACTIONS = 16, 6  # of the table of visits
BAR = 32  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"
LEVELS = "▁▂▃▄▅▆▇█"
SHORTENED = 28  # characters of a label
CHECK_MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "told": ("•", "default"),
    "unchecked": ("–", "dim"),
}


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Prints all parts, each under its heading."""
    for heading, parts in (
        (shown(inspection.source, 200), overview(inspection)),
        ("Coverage", coverage(inspection)),
        (visits_heading(inspection), [visits_table(inspection)]),
        ("What the log is too thin for", cautions(inspection)),
        (HEADING, checks(inspection)),
        ("Suspicious rows", suspicions(inspection)),
        ("What a discount means here", map(Text, discount_words(inspection))),
    ):
        console.print(Text(heading, style="bold"))
        for part in parts:
            console.print(Padding(part, (0, 0, 0, 2), expand=False))
        console.print()


# ---- the parts --------------------------------------------------------------------------------


def overview(inspection: Inspection) -> Iterator[RenderableType]:
    """The size of the log, its columns, and how episodes and rewards are spread."""
    table = plain_table()
    reached = inspection.states_only_reached
    also = f", and {reached:,} more in which nobody decided" if reached else ""
    table.add_row("rows", f"{inspection.rows:,}")
    table.add_row("states", f"{inspection.states:,}{also}")
    table.add_row("actions", f"{len(inspection.actions):,}")
    episodes, rewards = inspection.episodes, inspection.rewards
    if episodes is not None:
        table.add_row("episodes", f"{episodes.number:,}: {ends_words(inspection)}")
        if episodes.rows is not None:
            line = sparkline([bin.times for bin in episodes.histogram])
            table.add_row("rows each", Text.assemble(line, "  ", range_words(episodes.rows)))
    if rewards is not None:
        line = Text.assemble(sparkline(rewards.bins), f"  {rewards_words(rewards)}")
        table.add_row("rewards", line)
    if inspection.overlap is not None:
        table.add_row("policy", f"{shown(inspection.overlap.policy, 200)}: {fit(inspection)}")
    if inspection.unfinished:
        table.add_row(
            "unfinished",
            f"{counted(inspection.unfinished, 'row')} at which the recording stopped: nobody knows "
            "where they led, so they are no visits",
        )
    yield table
    names = plain_table()
    for role in inspection.columns.shown:
        names.add_row(role.replace("_", " "), shown(inspection.columns.described(role), 120))
    yield Padding(names, (1, 0, 0, 0), expand=False)


def coverage(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields how often pairs are visited, and what that leaves to choose from."""
    seen, n_wedge = inspection.coverage, inspection.n_wedge
    yield Text(
        f"{counted(seen.pairs, 'pair')} = {counted(inspection.states, 'state')} × "
        f"{counted(len(inspection.actions), 'action')}, by their visits"
        + (f"; visited ones have {range_words(seen.visits)}" if seen.visits else "")
    )
    yield bars(
        [(visits_words(bin), bin.times, tone(bin, n_wedge)) for bin in seen.histogram], "pair"
    )
    total = sum(use.visits for use in inspection.actions)
    share = percent(seen.visits_trusted / total) if total else "none"
    yield Text(
        f"more than N∧ = {n_wedge:,} visits: {counted(seen.trusted, 'pair')}, with {share} of "
        "all visits"
    )
    yield Padding(
        Text(f"States by how many actions have more than {n_wedge:,} visits"), (1, 0, 0, 0)
    )
    yield bars(
        [
            (f"{many:,} trusted", times, "green" if many > 1 else "yellow")
            for many, times in enumerate(inspection.states_by_trusted)
            if times or many < 3
        ],
        "state",
    )
    tried = [
        f"{times:,} with {counted(many, 'action')}"
        for many, times in enumerate(inspection.states_by_tried)
        if times
    ]
    yield Text(f"states by how many were ever tried: {', '.join(tried) or 'none'}")


def visits_heading(inspection: Inspection) -> str:
    """Returns the heading of the table of visits: which states and actions it shows."""
    parts = [
        f"{min(most, many):,} of {many:,} {things}" if many > most else f"all {many:,} {things}"
        for most, many, things in (
            (STATES, inspection.states, "states"),
            (ACTIONS, len(inspection.actions), "actions"),
        )
    ]
    return f"Visits in {parts[0]}, the busiest first, and {parts[1]}"


def visits_table(inspection: Inspection) -> RenderableType:
    """States down, actions across; what SPIBB would not trust stands in brackets."""
    order = sorted(
        range(len(inspection.actions)), key=lambda i: (-inspection.actions[i].visits, i)
    )[:ACTIONS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in inspection.columns.state:
        table.add_column(Text(shown(name)), overflow="fold")
    for i in order:
        table.add_column(
            Text(shown(", ".join(inspection.action_name(inspection.actions[i].action)))),
            justify="right",
            overflow="fold",
        )
    for use in inspection.busiest[:STATES]:
        table.add_row(
            *(Text(shown(text)) for text in inspection.state_name(use.state)),
            *(visits_cell(use.visits[i], inspection.n_wedge) for i in order),
        )
    table.caption = Text(
        f"(in brackets: at most {inspection.n_wedge:,} visits, · never)", style="dim"
    )
    table.caption_justify = "left"
    return table


def visits_cell(visits: int, n_wedge: int) -> Text:
    """A number of visits, marked where it is too small."""
    if visits > n_wedge:
        return Text(f"{visits:,} ", style="green")
    return Text(f"({visits:,})", style="yellow") if visits else Text("· ", style="dim")


def cautions(inspection: Inspection) -> Iterator[RenderableType]:
    """The limits of the log, or that there are none."""
    for caution in inspection.cautions:
        yield marked("!", "yellow", shown(caution.says, 600))
    if not inspection.cautions:
        yield marked("✓", "green", "Nothing: every state has actions to choose from.")


def checks(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields what was found about each assumption, with what luck does as a small picture."""
    yield Text(summary_words(inspection.checks))
    for check in inspection.checks:
        mark, style = CHECK_MARKS[check.outcome]
        yield marked(mark, style, shown(f"{TITLES[check.code]}: {check_words(check)}", 800))
        details = " ".join(filter(None, (test_words(check), noticed_words(check))))
        if check.statistic is not None:
            line = sparkline([int(bar.value) for bar in check.picture])
            details = f"{details} Luck alone: "
            aside = Text.assemble(details, line, f", this log {signed(check.statistic, 2)}")
            aside.stylize("dim")
            yield Padding(aside, (0, 0, 0, 2), expand=False)
        elif details:
            yield Padding(Text(details, style="dim"), (0, 0, 0, 2), expand=False)


def suspicions(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields what looks wrong, with the first places."""
    for suspicion in inspection.suspicions:
        mark, style = ("✗", "red") if suspicion.refused else ("!", "yellow")
        yield marked(mark, style, shown(suspicion_words(suspicion), 400))
        for example in suspicion.examples:
            yield Padding(Text(place(example), style="dim"), (0, 0, 0, 2), expand=False)
    if not inspection.suspicions:
        yield marked("✓", "green", "None found.")


def place(example: Example) -> str:
    """Returns where a row stands, and what is there."""
    parts = [] if example.file is None else [shown(example.file, 200)]
    parts.append(f"row {example.row:,}")
    if example.episode is not None:
        parts.append(f"episode {shown(example.episode)}")
    if example.step is not None:
        parts.append(f"step {shown(example.step)}")
    value = "nothing there" if example.value is None else shown(example.value, 120)
    return f"{', '.join(parts)}: {value}"


# ---- pictures ---------------------------------------------------------------------------------


def bars(rows: Sequence[tuple[str, int, str]], noun: str) -> Table:
    """Lying bars with their names before and their numbers behind them."""
    longest = max([times for _, times, _ in rows], default=0) or 1
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", min_width=14, no_wrap=True)
    table.add_column(no_wrap=True)
    for name, times, style in rows:
        eighths = -(-times * BAR * 8 // longest)  # a thing that is there is seen
        drawn = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
        line = Text(drawn, style=style)
        line.append(f"{' ' if drawn else ''}{counted(times, noun)}", style="default")
        table.add_row(name, line)
    return table


def sparkline(values: Sequence[int]) -> Text:
    """A row of small bars; an empty bin is a gap."""
    largest = max(values, default=0) or 1
    drawn = "".join(LEVELS[-(-8 * value // largest) - 1] if value else " " for value in values)
    return Text(f"▕{drawn}▏", style="cyan")


def tone(bin: Bin, n_wedge: int) -> str:
    """Returns the colour of a bin: green where SPIBB would trust its pairs."""
    return "green" if bin.low > n_wedge else "yellow" if bin.high else "red"


# ---- words ------------------------------------------------------------------------------------


def plain_table() -> Table:
    """Names and what they are."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", min_width=10, no_wrap=True)
    table.add_column()
    return table


def marked(mark: str, style: str, sentence: str) -> Table:
    """A sentence with a mark before it, its further lines under the first."""
    table = Table.grid(padding=(0, 1))
    table.add_row(Text(mark, style=f"bold {style}"), Text(sentence))
    return table


def range_words(spread: Spread) -> str:
    """'1 to 13, median 12'."""
    return f"{spread.lowest:,} to {spread.highest:,}, median {spread.median:,}"


def shown(text: str, most: int = SHORTENED) -> str:
    """A text from the data: on one line, of limited length, and nothing in it moves the cursor."""
    safe = "".join(sign if sign.isprintable() else "\ufffd" for sign in text) or "(empty)"
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"
