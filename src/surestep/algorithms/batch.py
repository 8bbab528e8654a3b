"""One algorithm on many data sets of one shape, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray, IntArray, expect, freeze, restore_frozen
from surestep._reprs import short_repr
from surestep.algorithms.basic import BasicRL
from surestep.algorithms.contract import Improver
from surestep.algorithms.limits import Limited
from surestep.algorithms.spibb import SPIBB, BetaSPIBB, TwoSuccessorSPIBB, used_n_wedge
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.records import EliminationPlan
from surestep.kernels.small import Solutions
from surestep.kernels.spibb_batch import DataSets, improve_each, room_to_improve
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.mdp import spread_discount
from surestep.model.problem import Problem
from surestep.model.problem_batch import ProblemBatch
from surestep.planning.elimination import plan_elimination
from surestep.planning.iteration import ITERATION_LIMIT
from surestep.planning.proof import TIE_TOLERANCE

COMPILED = (BasicRL, SPIBB, TwoSuccessorSPIBB, BetaSPIBB)  # whose data sets are planned at once
TRUST_ALL = -1  # an N∧ that every pair exceeds


@dataclass(frozen=True, slots=True, eq=False)
class ImprovementBatch:
    """The improved policies of B data sets and their values in the estimated MDPs."""

    policy: FloatArray  # [B, K]
    value: FloatArray  # [B, S]
    iterations: IntArray  # [B]
    n_wedge: int | None  # the N∧ that was used, where there is one

    __repr__ = short_repr("policy.shape", "n_wedge")

    def __post_init__(self) -> None:
        """Freezes the arrays."""
        for name in ("policy", "value", "iterations"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    __setstate__ = restore_frozen


def improve_batch(
    algorithm: Improver, problems: ProblemBatch | Sequence[Problem]
) -> ImprovementBatch:
    """`algorithm.improve` on every problem; SPIBB and basic RL on small models run compiled.

    The compiled loop, which takes a batch, solves each policy exactly; its policies are those of
    `improve`, up to ties within rounding.
    """
    if not hasattr(algorithm, "improve"):
        raise InvalidParameter(f"algorithm is {algorithm!r}, expected one of surestep.algorithms")
    if isinstance(problems, ProblemBatch):
        if isinstance(algorithm, Limited) and limits_follow(algorithm, problems):
            algorithm = algorithm.algorithm
        # Without discounting values need not be finite, which only a whole model is checked for.
        if is_compiled(algorithm) and np.max(problems.discount) < 1:
            counts = problems.counts
            plan = plan_elimination(counts.pairs, counts.offsets, counts.successor)
            if plan is not None:
                return bootstrapped_batch(problems, trusted_above(algorithm, problems), plan)
        problems = [problems.problem(index) for index in range(problems.counts.num_data_sets)]
    elif not (isinstance(problems, Sequence) and problems):
        expect("problems", problems, ProblemBatch)
    improvements = [algorithm.improve(problem) for problem in problems]
    return ImprovementBatch(
        np.stack([improvement.policy.probability for improvement in improvements]),
        np.stack([improvement.plan.value for improvement in improvements]),
        np.array([improvement.plan.iterations for improvement in improvements]),
        improvements[0].n_wedge,
    )


def is_compiled(algorithm: object) -> bool:
    """Tells whether data sets are planned at once; not where a subclass improves otherwise."""
    kind = type(algorithm)
    return any(issubclass(kind, known) and kind.improve is known.improve for known in COMPILED)


def limits_follow(algorithm: Limited, problems: ProblemBatch) -> bool:
    """Tells whether an algorithm that keeps π_b up to its N∧ keeps to the limits by itself."""
    inner = algorithm.algorithm
    if not (isinstance(inner, SPIBB | TwoSuccessorSPIBB | BetaSPIBB) and is_compiled(inner)):
        return False
    return algorithm.limits.follow_from(used_n_wedge(inner, problems))


def trusted_above(algorithm: Improver, problems: ProblemBatch) -> int:
    """Returns the N∧ above which the algorithm trusts a pair."""
    if isinstance(algorithm, SPIBB | TwoSuccessorSPIBB | BetaSPIBB):
        return used_n_wedge(algorithm, problems)
    return TRUST_ALL


def bootstrapped_batch(
    problems: ProblemBatch, n_wedge: int, plan: EliminationPlan
) -> ImprovementBatch:
    """Policy iteration over Π_b, compiled, on all cores."""
    counts, pairs = problems.counts, problems.counts.pairs
    size = counts.num_data_sets
    data = DataSets(
        pairs.offsets,
        counts.offsets,
        counts.successor,
        counts.times,
        spread_discount(pairs, problems.discount),
        problems.expected_reward(),
        problems.behavior.probability,
    )
    solutions = Solutions.to_write(size, pairs.num_pairs, pairs.num_states)
    least = int(min(n_wedge, LARGEST_TOTAL))  # no pair has more visits
    room = room_to_improve(data, plan)
    improve_each.all(size, room, data, plan, least, TIE_TOLERANCE, ITERATION_LIMIT, solutions)
    policy, value, _, iterations = solutions
    if iterations.max() > ITERATION_LIMIT:
        raise NotConverged(
            f"policy iteration on data set {int(iterations.argmax())} stopped after "
            f"{ITERATION_LIMIT} rounds, the limit"
        )
    if not np.isfinite(value).all():
        raise NotConverged(
            f"the values of data set {int(np.argmin(np.isfinite(value).all(axis=1)))} are too "
            "large for doubles; scale the rewards down"
        )
    used = None if n_wedge == TRUST_ALL else n_wedge
    return ImprovementBatch(policy, value, iterations, used)
