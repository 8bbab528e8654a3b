"""Ranges that a user declared, held against the data before anything rests on them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from surestep._arrays import affected
from surestep.certificates.refuting import SAME, check_returns, check_values
from surestep.errors import RefutedBounds, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.vocabulary import joined
from surestep.io.logs.loading import STOPPED
from surestep.io.logs.source import LogSource
from surestep.model import DecisionLog, Problem, Statement
from surestep.model.known import Ranges, single_rewards
from surestep.pipeline.terms import Terms
from surestep.planning.ends import refuse_endless


def check_declared(
    terms: Terms,
    problem: Problem,
    counts: LabelledCounts,
    source: LogSource | None,
    log: DecisionLog | None,
) -> None:
    """Refuses what was declared of rewards and returns, where the log says otherwise.

    `log` has the steps of the source over the pairs of the problem, where they were loaded.
    """
    if terms.declared_ranges is not None:
        check_ranges(terms.declared_ranges, counts, source)
    returns = terms.stakes.returns
    if returns is None:
        return
    single = single_rewards(returns, terms.discount)
    earned = dropped_beyond(single, counts, SAME * max(*map(abs, single.running), SAME))
    if earned:
        raise beyond_ranges(earned, single, said("returns", "--returns"))
    if source is not None and counts.episodes.recorded:
        steps = source.load(problem.counts.pairs, counts) if log is None else log
        check_returns(problem, steps, returns, rests=True)
    check_values(problem)


def beyond_ranges(where: str, ranges: Ranges, which: str, others: str = "") -> RefutedBounds:
    """Returns the refusal of ranges that a row exceeds, with the setting that declares them."""
    ends = ranges.statement(declared=True).values
    values = {**ends, "where": where, "which": which, "others": others}
    return RefutedBounds(Statement("rewards-beyond-ranges", values))


def check_ranges(ranges: Ranges, counts: LabelledCounts, source: LogSource | None) -> None:
    """Refuses ranges that a reward of the log exceeds.

    A row that counts leave out may break them too: one cut by a clock is a running step, and of
    one whose end nobody knows, the reward has to lie in one of both.
    """
    rows, unit = counts.transitions, 10**counts.scale
    beyond = np.zeros(rows.terminated.shape, np.bool_)
    for (low, high), over in ((ranges.running, ~rows.terminated), (ranges.ending, rows.terminated)):
        least, most = (Fraction(repr(float(end))) * unit for end in (low, high))
        outside = (rows.least_reward < math.ceil(least)) | (rows.greatest_reward > math.floor(most))
        beyond |= over & outside.astype(np.bool_)
    counted, where = bool(beyond.any()), ""
    if source is not None and (counted or counts.dropped_rewards):
        where = source.first_beyond(*ranges, counted=counted)
    if counted and not where:
        first = int(np.argmax(beyond))
        state, action = counts.states[rows.state[first]], counts.actions[rows.action[first]]
        rewards = [int(end[first]) / unit for end in (rows.least_reward, rows.greatest_reward)]
        where = (
            f"state {joined(state)!r}, action {joined(action)!r}: a step that "
            f"{'ends its episode' if rows.terminated[first] else 'goes on'} earns "
            f"{rewards[0]:g} to {rewards[1]:g}"
        )
    if where := where or dropped_beyond(ranges, counts):
        which = f"{said('running', '--running')}, {said('ending', '--ending')}"
        others = affected(beyond, "transition") if counted else ""
        raise beyond_ranges(where, ranges, which, others)


def dropped_beyond(ranges: Ranges, counts: LabelledCounts, slack: float = 0.0) -> str:
    """Returns what a row earns that counts leave out, where no such step may; empty: none does."""
    for why, ends in counts.dropped_rewards.items():
        may_be = (ranges.running,) if why == STOPPED else ranges
        for reward in ends:
            if not any(low - slack <= reward <= high + slack for low, high in may_be):
                return f"a row that is not counted ({why}) earns {reward:g}"
    return ""


def check_ends_for_certain(problem: Problem) -> None:
    """Refuses a log whose estimate has a π_b that may never end, where nothing is discounted."""
    if problem.single_discount == 1:
        refuse_endless(problem.estimate(), problem.behavior.probability)
