"""The difference between two policies from one log, episode by episode.

Each value has mean Δ = ρ(π) − ρ(π_b) over the steps that are recorded, and is bounded below however
large the weights are, which is all that a one-sided interval needs. Subtracting the least possible
reward costs nothing, since weights have mean 1, and it makes every weighted term nonnegative.
"""

from __future__ import annotations

import math

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import ROUNDING_SLACK, FloatArray, IntArray
from surestep._settings import check_setting
from surestep.errors import InvalidParameter
from surestep.model.log import row_name
from surestep.offpolicy.estimate import MeanEstimate
from surestep.offpolicy.estimators import discount_powers, returns
from surestep.offpolicy.weights import ImportanceWeights


def paired_returns(weights: ImportanceWeights, discount: float, low: float) -> MeanEstimate:
    """Y = (w − 1)(G − G_min) of every episode, for returns that are never below `low` = G_min.

    Y ≥ −(G_max − G_min), whatever the weight.
    """
    check_setting("low", low, float)
    earned = returns(weights, discount)
    arrays.refuse_where(
        ~(earned >= low - ROUNDING_SLACK * abs(low)),  # a sum of γ^t r_min may be rounded
        lambda e: f"the return of episode {e} is {earned[e]}, expected at least low = {low}",
        "episode",
        InvalidParameter,
    )
    with np.errstate(over="ignore"):
        return MeanEstimate((weights.total - 1.0) * np.maximum(earned - low, 0.0))


def paired_rewards(
    weights: ImportanceWeights, discount: float, low: float, horizon: float
) -> MeanEstimate:
    """Y = Σ_{t<H} γ^t (w_{0:t} − 1)(r_t − r_min) of every episode; rewards are never below `low`.

    An episode that ended before the horizon H goes on with reward 0 and its last weight: only so
    does every weight have mean 1 at every step, and r_min drop out. So `low` must be at most 0
    where episodes end early, and H (inf, where γ < 1 and no episode is truncated) must not be read
    off the log. Y ≥ −(r_max − r_min) Σ_{t<H} γ^t, with r_max ≥ 0 if episodes may end early.
    """
    check_setting("low", low, float)
    powers, discount = discount_powers(weights, discount), float(discount)
    log, lengths = weights.log, arrays.run_lengths(weights.log.episode_offsets)
    check_horizon(weights, discount, horizon)
    arrays.refuse_where(
        ~(log.reward >= low),
        lambda i: (
            f"the reward of {row_name(log.episode_offsets, i)} is {log.reward[i]}, expected at "
            f"least low = {low}"
        ),
        "step",
        InvalidParameter,
    )
    arrays.refuse_where(
        (lengths < horizon) & (low > 0),
        lambda e: (
            f"low is {low}, but episode {e} earns 0 after its end, at step {lengths[e]} of "
            f"{horizon}; expected at most 0"
        ),
        "episode",
        InvalidParameter,
    )
    with np.errstate(over="ignore", invalid="ignore"):
        terms = powers * (weights.cumulative - 1.0) * (log.reward - low)
        after = (weights.total - 1.0) * -low * remaining_discount(discount, lengths, horizon)
        return MeanEstimate(arrays.run_sums(terms, log.episode_offsets) + after)


def remaining_discount(discount: float, lengths: IntArray, horizon: float) -> FloatArray:
    """Σ_{length ≤ t < H} γ^t for each of the lengths [E], all of them at least 1."""
    left = horizon - lengths
    if discount == 0:  # also where the horizon is infinite
        return np.zeros(lengths.size)
    if discount == 1:
        return left
    whole = -np.expm1(left * math.log(discount)) / (1.0 - discount)  # Σ_{t < left} γ^t
    result: FloatArray = discount**lengths * whole
    return result


def check_horizon(weights: ImportanceWeights, discount: float, horizon: object) -> None:
    """Refuses a horizon that is none, or that the log does not reach or does not keep."""
    if (
        not arrays.is_number(horizon)
        or not (horizon >= 1 and horizon == np.floor(horizon))
        or (discount == 1 and horizon == np.inf)
    ):
        raise InvalidParameter(
            f"horizon is {horizon!r}, expected a whole number of 1 or more, or inf with a discount "
            "below 1"
        )
    log, lengths = weights.log, arrays.run_lengths(weights.log.episode_offsets)
    over = log.terminated[log.episode_offsets[1:] - 1]
    arrays.refuse_where(
        (lengths > horizon) | (~over & (lengths < horizon)),
        lambda e: (
            f"episode {e} is {'over' if over[e] else 'truncated'} after {lengths[e]} steps; "
            f"expected horizon = {horizon}, or less where it is over"
        ),
        "episode",
        InvalidParameter,
    )
