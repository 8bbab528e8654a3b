"""Progress: what is being done and how long it will take, on standard error.

In a terminal, a bar that moves; in a file or a pipe, a line when something begins, and one now and
then while it lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

import click

from surestep._words import duration

EVERY = 10.0  # seconds between two lines about the same

Tell = Callable[[str, int, int], None]  # what is being done, done, of how many


@contextmanager
def task_progress() -> Iterator[Tell]:
    """Yields a function that moves the bar, or tells by lines where there is none."""
    if sys.stderr.isatty():
        with bar() as tell:
            yield tell
    else:
        yield Lines() if is_open_file(sys.stderr) else lambda what, done, total: None


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

    columns = (
        *(parts.TextColumn("{task.description}"), parts.BarColumn(), parts.MofNCompleteColumn()),
        *(parts.TimeElapsedColumn(), parts.TextColumn("left"), parts.TimeRemainingColumn()),
    )
    # What is said meanwhile goes to standard output, wherever that leads.
    console = Console(stderr=True)
    with parts.Progress(*columns, console=console, redirect_stdout=False) as drawn:

        def tell(what: str, done: int, total: int) -> None:
            for task in drawn.tasks:
                if task.description != what:  # its time is its own
                    drawn.remove_task(task.id)
            now = drawn.task_ids[0] if drawn.task_ids else drawn.add_task(what, total=None)
            # The last step of several is no end of what is being done with it.
            drawn.update(now, completed=done, total=total if total > 1 else None)

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
        click.echo(words, err=True)
