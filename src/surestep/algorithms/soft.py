"""Soft-SPIBB: change π_b as far as a budget allows in which uncertain pairs are expensive.

Every policy obeys Σ_a e(s,a) |π(a|s) − π_b(a|s)| ≤ ε in each state, with e the error function; the
lower forms charge increases only. ε is that budget itself (of the two published codes, one passes
2ε to its routines). Source: Nadjahi, Laroche and Tachet des Combes (2019); lower, advantage and
Bernstein forms: Scholl, Dietrich, Otte and Udluft (2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from surestep._arrays import FloatArray
from surestep.algorithms.contract import Promise, check_choice, check_range
from surestep.algorithms.error_functions import check_error, errors_of, pair_returns
from surestep.algorithms.judging import improvement_of, tie_of
from surestep.bounds import Bound
from surestep.errors import NotConverged
from surestep.kernels.soft import keep_better_rows, spend_budget, spend_budget_greedily
from surestep.model.plan import Plan
from surestep.model.policy import Policy
from surestep.model.problem import Improvement, Problem
from surestep.planning.evaluation import evaluate, evaluate_with_bound
from surestep.planning.iteration import ITERATION_LIMIT, GreedyStep, policy_iteration
from surestep.planning.pruning import Backup

BehaviorQ = Literal["model", "monte-carlo"]
NADJAHI = "Nadjahi, Laroche, Tachet des Combes 2019"
SCHOLL = "Scholl, Dietrich, Otte, Udluft 2022"
KEEPS = frozenset({Promise.KEEPS_BEHAVIOR, Promise.RENUMBERING})
SAFE = KEEPS | {Promise.NEVER_WORSE, Promise.REACHES_OPTIMUM}
WHY_BEHAVIOR_Q = "it says where q of π_b comes from"
BUDGET = "Σ_a e |π − π_b| ≤ ε in every state"


def check_soft(epsilon: object, delta: float, error: str | Bound) -> None:
    """Checks the settings that the whole family shares."""
    check_range("epsilon", epsilon, 0, np.inf, "it is the budget of each state")
    check_error(error, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSoftSPIBB:
    """The best policy of the estimated MDP within the budget: a linear program per state."""

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"

    name: ClassVar = "exact-soft-spibb"
    source: ClassVar = NADJAHI
    constraint: ClassVar = BUDGET
    promises: ClassVar = SAFE | {Promise.OPTIMAL_IN_CLASS}

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)

    def improve(self, problem: Problem) -> Improvement:
        """Policy iteration with the exact greedy step."""
        error = errors_of(self.error, problem, self.delta)
        step = exact_step(problem, leave=error, enter=error, budget=self.epsilon)
        plan = policy_iteration(problem.estimate(), step, start=problem.behavior)
        return Improvement.of(problem, plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerSoftSPIBB:
    """The best policy of the estimated MDP where the budget pays for increases only.

    Published code has a greedy approximation of this step; here it is solved exactly.
    """

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"

    name: ClassVar = "lower-soft-spibb"
    source: ClassVar = SCHOLL
    constraint: ClassVar = "Σ_a e (π − π_b)⁺ ≤ ε in every state"
    promises: ClassVar = SAFE | {Promise.OPTIMAL_IN_CLASS}

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)

    def improve(self, problem: Problem) -> Improvement:
        """Policy iteration with the exact greedy step."""
        error = errors_of(self.error, problem, self.delta)
        step = exact_step(problem, np.zeros(error.size), error, self.epsilon)
        plan = policy_iteration(problem.estimate(), step, start=problem.behavior)
        return Improvement.of(problem, plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxSoftSPIBB:
    """Soft-SPIBB with the greedy approximation of its step, and a guard that keeps better rows.

    In published code the guard sleeps through the first iteration; here π_b itself is guarded.
    """

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"

    name: ClassVar = "approx-soft-spibb"
    source: ClassVar = NADJAHI
    constraint: ClassVar = BUDGET
    promises: ClassVar = SAFE

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)

    def improve(self, problem: Problem) -> Improvement:
        """Guarded iteration with the approximate step."""
        error = errors_of(self.error, problem, self.delta)
        step = approximate_step(problem, error, np.zeros(error.size), self.epsilon)
        return Improvement.of(problem, guarded_iteration(problem, step))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageSoftSPIBB:
    """ApproxSoftSPIBB that, in each state, also gains under q of π_b as the log shows it.

    `behavior_q` is that q: the mean return after each visit ("monte-carlo", which needs the log),
    or q of π_b in the estimated MDP ("model").
    """

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"
    behavior_q: BehaviorQ = "monte-carlo"

    name: ClassVar = "advantage-soft-spibb"
    source: ClassVar = SCHOLL
    constraint: ClassVar = BUDGET
    promises: ClassVar = KEEPS | {Promise.NEVER_WORSE}

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)
        check_choice("behavior_q", self.behavior_q, get_args(BehaviorQ), WHY_BEHAVIOR_Q)

    def improve(self, problem: Problem) -> Improvement:
        """Guarded iteration with the approximate step under the advantage condition."""
        error = errors_of(self.error, problem, self.delta)
        reference = q_of_behavior(problem, self.behavior_q)
        step = approximate_step(problem, error, reference, self.epsilon)
        return Improvement.of(problem, guarded_iteration(problem, step))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepExactSoftSPIBB:
    """One exact Soft-SPIBB step from π_b, on its q in the estimated MDP or from the log."""

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"
    behavior_q: BehaviorQ = "model"

    name: ClassVar = "one-step-exact-soft-spibb"
    source: ClassVar = NADJAHI
    constraint: ClassVar = BUDGET

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)
        check_choice("behavior_q", self.behavior_q, get_args(BehaviorQ), WHY_BEHAVIOR_Q)

    @property
    def promises(self) -> frozenset[Promise]:
        """A step on the estimated MDP's own q is never worse there; one on the log's q may be."""
        return one_step_promises(self.behavior_q)

    def improve(self, problem: Problem) -> Improvement:
        """Returns the exact step, once."""
        error = errors_of(self.error, problem, self.delta)
        q = q_of_behavior(problem, self.behavior_q)
        probability = exact_step(problem, error, error, self.epsilon)(q)
        return improvement_of(problem, Policy(problem.counts.pairs, probability), iterations=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepApproxSoftSPIBB:
    """One approximate Soft-SPIBB step from π_b, on its q in the estimated MDP or from the log."""

    epsilon: float  # ε
    delta: float = 1.0
    error: str | Bound = "hoeffding"
    behavior_q: BehaviorQ = "model"

    name: ClassVar = "one-step-approx-soft-spibb"
    source: ClassVar = NADJAHI
    constraint: ClassVar = BUDGET

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_soft(self.epsilon, self.delta, self.error)
        check_choice("behavior_q", self.behavior_q, get_args(BehaviorQ), WHY_BEHAVIOR_Q)

    @property
    def promises(self) -> frozenset[Promise]:
        """A step on the estimated MDP's own q is never worse there; one on the log's q may be."""
        return one_step_promises(self.behavior_q)

    def improve(self, problem: Problem) -> Improvement:
        """Returns the approximate step, once, in the states where it is better."""
        error = errors_of(self.error, problem, self.delta)
        q = q_of_behavior(problem, self.behavior_q)
        candidate = approximate_step(problem, error, np.zeros(q.size), self.epsilon)(q)
        probability = problem.behavior.probability.copy()
        keep_better_rows(problem.counts.pairs.offsets, q, candidate, tie_of(q), probability)
        return improvement_of(problem, Policy(problem.counts.pairs, probability), iterations=1)


def one_step_promises(behavior_q: BehaviorQ) -> frozenset[Promise]:
    """Returns the promises of a single step, by where its q comes from."""
    return KEEPS | {Promise.NEVER_WORSE} if behavior_q == "model" else KEEPS


def exact_step(problem: Problem, leave: FloatArray, enter: FloatArray, budget: float) -> GreedyStep:
    """Returns the best policy for q within the budget."""
    offsets, behavior = problem.counts.pairs.offsets, problem.behavior.probability

    def step(q: FloatArray) -> FloatArray:
        # Mass may stay with, give way to and go to a pair within a tie of the best: that adds up.
        probability, tie = np.empty(q.size), tie_of(q) / 4
        spend_budget(offsets, q, behavior, leave, enter, float(budget), tie, probability)
        return probability

    return step


def approximate_step(
    problem: Problem, error: FloatArray, reference: FloatArray, budget: float
) -> GreedyStep:
    """Returns a good policy for q within the budget."""
    offsets, behavior = problem.counts.pairs.offsets, problem.behavior.probability

    def step(q: FloatArray) -> FloatArray:
        probability, tie = np.empty(q.size), tie_of(q)
        spend_budget_greedily(
            offsets, q, behavior, error, reference, float(budget), tie, probability
        )
        return probability

    return step


def guarded_iteration(problem: Problem, step: GreedyStep) -> Plan:
    """From π_b, rows that are better under the current q replace the old ones, until none is.

    Each round improves on the last (policy improvement theorem), so the policy is never worse than
    π_b; `step` need not find the best row. The plan's error bound is about the policy's own value.
    """
    mdp, offsets = problem.estimate(), problem.counts.pairs.offsets
    backup = Backup.of(mdp)
    probability = problem.behavior.probability.copy()
    for iteration in range(1, ITERATION_LIMIT + 1):
        evaluation = evaluate_with_bound(mdp, Policy(mdp.pairs, probability))
        q = backup.q(evaluation.value)
        if keep_better_rows(offsets, q, step(q), tie_of(q), probability) == 0:
            policy = Policy(mdp.pairs, probability)
            return Plan(
                policy, evaluation.value, iteration, evaluation.residual, evaluation.error_bound, q
            )
    raise NotConverged(f"guarded iteration stopped after {ITERATION_LIMIT} rounds, the limit")


def q_of_behavior(problem: Problem, source: BehaviorQ) -> FloatArray:
    """q of π_b [K]: in the estimated MDP, or the mean return that followed each pair in the log."""
    if source == "monte-carlo":
        return pair_returns(problem).mean
    mdp = problem.estimate()
    return Backup.of(mdp).q(evaluate(mdp, problem.behavior))
