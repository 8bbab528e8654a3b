"""Queries that Ctrl-C stops: the main thread waits for them instead of being lost in them.

DuckDB looks for signals only now and then, and not at all while the main thread itself works on a
long piece of the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

BETWEEN_INTERRUPTS = 0.05  # seconds


class Interruptible:
    """A connection whose queries run in a thread of their own; all else is that of DuckDB's."""

    def __init__(self, connection: Any, worker: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._worker = worker

    def execute(self, *query: Any) -> Any:
        """Runs the query; whatever interrupts the wait for it stops it before it is passed on."""
        running = self._worker.submit(self._connection.execute, *query)
        try:
            return running.result()
        finally:
            while not running.done():
                self._connection.interrupt()  # of no effect on a query that has not yet begun
                wait([running], BETWEEN_INTERRUPTS)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a connection can do."""
        return getattr(self._connection, name)


@contextmanager
def interruptible(connection: Any) -> Iterator[Any]:
    """The connection, with queries that Ctrl-C stops."""
    with ThreadPoolExecutor(1, thread_name_prefix="surestep-query") as worker:
        yield Interruptible(connection, worker)
