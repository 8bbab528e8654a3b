"""Certainty about the advantage of an action: an interval from the steps that the log shows.

Let V be the values of π_I, taken as known, and Y = r + γ V(s') what one step of a pair is worth.
The advantage of action a in state s is the mean of Y there, less the mean over the actions of π_b:

    A(s,a) = Σ_b c_b · m(s,b),  c_b = 1[b = a] − π_b(b|s).

Each mean m has n steps behind it, and two more that nobody saw, one at the least and one at the
greatest Y of the state, or of the log where the state shows no two that differ: so two equal steps
leave doubt, and a pair never tried is anywhere between (for two outcomes, the interval of Agresti
and Coull). With the variances v and numbers n of all,

    A ± z · √(Σ_b c_b² v_b / n_b).

It is an approximation for readers, not a guarantee, and doubts about V itself are left out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from surestep._arrays import FloatArray, freeze, run_owners, run_sums
from surestep.model import Counts, Problem

SMALLEST_TAIL = 1e-300  # below, quantiles are not finite


def advantage_intervals(
    problem: Problem, value: FloatArray, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Returns the ends [K] of 1 − δ intervals for all advantages, from the data of the problem.

    `value` [S] is that of π_I.
    """
    counts, pairs = problem.counts, problem.counts.pairs
    pair, times = run_owners(counts.offsets), counts.times.astype(np.float64)
    reward, least, greatest = reward_moments(counts)
    after = problem.single_discount * value[counts.successor]
    worth, spread = reward + after, np.maximum((greatest - reward) * (reward - least), 0.0)
    lowest, highest = ends_by_state(counts, least + after, greatest + after)
    low, high = lowest[pairs.state], highest[pairs.state]
    number = run_sums(times, counts.offsets) + 2
    mean = (run_sums(times * worth, counts.offsets) + low + high) / number
    squares = run_sums(times * ((worth - mean[pair]) ** 2 + spread), counts.offsets)
    variance = (squares + (low - mean) ** 2 + (high - mean) ** 2) / number
    # Σ_b c_b² v_b/n_b = Σ_b π_b² v_b/n_b + (1 − 2π_a) v_a/n_a.
    behavior, doubt = problem.behavior.probability, variance / number
    usual = run_sums(behavior * mean, pairs.offsets)[pairs.state]
    total = run_sums(behavior**2 * doubt, pairs.offsets)[pairs.state] + (1 - 2 * behavior) * doubt
    half = -float(ndtri(max(delta / 2, SMALLEST_TAIL))) * np.sqrt(np.maximum(total, 0.0))
    return freeze(mean - usual - half), freeze(mean - usual + half)


def reward_moments(counts: Counts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns the mean reward of each transition [T], and the least and the greatest one.

    Rewards between a and b with mean m have a variance of at most (b − m)(m − a). Where single
    rewards are not told, they are taken to be their mean.
    """
    rewards, pair = counts.rewards, run_owners(counts.offsets)
    visits = counts.visits[pair] if rewards.per == "pair" else counts.times
    place = pair if rewards.per == "pair" else np.arange(pair.size)
    mean: FloatArray = rewards.values[place]
    if not rewards.known:
        mean = mean / np.maximum(visits, 1)
    if rewards.least is None or rewards.greatest is None:
        return mean, mean, mean
    return mean, rewards.least[place], rewards.greatest[place]


def ends_by_state(
    counts: Counts, least: FloatArray, greatest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns the least and the greatest worth of steps seen in each state [S].

    Those of all steps where a state shows no two that differ; 0 where there are no steps.
    """
    seen = counts.times > 0
    state = counts.pairs.state[run_owners(counts.offsets)][seen]
    low = np.full(counts.pairs.num_states, np.inf)
    high = np.full(counts.pairs.num_states, -np.inf)
    np.minimum.at(low, state, least[seen])
    np.maximum.at(high, state, greatest[seen])
    alike = low >= high
    everywhere = (least[seen].min(), greatest[seen].max()) if seen.any() else (0.0, 0.0)
    return np.where(alike, everywhere[0], low), np.where(alike, everywhere[1], high)
