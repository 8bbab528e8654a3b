"""An algorithm, a kind of certificate and an environment that are not built in.

Tests register what is here, or install a copy of this file as a package of its own.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surestep.algorithms import SPIBB
from surestep.algorithms.contract import improvement_of
from surestep.certificates import Certifier
from surestep.certificates.common import Needs
from surestep.environments.families import bandit
from surestep.model import Certificate, Policy
from surestep.planning import performance


@dataclass(frozen=True, slots=True, kw_only=True)
class Halfway:
    """Half of the way from π_b to the policy of SPIBB."""

    n_wedge: int

    name: ClassVar = "halfway"
    source: ClassVar = "a test"
    constraint: ClassVar = "no action loses more than half of its chance"
    promises: ClassVar = frozenset()

    def improve(self, problem):
        best = SPIBB(n_wedge=self.n_wedge).improve(problem)
        between = (problem.behavior.probability + best.policy.probability) / 2
        policy = Policy(problem.counts.pairs, between)
        return improvement_of(problem, policy, best.plan.iterations, self.n_wedge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopeful(Certifier):
    """Claims the estimated gain less a margin, and calls that proved, which it is not."""

    delta: float = 0.1
    margin: float = 0.001

    name: ClassVar = "hopeful"
    value_figures: ClassVar = frozenset({"gain"})
    needs: ClassVar = Needs()
    may_choose: ClassVar = True

    def certify(self, problem, policy):
        changed = int(np.count_nonzero(policy.probability != problem.behavior.probability))
        model, (low, high) = problem.estimate(), problem.value_bounds
        gain = performance(model, policy) - performance(model, problem.behavior)
        return Certificate(
            kind=self.name,
            standing="proved",
            lower=gain - self.margin * changed,
            delta=self.delta,
            span=high - low,
            assumptions=("The estimate is the truth.",),
            parameters=dataclasses.asdict(self),
            figures={"gain": gain, "changed_pairs": changed},
        )


def coin(seed: int = 1):
    """A bandit with two arms."""
    return bandit(seed=seed, arms=2)
