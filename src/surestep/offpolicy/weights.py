"""Computes importance weights: how much likelier a policy is to act as a log than π_b."""

from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidLog, UnsupportedPolicy
from surestep.kernels.runs import running_products
from surestep.model.log import DecisionLog, row_name
from surestep.model.noun import noun
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy


@noun("log.num_episodes", "log.num_steps", "ratio")
@dataclass(frozen=True, slots=True, eq=False)
class ImportanceWeights:
    """The ratios π(a|s) / π_b(a|s) of the steps of a log, and their products.

    Parameters
    ----------
    log : DecisionLog
        The log.
    policy : Policy
        The policy π to be judged.
    behavior : Policy
        The policy π_b that made the log.
    ratio : array of float [N]
        The ratio ρ_t of each step.
    cumulative : array of float [N]
        The product w_{0:t} = ρ_0 ⋯ ρ_t up to each step of an episode.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import importance_weights
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> importance_weights(log, careful, behavior).total.shape
    (2000,)
    """

    log: DecisionLog
    policy: Policy
    behavior: Policy
    ratio: arrays.FloatArray  # [N]
    cumulative: arrays.FloatArray  # [N]

    @property
    def total(self) -> arrays.FloatArray:
        """Returns the weight w of each whole episode [E]: how much likelier π acts as it did."""
        return self.cumulative[self.log.episode_offsets[1:] - 1]


def importance_weights(log: DecisionLog, policy: Policy, behavior: Policy) -> ImportanceWeights:
    """Returns ρ_t = π(a_t|s_t) / π_b(a_t|s_t) and w_{0:t} = ρ_0 ⋯ ρ_t for every step of a log.

    Where the log has the probability with which each row's action was taken, ρ_t is relative to
    that: the decision may have rested on more than the state. π_b then is only a mean, and weights
    relative to a mean are biased.

    Parameters
    ----------
    log : DecisionLog
        The log.
    policy : Policy
        The policy π to be judged.
    behavior : Policy
        The policy π_b that made the log.

    Returns
    -------
    ImportanceWeights
        The weights. One that is too small for a double is 0.

    Raises
    ------
    InvalidLog
        If π_b never takes a logged action, and the log has no probabilities of its own.
    UnsupportedPolicy
        If π takes an action that π_b never takes in a state of the log, since estimates would be
        biased; or if a weight is too large for a double.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import importance_weights
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> np.unique(importance_weights(log, careful, behavior).ratio)
    array([0.4, 1.6])
    """
    arrays.expect("log", log, DecisionLog)
    arrays.expect("policy", policy, Policy)
    arrays.expect("behavior", behavior, Policy)
    pairs = log.pairs
    check_same_pairs("the log", pairs, "the behavior policy", behavior.pairs)
    check_same_pairs("the log", pairs, "the policy", policy.pairs)
    if log.propensity is None:
        for i, others in arrays.first_where(behavior.probability[log.pair] == 0, "step"):
            raise InvalidLog(
                f"{row_name(log.episode_offsets, i)} takes {pairs.pair_name(int(log.pair[i]))}, "
                "which the behavior policy never does; expected the policy that made the "
                f"log{others}"
            )
        for k, others in arrays.first_where(
            unsupported_pairs(policy, behavior) & np.isin(pairs.state, log.state), "pair"
        ):
            raise UnsupportedPolicy(
                f"the policy takes {pairs.pair_name(k)} with probability "
                f"{policy.probability[k]:.10g}, but the behavior policy never does; expected only "
                f"what that may do{others}"
            )
    taken = behavior.probability[log.pair] if log.propensity is None else log.propensity
    with np.errstate(over="ignore"):
        ratio = policy.probability[log.pair] / taken
    cumulative = running_products(log.episode_offsets, ratio)
    for i, others in arrays.first_where(~(np.isfinite(ratio) & np.isfinite(cumulative)), "step"):
        raise UnsupportedPolicy(
            f"the importance weight of {row_name(log.episode_offsets, i)} is too large for a "
            "double; expected a policy nearer to the behavior policy, for episodes this "
            f"long{others}"
        )
    return ImportanceWeights(log, policy, behavior, arrays.own(ratio), arrays.own(cumulative))


def unsupported_pairs(policy: Policy, behavior: Policy) -> arrays.BoolArray:
    """Returns the pairs [K] that `policy` may take and `behavior` never does."""
    check_same_pairs("the policy", policy.pairs, "the behavior policy", behavior.pairs)
    unsupported: arrays.BoolArray = (policy.probability > 0) & (behavior.probability == 0)
    return unsupported
