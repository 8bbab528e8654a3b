"""Turns tables of DuckDB into arrays: groups into `LabelledCounts`, steps into a `DecisionLog`.

DuckDB sorts the groups, and may spill to disk; the arrays themselves are held in memory once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidLog
from surestep.io.counts.labelled import (
    END,
    REWARDS,
    Episodes,
    LabelledCounts,
    Transitions,
    exact_type,
    integers,
    known_places,
    positions,
    smallest_scale,
)
from surestep.io.labels.vocabulary import Label, joined
from surestep.io.logs.counting import BEGINS, IN_ORDER, TERMINATED, TRUNCATED, CountQuery
from surestep.io.logs.roles import LabelCode, RewardSql, RoleSql, Units
from surestep.io.sql import ROW, replacing, sql_name, sql_text
from surestep.model import DecisionLog, Pairs

UNFINISHED = "the recording stopped, and no next state is known"
STOPPED = "a clock stopped the recording, and no next state is known"
RANDOM = "the recording stopped at random, and no next state is known"
UNEXPLAINED = "a clock is said to have stopped the recording, but nothing in the log shows one"
BY_CLOCK = (STOPPED, RANDOM, UNEXPLAINED)  # not for what came next, as the user says
UNKNOWN = f"next_state = {END} AND kind & {TERMINATED} = 0"  # the recording stopped
PIECE = 100_000  # groups fetched at a time


def counts_of(database: Any, roles: RoleSql, scale: int, stopped: str = STOPPED) -> LabelledCounts:
    """Returns the table `counted` as counts in their normal form.

    `stopped` is the reason for which rows of a clock are left out.
    """
    states, actions = number_codes(database, roles, "counted")
    rows, starts, decided = numbered_transitions(database, roles, len(states))
    units = 10**scale
    scale, transitions = smallest_scale(scale, rows)
    episodes = Episodes(0, 0, 0)
    if roles.episode is not None:
        over = f"kind & {TERMINATED} > 0"
        conditions = (f"kind & {BEGINS} > 0", over, f"kind & {TRUNCATED} > 0 AND NOT {over}")
        sums = [f"coalesce(sum(times) FILTER ({condition}), 0)::BIGINT" for condition in conditions]
        episodes = Episodes(*database.execute(f"SELECT {', '.join(sums)} FROM numbered").fetchone())
    # Rows that are left out, by reason; '' for those that are counted.
    groups = database.execute(
        f"SELECT CASE WHEN NOT ({UNKNOWN}) THEN '' WHEN kind & {TRUNCATED} > 0 "
        f"THEN {sql_text(stopped)} ELSE {sql_text(UNFINISHED)} END AS why, sum(times)::BIGINT, "
        "min(least_reward)::HUGEINT, max(greatest_reward)::HUGEINT FROM numbered GROUP BY why "
        "ORDER BY why"
    ).fetchall()
    return LabelledCounts(
        roles.mapping.state,
        roles.mapping.action,
        states,
        actions,
        transitions.changed(arrays.freeze),
        scale,
        arrays.own(starts),
        sum(rows for _, rows, *_ in groups),
        {why: rows for why, rows, *_ in groups if why},
        arrays.own(decided),
        episodes,
        roles.binnings,
        dropped_rewards={why: (low / units, high / units) for why, _, low, high in groups if why},
    )


def numbered_transitions(
    database: Any, roles: RoleSql, size: int, condition: str = "true"
) -> tuple[Transitions, arrays.IntArray, arrays.BoolArray]:
    """Creates the table `numbered`: the groups of `counted` with numbers of their codes.

    Returns their transitions, and of each state [size] the starts, and whether a row decides there.
    """
    seen = ", lowest, highest" if roles.mapping.propensity is not None else ""
    database.execute(
        "CREATE OR REPLACE TEMP TABLE numbered AS SELECT here.number AS state, "
        f"act.number AS action, coalesce(there.number, {END}) AS next_state, "
        f"kind, times, {', '.join(REWARDS)}{seen} "
        f"FROM counted {joined_codes(roles, 'counted')} WHERE {condition}"
    )
    # Loose transitions do not say where episodes begin: every row stands for a start.
    begins = "true" if roles.episode is None else f"kind & {BEGINS} > 0"
    begun = database.execute(
        f"SELECT state, coalesce(sum(times) FILTER ({begins}), 0)::BIGINT AS times FROM numbered "
        "GROUP BY state"
    ).fetchnumpy()
    starts = np.zeros(size, np.int64)
    starts[begun["state"]] = begun["times"]
    return ordered_transitions(database, roles), starts, arrays.marked(begun["state"], size)


def number_codes(
    database: Any, roles: RoleSql, table: str
) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Creates the tables `state_codes` and `action_codes`, which number the codes of a table.

    Returns the labels of states and actions in the order of these numbers.
    """
    here, act, there = (", ".join(roles.names(role)) for role in ("state", "action", "next"))
    states = (
        f"SELECT {here} FROM {table} UNION SELECT {there} FROM {table} WHERE next_0 IS NOT NULL"
    )
    return (
        number_labels(database, "state", roles.state, states),
        number_labels(database, "action", roles.action, f"SELECT DISTINCT {act} FROM {table}"),
    )


def number_labels(
    database: Any, role: str, codes: Sequence[LabelCode], distinct: str
) -> tuple[Label, ...]:
    """Creates the table `{role}_codes` of numbered codes; returns their labels in rising order."""
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
    """Merges the groups of each transition, in rising order, without those that lead nowhere."""
    ends = ", min(lowest) AS lowest, max(highest) AS highest"
    seen = "" if roles.mapping.propensity is None else ends
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        "CREATE OR REPLACE TEMP TABLE ordered AS SELECT state, action, next_state, "
        f"kind & {TERMINATED} > 0 AS terminated, sum(times)::BIGINT AS times, "
        "sum(reward_sum)::HUGEINT AS reward_sum, min(least_reward)::HUGEINT AS least_reward, "
        f"max(greatest_reward)::HUGEINT AS greatest_reward{seen} FROM numbered "
        f"WHERE NOT ({UNKNOWN}) GROUP BY ALL ORDER BY ALL"
    )
    (size,) = database.execute("SELECT count(*) FROM ordered").fetchone()
    kind = exact_type(database, "ordered", REWARDS)
    rewards = replacing([f"{name}::{kind} AS {name}" for name in REWARDS])
    query = f"SELECT {rewards} FROM ordered WHERE rowid >= {{}} AND rowid < {{}} ORDER BY rowid"
    none = database.execute(query.format(0, 0)).fetchnumpy()
    filled = {name: np.empty(size, values.dtype) for name, values in none.items()}
    for begin in range(0, size, PIECE):  # all at once would be held twice
        piece = database.execute(query.format(begin, begin + PIECE)).fetchnumpy()
        for name, values in filled.items():
            values[begin : begin + PIECE] = integers(piece[name])
    return Transitions(**filled)


# ---- every step of every episode, for methods that look at more than counts -------------------


def log_of_steps(
    rows: Mapping[str, arrays.AnyArray],
    counts: LabelledCounts,
    known: Pairs,
    *,
    propensities: bool = False,
    numbered: bool = False,
) -> DecisionLog:
    """Returns the log of steps with numbers of labels, in the order of episodes and steps."""
    state = known_places("state", [*map(joined, counts.states)], known.state_labels)
    action = known_places("action", [*map(joined, counts.actions)], known.action_labels)
    led = (rows["next_state"] != END) | rows["terminated"]
    if not led.any():
        raise InvalidLog("no step of the log says where it led, so there is nothing to load")
    last = np.append(rows["episode"][1:] != rows["episode"][:-1], True)
    place = rows["place"]
    rank = None  # of rows that do not lie in the order of decisions
    if (place[1:] < place[:-1]).any():
        rank = np.empty(place.size, np.int64)
        rank[np.argsort(place, kind="stable")] = np.arange(place.size)
    return DecisionLog(
        known,
        state[rows["state"]],
        action[rows["action"]],
        rows["reward"],
        counts.led_to(rows["next_state"], rows["terminated"], known),
        rows["terminated"],
        last & led & ~rows["terminated"],
        arrays.offsets_of(np.diff(np.flatnonzero(last), prepend=-1)),
        rows["propensity"] if propensities else None,
        rank,
        number=rows["episode"][last] if numbered else None,
    )


def in_time(roles: RoleSql) -> str:
    """Returns SQL: the log, where `ROW` numbers the rows in the order of time.

    Without a column of times, that is the order of the files.
    """
    if roles.mapping.time is None:
        return "log"
    in_order = f"row_number() OVER (ORDER BY {roles.time}, {ROW})"
    return f"(SELECT * REPLACE ({in_order} AS {ROW}) FROM log)"


def in_episodes(roles: RoleSql, columns: Iterable[str]) -> str:
    """Returns SQL for columns of all rows, with their episodes, steps and places in time."""
    assert roles.episode is not None
    return (
        f"SELECT {', '.join(columns)}, {roles.episode.sql} AS episode, {roles.step} AS step, "
        f"{ROW} AS place FROM {in_time(roles)}"
    )


def texts_by_column(
    database: Any, roles: RoleSql, log: DecisionLog
) -> list[tuple[list[str | None], list[str | None]]]:
    """Returns the labels of each column of states, before and after each step of a log [N].

    The log must be numbered. A label is None if it is missing or was not recorded. A last row that
    is not in the log still gives the state after the step before it.
    """
    width = len(roles.state)
    codes = [*roles.state, *(roles.next_state or roles.state)]
    own = enumerate((*roles.state, *roles.next_state))
    texts = [f"CAST({code.sql} AS VARCHAR) AS v{i}" for i, code in own]
    ahead = [f", lead(v{i}) OVER near AS v{i + width}" for i in range(width)]
    lengths = arrays.run_lengths(log.episode_offsets)
    database.register("loaded", {"begun": np.asarray(log.number), "steps": lengths})
    answer = database.execute(
        f"SELECT *{'' if roles.next_state else ''.join(ahead)} FROM (SELECT *, {BEGUN} AS begun "
        f"FROM ({in_episodes(roles, texts)})) JOIN loaded USING (begun) WINDOW near AS "
        "(PARTITION BY begun ORDER BY step) QUALIFY row_number() OVER near <= steps "
        "ORDER BY begun, step"
    ).fetchnumpy()
    columns = list[list[str | None]]()
    for i, code in enumerate(codes):
        column = np.ma.asarray(answer[f"v{i}"]).tolist()  # masked values become None
        known = {text: code.label(text) for text in {*column} - {None}}
        columns.append([known.get(text) for text in column])
    return [*zip(columns[:width], columns[width:], strict=True)]


# A step was decided at its own place in time, and after all steps before it.
DECIDED_AT = f"max(place) OVER ({IN_ORDER} ROWS UNBOUNDED PRECEDING)"
BEGUN = f"first_value(place) OVER ({IN_ORDER})"


def first_rows(
    database: Any, roles: RoleSql, columns: Sequence[str], share: Callable[[int], float] | None
) -> str:
    """Makes a table of some columns of the rows in the first part of a split in time.

    `share` maps the number of recorded episodes to the share of episodes that begin in the first
    part; of a single episode, it is the share of its steps. Returns the SQL of the table, or that
    of the whole log without a `share`, without columns, or if there are no two parts. The columns
    are fields of one value in it, as their names may be those used here.
    """
    if share is None or not columns:
        return "log"
    mapping = roles.mapping
    stopped = f"{roles.flag(mapping.truncated)} AND NOT {roles.flag(mapping.terminated)}"
    if mapping.next_state:
        stopped = f"{stopped} AND {roles.no_next}"
    fields = ", ".join(f"{sql_text(name)}: {sql_name(name)}" for name in dict.fromkeys(columns))
    taught = (f"{{{fields}}} AS taught", f"NOT coalesce({stopped}, false) AS kept")
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE first_rows AS SELECT taught, kept, "
        f"{BEGUN} AS begun, {DECIDED_AT} AS decided_at FROM ({in_episodes(roles, taught)})"
    )
    query = "SELECT {} AS place FROM first_rows WHERE kept ORDER BY place"
    units = database.execute(query.format("DISTINCT begun")).fetchnumpy()["place"]
    if units.size == 1:
        units = database.execute(query.format("decided_at")).fetchnumpy()["place"]
    (recorded,) = database.execute("SELECT count(DISTINCT begun) FROM first_rows").fetchone()
    cut = round(share(recorded) * units.size)
    if not 0 < cut < units.size:
        return "log"
    database.execute(f"DELETE FROM first_rows WHERE decided_at >= {units[cut]}")
    return "(SELECT taught.* FROM first_rows)"


def numbered_steps(
    database: Any, roles: RoleSql, stopped: bool
) -> tuple[dict[str, arrays.AnyArray], tuple[tuple[Label, ...], tuple[Label, ...]]]:
    """Returns the steps in the order of episodes and steps, and the labels of states and actions.

    States and actions are numbers of these labels. Steps at which a clock stopped the recording,
    without a next state, are left out unless `stopped`. Episodes come in the order in which they
    began, by the files or by their time, and `place` is the order of decisions; splits in time rest
    on both. The log is read once, into the table `steps`.
    """
    # Every row was checked when it was counted, and its reward is the double nearest to it.
    query = CountQuery(roles, Units(0, "true", RewardSql.of(roles).double))
    columns = [
        *query.keys,
        "terminated AS over",
        "truncated AS stopped",
        "units AS reward",
        "step",
        f"{'NULL' if roles.mapping.propensity is None else 'propensity'} AS propensity",
        f"{BEGUN} AS begun",
        f"{DECIDED_AT} AS decided_at",
    ]
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        f"CREATE TEMP TABLE steps AS SELECT {', '.join(columns)} "
        f"FROM ({query.chained(in_time(roles), IN_ORDER, place=ROW)})"
    )
    labels = number_codes(database, roles, "steps")
    steps = database.execute(
        "SELECT here.number AS state, act.number AS action, coalesce(there.number, -1) AS "
        "next_state, over AS terminated, stopped, reward, propensity, begun AS episode, "
        "decided_at AS place "
        f"FROM steps {joined_codes(roles, 'steps')} ORDER BY begun, step"
    ).fetchnumpy()
    rows = {name: np.asarray(values) for name, values in steps.items()}
    kept = (rows["next_state"] != END) | rows["terminated"] | ~rows.pop("stopped") | stopped
    return {name: values[kept] for name, values in rows.items()}, labels
