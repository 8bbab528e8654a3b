"""Plans by lower bounds: in the worst MDP of a set around the estimate, or with a bonus subtracted.

The set has an L1 ball around every row. Mass may go to any state; where nothing is known about the
reward of a transition it earns the mean reward of its pair. A pair never visited is worth the lower
value bound at worst. (In published code its row loses the mass it was given and it is worth 0, and
rows whose worst case does not sum to exactly 1 in floating point are left out.)
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Delta, Settings
from surestep.algorithms.contract import (
    Algorithm,
    Promise,
    ends_of_episodes,
    improvement_of,
    kept,
    kept_where,
    valued_at_lowest,
    with_known_reward,
)
from surestep.algorithms.soft import log_pairs_over
from surestep.algorithms.spibb import optimal_within
from surestep.model import FiniteMDP, Improvement, Problem
from surestep.planning.evaluation import q_values
from surestep.planning.rectangular import RectangularSet
from surestep.planning.robust import best_value, l1_ball, robust_optimal, worst_value


@dataclass(frozen=True, slots=True, kw_only=True)
class PessimisticMBIE(Settings, Algorithm):
    """Model-based interval estimation turned round: the best policy against the worst MDP.

    Parameters
    ----------
    delta : float
        The chance that a row of the true MDP is outside of its ball; 0.1 by default.

    Notes
    -----
    Each pair has an L1 ball of radius(N) = √(2 ln(2|S||A|(2^|S| − 2)/δ) / N) around its row.

    References
    ----------
    Strehl, A., Littman, M. (2008). An analysis of model-based interval estimation; turned to
    pessimism by Scholl, Dietrich, Otte and Udluft (2022).

    Examples
    --------
    >>> from surestep.algorithms import PessimisticMBIE
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = PessimisticMBIE().improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.58
    """

    delta: Delta = 0.1

    name: ClassVar = "pessimistic-mbie"
    source: ClassVar = "Strehl, Littman 2008, turned to pessimism by Scholl et al. 2022"
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM, Promise.RENUMBERING})

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy with the best worst case.

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
        states = problem.num_states
        subsets = -math.inf  # one state has one distribution
        if states > 1:
            subsets = states * math.log(2) + math.log1p(-(2.0 ** (1 - states)))
        plan = robust_optimal(ball_around(problem, self.delta, subsets, factor=2))
        return improvement_of(problem, kept(problem, plan.policy), plan.iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustMDP(Settings):
    """The policy with the best worst case, if even that beats the best case of π_b; else π_b.

    Parameters
    ----------
    delta : float
        The chance that a row of the true MDP is outside of its ball; 0.1 by default.

    Notes
    -----
    Each pair has an L1 ball of radius(N) = √((2/N) ln(|S||A| 2^|S| / δ)) around its row. Published
    code returns the policy untested; here the safety test decides.

    References
    ----------
    Petrik, M., Ghavamzadeh, M., Chow, Y. (2016). Safe Policy Improvement by Minimizing Robust
    Baseline Regret. NIPS.

    Examples
    --------
    >>> from surestep.algorithms import RobustMDP
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> RobustMDP().improve(problem).policy == problem.behavior  # too few data
    True
    """

    delta: Delta = 0.1

    name: ClassVar = "robust-mdp"
    source: ClassVar = "Petrik, Ghavamzadeh, Chow 2016"
    constraint: ClassVar = "π_b, unless the worst case of π beats the best case of π_b"
    promises: ClassVar = frozenset(Promise) - {Promise.OPTIMAL_IN_CLASS}

    def improve(self, problem: Problem) -> Improvement:
        """Returns the robust policy, if it passes the test.

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
        ball = ball_around(problem, self.delta, problem.num_states * math.log(2), factor=1)
        robust = robust_optimal(ball)
        candidate = kept(problem, robust.policy)
        # Both policies' errors are added to the claim: the test must not pass by rounding.
        worst = worst_value(ball, candidate)
        best = best_value(ball, problem.behavior)
        initial = problem.counts.starts / problem.counts.starts.sum()
        passes = initial @ worst.value - worst.error_bound > initial @ best.value + best.error_bound
        return improvement_of(problem, candidate if passes else problem.behavior, robust.iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class VILCB(Settings, Algorithm):
    """Value iteration with lower confidence bounds: every step is worth a bonus less than it seems.

    Parameters
    ----------
    delta : float
        The chance that the bonus of some pair is too small; 0.1 by default.
    scale : float
        The bonus in units of Hoeffding's; 1 by default.

    Notes
    -----
    Solves Q(s,a) = max{v, r̂ − b + γ P̂ V} and V(s) = max_a Q(s,a), with the value bounds v ≤ V ≤ w
    and b(s,a) = scale · (w − v) √(ln(2|S||A|/δ) / 2N). A pair never visited is worth v. Where no
    action is worth more than v, π_b stays. The paper takes b = V_max √(2000 ln(2(T+1)|S||A|/δ) / N)
    with rewards from 0 to 1, a fresh part of the data for each of T rounds, and the action that
    was seen most often where no other is worth more than 0. Here every round uses all data, as
    Li et al. do, and Hoeffding's constant, which is 63 times smaller; it is the right one for a
    value that does not depend on the data.

    References
    ----------
    Rashidinejad, P., Zhu, B., Ma, C., Jiao, J., Russell, S. (2021). Bridging Offline Reinforcement
    Learning and Imitation Learning. NeurIPS. Li, G., Shi, L., Chen, Y., Chi, Y., Wei, Y. (2024).
    Settling the Sample Complexity of Model-Based Offline Reinforcement Learning. Annals of
    Statistics.

    Examples
    --------
    >>> from surestep.algorithms import VILCB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = VILCB(scale=0.1).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.58
    """

    delta: Delta = 0.1
    scale: Annotated[float, Meta(ge=0, description="the bonus is so many times Hoeffding's")] = 1.0

    name: ClassVar = "vi-lcb"
    source: ClassVar = "Rashidinejad, Zhu, Ma, Jiao, Russell 2021"
    promises: ClassVar = frozenset(
        {Promise.KEEPS_BEHAVIOR, Promise.REACHES_OPTIMUM, Promise.RENUMBERING}
    )

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy with the best lower bound.

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
        unseen = problem.counts.visits == 0
        price = self.bonus(problem)
        priced = valued_at_lowest(problem, unseen, price)
        lowest = np.ones_like(unseen)
        plan = optimal_within(problem, valued_at_lowest(problem, lowest, price))
        while True:  # values rise, as each round stops at v only where going on is worth less
            lowest = unseen | (q_values(priced, plan.value) <= problem.value_bounds[0])
            higher = optimal_within(problem, valued_at_lowest(problem, lowest, price))
            if (higher.value <= plan.value + (plan.error_bound + higher.error_bound)).all():
                break
            plan = higher
        pairs = problem.counts.pairs
        hopeless = arrays.run_sums((~lowest).astype(np.int64), pairs.offsets) == 0
        policy = kept_where(hopeless[pairs.state], higher.policy, problem.behavior)
        return improvement_of(problem, policy, higher.iterations)

    def bonus(self, problem: Problem) -> arrays.FloatArray:
        """Returns b(s,a) of all pairs [K].

        Parameters
        ----------
        problem : Problem
            The data and the value bounds.

        Returns
        -------
        numpy.ndarray
            The bonus of each pair; that of one visit where there is none.
        """
        low, high = problem.value_bounds
        log_term = math.log(2) + log_pairs_over(problem, self.delta)
        visits = np.maximum(problem.counts.visits, 1)
        return np.asarray(self.scale * (high - low) * np.sqrt(log_term / (2 * visits)))


def ball_around(problem: Problem, delta: float, log_subsets: float, factor: int) -> RectangularSet:
    """Makes balls of radius √((2/N) (ln(factor·|S||A|/δ) + log_subsets)), at most 2, by pair.

    `log_subsets` is −∞ if there is only one distribution: then the radius is 0.
    """
    visits = problem.counts.visits
    center = estimate_with_known_rewards(problem)
    log_term = max(math.log(factor) + log_pairs_over(problem, delta) + log_subsets, 0.0)
    radius = np.minimum(np.sqrt(2 * log_term / np.maximum(visits, 1)), 2.0)
    guessed = (visits == 0) & ~ends_of_episodes(problem)
    low, high = problem.value_bounds
    ending = center.ending_reward
    return l1_ball(
        center,
        radius,
        outside_reward=center.expected_reward,
        # The estimate itself must lie in the set, whatever it takes unseen pairs to be worth.
        lowest=np.where(guessed, np.minimum(low, ending), ending),
        highest=np.where(guessed, np.maximum(high, ending), ending),
    )


def estimate_with_known_rewards(problem: Problem) -> FiniteMDP:
    """Returns the estimated MDP; known rewards keep transitions never seen, at P̂ = 0."""
    counts = problem.counts
    visits = np.repeat(counts.visits, arrays.run_lengths(counts.offsets))
    kept = with_known_reward(counts) & (visits > 0)
    return replace(
        problem.estimate(),
        offsets=arrays.offsets_of(arrays.run_sums(kept.astype(np.int64), counts.offsets)),
        successor=counts.successor[kept],
        probability=counts.times[kept] / visits[kept],
        reward=counts.mean_reward()[kept],
    )
