"""A whole log in memory: every step of every episode, for methods that look at more than counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from surestep._arrays import AnyArray, BoolArray, IntArray, offsets_of
from surestep.errors import InvalidLog
from surestep.io.counts.labelled import LabelledCounts, known_places
from surestep.io.counts.transitions import END
from surestep.io.labels.label import joined
from surestep.io.logs.counting import IN_ORDER, OBSERVATION, TERMINATED, CountQuery
from surestep.io.logs.roles import RoleSql
from surestep.model import DecisionLog, Pairs


def load_steps(
    database: Any, query: CountQuery, counts: LabelledCounts, pairs: Pairs | None
) -> DecisionLog:
    """The steps of the view `log`, counted before, over `pairs`; by default all there are.

    A last step that says neither how its episode ended nor where it led is left out, as it is in
    the counts: the step before it is then the last one, and truncated.
    """
    check_loadable(query.roles)
    known = counts.to_counts().pairs if pairs is None else pairs
    state = known_places("state", [*map(joined, counts.states)], known.state_labels)
    action = known_places("action", [*map(joined, counts.actions)], known.action_labels)
    rows = numbered_steps(database, query)
    kept = (rows["next_state"] != END) | rows["terminated"]
    rows = {name: values[kept] for name, values in rows.items()}
    if rows["state"].size == 0:
        raise InvalidLog("no step of the log says where it led, so there is nothing to load")
    last = np.append(rows["episode"][1:] != rows["episode"][:-1], True)
    return DecisionLog(
        known,
        state[rows["state"]],
        action[rows["action"]],
        rows["reward"],
        next_states(rows, state, known, counts),
        rows["terminated"],
        last & ~rows["terminated"],
        offsets_of(np.diff(np.flatnonzero(last), prepend=-1)),
    )


def check_loadable(roles: RoleSql) -> None:
    """Refuses logs that are no episodes of single steps."""
    if roles.codes.episode is None:
        raise InvalidLog(
            "the log is loose transitions, which are no episodes; expected columns of episodes and "
            "steps, or a method that needs only counts"
        )
    if roles.mapping.weight is not None:
        raise InvalidLog(
            f"column {roles.mapping.weight!r} makes a row stand for several, so that they cannot "
            "be loaded step by step; expected a log without it, or a method that needs only counts"
        )


def next_states(
    rows: dict[str, AnyArray], state: IntArray, pairs: Pairs, counts: LabelledCounts
) -> IntArray:
    """Returns where each step led; a step that terminated where others decide leads to the end."""
    decided: BoolArray = np.zeros(pairs.num_states + 1, np.bool_)  # the last place is the END
    decided[known_places("state", decided_texts(counts), pairs.state_labels)] = True
    following = np.append(state, END)[rows["next_state"]]
    at_end = rows["terminated"] & ((following == END) | decided[following])
    if at_end.any():
        (end,) = known_places("state", [joined(counts.end_label())], pairs.state_labels)
        following = np.where(at_end, end, following)
    return following


def decided_texts(counts: LabelledCounts) -> list[str]:
    """The states in which somebody decides."""
    return [joined(counts.states[s]) for s in np.flatnonzero(counts.decided)]


def numbered_steps(database: Any, query: CountQuery) -> dict[str, AnyArray]:
    """All decisions in the order of episodes and steps, codes replaced by their numbers.

    Episodes come in the order in which the rows of the log first name them: what is split in time,
    or read in the order of decisions, rests on that. The tables of codes are those that counting
    left behind.
    """
    codes = query.roles.codes
    here = " AND ".join(f"here.state_{i} = steps.state_{i}" for i in range(len(codes.state)))
    there = " AND ".join(f"there.state_{i} = steps.next_{i}" for i in range(len(codes.state)))
    act = " AND ".join(f"act.action_{i} = steps.action_{i}" for i in range(len(codes.action)))
    marks = {bit: query.marks.get(bit, "false") for bit in (TERMINATED, OBSERVATION)}
    # A decimal has its point already; as text it becomes the nearest double.
    reward = "CAST(CAST(units AS VARCHAR) AS DOUBLE)"
    if not query.units.decimal:
        reward = f"CAST(units AS DOUBLE) / 1e{query.units.scale}::DOUBLE"
    columns = [
        *query.keys,
        f"{marks[TERMINATED]} AS over",
        f"{marks[OBSERVATION]} AS observation",
        f"{reward} AS reward",
        "episode",
        "step",
    ]
    database.execute("SET preserve_insertion_order = true")
    assert codes.episode is not None  # `check_loadable` has seen to it
    first = (
        "SELECT episode, min(place) AS place FROM (SELECT "
        f"{codes.episode.sql} AS episode, row_number() OVER () AS place FROM log) GROUP BY episode"
    )
    steps = database.execute(
        "SELECT here.number AS state, act.number AS action, coalesce(there.number, -1) AS "
        "next_state, over AS terminated, reward, "
        "dense_rank() OVER (ORDER BY first.place) AS episode "
        f"FROM (SELECT {', '.join(columns)} FROM ({query.chained('log', IN_ORDER)})) AS steps "
        f"JOIN ({first}) AS first ON first.episode = steps.episode "
        f"JOIN state_codes here ON {here} JOIN action_codes act ON {act} "
        f"LEFT JOIN state_codes there ON {there} WHERE NOT observation "
        "ORDER BY first.place, steps.step"
    ).fetchnumpy()
    return {name: np.asarray(values) for name, values in steps.items()}
