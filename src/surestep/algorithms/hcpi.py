"""HCPI: high-confidence policy improvement, by a test on episodes the policy was not made from.

Source: Thomas, Theocharous and Ghavamzadeh (2015), "High Confidence Policy Improvement". Unlike in
the published code of the SPI papers, the bound is a lower one (theirs, with c = 0.9, lies above the
mean), doubly robust estimates keep their fractions (theirs are cut to whole numbers, which leaves
PDIS), weighted estimators are weighted, the BCa bootstrap is one, and π_b is judged by its own
returns in the log, episode by episode, never by its true performance.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Delta, Settings
from surestep.algorithms.contract import Promise, improvement_of, kept
from surestep.algorithms.spibb import greedy_near
from surestep.certificates.episodes import parts_of_log
from surestep.errors import InvalidParameter, UnsupportedPolicy
from surestep.kernels.spibb import move_free_mass
from surestep.model import DecisionLog, Improvement, Policy, Problem
from surestep.offpolicy import (
    ESTIMATORS,
    MeanEstimate,
    bca_bootstrap,
    doubly_robust,
    importance_weights,
    student_t,
)
from surestep.offpolicy.estimators import Estimator, returns
from surestep.planning import evaluate, policy_iteration, q_values

BEHAVIOR_SHARES = tuple(tenth / 10 for tenth in range(10))  # λ of the candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class HCPI(Settings):
    """The best mixture of a greedy policy with π_b, if a test on fresh episodes says it is better.

    The first `train_share` of the episodes makes the greedy policy and chooses the mixture
    (1 − λ)π + λπ_b, λ = 0, 0.1 … 0.9. On the others, the mean difference to π_b's returns must be
    above 0 by a lower bound at level `delta`.

    Parameters
    ----------
    delta : float
        The level of the test; 0.1 by default.
    estimator : {"is", "pdis", "wis", "wpdis", "dr"}
        The estimate of a candidate's returns; "dr" by default.
    interval : {"student-t", "bca"}
        The bound of the test; "student-t" by default. Both hold in the limit of many episodes only.
    train_share : float
        The share of the episodes that makes and chooses the policy; 0.2 by default.
    seed : int
        The seed of the bootstrap; 0 by default.

    Notes
    -----
    Performance is that of the recorded steps: where episodes were cut off, of so many steps.

    References
    ----------
    Thomas, P., Theocharous, G., Ghavamzadeh, M. (2015). High Confidence Policy Improvement. ICML.

    Examples
    --------
    >>> from surestep.algorithms import HCPI
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(1000, 1))
    >>> better = HCPI().improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.6
    """

    delta: Delta = 0.1
    estimator: Annotated[
        Literal["is", "pdis", "wis", "wpdis", "dr"],
        Meta(description="it says what candidates would have earned"),
    ] = "dr"
    interval: Annotated[
        Literal["student-t", "bca"], Meta(description="it makes the bound of the test")
    ] = "student-t"
    train_share: Annotated[
        float, Meta(ge=0, le=1, description="the other episodes are for the test")
    ] = 0.2
    seed: Annotated[int, Meta(ge=0, description="the bootstrap draws the same each time")] = 0

    name: ClassVar = "hcpi"
    source: ClassVar = "Thomas, Theocharous, Ghavamzadeh 2015"
    constraint: ClassVar = "π = π_b where training never decides, and everywhere without proof"
    promises: ClassVar = frozenset({Promise.KEEPS_BEHAVIOR})
    looks_at_log: ClassVar = True

    def improve(self, problem: Problem) -> Improvement:
        """Returns the chosen candidate, if it passes the test; else π_b.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the value bounds.

        Returns
        -------
        Improvement
            The policy, and its value in the estimated MDP.
        """
        arrays.expect("problem", problem, Problem)
        if problem.log is None and problem.counts.visits.any():
            raise InvalidParameter(
                "HCPI looks at whole episodes, but the problem has no log; give it as "
                "Problem(log=…)"
            )
        chosen = problem.behavior
        if problem.log is not None:
            parts = parts_of_log(problem.log, self.train_share, None)
            train, test = (part and part.whole() for part in parts)
            if train and test and min(train.num_episodes, test.num_episodes) >= 2:
                chosen = self._tested(problem, train, test)  # a spread needs two
        return improvement_of(problem, chosen, iterations=1)

    def _tested(self, problem: Problem, train: DecisionLog, test: DecisionLog) -> Policy:
        """Returns the candidate that training prefers, if the test prefers it to π_b."""
        greedy, q = trained(problem, train)
        estimator = ESTIMATORS[self.estimator]
        if self.estimator == "dr":
            estimator = partial(doubly_robust, q=q)
        candidates = [greedy.mix(problem.behavior, share) for share in BEHAVIOR_SHARES]
        in_training = [differences(problem, train, one, estimator) for one in candidates]
        predicted = [
            0.0 if gains is None else predicted_bound(gains, test.num_episodes, self.delta)
            for gains in in_training
        ]
        best = candidates[int(np.argmax(predicted))]
        gains = differences(problem, test, best, estimator)
        if max(predicted) <= 0 or gains is None:
            return problem.behavior
        if self.interval == "student-t":
            bound = student_t(gains, self.delta)
        else:
            bound = bca_bootstrap(MeanEstimate(gains), self.delta, np.random.default_rng(self.seed))
        return best if bound > 0 else problem.behavior


def trained(problem: Problem, train: DecisionLog) -> tuple[Policy, arrays.FloatArray]:
    """Returns the best policy over the pairs that training visits, and q of its model [K].

    It is π_b in all other states, and on closed pairs.
    (The SPI papers train by Q-learning on 5,000 random transitions; this is what that aims at.)
    """
    pairs = problem.counts.pairs
    part = Problem(
        counts=train.counts(),
        behavior=problem.behavior,
        discount=problem.single_discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
    )
    somewhere = np.repeat(
        arrays.run_sums(part.counts.visits, pairs.offsets) > 0, arrays.run_lengths(pairs.offsets)
    )
    elsewhere = np.where(somewhere, 0.0, problem.behavior.probability)
    mdp = part.estimate()
    step = greedy_near(elsewhere, pairs.offsets, part.counts.visits > 0, move_free_mass)
    plan = policy_iteration(mdp, step, start=Policy(pairs, step(mdp.expected_reward)))
    policy = kept(problem, plan.policy)
    return policy, q_values(mdp, evaluate(mdp, policy))


def differences(
    problem: Problem, log: DecisionLog, policy: Policy, estimator: Estimator
) -> arrays.FloatArray | None:
    """Estimates how much more than π_b the policy would have earned in each episode [E].

    Returns None if the log cannot tell: no weight is left, or one is too large for a double.
    """
    try:
        weights = importance_weights(log, policy, problem.behavior)
        estimate = estimator(weights, problem.single_discount)
    except UnsupportedPolicy:
        return None
    return estimate.values - returns(weights, problem.single_discount)


def predicted_bound(gains: arrays.FloatArray, size: int, delta: float) -> float:
    """Returns the Student-t bound that `size` values with this mean and spread would have."""
    mean = float(gains.mean())
    return mean - (mean - student_t(gains, delta)) * float(np.sqrt(gains.size / size))
