"""Problem and Improvement: what an algorithm is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from surestep._arrays import expect, is_number
from surestep.errors import InvalidParameter
from surestep.model.counts import Counts
from surestep.model.estimate import estimate_mdp
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import check_same_pairs
from surestep.model.plan import Plan
from surestep.model.policy import Policy

UnseenRule = Literal["terminal", "pessimistic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A safe-policy-improvement problem: the data D, the policy π_b that made it, and the terms.

    `value_bounds` = (low, high) bound every value V^π(s) of the true MDP. `unseen` says what a
    pair is worth that the data never visits: "terminal" means its known reward, or none, and then
    nothing; "pessimistic" means the lower value bound.
    """

    counts: Counts
    behavior: Policy  # π_b
    discount: float  # γ
    value_bounds: tuple[float, float]
    unseen: UnseenRule = "terminal"

    def __post_init__(self) -> None:
        """Checks that the parts belong together."""
        if not isinstance(self.counts, Counts):
            raise InvalidParameter(f"counts is {self.counts!r}, expected Counts")
        if not isinstance(self.behavior, Policy):
            raise InvalidParameter(f"behavior is {self.behavior!r}, expected a Policy")
        check_same_pairs(
            "the counts", self.counts.pairs, "the behavior policy", self.behavior.pairs
        )
        if not (is_number(self.discount) and 0 <= self.discount <= 1):
            raise InvalidParameter(f"discount is {self.discount!r}, expected 0 to 1")
        bounds = self.value_bounds
        if not (isinstance(bounds, tuple | list) and len(bounds) == 2):
            raise InvalidParameter(f"value_bounds is {bounds!r}, expected two numbers (low, high)")
        low, high = (float(bound) if is_number(bound) else np.nan for bound in bounds)
        if not -np.inf < low <= high < np.inf:
            raise InvalidParameter(
                f"value_bounds is {bounds!r}, expected two finite numbers, the lower one first"
            )
        if not isinstance(self.unseen, str) or self.unseen not in get_args(UnseenRule):
            raise InvalidParameter(
                f"unseen is {self.unseen!r}, expected one of {', '.join(get_args(UnseenRule))}"
            )
        object.__setattr__(self, "value_bounds", (low, high))

    @property
    def value_bound(self) -> float:
        """V_max of the paper: the larger magnitude of the two value bounds."""
        return max(abs(bound) for bound in self.value_bounds)

    def estimate(self) -> FiniteMDP:
        """The MLE-MDP of the counts, with unseen pairs worth what `unseen` says.

        States that are known to end episodes are not unseen: they are worth their known reward, or
        nothing, under either rule.
        """
        estimated = estimate_mdp(self.counts, self.discount)
        if self.unseen == "terminal":
            return estimated
        pairs, terminal = self.counts.pairs, self.counts.terminal
        unseen = (self.counts.visits == 0) & ~terminal[pairs.state]
        ending = np.where(unseen, self.value_bounds[0], estimated.ending_reward)
        return FiniteMDP(
            pairs,
            estimated.offsets,
            estimated.successor,
            estimated.probability,
            estimated.reward,
            estimated.discount,
            estimated.initial,
            ending,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """What `improve` returns: π_I, and the plan in the estimated MDP that it came from."""

    policy: Policy
    plan: Plan

    def __post_init__(self) -> None:
        """Checks the types."""
        expect("policy", self.policy, Policy)
        expect("plan", self.plan, Plan)
