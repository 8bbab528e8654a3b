"""Tells whether anything in a log supports that a clock stopped its recordings.

A clock stops after a fixed number of steps, or at a date, whatever is done. So an episode whose
last row says nothing was stopped by one if it is as long as the longest of all, or if it lasted to
the end of the log: to the last step of a calendar, or to within one step of the last date. One step
is the gap that only 5 % of the gaps between steps exceed.
"""

from dataclasses import replace

import msgspec

import surestep.io.logs.tables as tables
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.roles import RoleSql

SHORTER = 0.05  # the share that may be shorter, of the episodes that began early enough


def has_unexplained(table: tables.Table, mapping: ColumnMapping, memory_limit: str | None) -> bool:
    """Tells whether too many episodes stop early, with no flag and no date that explains it."""
    plain = replace(
        table,
        description=msgspec.structs.replace(table.description, ends=None),
        preparation=tables.Preparation(),
    )
    with tables.connected(plain, memory_limit) as database:
        types = tables.types_of(database)
    stamped = table.preparation.numbers_stamps
    mapping = replace(
        mapping,
        state=mapping.present,
        truncated=mapping.truncated if mapping.truncated in types else None,
        time=mapping.time or (mapping.step if stamped else None),
        memory=(),
    )
    preparation = tables.preparation_of(plain.description, mapping, types, stamped)
    with tables.connected(replace(plain, preparation=preparation), memory_limit) as database:
        roles = RoleSql.of(mapping, tables.types_of(database), {})
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
