"""Makes the view `log` in DuckDB from a user's files, or from a table in memory."""

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import msgspec

import surestep.io.logs.formats as formats
from surestep._files import failing_to_read, read_path
from surestep._names import twice
from surestep.description import Description, several
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, said
from surestep.io.labels.binning import START
from surestep.io.logs.columns import SINGLE, ColumnMapping, Types, by_name, naming, resolve
from surestep.io.logs.frames import register_frame
from surestep.io.logs.query import Made, Workshop
from surestep.io.logs.roles import TIME, RoleSql, flag_sql, label_code, stamp_sql
from surestep.io.sql import (
    ROW,
    columns_of,
    failure_of,
    first_lines,
    in_memory,
    interruptible,
    lacks_room,
    replacing,
    sql_name,
    sql_text,
)

STAMP = '"surestep stamp"'
MANAGED = {"_delta_log": "Delta", "metadata/*.metadata.json*": "Iceberg", ".hoodie": "Hudi"}
ALWAYS = {"episode": ROW, "step": "0", "terminated": "true"}  # SQL, if every row is an episode
SHORTER = 0.05  # the share that may be shorter, of the episodes that began early enough
ODD_LINE = (  # what DuckDB says of a line of a text file with too few values, or too many
    r"(?s)CSV Error on Line: (\d+)\nOriginal Line: (.*?)\nExpected Number of Columns: (\d+) "
    r"Found: (\d+).*\n  file = ([^\n]*)"
)


@dataclass(frozen=True, slots=True)
class Preparation:
    """Changes, as SQL, of the rows of files before they are read as a log."""

    selects: tuple[str, ...] = ()  # each is SQL without FROM, applied to the rows of the one before
    added: tuple[str, ...] = ()  # columns that files do not have
    in_order: tuple[str, ...] = ()  # the same, where the next row tells that a row is the last
    keeps_order: bool = True  # whether rows stay in the order of the files
    numbers_stamps: bool = False  # whether steps were time stamps, which got numbers


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A source of rows: the files of one format, or an object that DuckDB can scan."""

    name: str  # for messages
    files: tuple[Path, ...] = ()
    format: formats.Format = formats.IN_MEMORY
    frame: object = None
    description: Description = field(default_factory=Description)
    preparation: Preparation = Preparation()  # set once the roles of columns are known
    converted: Mapping[Path, Path] = field(default_factory=dict)  # file → Parquet
    workshop: Workshop | None = None  # its folder holds the converted files
    raw: "Table | None" = None  # the table that a query reads
    made: Made | None = None  # the result of that query
    kept: tuple[str, str] | None = None  # SQL: a column, and which groups of its values to read

    def read(self, database: Any, files: Sequence[Path]) -> str:
        """Returns the SQL that reads files; labels are the texts that are written there."""
        return self.format.scan(
            database, [self.converted.get(file, file) for file in files], self.description.reader
        )

    def scan(self, database: Any, selects: Sequence[str] | None = None) -> str:
        """Returns the SQL of the rows of the log; `ROW` is their number in the files, from 1.

        Preparation, or other `selects`, may leave rows out, or change their order.
        """
        rows = f"SELECT *, row_number() OVER () AS {ROW} FROM ({self.read(database, self.files)})"
        if self.kept is not None:  # first: a preparation looks at each episode by itself
            name, condition = self.kept
            groups = f"SELECT {name} FROM ({rows}) GROUP BY {name} HAVING {condition}"
            rows = f"SELECT * FROM ({rows}) WHERE {name} IN ({groups})"
        return applied(self.preparation.selects if selects is None else selects, rows)

    def place(self, database: Any, row: int) -> tuple[str | None, int]:
        """Returns the file of a row (None in memory) and its number there."""
        if self.raw is not None or not self.files:
            return (None if self.raw is None else self.name), row
        for file in self.files[:-1]:
            count = f"SELECT count(*) FROM ({self.read(database, [file])})"
            (rows,) = database.execute(count).fetchone()
            if row <= rows:
                return str(file), row
            row -= rows
        return str(self.files[-1]), row

    def sources(self, database: Any) -> tuple[str, ...]:
        """Returns the SHA-256 of the files with rows, rising; refuses files of equal content.

        Skips files without rows: they are often equal.
        """
        known = dict[str, Path]()
        for file in self.files:
            formats.check_whole([file])  # DuckDB does not verify checksums
            first = f"SELECT 1 FROM ({self.read(database, [file])}) LIMIT 1"
            if not database.execute(first).fetchall():
                continue
            with failing_to_read(file), file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if known.setdefault(digest, file) != file:
                raise InvalidLog(
                    f"{file} has the same content as {known[digest]}, and its rows would count "
                    "twice; expected every log once"
                )
        return tuple(sorted(known))


def applied(selects: Sequence[str], rows: str) -> str:
    """Returns the SQL of rows to which each select is applied in turn."""
    for select in selects:
        rows = f"{select} FROM ({rows})"
    return rows


def find_table(description: Description, frame: object = None) -> Table:
    """Returns the table that a description names, or the one in memory."""
    if frame is not None:
        return Table(f"the {type(frame).__name__}", frame=frame, description=description)
    files = tuple(file for path in several(description.files) for file in matching(read_path(path)))
    if not files:
        raise InvalidParameter("no file was given, expected at least one")
    kinds = {formats.format_of(file): file for file in files}
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        raise InvalidParameter(f"{first} and {second} are of different kinds, expected one kind")
    (kind,) = kinds
    names = (file.with_suffix("") if formats.split_ending(file)[1] else file for file in files)
    for i, j in twice(names):
        raise InvalidLog(
            f"{files[i]} and {files[j]} are one table by their names, and its rows would count "
            "twice; expected one of them"
        )
    name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    table = Table(name, files, kind, description=description)
    if kind.convert is None:
        return table
    workshop = Workshop()
    with in_memory() as database, explaining(table):
        converted = kind.convert(database, files, workshop.folder)
    return replace(table, converted=converted, workshop=workshop)


def matching(path: Path) -> list[Path]:
    """Returns the files of a path (a file, a folder or a pattern), in the order of their names."""
    if path.is_dir():
        matches = [
            Path(folder, name)
            for folder, _, names in os.walk(path, onerror=hand_on)
            for name in names
            if formats.has_format(Path(name)) and not name.startswith((".", "_"))
        ]
    else:
        paths = [path] if path.exists() else glob.glob(str(path), recursive=True)
        matches = [file for file in map(Path, paths) if not file.is_dir()]
    if not matches:
        what = "no file, and no folder or pattern that any table matches"
        address = "an address, and those are not read; save its files here and name them"
        raise FileFailure(f"{path} is {address if path.parts[0].endswith(':') else what}")
    for file in matches:
        if not file.is_file():
            raise FileFailure(f"{file} is a pipe, a device or a link to nothing; expected a file")
    for folder in {parent for file in matches for parent in file.absolute().parents}:
        for sign, kind in MANAGED.items():
            if any(folder.glob(sign)):
                raise FileFailure(
                    f"{folder} is a table of {kind}, whose files still have rows that were "
                    "deleted; export its rows to a file of their own and name that"
                )
    return sorted(matches)


def hand_on(problem: OSError) -> None:
    """Raises the error; `os.walk` would skip an unreadable folder silently."""
    raise problem


@contextmanager
def connected(table: Table, memory_limit: str | None = None) -> Iterator[Any]:
    """Yields a database with the view `log`; names the table in errors."""
    with (
        in_memory(memory_limit) as connection,
        interruptible(connection) as database,
        explaining(table, memory_limit),
    ):
        if table.frame is not None:
            register_frame(database, table.frame)
        kind = "VIEW" if table.kept is None else "TABLE"  # a sample is drawn once
        database.execute(f"CREATE TEMP {kind} log AS {table.scan(database)}")
        yield database


def types_of(database: Any, rows: str = "log") -> dict[str, str]:
    """Returns the type of each column of the log, as DuckDB calls it."""
    kinds = columns_of(database, rows)
    return {name: kind for name, kind in kinds.items() if sql_name(name) != ROW}


@contextmanager
def explaining(table: Table, memory_limit: str | None = None) -> Iterator[None]:
    """Turns an error of DuckDB into an `InvalidLog` that names the table."""
    try:
        yield
    except duckdb.Error as problem:
        if lacks_room(problem):
            raise failure_of(problem, memory_limit) from None
        if isinstance(problem, duckdb.InvalidInputException | duckdb.IOException):
            formats.check_whole(table.files)
        if odd := re.search(ODD_LINE, str(problem)):
            line, text, expected, found, file = odd.groups()
            raise InvalidLog(
                f"{file}, line {line}: found {found} values, expected {expected}, one for each "
                f"column: {text!r} (a text with a separator in it needs quotes)"
            ) from None
        raise InvalidLog(f"{table.name} cannot be read: {first_lines(problem)}") from None


# ---- from the rows of files to the view `log`: SQL around the scan ----------------------------


def meaning_of(description: Description, types: Types) -> ColumnMapping:
    """Returns the roles of the columns in files, and of columns that the description adds."""
    learnt = learnt_names(description)
    chosen = description.columns.given()
    columns = [*types, *learnt]
    if learnt and "state" not in chosen and not by_name("state", list(types)):
        chosen = {**chosen, "state": learnt}
    if description.ends is not None:
        role = "terminated" if description.ends == "complete" else "truncated"
        named = (chosen[role],) if role in chosen else by_name(role, list(types))
        columns += [role] if named in ((), (role,)) else []
    return resolve(tuple(dict.fromkeys(columns)), chosen)


def preparation_of(
    description: Description, mapping: ColumnMapping, types: Types, steps_are_stamps: bool
) -> Preparation:
    """Returns the changes that a description makes to rows with columns of these types."""
    selects = list[str]()
    stamped = steps_are_stamps and mapping.episode is not None
    if mapping.episode == SINGLE["episode"]:
        added = [f"{ALWAYS[role]} AS {sql_name(name)}" for role, name in SINGLE.items()]
        selects.append(f"SELECT *, {', '.join(added)}")
    selects += plain_numbers(description, mapping, types)
    if stamped:
        selects += numbered_by_stamps(description, mapping, types)
    flagged: tuple[str, ...] = ()
    if description.ends is not None:
        flagged = with_last_rows(description, mapping, types)
        selects.append(flagged[0])
    if mapping.time is not None and mapping.time != mapping.step:
        name = sql_name(mapping.time)
        stamp = stamp_sql(mapping.time, types[mapping.time], description.reader.timestampformat)
        text = f"coalesce(CAST({stamp} AS VARCHAR), CAST({name} AS VARCHAR))"
        selects.append(f"SELECT * REPLACE ({text} AS {name})")
    elif mapping.time is not None and not stamped:
        raise InvalidLog(
            f"column {mapping.time!r} is that of the step and of the time at which episodes began, "
            "but its steps are numbers; expected time stamps"
        )
    learnt = learnt_names(description)
    selects += map(learnt_select, learnt)
    if learnt and mapping.next_state:
        raise InvalidLog(
            f"{learnt[0]!r} is learnt from the rows of episodes, but column "
            f"{mapping.next_state[0]!r} says which state follows; expected episodes and steps only"
        )
    if mapping.memory:
        selects.append(remembering(mapping, types))
    named = [name for columns in mapping.by_role().values() for name in columns]
    return Preparation(
        tuple(selects),
        tuple(name for name in named if name not in types),
        tuple(flagged[1] if x in flagged else x for x in selects),
        keeps_order=not (stamped or mapping.memory),
        numbers_stamps=stamped,
    )


def remembering(mapping: ColumnMapping, types: Types) -> str:
    """Returns SQL that adds the columns of the memory as texts; `START` before the first step."""
    episode = sql_name(str(mapping.episode))
    order = f"TRY_CAST({sql_name(str(mapping.step))} AS DOUBLE)"
    columns = list[str]()
    for name, column, steps in mapping.memory:
        text = f"CAST({label_code(column, types.get(column, 'VARCHAR')).sql} AS VARCHAR)"
        before = f"lag({text}, {steps}) OVER (PARTITION BY {episode} ORDER BY {order})"
        columns.append(f"coalesce({before}, {sql_text(START)}) AS {sql_name(name)}")
    return f"SELECT *, {', '.join(columns)}"


def learnt_names(description: Description) -> list[str]:
    """Returns the columns of states that are learnt from measurements."""
    return [name for name, rule in description.bins.items() if rule.columns is not None]


def learnt_select(name: str, label: str = "NULL::VARCHAR") -> str:
    """Returns SQL that adds a column of learnt states; NULL until they are learnt."""
    return f"SELECT *, {label} AS {sql_name(name)}"


def plain_numbers(told: Description, mapping: ColumnMapping, types: Types) -> list[str]:
    """Returns SQL that rewrites numbers with decimal commas or signs between thousands.

    A text that is no number in that notation stays none, and is refused later.
    """
    following = dict(zip(mapping.next_state, mapping.state, strict=False))
    numbers = {
        mapping.reward,
        mapping.step,
        mapping.propensity,
        *(name for rule in told.bins.values() for name in several(rule.columns)),
    }
    texts = {
        sql_name(name): plain_text(told, name)
        for name, kind in types.items()
        if kind == "VARCHAR" and (name in numbers or following.get(name, name) in told.bins)
    }
    changed = [f"{text} AS {name}" for name, text in texts.items() if text != name]
    return [f"SELECT {replacing(changed)}"] if changed else []


def plain_text(told: Description, column: str) -> str:
    """Returns SQL for a column of texts with numbers rewritten with a decimal point."""
    text = sql_name(column)
    if told.reader.thousands is not None:
        text = f"replace(trim({text}), {sql_text(told.reader.thousands)}, '')"
    if told.reader.decimal_separator == ",":
        text = f"translate(trim({text}), ',.', '.?')"
    return text


def ends_said(how: str) -> str:
    """Returns the argument or option that says how all episodes end, for messages."""
    return said(f"ends={how!r}", f"--ends {how}")


def numbered_by_stamps(told: Description, mapping: ColumnMapping, types: Types) -> tuple[str, str]:
    """Returns SQL that replaces the time stamps of steps by numbers in their order.

    Equal stamps of an episode get the same number, so that they are refused as a repeated step. A
    text that is no stamp stays, and is refused later.
    """
    name = str(mapping.step)
    step = sql_name(name)
    episode = sql_name(str(mapping.episode))
    stamp = stamp_sql(name, types[name], told.reader.timestampformat)
    number = f"dense_rank() OVER (PARTITION BY {episode} ORDER BY {STAMP}) - 1"
    text = f"CASE WHEN {STAMP} IS NULL THEN CAST({step} AS VARCHAR) ELSE CAST({number} AS VARCHAR)"
    time = f", {STAMP} AS {TIME}" if mapping.time == mapping.step else ""
    return (
        f"SELECT *, {stamp} AS {STAMP}",
        f"SELECT * EXCLUDE ({STAMP}) REPLACE ({text} END AS {step}){time}",
    )


def with_last_rows(told: Description, mapping: ColumnMapping, types: Types) -> tuple[str, str]:
    """Returns SQL that flags the last row of each episode, unless the other flag is set there.

    The second has the column of flags alone: where rows lie in order, the next row tells the last.
    Refuses `ends` for a log that has a column of ends, or no episodes or steps.
    """
    ends = str(told.ends)
    twice = mapping.terminated if ends == "complete" and mapping.terminated in types else None
    if twice or mapping.episode is None or mapping.step is None:
        raise InvalidLog(
            f"{ends_said(ends)} tells of every episode how its last row ends; found "
            f"{f'column {twice!r} that does so too' if twice else 'no episodes or no steps'}, "
            f"expected columns of both ({naming('episode', 'step')}), and no other word of ends"
        )

    def flag(column: str | None) -> str:
        return flag_sql(column, types[column]) if column in types and column else "false"

    flags = (mapping.terminated, mapping.truncated)
    column, other = flags if ends == "complete" else reversed(flags)
    step = f"TRY_CAST({sql_name(mapping.step)} AS DOUBLE)"
    near = f"PARTITION BY {sql_name(mapping.episode)} ORDER BY {step}"
    last = f"(lead({step}) OVER ({near}) IS NULL AND NOT coalesce({flag(other)}, false))"
    name = sql_name(str(column))
    both = (f"({flag(column)}) OR {last} AS {name}", f"({flag(column)}) AS {name}")
    first, second = (f"* REPLACE ({x})" if column in types else f"*, {x}" for x in both)
    return f"SELECT {first}", f"SELECT {second}"


def has_unexplained(table: Table, mapping: ColumnMapping, memory_limit: str | None) -> bool:
    """Tells whether too many episodes stop early, with no flag and no date that explains it.

    A clock stops after a fixed number of steps, or at a date, whatever is done. So an episode whose
    last row says nothing was stopped by one if it is as long as the longest of all, or if it lasted
    to the end of the log: to the last step of a calendar, or to within one step of the last date.
    One step is the gap that only 5 % of the gaps between steps exceed.
    """
    plain = replace(
        table,
        description=msgspec.structs.replace(table.description, ends=None),
        preparation=Preparation(),
    )
    with connected(plain, memory_limit) as database:
        types = types_of(database)
    stamped = table.preparation.numbers_stamps
    mapping = replace(
        mapping,
        state=mapping.present,
        truncated=mapping.truncated if mapping.truncated in types else None,
        time=mapping.time or (mapping.step if stamped else None),
        memory=(),
    )
    preparation = preparation_of(plain.description, mapping, types, stamped)
    with connected(replace(plain, preparation=preparation), memory_limit) as database:
        roles = RoleSql.of(mapping, types_of(database), {})
        assert roles.episode is not None
        told = " OR ".join(
            f"coalesce({roles.flag(flag)}, false)"
            for flag in (mapping.terminated, mapping.truncated)
        )
        led = f"NOT ({roles.no_next})" if mapping.next_state else "false"
        moment = f"epoch({roles.time})" if mapping.time else "NULL::DOUBLE"
        early, shorter = database.execute(
            f"WITH rows AS (SELECT {roles.episode.sql} AS episode, {roles.step} AS step, "
            f"({told} OR {led}) AS told, {moment} AS moment FROM log), "
            "ends AS (SELECT count(*) AS steps, max(step) AS last, arg_max(told, step) AS told, "
            "arg_max(moment, step) AS moment FROM rows GROUP BY episode), "
            "gaps AS (SELECT moment - lag(moment) OVER (PARTITION BY episode ORDER BY step) AS gap "
            "FROM rows), "
            f"one AS (SELECT coalesce(quantile_disc(gap, {1 - SHORTER}), 0) AS step FROM gaps), "
            "log_ends AS (SELECT max(steps) AS steps, max(last) AS last, max(moment) AS moment "
            "FROM ends) "
            "SELECT count(*), count(*) FILTER (ends.steps < log_ends.steps) "
            "FROM ends, log_ends, one WHERE NOT told AND (ends.steps = log_ends.steps OR NOT "
            "(ends.last = log_ends.last OR (ends.moment + one.step >= log_ends.moment) IS TRUE))"
        ).fetchone()
    return bool(shorter > SHORTER * early)
