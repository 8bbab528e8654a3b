"""DuckDB as all readers of tables use it: SQL of texts and names, short errors, Ctrl-C."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surestep._files import check_utf8
from surestep.errors import InvalidParameter

BETWEEN_INTERRUPTS = 0.05  # seconds
ROW = '"surestep row"'  # the number of a row in its log, where a query carries it


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


def limit_memory(database: Any, limit: str, share: float = 1.0) -> int:
    """At most this share of a limit such as '2GB', returned in bytes; the rest spills to disk."""
    import duckdb

    try:
        database.execute(f"SET memory_limit = {sql_text(str(limit))}")
        size = "parse_formatted_bytes(current_setting('memory_limit'))::BIGINT"
        allowed = int(share * database.execute(f"SELECT {size}").fetchone()[0])
        database.execute(f"SET memory_limit = '{allowed}B'")
        return allowed
    except duckdb.Error as problem:
        raise InvalidParameter(
            f"memory_limit is {limit!r}, expected a size such as '2GB': {first_lines(problem)}"
        ) from None


def first_lines(problem: Exception) -> str:
    """Returns what DuckDB says, without its advice about its own settings."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    kept = lines[: next((i for i, x in enumerate(lines) if x.startswith("Possible")), 3)][:3]
    return "; ".join(kept)


def file_list(files: Sequence[Path]) -> str:
    """Files as SQL, none of them taken for a pattern."""
    for path in files:
        check_utf8(path)
    return f"[{', '.join(sql_text(glob.escape(str(path))) for path in files)}]"


def sql_text(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(column: str) -> str:
    """The name of a column as SQL."""
    return '"' + column.replace('"', '""') + '"'
