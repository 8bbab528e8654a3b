"""From the groups of a count to LabelledCounts: codes become text, and groups become arrays.

The database puts the groups into their normal form, where it may spill to disk; what is held in
memory besides are the arrays themselves, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surestep._arrays import freeze, own
from surestep.io.counts.labelled import (
    END,
    REWARDS,
    SAFE,
    Ends,
    Episodes,
    LabelledCounts,
    Transitions,
    limbs,
    positions,
    smallest_scale,
    whole_numbers,
)
from surestep.io.labels.label import Label
from surestep.io.logs.counting import BEGINS, TERMINATED, TRUNCATED
from surestep.io.logs.roles import LabelCode, RoleSql
from surestep.io.sql import sql_text

UNFINISHED = "the recording stopped, and no next state is known"
STOPPED = "a clock stopped the recording, and no next state is known"
UNKNOWN = f"next_state = {END} AND kind & {TERMINATED} = 0"  # the recording stopped there
TYPES = {"terminated": np.bool_, "lowest": np.float64, "highest": np.float64}
PIECE = 100_000  # groups fetched at a time


def labelled(database: Any, roles: RoleSql, scale: int) -> LabelledCounts:
    """Returns the table `counted` as counts in their normal form."""
    states, actions = number_codes(database, roles, "counted")
    number_groups(database, roles)
    units = 10**scale
    scale, transitions = smallest_scale(scale, ordered_transitions(database, roles))
    # Loose transitions do not say where episodes begin: every row stands for a start.
    begins = "true" if roles.episode is None else f"kind & {BEGINS} > 0"
    starts, decided = np.zeros(len(states), np.int64), np.zeros(len(states), np.bool_)
    for state, times in database.execute(
        f"SELECT state, coalesce(sum(times) FILTER ({begins}), 0)::BIGINT FROM numbered GROUP BY 1"
    ).fetchall():
        starts[state], decided[state] = times, True
    rows_read, dropped, dropped_rewards = dropped_rows(database, units)
    return LabelledCounts(
        roles.mapping.state,
        roles.mapping.action,
        states,
        actions,
        transitions.each(freeze),
        scale,
        own(starts),
        rows_read,
        dropped,
        own(decided),
        Episodes(0, 0, 0) if roles.episode is None else episodes_of(database),
        roles.binnings,
        dropped_rewards=dropped_rewards,
    )


def number_codes(
    database: Any, roles: RoleSql, table: str
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Creates the tables `state_codes` and `action_codes` of a table of rows or groups.

    Returns the labels of states and actions in rising order, whose places are the numbers of their
    codes.
    """
    here, act, there = (", ".join(roles.names(role)) for role in ("state", "action", "next"))
    known = f"SELECT {there} FROM {table} WHERE next_0 IS NOT NULL"
    states = f"SELECT {here} FROM {table} UNION {known}"
    actions = f"SELECT DISTINCT {act} FROM {table}"
    return (
        number_labels(database, "state", roles.state, states),
        number_labels(database, "action", roles.action, actions),
    )


def number_labels(
    database: Any, role: str, codes: Sequence[LabelCode], distinct: str
) -> tuple[Label, ...]:
    """Creates the table `{role}_codes` of distinct codes; returns their labels in rising order."""
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {role}_codes AS "
        f"SELECT row_number() OVER () - 1 AS number, * FROM ({distinct})"
    )
    texts = ", ".join(f"CAST({role}_{i} AS VARCHAR)" for i in range(len(codes)))
    rows = database.execute(f"SELECT {texts} FROM {role}_codes ORDER BY number").fetchall()
    coded = [tuple(code.label(text) for code, text in zip(codes, row, strict=True)) for row in rows]
    labels = tuple(sorted(set(coded)))
    database.register("places", {"code": np.arange(len(coded)), "place": positions(coded, labels)})
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE {role}_codes AS SELECT known.* REPLACE (place AS number) "
        f"FROM {role}_codes AS known JOIN places ON places.code = known.number"
    )
    database.unregister("places")
    return labels


def number_groups(database: Any, roles: RoleSql) -> None:
    """Creates the table `numbered`: the groups, codes replaced by their numbers."""
    seen = ", lowest, highest" if roles.mapping.propensity is not None else ""
    database.execute(
        "CREATE OR REPLACE TEMP TABLE numbered AS SELECT here.number AS state, "
        f"act.number AS action, coalesce(there.number, {END}) AS next_state, "
        f"kind, times, {', '.join(REWARDS)}{seen} "
        f"FROM counted {joined_codes(roles, 'counted')}"
    )


def joined_codes(roles: RoleSql, table: str) -> str:
    """Returns SQL that joins a table of rows or groups with the numbers of its codes."""
    states, actions, following = map(roles.names, ("state", "action", "next"))
    pairs = zip(states, following, strict=True)
    there = " AND ".join(f"there.{here} = {table}.{after}" for here, after in pairs)
    return (
        f"JOIN state_codes here USING ({', '.join(states)}) "
        f"JOIN action_codes act USING ({', '.join(actions)}) LEFT JOIN state_codes there ON {there}"
    )


def ordered_transitions(database: Any, roles: RoleSql) -> Transitions:
    """The groups that led somewhere, those of one transition put together, in rising order."""
    known = roles.mapping.propensity is not None
    seen = ", min(lowest) AS lowest, max(highest) AS highest" if known else ""
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        "CREATE OR REPLACE TEMP TABLE ordered AS SELECT state, action, next_state, "
        f"kind & {TERMINATED} > 0 AS terminated, sum(times)::BIGINT AS times, "
        "sum(reward_sum)::HUGEINT AS reward_sum, min(least_reward)::HUGEINT AS least_reward, "
        f"max(greatest_reward)::HUGEINT AS greatest_reward{seen} FROM numbered "
        f"WHERE NOT ({UNKNOWN}) GROUP BY ALL ORDER BY ALL"
    )
    size, *largest = database.execute(
        f"SELECT count(*), {', '.join(f'max(abs({name}))' for name in REWARDS)} FROM ordered"
    ).fetchone()
    fits = all(number is None or number < SAFE for number in largest)
    columns = ["state", "action", "next_state", "terminated", "times"]
    columns += ["lowest", "highest"] if known else []
    sql = [f"{name}::BIGINT AS {name}" if fits else limbs(name, name) for name in REWARDS]
    arrays = {name: np.empty(size, TYPES.get(name, np.int64)) for name in columns}
    arrays |= {name: np.empty(size, np.int64 if fits else object) for name in REWARDS}
    for begin in range(0, size, PIECE):  # all at once would be held twice
        piece = database.execute(
            f"SELECT {', '.join([*columns, *sql])} FROM ordered "
            f"WHERE rowid >= {begin} AND rowid < {begin + PIECE} ORDER BY rowid"
        ).fetchnumpy()
        for name, values in arrays.items():
            wide = name in REWARDS and not fits
            values[begin : begin + PIECE] = whole_numbers(piece, name) if wide else piece[name]
    return Transitions(**arrays)


def dropped_rows(database: Any, units: int) -> tuple[int, dict[str, int], dict[str, Ends]]:
    """Counts the rows, and those left out by reason, with the least and the greatest reward."""
    ends = "min(least_reward)::HUGEINT, max(greatest_reward)::HUGEINT"
    found = database.execute(
        f"SELECT CASE WHEN NOT ({UNKNOWN}) THEN '' WHEN kind & {TRUNCATED} > 0 "
        f"THEN {sql_text(STOPPED)} ELSE {sql_text(UNFINISHED)} END AS why, "
        f"sum(times)::BIGINT, {ends} FROM numbered GROUP BY why ORDER BY why"
    ).fetchall()
    dropped = {why: rows for why, rows, *_ in found if why}
    rewards = {why: (low / units, high / units) for why, _, low, high in found if why}
    return sum(rows for _, rows, *_ in found), dropped, rewards


def episodes_of(database: Any) -> Episodes:
    """Counts the episodes, and those that terminated or were truncated."""
    over, stopped = f"kind & {TERMINATED} > 0", f"kind & {TRUNCATED} > 0"
    conditions = (f"kind & {BEGINS} > 0", over, f"{stopped} AND NOT {over}")
    sums = [f"coalesce(sum(times) FILTER ({condition}), 0)::BIGINT" for condition in conditions]
    return Episodes(*database.execute(f"SELECT {', '.join(sums)} FROM numbered").fetchone())
