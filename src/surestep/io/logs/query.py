"""Rows prepared by a query of a user's own, in a database that can reach nothing but the log.

The files are loaded into tables; then access to files is switched off, the settings are locked, and
the query runs on one thread, within a limit of memory, of time and of what it spills. It is run
twice: rows that come out otherwise, as by `random()` or `now()`, are refused.

**No look ahead.** A decision may depend on the rows so far only; a query could use later ones. So
cases of the log are cut anywhere, and the query is run on their first rows alone, as `act` does: a
row must come out with the same state and action as in the whole log, and as soon as it is there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from surestep._files import temporary_folder
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.sql import first_lines, lacks_room, limit_memory, sql_name, sql_text

LOG, RESULT = "log", '"surestep result"'
ROW = "row"  # the place of a row in the files
WHOLE_ROW = '"surestep whole row"'
ALL = '"surestep all"'  # the whole log, while `log` is a part of it
SECONDS = 600.0
SPILL = 20  # times the size of the tables, and a gigabyte
CASES, CUTS = 20, 6  # that are tried, and where each is cut
OFFLINE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


class Keys(NamedTuple):
    """The columns of a query's rows that say which row one is, and what was decided there."""

    episode: str | None
    step: str | None
    decided: tuple[str, ...]  # of states and actions

    @property
    def order(self) -> list[str]:
        """Returns the columns that tell rows apart."""
        return [name for name in (self.episode, self.step) if name is not None] or [ROW]


@dataclass(frozen=True, slots=True)
class Query:
    """SQL over the table `log`, and where its rows are tried against a look ahead."""

    sql: str
    case: str | None = None  # the column of the log whose rows belong together
    order: str | None = None  # the column of the log in whose order they came; None: as they lie
    memory_limit: str | None = None
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        """Refuses anything but one SELECT."""
        import duckdb

        try:
            statements = duckdb.extract_statements(self.sql)
        except duckdb.Error as problem:
            raise InvalidParameter(f"the query cannot be read: {first_lines(problem)}") from None
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise InvalidParameter(
                f"the query has {len(statements)} statements or another one than SELECT; expected "
                "one SELECT, without a semicolon"
            )

    def rows(self) -> str:
        """Returns the SQL of its rows."""
        return f"SELECT * FROM (\n{self.sql.rstrip().rstrip(';')}\n)"


class Workshop:
    """A database in a temporary folder that goes when nobody needs it any more."""

    def __init__(self) -> None:
        folder = temporary_folder()
        self.folder = folder.__enter__()
        self.finalizer = weakref.finalize(self, folder.__exit__, None, None, None)
        self.file = self.folder / "log.duckdb"

    @contextmanager
    def loading(self, memory_limit: str | None) -> Iterator[Any]:
        """Yields the database as tables are loaded into it."""
        import duckdb

        with duckdb.connect(str(self.file), config=OFFLINE) as database:
            if memory_limit is not None:
                limit_memory(database, memory_limit)
            yield database

    @contextmanager
    def locked(self, query: Query) -> Iterator[Any]:
        """Yields the database as a query may use it; what fails in it is told in its words."""
        import duckdb

        database = duckdb.connect(str(self.file), config=OFFLINE)
        timer = threading.Timer(query.seconds, database.interrupt)
        spill = SPILL * self.file.stat().st_size + 2**30
        try:
            timer.start()
            if query.memory_limit is not None:
                limit_memory(database, query.memory_limit)
            for setting in (
                f"temp_directory = {sql_text(str(self.folder / 'spilled'))}",
                f"max_temp_directory_size = '{spill}B'",
                "threads = 1",
                "enable_external_access = false",
                "lock_configuration = true",
            ):
                database.execute(f"SET {setting}")
            yield database
        except duckdb.InterruptException:
            if timer.is_alive():
                raise
            raise InvalidParameter(
                f"the query takes longer than {query.seconds:g} seconds; expected one that ends"
            ) from None
        except duckdb.Error as problem:
            room = "there is too little room for it" if lacks_room(problem) else ""
            raise InvalidLog(f"the query failed: {room or first_lines(problem)}") from None
        finally:
            timer.cancel()
            database.close()


@dataclass(frozen=True, slots=True)
class Made:
    """What a query made: where, in which order, and of what."""

    workshop: Workshop
    query: Query
    keys: Keys
    digest: str  # of its rows
    types: dict[str, str]  # of the columns of the log

    def check_no_look_ahead(self) -> None:
        """Refuses a query whose decisions depend on rows that come later, or on other cases."""
        check_no_look_ahead(self.workshop, self.query, self.keys)


# ---- running ----------------------------------------------------------------------------------


def run(workshop: Workshop, query: Query) -> dict[str, str]:
    """Makes the table of results; returns its columns with their types."""
    with workshop.locked(query) as database:
        database.execute(f"CREATE TABLE {RESULT} AS {query.rows()}")
        described = database.execute(f"DESCRIBE {RESULT}").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def finish(workshop: Workshop, query: Query, keys: Keys) -> tuple[Path, str]:
    """Returns the file of the rows in their order, and their digest.

    Refused are rows that cannot be told apart, and a query that gives other rows when run again.
    """
    target = workshop.folder / "rows.parquet"
    with workshop.locked(query) as database:
        check_keys(database, keys)
        digest = digest_of(database, RESULT, keys)
        if digest_of(database, f"({query.rows()})", keys) != digest:
            raise InvalidLog(
                "the query gives other rows when it is run again; expected one whose rows depend "
                "on the log alone (no random(), no now(), no LIMIT without an order)"
            )
    with workshop.loading(query.memory_limit) as database:
        has_row = any(row[0] == ROW for row in database.execute(f"DESCRIBE {RESULT}").fetchall())
        order = ([ROW] if has_row and keys.order != [ROW] else []) + keys.order
        database.execute(
            f"COPY (SELECT * FROM {RESULT} ORDER BY {', '.join(map(sql_name, order))}) "
            f"TO {sql_text(str(target))} (FORMAT parquet)"
        )
    return target, digest


def check_keys(database: Any, keys: Keys) -> None:
    """Refuses rows that nothing tells apart."""
    columns = [str(row[0]) for row in database.execute(f"DESCRIBE {RESULT}").fetchall()]
    names = ", ".join(map(sql_name, keys.order))
    if keys.order == [ROW] and ROW not in columns:
        raise InvalidLog(
            "nothing tells the rows of the query apart; expected columns of episodes and steps, or "
            "the column `row` of the log among them"
        )
    twice = database.execute(
        f"SELECT {names}, count(*) FROM {RESULT} GROUP BY ALL HAVING count(*) > 1 "
        "ORDER BY ALL LIMIT 1"
    ).fetchone()
    if twice is not None:
        *values, times = twice
        shown = ", ".join(
            f"{name} {value!r}" for name, value in zip(keys.order, values, strict=True)
        )
        raise InvalidLog(f"the query gives {times:,} rows for {shown}; expected one")


def digest_of(database: Any, rows: str, keys: Keys) -> str:
    """Returns a text that other rows, or another order of them, would not have."""
    numbered = f"SELECT *, row_number() OVER (ORDER BY {', '.join(map(sql_name, keys.order))})"
    part = f"substr(sha256(CAST({WHOLE_ROW} AS VARCHAR)), 1, 15)"
    (times, total) = database.execute(
        f"SELECT count(*), coalesce(sum(CAST('0x' || {part} AS HUGEINT)), 0) "
        f"FROM ({numbered} FROM {rows}) AS {WHOLE_ROW}"
    ).fetchone()
    return f"{times}-{int(total):x}"


# ---- no look ahead ----------------------------------------------------------------------------

Texts = tuple[str | None, ...]


class Row(NamedTuple):
    """A row that a query made: what was decided there, and of which row of the log."""

    decided: Texts
    of: Texts


def check_no_look_ahead(workshop: Workshop, query: Query, keys: Keys) -> None:
    """Refuses a query whose decisions depend on rows that come later, or on other cases."""
    with workshop.locked(query) as database:
        link = link_of(database, keys)
        database.execute(f"CREATE OR REPLACE TABLE {ALL} AS FROM {LOG}")
        case = sql_name(query.case or ROW)
        cases = database.execute(
            f"SELECT DISTINCT {case} FROM {ALL} WHERE {case} IS NOT NULL "
            f"ORDER BY md5(CAST({case} AS VARCHAR)) LIMIT {CASES}"
        ).fetchall()
        for (name,) in cases:
            raw = so_far(database, query, name)
            whole = rows_of(database, f"{RESULT} SEMI JOIN {LOG} USING ({named(link)})", keys, link)
            alone = rows_of(database, f"({query.rows()})", keys, link)
            check_same(alone, whole, keys, f"the rows of {query.case or ROW} {name!r} alone")
            check_same(whole, alone, keys, "all rows of the log")
            known = {made.of for made in alone.values()}
            for cut in sorted({raw * (cut + 1) // (CUTS + 1) for cut in range(CUTS)} | {1}):
                if not 0 < cut < raw:
                    continue
                so_far(database, query, name, cut)
                before = rows_of(database, f"({query.rows()})", keys, link)
                check_same(before, alone, keys, f"the first {cut:,} rows of {name!r}")
                last = rows_of(database, LOG, Keys(None, None, ()), link)
                check_soon(list(last.values())[-1].of, known, before, link)


def link_of(database: Any, keys: Keys) -> tuple[str, ...]:
    """Returns the columns by which rows of the query are found in the log."""
    result, log = (
        {str(row[0]) for row in database.execute(f"DESCRIBE {table}").fetchall()}
        for table in (RESULT, LOG)
    )
    if ROW in result:
        return (ROW,)
    if keys.order != [ROW] and {*keys.order} <= log:
        return tuple(keys.order)
    raise InvalidLog(
        "the query does not say of which row of the log a row is, so that nobody can see whether "
        "it looks ahead; expected the column `row` of the log among those of the query"
    )


def so_far(database: Any, query: Query, case: object, number: int | None = None) -> int:
    """Makes `log` the first rows of a case, or all of them; returns how many there are."""
    order = named([*filter(None, [query.order]), ROW])
    limit = "" if number is None else f" LIMIT {number}"
    database.execute(
        f"CREATE OR REPLACE TABLE {LOG} AS SELECT * FROM {ALL} "
        f"WHERE {sql_name(query.case or ROW)} = ? ORDER BY {order}{limit}",
        [case],
    )
    return int(database.execute(f"SELECT count(*) FROM {LOG}").fetchone()[0])


def named(columns: Sequence[str]) -> str:
    """Returns columns as a query lists them."""
    return ", ".join(map(sql_name, columns))


def rows_of(database: Any, rows: str, keys: Keys, link: Sequence[str]) -> dict[Texts, Row]:
    """Returns rows by their keys, all as text."""
    columns = (*keys.order, *keys.decided, *link)
    texts = ", ".join(f"CAST({sql_name(name)} AS VARCHAR)" for name in columns)
    found = database.execute(f"SELECT {texts} FROM {rows}").fetchall()
    width, end = len(keys.order), len(keys.order) + len(keys.decided)
    return {row[:width]: Row(row[width:end], row[end:]) for row in found}


def check_same(
    part: Mapping[Texts, Row], whole: Mapping[Texts, Row], keys: Keys, what: str
) -> None:
    """Refuses rows of a part that are otherwise, or not there, in the whole."""
    for key, made in part.items():
        where = ", ".join(f"{name} {text!r}" for name, text in zip(keys.order, key, strict=True))
        if key not in whole:
            raise InvalidLog(
                f"the query looks ahead, or at other cases: with {what} it makes a row ({where}) "
                f"that it does not make otherwise; {EXPECTED}"
            )
        for name, now, then in zip(keys.decided, made.decided, whole[key].decided, strict=True):
            if now != then:
                raise InvalidLog(
                    f"the query looks ahead, or at other cases: {where}, column {name!r} is "
                    f"{now!r} with {what}, and {then!r} otherwise; {EXPECTED}"
                )


EXPECTED = "expected decisions that depend on the rows of a case so far, and on nothing else"


def check_soon(
    last: Texts, known: set[Texts], before: Mapping[Texts, Row], link: Sequence[str]
) -> None:
    """Refuses a query that makes a row of the log's last one only when later ones are there."""
    if last in known and last not in {made.of for made in before.values()}:
        where = ", ".join(f"{name} {text!r}" for name, text in zip(link, last, strict=True))
        raise InvalidLog(
            f"the query looks ahead: it makes a row of the log's {where} only when later rows are "
            f"there; {EXPECTED}"
        )


# ---- the rows of one case, to decide for the last -----------------------------------------------


def prepared_case(
    query: Query,
    types: Mapping[str, str],
    rows: Sequence[Mapping[str, object]],
    tables: Mapping[str, str],
) -> dict[str, object]:
    """Returns the last row that the query makes of the rows of a case so far.

    `types` are those of the columns of the log, `tables` the files of further tables.
    """
    workshop = Workshop()
    with workshop.loading(query.memory_limit) as database:
        columns = ", ".join(f"{sql_name(name)} {kind}" for name, kind in types.items())
        database.execute(f"CREATE TABLE {LOG} ({columns})")
        places = ", ".join("?" for _ in types)
        for number, row in enumerate(rows, 1):
            values = [number if name == ROW else row.get(name) for name in types]
            database.execute(f"INSERT INTO {LOG} VALUES ({places})", values)
        for name, file in tables.items():
            database.execute(f"CREATE TABLE {sql_name(name)} AS FROM {sql_text(str(file))}")
    with workshop.locked(query) as database:
        answer = database.execute(query.rows())
        names = [column[0] for column in answer.description]
        found = answer.fetchall()
    if not found:
        raise InvalidParameter(
            f"the query makes no row of the {len(rows):,} given; expected the rows of a case so far"
        )
    return dict(zip(names, found[-1], strict=True))
