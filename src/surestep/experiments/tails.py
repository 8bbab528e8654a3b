"""The lower tail of a distribution: its CVaR, and intervals for it that hold for any distribution.

CVaR_c(F) = 1/c ∫₀ᶜ F⁻¹(u) du is the mean of the worst share c. It falls as F rises: if F ≤ G
everywhere, then CVaR_c(F) ≥ CVaR_c(G). Thomas and Learned-Miller (2019) use this with a band around
the empirical F of values in [a, b], that of Dvoretzky, Kiefer and Wolfowitz, which is as wide in
the tail as in the middle: it says nothing of a tail of 1 % even with 1,000 values. Here each of the
lowest order statistics has an interval of its own instead.

Let X₍₁₎ ≤ … ≤ X₍ₙ₎ be the values, X₍ᵢ₎ = F⁻¹(U₍ᵢ₎) with uniform U. The law of U₍ᵢ₎ is
Beta(i, n + 1 − i): it exceeds the quantile hᵢ of level 1 − η with chance η, and falls below lᵢ,
that of level η, with chance η. By the union bound none of the first m does with a chance of at
least 1 − m η, and then

    F(x) ≤ F(X₍ᵢ₎−) ≤ U₍ᵢ₎ ≤ hᵢ  for x < X₍ᵢ₎,      F(x) ≥ F(X₍ᵢ₎) ≥ U₍ᵢ₎ ≥ lᵢ  for x ≥ X₍ᵢ₎,

whether F has atoms or not. The highest F so allowed has the mass h₁ at a, hᵢ₊₁ − hᵢ at X₍ᵢ₎ and the
rest at X₍ₘ₎; the lowest has lᵢ − lᵢ₋₁ at X₍ᵢ₎ and the rest at b. Their CVaR are the ends. Either
has an m of its own, which depends on n and c only, and misses with half of 1 − 95 %.

With h₁ ≥ c all of the tail may be at a, where no value was seen: there is no lower end but a, which
was known before.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep.errors import InvalidParameter

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """An estimate with the ends of its interval; NaN where the data give none."""

    value: float
    low: float
    high: float


class TailWeights(NamedTuple):
    """The weights of each value in the ends of an interval, in the order of the values."""

    low: FloatArray  # [n + 1]: a, X₍₁₎, …, X₍ₙ₎
    high: FloatArray  # [n + 1]: X₍₁₎, …, X₍ₙ₎, b


def cvar(values: FloatArray, tail: float) -> float:
    """The mean of the worst max(1, ⌊tail · n⌋) values."""
    if not (arrays.is_number(tail) and 0 < tail <= 1):
        raise InvalidParameter(f"tail is {tail!r}, expected more than 0 and at most 1")
    worst = worst_count(values.size, tail)
    return float(np.partition(values, worst - 1)[:worst].mean())


def worst_count(size: int, tail: float) -> int:
    """max(1, ⌊tail · n⌋), where 0.1 · 1000 is 100 whatever doubles make of it."""
    return max(1, int(np.floor(tail * size + 1e-9)))


def cvar_interval(values: FloatArray, tail: float, bounds: tuple[float, float]) -> Interval:
    """The CVaR with a 95 % interval for that of the distribution of the values, in `bounds` (a, b).

    An end that needs a bound which is not finite, or that is no more than the bound itself, is NaN.
    """
    estimate = cvar(values, tail)
    weights = tail_weights(values.size, tail)
    a, b = bounds
    inside = np.sort(np.clip(values, a, b))  # rounding may be a little outside
    low = high = float("nan")
    if weights.low[0] < 1 and np.isfinite(a):
        low = float(weights.low @ np.concatenate([[a], inside]))
    if weights.high[-1] == 0:
        high = float(weights.high[:-1] @ inside)
    elif weights.high[-1] < 1 and np.isfinite(b):
        high = float(weights.high @ np.concatenate([inside, [b]]))
    return Interval(estimate, low, high)


@cache
def tail_weights(size: int, tail: float) -> TailWeights:
    """The weights for n values: steps of hᵢ and of lᵢ as shares of the tail, up to its end."""
    miss = (1 - CONFIDENCE) / 2
    rank = np.arange(1, size + 1)
    beyond = size + 1 - rank
    # Further ranks would cost confidence and say nothing: hᵢ < c, and lᵢ up to the first ≥ c.
    inside = np.count_nonzero(betainccinv(rank, beyond, miss / rank) < tail)
    short = np.count_nonzero(betaincinv(rank, beyond, miss / rank) < tail)
    most, fewest = max(1, int(inside)), min(size, int(short) + 1)
    above, below = np.ones(size + 1), np.empty(size + 1)
    above[:most] = betainccinv(rank[:most], beyond[:most], miss / most)
    below[:fewest] = betaincinv(rank[:fewest], beyond[:fewest], miss / fewest)
    below[fewest:size] = below[fewest - 1]
    below[size] = 1.0
    return TailWeights(
        arrays.freeze(np.diff(np.minimum(above, tail) / tail, prepend=0.0)),
        arrays.freeze(np.diff(np.minimum(below, tail) / tail, prepend=0.0)),
    )
