"""The chance to reach unsafe states as a problem of its own.

The episode is over in an unsafe state and pays −1 there; all other steps pay nothing, nothing is
discounted, and only the first N steps count. So its ρ is minus the chance to reach these states,
and planning and claims for any problem hold for it.
"""

from __future__ import annotations

import numpy as np

import surestep._arrays as arrays
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.problem import Problem, Reach

NEVER_TO_ALWAYS = (-1.0, 0.0)  # minus a chance


def reaching(problem: Problem, reach: Reach) -> Problem:
    """Returns the problem of the chance to reach states, from the data of another problem.

    Parameters
    ----------
    problem : Problem
        The data, the behavior policy, and what is known of successors.
    reach : Reach
        The states, and within how many steps.

    Returns
    -------
    Problem
        Its ρ is minus the chance. It has no discount and no signals.

    Examples
    --------
    >>> from surestep.model import Reach, reaching
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    >>> habit = surestep.Policy.uniform(counts)
    >>> care = surestep.Problem(counts=counts, behavior=habit, discount=0.9, value_bounds=(0, 10))
    >>> reaching(care, Reach(np.array([False, True]), within=5)).value_bounds
    (-1.0, 0.0)
    """
    return arrays.altered(
        problem,
        discount=1.0,
        value_bounds=NEVER_TO_ALWAYS,
        unseen="pessimistic",
        signals=(),
        reach=reach._replace(states=arrays.freeze(reach.states)),
    )


def stopped(problem: Problem) -> Problem:
    """Returns the problem of a chance with counts that end in the unsafe states, and pay −1 there.

    The counts leave out decisions in these states. The log keeps all its rows, with reward 0: later
    visits of other pairs are data all the same. A problem without `reach` is returned as it is.
    """
    if problem.reach is None:
        return problem
    counts = problem.counts
    unsafe = problem.reach.states
    state = counts.pairs.state
    kept = ~unsafe[state][arrays.run_owners(counts.offsets)]
    ended = Counts(
        counts.pairs,
        arrays.offsets_of(arrays.run_sums(kept.astype(np.int64), counts.offsets)),
        counts.successor[kept],
        counts.times[kept],
        LoggedRewards(np.where(unsafe[state], -1.0, 0.0), "pair", known=True),
        counts.starts,
        counts.terminal | unsafe,
    )
    log = problem.log
    if log is not None:
        log = arrays.altered(log, reward=np.zeros(log.num_steps))
    return arrays.altered(problem, counts=ended, log=log)
