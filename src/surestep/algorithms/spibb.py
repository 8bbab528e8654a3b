"""SPIBB: optimise where the data is rich, keep the behavior policy where it is not.

U = {(s,a) : #_D(s,a) ≤ N∧} are the bootstrapped pairs. Source: Laroche, Trichelair and Tachet des
Combes (2019); N∧ from the two-successor and β bounds: Wienhöft, Suilen, Simão, Dubslaff, Baier and
Jansen (2023), "the paper". Published code trusts a pair iff its count exceeds N∧, as here; the
proofs would allow "at least N∧".

Below them are the algorithms that SPIBB is compared with: they optimise the estimated MDP as if it
were the truth, plain or with a price on scarce data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Delta, Settings
from surestep.algorithms.contract import (
    Algorithm,
    NWedge,
    Promise,
    improvement_of,
    tie_of,
    valued_at_lowest,
)
from surestep.bounds import Bound, ProblemSize, equivalent_n_wedge, n_wedge
from surestep.kernels.spibb import fill_by_value, move_free_mass
from surestep.model import FiniteMDP, Improvement, Plan, Problem, ProblemBatch
from surestep.planning.iteration import GreedyStep, policy_iteration
from surestep.planning.optimum import optimal

MoveMass = Callable[
    [
        arrays.IntArray,
        arrays.FloatArray,
        arrays.FloatArray,
        arrays.BoolArray,
        float,
        arrays.FloatArray,
    ],
    None,
]


class Bootstrapped(Settings):
    """A base of algorithms that are tied to π_b on U, by an N∧ of their own."""

    __slots__ = ()

    source: ClassVar = "Laroche, Trichelair, Tachet des Combes 2019"
    promises: ClassVar = frozenset(Promise)
    move: ClassVar = staticmethod(move_free_mass)  # mass to better actions

    def improve(self, problem: Problem) -> Improvement:
        """Iterates policies from π_b that are tied to it on U, in the estimated MDP.

        Closed pairs count as U.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the value bounds.

        Returns
        -------
        Improvement
            The policy, and its value in the estimated MDP.
        """
        n_wedge = used_n_wedge(self, problem)
        trusted = (problem.counts.visits > n_wedge) & problem.open_pairs()
        step = greedy_near(
            problem.behavior.probability, problem.counts.pairs.offsets, trusted, self.move
        )
        plan = policy_iteration(problem.estimate(), step, start=problem.behavior)
        return Improvement.of(problem, plan, n_wedge)


@dataclass(frozen=True, slots=True)
class SPIBB(Bootstrapped):
    """Π_b-SPIBB: π_b on every pair seen at most `n_wedge` times, the rest optimised.

    Parameters
    ----------
    n_wedge : int
        N∧, taken literally: 0 trusts every visited pair.

    References
    ----------
    Laroche, R., Trichelair, P., Tachet des Combes, R. (2019). Safe Policy Improvement with Baseline
    Bootstrapping. ICML.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = SPIBB(n_wedge=10).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.59
    """

    n_wedge: NWedge  # N∧, taken literally: 0 trusts every visited pair

    name: ClassVar = "spibb"
    constraint: ClassVar = "π = π_b on pairs with at most N∧ visits"

    @classmethod
    def for_zeta(
        cls, zeta: float, problem: Problem, bound: str | Bound = "spibb", delta: float = 0.1
    ) -> "SPIBB":
        """Returns SPIBB with the N∧ from which on the bound claims a loss of at most `zeta`.

        Parameters
        ----------
        zeta : float
            The loss ζ that is accepted.
        problem : Problem
            The problem, for its numbers of states and actions, its discount and its value bounds.
        bound : str or Bound
            A bound, or its name in `surestep.bounds.BOUNDS`; "spibb" by default.
        delta : float
            The chance that the loss is larger; 0.1 by default.

        Returns
        -------
        SPIBB
            The algorithm.
        """
        arrays.expect("problem", problem, Problem)
        return cls(n_wedge=n_wedge(bound, zeta, ProblemSize.of(problem, delta)))


@dataclass(frozen=True, slots=True)
class LowerSPIBB(Bootstrapped):
    """Π_≤b-SPIBB: at most π_b on every pair seen at most `n_wedge` times, the rest optimised.

    Parameters
    ----------
    n_wedge : int
        N∧: pairs with at most that many visits are taken no more often than by π_b.

    References
    ----------
    Laroche, R., Trichelair, P., Tachet des Combes, R. (2019). Safe Policy Improvement with Baseline
    Bootstrapping. ICML.

    Examples
    --------
    >>> from surestep.algorithms import LowerSPIBB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = LowerSPIBB(n_wedge=10).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.6
    """

    n_wedge: NWedge  # N∧

    name: ClassVar = "lower-spibb"
    constraint: ClassVar = "π ≤ π_b on pairs with at most N∧ visits"
    move: ClassVar = staticmethod(fill_by_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedSPIBB(Bootstrapped):
    """SPIBB with the N∧ of another bound, from the problem's |S| and |A|."""

    spibb_n_wedge: Annotated[  # N∧^SPIBB
        int, Meta(ge=1, description="it is converted by way of the radius it buys")
    ]
    delta: Delta = 0.1

    source: ClassVar = "Wienhöft, Suilen, Simão, Dubslaff, Baier, Jansen 2023"
    bound: ClassVar[str]


class TwoSuccessorSPIBB(ConvertedSPIBB):
    """SPIBB with the N∧^2s that claims what `spibb_n_wedge` visits claim under SPIBB's bound.

    Parameters
    ----------
    spibb_n_wedge : int
        N∧ under SPIBB's bound, which is converted by way of the radius it buys.
    delta : float
        The chance that either bound fails; 0.1 by default.

    References
    ----------
    Wienhöft, P., Suilen, M., Simão, T., Dubslaff, C., Baier, C., Jansen, N. (2023). More for Less:
    Safe Policy Improvement With Stronger Performance Guarantees. IJCAI.

    Examples
    --------
    >>> from surestep.algorithms import TwoSuccessorSPIBB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> TwoSuccessorSPIBB(spibb_n_wedge=100).improve(problem).n_wedge
    55
    """

    __slots__ = ()

    name: ClassVar = "spibb-2s"
    constraint: ClassVar = "π = π_b on pairs with at most N∧^2s visits"
    bound: ClassVar = "2s"


class BetaSPIBB(ConvertedSPIBB):
    """SPIBB with the N∧^β that claims what `spibb_n_wedge` visits claim under SPIBB's bound.

    Parameters
    ----------
    spibb_n_wedge : int
        N∧ under SPIBB's bound, which is converted by way of the radius it buys.
    delta : float
        The chance that either bound fails; 0.1 by default.

    References
    ----------
    Wienhöft, P., Suilen, M., Simão, T., Dubslaff, C., Baier, C., Jansen, N. (2023). More for Less:
    Safe Policy Improvement With Stronger Performance Guarantees. IJCAI.

    Examples
    --------
    >>> from surestep.algorithms import BetaSPIBB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> BetaSPIBB(spibb_n_wedge=100).improve(problem).n_wedge
    27
    """

    __slots__ = ()

    name: ClassVar = "spibb-beta"
    constraint: ClassVar = "π = π_b on pairs with at most N∧^β visits"
    bound: ClassVar = "beta"


def greedy_near(
    behavior: arrays.FloatArray, offsets: arrays.IntArray, trusted: arrays.BoolArray, move: MoveMass
) -> GreedyStep:
    """Returns the best policy for q that keeps `behavior` [K] on pairs that are not trusted [K]."""

    def greedy_step(q: arrays.FloatArray) -> arrays.FloatArray:
        probability = np.empty(q.size)
        move(offsets, q, behavior, trusted, tie_of(q), probability)
        return probability

    return greedy_step


def optimal_within(problem: Problem, mdp: FiniteMDP) -> Plan:
    """Returns the best policy of a model among those that agree with π_b on closed pairs."""
    if problem.closed is None:
        return optimal(mdp)
    step = greedy_near(
        problem.behavior.probability, mdp.pairs.offsets, problem.open_pairs(), move_free_mass
    )
    return policy_iteration(mdp, step, start=problem.behavior)


def used_n_wedge(algorithm: Any, problem: Problem | ProblemBatch) -> int:
    """Returns the N∧ that the algorithm uses on a problem of that |S| and |A|."""
    arrays.expect("problem", problem, (Problem, ProblemBatch))
    if not isinstance(algorithm, ConvertedSPIBB):
        return int(algorithm.n_wedge)
    return equivalent_n_wedge(
        algorithm.spibb_n_wedge,
        ProblemSize(problem.num_states, problem.num_actions, algorithm.delta),
        given="spibb",
        wanted=algorithm.bound,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicRL(Algorithm):
    """The best policy of the MLE-MDP, with no safety at all: what the others are compared with.

    Notes
    -----
    Unlike in published code, pairs whose values agree up to rounding are ties, and the lowest
    action wins whatever the linear algebra library did.

    Examples
    --------
    >>> from surestep.algorithms import BasicRL
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = BasicRL().improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.6
    """

    name: ClassVar = "basic-rl"
    source: ClassVar = "dynamic programming on the MLE-MDP"
    promises: ClassVar = frozenset(Promise) - {Promise.KEEPS_BEHAVIOR, Promise.OPTIMAL_IN_CLASS}

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP over all policies.

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
        return Improvement.of(problem, optimal_within(problem, problem.estimate()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RaMDP(Settings, Algorithm):
    """Reward-adjusted MDP: R̂(s,a) − κ/√#_D(s,a), then dynamic programming.

    Parameters
    ----------
    kappa : float
        The price κ of scarce data.

    Notes
    -----
    The price of a pair never visited has no limit: it is worth the lower value bound, whatever
    `unseen` says. Published code differs from itself here: one version prices such a pair with
    κ/√(10⁻⁵), the other values it min R/(1 − γ).

    References
    ----------
    Petrik, M., Ghavamzadeh, M., Chow, Y. (2016). Safe Policy Improvement by Minimizing Robust
    Baseline Regret. NIPS.

    Examples
    --------
    >>> from surestep.algorithms import RaMDP
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = RaMDP(kappa=0.1).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.58
    """

    kappa: Annotated[float, Meta(ge=0, description="it is the price κ/√N on the reward of a pair")]

    name: ClassVar = "ramdp"
    source: ClassVar = "Petrik, Ghavamzadeh, Chow 2016"
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM, Promise.RENUMBERING})

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP with adjusted rewards.

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
        visits = problem.counts.visits
        price = self.kappa / np.sqrt(np.maximum(visits, 1))
        plan = optimal_within(problem, valued_at_lowest(problem, visits == 0, price))
        return improvement_of(problem, plan.policy, plan.iterations)


@dataclass(frozen=True, slots=True)
class RMin(Settings, Algorithm):
    """R-MIN: every pair seen at most `n_wedge` times is worth the lower value bound.

    Parameters
    ----------
    n_wedge : int
        N∧: pairs with at most that many visits are avoided.

    Notes
    -----
    Published code puts min R/(1 − γ) in its place, which is the same where that bound is tight.

    References
    ----------
    Brafman, R., Tennenholtz, M. (2002). R-max; turned to pessimism by Scholl, Dietrich, Otte and
    Udluft (2022).

    Examples
    --------
    >>> from surestep.algorithms import RMin
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = RMin(n_wedge=10).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.6
    """

    n_wedge: NWedge  # N∧

    name: ClassVar = "rmin"
    source: ClassVar = "Brafman, Tennenholtz 2002, turned to pessimism by Scholl et al. 2022"
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM, Promise.RENUMBERING})

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP in which scarce pairs end at the lower value bound.

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
        plan = optimal_within(
            problem, valued_at_lowest(problem, problem.counts.visits <= self.n_wedge)
        )
        return improvement_of(problem, plan.policy, plan.iterations, self.n_wedge)
