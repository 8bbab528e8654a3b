"""How often a claim that may fail may fail in a test."""

import scipy.stats

RARE = 1e-6  # a false alarm in so many tests


def allowed_failures(number, delta=0.1):
    """What a claim that fails with probability δ exceeds once in 10⁶ tests of so many draws."""
    return int(scipy.stats.binom.ppf(1 - RARE, number, delta))
