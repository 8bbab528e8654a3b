"""Rows that had no part in choosing a policy: what exact intervals of its checks are made of."""

from __future__ import annotations

import numpy as np

from surestep.certificates.stitched import Folds, Stitched
from surestep.checks.check import Unjudged
from surestep.errors import CertificateRefused
from surestep.model.log import DecisionLog

# Steps of both folds: with more, intervals take longer and are hardly narrower.
MOST_TO_PLAN, MOST_TO_JUDGE = 30_000, 100_000


def folds_by(judge: Stitched | None, log: DecisionLog | None) -> Folds | Unjudged:
    """Returns the episodes that chose a policy, and those that did not; or why there are none.

    `judge` says how the log was split, None where nothing was held out. Of each part of a large log
    the first episodes are taken, in the order of the log. Bets go by the ratio of both, so it is
    the one that the lengths of the first part lead to expect: rows that judge decide no bet.
    """
    if judge is None or log is None:
        return "nothing-held-out"
    try:
        whole = judge.folds(log)
    except CertificateRefused:
        return "too-few-episodes"
    first = beginning(whole.first, MOST_TO_PLAN)
    second = beginning(whole.second, MOST_TO_JUDGE)
    fit = MOST_TO_JUDGE * whole.first.num_episodes / whole.first.num_steps
    return Folds(first, second, min(whole.second.starts.size, fit) / first.num_episodes)


def beginning(log: DecisionLog, steps: int) -> DecisionLog:
    """Returns the first episodes of a log that have at most so many steps; at least one.

    Where rows of several lie between each other, so many first steps of all.
    """
    if log.order is not None:
        return log.rows(log.order <= np.sort(log.order)[:steps][-1])
    number = int(np.searchsorted(log.episode_offsets[1:], steps, side="right"))
    return log if number == log.num_episodes else log.episodes(slice(max(number, 1)))
