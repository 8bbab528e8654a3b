"""A floor of visits for algorithms that have none: what was hardly tried stays as it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import BoolArray, FloatArray, run_sums
from surestep.algorithms.contract import Algorithm, check_whole
from surestep.algorithms.judging import judged
from surestep.model.policy import Policy
from surestep.model.problem import Improvement, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Floored:
    """An algorithm, but for pairs seen fewer than `least_visits` times, which π_b decides."""

    algorithm: Algorithm
    least_visits: int

    def __post_init__(self) -> None:
        """Checks the floor."""
        check_whole("least_visits", self.least_visits, 0, "pairs seen less often are left alone")

    @property
    def name(self) -> str:
        """Returns the name of the algorithm."""
        return self.algorithm.name

    def improve(self, problem: Problem) -> Improvement:
        """Returns what the algorithm proposes where enough was seen, and π_b elsewhere."""
        proposed = self.algorithm.improve(problem)
        scarce = problem.counts.visits < self.least_visits
        policy = kept_where(scarce, proposed.policy, problem.behavior)
        if policy == proposed.policy:
            return proposed
        return judged(problem, policy, proposed.plan.iterations, proposed.n_wedge)


def kept_where(kept: BoolArray, policy: Policy, behavior: Policy) -> Policy:
    """Returns the policy with the chances of π_b on the pairs `kept` [K].

    The other pairs of a state share what is left in the proportions of the policy, or of π_b where
    the policy has nothing there.
    """
    offsets, state = policy.pairs.offsets, policy.pairs.state
    fixed: FloatArray = np.where(kept, behavior.probability, 0.0)
    free: FloatArray = np.where(kept, 0.0, policy.probability)
    nothing = run_sums(free, offsets)[state] <= 0.0
    free = np.where(nothing & ~kept, behavior.probability, free)
    left, total = 1.0 - run_sums(fixed, offsets), run_sums(free, offsets)
    scale = np.divide(left, total, out=np.ones_like(left), where=total > 0)
    touched = run_sums(kept.astype(np.int64), offsets)[state] > 0
    return Policy(
        policy.pairs,
        np.where(touched, fixed + np.maximum(free * scale[state], 0.0), policy.probability),
    )
