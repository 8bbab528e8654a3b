"""Opens DuckDB databases, quotes names and texts for SQL, and shortens the errors of DuckDB."""

import errno
import glob
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from surestep._files import check_utf8, temporary_folder
from surestep.errors import FileFailure, InvalidParameter, SurestepError

LONGEST = 300  # letters of a line in an error of DuckDB, which may quote megabytes of a row
BETWEEN_INTERRUPTS = 0.05  # seconds
ROW = '"surestep row"'  # the column with the number of a row in its log
IDLE: list[Any] = []  # databases to be used again
MOST_IDLE = 2  # two are open at once while the header of a compressed file is read
AS_NEW = "RESET preserve_insertion_order; RESET threads; SET temp_directory = ''"


@contextmanager
def in_memory(
    memory_limit: str | None = None, *, share: float = 1.0, threads: int | None = None
) -> Iterator[Any]:
    """Yields an empty database for a single user, which spills to a temporary folder.

    An error of DuckDB that is not caught inside becomes an error of ours. It takes 20 ms to make a
    database, so one is used again: its tables belonged to a cursor, which is closed, and its
    settings are put back. With a `memory_limit` such as '2GB' it takes at most a `share` of it, and
    is not used again.
    """
    with temporary_folder() as spill:
        try:
            instance = IDLE.pop()
        except IndexError:
            instance = duckdb.connect(config={"enable_external_file_cache": False})
        try:
            with instance.cursor() as database:
                database.execute(f"SET temp_directory = {sql_text(str(spill))}")
                if threads is not None:
                    database.execute(f"SET threads = {threads}")
                if memory_limit is not None:
                    limit_memory(database, memory_limit, share)
                yield database
        except duckdb.InterruptException:
            raise
        except duckdb.Error as problem:
            raise failure_of(problem, memory_limit) from None
        finally:
            if memory_limit is not None or len(IDLE) >= MOST_IDLE or not is_as_new(instance):
                instance.close()
            else:
                IDLE.append(instance)


def failure_of(problem: Exception, memory_limit: str | None) -> SurestepError:
    """Returns our error for an error of DuckDB: too little memory, too little disk, or another."""
    if not lacks_room(problem):
        return FileFailure(f"the database failed: {first_lines(problem)}")
    if errno_of(problem) is not None or "temp_directory" in str(problem):
        return FileFailure(
            f"there is too little room in {tempfile.gettempdir()}; set TMPDIR to a folder with more"
        )
    had = "the memory here" if memory_limit is None else f"memory_limit is {memory_limit!r}, which"
    return InvalidParameter(
        f"{had} is too little for this; give more, or have fewer states (coarser bins)"
    )


def lacks_room(problem: Exception) -> bool:
    """Tells whether DuckDB failed for lack of memory or of disk."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(problem, duckdb.OutOfMemoryException) or errno_of(problem) in full


def errno_of(problem: Exception) -> int | None:
    """Returns the system's error number, if DuckDB names one."""
    number = re.search(r'"errno":"(\d+)"', str(problem))
    return None if number is None else int(number[1])


def is_as_new(instance: Any) -> bool:
    """Puts the settings of a database back; returns False if it cannot be used again.

    A database that has spilled cannot change its folder, and one that failed badly does not answer.
    """
    try:
        instance.execute(AS_NEW)
    except duckdb.Error:
        return False
    return True


def close_idle() -> None:
    """Closes the idle databases."""
    with suppress(IndexError):
        while True:
            IDLE.pop().close()


if hasattr(os, "register_at_fork"):  # a fork copies the databases without their threads
    os.register_at_fork(before=close_idle)


class Interruptible:
    """A DuckDB connection whose methods run in another thread, so that they can be stopped."""

    def __init__(self, connection: Any, worker: ThreadPoolExecutor, seconds: float | None) -> None:
        self._connection = connection
        self._worker = worker
        self._end = None if seconds is None else time.monotonic() + seconds

    def __getattr__(self, name: str) -> Any:
        """Returns a method, which an interrupt or a timeout stops before its error is passed on."""
        method = getattr(self._connection, name)

        def run(*arguments: Any) -> Any:
            running = self._worker.submit(method, *arguments)
            try:
                answer = running.result(None if self._end is None else self._end - time.monotonic())
            finally:
                while not running.done():
                    self._connection.interrupt()  # no effect before the query begins
                    wait([running], BETWEEN_INTERRUPTS)
            return self if name == "execute" else answer

        return run


@contextmanager
def interruptible(connection: Any, seconds: float | None = None) -> Iterator[Any]:
    """Yields a connection whose queries stop at Ctrl-C, or with a TimeoutError after `seconds`."""
    with ThreadPoolExecutor(1, thread_name_prefix="surestep-query") as worker:
        yield Interruptible(connection, worker, seconds)


def limit_memory(database: Any, limit: str, share: float = 1.0) -> None:
    """Limits the memory of a database to a share of a limit such as '2GB'."""
    try:
        database.execute(f"SET memory_limit = {sql_text(str(limit))}")
        size = "parse_formatted_bytes(current_setting('memory_limit'))::BIGINT"
        allowed = int(share * database.execute(f"SELECT {size}").fetchone()[0])
        database.execute(f"SET memory_limit = '{allowed}B'")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as problem:
        raise InvalidParameter(
            f"memory_limit is {limit!r}, expected a size such as '2GB': {first_lines(problem)}"
        ) from None


def first_lines(problem: Exception) -> str:
    """Returns the message of the system, or of DuckDB without its advice about settings."""
    number = errno_of(problem)
    if number is not None:
        return os.strerror(number)
    lines = [line.strip()[:LONGEST] for line in str(problem).splitlines() if line.strip()]
    kept = lines[: next((i for i, x in enumerate(lines) if x.startswith("Possible")), 3)][:3]
    return "; ".join([*kept, *(line for line in lines if line.startswith("file = "))])


def file_list(files: Sequence[Path]) -> str:
    """Returns files as a list in SQL; characters of patterns are escaped."""
    for path in files:
        check_utf8(path)
    return f"[{', '.join(sql_text(glob.escape(str(path))) for path in files)}]"


def sql_text(text: str) -> str:
    """Quotes a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(column: str) -> str:
    """Quotes the name of a column for SQL."""
    return '"' + column.replace('"', '""') + '"'


def named(columns: Sequence[str]) -> str:
    """Quotes the names of columns and joins them with commas, for SQL."""
    return ", ".join(map(sql_name, columns))


def replacing(values: Sequence[str]) -> str:
    """Returns SQL for all columns, some of them with new values."""
    return f"* REPLACE ({', '.join(values)})" if values else "*"


def as_texts(columns: Sequence[str]) -> str:
    """Returns SQL that casts columns to text, so that Python can read values of every type."""
    return ", ".join(f"CAST({sql_name(name)} AS VARCHAR)" for name in columns)


def columns_of(database: Any, rows: str) -> dict[str, str]:
    """Returns the columns of a table or of a SELECT, with their types as DuckDB calls them."""
    return {str(row[0]): str(row[1]) for row in database.execute(f"DESCRIBE {rows}").fetchall()}
