"""Ranges that a user declared, held against the data before anything rests on them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from surestep.certificates.ranges import Ranges, single_rewards
from surestep.certificates.refuting import (
    SAME,
    check_ends,
    check_observed,
    check_returns,
)
from surestep.errors import RefutedBounds, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.label import joined
from surestep.io.logs.groups import UNFINISHED
from surestep.model import Problem
from surestep.pipeline.evidence import LoadedSteps
from surestep.pipeline.terms import Terms
from surestep.planning.ends import refuse_endless


def check_declared(terms: Terms, problem: Problem, steps: LoadedSteps) -> None:
    """Refuses what was declared of rewards and returns, where the log says otherwise.

    Returns are added up where the log has whole episodes, step by step.
    """
    if terms.declared_ranges is not None:
        check_ranges(terms.declared_ranges, steps.counts)
    returns = terms.stakes.returns
    if returns is None:
        return
    single = single_rewards(returns, terms.discount)
    earned = dropped_beyond(single, steps.counts, SAME * max(*map(abs, single.running), SAME))
    if earned:
        raise RefutedBounds(
            f"{earned}, expected {single.running[0]:g} to {single.running[1]:g}, as returns are "
            f"declared: declare wider ones ({said('returns', '--returns')})",
            code="rewards-beyond-ranges",
        )
    if steps.source is not None and steps.counts.episodes.recorded:
        check_returns(problem, steps.log, returns, rests=True)
    check_observed(problem)
    check_ends(problem)


def check_ranges(ranges: Ranges, counts: LabelledCounts) -> None:
    """Refuses ranges that a reward of the log exceeds.

    A row that counts leave out may break them too: one cut by a clock is a running step, and of
    those whose end nobody knows, the least and the greatest reward have to lie in one of both.
    """
    rows, unit = counts.transitions, 10**counts.scale
    beyond = np.zeros(rows.terminated.shape, np.bool_)
    for (low, high), over in ((ranges.running, ~rows.terminated), (ranges.ending, rows.terminated)):
        least, most = (Fraction(repr(float(end))) * unit for end in (low, high))
        outside = (rows.least_reward < math.ceil(least)) | (rows.greatest_reward > math.floor(most))
        beyond |= over & outside.astype(np.bool_)
    where = dropped_beyond(ranges, counts)
    if not beyond.any() and not where:
        return
    if beyond.any():
        first = int(np.argmax(beyond))
        state, action = counts.states[rows.state[first]], counts.actions[rows.action[first]]
        least, most = (int(end[first]) / unit for end in (rows.least_reward, rows.greatest_reward))
        step = "that ends its episode" if rows.terminated[first] else "that goes on"
        where = (
            f"state {joined(state)!r}, action {joined(action)!r}: a step {step} earns {least:g} to "
            f"{most:g}"
        )
    number = int(beyond.sum())
    others = f"; {number:,} of {beyond.size:,} transitions are affected" if number > 1 else ""
    (a, b), (c, d) = ranges
    raise RefutedBounds(
        f"{where}, expected {a:g} to {b:g} where it goes on and {c:g} to {d:g} where it ends: "
        f"declare wider ranges ({said('running', '--running')}, {said('ending', '--ending')})"
        f"{others}",
        code="rewards-beyond-ranges",
    )


def dropped_beyond(ranges: Ranges, counts: LabelledCounts, slack: float = 0.0) -> str:
    """Returns what a row earns that counts leave out, where no such step may; empty: none does."""
    for why, ends in counts.dropped_rewards.items():
        may_be = ranges if why == UNFINISHED else (ranges.running,)
        for reward in ends:
            if not any(low - slack <= reward <= high + slack for low, high in may_be):
                return f"a row that is not counted ({why}) earns {reward:g}"
    return ""


def check_ends_for_certain(problem: Problem) -> None:
    """Refuses a log whose estimate has a π_b that may never end, where nothing is discounted."""
    if problem.single_discount == 1:
        refuse_endless(problem.estimate(), problem.behavior.probability)
