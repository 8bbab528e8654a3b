"""The end of a command that is told to: by Ctrl-C, by the system, or by a terminal that closes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
PATIENCE = 1.0  # seconds in which another signal is the same wish: some senders send two


class Ended(BaseException):
    """The command was told to end: everything under way is undone on the way out."""


@contextmanager
def signals_end() -> Iterator[list[int]]:
    """Signals raise `Ended` inside; the list tells which came.

    One that comes again, later, ends the process at once. Those that the caller has decided about,
    as `nohup` does, are left alone.
    """
    came: list[int] = []
    first = 0.0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not came:
            came.append(number)
            first = time.monotonic()
            raise Ended
        if time.monotonic() > first + PATIENCE:
            os._exit(128 + number)

    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, end)
            for number in SIGNALS
            if signal.getsignal(number) in usual
        }
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
