"""Plan: a policy together with what is known about its value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep._reprs import short_repr
from surestep.model.policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A policy, its value, and how far that value can be off.

    Both V^π of the policy and the best value in the class that was searched (V* for `optimal`)
    lie within `error_bound` of `value` in every state; so the policy is within 2·`error_bound` of
    the best one. `q` is r + ΓPv for v = `value`: the value of each pair. `residual` is
    max_s |(Tv)(s) − v(s)| for the operator T that was iterated. Where policies may go round for
    ever without discount, the bound of `policy_iteration` is about V^π alone.
    """

    policy: Policy
    value: FloatArray  # [S]
    iterations: int
    residual: float
    error_bound: float
    q: FloatArray | None = None  # [K]; None of a worst case over several models

    __repr__ = short_repr("policy.pairs.num_states", "value", "iterations", "error_bound")

    def __post_init__(self) -> None:
        """Freezes the arrays."""
        arrays.keep(self, value=self.value, q=self.q)

    __setstate__ = arrays.restore_frozen


def negated(plan: Plan) -> Plan:
    """Returns the plan with values of the other sign."""
    return replace(plan, value=-plan.value, q=None if plan.q is None else -plan.q)
