"""Optimising the estimated MDP as if it were the truth, plain or with a price on scarce data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Settings
from surestep.algorithms.contract import NWedge, Promise
from surestep.algorithms.judging import improvement_of, valued_at_lowest
from surestep.algorithms.spibb import optimal_within
from surestep.model.problem import Improvement, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicRL:
    """The best policy of the MLE-MDP, with no safety at all: what the others are compared with.

    Unlike published code, pairs whose values agree up to rounding are ties, and the lowest action
    wins whatever the linear algebra library did.
    """

    name: ClassVar = "basic-rl"
    source: ClassVar = "dynamic programming on the MLE-MDP"
    constraint: ClassVar = ""
    promises: ClassVar = frozenset(
        {Promise.NEVER_WORSE, Promise.REACHES_OPTIMUM, Promise.RENUMBERING}
    )

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
