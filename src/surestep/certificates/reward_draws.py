"""What a posterior over models says about rewards: known, seen, or never seen."""

from __future__ import annotations

from typing import Literal

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, refuse_where
from surestep.certificates.drawn import RewardDraws
from surestep.certificates.episodes import counts_like
from surestep.certificates.refuting import (
    check_ends,
    check_observed,
    check_reward_bounds,
    name_of,
)
from surestep.errors import CertificateRefused
from surestep.kernels.posterior import UNSEEN_SHAPE
from surestep.model.counts import Counts
from surestep.model.problem import Problem

RewardModel = Literal["deterministic", "bounded"]

SAME = 1e-9  # relative to the largest reward: rewards this close are the same


def reward_draws(
    problem: Problem, model: RewardModel, low: float | None, high: float | None
) -> RewardDraws:
    """The rewards of drawn models, once data and settings are known to suit each other."""
    counts = problem.counts
    logged = counts.rewards
    per_pair = logged.per == "pair"
    observed = counts.visits if per_pair else counts.times
    settled = observed > 0
    if logged.known:
        settled = ends_left_out(counts) if per_pair else np.ones(observed.size, np.bool_)
    value = logged.values / np.where(logged.known, 1, np.maximum(observed, 1))
    check_observed(problem)
    check_ends(problem)
    bounds = (0.0, 0.0) if low is None or high is None else (float(low), float(high))
    if logged.known or low is None:
        span = 0.0 if all_known(problem) else bounds[1] - bounds[0]
    else:
        span = bounds[1] - bounds[0]
        check_reward_bounds(counts, bounds)
    if model == "bounded" and not logged.known:
        share = np.where(settled, (value - bounds[0]) / span, 0.0).clip(0.0, 1.0) * observed
        shapes = UNSEEN_SHAPE + share, UNSEEN_SHAPE + observed - share
        nothing = np.zeros(0)
        return RewardDraws(
            per_pair, True, *shapes, bounds[0], span, nothing, nothing.astype(np.int64)
        )
    if not logged.known:
        check_deterministic(problem)
    atoms, copies = unseen_atoms(problem, value[settled], span)
    first = np.where(settled, value, np.nan)
    return RewardDraws(per_pair, False, first, first, bounds[0], span, atoms, copies)


def unseen_atoms(problem: Problem, seen: FloatArray, span: float) -> tuple[FloatArray, IntArray]:
    """The rewards that unseen ones are drawn from; none where they are known or have bounds."""
    if span > 0 or all_known(problem):
        return np.zeros(0), np.zeros(0, np.int64)
    if seen.size == 0:
        raise CertificateRefused(
            "no reward was ever observed, so none can be drawn; expected some data, known rewards, "
            "or reward_low and reward_high"
        )
    atoms, copies = np.unique(seen, return_counts=True)
    return atoms, copies


def all_known(problem: Problem) -> bool:
    """Whether the reward of every transition that may come is known, seen or not."""
    counts = problem.counts
    if not counts.rewards.known or counts.rewards.per == "pair":
        return counts.rewards.known
    partial = problem.stored_sizes() < problem.support_sizes()
    return not partial[ends_left_out(counts)].any()


def ends_left_out(counts: Counts) -> BoolArray:
    """The pairs [K] that have a row: not those of known ends of episodes."""
    going_on: BoolArray = ~counts.terminal[counts.pairs.state]
    return going_on


def reward_sentences(
    problem: Problem, model: RewardModel, low: float | None, high: float | None
) -> tuple[str, ...]:
    """What is assumed about rewards, in plain words."""
    counts = problem.counts
    if all_known(problem):
        return ("The rewards are known.",)
    what = counts.rewards.per
    ends = "" if low is None or high is None else f"{float(low)!r} and {float(high)!r}"
    if counts.rewards.known:
        sentences = ["The rewards that are given are known."]
    elif model == "bounded":
        return (
            f"Every reward is one of {ends} (for rewards in between, this is too cautious), and "
            f"the mean of each {what} is a draw from a Beta(½, ½) prior between them.",
        )
    else:
        sentences = [f"The reward of a {what} is always the same, so what was observed is exact."]
    if not ends:
        sentences.append(
            f"The rewards of a {what} never observed are like those that were (Bayesian "
            "bootstrap), so this is no exact posterior."
        )
    else:
        sentences.append(
            f"The reward of a {what} never observed is a draw from between {ends}, where all are "
            "equally likely."
        )
    return tuple(sentences)


def check_deterministic(problem: Problem) -> None:
    """Refuses data in which one transition (or pair) earned different rewards.

    Where the counts hold only sums, the log shows it, if there is one.
    """
    counts = problem.counts
    if counts.rewards.least is None and problem.log is not None:
        counts = counts_like(counts, problem.log, counts.terminal)
    least, greatest = counts.observed_rewards()
    largest = max(np.abs(least).max(initial=0.0), np.abs(greatest).max(initial=0.0))
    refuse_where(
        greatest - least > SAME * float(largest),
        lambda i: (
            f"{name_of(counts, i)} earned {least[i]} and {greatest[i]} in the log, so its reward "
            "is not deterministic; expected rewards='bounded' with reward_low and reward_high"
        ),
        counts.rewards.per,
        CertificateRefused,
    )
