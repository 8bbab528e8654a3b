"""Limits: pairs that no policy may take more often than π_b, for any algorithm.

A pair that was hardly tried, or that nobody allows, is closed (`Problem.closed`): no policy takes
it more often than π_b. An algorithm that looks at closed pairs does the best it can with the
others, each in its own way: for SPIBB and for those that plan in one model they are as if seen too
seldom, for Soft-SPIBB a change of them has no price that could be paid, and those that test a
policy test it after it was held to π_b there. The policy of an algorithm that does not look is held
to π_b afterwards.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_settings
from surestep.algorithms.contract import Algorithm, improvement_of
from surestep.model import Counts, Improvement, Policy, Problem
from surestep.model.noun import noun

ROUNDING = 1e-12  # of a probability


@noun("least_visits", "allowed")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limits:
    """Limits that close pairs seen fewer than `least_visits` times, and pairs not in `allowed`."""

    least_visits: Annotated[int, Meta(ge=0, description="pairs seen less often are left alone")] = 0
    allowed: arrays.BoolArray | None = None  # [K]; None: all

    def __post_init__(self) -> None:
        check_settings(self)
        arrays.keep(self, allowed=self.allowed)

    def follow_from(self, n_wedge: int) -> bool:
        """Tells whether every pair that the limits close has at most N∧ visits."""
        return self.allowed is None and self.least_visits <= n_wedge + 1

    def closed(self, counts: Counts) -> arrays.BoolArray:
        """Returns the pairs [K] that no policy may take more often than π_b."""
        scarce: arrays.BoolArray = counts.visits < self.least_visits
        return scarce if self.allowed is None else scarce | ~self.allowed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and arrays.equal_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.least_visits, None if self.allowed is None else self.allowed.tobytes()))


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """An algorithm whose proposals keep to the limits."""

    algorithm: Algorithm
    limits: Limits

    @property
    def name(self) -> str:
        """Returns the name of the algorithm."""
        return self.algorithm.name

    def improve(self, problem: Problem) -> Improvement:
        """Returns the algorithm's proposal, in which no closed pair exceeds π_b."""
        within = problem.within(self.limits.closed(problem.counts))
        proposed = self.algorithm.improve(within)
        more = proposed.policy.probability > problem.behavior.probability + ROUNDING
        if not (more & ~within.open_pairs()).any():
            return proposed
        return improvement_of(
            problem, kept(within, proposed.policy), proposed.plan.iterations, proposed.n_wedge
        )


def limited(algorithm: Algorithm, limits: Limits) -> Algorithm | Limited:
    """Returns the algorithm within the limits; the algorithm itself if there are none."""
    return algorithm if limits == NO_LIMITS else Limited(algorithm=algorithm, limits=limits)


def kept(problem: Problem, policy: Policy) -> Policy:
    """Returns the policy with the probabilities of π_b on closed pairs."""
    return kept_where(~problem.open_pairs(), policy, problem.behavior)


def kept_where(kept: arrays.BoolArray, policy: Policy, behavior: Policy) -> Policy:
    """Returns the policy with the probabilities of π_b on the pairs `kept` [K].

    The other pairs of a state share what is left in the proportions of the policy, or of π_b where
    the policy has nothing there.
    """
    offsets = policy.pairs.offsets
    state = policy.pairs.state
    fixed: arrays.FloatArray = np.where(kept, behavior.probability, 0.0)
    free: arrays.FloatArray = np.where(kept, 0.0, policy.probability)
    nothing = arrays.run_sums(free, offsets)[state] <= 0.0
    free = np.where(nothing & ~kept, behavior.probability, free)
    left = 1.0 - arrays.run_sums(fixed, offsets)
    total = arrays.run_sums(free, offsets)
    scale = np.divide(left, total, out=np.ones_like(left), where=total > 0)
    changed = policy.probability != behavior.probability  # equal chances stay equal to the bit
    touched = (arrays.run_sums(kept * 1, offsets) > 0) & (arrays.run_sums(changed * 1, offsets) > 0)
    return Policy(
        policy.pairs,
        np.where(touched[state], fixed + np.maximum(free * scale[state], 0.0), policy.probability),
    )
