"""Logs as users have them, counted by DuckDB: streamed, spilled to disk, checked row by row.

What is read is never held in memory: one scan looks for rows that make no sense, one sums up the
episodes, and one counts. Whatever is wrong is told with its file, row, column and value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surestep.errors import InvalidLog
from surestep.io.labelled_counts import Label, LabelledCounts, Transitions, merge_counts
from surestep.io.log_columns import ColumnMapping, resolve
from surestep.io.log_episodes import check_episodes, sum_up_episodes
from surestep.io.log_sql import RoleSql
from surestep.io.log_tables import Table, find_table, named, opened

LARGEST_SCALE = 37  # of the 38 digits of a decimal
UNFINISHED = "the recording stopped, and no next state is known"


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log that has been found but not read."""

    table: Table
    columns: ColumnMapping
    types: Mapping[str, str]
    memory_limit: str | None = None

    def counts(self) -> LabelledCounts:
        """#_D(s,a,s') with exact sums of rewards, starts and ends, in bounded memory."""
        roles = RoleSql(self.columns, self.types)
        with opened(self.table, self.memory_limit) as database:
            rows = check_rows(self.table, database, roles)
            create_steps(database, roles, rows)
            if self.columns.episode is not None:
                sum_up_episodes(database, len(self.columns.state))
                check_episodes(self.table.name, database)
            return count_steps(database, self.columns, rows)


def read_log(
    source: object,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    memory_limit: str | None = None,
) -> LogSource:
    """Finds a log and the meaning of its columns, without reading it.

    `source` is a path, a pattern such as 'logs/*.parquet', a folder, a list of them, or a table in
    memory (pandas, polars, Arrow, a dictionary of arrays); `columns` names the columns of a role
    where they have other names than usual, and `memory_limit`, such as '2GB', bounds the memory.
    """
    table = find_table(source)
    with opened(table, memory_limit) as database:
        described = database.execute("DESCRIBE SELECT * FROM log").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    try:
        mapping = resolve(tuple(types), columns)
    except InvalidLog as problem:
        raise InvalidLog(f"{table.name}: {problem}") from None
    return LogSource(table, mapping, types, memory_limit)


class Rows(NamedTuple):
    """What a first look at all rows says."""

    read: int
    scale: int  # digits after the point that rewards need
    largest: float  # of the absolute rewards


def check_rows(table: Table, database: Any, roles: RoleSql) -> Rows:
    """Refuses the first row that makes no sense, and finds what exact sums need."""
    checks = roles.checks()
    number = roles.reward_is_number
    mapping = roles.mapping
    columns = [
        "count(*)",
        f"coalesce(max({roles.digits}) FILTER ({number}), 0)",
        f"max(abs(TRY_CAST({named(mapping.reward)} AS DOUBLE))) FILTER ({number})",
        *(f"count_if({check.condition})" for check in checks),
    ]
    found = database.execute(f"SELECT {', '.join(columns)} FROM log").fetchone()
    if found[0] == 0:
        raise InvalidLog(f"{table.name} has no row, expected at least one decision")
    for check, times in zip(checks, found[3:], strict=True):
        if times:
            others = "" if times == 1 else f"; {times:,} rows are affected"
            raise InvalidLog(
                f"{first_where(table, database, check.condition, check.column)}, expected "
                f"{check.expected}{others}"
            )
    rows = Rows(*found[:3])
    check_precision(table, database, roles, rows)
    return rows


def check_precision(table: Table, database: Any, roles: RoleSql, rows: Rows) -> None:
    """Refuses rewards that cannot be added up exactly in 38 digits."""
    if rows.scale <= LARGEST_SCALE and rows.largest * rows.read * 10.0**rows.scale < 1e37:
        return
    longest = f"{roles.digits} = {rows.scale}"
    raise InvalidLog(
        f"{first_where(table, database, longest, roles.mapping.reward)}, which needs {rows.scale} "
        f"digits after the point; {rows.read:,} rewards of up to {rows.largest:g} with that many "
        "cannot be added up exactly in 38 digits; round the rewards to fewer digits"
    )


def first_where(table: Table, database: Any, condition: str, column: str) -> str:
    """The first row of which the condition holds: file, row, column and value."""
    database.execute("SET preserve_insertion_order = true")
    for file in table.files or (None,):
        scan = table.scan(database, () if file is None else (file,))
        found = database.execute(
            f'SELECT "surestep row", CAST({named(column)} AS VARCHAR) FROM (SELECT *, '
            f'row_number() OVER () AS "surestep row" FROM ({scan})) WHERE {condition} '
            'ORDER BY "surestep row" LIMIT 1'
        ).fetchone()
        if found is not None:
            value = "nothing" if found[1] is None else repr(found[1])
            place = f"{table.name if file is None else file}, row {found[0]:,}"
            return f"{place}, column {column!r}: found {value}"
    return f"{table.name}, column {column!r}: found a value"


def create_steps(database: Any, roles: RoleSql, rows: Rows) -> None:
    """The view `steps`: the columns under names of our own, labels as text, rewards exact."""
    mapping = roles.mapping
    columns = [
        *(f"{roles.text(name)} AS state_{i}" for i, name in enumerate(mapping.state)),
        *(f"{roles.text(name)} AS action_{i}" for i, name in enumerate(mapping.action)),
        *(f"{roles.text(name)} AS next_{i}" for i, name in enumerate(mapping.next_state)),
        f"{roles.reward(rows.scale, rows.largest)} AS reward",
        f"{roles.flag(mapping.terminated)} AS terminated",
        f"{roles.flag(mapping.truncated)} AS truncated",
    ]
    if mapping.episode is not None:
        columns += [f"{roles.text(mapping.episode)} AS episode", f"{roles.step} AS step"]
    database.execute(f"CREATE TEMP VIEW steps AS SELECT {', '.join(columns)} FROM log")


def count_steps(database: Any, mapping: ColumnMapping, rows: Rows) -> LabelledCounts:
    """The transitions of the view `steps`, every label replaced by its number."""
    width, acting = len(mapping.state), len(mapping.action)
    states, actions = listed("state", width), listed("action", acting)
    following, window = listed("next", width), ""
    if not mapping.next_state:
        leads = (f"lead(state_{i}) OVER following AS next_{i}" for i in range(width))
        window = f", {', '.join(leads)}"
    tail = " WINDOW following AS (PARTITION BY episode ORDER BY step)" if window else ""
    database.execute(
        f"CREATE TEMP TABLE counted AS SELECT {states}, {actions}, {following}, terminated, "
        "count(*) AS times, sum(reward) AS reward_sum "
        f"FROM (SELECT *{window} FROM steps{tail}) GROUP BY ALL"
    )
    if mapping.episode is not None:
        begin = f"SELECT {listed('state', width)}, times AS starts FROM starts"
    else:
        # Loose transitions do not say where episodes begin: every row stands for a start.
        begin = f"SELECT {states}, sum(times) AS starts FROM counted GROUP BY ALL"
    database.execute(
        f"CREATE TEMP TABLE state_labels AS SELECT row_number() OVER (ORDER BY {states}) - 1 AS "
        f"number, * FROM (SELECT {states}, sum(starts)::BIGINT AS starts FROM ({begin} UNION ALL "
        f"SELECT {states}, 0 FROM counted UNION ALL "
        f"SELECT {following}, 0 FROM counted WHERE next_0 IS NOT NULL) GROUP BY ALL)"
    )
    database.execute(
        f"CREATE TEMP TABLE action_labels AS SELECT row_number() OVER (ORDER BY {actions}) - 1 AS "
        f"number, * FROM (SELECT DISTINCT {actions} FROM counted)"
    )
    labels = database.execute("SELECT * FROM state_labels ORDER BY number").fetchall()
    starts = np.array([label[-1] for label in labels], np.int64)
    dropped, transitions = numbered(database, width, acting)
    raw = LabelledCounts(
        mapping.state,
        mapping.action,
        texts([label[1:-1] for label in labels]),
        texts(
            [row[1:] for row in database.execute("FROM action_labels ORDER BY number").fetchall()],
        ),
        transitions,
        rows.scale,
        starts,
        rows.read,
        {UNFINISHED: dropped} if dropped else {},
    )
    return merge_counts([raw])


def numbered(database: Any, width: int, acting: int) -> tuple[int, Transitions]:
    """The rows that led somewhere, by the numbers of their labels, and how many others there are.

    A decimal without its point is the whole number of its units.
    """
    here = " AND ".join(f"here.state_{i} = counted.state_{i}" for i in range(width))
    there = " AND ".join(f"there.state_{i} = counted.next_{i}" for i in range(width))
    act = " AND ".join(f"act.action_{i} = counted.action_{i}" for i in range(acting))
    columns = database.execute(
        "SELECT here.number AS state, act.number AS action, coalesce(there.number, -1) AS "
        "next_state, terminated, times, replace(CAST(reward_sum AS VARCHAR), '.', '') AS units "
        f"FROM counted JOIN state_labels here ON {here} JOIN action_labels act ON {act} "
        f"LEFT JOIN state_labels there ON {there} WHERE next_0 IS NOT NULL OR terminated"
    ).fetchnumpy()
    dropped = database.execute(
        "SELECT coalesce(sum(times), 0)::BIGINT FROM counted "
        "WHERE next_0 IS NULL AND NOT terminated"
    ).fetchone()[0]
    transitions = Transitions(
        np.asarray(columns["state"], np.int64),
        np.asarray(columns["action"], np.int64),
        np.asarray(columns["next_state"], np.int64),
        np.asarray(columns["terminated"], np.bool_),
        np.asarray(columns["times"], np.int64),
        np.array([int(text) for text in columns["units"]], object),
    )
    return dropped, transitions


def listed(role: str, width: int) -> str:
    """'state_0, state_1'."""
    return ", ".join(f"{role}_{i}" for i in range(width))


def texts(rows: Sequence[Sequence[object]]) -> tuple[Label, ...]:
    """Labels as tuples of text."""
    return tuple(tuple(str(text) for text in row) for row in rows)
