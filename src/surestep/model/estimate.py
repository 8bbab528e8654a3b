"""From counts to the MLE-MDP."""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, expect, offsets_of, own, run_lengths, run_sums
from surestep.model.counts import Counts
from surestep.model.mdp import FiniteMDP, spread_discount


def estimate_mdp(counts: Counts, discount: float | FloatArray) -> FiniteMDP:
    """The maximum-likelihood MDP: P̂(s'|s,a) = #_D(s,a,s') / #_D(s,a).

    A pair that was never visited gets no successor, and the known reward or none. `discount` is one
    number, or one a pair [K].
    """
    expect("counts", counts, Counts)
    visited = np.repeat(counts.visits, run_lengths(counts.offsets))
    seen = counts.times > 0
    offsets = counts.offsets
    if not seen.all():
        offsets = offsets_of(run_sums(seen.astype(np.int64), counts.offsets))
    return FiniteMDP(
        counts.pairs,
        offsets,
        counts.successor[seen],
        probability=own(counts.times[seen] / visited[seen]),
        reward=own(counts.mean_reward()[seen]),
        discount=spread_discount(counts.pairs, discount),
        initial=counts.starts / counts.starts.sum(),
        ending_reward=counts.unseen_reward(),
    )
