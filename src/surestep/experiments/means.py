"""The mean of a distribution between two bounds, with an interval that holds for any of them.

The lower end is that of bets against small means (`surestep.offpolicy.capital` has the proof), the
upper end that of the values with their sign changed; each misses with half of 1 − 95 %. Nothing is
assumed but that repetitions are independent and alike, and that no value is beyond its bounds:
intervals hold for few values, ties, and tails that have not shown themselves yet, where those of
Student, of the bootstrap and of the normal distribution do not. Of many values they are some 1.4
times as long as these, as √(2 ln 40) is to 1.96.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray
from surestep.experiments.tails import CONFIDENCE, Interval
from surestep.offpolicy import betting


def mean_interval(values: FloatArray, bounds: tuple[float, float]) -> Interval:
    """The mean with a 95 % interval for that of the distribution of the values, in `bounds` (a, b).

    The order of the values must not depend on them: it is that of the repetitions. An end that
    needs a bound which is not finite, or that is no more than the bound itself, is NaN.

    >>> value, low, high = mean_interval(np.tile([0.4, 0.6], 50), (0.0, 1.0))
    >>> print(f"{value:.2f} [{low:.2f}, {high:.2f}]")
    0.50 [0.47, 0.53]
    """
    a, b = bounds
    inside = np.clip(values, a, b)  # rounding may be a little outside
    return Interval(float(values.mean()), refuted(inside, a), -refuted(-inside, -b))


def refuted(values: FloatArray, bound: float) -> float:
    """Returns the largest mean that the values refute; NaN where that is not beyond the bound."""
    if not np.isfinite(bound):
        return float("nan")
    low = betting(values, bound, (1 - CONFIDENCE) / 2)
    return low if low > bound else float("nan")
