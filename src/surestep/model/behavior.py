"""From counts to the policy that made them, where nobody wrote it down."""

from __future__ import annotations

import numpy as np

from surestep._arrays import expect, is_number, run_lengths, run_sums
from surestep.errors import InvalidParameter
from surestep.model.counts import Counts
from surestep.model.policy import Policy


def estimate_behavior(counts: Counts, smoothing: float = 0.0) -> Policy:
    """The maximum-likelihood behavior policy π̂_b(a|s) = #_D(s,a) / #_D(s), marked as estimated.

    `smoothing` is a pseudo-count that every enabled action gets; a state never visited gets the
    uniform distribution (Simão, Laroche, Tachet des Combes 2020).
    """
    expect("counts", counts, Counts)
    if not (is_number(smoothing) and 0 <= smoothing < np.inf):
        raise InvalidParameter(f"smoothing is {smoothing!r}, expected a finite number of 0 or more")
    pairs = counts.pairs
    lengths = run_lengths(pairs.offsets)
    weight = counts.visits + float(smoothing)
    largest = np.maximum.reduceat(weight, pairs.offsets[:-1])
    unknown = np.repeat(largest == 0, lengths)
    # Each state's weights are scaled by their largest, so that no sum of them overflows.
    share = np.where(
        unknown, 1.0, weight / np.repeat(np.where(largest == 0, 1.0, largest), lengths)
    )
    return Policy(pairs, share / np.repeat(run_sums(share, pairs.offsets), lengths), estimated=True)
