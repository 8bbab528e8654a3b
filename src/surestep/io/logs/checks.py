"""What is wrong with a row by itself, told with its file, row, column and value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from surestep.errors import InvalidLog
from surestep.io.logs.counting import CONTINUES, IN_ORDER, CountQuery
from surestep.io.logs.rewards import LARGEST_SCALE, LARGEST_SUM, RewardSql, Units
from surestep.io.logs.roles import RoleSql
from surestep.io.logs.tables import Table
from surestep.io.sql import sql_name

ROW = '"surestep row"'


class Place(NamedTuple):
    """A value in a log."""

    where: str  # file, row and column
    value: str


def check_rows(table: Table, database: Any, roles: RoleSql, reward: RewardSql) -> Units:
    """Refuses the first row that makes no sense; returns the units that exact sums need."""
    checks = roles.checks(reward.is_number)
    weight = roles.mapping.weight
    times = "count(*)" if weight is None else f"coalesce(sum({roles.whole(weight)}), 0)::DOUBLE"
    troubles = [f"count_if({check.condition})" for check in checks]
    columns = ["count(*)", times, *reward.needs(), *troubles]
    found = database.execute(f"SELECT {', '.join(columns)} FROM log").fetchone()
    if found[0] == 0:
        raise no_row(table)
    for check, rows in zip(checks, found[5:], strict=True):
        if rows:
            place = first_where(table, database, check.condition, check.column)
            others = "" if rows == 1 else f"; {rows:,} rows are affected"
            raise InvalidLog(
                f"{place.where}: found {place.value}, expected {check.expected}{others}"
            )
    scale, largest = found[2:4]
    if scale > LARGEST_SCALE or largest * found[1] * 10.0**scale >= LARGEST_SUM:
        place = first_where(table, database, f"{reward.digits} = {scale}", reward.column)
        raise InvalidLog(
            f"{place.where}: found {place.value}, which needs {scale} digits after the point; "
            f"{found[1]:,.0f} rewards of up to {largest:g} with that many cannot be added up "
            "exactly in 38 digits; round the rewards to fewer digits"
        )
    return reward.units(*found[2:5])


def no_row(table: Table) -> InvalidLog:
    """The error that a log without rows is."""
    return InvalidLog(f"{table.name} has no row, expected at least one decision")


def first_where(table: Table, database: Any, condition: str, column: str) -> Place:
    """The first row of which the condition holds."""
    nowhere = Place(f"{table.name}, column {column!r}", "a value")
    return next(places_where(table, database, condition, column), nowhere)


def places_where(table: Table, database: Any, condition: str, column: str) -> Iterator[Place]:
    """The rows of which the condition holds, at most two a file, in the order of the files."""
    database.execute("SET preserve_insertion_order = true")
    for file in table.files or (None,):
        scan = table.scan(database, () if file is None else (file,))
        found = database.execute(
            f"SELECT {ROW}, CAST({sql_name(column)} AS VARCHAR) FROM "
            f"(SELECT *, row_number() OVER () AS {ROW} FROM ({scan})) "
            f"WHERE {condition} ORDER BY {ROW} LIMIT 2"
        ).fetchall()
        for row, value in found:
            where = f"{table.name if file is None else file}, row {row:,}, column {column!r}"
            yield Place(where, "nothing" if value is None else repr(value))


OFFENDER = "getvariable('offender')"


def explain_episodes(table: Table, database: Any, query: CountQuery) -> InvalidLog:
    """The first trouble of the first episode that has it, as an error."""
    chained = query.chained("log", IN_ORDER)
    troubles = {
        "following_step = step": repeated_step,
        "following_step > step + 1": missing_step,
        query.ended: step_after_end,
        f"NOT {query.same_next}": other_next_state,
        f"NOT {query.same_weight}": other_weight,
    }
    filters = [f"FILTER ({CONTINUES} AND {condition})" for condition in troubles]
    columns = [f"count(DISTINCT episode) {chosen}" for chosen in filters]
    found = database.execute(f"SELECT {', '.join(columns)} FROM ({chained})").fetchone()
    for chosen, explain, episodes in zip(filters, troubles.values(), found, strict=True):
        if episodes:
            first = f"first(row ORDER BY row.episode, row.step) {chosen}"
            database.execute(f"SET VARIABLE offender = (SELECT {first} FROM ({chained}) AS row)")
            others = "" if episodes == 1 else f"; {episodes:,} episodes are affected"
            return InvalidLog(f"{explain(table, database, query)}{others}")
    return InvalidLog(
        f"{table.name} gave other rows when it was read again; expected a log that does not change"
    )


def repeated_step(table: Table, database: Any, query: CountQuery) -> str:
    """A step that is there more than once; the second time is where it is told."""
    episode, step = offender(database, "episode", "step")
    same = at_step(query, 0)
    times = database.execute(f"SELECT count(*) FROM log WHERE {same}").fetchone()[0]
    column = str(query.roles.mapping.step)
    place = list(islice(places_where(table, database, same, column), 2))[-1]
    return (
        f"{place.where}: episode {episode!r} has step {step} {times} times, expected once (if rows "
        "are copies of each other, keep one; if they are different episodes, number them "
        "differently)"
    )


def missing_step(table: Table, database: Any, query: CountQuery) -> str:
    """Between which two steps one is missing."""
    episode, step, following = offender(database, "episode", "step", "following_step")
    place = step_place(table, database, query, int(following) - int(step))
    return (
        f"{place.where}: step {step} of episode {episode!r} is followed by step {following}, "
        f"expected {int(step) + 1} (steps are numbered without gaps; begin a new episode where "
        "some are missing)"
    )


def step_after_end(table: Table, database: Any, query: CountQuery) -> str:
    """Which step ends an episode that goes on."""
    episode, step, terminated = offender(database, "episode", "step", "terminated")
    place = step_place(table, database, query, 0)
    how = "terminated" if terminated == "true" else "truncated"
    if query.roles.mapping.is_last is not None:
        how = "the last observation"
    return (
        f"{place.where}: step {step} of episode {episode!r} is {how}, but step {int(step) + 1} "
        "follows; expected the flag at the last step (begin a new episode after it)"
    )


def other_next_state(table: Table, database: Any, query: CountQuery) -> str:
    """A next state that is not where the next step is."""
    columns = query.roles.mapping.next_state
    episode, step = offender(database, "episode", "step")
    for i, column in enumerate(columns):
        given, found = offender(database, f"next_{i}", f"following_state_{i}")
        if given != found:
            place = first_where(table, database, at_step(query, 0), column)
            return (
                f"{place.where}: found {place.value}, but step {int(step) + 1} of episode "
                f"{episode!r} is in {found!r}; expected the same (leave the column out to have it "
                "derived from the next step)"
            )
    raise AssertionError("unreachable: equal next states were told to differ")


def other_weight(table: Table, database: Any, query: CountQuery) -> str:
    """A step that stands for more or fewer rows than the one before."""
    episode, step, weight = offender(database, "episode", "step", "weight")
    place = first_where(table, database, at_step(query, 1), str(query.roles.mapping.weight))
    return (
        f"{place.where}: found {place.value}, but step {step} of episode {episode!r} has "
        f"{weight!r}; expected one weight for all rows of an episode"
    )


def offender(database: Any, *columns: str) -> tuple[str, ...]:
    """What the row that is wrong says, as text."""
    chosen = ", ".join(f"CAST({OFFENDER}.{column} AS VARCHAR)" for column in columns)
    found: tuple[str, ...] = database.execute(f"SELECT {chosen}").fetchone()
    return found


def at_step(query: CountQuery, later: int) -> str:
    """SQL over the user's columns: the step so many later in the same episode."""
    episode, step = query.roles.codes.episode, query.roles.whole(str(query.roles.mapping.step))
    code = "" if episode is None else episode.sql
    return f"{code} = {OFFENDER}.episode AND {step} = {OFFENDER}.step + {later}"


def step_place(table: Table, database: Any, query: CountQuery, later: int) -> Place:
    """Where that step is written."""
    return first_where(table, database, at_step(query, later), str(query.roles.mapping.step))
