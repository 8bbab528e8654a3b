"""A lower bound on a mean from several series of values, each as long as the data lets it be.

Let X_1, X_2, … be a series with E[X_i | those before] ≤ Δ and X_i ≥ `least`. For a stake λ fixed
beforehand and λ(μ) = min(λ, c / (μ − least)), c < 1, the capital of who bets on more than μ is

    K_t(μ) = Π_{i ≤ t} (1 + λ(μ) (X_i − μ)).

Every factor is positive, as X_i − μ ≥ −(μ − least), and at μ = Δ has a conditional mean of at most
1. So K(Δ) is a nonnegative supermartingale that starts at 1, and by Ville's inequality it *ever*
reaches q/δ with probability at most δ/q. The data may have only some first values of the series,
*whatever* decides how many: the largest capital among these is no larger than the largest of all.

Of R such series, which may depend on each other in any way, the share whose capital reaches q/δ has
therefore a mean of at most δ/q, and by Markov's inequality it is 1/q or more with probability at
most δ. Every factor falls as μ rises: with a constant stake clearly, with the stake c / (μ − least)
since (X − μ) / (μ − least) = (X − least) / (μ − least) − 1 does. So the μ at which a share of 1/q
reaches q/δ fill an interval up to L, and L > Δ would mean that Δ is one of them: P(L > Δ) ≤ δ.

With q = 1 all series would have to reach 1/δ, and one unlucky series decides; with a larger q the
luckier ones have to reach more.
"""

from __future__ import annotations

import math

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels.stitched import series_that_reach

SHARE_OF_SERIES = 0.25  # 1/q
LARGEST_SHARE = 0.99  # c: of all that may be lost, the part that a bet may lose
HALVINGS = 60  # of the bisection
ROUNDING = 1e-9  # of the goal, for what rounding may add to a capital


def log_goal(delta: float) -> float:
    """ln(q/δ), what the logarithm of a capital has to reach."""
    return -math.log(delta * SHARE_OF_SERIES)


def usual_stake(length: float, variance: float, delta: float) -> float:
    """λ = √(2 ln(q/δ) / (m σ²)), which makes L the largest where values are many."""
    return math.sqrt(2.0 * log_goal(delta) / (length * variance))


def lower_limit(
    series: FloatArray, complete: IntArray, stake: float, least: float, delta: float
) -> float:
    """L of series [R, M], of which the first `complete` [R] values are there.

    `least` where nothing more is shown.
    """
    there = np.arange(series.shape[1]) < complete[:, np.newaxis]
    if not there.any():
        return least
    needed = math.ceil(SHARE_OF_SERIES * complete.size)
    goal = math.exp(log_goal(delta)) * (1 + ROUNDING)

    def refuted(mean: float) -> bool:
        capped = min(stake, LARGEST_SHARE / (mean - least))
        return series_that_reach(series, complete, capped, mean, goal) >= needed

    below, above = least, float(series[there].max())  # nothing is won against the greatest value
    for _ in range(HALVINGS):
        middle = below + (above - below) / 2
        if not below < middle < above:
            break
        below, above = (middle, above) if refuted(middle) else (below, middle)
    return below
