"""Lower bounds that are right in the limit of many episodes only: they promise nothing before."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.errors import InvalidParameter
from surestep.offpolicy.bounded import log_inverse, read_values
from surestep.offpolicy.estimate import Estimate, MeanEstimate, RatioEstimate

CELLS = 10_000_000  # multiplicities held at a time


def student_t(values: object, delta: float) -> float:
    """mean − s/√n · t_{1−δ}(n − 1), with s the sample deviation; exact for normal values."""
    data = read_values(values, 2)
    log_inverse(delta)
    quantile = -float(stdtrit(data.size - 1, float(delta)))  # t_{1−δ} = −t_δ, which has more digits
    return float(data.mean()) - float(data.std(ddof=1)) / math.sqrt(data.size) * quantile


def bca_bootstrap(
    estimate: Estimate, delta: float, rng: np.random.Generator | int, resamples: int = 2000
) -> float:
    """Returns the lower end of the bias-corrected and accelerated bootstrap interval (Efron 1987).

    The α-quantile of the estimates of logs resampled episode by episode, with
    α = Φ(z₀ + (z₀ + z_δ) / (1 − a (z₀ + z_δ))): z₀ corrects the bias and a the skewness.
    """
    arrays.expect("estimate", estimate, (MeanEstimate, RatioEstimate))
    rng = arrays.generator(rng)
    arrays.expect_count("resamples", resamples)
    values = read_values(estimate.values, 2)
    log_inverse(delta)
    needed = arrays.least_draws(delta) + 1
    if resamples < needed:
        raise InvalidParameter(
            f"resamples is {resamples}, expected at least 1/delta = {arrays.in_digits(needed)}: "
            "fewer do not show what happens so rarely"
        )
    parts = multiplicities(values.size, resamples, rng)
    drawn = np.sort(np.concatenate([estimate.resampled(part) for part in parts]))
    bias = bias_correction(drawn, estimate.value)
    level = accelerated(bias, bias + float(ndtri(float(delta))), acceleration(values))
    return float(np.quantile(drawn, level))


def multiplicities(size: int, resamples: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Draws how often each of `size` episodes is in each resampled log, some [B, size] at once."""
    at_once = max(1, CELLS // size)
    for first in range(0, resamples, at_once):
        rows = min(at_once, resamples - first)
        chosen = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, np.newaxis]
        yield np.bincount(chosen.ravel(), minlength=rows * size).reshape(rows, size)


def bias_correction(drawn: FloatArray, value: float) -> float:
    """z₀ = Φ⁻¹(share of the resampled estimates below the estimate, ties by half).

    A share of 0 or 1 counts as half a resample, lest z₀ be infinite.
    """
    below, up_to = (int(np.searchsorted(drawn, value, side)) for side in ("left", "right"))
    half = 0.5 / drawn.size
    return float(ndtri(min(max((below + up_to) * half, half), 1 - half)))


def acceleration(values: FloatArray) -> float:
    """a = Σ u³ / (6 (Σ u²)^(3/2)), with u the values less their mean."""
    spread = values - values.mean()
    largest = float(np.abs(spread).max())
    if largest == 0:
        return 0.0
    spread /= largest
    return float((spread**3).sum() / (6 * (spread**2).sum() ** 1.5))


def accelerated(bias: float, shift: float, acceleration: float) -> float:
    """α = Φ(z₀ + shift / (1 − a · shift)), and its limit where that has a pole."""
    if acceleration * shift >= 1:
        return 0.0 if shift < 0 else 1.0
    return float(ndtr(bias + shift / (1 - acceleration * shift)))
