"""Bounds that a user gave, held against the data before anything rests on them."""

from __future__ import annotations

import numpy as np

from surestep.certificates.refuting import (
    check_ends,
    check_observed,
    check_returns,
    check_reward_bounds,
    check_still_earned,
)
from surestep.errors import RefutedBounds
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.label import joined
from surestep.io.logs.source import LogSource
from surestep.model import Problem
from surestep.pipeline.evidence import Steps
from surestep.pipeline.terms import Terms
from surestep.planning.ends import refuse_endless


def check_given_bounds(terms: Terms, problem: Problem) -> None:
    """Refuses bounds of rewards or values that a reward of the data refutes."""
    rewards = terms.known_rewards
    if rewards is not None:
        check_reward_bounds(problem.counts, rewards)
    if terms.value_bounds is not None or rewards is not None or terms.declared_values is not None:
        check_observed(problem, rewards)
        check_ends(problem)


def check_ends_for_certain(problem: Problem) -> None:
    """Refuses a log whose estimate has a π_b that may never end, where nothing is discounted."""
    if problem.single_discount == 1:
        refuse_endless(problem.estimate(), problem.behavior.probability)


def check_said_of_episodes(terms: Terms, problem: Problem, steps: Steps) -> None:
    """Refuses what was said of whole episodes, where the log says otherwise.

    Returns are added up where the log has whole episodes, step by step.
    """
    bounds, source = terms.return_bounds, steps.source
    if terms.reward_at_end is not None:
        check_paid_at_end(terms.reward_at_end, steps.counts, source)
    if bounds is None or source is None or source.columns.episode is None:
        return
    if source.columns.weight is None:
        check_returns(problem, steps.log, bounds)
        check_still_earned(problem, steps.log, bounds)


def check_paid_at_end(
    bounds: tuple[float, float], counts: LabelledCounts, source: LogSource | None
) -> None:
    """Refuses a reward on the way, and one at an end that is outside of the bounds."""
    rows, unit = counts.transitions, 10**counts.scale
    paid = (rows.least_reward != 0) | (rows.greatest_reward != 0)
    on_the_way = np.flatnonzero(paid & ~rows.terminated)
    if on_the_way.size:
        first = int(on_the_way[0])
        where = "" if source is None else source.paid_on_the_way()
        if not where:
            state, action = counts.states[rows.state[first]], counts.actions[rows.action[first]]
            where = f"a step of state {joined(state)!r}, action {joined(action)!r}"
        number = on_the_way.size
        raise RefutedBounds(
            f"{where} earns something, but does not end its episode; expected 0 there, since "
            "reward_at_end says that an episode pays once, at its end; "
            f"{number:,} of {paid.size:,} transitions {'is' if number == 1 else 'are'} affected",
            code="paid-before-end",
        )
    low, high = bounds
    ends = rows.terminated
    least = min((int(reward) for reward in rows.least_reward[ends]), default=0) / unit
    most = max((int(reward) for reward in rows.greatest_reward[ends]), default=0) / unit
    if ends.any() and not low <= least <= most <= high:
        raise RefutedBounds(
            f"ends of episodes pay {least:g} to {most:g}, expected {low:g} to {high:g}: wider "
            "bounds as reward_at_end",
            code="endings-beyond-bounds",
        )
