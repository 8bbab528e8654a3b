"""Lower bounds on a mean that are proved for every number of values, given how far they can go.

Each holds with probability at least 1 − δ over independent values of one distribution, which is
known to lie above `low` and, where it is asked for, below `high`.
"""

from __future__ import annotations

import math

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import ROUNDING_SLACK, FloatArray
from surestep._settings import Delta, check_setting
from surestep.errors import InvalidParameter

LARGEST = 1e150  # values and bounds up to here have squares that are doubles


def hoeffding(values: object, low: float, high: float, delta: float) -> float:
    """mean − (high − low) √(ln(1/δ) / 2n) (Hoeffding 1963)."""
    data = read_values(values, 1, low, high)
    span = float(high) - float(low)
    return float(data.mean()) - span * math.sqrt(log_inverse(delta) / (2 * data.size))


def empirical_bernstein(values: object, low: float, high: float, delta: float) -> float:
    """mean − √(2 V ln(2/δ) / n) − 7 (high − low) ln(2/δ) / (3(n − 1)), V the sample variance.

    Maurer and Pontil (2009), Theorem 4.
    """
    data = read_values(values, 2, low, high)
    span, size = float(high) - float(low), data.size
    term = math.log(2.0) + log_inverse(delta)
    deviation = math.sqrt(2 * float(data.var(ddof=1)) * term / size)
    return float(data.mean()) - deviation - 7 * span * term / (3 * (size - 1))


def truncated_bernstein(values: object, low: float, threshold: float, delta: float) -> float:
    """`empirical_bernstein` of min(value, threshold): for values without an upper bound.

    Cutting values off can only lower their mean, so the bound stays one (Thomas, Theocharous and
    Ghavamzadeh 2015, Theorem 1, with one threshold for all). The threshold must not depend on the
    values: take it from others, with `choose_threshold`.
    """
    data = read_values(values, 2, low)
    if not (arrays.is_number(threshold) and low <= float(threshold) <= LARGEST):
        raise InvalidParameter(
            f"threshold is {threshold!r}, expected a number from {low:.10g} to {LARGEST:g}"
        )
    return empirical_bernstein(np.minimum(data, threshold), low, threshold, delta)


def choose_threshold(training: object, low: float, size: int, delta: float) -> float:
    """Chooses the threshold with the best bound that `training` predicts for `size` such values.

    One of the training values, or `low`, where every other one predicts a bound below `low`.
    """
    ordered, low = np.sort(read_values(training, 2, low)), float(low)
    arrays.expect_count("size", size)
    term = math.log(2.0) + log_inverse(delta)
    scale = float(ordered[-1] - low)
    if scale == 0 or size == 1:
        return low
    data = (ordered - low) / scale
    above = data.size - 1 - np.arange(data.size)  # how many a threshold at each value would cut
    mean = (np.cumsum(data) + above * data) / data.size
    square = (np.cumsum(data**2) + above * data**2) / data.size
    variance = np.maximum(square - mean**2, 0.0) * data.size / (data.size - 1)
    predicted = mean - np.sqrt(2 * variance * term / size) - 7 * data * term / (3 * (size - 1))
    best = int(np.argmax(predicted))
    return float(ordered[best]) if predicted[best] > 0 else low


def read_values(
    values: object, at_least: int, low: float = -LARGEST, high: float = LARGEST
) -> FloatArray:
    """Returns a flat array of at least so many values that lie within their bounds.

    What is outside by no more than rounding is moved onto the bound.
    """
    for name, bound in (("low", low), ("high", high)):
        if not (arrays.is_number(bound) and abs(float(bound)) <= LARGEST):
            raise InvalidParameter(f"{name} is {bound!r}, expected a number within ±{LARGEST:g}")
    data = arrays.floats("values", values, None, InvalidParameter)
    if data.ndim != 1 or data.size < at_least:
        raise InvalidParameter(
            f"values have shape {data.shape}, expected a flat array of at least {at_least}"
        )
    within = np.clip(data, float(low), float(high))
    arrays.refuse_where(
        np.abs(within - data) > ROUNDING_SLACK * np.abs(within),
        lambda i: f"values[{i}] is {data[i]}, expected {low:.10g} to {high:.10g}",
        "value",
        InvalidParameter,
    )
    return within


def log_inverse(delta: float) -> float:
    """ln(1/δ) for a δ strictly between 0 and 1."""
    check_setting("delta", delta, Delta)
    return -math.log(delta)
