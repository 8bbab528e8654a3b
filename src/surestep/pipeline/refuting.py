"""Bounds that a user gave, held against the data before anything rests on them."""

from __future__ import annotations

from surestep.certificates.refuting import check_ends, check_observed, check_reward_bounds
from surestep.errors import RefutedBounds
from surestep.model import Problem
from surestep.pipeline.certifying import RewardFacts
from surestep.pipeline.terms import Terms


def check_given_bounds(terms: Terms, problem: Problem, rewards: RewardFacts) -> None:
    """Refuses bounds of rewards or values that a reward of the data refutes."""
    if terms.reward_bounds is not None:
        low, high = terms.reward_bounds
        least, most = rewards.bounds  # with 0, which an end earns, whatever the bounds
        refuting = least if least < min(low, 0) else most if most > max(high, 0) else None
        if refuting is not None:
            raise RefutedBounds(
                f"reward_bounds is ({low}, {high}), but a reward of the data is {refuting}; "
                "expected bounds of all rewards"
            )
        check_reward_bounds(problem.counts, (low, high))
    if terms.value_bounds is not None or terms.reward_bounds is not None:
        check_observed(problem)
        check_ends(problem)
