"""Learning states from the first episodes of a log: the rest of it, read with what was learnt."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from surestep._arrays import FloatArray, IntArray, is_number, offsets_of, read_discount
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.labels.bin_rules import number_sql
from surestep.io.logs.checks import first_where
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.learnt_states import PLACE, TAUGHT
from surestep.io.logs.loading import in_time
from surestep.io.logs.missing import LABEL, advice, is_missing, read_missing
from surestep.io.logs.reading import LEARNERS, is_to_be_learnt
from surestep.io.logs.rewards import RewardSql
from surestep.io.logs.roles import RoleSql
from surestep.io.logs.source import LogSource, named_in_errors
from surestep.io.logs.tables import connected
from surestep.io.sql import ROW, sql_name, sql_text
from surestep.states.bins import BinStates
from surestep.states.choosing_size import Rows, returns_of
from surestep.states.learning import Learnt, Method, learn_states

SHARE = 0.2  # of the episodes teach


def learn(
    source: LogSource,
    method: str | None = None,
    *,
    discount: float,
    share: float | None = None,
    size: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LogSource:
    """Learns finite states from the first episodes of a log; returns the rest, read with them.

    Of the columns of the state, those that hold numbers are measurements, and the others stay. The
    method is "tree" (leaves that tell the discounted return from a row on, actions pooled),
    "kmeans" or "bins"; by default what the log was opened with. `share` of the episodes teach
    (0.2), and are left out of what comes back, so that claims about the rest stand. The number of
    leaves, of clusters, or of bins a column is chosen by held-out fit, unless a `size` is given.
    """
    asked = method or source.reading.states_from
    if not isinstance(asked, str) or not is_to_be_learnt(asked):
        raise InvalidParameter(f"states are learnt by {asked!r}, expected {', '.join(LEARNERS)}")
    name, settings = read_method(asked)
    part = settings.get("share", SHARE) if share is None else share
    number = settings.get("size") if size is None else size
    if not (is_number(part) and 0 < part < 1):
        raise InvalidParameter(f"share is {part!r}, expected a number above 0 and below 1")
    gamma = read_discount(discount)

    def teaching(total: int) -> int:
        return min(max(math.ceil(part * total), 1), max(total - 1, 1))

    rows, columns, episodes = teaching_episodes(source, teaching, gamma)
    with named_in_errors(source.table):
        learnt = learn_states(rows, columns, cast(Method, name), size=number, progress=progress)
    return read_with(source, learnt, episodes)


def read_method(text: str) -> tuple[str, dict[str, Any]]:
    """Returns the method and the settings of a text such as 'tree:size=12,share=0.3'."""
    name, colon, rest = text.partition(":")
    settings: dict[str, Any] = {}
    for setting in rest.split(",") if colon else []:
        key, _, value = setting.partition("=")
        try:
            settings[key.strip()] = {"size": int, "share": float}[key.strip()](value)
        except (KeyError, ValueError):
            option = said("states_from", "--states-from")
            raise InvalidParameter(
                f"{option} is {text!r}, expected a method with size=N or share=X, such as "
                "'tree:size=12,share=0.3'"
            ) from None
    return name, settings


def teaching_episodes(
    source: LogSource, number_of: Callable[[int], int], discount: float
) -> tuple[Rows, tuple[str, ...], int]:
    """Returns measurements and returns of the first episodes, their columns, and how many teach.

    `number_of` says how many of all episodes do.
    """
    mapping = source.columns
    if mapping.episode is None or mapping.step is None or mapping.weight is not None:
        raise InvalidLog(
            "states are learnt from whole episodes, but the log has no columns of episodes and "
            "steps, or weights; expected a log of episodes"
        )
    roles = RoleSql.of(mapping, source.types, {})
    columns = [
        *(
            f"({number_sql(name, source.types[name])}) AS m{i}"
            for i, name in enumerate(mapping.state)
        ),
        *(f"{absent(source, name)} AS absent{i}" for i, name in enumerate(mapping.state)),
        f"{RewardSql.of(roles).double} AS reward",
        PLACE,
    ]
    with connected(source.table, source.memory_limit) as database:
        database.execute("SET preserve_insertion_order = true")
        log, episode = in_time(roles, source.table.preparation.changes), sql_name(mapping.episode)
        (total,) = database.execute(f"SELECT count(DISTINCT {episode}) FROM log").fetchone()
        episodes = number_of(total)
        begun = f"SELECT {episode} AS {TAUGHT}, min({ROW}) AS begun FROM {log} GROUP BY {episode}"
        first = f"SELECT {TAUGHT}, row_number() OVER (ORDER BY begun) AS {PLACE} FROM ({begun})"
        answer = database.execute(
            f"SELECT {', '.join(columns)} FROM {log} JOIN ({first}) ON {episode} = {TAUGHT} "
            f"WHERE {PLACE} <= {episodes} AND {roles.decides} "
            f"ORDER BY {PLACE}, {roles.whole(mapping.step)}"
        ).fetchnumpy()
        answer["place"] = answer.pop(PLACE.strip('"'))
        check_nothing_missing(source, database, answer)
    return measurements(answer, mapping, discount), numeric(answer, mapping), episodes


def absent(source: LogSource, column: str) -> str:
    """Returns SQL: nothing is in a column, or what stands for that."""
    nothing = is_missing(column, source.types[column])
    if read_missing(source.reading.missing).get(column) == "label":
        return f"({nothing} OR {sql_name(column)} = {sql_text(LABEL)})"
    return nothing


def check_nothing_missing(source: LogSource, database: Any, answer: dict[str, Any]) -> None:
    """Refuses a measurement that is missing among the rows that teach, with its place.

    A column in which something else is no number either holds labels, and stays.
    """
    for i, name in enumerate(source.columns.state):
        lost = np.asarray(answer[f"absent{i}"], np.bool_)
        usable = np.isfinite(filled(answer[f"m{i}"]))
        if not lost.any() or lost.all() or not (usable | lost).all():
            continue
        place = first_where(source.table, database, absent(source, name), name)
        many = np.count_nonzero(lost)
        others = "" if many == 1 else f"; {many:,} rows that states are learnt from are affected"
        raise InvalidLog(
            f"{place.where}: found {place.value} among numbers, and states are learnt from numbers "
            f"only{advice(name, None, ('drop',))}{others}"
        )


def filled(values: Any) -> FloatArray:
    """Returns numbers [N] with NaN where there is none."""
    numbers: FloatArray = np.ma.filled(np.ma.asarray(values, float), np.nan)
    return numbers


def numeric(answer: dict[str, Any], mapping: ColumnMapping) -> tuple[str, ...]:
    """Returns the columns of the state that hold numbers only."""
    columns = [
        name for i, name in enumerate(mapping.state) if np.isfinite(filled(answer[f"m{i}"])).all()
    ]
    if not columns:
        raise InvalidLog(
            f"no column of the state ({', '.join(mapping.state)}) holds numbers only in the "
            "episodes that states are learnt from; expected measurements, without missing ones"
        )
    return tuple(columns)


def measurements(answer: dict[str, Any], mapping: ColumnMapping, discount: float) -> Rows:
    """Returns the rows that teach, episode by episode."""
    chosen = numeric(answer, mapping)
    places = [mapping.state.index(name) for name in chosen]
    values: FloatArray = np.column_stack([np.asarray(answer[f"m{i}"], float) for i in places])
    place: IntArray = np.asarray(answer["place"], np.int64)
    offsets = offsets_of(np.unique(place, return_counts=True)[1])
    reward = filled(answer["reward"])
    if not np.isfinite(reward).all():
        raise InvalidLog(
            f"column {mapping.reward!r} holds what is no number among the rows that states are "
            "learnt from; expected numbers"
        )
    return Rows(values, returns_of(reward, offsets, discount), offsets)


def read_with(source: LogSource, learnt: Learnt, episodes: int) -> LogSource:
    """Returns the log, read with the states that were learnt, without what taught them.

    Columns of measurements that no bin was made of are no part of the state.
    """
    states, columns = learnt.states, source.columns.by_role()
    if isinstance(states, BinStates):
        changes: dict[str, Any] = {
            "bins": (*source.reading.bins, *states.options()),
            "states_from": None,
        }
        unused = {*states.columns} - {*states.binnings}
        kept = [i for i, name in enumerate(columns["state"]) if name not in unused]
        for role in ("state", "next_state"):
            columns[role] = tuple(columns[role][i] for i in kept if i < len(columns.get(role, ())))
    else:
        changes = {"states_from": json.dumps(states.to_json(), ensure_ascii=False)}
    return source.again(replace(source.reading, learnt_from=episodes, **changes), columns)
