"""The past of the rows of a log, and what a permutation test makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from surestep._arrays import AnyArray, FloatArray, IntArray
from surestep.checks import shuffling
from surestep.checks.check import Check, GivenLog, Mark
from surestep.model.log import DecisionLog

MOST_BACK = 10  # rows, to find an action that the state does not tell
BLOCKS = (2, 4, 8, 16, 32, 64, 128)  # of the log, each a part of one before
LEAST_IN_BLOCK = 25  # episodes, but for halves
Figures = Mapping[str, float] | None
EDGES = tuple(0.5 * i for i in range(-8, 9))  # standard deviations, of the bars of a picture


def permutation_check(
    code: str,
    given: GivenLog,
    place: IntArray,
    outcome: AnyArray,
    pasts: Sequence[IntArray],
    *,
    seed: int,
    group: IntArray | None = None,
    finer: Sequence[IntArray] = (),
    figures: Figures = None,
) -> Check:
    """Checks whether the past [N] tells an outcome [N], labels or numbers, beyond the group [N].

    Of each episode one row a place [N] is compared, which is the group unless that is given. Of
    several pasts the finest counts that rows have in common; `finer` ones are tested along.
    """
    log = given.log
    seed += given.seed
    rows, apart = shuffling.compared_rows(log, place, seed)
    group = (place if group is None else group)[rows]
    outcome = outcome[rows]
    if outcome.dtype.kind != "f":
        outcome = outcome.astype(np.int64)
    past = shuffling.finest(group, [each[rows] for each in pasts])
    scales = [each[rows] for each in finer]
    found = shuffling.shuffle_test(group, past, outcome, seed=seed, level=given.level, finer=scales)
    if found is None and outcome.dtype.kind == "f" and not above_usual(log).any():
        return Check.unchecked(code, "nothing-varies")
    return check_of(code, found, given.level, apart, figures)


def check_of(
    code: str, found: shuffling.Shuffled | None, level: float, apart: bool, figures: Figures = None
) -> Check:
    """Returns the check of a permutation test, with the shuffles as bars of a picture."""
    if found is None:
        return Check.unchecked(code, "nothing-to-compare")
    failed = found.p_value <= level
    if found.noticed is None and not failed:
        return Check.unchecked(code, "too-small")
    times, _ = np.histogram(np.clip(found.shuffles, EDGES[0], EDGES[-1]), EDGES)
    bars = zip(EDGES, EDGES[1:], times.tolist(), strict=False)
    return Check(
        code=code,
        outcome="failed" if failed else "passed",
        level=level,
        p_value=found.p_value,
        statistic=found.statistic,
        rows=found.rows,
        one_an_episode=apart,
        noticed=found.noticed,
        figures=figures or {},
        picture=tuple(Mark("", low, high, float(many)) for low, high, many in bars),
    )


def steps_before(log: DecisionLog) -> list[IntArray]:
    """Returns the row before [N], finely and less so: 1 + its pair, and 1 + its action.

    At the first step of an episode both are 0. Where the state tells the action before, as where
    it has a column of it, the action is that of the latest row of which it does not.
    """
    pair = shifted(log, log.pair + 1)
    action = shifted(log, log.action.astype(np.int64) + 1)
    earlier = action
    for _ in range(MOST_BACK):
        key = log.state * np.int64(earlier.max(initial=0) + 1) + earlier
        if np.unique(key).size > np.unique(log.state).size:
            return [pair, earlier]
        earlier = shifted(log, earlier)
    return [pair, action]


def shifted(log: DecisionLog, values: IntArray) -> IntArray:
    """Returns the value [N] of the row before; 0 at the first step of an episode."""
    before = np.zeros(log.num_steps, np.int64)
    before[1:] = values[:-1]
    before[log.episode_offsets[:-1]] = 0
    return before


def transitions(log: DecisionLog) -> IntArray:
    """Returns a number [N] for the pair and the next state of each row."""
    return log.pair * np.int64(log.pairs.num_states) + log.next_state


def above_usual(log: DecisionLog) -> IntArray:
    """Returns 1 where a reward [N] is above the mean of its transition by more than rounding."""
    place = np.unique(transitions(log), return_inverse=True)[1]
    mean: FloatArray = np.bincount(place, log.reward) / np.bincount(place)
    room = 1e-9 * max(float(np.abs(log.reward).max()), 1e-300)
    return (log.reward > mean[place] + room).astype(np.int64)


def blocks(log: DecisionLog) -> list[IntArray]:
    """Returns the block of each row [N]: in halves of the episodes, and in shorter blocks.

    A log of one episode is cut by its rows.
    """
    place = shuffling.episode_of_rows(log)
    size = log.num_episodes
    if size == 1:
        place = np.arange(log.num_steps)
        size = log.num_steps
    return [place * n // size for n in BLOCKS if n == BLOCKS[0] or LEAST_IN_BLOCK * n <= size]
