"""Bounds that a user gave, held against the data before anything rests on them."""

from __future__ import annotations

from surestep.certificates.refuting import check_ends, check_observed, check_reward_bounds
from surestep.model import Problem
from surestep.pipeline.terms import Terms


def check_given_bounds(terms: Terms, problem: Problem) -> None:
    """Refuses bounds of rewards or values that a reward of the data refutes."""
    if terms.reward_bounds is not None:
        check_reward_bounds(problem.counts, terms.reward_bounds)
    if terms.value_bounds is not None or terms.reward_bounds is not None:
        check_observed(problem)
        check_ends(problem)
