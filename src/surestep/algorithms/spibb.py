"""SPIBB: optimise where the data is rich, keep the behavior policy where it is not.

U = {(s,a) : #_D(s,a) ≤ N∧} are the bootstrapped pairs. Source: Laroche, Trichelair and Tachet des
Combes (2019); N∧ from the two-successor and β bounds: Wienhöft, Suilen, Simão, Dubslaff, Baier and
Jansen (2023), "the paper". Published code trusts a pair iff its count exceeds N∧, as here; the
proofs would allow "at least N∧".

Below them, what SPIBB is compared with: optimising the estimated MDP as if it were the truth, plain
or with a price on scarce data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep._settings import Delta, Settings
from surestep.algorithms.contract import NWedge, Promise, improvement_of, tie_of, valued_at_lowest
from surestep.bounds import Bound, ProblemSize, equivalent_n_wedge, n_wedge
from surestep.kernels.spibb import fill_by_value, move_free_mass
from surestep.model.batch import ProblemBatch
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Plan
from surestep.model.problem import Improvement, Problem
from surestep.planning.iteration import GreedyStep, policy_iteration
from surestep.planning.optimum import optimal

MoveMass = Callable[[IntArray, FloatArray, FloatArray, BoolArray, float, FloatArray], None]

Converted = Annotated[int, Meta(ge=1, description="it is converted by way of the radius it buys")]


class Bootstrapped(Settings):
    """A base of algorithms that are tied to π_b on U, by an N∧ of their own."""

    __slots__ = ()

    source: ClassVar = "Laroche, Trichelair, Tachet des Combes 2019"
    promises: ClassVar = frozenset(Promise)

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP over the policies that agree with π_b on U."""
        return bootstrapped(problem, used_n_wedge(self, problem), move_free_mass)


@dataclass(frozen=True, slots=True)
class SPIBB(Bootstrapped):
    """Π_b-SPIBB: π_b on every pair seen at most `n_wedge` times, the rest optimised."""

    n_wedge: NWedge  # N∧, taken literally: 0 trusts every visited pair

    name: ClassVar = "spibb"
    constraint: ClassVar = "π = π_b on pairs with at most N∧ visits"

    @classmethod
    def for_zeta(
        cls, zeta: float, problem: Problem, bound: str | Bound = "spibb", delta: float = 0.1
    ) -> SPIBB:
        """Returns SPIBB with the N∧ from which on the bound claims a loss of at most `zeta`."""
        arrays.expect("problem", problem, Problem)
        return cls(n_wedge=n_wedge(bound, zeta, ProblemSize.of(problem, delta)))


@dataclass(frozen=True, slots=True)
class LowerSPIBB(Bootstrapped):
    """Π_≤b-SPIBB: at most π_b on every pair seen at most `n_wedge` times, the rest optimised."""

    n_wedge: NWedge  # N∧

    name: ClassVar = "lower-spibb"
    constraint: ClassVar = "π ≤ π_b on pairs with at most N∧ visits"

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP over the policies that nowhere exceed π_b on U."""
        return bootstrapped(problem, used_n_wedge(self, problem), fill_by_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedSPIBB(Bootstrapped):
    """SPIBB with the N∧ of another bound, from the problem's |S| and |A|."""

    spibb_n_wedge: Converted  # N∧^SPIBB
    delta: Delta = 0.1

    source: ClassVar = "Wienhöft, Suilen, Simão, Dubslaff, Baier, Jansen 2023"
    bound: ClassVar[str]


class TwoSuccessorSPIBB(ConvertedSPIBB):
    """SPIBB with the N∧^2s that claims what `spibb_n_wedge` visits claim under SPIBB's bound."""

    __slots__ = ()

    name: ClassVar = "spibb-2s"
    constraint: ClassVar = "π = π_b on pairs with at most N∧^2s visits"
    bound: ClassVar = "2s"


class BetaSPIBB(ConvertedSPIBB):
    """SPIBB with the N∧^β that claims what `spibb_n_wedge` visits claim under SPIBB's bound."""

    __slots__ = ()

    name: ClassVar = "spibb-beta"
    constraint: ClassVar = "π = π_b on pairs with at most N∧^β visits"
    bound: ClassVar = "beta"


def bootstrapped(problem: Problem, n_wedge: int, move: MoveMass) -> Improvement:
    """Policy iteration from π_b over policies that are tied to it on U, in the estimated MDP.

    Closed pairs count as U.
    """
    trusted = (problem.counts.visits > n_wedge) & problem.open_pairs()
    step = greedy_near_behavior(problem, trusted, move)
    plan = policy_iteration(problem.estimate(), step, start=problem.behavior)
    return Improvement.of(problem, plan, n_wedge)


def greedy_near_behavior(problem: Problem, trusted: BoolArray, move: MoveMass) -> GreedyStep:
    """Returns the best policy for q that is tied to π_b on pairs not trusted."""
    offsets, behavior = problem.counts.pairs.offsets, problem.behavior.probability

    def greedy_step(q: FloatArray) -> FloatArray:
        probability = np.empty(q.size)
        move(offsets, q, behavior, trusted, tie_of(q), probability)
        return probability

    return greedy_step


def optimal_within(problem: Problem, mdp: FiniteMDP) -> Plan:
    """Returns the best policy of a model among those that agree with π_b on closed pairs."""
    if problem.closed is None:
        return optimal(mdp)
    step = greedy_near_behavior(problem, problem.open_pairs(), move_free_mass)
    return policy_iteration(mdp, step, start=problem.behavior)


def used_n_wedge(algorithm: Any, problem: Problem | ProblemBatch) -> int:
    """Returns the N∧ that the algorithm uses on a problem of that |S| and |A|."""
    arrays.expect("problem", problem, (Problem, ProblemBatch))
    if not isinstance(algorithm, ConvertedSPIBB):
        return int(algorithm.n_wedge)
    size = ProblemSize(problem.num_states, problem.num_actions, algorithm.delta)
    return equivalent_n_wedge(algorithm.spibb_n_wedge, size, given="spibb", wanted=algorithm.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicRL:
    """The best policy of the MLE-MDP, with no safety at all: what the others are compared with.

    Unlike published code, pairs whose values agree up to rounding are ties, and the lowest action
    wins whatever the linear algebra library did.
    """

    name: ClassVar = "basic-rl"
    source: ClassVar = "dynamic programming on the MLE-MDP"
    constraint: ClassVar = ""
    promises: ClassVar = frozenset(Promise) - {Promise.KEEPS_BEHAVIOR, Promise.OPTIMAL_IN_CLASS}

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP over all policies."""
        arrays.expect("problem", problem, Problem)
        return Improvement.of(problem, optimal_within(problem, problem.estimate()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RaMDP(Settings):
    """Reward-adjusted MDP: R̂(s,a) − κ/√#_D(s,a), then dynamic programming.

    The price of a pair never visited has no limit: it is worth the lower value bound, whatever
    `unseen` says. Published code differs from itself here: one version prices such a pair with
    κ/√(10⁻⁵), the other values it min R/(1 − γ).
    """

    kappa: Annotated[float, Meta(ge=0, description="it is the price κ/√N on the reward of a pair")]

    name: ClassVar = "ramdp"
    source: ClassVar = "Petrik, Ghavamzadeh, Chow 2016"
    constraint: ClassVar = ""
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM, Promise.RENUMBERING})

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP with adjusted rewards."""
        arrays.expect("problem", problem, Problem)
        visits = problem.counts.visits
        price = self.kappa / np.sqrt(np.maximum(visits, 1))
        plan = optimal_within(problem, valued_at_lowest(problem, visits == 0, price))
        return improvement_of(problem, plan.policy, plan.iterations)


@dataclass(frozen=True, slots=True)
class RMin(Settings):
    """R-MIN: every pair seen at most `n_wedge` times is worth the lower value bound.

    Published code puts min R/(1 − γ) in its place, which is the same where that bound is tight.
    """

    n_wedge: NWedge  # N∧

    name: ClassVar = "rmin"
    source: ClassVar = "Brafman, Tennenholtz 2002, turned to pessimism by Scholl et al. 2022"
    constraint: ClassVar = ""
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM, Promise.RENUMBERING})

    def improve(self, problem: Problem) -> Improvement:
        """Optimises the estimated MDP in which scarce pairs end at the lower value bound."""
        arrays.expect("problem", problem, Problem)
        visits = problem.counts.visits
        plan = optimal_within(problem, valued_at_lowest(problem, visits <= self.n_wedge))
        return improvement_of(problem, plan.policy, plan.iterations, self.n_wedge)
