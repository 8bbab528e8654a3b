"""Counts a log with one SQL query that checks every row, looks at the next one, and groups.

The first pass assumes that all rows are valid and lie in order: each continues its episode with the
next step, or begins an episode with a larger name. Then only the groups are held in memory. The
first row that breaks this stops the pass. A second one sorts the rows, which may spill to disk, or
finds out what is wrong.

Neighbours are seen only where rows come in order, one after the other. So a Parquet log is cut into
lanes that keep all cores busy, each read in order; each lane is given the rows beside its ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from surestep.errors import InvalidLog
from surestep.io.logs.findings import Look, check_rows, explain_episodes, no_row
from surestep.io.logs.roles import FLAGS, RewardSql, RoleSql, Units
from surestep.io.logs.tables import Table, applied
from surestep.io.sql import columns_of, file_list

REFUTED = "surestep: a row is invalid or out of order"
# The `kind` of a group is a sum of these bits.
TERMINATED = 1
TRUNCATED = 2
BEGINS = 4
IN_ORDER = "PARTITION BY episode ORDER BY step"
CONTINUES = "coalesce(following_episode = episode, false)"
SHORTEST = 1_000_000  # rows; a smaller log is as fast in one lane
IN_FILE = "file_row_number"


class Lane(NamedTuple):
    """Consecutive rows of a log that one thread counts, as SQL."""

    scan: str  # the rows of the lane; in order if this is the only scan
    first_row: str
    last_row: str


def lane(files: Sequence[Path], begin: int, end: int) -> Lane:
    """Returns the lane of rows `begin` … `end` − 1 of one file, or of all rows of several files.

    Of several files, `begin` is 0, and `end` is the number of rows of the last one.
    """
    read = f"SELECT * FROM read_parquet({{}}, {IN_FILE}=true) WHERE {{}}"
    inside = f"{IN_FILE} >= {begin} AND {IN_FILE} < {end}" if len(files) == 1 else "true"
    return Lane(
        read.format(file_list(files), inside),
        read.format(file_list(files[:1]), f"{IN_FILE} = {begin}"),
        read.format(file_list(files[-1:]), f"{IN_FILE} = {end - 1}"),
    )


@dataclass(frozen=True, slots=True)
class CountQuery:
    """Writes the SQL that counts a log, with its rewards in `units`."""

    roles: RoleSql
    units: Units

    # ---- rows ---------------------------------------------------------------------------------

    @property
    def usable(self) -> str:
        """Returns SQL that is true if a row is valid, apart from missing labels and flags."""
        roles = self.roles
        conditions = [self.units.exact]
        if roles.episode is not None:
            conditions += [f"{roles.episode.sql} IS NOT NULL", f"{roles.step} >= 0"]
        checks = (*roles.label_checks, *roles.rare_checks())
        conditions += [f"NOT coalesce({check.condition}, false)" for check in checks]
        return " AND ".join(conditions)

    def steps(self, scan: str, **also: str) -> str:
        """Returns SQL for the rows of a scan as codes, flags and units, under our names of columns.

        `also` has the SQL of further columns, by name.
        """
        own = {"usable": self.usable, "units": self.units.number}
        columns = self.roles.columns() | own | also
        if self.roles.mapping.propensity is not None:
            columns["propensity"] = self.roles.propensity
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return f"SELECT {listed} FROM {scan}"

    # ---- chains -------------------------------------------------------------------------------

    def lying(self, scan: str, ends: str | None, *, before: str = "", after: str = "") -> str:
        """Returns SQL for the steps of rows that lie in order, `chained`.

        With a word of ends, a row is the last of its episode if the next one is of another.
        """
        rows = self.chained(scan, "", before=before, after=after)
        if ends is None:
            return rows
        flag, other = FLAGS if ends == "complete" else reversed(FLAGS)
        last = f"NOT {CONTINUES} AND NOT coalesce({other}, false)"
        return f"SELECT * REPLACE ({flag} OR ({last}) AS {flag}) FROM ({rows})"

    def chained(
        self, scan: str, order: str, *, before: str = "", after: str = "", **also: str
    ) -> str:
        """Returns SQL for the steps, each with the next row and the episode of the row before.

        `before` and `after` name the variables with the rows just before and after a lane, and
        `also` has the SQL of further columns, by name.
        """
        ahead = [
            f"lead({name}, 1, {f'getvariable({after!r}).{name}' if after else 'NULL'}) OVER near "
            f"AS following_{name}"
            for name in ("episode", "step", *self.roles.names("state"))
        ]
        edge = f"getvariable({before!r}).episode" if before else "NULL"
        return (
            f"SELECT *, {', '.join(ahead)}, lag(episode, 1, {edge}) OVER near AS previous_episode "
            f"FROM ({self.steps(scan, **also)}) WINDOW near AS ({order})"
        )

    @property
    def whole(self) -> str:
        """Returns SQL that is true if the next row continues the episode, or begins a later one."""
        if self.roles.episode is None:
            return "true"
        pairs = range(len(self.roles.next_state))
        same = " AND ".join(f"next_{i} = following_state_{i}" for i in pairs)
        same_next = f"(next_0 IS NULL OR ({same}))" if same else "true"
        later = "following_episode > episode"
        if self.roles.episode.type == "VARCHAR":  # e9 before e10
            longer = "length(following_episode) - length(episode)"
            later = f"({longer} > 0 OR ({longer} = 0 AND {later}))"
        return (
            f"CASE WHEN {CONTINUES} THEN following_step = step + 1 "
            f"AND NOT (terminated OR truncated) AND {same_next} "
            f"ELSE following_episode IS NULL OR {later} END"
        )

    # ---- groups -------------------------------------------------------------------------------

    @property
    def keys(self) -> list[str]:
        """Returns the labels by which rows are grouped, besides their kind."""
        roles = self.roles
        following = roles.names("next")
        if not roles.next_state:
            states = zip(roles.names("state"), following, strict=True)
            ahead = f"CASE WHEN {CONTINUES} THEN following_"
            following = [f"{ahead}{here} END AS {there}" for here, there in states]
        return [*roles.names("state"), *roles.names("action"), *following]

    def grouped(self, rows: str) -> str:
        """Returns SQL that groups rows by state, action, next state and kind, with exact sums."""
        begins = "(previous_episode IS DISTINCT FROM episode)"
        marks = {
            TERMINATED: "terminated",
            TRUNCATED: "truncated",
            BEGINS: "false" if self.roles.episode is None else begins,
        }
        bits = [f"{bit} * CAST({mark} AS TINYINT)" for bit, mark in marks.items()]
        sums = f"sum(CASE WHEN usable AND {self.whole} THEN units ELSE error('{REFUTED}') END)"
        columns = [
            "count(*) AS times",
            f"{self.units.whole(sums)} AS reward_sum",
            f"{self.units.whole('min(units)')} AS least_reward",
            f"{self.units.whole('max(units)')} AS greatest_reward",
        ]
        if self.roles.mapping.propensity is not None:
            columns += ["min(propensity) AS lowest", "max(propensity) AS highest"]
        listed = ", ".join([*self.keys, f"{' + '.join(bits)} AS kind", *columns])
        return f"SELECT {listed} FROM ({rows}) GROUP BY ALL"

    @property
    def nameless(self) -> str:
        """Returns SQL that is true if a group lacks a label or a flag that it must have."""
        needed = (*self.roles.names("state"), *self.roles.names("action"), "kind")
        lacks = [f"{name} IS NULL" for name in needed]
        if self.roles.next_state:
            there = [f"{name} IS NULL" for name in self.roles.names("next")]
            wholly = f"({' AND '.join(there)})"
            lacks += [
                f"({' OR '.join(there)}) AND NOT {wholly}",
                f"{wholly} AND kind & {TERMINATED | TRUNCATED} = 0",
            ]
        return " OR ".join(f"({condition})" for condition in lacks)


def count_valid_rows(database: Any, query: CountQuery, rows: str) -> bool:
    """Makes the table `counted` of these rows; returns False if one is invalid or out of order."""
    try:
        database.execute(f"CREATE OR REPLACE TEMP TABLE counted AS {query.grouped(rows)}")
    except duckdb.InvalidInputException as problem:
        if REFUTED not in str(problem):
            raise
        return False
    nameless = database.execute(f"SELECT count(*) FROM counted WHERE {query.nameless}").fetchone()
    return bool(nameless[0] == 0)


def count_rows(table: Table, database: Any, roles: RoleSql) -> int:
    """Makes the table `counted` and returns the scale of its sums; refuses an invalid log.

    One pass is enough if the digits of rewards are guessed right and rows are valid and in order.
    """
    guess = RewardSql.of(roles).guess(database)
    if guess is not None and count_in_one_pass(table, database, CountQuery(roles, guess)):
        if database.execute("SELECT count(*) FROM counted").fetchone()[0] == 0:
            raise no_row(table)
        return guess.scale
    units = check_rows(table, database, roles)
    query = CountQuery(roles, units)
    if units != guess and count_in_one_pass(table, database, query):
        return units.scale
    database.execute("SET preserve_insertion_order = false")
    trouble = None
    if roles.episode is not None:
        if count_valid_rows(database, query, query.chained("log", IN_ORDER)):
            return units.scale
        trouble = explain_episodes(Look(table, roles, database))
    raise trouble or InvalidLog(
        f"{table.name} gave other rows when it was read again; expected a log that does not change"
    )


def count_in_one_pass(table: Table, database: Any, query: CountQuery) -> bool:
    """Makes the table `counted` of rows as they lie; returns False if one is invalid."""
    if query.roles.episode is None:
        database.execute("SET preserve_insertion_order = false")
        return count_valid_rows(database, query, query.steps("log"))
    if not table.preparation.keeps_order:
        return count_valid_rows(database, query, query.chained("log", IN_ORDER))
    database.execute("SET preserve_insertion_order = true")
    ends, selects = table.description.ends, table.preparation.in_order
    lanes = [Lane(*(applied(selects, scan) for scan in each)) for each in lanes_of(table, database)]
    for number, lane in enumerate(lanes):  # variables keep the rows at their ends
        for side, scan in (("first", lane.first_row), ("last", lane.last_row)):
            row = f"SELECT row FROM ({query.steps(f'({scan})')}) AS row"
            database.execute(f"SET VARIABLE {side}_{number} = ({row})")
    rows = [
        query.lying(
            f"({lane.scan})",
            ends,
            before=f"last_{number - 1}" if number else "",
            after=f"first_{number + 1}" if number + 1 < len(lanes) else "",
        )
        for number, lane in enumerate(lanes)
    ]
    whole = query.lying("log" if ends is None else f"({table.scan(database, selects)})", ends)
    return count_valid_rows(database, query, " UNION ALL ".join(rows) or whole)


def lanes_of(table: Table, database: Any) -> list[Lane]:
    """Cuts a log into as many lanes as threads: files, or pieces of a single one; none if not."""
    others = len(table.preparation.selects) > (table.description.ends is not None)
    if not table.format.knows_rows or others or table.kept is not None:
        return []
    counted = database.execute(
        f"SELECT file_name, num_rows FROM parquet_file_metadata({file_list(table.files)})"
    ).fetchall()
    known = {Path(name): int(rows) for name, rows in counted}
    rows = {file: known[file] for file in table.files if known[file]}
    total = sum(rows.values())
    scans = [f"FROM read_parquet({file_list([file])})" for file in rows]
    threads = database.execute("SELECT current_setting('threads')").fetchone()[0]
    number = min(threads, -(-total // SHORTEST))
    if (
        number < 2
        or IN_FILE in columns_of(database, "log")
        or len({str(columns_of(database, scan)) for scan in scans}) > 1  # they would not fit
    ):
        return []
    if len(rows) == 1:
        ends = [total * piece // number for piece in range(number + 1)]
        return [lane(list(rows), *piece) for piece in pairwise(ends)]
    lanes = dict[int, list[Path]]()
    before = 0.0
    for file, size in rows.items():  # each belongs to the lane of its middle
        lanes.setdefault(int((before + size / 2) / total * number), []).append(file)
        before += size
    return [lane(files, 0, rows[files[-1]]) for files in lanes.values()]
