"""A progress bar with the time that is left, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Moves a bar to `done` of `total`, and may give it another title."""

    def __call__(self, done: int, total: int, what: str = ..., /) -> None:
        """Draws."""
        ...


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """A function of (done, total) that moves the bar; nothing is drawn where nobody looks."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)

        def advance(done: int, total: int, what: str = title) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield advance


@contextmanager
def task_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A function of (what, done, total) that moves a bar titled with what is being done."""
    with progress_bar("") as advance:

        def tell(what: str, done: int, total: int) -> None:
            advance(done, total, what)

        yield tell
