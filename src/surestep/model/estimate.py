"""From counts to the MLE-MDP, and to the policy that made them where nobody wrote it down."""

from __future__ import annotations

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep.errors import InvalidParameter
from surestep.model.counts import Counts
from surestep.model.mdp import FiniteMDP, spread_discount
from surestep.model.policy import Policy


def estimate_mdp(counts: Counts, discount: float | FloatArray) -> FiniteMDP:
    """Returns the maximum-likelihood MDP: P̂(s'|s,a) = #_D(s,a,s') / #_D(s,a).

    A pair that was never visited gets no successor, and the known reward or none. `discount` is one
    number, or one a pair [K]. Episodes end where the log says so: what goes on for ever without a
    discount has no value, even where it earns nothing.
    """
    arrays.expect("counts", counts, Counts)
    visited = np.repeat(counts.visits, arrays.run_lengths(counts.offsets))
    seen = counts.times > 0
    offsets = counts.offsets
    if not seen.all():
        offsets = arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), counts.offsets))
    return FiniteMDP(
        counts.pairs,
        offsets,
        counts.successor[seen],
        probability=arrays.own(counts.times[seen] / visited[seen]),
        reward=arrays.own(counts.mean_reward()[seen]),
        discount=spread_discount(counts.pairs, discount),
        initial=counts.starts / counts.starts.sum(),
        ending_reward=counts.unseen_reward(),
        endless=None,
    )


def estimate_behavior(counts: Counts, smoothing: float = 0.0) -> Policy:
    """The maximum-likelihood behavior policy π̂_b(a|s) = #_D(s,a) / #_D(s), marked as estimated.

    `smoothing` is a pseudo-count that every enabled action gets; a state never visited gets the
    uniform distribution (Simão, Laroche, Tachet des Combes 2020).
    """
    arrays.expect("counts", counts, Counts)
    if not (arrays.is_number(smoothing) and 0 <= smoothing < np.inf):
        raise InvalidParameter(f"smoothing is {smoothing!r}, expected a finite number of 0 or more")
    pairs = counts.pairs
    lengths = arrays.run_lengths(pairs.offsets)
    weight = counts.visits + float(smoothing)
    largest = np.maximum.reduceat(weight, pairs.offsets[:-1])
    unknown = np.repeat(largest == 0, lengths)
    # Each state's weights are scaled by their largest, so that no sum of them overflows.
    share = np.where(
        unknown, 1.0, weight / np.repeat(np.where(largest == 0, 1.0, largest), lengths)
    )
    return Policy(
        pairs, share / np.repeat(arrays.run_sums(share, pairs.offsets), lengths), estimated=True
    )
