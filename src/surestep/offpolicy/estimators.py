"""Importance-sampling estimators of the reward of a policy, from the log of another one.

All of them estimate the expected discounted reward Σ_t γ^t r_t of π over as many steps as the log
records: until the process ends, or until the recording is cut off. They keep the parts of the
estimate, since an interval needs one value an episode, and what the estimate would have been had
the log held other multiplicities of its episodes.

**The difference between two policies** is taken episode by episode.
Each value has mean Δ = ρ(π) − ρ(π_b) over the steps that are recorded, and is bounded below however
large the weights are, which is all that a one-sided interval needs. Subtracting the least possible
reward costs nothing, since weights have mean 1, and it makes every weighted term nonnegative.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.errors import InvalidParameter, UnsupportedPolicy
from surestep.model.log import row_name
from surestep.model.noun import noun
from surestep.offpolicy.weights import ImportanceWeights


@noun("value", "values.size")
@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate:
    """The mean of one value an episode; the values are independent and have the right mean.

    Parameters
    ----------
    values : array of float [E]
        One value for each episode. Their mean is the attribute `value`.

    Examples
    --------
    >>> from surestep.offpolicy import MeanEstimate
    >>> MeanEstimate(np.array([1.0, 3.0])).value
    2.0
    """

    values: arrays.FloatArray  # [E]
    value: float = field(init=False)

    @np.errstate(over="ignore", invalid="ignore")
    def __post_init__(self) -> None:
        values = arrays.numbers("values", self.values, InvalidParameter).astype(float, copy=False)
        if values.ndim != 1 or values.size == 0:
            raise InvalidParameter(f"values have shape {values.shape}, expected one an episode")
        mean = values.mean()
        check_finite(mean)
        arrays.keep(self, values=values, value=float(mean))

    def resampled(self, multiplicity: arrays.AnyArray) -> arrays.FloatArray:
        """Returns the estimates of resampled logs, Σ_i m_bi x_i / Σ_i m_bi.

        Parameters
        ----------
        multiplicity : array of int [B, E]
            How often each episode is in each of B logs.

        Returns
        -------
        array of float [B]
            The estimate of each log.
        """
        means: arrays.FloatArray = multiplicity @ self.values / multiplicity.sum(axis=1)
        return means


@noun("value", "values.size")
@dataclass(frozen=True, slots=True, eq=False)
class RatioEstimate:
    """A sum of weighted means, Σ_t (Σ_i x_it / Σ_i w_it), one at every step t over the episodes i.

    Episode i owns a run of terms, one a step. After its last step it goes on with x = 0 and its
    last weight.

    Parameters
    ----------
    offsets : array of int [E+1]
        Where the terms of each episode begin.
    term : array of float
        The terms x_it.
    weight : array of float
        The weights w_it.

    Raises
    ------
    UnsupportedPolicy
        If no episode has any weight left at some step.

    Notes
    -----
    The attribute `value` is the estimate θ. The attribute `values` [E] is its linearisation in its
    sums, θ + Σ_t (x_it − R_t w_it) / mean_j w_jt with R_t = Σ_i x_it / Σ_i w_it (the delta method):
    their mean is θ, and their spread over √E is the standard error of θ in large logs.

    Examples
    --------
    >>> from surestep.offpolicy import RatioEstimate
    >>> RatioEstimate(np.array([0, 1, 2]), np.array([1.0, 4.0]), np.array([1.0, 2.0])).value
    1.6666666666666667
    """

    offsets: arrays.IntArray  # [E+1]
    term: arrays.FloatArray
    weight: arrays.FloatArray
    value: float = field(init=False)
    values: arrays.FloatArray = field(init=False)  # [E]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def __post_init__(self) -> None:
        lengths = arrays.run_lengths(self.offsets)
        size = int(lengths.max())
        last = self.weight[self.offsets[1:] - 1]
        step = arrays.ranges(0, lengths)  # of each term
        totals = np.cumsum(np.bincount(lengths, last, minlength=size + 1)[:size], dtype=np.float64)
        totals += np.bincount(step, self.weight, minlength=size)
        if (gone := ~(totals > 0)).any():
            raise UnsupportedPolicy(
                f"at step {np.argmax(gone)} no episode of the log has any weight left: the "
                "policy would not have acted like any of them; expected more episodes, or an "
                "estimator without weighted means"
            )
        ratio = np.bincount(step, self.term, minlength=size) / totals
        scale = lengths.size / totals
        later = np.append(np.cumsum((ratio * scale)[::-1])[::-1], 0.0)
        linear = arrays.run_sums(
            self.term * scale[step] - self.weight * (ratio * scale)[step], self.offsets
        )
        values = ratio.sum() + (linear - last * later[lengths])
        check_finite(values)
        arrays.keep(self, value=float(ratio.sum()), values=arrays.own(values))

    def resampled(self, multiplicity: arrays.AnyArray) -> arrays.FloatArray:
        """Returns the estimates of resampled logs; a step without any weight left counts as 0.

        Parameters
        ----------
        multiplicity : array of int [B, E]
            How often each episode is in each of B logs.

        Returns
        -------
        array of float [B]
            The estimate of each log.
        """
        from scipy.sparse import csr_array

        lengths = arrays.run_lengths(self.offsets)
        shape = (lengths.size, int(lengths.max()))
        step = arrays.ranges(0, lengths)  # of each term
        m = multiplicity.astype(np.float64)
        ended = np.flatnonzero(lengths < shape[1])
        after = csr_array(
            (self.weight[self.offsets[1:] - 1][ended], (ended, lengths[ended])), shape
        )
        sums = m @ csr_array((self.term, step, self.offsets), shape)
        totals = m @ csr_array((self.weight, step, self.offsets), shape)
        totals = totals + np.cumsum(m @ after, axis=1)
        estimates: arrays.FloatArray = np.divide(
            sums, totals, out=np.zeros_like(sums), where=totals > 0
        ).sum(axis=1)
        return estimates


def check_finite(values: arrays.FloatArray) -> None:
    """Refuses an estimate that no double holds."""
    if not np.isfinite(values).all():
        raise UnsupportedPolicy(
            "the estimate is too large for doubles; expected a policy nearer to the behavior policy"
        )


Estimate = MeanEstimate | RatioEstimate  # with its `value`, and one of the `values` an episode
Estimator = Callable[[ImportanceWeights, float], Estimate]  # of weights and a discount


@np.errstate(over="ignore", invalid="ignore")
def importance_sampling(weights: ImportanceWeights, discount: float) -> MeanEstimate:
    """Returns (1/E) Σ_i w_i G_i (IS): the whole weight times the discounted return."""
    return MeanEstimate(weights.total * returns(weights, discount))


@np.errstate(over="ignore", invalid="ignore")
def per_decision(weights: ImportanceWeights, discount: float) -> MeanEstimate:
    """Returns (1/E) Σ_i Σ_t γ^t w_{i,0:t} r_it (PDIS; Precup, Sutton, Singh 2000).

    Each reward has the weight of the decisions before it.
    """
    earned = discounted_rewards(weights, discount)
    return MeanEstimate(arrays.run_sums(weights.cumulative * earned, weights.log.episode_offsets))


@np.errstate(over="ignore", invalid="ignore")
def weighted_importance_sampling(weights: ImportanceWeights, discount: float) -> RatioEstimate:
    """Returns Σ_i w_i G_i / Σ_i w_i (WIS). It is biased, but consistent, and rarely wild."""
    return RatioEstimate(
        np.arange(weights.log.num_episodes + 1),
        weights.total * returns(weights, discount),
        weights.total,
    )


@np.errstate(over="ignore")
def weighted_per_decision(weights: ImportanceWeights, discount: float) -> RatioEstimate:
    """Returns Σ_t γ^t Σ_i w_{i,0:t} r_it / Σ_i w_{i,0:t} (CWPDIS in Thomas's thesis, 2015).

    An episode that is over goes on with reward 0 and its last weight: E[w_{0:t}] = 1 holds at every
    step only so, and a mean over the episodes still running would estimate E[r_t | still running].
    The older form that divides by one total over all steps is not consistent.
    """
    return RatioEstimate(
        weights.log.episode_offsets,
        weights.cumulative * discounted_rewards(weights, discount),
        weights.cumulative,
    )


@np.errstate(over="ignore", invalid="ignore")
def doubly_robust(
    weights: ImportanceWeights, discount: float, q: arrays.FloatArray
) -> MeanEstimate:
    """Returns the doubly robust estimate (DR): per-decision sampling around a model's Q̂.

    Parameters
    ----------
    weights : ImportanceWeights
        The weights of the policy.
    discount : float
        The discount γ.
    q : array of float [K] or [S, A]
        Q̂ of each pair, which must not come from the same log.

    Returns
    -------
    MeanEstimate
        The estimate, with one value an episode.

    Notes
    -----
    D_t = V̂(s_t) + ρ_t (r_t + γ D_{t+1} − Q̂(s_t,a_t)), with V̂(s) = Σ_a π(a|s) Q̂(s,a), so that it is
    unbiased for any Q̂; unrolled, D_0 = Σ_t γ^t w_{0:t−1} (V̂(s_t) + ρ_t (r_t − Q̂(s_t,a_t))). The
    estimate is (1/E) Σ_i D_i0.

    References
    ----------
    N. Jiang and L. Li, "Doubly robust off-policy value evaluation for reinforcement learning", ICML
    2016.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import doubly_robust, importance_weights
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> weights = importance_weights(log, careful, behavior)
    >>> round(doubly_robust(weights, 0.9, np.zeros((2, 2))).value, 2)
    -1.19
    """
    powers = discount_powers(weights, discount)
    log = weights.log
    flat = log.pairs.flat("q", q, InvalidParameter)
    value = arrays.run_sums(weights.policy.probability * flat, log.pairs.offsets)
    surprise = value[log.state] + weights.ratio * (log.reward - flat[log.pair])
    before = np.roll(weights.cumulative, 1)
    before[log.episode_offsets[:-1]] = 1.0
    return MeanEstimate(arrays.run_sums(powers * before * surprise, log.episode_offsets))


ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "is": importance_sampling,
    "pdis": per_decision,
    "wis": weighted_importance_sampling,
    "wpdis": weighted_per_decision,
    "dr": doubly_robust,  # which takes Q̂, too
}


def discount_powers(weights: ImportanceWeights, discount: float) -> arrays.FloatArray:
    """Returns γ^t for every step of the log [N]."""
    arrays.expect("weights", weights, ImportanceWeights)
    gamma = arrays.read_discount(discount)
    step = weights.log.step
    return np.power(gamma, np.arange(int(step.max()) + 1))[step]


def discounted_rewards(weights: ImportanceWeights, discount: float) -> arrays.FloatArray:
    """Returns γ^t r_t for every step of the log [N]."""
    return discount_powers(weights, discount) * weights.log.reward


@np.errstate(over="ignore", invalid="ignore")  # an infinite estimate is refused
def returns(weights: ImportanceWeights, discount: float) -> arrays.FloatArray:
    """Returns G = Σ_t γ^t r_t of every episode [E]."""
    return arrays.run_sums(discounted_rewards(weights, discount), weights.log.episode_offsets)


@np.errstate(over="ignore")
def paired_returns(weights: ImportanceWeights, discount: float, low: float) -> MeanEstimate:
    """Returns Y = (w − 1)(G − G_min) of every episode: its mean is the gain over π_b.

    Y ≥ −(G_max − G_min), whatever the weight.

    Parameters
    ----------
    weights : ImportanceWeights
        The weights of the policy.
    discount : float
        The discount γ.
    low : float
        G_min, the least that a return can be.

    Returns
    -------
    MeanEstimate
        One value an episode.

    Raises
    ------
    InvalidParameter
        If a return is below `low`.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import importance_weights, paired_returns
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> floor = -sum(0.9**t for t in range(5))  # no return is below it
    >>> weights = importance_weights(log, careful, behavior)
    >>> round(paired_returns(weights, discount=0.9, low=floor).value, 2)
    0.18
    """
    check_setting("low", low, float)
    earned = returns(weights, discount)
    for e, others in arrays.first_where(
        ~(earned >= low - arrays.ROUNDING_SLACK * abs(low)), "episode"
    ):
        raise InvalidParameter(
            f"the return of episode {e} is {earned[e]}, expected at least low = {low}{others}"
        )
    return MeanEstimate((weights.total - 1.0) * np.maximum(earned - low, 0.0))


@np.errstate(over="ignore", invalid="ignore")
def paired_rewards(
    weights: ImportanceWeights, discount: float, low: float, horizon: float
) -> MeanEstimate:
    """Returns Y = Σ_{t<H} γ^t (w_{0:t} − 1)(r_t − r_min) of every episode.

    Its mean is the gain over π_b, and Y ≥ −(r_max − r_min) Σ_{t<H} γ^t, with r_max ≥ 0 if episodes
    may end early.

    Parameters
    ----------
    weights : ImportanceWeights
        The weights of the policy.
    discount : float
        The discount γ.
    low : float
        The least reward r_min that is possible; at most 0 where episodes end early.
    horizon : float
        The number of steps H that episodes have at most, not read off the log. It may be inf where
        γ < 1 and no episode is truncated.

    Returns
    -------
    MeanEstimate
        One value an episode.

    Raises
    ------
    InvalidParameter
        If a reward is below `low`, or an episode does not fit the horizon.

    Notes
    -----
    An episode that ended before the horizon goes on with reward 0 and its last weight: only so does
    every weight have mean 1 at every step, and r_min drop out.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import importance_weights, paired_rewards
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> weights = importance_weights(log, careful, behavior)
    >>> round(paired_rewards(weights, discount=0.9, low=-1.0, horizon=5).value, 2)
    0.18
    """
    check_setting("low", low, float)
    powers = discount_powers(weights, discount)
    discount = float(discount)
    log = weights.log
    lengths = arrays.run_lengths(log.episode_offsets)
    whole = arrays.is_number(horizon) and horizon >= 1 and horizon == np.floor(horizon)
    if not whole or (discount == 1 and horizon == np.inf):
        raise InvalidParameter(
            f"horizon is {horizon!r}, expected a whole number of 1 or more, or inf with a discount "
            "below 1"
        )
    over = log.terminated[log.episode_offsets[1:] - 1]
    for e, others in arrays.first_where(
        (lengths > horizon) | (~over & (lengths < horizon)), "episode"
    ):
        raise InvalidParameter(
            f"episode {e} is {'over' if over[e] else 'truncated'} after {lengths[e]} steps; "
            f"expected horizon = {horizon}, or less where it is over{others}"
        )
    for i, others in arrays.first_where(~(log.reward >= low), "step"):
        raise InvalidParameter(
            f"the reward of {row_name(log.episode_offsets, i)} is {log.reward[i]}, expected at "
            f"least low = {low}{others}"
        )
    for e, others in arrays.first_where((lengths < horizon) & (low > 0), "episode"):
        raise InvalidParameter(
            f"low is {low}, but episode {e} earns 0 after its end, at step {lengths[e]} of "
            f"{horizon}; expected at most 0{others}"
        )
    terms = powers * (weights.cumulative - 1.0) * (log.reward - low)
    after = (weights.total - 1.0) * -low * remaining_discount(discount, lengths, horizon)
    return MeanEstimate(arrays.run_sums(terms, log.episode_offsets) + after)


def remaining_discount(
    discount: float, lengths: arrays.IntArray, horizon: float
) -> arrays.FloatArray:
    """Returns Σ_{length ≤ t < H} γ^t for each of the lengths [E], all of them at least 1."""
    left = horizon - lengths
    if discount == 0:  # also where the horizon is infinite
        return np.zeros(lengths.size)
    if discount == 1:
        return left
    whole = -np.expm1(left * math.log(discount)) / (1.0 - discount)  # Σ_{t < left} γ^t
    result: arrays.FloatArray = discount**lengths * whole
    return result
