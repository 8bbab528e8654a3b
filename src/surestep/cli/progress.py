"""Progress: what is being done and how long it will take, on standard error.

In a terminal, a bar that moves; in a file or a pipe, a line when something begins, and one now and
then while it lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, TextIO

import click

from surestep._words import duration

EVERY = 10.0  # seconds between two lines about the same


class Advance(Protocol):
    """Moves a bar to `done` of `total`, and may give it another title."""

    def __call__(self, done: int, total: int, what: str = ..., /) -> None:
        """Shows how much is done."""
        ...


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """A function of (done, total) that moves the bar, or tells by lines where there is none."""
    if sys.stderr.isatty():
        with bar(title) as advance:
            yield advance
    else:
        yield Lines(title) if is_open_file(sys.stderr) else silent


def is_open_file(stream: TextIO) -> bool:
    """Tells whether writing goes to a file, a pipe or a device, and not into this process."""
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


def silent(done: int, total: int, what: str = "", /) -> None:
    """Tells nothing."""


@contextmanager
def bar(title: str) -> Iterator[Advance]:
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
        task = drawn.add_task(title, total=None)
        now = title

        def advance(done: int, total: int, what: str = title) -> None:
            nonlocal task, now
            if what != now:  # its time is its own
                drawn.remove_task(task)
                task, now = drawn.add_task(what, total=None), what
            # The last step of several is no end of what is being done with it.
            drawn.update(task, completed=done, total=total if total > 1 else None)

        yield advance


class Lines:
    """Lines about what is being done: at its beginning, and every ten seconds."""

    def __init__(self, title: str) -> None:
        """Starts with nothing told."""
        self.title, self.now = title, ""
        self.began = self.told = 0.0
        self.first = 0

    def __call__(self, done: int, total: int, what: str = "", /) -> None:
        """Tells it, if it is new or ten seconds have passed."""
        what, time = what or self.title, monotonic()
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


@contextmanager
def task_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A function of (what, done, total) that tells what is being done."""
    with progress_bar("") as advance:
        yield lambda what, done, total: advance(done, total, what)
