"""The content of a log, and rows of it that look wrong: found by DuckDB, shown and not refused.

Rows that counting would refuse are reported with their place and left out of what they would spoil.
Memory grows with the distinct pairs and episodes, never with the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray, freeze
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label
from surestep.io.logs.checks import no_row
from surestep.io.logs.episodes import (
    Episodes,
    episode_facts,
    episode_suspicions,
    sum_up_episodes,
)
from surestep.io.logs.look import EXAMPLES, Look, Suspicion, code_text, create_view
from surestep.io.logs.rewards import RewardSql
from surestep.io.logs.roles import Check
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import connected
from surestep.io.sql import sql_text

REWARD_BINS = 24
FAR = 10  # interquartile ranges beyond the quartiles
RARE = 1000  # at most one row in so many, or a single one, may be called an outlier


class Rewards(NamedTuple):
    """The rewards that are finite numbers; quartiles are values of the log."""

    number: int
    lowest: float
    quartiles: tuple[float, float, float]
    highest: float
    low: float  # of the first bin
    high: float  # of the last bin; values beyond are outliers
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LogFacts:
    """The facts and suspicions that one look at a log found."""

    rows: int
    states: tuple[Label, ...]  # in which someone decided, rising
    actions: tuple[Label, ...]  # rising
    state: IntArray  # [K] the pairs of all rows, rising
    action: IntArray  # [K]
    taken: IntArray  # [K] rows, at least 1
    visits: IntArray  # [K] rows that are known to lead somewhere
    unfinished: int  # rows of which nobody knows where they led
    only_reached: int  # states that are some row's next state, but in which nobody decided
    episodes: Episodes | None
    rewards: Rewards | None  # None where no reward is a number
    suspicions: tuple[Suspicion, ...]
    binnings: Mapping[str, Binning]  # by column


def inspect_log(source: LogSource) -> LogFacts:
    """Looks at every row of a log; rewards are held against the bounds, if any are given."""
    with connected(source.table, source.memory_limit) as database:
        look = Look(source.table, source.roles(database), database)
        rows, suspicions = unusable_rows(look)
        create_view(look)
        episodes = None
        if source.columns.episode is not None:
            sum_up_episodes(look)
            episodes = episode_facts(look)
            suspicions += episode_suspicions(look)
        count_visits(look)
        states, actions, pairs = pairs_of_rows(look)
        rewards, outliers = reward_facts(look)
        suspicions += [outliers, states_seen_once(look)]
        return LogFacts(
            rows,
            states,
            actions,
            *(freeze(pairs[:, 0]), freeze(pairs[:, 1]), freeze(pairs[:, 2]), freeze(pairs[:, 3])),
            int(look.one("SELECT coalesce(sum(rows - visits), 0) FROM visited")[0]),
            states_only_reached(look),
            episodes,
            rewards,
            tuple(suspicion for suspicion in suspicions if suspicion is not None),
            look.roles.binnings,
        )


def unusable_rows(look: Look) -> tuple[int, list[Suspicion | None]]:
    """Counts the rows, and finds those with a value that counting refuses, by column."""
    checks = look.roles.checks(RewardSql.of(look.roles).is_number)
    counts = "".join(f", count(*) FILTER ({check.condition})" for check in checks)
    rows, *times = look.one(f"SELECT count(*){counts} FROM log")
    if rows == 0:
        raise no_row(look.table)
    return rows, [
        unusable(look, check, number) for check, number in zip(checks, times, strict=True) if number
    ]


def unusable(look: Look, check: Check, number: int) -> Suspicion:
    """Returns the rows with a value that counting refuses, by a check."""
    examples = look.examples(check.condition, look.roles.text(check.column))
    return Suspicion(
        "unusable value",
        number,
        "row",
        f"without {check.expected} in column {check.column!r}",
        check.expected,
        examples,
    )


# ---- coverage ---------------------------------------------------------------------------------


def count_visits(look: Look) -> None:
    """Creates the table `visited`: each pair with its rows, and those that lead somewhere.

    Counting drops the last row of an episode that goes on elsewhere, so it is no visit here either.
    """
    labels = f"{look.labels('state')}, {look.labels('action')}"
    if look.roles.mapping.next_state:
        rows, led = "seen", "terminated OR next_state_0 IS NOT NULL"
    else:
        rows, led = "seen LEFT JOIN episodes USING (episode)", "seen.terminated OR step < high"
    look.database.execute(
        f"CREATE TEMP TABLE visited AS SELECT {labels}, count(*) AS rows, "
        f"count(*) FILTER ({led}) AS visits FROM {rows} "
        f"WHERE {look.known('state', 'action')} GROUP BY ALL"
    )


def pairs_of_rows(
    look: Look,
) -> tuple[tuple[Label, ...], tuple[Label, ...], IntArray]:
    """Returns the labels of states and actions, and [K, 4] their numbers, rows and visits."""
    codes, width = look.roles.codes, len(look.roles.mapping.state)
    times = dict[tuple[Label, Label], tuple[int, int]]()
    for *texts, rows, visits in look.all("FROM visited"):
        parts = zip((*codes.state, *codes.action), texts, strict=True)
        named = tuple(code.label(text) for code, text in parts)
        before = times.get((named[:width], named[width:]), (0, 0))  # codes may share a label
        times[named[:width], named[width:]] = before[0] + rows, before[1] + visits
    states = tuple(sorted({state for state, _ in times}))
    actions = tuple(sorted({action for _, action in times}))
    state, action = ({label: i for i, label in enumerate(labels)} for labels in (states, actions))
    table = np.array([(state[s], action[a], *times[s, a]) for s, a in sorted(times)], np.int64)
    return states, actions, table.reshape(-1, 4)


def states_only_reached(look: Look) -> int:
    """Counts the states that are a next state of some row, while nobody decided in them."""
    if not look.roles.mapping.next_state:
        return 0
    reached = look.labels("next_state")
    known = look.known("next_state")
    return int(
        look.one(
            f"SELECT count(*) FROM (SELECT DISTINCT {reached} FROM seen WHERE {known} "
            f"EXCEPT SELECT {look.labels('state')} FROM visited)"
        )[0]
    )


def states_seen_once(look: Look) -> Suspicion | None:
    """States with a single decision."""
    mapping, text = look.roles.mapping, look.roles.text
    states = look.labels("state")
    once = f"SELECT {states} FROM visited GROUP BY ALL HAVING sum(rows) = 1"
    times = look.one(f"SELECT count(*) FROM ({once})")[0]
    if not times:
        return None
    here = " OR ".join(
        " AND ".join(
            f"{code_text(code)} = {sql_text(part)}"
            for code, part in zip(look.roles.codes.state, label, strict=True)
        )
        for label in look.all(f"{once} ORDER BY {states} LIMIT {EXAMPLES}")
    )
    decided = " AND ".join(code_text(code) + " IS NOT NULL" for code in look.roles.codes.action)
    label = " || ', ' || ".join(text(name) for name in mapping.state)
    return Suspicion(
        "state seen once",
        times,
        "state",
        "seen in a single row (a typing error, or a state too fine to learn from)",
        None,
        look.examples(f"({here}) AND {decided}", label),
    )


# ---- rewards ----------------------------------------------------------------------------------


def suspicious_rewards(
    look: Look, kind: str, bounds: tuple[float, float], says: str
) -> Suspicion | None:
    """Returns the rows with rewards outside bounds."""
    condition = f"NOT ({between(*bounds, look.reward)})"
    times = look.one(f"SELECT count(*) FILTER ({condition}) FROM log")[0]
    value = look.roles.text(look.roles.mapping.reward)
    examples = look.examples(condition, value) if times else ()
    return Suspicion(kind, times, "row", says, None, examples) if times else None


def between(low: float, high: float, value: str = "reward") -> str:
    """Returns SQL: an expression lies between two numbers, both included."""
    return f"({value}) BETWEEN {double(low)} AND {double(high)}"


def double(value: float) -> str:
    """Returns a number as SQL, to its last bit."""
    return f"{float(value)!r}::DOUBLE"


def reward_facts(look: Look) -> tuple[Rewards | None, Suspicion | None]:
    """Returns how rewards are spread, and those that lie far from all others, if they are few.

    The quartile of share q is the smallest reward that is at least as large as a share q of all.
    """
    number, lowest, highest = look.one("SELECT count(reward), min(reward), max(reward) FROM seen")
    if number == 0:
        return None, None
    look.database.execute(
        "CREATE TEMP TABLE rewards AS SELECT reward, count(*) AS times FROM seen "
        "WHERE reward IS NOT NULL GROUP BY reward"
    )
    marks = ", ".join(f"min(reward) FILTER (4 * upto >= {i} * {number})" for i in (1, 2, 3))
    quartiles = look.one(
        f"SELECT {marks} FROM (SELECT reward, sum(times) OVER (ORDER BY reward) AS upto "
        "FROM rewards)"
    )
    low, high, outliers = lowest, highest, None
    reach = FAR * (quartiles[2] - quartiles[0])
    if math.isfinite(reach):
        inside = between(quartiles[0] - reach, quartiles[2] + reach)
        least, most = look.one(f"SELECT min(reward), max(reward) FROM rewards WHERE {inside}")
        says = f"with a reward far from almost all others, which are {least:g} to {most:g}"
        far = suspicious_rewards(look, "outlier", (least, most), says)
        if far is not None and far.times <= max(1, number // RARE):
            low, high, outliers = least, most, far
    bins = binned_rewards(look, low, high)
    return Rewards(number, lowest, tuple(quartiles), highest, low, high, bins), outliers


def binned_rewards(look: Look, low: float, high: float) -> tuple[int, ...]:
    """Counts the rewards in each of some bins of equal width from `low` to `high`."""
    inside = between(low, high)
    if not 0 < high - low < math.inf:
        return (int(look.one(f"SELECT sum(times) FROM rewards WHERE {inside}")[0]),)
    place = f"floor((reward - {double(low)}) / {double(high - low)} * {REWARD_BINS})"
    times = dict(
        look.all(
            f"SELECT least({place}, {REWARD_BINS - 1})::INTEGER AS bin, sum(times)::BIGINT "
            f"FROM rewards WHERE {inside} GROUP BY bin"
        )
    )
    return tuple(times.get(i, 0) for i in range(REWARD_BINS))
