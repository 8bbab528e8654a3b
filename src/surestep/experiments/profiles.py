"""Performance profiles: which share of the repetitions reaches how much (Agarwal et al. 2021).

P(X ≥ τ) over all τ shows the whole distribution, tails and ties included, where a mean shows one
number. The inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant, holds for the
limits from the left too: with n repetitions all shares of a profile are at once within

    ε = √(ln(2 / 0.05) / 2n)

of the true ones with a chance of at least 95 %, whatever the distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.experiments.tails import CONFIDENCE


class Profile(NamedTuple):
    """Shares of repetitions that reach each level, with a band that holds for all at once."""

    levels: FloatArray  # [m], rising
    share: FloatArray  # [m]: of repetitions whose value is at least the level
    low: FloatArray
    high: FloatArray


def profile(values: FloatArray, levels: FloatArray) -> Profile:
    """Returns the profile of the values at the levels.

    >>> profile(np.array([0.2, 0.5, 0.9, 1.0]), np.array([0.0, 0.5, 1.0])).share.tolist()
    [1.0, 0.75, 0.25]
    """
    order = np.sort(values)
    share = 1.0 - np.searchsorted(order, levels, side="left") / order.size
    room = band_width(order.size)
    return Profile(levels, share, np.maximum(share - room, 0.0), np.minimum(share + room, 1.0))


def band_width(size: int) -> float:
    """ε = √(ln(2 / 0.05) / 2n)."""
    return float(np.sqrt(np.log(2 / (1 - CONFIDENCE)) / (2 * size)))
