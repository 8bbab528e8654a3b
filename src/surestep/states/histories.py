"""The length of histories: as many rows as tell best what comes next, on episodes held out.

The episodes are cut into five parts, in their order. For each of them, the other parts teach the
chances of the next row and of the reward, given the last k rows h_k and the action a, and it
measures how likely its own were:

    ℓ_k = mean over rows of  log p(s' | h_k, a) + log p(r | h_k, a, s').

A history that was rarely seen says little by itself, so that it is as the shorter one that it ends
with is, as far as its own rows do not say otherwise (hierarchical Dirichlet priors: MacKay and Peto
1995): with n rows of the context c, of which n_y have the outcome y,

    p_k(y | c) = (n_y + m · p_{k−1}(y | shorter c)) / (n + m),

down to all outcomes alike. The weight m is the one of a few, up to ∞, that tells the teaching rows
best, each without itself. Rewards are told apart as values, or by tenths where they are many.

Taken is the smallest k whose likelihood is not clearly below the best, by two standard errors of
the difference over episodes. Where one row is enough, longer histories gain nothing on average, so
that one is taken in few logs: simulations are in `tests/states/test_histories.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, run_owners, run_sums
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.labels.histories import Length
from surestep.io.logs.learnt_states import FirstEpisodes
from surestep.io.logs.reading import is_to_be_learnt
from surestep.io.logs.source import LogSource, named_in_errors
from surestep.io.logs.tables import connected
from surestep.io.sql import sql_name
from surestep.model import DecisionLog
from surestep.states.choosing_size import smallest_good
from surestep.states.learning import LEAST_EPISODES, LEAST_ROWS, MOST_ROWS

SHARE = 0.2  # of the episodes choose
PARTS = 5  # of these episodes
LONGEST = 5  # rows that are tried
DEVIATIONS = 2.0  # standard errors: what is not clearly worse
VALUES, TENTHS = 20, 10  # different rewards up to which each is an outcome; else how many classes
WEIGHTS = tuple(4.0**power for power in range(8))  # of a shorter history, beside ∞: 1 … 16,384
DIGITS = 6  # of a likelihood that is told


def choose_history(
    source: LogSource, *, progress: Callable[[int, int], None] | None = None
) -> LogSource:
    """Chooses how many rows make a state from the first episodes; returns the rest, read so.

    A fifth of the episodes choose, or as many as taught states already (`learnt_from`), and are
    left out of what comes back, so that claims about the rest stand. `reading.history` then holds
    the number of rows, and the held-out log-likelihood of each number that was tried.
    """
    reading = source.reading
    if is_to_be_learnt(reading.states_from):
        raise InvalidParameter(
            f"states are to be learnt ({reading.states_from}) before it is chosen how many rows "
            "make a state; expected the log that surestep.states.learn returns"
        )
    rows = replace(reading, history=None, learnt_from=None)
    single = source.again(rows)
    log, episodes = first_episodes(single, reading.learnt_from)
    with named_in_errors(source.table):
        chosen = choice(log, progress)
    return source.again(replace(reading, history=chosen.text, learnt_from=episodes))


def first_episodes(single: LogSource, learnt_from: int | None) -> tuple[DecisionLog, int]:
    """Returns the first episodes of a log, no more than are needed, and how many choose."""
    mapping = single.columns
    if mapping.episode is None or mapping.step is None or mapping.weight is not None:
        raise InvalidLog(
            f"{single.table.name}: how many rows make a state is chosen from whole episodes, but "
            "the log has no columns of episodes and steps, or weights; expected a log of episodes"
        )
    with connected(single.table, single.memory_limit) as database:
        rows, total = database.execute(
            f"SELECT count(*), count(DISTINCT {sql_name(mapping.episode)}) FROM log"
        ).fetchone()
    episodes = learnt_from or min(max(math.ceil(SHARE * total), 1), max(total - 1, 1))
    enough = min(episodes, max(MOST_ROWS * total // max(rows, 1), LEAST_EPISODES))
    stage = FirstEpisodes(mapping, enough)
    table = replace(single.table, preparation=single.table.preparation.then(stage))
    return replace(single, table=table).load().with_outcomes(), episodes


def choice(log: DecisionLog, progress: Callable[[int, int], None] | None = None) -> Length:
    """Returns the number of rows that these episodes suggest, and how likely each number was."""
    if log.num_episodes < LEAST_EPISODES or log.num_steps < LEAST_ROWS:
        raise InvalidLog(
            f"how many rows make a state is to be chosen from {log.num_episodes:,} episodes with "
            f"{log.num_steps:,} rows, expected at least {LEAST_EPISODES} episodes and {LEAST_ROWS} "
            f"rows; give more episodes with {said('learnt_from', '--learnt-from')}, or the number "
            f"of rows with {said('history', '--history')}"
        )
    longest = min(LONGEST, int(np.diff(log.episode_offsets).max()))
    told = np.zeros((longest, log.num_steps))
    part = run_owners(log.episode_offsets) * PARTS // log.num_episodes
    for number in range(PARTS):
        if progress is not None:
            progress(number, PARTS)
        measuring = part == number
        for rows, likelihood in enumerate(log_likelihoods(log, ~measuring, longest)):
            told[rows, measuring] = likelihood[measuring]
    surprises = [run_sums(-each, log.episode_offsets) for each in told]
    means = (round(float(each.mean()), DIGITS) for each in told)
    return Length(1 + smallest_good(surprises, DEVIATIONS), tuple(means))


def log_likelihoods(log: DecisionLog, teaching: BoolArray, longest: int) -> Iterator[FloatArray]:
    """Yields the log-likelihood [N] of what came of each row, given 1, 2, … rows.

    Chances are those that the rows that are `teaching` [N] show.
    """
    following, paid = log.next_state.astype(np.int64), reward_classes(log.reward, teaching)
    context: IntArray = log.pair.astype(np.int64)
    before: IntArray = shifted(log, context + 1)
    where, reward = uniform(following), uniform(paid)
    for _ in range(longest):
        where = interpolated(context, following, where, teaching)
        reward = interpolated(joint(context, following), paid, reward, teaching)
        yield np.log(where) + np.log(reward)
        context = joint(context, before)
        before = shifted(log, before)


def uniform(outcome: IntArray) -> FloatArray:
    """Returns the chance [N] of outcomes that are all alike."""
    return np.full(outcome.size, 1.0 / np.unique(outcome).size)


def interpolated(
    context: IntArray, outcome: IntArray, shorter: FloatArray, teaching: BoolArray
) -> FloatArray:
    """Returns the chance [N] of each outcome in its context; `shorter` is that in a wider one.

    A row that teaches is told without itself, so that it does not count for a small weight m.
    """
    place = np.unique(context, return_inverse=True)[1]
    both = joint(place, outcome)
    times = np.bincount(both[teaching], minlength=both.max() + 1)[both] - teaching
    rows = np.bincount(place[teaching], minlength=place.max() + 1)[place] - teaching
    chances = [shorter, *((times + m * shorter) / (rows + m) for m in WEIGHTS)]
    return max(chances, key=lambda chance: float(np.log(chance[teaching]).sum()))


def joint(one: IntArray, other: IntArray) -> IntArray:
    """Returns a number [N] for each pair of numbers, as small as can be."""
    key = one * np.int64(int(other.max()) + 1) + other
    places: IntArray = np.unique(key, return_inverse=True)[1]
    return places


def shifted(log: DecisionLog, values: IntArray) -> IntArray:
    """Returns the value [N] of the row before; 0 at the first step of an episode."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    before[log.episode_offsets[:-1]] = 0
    return before


def reward_classes(reward: FloatArray, teaching: BoolArray) -> IntArray:
    """Returns the class [N] of each reward: its value, or where there are many its tenth."""
    values, place = np.unique(reward, return_inverse=True)
    if values.size <= VALUES:
        return place.astype(np.int64)
    edges = np.unique(np.quantile(reward[teaching], np.arange(1, TENTHS) / TENTHS))
    return np.searchsorted(edges, reward, side="right").astype(np.int64)
