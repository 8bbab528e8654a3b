"""Bounds on the mean of independent values of one distribution, at level 1 − δ; mostly lower ones.

Intervals that take bounds of the values are proved for every number of values. `student_t`
and `bca_bootstrap` are right in the limit of many episodes only: they promise nothing before.

**Betting against small means**, for values that are bounded below only.
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

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr, ndtri, stdtrit

import surestep._arrays as arrays
from surestep._settings import Delta, check_setting
from surestep.errors import InvalidParameter
from surestep.offpolicy.estimators import Estimate, MeanEstimate, RatioEstimate

LARGEST = 1e150  # values and bounds up to here have squares that are doubles
LARGEST_SHARE = 0.75  # c: a larger share gains little where values are many, and may lose all
PRECISION = 1e-14
MOST_HALVINGS = 200  # of the bisection
SMALLEST_VARIANCE = 1e-300  # of values up to 1: no bets on what may be rounding
ROUNDING = 1e-9  # added to ln(1/δ), for what rounding may add to the logarithm of a capital
CELLS = 10_000_000  # multiplicities held at a time


def hoeffding(values: object, low: float, high: float, delta: float) -> float:
    """Returns mean − (high − low) √(ln(1/δ) / 2n) (Hoeffding 1963).

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.
    low : float
        The least that a value can be.
    high : float
        The most that a value can be.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        A lower bound on the mean.

    Examples
    --------
    >>> from surestep.offpolicy import hoeffding
    >>> round(hoeffding(np.tile([0.0, 1.0], 500), 0.0, 1.0, 0.05), 3)
    0.461
    """
    data = read_values(values, 1, low, high)
    return float(data.mean()) - (float(high) - float(low)) * math.sqrt(
        log_inverse(delta) / (2 * data.size)
    )


def empirical_bernstein(values: object, low: float, high: float, delta: float) -> float:
    """Returns mean − √(2 V ln(2/δ) / n) − 7 (high − low) ln(2/δ) / (3(n − 1)).

    V is the sample variance (Maurer and Pontil 2009, Theorem 4).

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.
    low : float
        The least that a value can be.
    high : float
        The most that a value can be.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        A lower bound on the mean.

    Examples
    --------
    >>> from surestep.offpolicy import empirical_bernstein
    >>> round(empirical_bernstein(np.tile([0.0, 1.0], 500), 0.0, 1.0, 0.05), 3)
    0.448
    """
    data = read_values(values, 2, low, high)
    term = math.log(2.0) + log_inverse(delta)
    return (
        float(data.mean())
        - math.sqrt(2 * float(data.var(ddof=1)) * term / data.size)
        - 7 * (float(high) - float(low)) * term / (3 * (data.size - 1))
    )


def truncated_bernstein(values: object, low: float, threshold: float, delta: float) -> float:
    """Returns `empirical_bernstein` of min(value, threshold), for values without an upper bound.

    Cutting values off can only lower their mean, so the bound stays one (Thomas, Theocharous and
    Ghavamzadeh 2015, Theorem 1, with one threshold for all).

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.
    low : float
        The least that a value can be.
    threshold : float
        Larger values count as this. It must not depend on the values: take it from others, with
        `choose_threshold`.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        A lower bound on the mean.

    Examples
    --------
    >>> from surestep.offpolicy import truncated_bernstein
    >>> round(truncated_bernstein(np.tile([0.0, 1.0], 500), 0.0, 0.7, 0.05), 3)
    0.314
    """
    data = read_values(values, 2, low)
    if not (arrays.is_number(threshold) and low <= float(threshold) <= LARGEST):
        raise InvalidParameter(
            f"threshold is {threshold!r}, expected a number from {low:.10g} to {LARGEST:g}"
        )
    return empirical_bernstein(np.minimum(data, threshold), low, threshold, delta)


def choose_threshold(training: object, low: float, size: int, delta: float) -> float:
    """Chooses the threshold with the best bound that `training` predicts for `size` such values.

    Parameters
    ----------
    training : array of float
        Values of the same distribution as those to be bounded, but others.
    low : float
        The least that a value can be.
    size : int
        The number of values to be bounded.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        One of the training values, or `low`, where every other one predicts a bound below `low`.

    Examples
    --------
    >>> from surestep.offpolicy import choose_threshold
    >>> choose_threshold(np.tile([0.0, 1.0], 500), 0.0, 1000, 0.05)
    1.0
    """
    ordered = np.sort(read_values(training, 2, low))
    low = float(low)
    arrays.expect_count("size", size)
    term = math.log(2.0) + log_inverse(delta)
    scale = float(ordered[-1] - low)
    if scale == 0 or size == 1:
        return low
    data = (ordered - low) / scale
    below = np.arange(data.size)  # how many values a threshold at each value would leave
    mean = (np.cumsum(data) + (data.size - 1 - below) * data) / data.size
    # Of sums of squared distances from means nothing is lost, where squares would cancel.
    distance = data - np.append(0.0, np.cumsum(data)[:-1]) / np.maximum(below, 1)
    within = np.cumsum(distance**2 * below / (below + 1))
    spread = np.append(0.0, within[:-1]) + distance**2 * below * (1 - below / data.size)
    variance = spread / (data.size - 1)
    predicted = mean - np.sqrt(2 * variance * term / size) - 7 * data * term / (3 * (size - 1))
    best = int(np.argmax(predicted))
    return float(ordered[best]) if predicted[best] > 0 else low


def read_values(
    values: object, at_least: int, low: float = -LARGEST, high: float = LARGEST
) -> arrays.FloatArray:
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
    for i, others in arrays.first_where(
        np.abs(within - data) > arrays.ROUNDING_SLACK * np.abs(within), "value"
    ):
        raise InvalidParameter(
            f"values[{i}] is {data[i]}, expected {low:.10g} to {high:.10g}{others}"
        )
    return within


def log_inverse(delta: float) -> float:
    """Returns ln(1/δ) for a δ strictly between 0 and 1."""
    check_setting("delta", delta, Delta)
    return -math.log(delta)


def betting(values: object, low: float, delta: float) -> float:
    """Returns the largest m that bets refute at level δ: the mean is above it at 1 − δ.

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution, in an order that does not depend on them.
    low : float
        The least that a value can be.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        A lower bound on the mean; `low` where bets refute nothing.

    Notes
    -----
    After Waudby-Smith and Ramdas (2023), one-sided; `surestep.offpolicy.intervals` has the proof.

    Examples
    --------
    >>> from surestep.offpolicy import betting
    >>> round(betting(np.tile([0.0, 1.0], 500), 0.0, 0.05), 3)
    0.461
    """
    data = read_values(values, 1, low) - float(low)
    low = float(low)
    goal = log_inverse(delta) + ROUNDING
    scale = float(data.max())
    if scale == 0:
        return low
    data = data / scale  # and the stakes times it: nothing changes but the range of the numbers
    return low + scale * largest_refuted(data, predictable_stakes(data, log_inverse(delta)), goal)


def largest_refuted(data: arrays.FloatArray, stakes: arrays.FloatArray, goal: float) -> float:
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


def predictable_stakes(data: arrays.FloatArray, log_level: float) -> arrays.FloatArray:
    """λ_i = √(2 ln(1/δ) / (n σ̂²_{i−1})), from the values before the i-th and a pseudo-value 0."""
    number = np.arange(1, data.size + 1)  # the pseudo-value included, before each value
    before = np.append(0.0, np.cumsum(data)[:-1])
    variance = np.maximum(
        np.append(0.0, np.cumsum(data**2)[:-1]) / number - (before / number) ** 2, 0.0
    )
    squares = np.divide(
        2 * log_level / data.size,
        variance,
        out=np.zeros(data.size),
        where=variance > SMALLEST_VARIANCE,
    )
    return np.sqrt(squares)


def student_t(values: object, delta: float) -> float:
    """Returns mean − s/√n · t_{1−δ}(n − 1), with s the sample deviation; exact for normal values.

    Parameters
    ----------
    values : array of float [n]
        Independent values of one distribution.
    delta : float
        The probability δ with which the bound may fail.

    Returns
    -------
    float
        A lower bound on the mean.

    Examples
    --------
    >>> from surestep.offpolicy import student_t
    >>> round(student_t(np.tile([0.0, 1.0], 500), 0.05), 3)
    0.474
    """
    data = read_values(values, 2)
    log_inverse(delta)
    quantile = -float(stdtrit(data.size - 1, float(delta)))  # t_{1−δ} = −t_δ, which has more digits
    if not math.isfinite(quantile):
        raise InvalidParameter(f"delta is {delta!r}, which is too small for {data.size} values")
    return float(data.mean()) - float(data.std(ddof=1)) / math.sqrt(data.size) * quantile


def bca_bootstrap(
    estimate: Estimate, delta: float, rng: np.random.Generator | int, resamples: int = 2000
) -> float:
    """Returns the lower end of the bias-corrected and accelerated bootstrap interval (Efron 1987).

    Parameters
    ----------
    estimate : MeanEstimate or RatioEstimate
        The estimate, with its values an episode.
    delta : float
        The probability δ with which the bound may fail.
    rng : numpy.random.Generator or int
        The source of random numbers, or its seed.
    resamples : int, default 2000
        The number of resampled logs, more than 1/δ.

    Returns
    -------
    float
        The lower end; right in the limit of many episodes only.

    Raises
    ------
    InvalidParameter
        If there are too few resamples for δ.

    Notes
    -----
    It is the α-quantile of the estimates of logs resampled episode by episode, with
    α = Φ(z₀ + (z₀ + z_δ) / (1 − a (z₀ + z_δ))): z₀ corrects the bias and a the skewness.

    Examples
    --------
    >>> from surestep.offpolicy import MeanEstimate, bca_bootstrap
    >>> values = np.random.default_rng(0).normal(size=100)
    >>> round(bca_bootstrap(MeanEstimate(values), 0.05, rng=1, resamples=200), 2)
    -0.07
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
    return float(
        np.quantile(
            drawn, accelerated(bias, bias + float(ndtri(float(delta))), acceleration(values))
        )
    )


def lower_limit(successes: float, trials: float, level: float) -> float:
    """Returns I⁻¹(level; k, n − k + 1), or 0: it exceeds the true rate with chance ≤ `level`."""
    return 0.0 if successes <= 0 else float(betaincinv(successes, trials - successes + 1, level))


def upper_limit(successes: float, trials: float, level: float) -> float:
    """Returns I⁻¹(1 − level; k + 1, n − k), or 1: below the true rate with chance ≤ `level`."""
    rest = trials - successes
    return 1.0 if rest <= 0 else float(betainccinv(successes + 1, rest, level))


def share_interval(share: float, trials: float, delta: float) -> tuple[float, float]:
    """Returns the ends of the 1 − δ interval of Clopper and Pearson (1934) for a share.

    It is exact: it misses with a chance of at most δ, whatever the true share is, also where none
    of the trials or all of them count. `trials` may be an effective number (Korn and Graubard
    1998); then it is an approximation.
    """
    happened = share * trials
    return lower_limit(happened, trials, delta / 2), upper_limit(happened, trials, delta / 2)


def multiplicities(
    size: int, resamples: int, rng: np.random.Generator
) -> Iterator[arrays.IntArray]:
    """Draws how often each of `size` episodes is in each resampled log, some [B, size] at once."""
    at_once = max(1, CELLS // size)
    for first in range(0, resamples, at_once):
        rows = min(at_once, resamples - first)
        chosen = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, np.newaxis]
        yield np.bincount(chosen.ravel(), minlength=rows * size).reshape(rows, size)


def bias_correction(drawn: arrays.FloatArray, value: float) -> float:
    """z₀ = Φ⁻¹(share of the resampled estimates below the estimate, ties by half).

    A share of 0 or 1 counts as half a resample, lest z₀ be infinite.
    """
    below, up_to = (int(np.searchsorted(drawn, value, side)) for side in ("left", "right"))
    half = 0.5 / drawn.size
    return float(ndtri(min(max((below + up_to) * half, half), 1 - half)))


def acceleration(values: arrays.FloatArray) -> float:
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
