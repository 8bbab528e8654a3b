"""Rates: how often something was counted, with the limits of Clopper and Pearson, which hold."""

from __future__ import annotations

from scipy.special import betainccinv, betaincinv

from surestep.errors import InvalidParameter
from surestep.experiments.tails import CONFIDENCE, Interval


def lower_limit(successes: int, trials: int, level: float) -> float:
    """I⁻¹(level; k, n − k + 1), or 0 for k = 0: above the true rate with chance ≤ `level`."""
    check_counted(successes, trials)
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, level))


def upper_limit(successes: int, trials: int, level: float) -> float:
    """I⁻¹(1 − level; k + 1, n − k), or 1 for k = n: below the true rate with chance ≤ `level`."""
    check_counted(successes, trials)
    if successes == trials:
        return 1.0
    return float(betainccinv(successes + 1, trials - successes, level))


def check_counted(successes: int, trials: int) -> None:
    """Refuses more successes than trials, and rates of nothing."""
    if not 0 <= successes <= trials or trials < 1:
        raise InvalidParameter(
            f"{successes} of {trials} were counted, expected 0 to {trials}, of at least 1"
        )


def binomial_interval(successes: int, trials: int) -> Interval:
    """A rate with its two-sided Clopper–Pearson interval at 95 %."""
    tail = (1 - CONFIDENCE) / 2
    return Interval(
        successes / trials,
        lower_limit(successes, trials, tail),
        upper_limit(successes, trials, tail),
    )
