"""Text for a terminal: labels of logs and files are shown there, and never obeyed.

A label may hold whatever a log holds, also what moves the cursor, colours or renames a terminal, or
turns the direction of text. All that is printed goes through here and has such characters replaced
by what they are called, as in Python: '\\x1b'. Only our own colours and lines pass.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from shutil import get_terminal_size
from textwrap import fill
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

import click

from surestep._words import duration

if TYPE_CHECKING:
    from rich.console import Console

    from surestep.sections import Section

# C0, DEL and C1, the ends of lines and paragraphs of Unicode, and what turns the direction of text.
OBEYED = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Returns the text with every character that a terminal would obey replaced by its name.

    >>> print(visible("a\\x1b[31mb"))
    a\\x1b[31mb
    """
    return OBEYED.sub(lambda match: repr(match[0])[1:-1], text)


def lines(text: str) -> str:
    """Returns the text made visible line by line: ends of lines stay."""
    return "\n".join(map(visible, text.split("\n")))


def say(*texts: object, err: bool = False, **style: Any) -> None:
    """Prints texts that are not None, a line each; for `style` see `click.secho`."""
    plain = False if os.environ.get("NO_COLOR") else None  # as rich has it
    for text in texts:
        if text is not None:  # to the stream itself: click takes one without our letters for UTF-8
            stream = sys.stderr if err else sys.stdout
            click.secho(lines(str(text)), file=stream, color=plain, **style)


def say_sentences(text: str, **style: Any) -> None:
    """Prints a text, in a terminal broken between words."""
    wide = get_terminal_size().columns if is_terminal(sys.stdout) else sys.maxsize
    say(fill(text, wide, break_long_words=False, break_on_hyphens=False), **style)


def say_json(content: object) -> None:
    """Prints JSON, which has escapes of its own for what would be obeyed."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    escaped = (OBEYED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", x) for x in text.split("\n"))
    click.echo("\n".join(escaped))


def terminal(**settings: Any) -> Console:
    """Returns a console of rich, for standard output unless the settings say otherwise."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        """A console in which what would be obeyed is made visible."""

        def render(self, *thing: Any, **options: Any) -> Iterator[Segment]:
            """Renders it, piece by piece; pieces that only move the cursor are rich's own."""
            for piece in super().render(*thing, **options):
                plain = piece.control is not None
                yield piece if plain else Segment(lines(piece.text), piece.style)

        def on_broken_pipe(self) -> None:
            """Leaves it to `main`, where rich would end the process without a word."""
            raise

    return Shown(**settings)


def show(sections: Sequence[Section]) -> None:
    """Prints sections; names from the data may look like rich's markup, and are none."""
    from surestep.report.terminal import print_sections

    print_sections(sections, terminal(highlight=False, markup=False, emoji=False))


# ---- progress: what is being done and how long it will take, on standard error -----------------
#
# In a terminal, a bar that moves; in a file or a pipe, a line when something begins, and one now
# and then while it lasts.


EVERY = 10.0  # seconds between two lines about the same

Tell = Callable[[str, int, int], None]  # what is being done, done, of how many


@contextmanager
def task_progress() -> Iterator[Tell]:
    """Yields a function that moves the bar, or tells by lines where there is none."""
    if is_terminal(sys.stderr):
        with bar() as tell:
            yield tell
    else:
        yield Lines() if is_open_file(sys.stderr) else lambda what, done, total: None


def is_terminal(stream: TextIO | None) -> bool:
    """Tells whether a stream, which may have been closed, leads to a terminal."""
    return stream is not None and stream.isatty()


def is_open_file(stream: TextIO) -> bool:
    """Tells whether writing goes to a file, a pipe or a device, and not into this process."""
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


@contextmanager
def bar() -> Iterator[Tell]:
    """Shows a bar in a terminal."""
    from rich import progress as parts
    from rich.console import Console

    text = partial(parts.TextColumn, markup=False)
    begun = text("{task.description}"), parts.BarColumn(16), parts.MofNCompleteColumn()
    times = parts.TimeElapsedColumn(), text("so far"), parts.TimeRemainingColumn()
    # What is said meanwhile goes to standard output, wherever that leads; in a terminal, above.
    console, above = Console(stderr=True), is_terminal(sys.stdout)
    columns = *begun, *times, text("{task.fields[of]}")
    with parts.Progress(*columns, console=console, redirect_stdout=above) as drawn:

        def tell(what: str, done: int, total: int) -> None:
            what = visible(what)
            for task in drawn.tasks:
                if task.description != what:  # its time is its own
                    drawn.remove_task(task.id)
            now = drawn.task_ids[0] if drawn.task_ids else drawn.add_task(what, total=None, of="")
            # The last step of several is no end of what is being done with it.
            known, of = (total, "left") if total > 1 else (None, "")
            drawn.update(now, completed=done, total=known, of=of)

        yield tell


class Lines:
    """Lines about what is being done: at its beginning, and every ten seconds."""

    def __init__(self) -> None:
        """Starts with nothing told."""
        self.now, self.began, self.told, self.first = "", 0.0, 0.0, 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Tells it, if it is new or ten seconds have passed."""
        time = monotonic()
        if what != self.now:
            self.now, self.began, self.first = what, time, done
        elif time - self.told < EVERY:
            return
        self.told = time
        words = what if total <= 1 else f"{what}: {done:,} of {total:,}"
        if done > self.first:
            left = (time - self.began) / (done - self.first) * (total - done)
            words += f", about {duration(left)} left"
        click.echo(visible(words), err=True)
