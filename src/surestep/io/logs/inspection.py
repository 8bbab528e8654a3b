"""Inspects a log: counts its rows, pairs, rewards and episodes, and lists suspicious rows.

Rows that counting would refuse are reported with their place, and left out of the figures.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label
from surestep.io.logs.findings import OF_LABELS, Look, Suspicion, no_row
from surestep.io.logs.loading import number_labels
from surestep.io.logs.source import LogSource
from surestep.io.logs.tables import connected

REWARD_BINS = 24
LENGTH_BINS = 24
FAR = 10  # interquartile ranges beyond the quartiles: a value further out may be an outlier
RARE = 1000  # outliers are at most one row in 1,000, or a single row


class Rewards(NamedTuple):
    """The distribution of the finite rewards; each quartile is a reward of the log."""

    number: int
    lowest: float
    quartiles: tuple[float, float, float]
    highest: float
    low: float  # the lower edge of the first bin
    high: float  # the upper edge of the last bin; rewards beyond the bins are outliers
    bins: tuple[int, ...]


class EpisodeLengths(NamedTuple):
    """The number of episodes, how they end, and how many rows they have."""

    number: int
    terminated: int
    truncated: int
    without_end: int
    lowest: int
    median: int
    highest: int
    edges: tuple[float, ...]  # edges of the bins of lengths, halfway between whole numbers
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LogFacts:
    """The facts and suspicions about a log."""

    rows: int
    states: tuple[Label, ...]  # in which a row decides, rising
    actions: tuple[Label, ...]  # rising
    state: arrays.IntArray  # [K] the pairs of all rows, rising
    action: arrays.IntArray  # [K]
    taken: arrays.IntArray  # [K] rows, at least 1
    visits: arrays.IntArray  # [K] rows with a known next state or end
    only_reached: int  # next states in which no row decides
    episodes: EpisodeLengths | None
    rewards: Rewards | None  # None where no reward is a number
    suspicions: tuple[Suspicion, ...]
    binnings: Mapping[str, Binning]  # by column


def inspect_log(source: LogSource) -> LogFacts:
    """Reads every row of a log; returns its facts and suspicions."""
    with connected(source.table, source.memory_limit) as database:
        look = Look(source.table, source.roles(database), database)
        rows, all_usable = look.read()
        if rows == 0:
            raise no_row(source.table)
        states, actions, pairs = count_pairs(look)
        rewards = reward_facts(look)
        unusable = [] if all_usable else [*look.unusable()]
        # Where there is no reward, there is no outlier, whatever the ends.
        low, high = (0.0, 0.0) if rewards is None else (rewards.low, rewards.high)
        following = look.roles.names("next") if look.roles.next_state else []
        only_reached = 0
        if following:
            known = " AND ".join(f"{name} IS NOT NULL" for name in following)
            (only_reached,) = database.execute(
                f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(following)} FROM seen "
                f"WHERE {known} EXCEPT SELECT {', '.join(look.roles.names('state'))} FROM visited)"
            ).fetchone()
        return LogFacts(
            rows,
            states,
            actions,
            **pairs,
            only_reached=only_reached,
            episodes=episode_lengths(look),
            rewards=rewards,
            suspicions=(*unusable, *look.ask(look.of_episodes() | OF_LABELS, low=low, high=high)),
            binnings=look.roles.binnings,
        )


def count_pairs(
    look: Look,
) -> tuple[tuple[Label, ...], tuple[Label, ...], dict[str, arrays.IntArray]]:
    """Returns labels of states and actions, and the state, action, rows and visits of pairs [K].

    Counting drops a last row without an end or a next state, so it is no visit here either.
    """
    state = look.roles.names("state")
    action = look.roles.names("action")
    rows = "seen LEFT JOIN episodes USING (episode)"
    led = "seen.terminated OR step < high"
    if look.roles.mapping.next_state:
        rows = "seen"
        led = "terminated OR next_0 IS NOT NULL"
    known = " AND ".join(f"{name} IS NOT NULL" for name in (*state, *action))
    look.database.execute(
        f"CREATE TEMP TABLE visited AS SELECT {', '.join([*state, *action])}, count(*) AS rows, "
        f"count(*) FILTER ({led}) AS visits, min(row) AS row FROM {rows} WHERE {known} GROUP BY ALL"
    )
    distinct = "SELECT DISTINCT {} FROM visited"
    here = ", ".join(state)
    act = ", ".join(action)
    states = number_labels(look.database, "state", look.roles.state, distinct.format(here))
    actions = number_labels(look.database, "action", look.roles.action, distinct.format(act))
    pairs = look.database.execute(
        "SELECT here.number AS state, act.number AS action, sum(rows)::BIGINT AS taken, "
        f"sum(visits)::BIGINT AS visits FROM visited JOIN state_codes here USING ({here}) "
        f"JOIN action_codes act USING ({act}) GROUP BY ALL ORDER BY ALL"
    ).fetchnumpy()
    return states, actions, {name: arrays.own(x.astype(np.int64)) for name, x in pairs.items()}


def episode_lengths(look: Look) -> EpisodeLengths | None:
    """Returns how many rows episodes have, in bins of equal width; None without episodes."""
    rows = look.database.execute(
        "SELECT rows, count(*), count_if(terminated), count_if(truncated AND NOT terminated), "
        "count_if(NOT terminated AND NOT truncated) FROM episodes GROUP BY rows ORDER BY rows"
    ).fetchall()
    if not rows:
        return None
    lengths, times, terminated, truncated, without_end = np.array(rows, np.int64).T
    upto = np.cumsum(times)
    low, high = int(lengths[0]), int(lengths[-1])
    median = int(lengths[np.searchsorted(2 * upto, upto[-1])])
    width = -(-(high - low + 1) // LENGTH_BINS)
    edges = np.arange(low - 0.5, high + width, width)
    bins, _ = np.histogram(lengths, edges, weights=times)
    return EpisodeLengths(
        number=int(times.sum()),
        terminated=int(terminated.sum()),
        truncated=int(truncated.sum()),
        without_end=int(without_end.sum()),
        lowest=low,
        median=median,
        highest=high,
        edges=tuple(edges.tolist()),
        histogram=tuple(bins.astype(int).tolist()),
    )


def reward_facts(look: Look) -> Rewards | None:
    """Returns the distribution of rewards in bins of equal width; a few outliers lie beyond them.

    The quartile of share q is the smallest reward that is at least as large as a share q of all.
    """
    look.database.execute(
        "CREATE TEMP TABLE rewards AS SELECT reward, count(*) AS times FROM seen "
        "WHERE reward IS NOT NULL GROUP BY reward"
    )
    marks = ", ".join(f"min(reward) FILTER (4 * upto >= {i} * number)" for i in (1, 2, 3))
    number, lowest, highest, *quartiles = look.database.execute(
        f"SELECT any_value(number)::BIGINT, min(reward), max(reward), {marks} FROM (SELECT reward, "
        "sum(times) OVER (ORDER BY reward) AS upto, sum(times) OVER () AS number FROM rewards)"
    ).fetchone()
    if number is None:
        return None
    low = lowest
    high = highest
    reach = FAR * (quartiles[2] - quartiles[0])
    if math.isfinite(reach):
        inside = between(quartiles[0] - reach, quartiles[2] + reach)
        near = look.database.execute(
            f"SELECT min(reward), max(reward), sum(times) FROM rewards WHERE {inside}"
        ).fetchone()
        if number - near[2] <= max(1, number // RARE):
            low, high = near[:2]
    bins = 1
    place = "0"
    if 0 < high - low < math.inf:
        bins = REWARD_BINS
        share = f"(reward - {low!r}::DOUBLE) / {high - low!r}::DOUBLE"
        place = f"least(floor({share} * {bins}), {bins - 1})::INTEGER"
    times = dict(
        look.database.execute(
            f"SELECT {place}, sum(times)::BIGINT FROM rewards WHERE {between(low, high)} GROUP BY 1"
        ).fetchall()
    )
    heights = tuple(times.get(i, 0) for i in range(bins))
    return Rewards(number, lowest, tuple(quartiles), highest, low, high, heights)


def between(low: float, high: float) -> str:
    """Returns SQL that is true if a reward is in a range."""
    return f"reward BETWEEN {low!r}::DOUBLE AND {high!r}::DOUBLE"
