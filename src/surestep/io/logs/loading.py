"""A whole log in memory: every step of every episode, for methods that look at more than counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, IntArray
from surestep.errors import InvalidLog
from surestep.io.counts.labelled import END, LabelledCounts, known_places
from surestep.io.labels.label import Label, joined
from surestep.io.logs.counting import IN_ORDER, TERMINATED, TRUNCATED, CountQuery
from surestep.io.logs.groups import joined_codes, number_codes
from surestep.io.logs.rewards import RewardSql, Units
from surestep.io.logs.roles import RoleSql
from surestep.io.sql import ROW, sql_name
from surestep.model import DecisionLog, Pairs


def load_steps(
    database: Any,
    roles: RoleSql,
    counts: LabelledCounts,
    pairs: Pairs | None,
    *,
    propensities: bool = False,
) -> DecisionLog:
    """Returns the steps of the view `log`, counted before, over `pairs`; by default all there are.

    A last step at which a clock stopped the recording, and that does not say where it led, is left
    out, as it is in the counts: the step before it is then the last one, and truncated. One that
    does not even say why it is the last stays, without a next state. With `propensities` the log
    has those of its rows.
    """
    if roles.episode is None:
        raise InvalidLog(
            "the log is loose transitions, which are no episodes; expected columns of episodes and "
            "steps, or a method that needs only counts"
        )
    known = counts.to_counts().pairs if pairs is None else pairs
    state = known_places("state", [*map(joined, counts.states)], known.state_labels)
    action = known_places("action", [*map(joined, counts.actions)], known.action_labels)
    rows, labels = numbered_steps(database, roles)
    if labels != (counts.states, counts.actions):
        raise InvalidLog("the log has other labels than when it was counted; count it again")
    led = (rows["next_state"] != END) | rows["terminated"]
    if not led.any():
        raise InvalidLog("no step of the log says where it led, so there is nothing to load")
    last = np.append(rows["episode"][1:] != rows["episode"][:-1], True)
    return DecisionLog(
        known,
        state[rows["state"]],
        action[rows["action"]],
        rows["reward"],
        next_states(rows, state, known, counts),
        rows["terminated"],
        last & led & ~rows["terminated"],
        arrays.offsets_of(np.diff(np.flatnonzero(last), prepend=-1)),
        rows["propensity"] if propensities else None,
        order_of(rows["place"]),
    )


def next_states(
    rows: dict[str, AnyArray], state: IntArray, pairs: Pairs, counts: LabelledCounts
) -> IntArray:
    """Returns where each step led; a step that terminated where others decide leads to the end."""
    decided: BoolArray = np.zeros(pairs.num_states + 1, np.bool_)  # the last place is the END
    decided[state[np.flatnonzero(counts.decided)]] = True
    following = np.append(state, END)[rows["next_state"]]
    at_end = rows["terminated"] & ((following == END) | decided[following])
    if at_end.any():
        (end,) = known_places("state", [joined(counts.end_label())], pairs.state_labels)
        following = np.where(at_end, end, following)
    return following


def order_of(place: IntArray) -> IntArray | None:
    """Returns the rank of each row [N] by its place; None where rows lie in that order."""
    if (place[1:] >= place[:-1]).all():
        return None
    rank = np.empty(place.size, np.int64)
    rank[np.argsort(place, kind="stable")] = np.arange(place.size)
    return rank


def in_time(roles: RoleSql) -> str:
    """Returns SQL: the log with `ROW`, a number by which its rows come in time.

    That is their order, unless a column has times.
    """
    if roles.mapping.time is None:
        return "log"
    in_order = f"row_number() OVER (ORDER BY {roles.time}, {ROW})"
    return f"(SELECT * REPLACE ({in_order} AS {ROW}) FROM log)"


# A step was decided at its own place in time, and after all steps before it.
DECIDED_AT = f"max(place) OVER ({IN_ORDER} ROWS UNBOUNDED PRECEDING)"
BEGUN = f"first_value(place) OVER ({IN_ORDER})"


def first_rows(
    database: Any, roles: RoleSql, columns: Sequence[str], share: Callable[[int], float]
) -> str:
    """Makes a table of some columns of the rows that a split in time leaves to the first part.

    `share` says for the number of recorded episodes which share of those that `load_steps` gives
    begins there; of one episode, of its steps. Returns its SQL; that of the whole log where there
    are no two parts. The columns have other names within: theirs may be those used here.
    """
    mapping, episode = roles.mapping, roles.episode
    assert episode is not None
    step = roles.step
    stopped = f"{roles.flag(mapping.truncated)} AND NOT {roles.flag(mapping.terminated)}"
    if mapping.next_state:
        stopped = f"{stopped} AND {roles.no_next}"
    inner = {sql_name(name): f'"surestep {i}"' for i, name in enumerate(dict.fromkeys(columns))}
    names = ", ".join(inner.values())
    renamed = ", ".join(f"{name} AS {other}" for name, other in inner.items())
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE first_rows AS SELECT {names}, kept, "
        f"{BEGUN} AS begun, {DECIDED_AT} AS decided_at FROM (SELECT {renamed}, "
        f"NOT coalesce({stopped}, false) AS kept, "
        f"{episode.sql} AS episode, {step} AS step, {ROW} AS place FROM {in_time(roles)})"
    )
    query = "SELECT {} AS place FROM first_rows WHERE kept ORDER BY place"
    units = database.execute(query.format("DISTINCT begun")).fetchnumpy()["place"]
    if units.size == 1:
        units = database.execute(query.format("decided_at")).fetchnumpy()["place"]
    recorded = "SELECT count(DISTINCT begun) FROM first_rows"
    cut = round(share(database.execute(recorded).fetchone()[0]) * units.size)
    if not 0 < cut < units.size:
        return "log"
    database.execute(f"DELETE FROM first_rows WHERE decided_at >= {units[cut]}")
    back = ", ".join(f"{other} AS {name}" for name, other in inner.items())
    return f"(SELECT {back} FROM first_rows)"


def numbered_steps(
    database: Any, roles: RoleSql
) -> tuple[dict[str, AnyArray], tuple[tuple[Label, ...], tuple[Label, ...]]]:
    """Returns the decisions in the order of episodes and steps, and labels of states and actions.

    Labels are numbers of these. Decisions at which a clock stopped the recording, so that nobody
    knows where they led, are left out.

    Episodes come in the order in which they began in the log, or by their time, and steps have
    their place in that order: what is split in time, or read in the order of decisions, rests on
    that. The log is read once, into the table `steps`.
    """
    # Every row was checked when it was counted, and its reward is the double nearest to it.
    query = CountQuery(roles, Units(0, "true", RewardSql.of(roles).double))
    marks = {bit: query.marks.get(bit, "false") for bit in (TERMINATED, TRUNCATED)}
    columns = [
        *query.keys,
        f"{marks[TERMINATED]} AS over",
        f"{marks[TRUNCATED]} AS stopped",
        "units AS reward",
        "step",
        f"{'NULL' if roles.mapping.propensity is None else 'propensity'} AS propensity",
        f"{BEGUN} AS begun",
        f"{DECIDED_AT} AS decided_at",
    ]
    log = in_time(roles)
    database.execute("SET preserve_insertion_order = true")
    database.execute(
        f"CREATE TEMP TABLE steps AS SELECT {', '.join(columns)} "
        f"FROM ({query.chained(log, IN_ORDER, place=ROW)})"
    )
    labels = number_codes(database, roles, "steps")
    steps = database.execute(
        "SELECT here.number AS state, act.number AS action, coalesce(there.number, -1) AS "
        "next_state, over AS terminated, stopped, reward, propensity, begun AS episode, "
        "decided_at AS place "
        f"FROM steps {joined_codes(roles, 'steps')} ORDER BY begun, step"
    ).fetchnumpy()
    rows = {name: np.asarray(values) for name, values in steps.items()}
    kept = (rows["next_state"] != END) | rows["terminated"] | ~rows.pop("stopped")
    return {name: values[kept] for name, values in rows.items()}, labels
