"""A check that the past tells no more than the present: of next states, rewards and actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.checks.check import Check, CheckCode, Mark
from surestep.checks.shuffling import Shuffled, compared_rows, finest, label_test, number_test
from surestep.model.log import DecisionLog

EPISODES_A_PART = 50  # of the log, in its order: actions are compared within parts
MOST_PARTS = 10
MOST_BACK = 10  # rows, to find an action that the state does not tell
EDGES = tuple(0.5 * i for i in range(-8, 9))  # standard deviations, of the bars of a picture


def next_state_check(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the step before tells the next state, beyond the state and the action.

    Markov: P(s_{t+1} | s_t, a_t, s_{t−1}, a_{t−1}) = P(s_{t+1} | s_t, a_t). The first step of an
    episode has "none" before it. Where whole steps would be told apart too finely, actions are.
    """
    rows, apart = compared_rows(log, log.pair, seed)
    outcome = log.next_state[rows].astype(np.int64)
    group = log.pair[rows]
    before = finest(group, [step[rows] for step in steps_before(log)])
    tested = label_test(group, before, outcome, seed=seed, level=level)
    return check_of("markov-next-state", tested, level, apart)


def reward_check(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the step before tells the reward, beyond state, action and next state."""
    rows, apart = compared_rows(log, log.pair, seed)
    group = transitions(log)[rows]
    before = finest(group, [step[rows] for step in steps_before(log)])
    tested = number_test(group, before, log.reward[rows], seed=seed, level=level)
    return reward_check_of("markov-reward", tested, log, level, apart)


def behavior_check(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the step before tells the action, beyond the state.

    π_b sees only the state: π(a_t | s_t, s_{t−1}, a_{t−1}, r_{t−1}) = π_b(a_t | s_t). The reward
    before counts as more or less than what is usual after its state, action and next state. Actions
    are compared within parts of the log, so that a logger that slowly changes its mind, without
    seeing more than the state, is none that remembers.
    """
    rows, apart = compared_rows(log, log.state.astype(np.int64), seed)
    parts = min(max(log.num_episodes // EPISODES_A_PART, 1), MOST_PARTS)
    part = episode_of_rows(log) * parts // log.num_episodes
    group = part[rows] * np.int64(log.pairs.num_states) + log.state[rows]
    paid = shifted(log, above_usual(log))
    steps = [past for step in steps_before(log) for past in (2 * step + paid, step)]
    past = finest(group, [step[rows] for step in steps])
    action = log.action[rows].astype(np.int64)
    tested = label_test(group, past, action, seed=seed, level=level)
    return check_of("behavior-memory", tested, level, apart)


def check_of(
    code: CheckCode,
    found: Shuffled | None,
    level: float,
    one_an_episode: bool,
    figures: Mapping[str, float] = MappingProxyType({}),
) -> Check:
    """Returns what a permutation test found, with the shuffles as bars of a picture."""
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
        one_an_episode=one_an_episode,
        noticed=found.noticed,
        figures=dict(figures),
        picture=tuple(Mark("", low, high, float(many)) for low, high, many in bars),
    )


def reward_check_of(
    code: CheckCode, found: Shuffled | None, log: DecisionLog, level: float, one_an_episode: bool
) -> Check:
    """Returns the same for rewards: where each kind of step always pays the same, none can vary."""
    if found is None and not above_usual(log).any():
        return Check.unchecked(code, "nothing-varies")
    return check_of(code, found, level, one_an_episode)


def steps_before(log: DecisionLog) -> list[IntArray]:
    """Returns the row before [N], finely and less so: 1 + its pair, and 1 + its action.

    At the first step of an episode both are 0. Where the state tells the action before, as where
    it has a column of it, the action is that of the latest row of which it does not.
    """
    action = shifted(log, log.action.astype(np.int64) + 1)
    earlier = action
    for _ in range(MOST_BACK):
        if not is_told(log.state, earlier):
            return [shifted(log, log.pair + 1), earlier]
        earlier = shifted(log, earlier)
    return [shifted(log, log.pair + 1), action]


def is_told(state: IntArray, past: IntArray) -> bool:
    """Tells whether all rows of a state [N] have the same past [N]."""
    key = state * np.int64(past.max(initial=0) + 1) + past
    return np.unique(key).size == np.unique(state).size


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


def episode_of_rows(log: DecisionLog) -> IntArray:
    """Returns the episode of each row [N]."""
    return np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
