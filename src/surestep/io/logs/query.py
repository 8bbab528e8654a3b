"""Runs a user's SQL query that prepares the rows of a log; refuses one that looks ahead.

The files are loaded into tables; then access to files is switched off, the settings are locked, and
the query runs on one thread, within limits of memory, time and disk. It runs twice: a query whose
rows differ, as with `random()` or `now()`, is refused.

**No look ahead.** A decision may depend only on the rows so far; a query could use later ones. So
the rows of some cases are cut at several places, and the query runs on the first rows alone, as
`act` does. These must give the same states and actions as the whole log, also for the last of them.
Reward, end and next state of this last row are hidden. Half of the cases have rows that the query
leaves out: it may have left them out because of how the case ends.

Where most rows are cases by themselves, columns are also hidden in all of these at once, and
exchanged among them. If other rows come out then, the query leaves rows out by these columns. It
may do so only by what its decisions rest on, and by what its user calls known before them.
"""

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from surestep._files import temporary_folder
from surestep._names import refuse_unknown
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.sql import (
    as_texts,
    columns_of,
    first_lines,
    interruptible,
    lacks_room,
    limit_memory,
    named,
    replacing,
    sql_name,
    sql_text,
)

LOG = "log"
RESULT = '"surestep result"'
PLAIN = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE")  # exact in Python
ROW = "row"  # the place of a row in the files
WHOLE_ROW = '"surestep whole row"'
WHOLE = '"surestep whole"'  # the whole log, while `log` is another one
ALL = '"surestep all"'  # the cases to test
ALTERED = '"surestep altered"'  # the rows of the query where a column has other values
MOST = 0.9  # of the rows: if so many are cases by themselves, a few longer ones change nothing
AMONG = f"OVER (PARTITION BY {{1}} ORDER BY md5({as_texts([ROW])}))"
EXCHANGED = f"coalesce(lead({{0}}) {AMONG}, first_value({{0}}) {AMONG})"
SECONDS = 600.0
MEMORY = "4GB"  # the default limit
SPILL = 20  # disk limit: this many times the size of the tables, plus a gigabyte
CASES = 20  # to test for looking ahead
CUTS = 6  # places at which each case is cut
FIRST_ROWS = 10_000  # that are tested of each case
PLACES = (f"max({sql_name(ROW)})", f"arg_max({sql_name(ROW)}, md5({as_texts([ROW])}))")  # to change
LEFT_OUT = "the query leaves it out"
OFFLINE = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


class Keys(NamedTuple):
    """The columns of a query's rows by their use: which row it is, and what it decides."""

    episode: str | None
    step: str | None
    decided: tuple[str, ...]  # columns of states and actions
    after: tuple[str, ...] = ()  # columns of rewards, ends and next states
    before: tuple[str, ...] = ()  # columns of the log that the description calls known_before

    @property
    def order(self) -> list[str]:
        """Returns the columns that identify a row."""
        return [name for name in (self.episode, self.step) if name is not None] or [ROW]


@dataclass(frozen=True, slots=True)
class Query:
    """SQL over the table `log`, and the columns by which it is tested for looking ahead."""

    sql: str
    case: str | None = None  # the column of the log whose rows belong together
    order: str | None = None  # the column of the log that orders them; None: the files do
    memory_limit: str | None = None
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        try:
            statements = duckdb.extract_statements(self.sql)
        except (duckdb.Error, TypeError) as problem:  # TypeError: a lone surrogate
            raise InvalidParameter(f"the query cannot be read: {first_lines(problem)}") from None
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise InvalidParameter(
                f"the query has {len(statements)} statements or another one than SELECT; expected "
                "one SELECT, without a semicolon"
            )

    def rows(self) -> str:
        """Returns the query as SQL for a table."""
        return f"SELECT * FROM (\n{self.sql.rstrip().rstrip(';')}\n)"


class Workshop:
    """A database in a temporary folder, which is removed with this object."""

    def __init__(self) -> None:
        folder = temporary_folder()
        self.folder = folder.__enter__()
        self.finalizer = weakref.finalize(self, folder.__exit__, None, None, None)
        self.file = self.folder / "log.duckdb"

    @contextmanager
    def loading(self, memory_limit: str | None) -> Iterator[Any]:
        """Yields the open database, before it is locked, to load tables."""
        with duckdb.connect(str(self.file), config=OFFLINE) as database:
            if memory_limit is not None:
                limit_memory(database, memory_limit)
            yield database

    @contextmanager
    def locked(self, query: Query) -> Iterator[Any]:
        """Yields the database, locked: no files, fixed settings, limits; errors name the query."""
        spill = SPILL * self.file.stat().st_size + 2**30
        try:
            with (
                self.loading(query.memory_limit or MEMORY) as connection,
                interruptible(connection, query.seconds) as database,
            ):
                for setting in (
                    f"temp_directory = {sql_text(str(self.folder / 'spilled'))}",
                    f"max_temp_directory_size = '{spill}B'",
                    "threads = 1",
                    "TimeZone = 'UTC'",
                    "python_enable_replacements = false",
                    "enable_external_access = false",
                    "lock_configuration = true",
                ):
                    database.execute(f"SET {setting}")
                yield database
        except TimeoutError:
            raise InvalidParameter(
                f"the query takes longer than {query.seconds:g} seconds; expected one that ends"
            ) from None
        except duckdb.Error as problem:
            more = said("memory_limit='8GB'", "--memory-limit 8GB")
            room = f"there is too little room for it ({more})" if lacks_room(problem) else ""
            raise InvalidLog(f"the query failed: {room or first_lines(problem)}") from None


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a query: its database, keys, digest and types."""

    workshop: Workshop
    query: Query
    keys: Keys
    digest: str  # of the rows of the query
    types: dict[str, str]  # of the columns of the log
    keeps_rows: bool  # whether its rows keep the column `row` of the log


# ---- running ----------------------------------------------------------------------------------


def write_rows(workshop: Workshop, query: Query, keys: Keys) -> tuple[Path, str]:
    """Runs the query twice and writes its sorted rows to a file; returns the file and a digest.

    Refuses rows with equal keys, and a query whose two runs differ.
    """
    target = workshop.folder / "rows.parquet"
    with workshop.locked(query) as database:
        if keys.order == [ROW] and ROW not in columns_of(database, RESULT):
            raise InvalidLog(
                "nothing tells the rows of the query apart; expected columns of episodes and "
                "steps, or the column `row` of the log among them"
            )
        twice = database.execute(
            f"SELECT {as_texts(keys.order)}, times FROM (SELECT {named(keys.order)}, count(*) AS "
            f"times FROM {RESULT} GROUP BY ALL HAVING times > 1 ORDER BY ALL LIMIT 1)"
        ).fetchall()
        for *values, times in twice:
            raise InvalidLog(
                f"the query gives {times:,} rows for {where_of(keys.order, values)}; expected one"
            )
        digest = digest_of_rows(database, RESULT, keys)
        if digest_of_rows(database, f"({query.rows()})", keys) != digest:
            raise InvalidLog(
                "the query gives other rows when it is run again; expected one whose rows depend "
                "on the log alone (no random(), no now(), no LIMIT without an order)"
            )
    with workshop.loading(query.memory_limit) as database:
        kinds = columns_of(database, RESULT)
        order = ([ROW] if ROW in kinds and keys.order != [ROW] else []) + keys.order
        # Parquet would make other numbers of these.
        texts = [name for name, kind in kinds.items() if kind in ("HUGEINT", "UHUGEINT", "FLOAT")]
        exact = [f"{as_texts([name])} AS {sql_name(name)}" for name in texts]
        database.execute(
            f"COPY (SELECT {replacing(exact)} FROM {RESULT} "
            f"ORDER BY {', '.join(f'{RESULT}.{sql_name(name)}' for name in order)}) "
            f"TO {sql_text(str(target))} (FORMAT parquet)"
        )
    return target, digest


def digest_of_rows(database: Any, rows: str, keys: Keys) -> str:
    """Returns a digest of the rows and their order."""
    numbered = f"SELECT *, row_number() OVER (ORDER BY {named(keys.order)})"
    part = f"substr(sha256(CAST({WHOLE_ROW} AS VARCHAR)), 1, 15)"
    ((times, total),) = database.execute(
        f"SELECT count(*), coalesce(sum(CAST('0x' || {part} AS HUGEINT)), 0) "
        f"FROM ({numbered} FROM {rows}) AS {WHOLE_ROW}"
    ).fetchall()
    return f"{times}-{int(total):x}"


# ---- no look ahead ----------------------------------------------------------------------------

Texts = tuple[str | None, ...]
Rows = Mapping[Texts, tuple[Texts, Texts]]  # keys → (decision, source row)


def check_no_look_ahead(workshop: Workshop, query: Query, keys: Keys) -> None:
    """Refuses a query whose decisions depend on later rows or on other cases."""
    with workshop.locked(query) as database:
        link = link_of(database, keys)
        database.execute("BEGIN")  # closing the database undoes it: nothing is written to disk
        cases = choose_cases(database, query, link)
        database.execute(f"ALTER TABLE {LOG} RENAME TO {WHOLE}")
        hidden = known_after(database, query, keys, link)
        check_kept_rows(database, query, keys, link, hidden)
        without = (
            f" but {named(hidden)} of the last, known only after its decision (else name it as "
            "known_before under [columns])"
            if hidden
            else ""
        )
        for (name,) in cases:
            so_far(database, query, name)
            raw = database.execute(f"SELECT {as_texts(link)} FROM {LOG}").fetchall()
            whole = query_rows(
                database, f"{RESULT} SEMI JOIN {LOG} USING ({named(link)})", keys, link
            )
            most = f" LIMIT {len(whole) + 1}"  # a further row would be refused
            alone = query_rows(database, f"({query.rows()}){most}", keys, link)
            check_same(alone, whole, keys, f"the rows of {query.case or ROW} {name!r} alone")
            check_same(whole, alone, keys, "all rows of the log")
            known = {source for _, source in alone.values()}
            cuts = {len(raw) * (cut + 1) // (CUTS + 1) for cut in range(CUTS + 1)}
            for cut in sorted(cuts - {0} | {1}):
                so_far(database, query, name, cut, hidden)
                last = raw[cut - 1]
                before = query_rows(database, f"({query.rows()}){most}", keys, link)
                check_same(before, alone, keys, f"the first {cut:,} rows of {name!r}{without}")
                if last in known and last not in {source for _, source in before.values()}:
                    raise looks_ahead(
                        f"it makes no row of the log's {where_of(link, last)} with the rows up to "
                        f"it{without}"
                    )


def choose_cases(database: Any, query: Query, link: Sequence[str]) -> Any:
    """Makes the table of the cases to test; returns their names.

    Half of them, if there are enough, have rows that the query leaves out. Refuses query rows whose
    source rows lack a case id: they cannot be tested.
    """
    case = sql_name(query.case or ROW)
    for (row,) in database.execute(
        f"SELECT min({sql_name(ROW)}) FROM (SELECT * FROM {LOG} WHERE {case} IS NULL) "
        f"SEMI JOIN {RESULT} USING ({named(link)}) HAVING count(*)"
    ).fetchall():
        raise InvalidLog(
            f"row {row:,} of the log has nothing in column {query.case!r}, which says whose rows "
            "belong together before the query; expected a value, or a query without that row"
        )
    text = as_texts([query.case or ROW])
    lost = f"bool_or({sql_name(ROW)} IN (SELECT {sql_name(ROW)} FROM {left_out(link)}))"
    turn = f"row_number() OVER (PARTITION BY {lost} ORDER BY md5({text}))"
    chosen = f"SELECT {case} FROM {LOG} GROUP BY {case} ORDER BY {turn} LIMIT {CASES}"
    database.execute(f"CREATE TABLE {ALL} AS FROM {LOG} SEMI JOIN ({chosen}) USING ({case})")
    return database.execute(f"SELECT DISTINCT {text} FROM {ALL} ORDER BY ALL").fetchall()


def left_out(link: Sequence[str]) -> str:
    """Returns SQL for the rows of the log that the query leaves out."""
    return f"{LOG} ANTI JOIN {RESULT} USING ({named(link)})"


def known_after(database: Any, query: Query, keys: Keys, link: Sequence[str]) -> list[str]:
    """Returns the columns of the log that are known only after the decision.

    A column is returned if it has the name of a reward, an end or a next state. It is also returned
    if another value in one row of each case changes one of these in the same row, and neither the
    state nor the action.
    """
    case = sql_name(query.case or ROW)
    row = sql_name(ROW)
    made = f"{ALL} SEMI JOIN {RESULT} USING ({named(link)})"
    known = {*keys.before} - {*keys.after}
    fixed = {ROW, query.case, query.order, *link, *keys.order, *keys.decided, *known}
    both = keys._replace(decided=keys.decided + keys.after)
    hidden = list[str]()
    for name in (name for name in columns_of(database, ALL) if name not in fixed):
        column = sql_name(name)
        changed = set[bool]()
        for place, value in product(PLACES, ("min", "max")):
            tried = f"{row} IN (SELECT {place} FROM {made} GROUP BY {case})"
            other = f"CASE WHEN {tried} THEN (SELECT {value}({column}) FROM {made})"
            altered = replacing([f"{other} ELSE {column} END AS {column}"])
            database.execute(f"CREATE OR REPLACE TABLE {LOG} AS SELECT {altered} FROM {ALL}")
            where = f"SEMI JOIN (FROM {ALL} WHERE {tried}) USING ({named(link)})"
            then = query_rows(database, f"{RESULT} {where}", both, link)
            now = query_rows(database, f"({query.rows()}) {where}", both, link)
            for key in then.keys() & now.keys():
                values = enumerate(zip(then[key][0], now[key][0], strict=True))
                changed |= {i < len(keys.decided) for i, pair in values if not equal_texts(*pair)}
        hidden += [name] if name in keys.after or changed == {False} else []
    return hidden


def check_kept_rows(
    database: Any, query: Query, keys: Keys, link: Sequence[str], hidden: Sequence[str]
) -> None:
    """Refuses a query that leaves out rows by what is known after them, if most are cases."""
    case, row = sql_name(query.case or ROW), sql_name(ROW)
    alone = f"{row} IN (SELECT min({row}) FROM {WHOLE} GROUP BY {case} HAVING count(*) = 1)"
    mostly = f"SELECT count(*) FILTER ({alone}) >= {MOST} * count(*) FROM {WHOLE}"
    if not database.execute(mostly).fetchone()[0]:
        return
    fixed = {ROW, query.case, query.order, *link, *keys.order, *keys.decided, *keys.before, *hidden}
    named_there = [x for x in columns_of(database, WHOLE) if x.lower() in query.sql.lower()]
    for names, value in (
        (hidden, "NULL"),
        (hidden, EXCHANGED),
        *(([name], EXCHANGED) for name in named_there if name not in fixed),
    ):
        values = [
            f"CASE WHEN {alone} THEN {value.format(x, alone)} ELSE {x} END AS {x}"
            for x in map(sql_name, names)
        ]
        database.execute(
            f"CREATE OR REPLACE TABLE {LOG} AS SELECT {replacing(values)} FROM {WHOLE}"
        )
        database.execute(f"CREATE OR REPLACE TABLE {ALTERED} AS {query.rows()}")
        same = f"USING ({named(link)})"
        both = as_texts([*link, *keys.decided])
        others, decides = database.execute(
            f"SELECT (SELECT count(*) FROM {RESULT} ANTI JOIN {ALTERED} {same}) + (SELECT count(*) "
            f"FROM {ALTERED} ANTI JOIN {RESULT} {same}), (SELECT count(*) FROM (SELECT {both} FROM "
            f"{ALTERED} SEMI JOIN {RESULT} {same} EXCEPT SELECT {both} FROM {RESULT}))"
        ).fetchone()
        if others and (names is hidden or not decides):
            raise InvalidLog(
                f"the query may look ahead: it leaves out rows by {named(names)} (with other "
                "values there, other rows come out); expected one that does so only by what was "
                "known before the decision (if that was, name it as known_before under [columns])"
            )


def left_out_rewards(made: Made, reward: str) -> dict[str, tuple[float, float]]:
    """Returns the least and greatest reward of the rows that a query leaves out, if any.

    They are unknown if the query changes rewards.
    """
    if reward not in made.types:
        return {}
    with made.workshop.locked(made.query) as database:
        link = link_of(database, made.keys)
        values = as_texts([*link, reward])
        number = f"TRY_CAST({sql_name(reward)} AS DOUBLE)"
        changed = f"SELECT {values} FROM {RESULT} EXCEPT SELECT {values} FROM {LOG}"
        lost = f"SELECT {number} AS lost FROM {left_out(link)} WHERE isfinite({number})"
        ends = database.execute(
            f"SELECT min(lost), max(lost) FROM ({lost}) HAVING count(*) > 0 "
            f"AND NOT EXISTS ({changed})"
        ).fetchall()
    return {LEFT_OUT: ends[0]} if ends else {}


def link_of(database: Any, keys: Keys) -> tuple[str, ...]:
    """Returns the columns that link a row of the query to its source row in the log."""
    if ROW in columns_of(database, RESULT):
        return (ROW,)
    if keys.order != [ROW] and {*keys.order} <= {*columns_of(database, LOG)}:
        return tuple(keys.order)
    raise InvalidLog(
        "the query does not say of which row of the log a row is, so that nobody can see whether "
        "it looks ahead; expected the column `row` of the log among those of the query"
    )


def so_far(
    database: Any, query: Query, case: str, number: int = FIRST_ROWS, hidden: Sequence[str] = ()
) -> None:
    """Reduces `log` to the first rows of a case, the last one without the hidden columns."""
    order = named([*filter(None, [query.order]), ROW])
    place = f"row_number() OVER (ORDER BY {order})"
    values = [f"CASE WHEN {place} < {number} THEN {x} END AS {x}" for x in map(sql_name, hidden)]
    database.execute(
        f"CREATE OR REPLACE TABLE {LOG} AS SELECT {replacing(values)} FROM {ALL} "
        f"WHERE {as_texts([query.case or ROW])} = ? ORDER BY {order} LIMIT {number}",
        [case],
    )


def query_rows(database: Any, rows: str, keys: Keys, link: Sequence[str]) -> Rows:
    """Returns the decision and the source row of each row by its keys, all as text."""
    columns = (*keys.order, *keys.decided, *link)
    texts = database.execute(f"SELECT {as_texts(columns)} FROM {rows}").fetchall()
    width = len(keys.order)
    end = width + len(keys.decided)
    return {row[:width]: (row[width:end], row[end:]) for row in texts}


def check_same(part: Rows, whole: Rows, keys: Keys, what: str) -> None:
    """Refuses rows of a part that the whole lacks, or in which its decisions differ."""
    for key, (decided, _) in part.items():
        where = where_of(keys.order, key)
        if key not in whole:
            raise looks_ahead(f"with {what} it makes a row ({where}) that it does not otherwise")
        for name, now, then in zip(keys.decided, decided, whole[key][0], strict=True):
            if not equal_texts(now, then):
                raise looks_ahead(
                    f"{where}, column {name!r} is {now!r} with {what}, and {then!r} otherwise"
                )


def where_of(names: Sequence[str], values: Sequence[object]) -> str:
    """Returns a row as text for messages, such as "who 'p1', step '3'"."""
    return ", ".join(f"{name} {value!r}" for name, value in zip(names, values, strict=True))


def looks_ahead(how: str) -> InvalidLog:
    """Returns the error for a query whose decisions depend on more than the rows so far."""
    return InvalidLog(
        f"the query looks ahead, or at other cases: {how}; expected decisions that depend on the "
        "rows of a case so far, and on nothing else"
    )


def equal_texts(one: str | None, other: str | None) -> bool:
    """Tells whether two texts are equal, or equal numbers but for the rounding of sums."""
    if one == other or one is None or other is None or not {*".e"} & {*one, *other}:
        return one == other
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


# ---- the rows of one case, to decide for the last -----------------------------------------------


def prepared_case(
    query: Query,
    keys: Keys,
    types: Mapping[str, str],
    rows: Sequence[Mapping[str, object]],
    load_tables: Callable[[Any], None] = lambda database: None,
) -> dict[str, object]:
    """Runs the query on the rows of a case so far; returns its row for the last of them.

    `types` are the types of the columns of the log. They may come from a file that is not trusted,
    so the table is made in the locked database.
    """
    if not rows:
        raise InvalidParameter("no rows are given, expected those of a case so far")
    workshop = Workshop()
    with workshop.loading(query.memory_limit) as database:
        load_tables(database)
    with workshop.locked(query) as database:
        fill(database, types, rows)
        database.execute(f"CREATE TABLE {RESULT} AS {query.rows()}")
        kinds = columns_of(database, RESULT)
        values = (sql_name(x) if kinds[x] in PLAIN else as_texts([x]) for x in kinds)  # as in logs
        link = named(link_of(database, keys))
        last = f"SELECT {link} FROM {LOG} WHERE {sql_name(ROW)} = {len(rows)}"
        latest = ", ".join(f"{sql_name(name)} DESC" for name in keys.order)
        answer = database.execute(
            f"SELECT {', '.join(values)} FROM {RESULT} SEMI JOIN ({last}) USING ({link}) "
            f"ORDER BY {latest} LIMIT 1"
        ).fetchall()
    if not answer:
        raise InvalidParameter(
            f"the query makes no row of the last of the {len(rows):,} given; expected the rows of "
            "a case so far, the last one with a decision to take"
        )
    return dict(zip(kinds, answer[0], strict=True))


def fill(database: Any, types: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> None:
    """Fills the table `log` with rows; refuses values of other types."""
    columns = ", ".join(f"{sql_name(name)} {kind}" for name, kind in types.items())
    places = ", ".join(f"CAST(? AS {kind})" for kind in types.values())
    database.execute(f"CREATE TABLE {LOG} ({columns})")
    for number, row in enumerate(rows, 1):
        for name in row:
            refuse_unknown(f"row {number:,}: the log has no column {name!r}", name, types)
        values = {name: number if name == ROW else duckdb_value(row.get(name)) for name in types}
        try:
            for name, value in values.items():
                if "INT" in types[name] and is_fraction(value):
                    raise duckdb.ConversionException(f"{name} is {value!r}")
            database.execute(f"INSERT INTO {LOG} VALUES ({places})", [*values.values()])
        except duckdb.Error as problem:
            raise InvalidParameter(
                f"row {number:,} has values of other types than the log: {first_lines(problem)}; "
                f"expected {', '.join(f'{name} {kind}' for name, kind in types.items())}"
            ) from None


def duckdb_value(value: Any) -> Any:
    """Converts a value for DuckDB: NumPy scalars to Python, NaN to NULL."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def is_fraction(value: Any) -> bool:
    """Tells whether a value is a number with a fraction, which DuckDB would round."""
    try:
        return value is not None and not float(value).is_integer()
    except (TypeError, ValueError, OverflowError):
        return False  # not a number: DuckDB decides
