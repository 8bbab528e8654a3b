"""Runs algorithms on many data sets of one shape in one call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.contract import Improver, Limited
from surestep.algorithms.spibb import SPIBB, BasicRL, BetaSPIBB, TwoSuccessorSPIBB, used_n_wedge
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.elimination import Allowed
from surestep.kernels.records import EliminationPlan, Models
from surestep.model import Problem, ProblemBatch
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.mdp import spread_discount
from surestep.model.noun import noun
from surestep.planning.batch import plan_elimination, values_by_plan
from surestep.planning.optimum import TRUST_ALL, best_of_each

COMPILED = (BasicRL, SPIBB, TwoSuccessorSPIBB, BetaSPIBB)  # whose data sets are planned at once


@noun("policy.shape", "n_wedge")
@dataclass(frozen=True, slots=True, eq=False)
class ImprovementBatch(arrays.Frozen):
    """The improved policies of B data sets and their values in the estimated MDPs.

    Parameters
    ----------
    policy : array of float [B, K]
        The probability of each pair.
    value : array of float [B, S]
        The value of each state in the estimated MDP.
    iterations : array of int [B]
        The number of iterations of each.
    n_wedge : int or None
        The N∧ that was used; None for algorithms without one.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB, improve_batch
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problems = [world.problem(world.sample(50, seed)) for seed in (1, 2)]
    >>> batch = improve_batch(SPIBB(n_wedge=10), problems)
    >>> batch.n_wedge, batch.policy.shape
    (10, (2, 100))
    """

    policy: arrays.FloatArray  # [B, K]
    value: arrays.FloatArray  # [B, S]
    iterations: arrays.IntArray  # [B]
    n_wedge: int | None  # the N∧ that was used, where there is one


def improve_batch(
    algorithm: Improver, problems: ProblemBatch | Sequence[Problem]
) -> ImprovementBatch:
    """Improves every problem; SPIBB and basic RL on small models run compiled, on all cores.

    The compiled loop takes a `ProblemBatch` and solves each policy exactly. Its policies are those
    of `improve`, up to ties within rounding.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm.
    problems : ProblemBatch or sequence of Problem
        Data sets of one shape.

    Returns
    -------
    ImprovementBatch
        The policies, in the order of the problems.

    Raises
    ------
    NotConverged
        Values are too large for doubles.

    Examples
    --------
    >>> from surestep.algorithms import BasicRL, improve_batch
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problems = [world.problem(world.sample(50, seed)) for seed in (1, 2)]
    >>> improve_batch(BasicRL(), problems).policy.shape
    (2, 100)
    """
    return improve_batches([algorithm], problems)[0]


def improve_batches(
    algorithms: Sequence[Improver], problems: ProblemBatch | Sequence[Problem]
) -> list[ImprovementBatch]:
    """Returns the `improve_batch` of each algorithm; all that are compiled run at once."""
    for algorithm in algorithms:
        if not hasattr(algorithm, "improve"):
            raise InvalidParameter(
                f"algorithm is {algorithm!r}, expected one of surestep.algorithms"
            )
    if not isinstance(problems, ProblemBatch):
        if not (isinstance(problems, Sequence) and problems):
            arrays.expect("problems", problems, ProblemBatch)
        return [improved_singly(algorithm, problems) for algorithm in algorithms]
    together = improved_together(algorithms, problems)
    missing = len(together) < len(algorithms)
    singles = [problems.problem(i) for i in range(problems.counts.num_data_sets if missing else 0)]
    return [
        together[place] if place in together else improved_singly(algorithm, singles)
        for place, algorithm in enumerate(algorithms)
    ]


def improved_singly(algorithm: Improver, problems: Sequence[Problem]) -> ImprovementBatch:
    """Improves one problem after the other; returns all improvements."""
    improvements = [algorithm.improve(problem) for problem in problems]
    return ImprovementBatch(
        np.stack([improvement.policy.probability for improvement in improvements]),
        np.stack([improvement.plan.value for improvement in improvements]),
        np.array([improvement.plan.iterations for improvement in improvements]),
        improvements[0].n_wedge,
    )


def improved_together(
    algorithms: Sequence[Improver], problems: ProblemBatch
) -> dict[int, ImprovementBatch]:
    """Runs the algorithms that are compiled together; maps their places to their improvements."""
    n_wedges = {}
    for place, algorithm in enumerate(algorithms):
        inner = algorithm.algorithm if isinstance(algorithm, Limited) else algorithm
        # Without discounting values need not be finite, which only a whole model is checked for.
        if not is_compiled(inner) or np.max(problems.discount) == 1:
            continue
        trusted = TRUST_ALL
        if isinstance(inner, SPIBB | TwoSuccessorSPIBB | BetaSPIBB):
            trusted = used_n_wedge(inner, problems)
        # An algorithm that keeps π_b up to its N∧ may keep to the limits without help.
        if not isinstance(algorithm, Limited) or algorithm.limits.follow_from(trusted):
            n_wedges[place] = trusted
    counts = problems.counts
    plan = plan_elimination(counts.pairs, counts.offsets, counts.successor) if n_wedges else None
    if plan is None:
        return {}
    return dict(
        zip(n_wedges, bootstrapped_batches(problems, [*n_wedges.values()], plan), strict=True)
    )


def is_compiled(algorithm: object) -> bool:
    """Tells whether data sets are planned at once; False for a subclass with its own `improve`."""
    kind = type(algorithm)
    return any(issubclass(kind, known) and kind.improve is known.improve for known in COMPILED)


def bootstrapped_batches(
    problems: ProblemBatch, n_wedges: Sequence[int], plan: EliminationPlan
) -> list[ImprovementBatch]:
    """Iterates policies over Π_b for each N∧, compiled, on all cores."""
    counts = problems.counts
    pairs = counts.pairs
    size = counts.num_data_sets
    models = Models(
        pairs.offsets,
        counts.offsets,
        counts.successor,
        counts.times / np.maximum(counts.visits, 1)[:, arrays.run_owners(counts.offsets)],
        spread_discount(pairs, problems.discount),
        problems.expected_reward(),
    )
    behavior = problems.behavior.probability
    start, _ = values_by_plan(models, behavior[np.newaxis], plan)
    least = np.array([int(min(n_wedge, LARGEST_TOTAL)) for n_wedge in n_wedges])  # of visits
    starts = np.tile(start, (len(n_wedges), 1))
    policy, value, _, iterations = best_of_each(
        models, Allowed(behavior, counts.visits, least), plan, starts, "on data set"
    )
    for i, _ in arrays.first_where(np.any(~np.isfinite(value), axis=1), "data set"):
        raise NotConverged(
            f"the values of data set {i % size} are too large for doubles; scale the rewards down"
        )
    parts = [slice(first, first + size) for first in range(0, len(starts), size)]
    return [
        ImprovementBatch(
            policy[part], value[part], iterations[part], None if n_wedge == TRUST_ALL else n_wedge
        )
        for part, n_wedge in zip(parts, n_wedges, strict=True)
    ]
