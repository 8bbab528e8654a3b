"""Problems at the ends of the scale: no data at all, and as much as one likes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from support.logs import log_of
from surestep import Counts, DecisionLog, Problem
from surestep._arrays import run_owners
from surestep.model.counts import LoggedRewards


def without_data(problem: Problem) -> Problem:
    """The problem before anything was seen: what was known about rewards and ends is known."""
    counts, nothing = problem.counts, np.zeros_like(problem.counts.times)
    rewards = counts.rewards
    if not rewards.known:
        rewards = LoggedRewards(np.zeros_like(rewards.values), rewards.per, False)
    return replace(problem, counts=replace(counts, times=nothing, rewards=rewards), log=None)


def with_one_step(problem: Problem) -> Problem:
    """The problem when its log has one step only: as little as a log can hold."""
    log = problem.log
    step = log.state[0], log.action[0], log.reward[0], log.next_state[0]
    first = log_of(log.pairs, [step], cut=[0])
    return replace(problem, counts=first.counts(), log=first)


def with_more_data(problem: Problem, times: int) -> Problem:
    """The problem with every count multiplied: the estimate stays, to the last bit."""
    counts, rewards = problem.counts, problem.counts.rewards
    if not rewards.known:
        rewards = LoggedRewards(rewards.values * times, rewards.per, False)
    return replace(problem, counts=replace(counts, times=counts.times * times, rewards=rewards))


def with_log(problem: Problem) -> Problem:
    """The problem with a log that has its counts: one episode for every step."""
    counts: Counts = problem.counts
    pairs, reward = counts.pairs, counts.mean_reward()
    transition = np.repeat(np.arange(counts.times.size), counts.times)
    pair, next_state = run_owners(counts.offsets)[transition], counts.successor[transition]
    over = counts.terminal[next_state]
    log = DecisionLog(
        pairs,
        pairs.state[pair],
        pairs.action[pair],
        reward[transition],
        next_state,
        over,
        ~over,
        np.arange(transition.size + 1),
    )
    return replace(problem, counts=log.counts(), log=log)
