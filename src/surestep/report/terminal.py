"""Prints sections in a terminal as sentences, lists and tables, without pictures."""

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table as Grid
from rich.text import Text

from surestep._words import harmless
from surestep.sections import Section, Table

STYLES = {"good": "bold green", "bad": "bold red", "caution": "bold yellow", "plain": "bold"}
SHORTENED, NAME, LONG = 28, 160, 1_000  # most letters of a cell, of a title, and of a sentence
MOST_ROWS, MOST_COLUMNS = 16, 8  # that are printed of a table


def print_sections(sections: Sequence[Section], console: Console) -> None:
    """Prints each section under its title; skips sections that the page folds."""
    for section in sections:
        if section.folded:
            continue
        console.print(Text(harmless(section.title, LONG), style=STYLES[section.mood]))
        for part in parts_of(section):
            if isinstance(part, Text) and part.no_wrap:  # a command, to be copied whole
                console.print(Text("  ").append_text(part), soft_wrap=True)
            else:
                console.print(
                    Segments(
                        trimmed(
                            console.render_lines(
                                Padding(part, (0, 0, 0, 2), expand=False), pad=False
                            )
                        )
                    ),
                    end="",
                )
        console.print()


def trimmed(lines: Iterable[list[Segment]]) -> Iterator[Segment]:
    """Yields lines without the spaces at their ends."""
    for line in lines:
        text = "".join(piece.text for piece in line).rstrip(" ")
        yield from Segment.adjust_line_length(line, cell_len(text), pad=False)
        yield Segment.line()


def parts_of(section: Section) -> Iterator[RenderableType]:
    """Yields the parts of a section as rich shows them, in the order of the page."""
    yield from (Text(harmless(sentence, LONG)) for sentence in section.sentences)
    for key in section.keys:
        line = Text(f"{key.name}: ").append(harmless(key.value), style=STYLES[key.mood])
        yield line.append(f" · {harmless(key.meaning, LONG)}" if key.meaning else "")
    for item in section.items:
        grid = Grid.grid(padding=(0, 1))
        title = item.title and harmless(item.title, NAME)
        said = ": ".join(filter(None, (title, item.text)))
        aside = f" {harmless(item.aside, LONG)}" if item.aside else ""
        line = Text(harmless(said, LONG)).append(aside, style="dim")
        grid.add_row(Text(item.sign or "•", style=STYLES[item.mood]), line)
        yield grid
    if section.facts:
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=10, no_wrap=True)
        for term, meaning in section.facts:
            grid.add_row(Text(harmless(term)), Text(harmless(meaning, LONG)))
        yield grid
    if section.command:
        yield Text(harmless(section.command, LONG), style="bold", no_wrap=True)
    yield from map(grid_of, section.tables)
    for part in section.parts:
        if not part.folded:
            yield Text(harmless(part.title, LONG), style="bold")
            yield from parts_of(part)


def grid_of(table: Table) -> RenderableType:
    """Returns the first rows and columns of a table."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, caption_justify="left")
    for heading, is_number in table.columns[:MOST_COLUMNS]:
        grid.add_column(
            Text(harmless(heading, SHORTENED)),
            justify="right" if is_number else "left",
            overflow="fold",
        )
    for row in table.rows[:MOST_ROWS]:
        cells = (cell if isinstance(cell, str) else cell.text for cell in row[:MOST_COLUMNS])
        grid.add_row(*(Text(harmless(cell, SHORTENED)) for cell in cells))
    left = len(table.rows) - MOST_ROWS
    more = f"; {left:,} more rows on the page" if left > 0 else ""
    grid.caption = Text(f"{table.caption}{more}", style="dim")
    return grid
