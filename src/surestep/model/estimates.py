"""Estimates the most likely model and the most likely behavior policy from counts."""

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidParameter
from surestep.model.counts import Counts
from surestep.model.mdp import FiniteMDP, spread_discount
from surestep.model.policy import Policy


def estimate_mdp(counts: Counts, discount: float | arrays.FloatArray) -> FiniteMDP:
    """Returns the maximum-likelihood MDP: P̂(s'|s,a) = #_D(s,a,s') / #_D(s,a).

    Parameters
    ----------
    counts : Counts
        The data.
    discount : float or array of float [K]
        One discount for all pairs, or one for each.

    Returns
    -------
    FiniteMDP
        A pair that was never visited has no successor; it earns its known reward, or 0. Episodes
        end only as in the log (`endless` is None).

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], reward_sums=[[8.0], [0.0]])
    >>> estimated = surestep.estimate_mdp(counts, discount=0.9)
    >>> estimated.dense().P[0, 0], estimated.expected_reward
    (array([0.75, 0.25]), array([2., 0.]))
    """
    arrays.expect("counts", counts, Counts)
    visited = np.repeat(counts.visits, arrays.run_lengths(counts.offsets))
    seen = counts.times > 0
    return FiniteMDP(
        counts.pairs,
        arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), counts.offsets)),
        counts.successor[seen],
        probability=arrays.own(counts.times[seen] / visited[seen]),
        reward=arrays.own(counts.mean_reward()[seen]),
        discount=spread_discount(counts.pairs, discount),
        initial=counts.starts / counts.starts.sum(),
        ending_reward=counts.unseen_reward(),
        endless=None,
    )


def estimate_behavior(counts: Counts, smoothing: float = 0.0) -> Policy:
    """Returns the maximum-likelihood behavior policy π̂_b(a|s) = #_D(s,a) / #_D(s).

    Parameters
    ----------
    counts : Counts
        The data.
    smoothing : float, default 0.0
        A pseudo-count that every enabled action gets.

    Returns
    -------
    Policy
        It is marked as estimated. A state that was never visited has the uniform distribution.

    Raises
    ------
    InvalidParameter
        If `smoothing` is negative or not finite.

    References
    ----------
    Simão, Laroche, Tachet des Combes: Safe Policy Improvement with an Estimated Baseline Policy,
    AAMAS 2020.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[2], [1]]], rewards=[[0.0, 1.0]])
    >>> surestep.estimate_behavior(counts, smoothing=1.0).dense()
    array([[0.6, 0.4]])
    """
    arrays.expect("counts", counts, Counts)
    if not (arrays.is_number(smoothing) and 0 <= smoothing < np.inf):
        raise InvalidParameter(f"smoothing is {smoothing!r}, expected a finite number of 0 or more")
    pairs = counts.pairs
    lengths = arrays.run_lengths(pairs.offsets)
    weight = counts.visits + float(smoothing)
    largest = np.repeat(np.maximum.reduceat(weight, pairs.offsets[:-1]), lengths)
    # Each state's weights are scaled by their largest, so that no sum of them overflows.
    share = np.where(largest == 0, 1.0, weight / np.where(largest == 0, 1.0, largest))
    return Policy(
        pairs, share / np.repeat(arrays.run_sums(share, pairs.offsets), lengths), estimated=True
    )
