"""Computes confidence intervals that hold for any distribution: of a CVaR, a mean, a rate.

*The lower tail.*
CVaR_c(F) = 1/c ∫₀ᶜ F⁻¹(u) du is the mean of the worst share c. It falls as F rises: if F ≤ G
everywhere, then CVaR_c(F) ≥ CVaR_c(G). Thomas and Learned-Miller (2019) use this with a band around
the empirical F of values in [a, b], the band of Dvoretzky, Kiefer and Wolfowitz. It is as wide in
the tail as in the middle: it says nothing about a tail of 1 % even with 1,000 values. Here each of
the lowest order statistics has its own interval instead.

Let X₍₁₎ ≤ … ≤ X₍ₙ₎ be the values, X₍ᵢ₎ = F⁻¹(U₍ᵢ₎) with uniform U. The law of U₍ᵢ₎ is
Beta(i, n + 1 − i): it exceeds its quantile hᵢ of level 1 − η with chance η, and falls below its
quantile lᵢ of level η with chance η. By the union bound none of the first m does with a chance of
at least 1 − m η, and then

    F(x) ≤ F(X₍ᵢ₎−) ≤ U₍ᵢ₎ ≤ hᵢ  for x < X₍ᵢ₎,      F(x) ≥ F(X₍ᵢ₎) ≥ U₍ᵢ₎ ≥ lᵢ  for x ≥ X₍ᵢ₎,

whether F has atoms or not. The highest F so allowed has the mass h₁ at a, hᵢ₊₁ − hᵢ at X₍ᵢ₎ and the
rest at X₍ₘ₎; the lowest has lᵢ − lᵢ₋₁ at X₍ᵢ₎ and the rest at b. Their CVaR are the ends. Each end
has its own m, which depends on n and c only, and misses with half of 1 − 95 %.

With h₁ ≥ c all of the tail may be at a, where no value was seen: then the only lower end is a,
which was known before.

*The mean.*
The lower end comes from bets against small means (`surestep.offpolicy.intervals` has the proof),
the upper end from the same bets on the negated values; each misses with half of 1 − 95 %. The only
assumptions are that repetitions are independent and alike, and that no value is beyond its bounds.
So the intervals hold for few values, for ties, and for tails that have not shown yet, unlike those
of Student, the bootstrap and the normal distribution. They are longer, most of all if values are
few or lie close together (docs/experiments.md has figures). Student's are there for comparison.

*Rates* have the limits of Clopper and Pearson (`surestep.offpolicy.intervals`).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv

import surestep._arrays as arrays
from surestep.errors import InvalidParameter
from surestep.offpolicy import betting, student_t
from surestep.offpolicy.intervals import lower_limit, upper_limit

CONFIDENCE = 0.95
MISS = (1 - CONFIDENCE) / 2  # the chance with which each end may miss


class Interval(NamedTuple):
    """An estimate with the ends of its interval; an end is NaN if the data give none.

    Parameters
    ----------
    value : float
        The estimate.
    low : float, optional
        The lower end; NaN by default.
    high : float, optional
        The upper end; NaN by default.

    Examples
    --------
    >>> from surestep.experiments import Interval
    >>> Interval(value=0.5, low=0.4, high=0.6).low
    0.4
    """

    value: float
    low: float = np.nan
    high: float = np.nan


def cvar(values: arrays.FloatArray, tail: float) -> float:
    """Returns the mean of the worst max(1, ⌊tail · n⌋) values."""
    if not (arrays.is_number(tail) and 0 < tail <= 1):
        raise InvalidParameter(f"tail is {tail!r}, expected more than 0 and at most 1")
    worst = max(1, int(np.floor(tail * values.size + 1e-9)))  # so that 0.1 · 1000 gives 100
    return float(np.partition(values, worst - 1)[:worst].mean())


def cvar_interval(values: arrays.FloatArray, tail: float, bounds: tuple[float, float]) -> Interval:
    """Returns the CVaR of values with a 95 % interval for the CVaR of their distribution.

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.
    tail : float
        The share of the worst values, such as 0.1.
    bounds : tuple of float
        Bounds (a, b) of all values.

    Returns
    -------
    Interval
        An end is NaN if it needs an infinite bound, or says no more than the bound itself.

    Examples
    --------
    >>> from surestep.experiments import cvar_interval
    >>> tail = cvar_interval(np.linspace(0.5, 1, 1000), 0.1, (0, 1))
    >>> tail.low < tail.value < tail.high
    True
    """
    estimate = cvar(values, tail)
    lower, upper = tail_weights(values.size, tail)
    a, b = bounds
    inside = np.sort(np.clip(values, a, b))  # rounding may leave values a little outside
    low = high = float("nan")
    if lower[0] < 1 and np.isfinite(a):
        low = float(lower @ np.concatenate([[a], inside]))
    if upper[-1] == 0:
        high = float(upper[:-1] @ inside)
    elif upper[-1] < 1 and np.isfinite(b):
        high = float(upper @ np.concatenate([inside, [b]]))
    return Interval(estimate, low, high)


@cache
def tail_weights(size: int, tail: float) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns the weights for `size` values: the steps of hᵢ and of lᵢ as shares of the tail.

    Those of the lower end are for a, X₍₁₎, …, X₍ₙ₎, those of the upper end for X₍₁₎, …, X₍ₙ₎, b.
    """
    rank = np.arange(1, size + 1)
    beyond = size + 1 - rank
    # Only ranks with hᵢ < c count, and with lᵢ up to the first ≥ c: others only cost confidence.
    inside = np.count_nonzero(betainccinv(rank, beyond, MISS / rank) < tail)
    short = np.count_nonzero(betaincinv(rank, beyond, MISS / rank) < tail)
    most = max(1, int(inside))
    fewest = min(size, int(short) + 1)
    above = betainccinv(rank[:most], beyond[:most], MISS / most)
    above = np.pad(above, (0, size + 1 - most), constant_values=1.0)
    below = betaincinv(rank[:fewest], beyond[:fewest], MISS / fewest)
    below = np.append(np.pad(below, (0, size - fewest), "edge"), 1.0)
    return (
        arrays.freeze(np.diff(np.minimum(above, tail) / tail, prepend=0.0)),
        arrays.freeze(np.diff(np.minimum(below, tail) / tail, prepend=0.0)),
    )


# ---- the mean ------------------------------------------------------------------------------------


def mean_interval(values: arrays.FloatArray, bounds: tuple[float, float]) -> Interval:
    """Returns the mean of values with a 95 % interval for the mean of their distribution.

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution, in an order that does not depend on them.
    bounds : tuple of float
        Bounds (a, b) of all values.

    Returns
    -------
    Interval
        An end is NaN if it needs an infinite bound, or says no more than the bound itself.

    Examples
    --------
    >>> from surestep.experiments import mean_interval
    >>> value, low, high = mean_interval(np.tile([0.4, 0.6], 50), (0.0, 1.0))
    >>> print(f"{value:.2f} [{low:.2f}, {high:.2f}]")
    0.50 [0.47, 0.53]
    """
    a, b = bounds
    inside = np.clip(values, a, b)  # rounding may leave values a little outside
    return Interval(float(values.mean()), refuted_mean(inside, a), -refuted_mean(-inside, -b))


def refuted_mean(values: arrays.FloatArray, bound: float) -> float:
    """Returns the largest mean that the values refute; NaN if it is not above the bound."""
    if not np.isfinite(bound):
        return float("nan")
    low = betting(values, bound, MISS)
    return low if low > bound else float("nan")


def student_interval(values: arrays.FloatArray) -> Interval:
    """Returns the mean of values with Student's 95 % interval, mean ± t_{0.975}(n − 1) s/√n.

    It is asymptotic: right for normal values, and in the limit of many values. Of few values that
    are skewed it misses the mean more often than in 5 % (docs/experiments.md has figures).

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.

    Returns
    -------
    Interval
        Both ends are NaN if there is only one value.

    Examples
    --------
    >>> from surestep.experiments import student_interval
    >>> value, low, high = student_interval(np.tile([0.4, 0.6], 50))
    >>> print(f"{value:.2f} [{low:.2f}, {high:.2f}]")
    0.50 [0.48, 0.52]
    """
    if values.size == 1:
        return Interval(float(values[0]))
    return Interval(float(values.mean()), student_t(values, MISS), -student_t(-values, MISS))


# ---- rates ---------------------------------------------------------------------------------------


def binomial_interval(successes: int, trials: int) -> Interval:
    """Returns a rate with its two-sided Clopper–Pearson interval at 95 %."""
    return Interval(
        successes / trials,
        lower_limit(successes, trials, MISS),
        upper_limit(successes, trials, MISS),
    )
