"""Shows which task runs and how long it will take, as bars or lines on standard error.

In a terminal or a notebook, a bar moves; in a file or a pipe, a line tells when something begins,
and one now and then while it lasts.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from surestep._words import duration, visible

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 10.0  # seconds between two lines about the same

Progress = Callable[[str, int, int], None]  # what is being done, done, of how many


def silent(what: str, done: int, total: int) -> None:
    """Shows no progress."""


@contextmanager
def telling(progress: Progress | bool | None) -> Iterator[Progress]:
    """Yields a function that shows progress: the caller's own, or for True a bar.

    Where no bar can be drawn it writes lines; for False and None it shows nothing.
    """
    if progress is not True:
        yield progress or silent
        return
    from rich.console import Console

    console = Console(stderr=True)
    if is_terminal(sys.stderr) or (console.is_jupyter and find_spec("ipywidgets")):
        with bar(console) as tell:
            yield tell
    else:
        yield Lines()


def task_progress() -> AbstractContextManager[Progress]:
    """Returns `telling` for the command line: silent if this process captures standard error."""
    return telling(is_terminal(sys.stderr) or is_open_file(sys.stderr))


def is_terminal(stream: TextIO | None) -> bool:
    """Tells whether a stream, which may have been closed, leads to a terminal."""
    return stream is not None and stream.isatty()


def is_open_file(stream: TextIO) -> bool:
    """Tells whether a stream writes to a file, a pipe or a device, not into this process."""
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


@contextmanager
def bar(console: "Console") -> Iterator[Progress]:
    """Shows a bar in a terminal or a notebook."""
    from rich import progress as parts

    text = partial(parts.TextColumn, markup=False)
    columns = (
        text("{task.description}"),
        parts.BarColumn(16),
        parts.MofNCompleteColumn(),
        parts.TimeElapsedColumn(),
        text("so far"),
        parts.TimeRemainingColumn(),
        text("{task.fields[of]}"),
    )
    # Other output goes to standard output; in a terminal, it is shown above the bar.
    above = is_terminal(sys.stdout)
    with parts.Progress(*columns, console=console, redirect_stdout=above) as drawn:

        def tell(what: str, done: int, total: int) -> None:
            what = visible(what)
            for task in drawn.tasks:
                if task.description != what:  # a new task starts its own clock
                    drawn.remove_task(task.id)
            now = drawn.task_ids[0] if drawn.task_ids else drawn.add_task(what, total=None, of="")
            # The last of several steps is still being worked on.
            several = total > 1
            drawn.update(
                now,
                completed=done,
                total=total if several else None,
                of="left" if several else "",
            )

        yield tell


@dataclass(slots=True)
class Lines:
    """Writes a line about a task when it begins, and every ten seconds."""

    now: str = ""
    first: int = 0
    began: float = 0.0
    told: float = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Writes a line if the task is new or ten seconds have passed since the last one."""
        time = monotonic()
        if what != self.now:
            self.now = what
            self.began = time
            self.first = done
        elif time - self.told < EVERY:
            return
        self.told = time
        words = what if total <= 1 else f"{what}: {done:,} of {total:,}"
        if done > self.first:
            left = (time - self.began) / (done - self.first) * (total - done)
            words += f", about {duration(left)} left"
        sys.stderr.write(f"{visible(words)}\n")
        sys.stderr.flush()
