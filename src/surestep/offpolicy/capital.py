"""A lower bound on the mean of values that are bounded below only, by betting against small means.

After Waudby-Smith and Ramdas (2023), one-sided. Someone who claims that the mean is m must offer
bets that are fair if it is: a stake λ on a value x multiplies the capital by 1 + λ(x − m). Start
with the capital 1, and let λ_i depend on the values before x_i only:

    K_t(m) = Π_{i ≤ t} (1 + λ_i (x_i − m)),   0 ≤ λ_i ≤ c / (m − low), c < 1.

*Why it is a bound.* As x ≥ low, every factor is at least 1 − c > 0. If m is the mean, then
E[1 + λ_i (x_i − m) | past] = 1: K(m) is a nonnegative martingale that starts at 1, and by Ville's
inequality it ever reaches 1/δ with probability at most δ. So, with probability 1 − δ, the mean is
not among the m with max_t K_t(m) ≥ 1/δ, the refuted ones. A stake λ_i(m) = min(λ_i, c / (m − low))
makes every factor fall as m rises, whether capped or not; hence the refuted m fill an interval from
`low` to some L, and the mean is above it. L is found by bisection, from the refuted side.
No upper bound on the values is used.

*Which stakes.* Any are valid. With a variance σ̂² of the past, λ = √(2 ln(1/δ) / (n σ̂²)) is what
makes ln K_n(m) reach ln(1/δ) for the largest m when values are many. Nothing is known of the scale
beforehand, so the estimate carries one pseudo-value at `low` and there is no bet before a value
above `low` was seen; hence the bound of a·x + b is a times that of x, plus b.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray
from surestep.offpolicy.bounded import log_inverse, read_values

LARGEST_SHARE = 0.75  # c: a larger share gains little where values are many, and may lose all
PRECISION, MOST_HALVINGS = 1e-14, 200  # of the bisection
SMALLEST_VARIANCE = 1e-300  # of values up to 1: no bets on what may be rounding
ROUNDING = 1e-9  # added to ln(1/δ), for what rounding may add to the logarithm of a capital


def betting(values: object, low: float, delta: float) -> float:
    """Returns the largest m that bets refute at level δ: the mean is above it at 1 − δ.

    `low`, where they refute nothing. The order of the values must not depend on the values.
    """
    data, low = read_values(values, 1, low) - float(low), float(low)
    goal = log_inverse(delta) + ROUNDING
    scale = float(data.max())
    if scale == 0:
        return low
    data = data / scale  # and the stakes times it: nothing changes but the range of the numbers
    return low + scale * largest_refuted(data, predictable_stakes(data, log_inverse(delta)), goal)


def largest_refuted(data: FloatArray, stakes: FloatArray, goal: float) -> float:
    """Returns the largest m against which ln K reaches `goal`, for values in [0, 1]; or 0."""

    def refuted(mean: float) -> bool:
        with np.errstate(divide="ignore"):
            capped = np.minimum(stakes, LARGEST_SHARE / np.float64(mean))
        return bool(np.cumsum(np.log1p(capped * (data - mean))).max() >= goal)

    least, most = 0.0, 1.0  # no capital grows against the largest value
    if not refuted(least):
        return least
    for _ in range(MOST_HALVINGS):
        if most - least <= PRECISION * most:
            break
        middle = (least + most) / 2
        least, most = (middle, most) if refuted(middle) else (least, middle)
    return least


def predictable_stakes(data: FloatArray, log_level: float) -> FloatArray:
    """λ_i = √(2 ln(1/δ) / (n σ̂²_{i−1})), from the values before the i-th and a pseudo-value 0."""
    number = np.arange(1, data.size + 1)  # the pseudo-value included, before each value
    before = np.append(0.0, np.cumsum(data)[:-1])
    squares = np.append(0.0, np.cumsum(data**2)[:-1])
    variance = np.maximum(squares / number - (before / number) ** 2, 0.0)
    stakes = np.zeros(data.size)
    known = variance > SMALLEST_VARIANCE
    np.divide(2 * log_level / data.size, variance, out=stakes, where=known)
    return np.sqrt(stakes)
