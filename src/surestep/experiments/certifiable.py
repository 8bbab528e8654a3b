"""Facts of a benchmark's data for certifiers: what a user would know, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, offsets_of, run_owners, run_sums
from surestep.certificates.known import Known
from surestep.certificates.named import told_to
from surestep.environments import Benchmark
from surestep.model import Counts, LoggedRewards, Problem, ProblemBatch


def known_to_certifiers(benchmark: Benchmark, problems: ProblemBatch, index: int) -> Problem:
    """The problem of one data set, without what only the true model shows.

    Rewards are known, also of what was never seen: as a table of pairs where the experiment has
    one, else as what entering a state pays. Which successors are possible is not known: only those
    that were seen are stored, or all states.
    """
    counts, mdp = problems.counts, benchmark.mdp
    times, starts = counts.times[index], counts.starts[index]
    prize = prizes(benchmark)
    if benchmark.known_rewards is not None or prize is None:
        seen = times > 0
        rewards = counts.rewards
        if rewards.per == "transition":
            rewards = LoggedRewards(rewards.values[seen], "transition", True)
        offsets = offsets_of(run_sums(seen.astype(np.int64), mdp.offsets))
        given = Counts(
            mdp.pairs, offsets, mdp.successor[seen], times[seen], rewards, starts, counts.terminal
        )
    else:
        given = with_all_successors(benchmark, times, starts, prize, counts.terminal)
    return Problem(
        counts=given,
        behavior=benchmark.behavior,
        discount=benchmark.discount,
        value_bounds=benchmark.value_bounds,
    )


def told_of_log(
    kind: type[Any], benchmark: Benchmark, problem: Problem, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the settings that a user would give a certifier of the log of a benchmark.

    These are bounds: of single returns where the kind rests on them, of single rewards where
    rewards are only observed. Rewards that vary in the log are said to be noisy.
    """
    rewards, every = problem.counts.rewards, benchmark.best_model.mdp.reward
    bounds = float(min(0.0, every.min())), float(max(0.0, every.max()))
    known = Known(
        rewards_seen=None if rewards.known else bounds,
        rewards_vary=varies(rewards),
        single_returns=benchmark.return_bounds or benchmark.value_bounds,
    )
    return told_to(kind, known, given)


def varies(rewards: LoggedRewards) -> bool:
    """Tells whether one transition earned different rewards."""
    if rewards.least is None or rewards.greatest is None:
        return False
    return bool((rewards.least != rewards.greatest).any())


def prizes(benchmark: Benchmark) -> FloatArray | None:
    """Returns the reward for entering each state [S], where rewards depend on that alone, or None.

    A state that nothing leads to pays nothing.
    """
    mdp = benchmark.mdp
    prize = np.zeros(mdp.num_states)
    prize[mdp.successor] = mdp.reward
    return prize if (prize[mdp.successor] == mdp.reward).all() else None


def with_all_successors(
    benchmark: Benchmark, times: IntArray, starts: IntArray, prize: FloatArray, over: BoolArray
) -> Counts:
    """Counts in which every pair has all states as successors, each with its known reward."""
    mdp = benchmark.mdp
    pairs, states = mdp.pairs, mdp.num_states
    goes_on = ~over[pairs.state]
    table = np.zeros((pairs.num_pairs, states), np.int64)
    table[run_owners(mdp.offsets), mdp.successor] = times
    successor = np.tile(np.arange(states, dtype=np.int32), int(goes_on.sum()))
    return Counts(
        pairs,
        offsets_of(np.where(goes_on, states, 0)),
        successor,
        table[goes_on].ravel(),
        LoggedRewards(prize[successor], "transition", True),
        starts,
        over,
    )
