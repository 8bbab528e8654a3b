"""The one query that counts a log: every row checked, chained to the next one, and grouped.

Rows are hoped to be right and to lie in order: each continues its episode with the next step, or
begins an episode with a larger name. Then one pass is enough, and nothing of it is held in memory
but the groups. The first row that is otherwise stops the pass, and another one is made: over rows
put in order, which may spill to disk, or one that finds out what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surestep.io.logs.lanes import Lane
from surestep.io.logs.rewards import Units
from surestep.io.logs.roles import FLAGS, RoleSql

REFUTED = "surestep: a row is not as hoped"
TERMINATED, TRUNCATED, BEGINS = 1, 2, 4  # bits of the `kind` of a group
IN_ORDER = "PARTITION BY episode ORDER BY step"


@dataclass(frozen=True, slots=True)
class CountQuery:
    """The SQL that counts a log, its rewards in these units."""

    roles: RoleSql
    units: Units

    # ---- rows ---------------------------------------------------------------------------------

    @property
    def usable(self) -> str:
        """Returns SQL: a row can be used by itself; missing labels and flags show up as groups."""
        roles, conditions = self.roles, [self.units.exact]
        if roles.episode is not None:
            conditions += [f"{roles.episode.sql} IS NOT NULL", f"{roles.step} >= 0"]
        checks = (*roles.label_checks, *roles.rare_checks())
        conditions += [f"NOT coalesce({check.condition}, false)" for check in checks]
        return " AND ".join(conditions)

    def steps(self, scan: str, place: str = "") -> str:
        """Returns SQL: the rows of a scan under names of our own: codes, flags, units.

        `place` is its column of places, where it has one.
        """
        columns = self.roles.columns() | {"usable": self.usable, "units": self.units.number}
        if place:
            columns["place"] = place
        if self.roles.mapping.propensity is not None:
            columns["propensity"] = self.roles.propensity
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return f"SELECT {listed} FROM {scan}"

    # ---- chains -------------------------------------------------------------------------------

    @property
    def looks_ahead(self) -> list[str]:
        """The columns of the next row that matter to a row."""
        return ["episode", "step", *self.roles.names("state")]

    def chained(
        self, scan: str, order: str, *, before: str = "", after: str = "", place: str = ""
    ) -> str:
        """Returns SQL: the steps, each with what it needs to know of its neighbours.

        `before` and `after` name variables that hold those rows at the ends of a lane.
        """
        ahead = [
            f"lead({name}, 1, {f'getvariable({after!r}).{name}' if after else 'NULL'}) OVER near "
            f"AS following_{name}"
            for name in self.looks_ahead
        ]
        edge = f"getvariable({before!r}).episode" if before else "NULL"
        behind = f"lag(episode, 1, {edge}) OVER near AS previous_episode"
        steps = self.steps(scan, place)
        return f"SELECT *, {', '.join(ahead)}, {behind} FROM ({steps}) WINDOW near AS ({order})"

    def in_lanes(self, database: Any, lanes: Sequence[Lane]) -> str:
        """The chained steps of all lanes, the rows at their seams put into variables."""
        for number, lane in enumerate(lanes):
            for side, scan in (("first", lane.first_row), ("last", lane.last_row)):
                row = f"SELECT row FROM ({self.steps(f'({scan})')}) AS row"
                database.execute(f"SET VARIABLE {side}_{number} = ({row})")
        return " UNION ALL ".join(
            self.chained(
                f"({lane.scan})",
                "",
                before=f"last_{number - 1}" if number else "",
                after=f"first_{number + 1}" if number + 1 < len(lanes) else "",
            )
            for number, lane in enumerate(lanes)
        )

    # ---- what a row is to the next one --------------------------------------------------------

    @property
    def same_next(self) -> str:
        """Returns SQL: the next state of a step that goes on is the state of the next step."""
        pairs = range(len(self.roles.next_state))
        same = " AND ".join(f"next_{i} = following_state_{i}" for i in pairs)
        return f"(next_0 IS NULL OR ({same}))" if same else "true"

    @property
    def whole(self) -> str:
        """Returns SQL: the next step goes on with the episode, or another episode begins."""
        if self.roles.episode is None:
            return "true"
        later = "following_episode > episode"
        if self.roles.episode.type == "VARCHAR":  # e9 before e10
            longer = "length(following_episode) - length(episode)"
            later = f"({longer} > 0 OR ({longer} = 0 AND {later}))"
        return (
            f"CASE WHEN {CONTINUES} THEN following_step = step + 1 "
            f"AND NOT (terminated OR truncated) AND {self.same_next} "
            f"ELSE following_episode IS NULL OR {later} END"
        )

    # ---- groups -------------------------------------------------------------------------------

    @property
    def marks(self) -> dict[int, str]:
        """Returns SQL by bit: how a step ended, and that it begins an episode."""
        bits = zip((TERMINATED, TRUNCATED), FLAGS, strict=True)
        marks = {bit: name for bit, name in bits if getattr(self.roles.mapping, name)}
        if self.roles.episode is not None:
            marks[BEGINS] = "(previous_episode IS DISTINCT FROM episode)"
        return marks

    @property
    def keys(self) -> list[str]:
        """Returns the labels by which rows are grouped, besides their marks."""
        roles = self.roles
        following = roles.names("next")
        if not roles.next_state:
            states = zip(roles.names("state"), following, strict=True)
            ahead = f"CASE WHEN {CONTINUES} THEN following_"
            following = [f"{ahead}{here} END AS {there}" for here, there in states]
        return [*roles.names("state"), *roles.names("action"), *following]

    @property
    def aggregates(self) -> list[str]:
        """Times, the sum and the range of units, and the range of propensities."""
        sums = f"sum(CASE WHEN usable AND {self.whole} THEN units ELSE error('{REFUTED}') END)"
        columns = ["count(*) AS times", f"{self.units.whole(sums)} AS reward_sum"]
        columns += [
            f"{self.units.whole(f'{end}(units)')} AS {name}_reward"
            for end, name in (("min", "least"), ("max", "greatest"))
        ]
        if self.roles.mapping.propensity is not None:
            columns += ["min(propensity) AS lowest", "max(propensity) AS highest"]
        return columns

    def grouped(self, rows: str) -> str:
        """The groups of (state, action, next state, kind), with times and exact sums."""
        marks = [f"{sql} AS mark_{bit}" for bit, sql in self.marks.items()]
        columns = ", ".join([*self.keys, *marks, *self.aggregates])
        kind = " + ".join(["0", *(f"{bit} * CAST(mark_{bit} AS INTEGER)" for bit in self.marks)])
        return f"SELECT *, {kind} AS kind FROM (SELECT {columns} FROM ({rows}) GROUP BY ALL)"

    @property
    def nameless(self) -> str:
        """Returns SQL: a group lacks a label or a flag that it must have."""
        roles = self.roles
        needed = (*roles.names("state"), *roles.names("action"), "kind")
        lacks = [f"{name} IS NULL" for name in needed]
        if roles.next_state:
            there = [f"{name} IS NULL" for name in roles.names("next")]
            partly, wholly = f"({' OR '.join(there)})", f"({' AND '.join(there)})"
            lacks.append(f"{partly} AND NOT {wholly}")
            lacks.append(f"{wholly} AND kind & {TERMINATED | TRUNCATED} = 0")
        return " OR ".join(f"({condition})" for condition in lacks)


CONTINUES = "coalesce(following_episode = episode, false)"


def count_as_hoped(database: Any, query: CountQuery, rows: str) -> bool:
    """Makes the table `counted` of these rows; False if one of them is not as hoped."""
    import duckdb

    try:
        database.execute(f"CREATE OR REPLACE TEMP TABLE counted AS {query.grouped(rows)}")
    except duckdb.InvalidInputException as problem:
        if REFUTED not in str(problem):
            raise
        return False
    nameless = database.execute(f"SELECT count(*) FROM counted WHERE {query.nameless}").fetchone()
    return bool(nameless[0] == 0)
