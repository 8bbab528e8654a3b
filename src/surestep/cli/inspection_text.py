"""An inspection in the terminal: numbers, bars and tables that are readable without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from surestep._words import counted, percent, signed
from surestep.checks import aside, says, summary, title
from surestep.io.logs.findings import Example
from surestep.report.words.inspection import (
    discount_words,
    ends_words,
    fit,
    rewards_words,
    visits_words,
)
from surestep.results.inspection import Inspection, Spread

STATES, ACTIONS = 16, 6  # of the table of visits
BAR = 32  # characters of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"
LEVELS = "▁▂▃▄▅▆▇█"
SHORTENED = 28  # characters of a label
GOOD, BAD, CAREFUL = ("✓", "green"), ("✗", "red"), ("!", "yellow")
CHECK_MARKS = {"passed": GOOD, "failed": BAD, "told": ("•", "default"), "unchecked": ("–", "dim")}


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Prints all parts, each under its heading."""
    for heading, parts in (
        (shown(inspection.source, 200), overview(inspection)),
        ("Coverage", coverage(inspection)),
        (visits_heading(inspection), [visits_table(inspection)]),
        ("What the log is too thin for", cautions(inspection)),
        ("Can the claim rest on this log?", checks(inspection)),
        ("Suspicious rows", suspicions(inspection)),
        ("What a discount means here", map(Text, discount_words(inspection))),
    ):
        console.print(Text(heading, style="bold"))
        for part in parts:
            console.print(indented(part))
        console.print()


# ---- the parts --------------------------------------------------------------------------------


def overview(inspection: Inspection) -> Iterator[RenderableType]:
    """The size of the log, its columns, and how episodes and rewards are spread."""
    reached, unfinished = inspection.states_only_reached, inspection.unfinished
    episodes, rewards, overlap = inspection.episodes, inspection.rewards, inspection.overlap
    also = f", and {reached:,} more in which nobody decided" if reached else ""
    facts: dict[str, str | Text] = {
        "rows": f"{inspection.rows:,}",
        "states": f"{inspection.states:,}{also}",
        "actions": f"{len(inspection.actions):,}",
    }
    if episodes is not None:
        facts["episodes"] = f"{episodes.number:,}: {ends_words(inspection)}"
    if episodes is not None and episodes.rows is not None:
        line = sparkline([bin.times for bin in episodes.histogram])
        facts["rows each"] = Text.assemble(line, "  ", range_words(episodes.rows))
    if rewards is not None:
        facts["rewards"] = Text.assemble(sparkline(rewards.bins), f"  {rewards_words(rewards)}")
    if overlap is not None:
        facts["policy"] = f"{shown(overlap.policy, 200)}: {fit(inspection)}"
    if unfinished:
        facts["unfinished"] = (
            f"{counted(unfinished, 'row')} at which the recording stopped: nobody knows where they "
            "led, so they are no visits"
        )
    facts[""] = ""
    columns = inspection.columns
    named = {role.replace("_", " "): shown(columns.described(role), 120) for role in columns.shown}
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", min_width=10, no_wrap=True)
    for name, words in (*facts.items(), *named.items()):
        table.add_row(name, words)
    yield table


def coverage(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields how often pairs are visited, and what that leaves to choose from."""
    seen, n_wedge = inspection.coverage, inspection.n_wedge
    share = percent(seen.visits_trusted / inspection.visits) if inspection.visits else "none"
    tried = [
        f"{times:,} with {counted(many, 'action')}"
        for many, times in enumerate(inspection.states_by_tried)
        if times
    ]
    yield Text(
        f"{counted(seen.pairs, 'pair')} = {counted(inspection.states, 'state')} × "
        f"{counted(len(inspection.actions), 'action')}, by their visits"
        + (f"; visited ones have {range_words(seen.visits)}" if seen.visits else "")
    )
    tones = ["green" if b.low > n_wedge else "yellow" if b.high else "red" for b in seen.histogram]
    yield bars(
        [(visits_words(b), b.times, tone) for b, tone in zip(seen.histogram, tones, strict=True)],
        "pair",
    )
    yield Text(
        f"more than N∧ = {n_wedge:,} visits: {counted(seen.trusted, 'pair')}, with {share} of "
        f"all visits\n\nStates by how many actions have more than {n_wedge:,} visits"
    )
    yield bars(
        [
            (f"{many:,} trusted", times, "green" if many > 1 else "yellow")
            for many, times in enumerate(inspection.states_by_trusted)
            if times or many < 3
        ],
        "state",
    )
    yield Text(f"states by how many were ever tried: {', '.join(tried) or 'none'}")


def visits_heading(inspection: Inspection) -> str:
    """Returns the heading of the table of visits: which states and actions it shows."""
    states, actions = (
        f"{most:,} of {many:,} {things}" if many > most else f"all {many:,} {things}"
        for most, many, things in (
            (STATES, inspection.states, "states"),
            (ACTIONS, len(inspection.actions), "actions"),
        )
    )
    return f"Visits in {states}, the busiest first, and {actions}"


def visits_table(inspection: Inspection) -> RenderableType:
    """States down, actions across; what SPIBB would not trust stands in brackets."""
    order, n_wedge = inspection.actions_by_visits[:ACTIONS], inspection.n_wedge
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, caption_justify="left")
    for name in inspection.columns.state:
        table.add_column(Text(shown(name)), overflow="fold")
    for i in order:
        name = ", ".join(inspection.action_name(inspection.actions[i].action))
        table.add_column(Text(shown(name)), justify="right", overflow="fold")
    for use in inspection.busiest[:STATES]:
        cells = (visits_cell(use.visits[i], n_wedge) for i in order)
        table.add_row(*(Text(shown(text)) for text in inspection.state_name(use.state)), *cells)
    table.caption = Text(f"(in brackets: at most {n_wedge:,} visits, · never)", style="dim")
    return table


def visits_cell(visits: int, n_wedge: int) -> Text:
    """A number of visits, marked where it is too small."""
    if visits > n_wedge:
        return Text(f"{visits:,} ", style="green")
    return Text(f"({visits:,})", style="yellow") if visits else Text("· ", style="dim")


def cautions(inspection: Inspection) -> Iterator[RenderableType]:
    """The limits of the log, or that there are none."""
    for caution in inspection.cautions:
        yield marked(CAREFUL, shown(caution.says, 600))
    if not inspection.cautions:
        yield marked(GOOD, "Nothing: every state has actions to choose from.")


def checks(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields what was found about each assumption, with what luck does as a small picture."""
    yield Text(summary(inspection.checks))
    for check in inspection.checks:
        found = f"{title(check)}: {says(check)}"
        yield marked(CHECK_MARKS[check.outcome], shown(found, 800))
        details = Text(aside(check))
        if check.statistic is not None:
            line = sparkline([int(bar.value) for bar in check.picture])
            details.append(" Luck alone: ").append(line)
            details.append(f", this log {signed(check.statistic, 2)}")
        if details:
            details.stylize("dim")
            yield indented(details)


def suspicions(inspection: Inspection) -> Iterator[RenderableType]:
    """Yields what looks wrong, with the first places."""
    for suspicion in inspection.suspicions:
        yield marked(BAD if suspicion.refused else CAREFUL, shown(suspicion.says, 400))
        for example in suspicion.examples:
            yield indented(Text(place(example), style="dim"))
    if not inspection.suspicions:
        yield marked(GOOD, "None found.")


def place(example: Example) -> str:
    """Returns where a row stands, and what is there."""
    file, row, episode, step, value = example
    parts = [] if file is None else [shown(file, 200)]
    parts.append(f"row {row:,}")
    for name, text in (("episode", episode), ("step", step)):
        parts += [] if text is None else [f"{name} {shown(text)}"]
    return f"{', '.join(parts)}: {'nothing there' if value is None else shown(value, 120)}"


# ---- pictures and words -----------------------------------------------------------------------


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


def indented(part: RenderableType) -> Padding:
    """A part under what it belongs to."""
    return Padding(part, (0, 0, 0, 2), expand=False)


def marked(mark: tuple[str, str], sentence: str) -> Table:
    """A sentence with a mark before it, its further lines under the first."""
    table = Table.grid(padding=(0, 1))
    table.add_row(Text(mark[0], style=f"bold {mark[1]}"), Text(sentence))
    return table


def range_words(spread: Spread) -> str:
    """'1 to 13, median 12'."""
    return f"{spread.lowest:,} to {spread.highest:,}, median {spread.median:,}"


def shown(text: str, most: int = SHORTENED) -> str:
    """A text from the data: on one line, of limited length, and nothing in it moves the cursor."""
    safe = "".join(sign if sign.isprintable() else "\ufffd" for sign in text) or "(empty)"
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"
