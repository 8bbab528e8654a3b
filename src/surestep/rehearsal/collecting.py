"""From a world to data of the user's kind: how many episodes, how long, and the problem they pose.

Episodes of a world end where the world says so, or after the most steps that one is recorded. Where
a log shows an episode cut off, that is the length of its longest; where every episode was recorded
to its end, ten times as much, so that hardly any is cut off. With counts alone, it is what makes
π_b expect the observed number of steps in the completed estimate. A log of one episode is a stream:
more data means more steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.certificates.episodes import over_at_last
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.rehearsal.completion import completed
from surestep.rehearsal.sources import Data

NEARLY_ALL = 0.99  # of the observed steps: the last ones may take any time to come
MOST_TIMES = 100  # the longest episode, in observed mean lengths
LONGER = 10  # the longest episode, in observed ones, where none was cut off


class DataSize(NamedTuple):
    """An amount of data: so many episodes of at most so many steps."""

    episodes: int
    horizon: int

    def times(self, factor: float) -> DataSize:
        """Returns so many times the data, rounded, and at least one episode of one step."""
        if self.episodes == 1:
            return DataSize(1, max(1, round(factor * self.horizon)))
        return DataSize(max(1, round(factor * self.episodes)), self.horizon)


def size_of(problem: Problem) -> DataSize:
    """The size of the problem's own data."""
    counts = problem.counts
    episodes, steps = int(counts.starts.sum()), int(counts.visits.sum())
    if problem.log is not None:
        longest = int(arrays.run_lengths(problem.log.episode_offsets).max())
        cut_off = not over_at_last(problem.log).all()
        return DataSize(episodes, longest if cut_off else LONGER * longest)
    truth = completed(problem, "self-loop")
    return DataSize(episodes, horizon_for(truth, problem.behavior, steps / episodes))


def horizon_for(mdp: FiniteMDP, policy: Policy, mean_length: float) -> int:
    """The least number of steps within which episodes are expected to take `mean_length` of them.

    All but a hundredth, since the last steps may take any time; 100 mean lengths at the most.
    """
    if not mdp_ends(mdp).any():
        return max(1, round(mean_length))
    pair = arrays.run_owners(mdp.offsets)
    source, weight = mdp.pairs.state[pair], policy.probability[pair] * mdp.probability
    going_on = ~mdp_ends(mdp)
    here, expected, horizon = mdp.initial.copy(), 0.0, 0
    limit = int(np.ceil(MOST_TIMES * mean_length))
    while expected < NEARLY_ALL * mean_length and horizon < limit:
        alive: FloatArray = here * going_on
        expected, horizon = expected + float(alive.sum()), horizon + 1
        here = np.bincount(mdp.successor, alive[source] * weight, mdp.num_states).astype(float)
    return max(1, horizon)


def mdp_ends(mdp: FiniteMDP) -> BoolArray:
    """The states [S] in which an episode is over."""
    rows = (arrays.run_lengths(mdp.offsets) > 0).astype(np.int64)
    over: BoolArray = arrays.run_sums(rows, mdp.pairs.offsets) == 0
    return over


def problem_of(problem: Problem, truth: FiniteMDP, data: Data) -> Problem:
    """The problem that the data pose, on the terms of the given one, and with its known rewards."""
    counts = problem.counts
    logged = counts.rewards
    kept = data.times > 0
    if logged.known and logged.per == "transition":
        kept |= is_stored(counts, truth)
    if logged.per == "transition":
        values = truth.reward[kept] if logged.known else data.earned[kept]
    else:
        values = logged.values if logged.known else arrays.run_sums(data.earned, truth.offsets)
    behavior = problem.behavior
    if behavior.estimated:  # but known, in every world
        behavior = Policy(truth.pairs, behavior.probability)
    collected = Counts(
        truth.pairs,
        arrays.own(arrays.offsets_of(arrays.run_sums(kept.astype(np.int64), truth.offsets))),
        truth.successor[kept],
        data.times[kept],
        LoggedRewards(values, logged.per, logged.known),
        data.starts,
        ends_shown(problem, truth, data.times),
    )
    return Problem(
        counts=collected,
        behavior=behavior,
        discount=problem.discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
        log=data.log,
        support=problem.support,
    )


def is_stored(counts: Counts, truth: FiniteMDP) -> BoolArray:
    """The transitions of the truth [T] that the counts store."""
    size = np.int64(truth.num_states)
    keys = [arrays.run_owners(rows.offsets) * size + rows.successor for rows in (truth, counts)]
    stored: BoolArray = np.isin(keys[0], keys[1])
    return stored


def ends_shown(problem: Problem, truth: FiniteMDP, times: IntArray) -> BoolArray:
    """The ends of episodes that new data show, and those that the user knew without data."""
    counts = problem.counts
    reached, shown = np.zeros(truth.num_states, np.bool_), np.zeros(truth.num_states, np.bool_)
    reached[counts.successor[counts.times > 0]] = True
    shown[truth.successor[times > 0]] = True
    if problem.support is not None:
        shown |= problem.support.ends()
    return counts.terminal & (shown | ~reached)
