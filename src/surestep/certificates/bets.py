"""A lower bound on a mean from many series of values, some of which the data could not complete.

Let X_1, X_2, … be a series with E[X_i | those before] ≤ Δ and X_i ≥ `least`. For m and λ fixed
beforehand and λ(μ) = min(λ, c / (μ − least)), c < 1,

    e(μ) = Π_{i ≤ m} (1 + λ(μ) (X_i − μ)) where the data has all m values, else 0

has a mean of at most 1 at μ = Δ: every factor is positive, as X_i − μ ≥ −(μ − least), and has a
conditional mean of at most 1, so the product does; writing 0 for some of them only lowers it,
*whatever* decides which. Then the average ē of several such e is a number of mean ≤ 1 as well,
however they depend on each other, and by Markov's inequality P(ē(Δ) ≥ 1/δ) ≤ δ.

Every factor falls as μ rises: with a constant stake clearly, with the stake c / (μ − least) since
(X − μ) / (μ − least) = (X − least) / (μ − least) − 1 does. So ē falls, the μ with ē(μ) ≥ 1/δ fill
an interval up to L, and L > Δ would mean ē(Δ) ≥ 1/δ: P(L > Δ) ≤ δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray

LARGEST_SHARE = 0.95  # c: of all that may be lost, the part that a bet may lose
HALVINGS = 60  # of the bisection
ROUNDING = 1e-9  # added to ln(1/δ), for what rounding may add to the logarithm of a capital


class Bet(NamedTuple):
    """How many values are bet on, and how much on each."""

    length: int  # m
    stake: float  # λ


def usual_stake(length: float, variance: float, delta: float) -> float:
    """λ = √(2 ln(1/δ) / (m σ²)), which makes L the largest where values are many."""
    return math.sqrt(-2.0 * math.log(delta) / (length * variance))


def lower_limit(
    series: FloatArray, complete: IntArray, bets: Sequence[Bet], least: float, delta: float
) -> float:
    """L of series [R, M], of which the first `complete` [R] values are there; `least` if none is.

    Every bet is made on every series, and all count alike.
    """
    usable = [(series[complete >= bet.length, : bet.length], bet.stake) for bet in bets]
    usable = [(values, stake) for values, stake in usable if values.size]
    if not usable:
        return least
    goal = -math.log(delta) + ROUNDING + math.log(len(bets) * complete.size)

    def refuted(mean: float) -> bool:
        logarithms = np.concatenate(
            [
                np.log1p(min(stake, LARGEST_SHARE / (mean - least)) * (values - mean)).sum(axis=1)
                for values, stake in usable
            ]
        )
        return bool(np.logaddexp.reduce(logarithms) >= goal)

    greatest = max(float(values.max()) for values, _ in usable)  # nothing is won against it
    below, above = least, greatest
    for _ in range(HALVINGS):
        middle = below + (above - below) / 2
        if not below < middle < above:
            break
        below, above = (middle, above) if refuted(middle) else (below, middle)
    return below
