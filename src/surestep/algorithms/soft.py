"""Soft-SPIBB: change π_b as far as a budget allows in which uncertain pairs are expensive.

Every policy obeys Σ_a e(s,a) |π(a|s) − π_b(a|s)| ≤ ε in each state, with e the error function; the
lower form charges increases only. ε is that budget itself (of the two published codes, one passes
2ε to its routines). Source: Nadjahi, Laroche and Tachet des Combes (2019); lower and advantage
forms: Scholl, Dietrich, Otte and Udluft (2022).

The error e(s,a) that the estimate of a pair may have is a width that falls with the visits and is ∞
for a pair never visited, so that π_b is kept there.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._names import unknown
from surestep._settings import check_settings
from surestep.algorithms.contract import Promise, improvement_of, tie_of
from surestep.bounds.loss import BOUNDS, Bound, ProblemSize, bound_of
from surestep.errors import InvalidParameter
from surestep.kernels.soft import spend_budget, spend_budget_greedily
from surestep.model import Improvement, Policy, Problem
from surestep.planning.evaluation import evaluate, evaluate_with_bound, q_values
from surestep.planning.horizons import better_rows
from surestep.planning.iteration import ITERATION_LIMIT, GreedyStep, policy_iteration
from surestep.planning.total import ending_iteration

HOEFFDING = "hoeffding"
KEEPS = frozenset({Promise.KEEPS_BEHAVIOR, Promise.NEVER_WORSE, Promise.RENUMBERING})
STEPS = {
    "exact": "the best policy of the estimated MDP within the budget: a linear program per state",
    "lower": "the best policy of the estimated MDP where the budget pays for increases only",
    "approx": "the greedy approximation of the exact step, and a guard that keeps better rows",
    "advantage": "`approx` that, in each state, also gains under q of π_b",
}


def errors_of(error: str | Bound, problem: Problem, delta: float) -> arrays.FloatArray:
    """Returns e(s,a) of all pairs [K]; ∞ where a pair is closed, which no budget pays for.

    "hoeffding" is e = √(2 ln(2|S||A|/δ) / N), by Hoeffding on q (Nadjahi et al. 2019).
    """
    arrays.expect("problem", problem, Problem)
    visits = np.maximum(problem.counts.visits, 1)
    if error == HOEFFDING:
        errors = np.sqrt(2 * (log_pairs_over(problem, delta) + math.log(2)) / visits)
    else:
        errors = bound_of(error).radius(
            visits, ProblemSize(problem.num_states, problem.num_actions, delta)
        )
    return np.where((problem.counts.visits > 0) & problem.open_pairs(), errors, np.inf)


def log_pairs_over(problem: Problem, delta: float) -> float:
    """Returns ln(|S||A|/δ), added up so that nothing overflows."""
    return math.log(problem.num_states) + math.log(problem.num_actions) - math.log(delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftSPIBB:
    """Soft-SPIBB in all its forms: how a step is made, and how often.

    Parameters
    ----------
    epsilon : float
        The budget ε of each state.
    delta : float
        The chance that the error function fails; 1 by default.
    error : {"hoeffding"} or Bound
        The error that the estimate of a pair may have, or a bound about rows; "hoeffding" by
        default.
    step : {"exact", "lower", "approx", "advantage"}
        "exact", the default, is the best policy within the budget, a linear program per state.
        "lower" is the same where the budget pays for increases only. "approx" is the published
        greedy step, guarded so that only better rows replace old ones. "advantage" is "approx" that
        in each state also gains under q of π_b in the estimated MDP.
    iterate : bool
        True, the default, iterates the step; False takes one step from π_b, exact or approx, on its
        q.

    Notes
    -----
    Published code approximates the "lower" step. In published code the guard of "approx" sleeps
    through the first iteration; here π_b itself is guarded. For "advantage" and one step, q of π_b
    is that of the estimated MDP; published code also offers the mean return after each visit.

    References
    ----------
    Nadjahi, K., Laroche, R., Tachet des Combes, R. (2019). Safe Policy Improvement with Soft
    Baseline Bootstrapping. ECML PKDD. Scholl, P., Dietrich, F., Otte, C., Udluft, S. (2022). Safe
    Policy Improvement Approaches and their Limitations.

    Examples
    --------
    >>> from surestep.algorithms import SoftSPIBB
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = SoftSPIBB(epsilon=0.5).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.59
    """

    epsilon: Annotated[float, Meta(ge=0, description="it is the budget of each state")]  # ε
    delta: Annotated[
        float, Meta(gt=0, le=1, description="the error function may fail with that probability")
    ] = 1.0
    error: str | Bound = HOEFFDING
    step: Annotated[
        Literal["exact", "lower", "approx", "advantage"],
        Meta(description="it says how a policy is made better"),
    ] = "exact"
    iterate: bool = True

    def __post_init__(self) -> None:
        error = self.error
        bound = BOUNDS.get(error) if isinstance(error, str) else error
        of_rows = not isinstance(bound, type) and getattr(bound, "covers", None) == "row"
        if not of_rows and error != HOEFFDING:
            rows = [name for name, known in BOUNDS.items() if known.covers == "row"]
            why = ": it weighs how wrong the estimate of a whole row of a pair may be"
            raise unknown(f"error is {error!r}", error, [HOEFFDING, *rows], why)
        check_settings(self)
        if not self.iterate and self.step not in ("exact", "approx"):
            raise InvalidParameter(f"iterate is False, but {self.step} steps are for iteration")

    @property
    def name(self) -> str:
        """Returns the name of this form."""
        return f"{'' if self.iterate else 'one-step-'}{self.step}-soft-spibb"

    @property
    def summary(self) -> str:
        """Returns a description of this form, in one sentence."""
        return f"Soft-SPIBB{'' if self.iterate else ', one step from π_b'}: {STEPS[self.step]}."

    @property
    def source(self) -> str:
        """Returns the paper that this form comes from."""
        if self.step in ("lower", "advantage"):
            return "Scholl, Dietrich, Otte, Udluft 2022"
        return "Nadjahi, Laroche, Tachet des Combes 2019"

    @property
    def constraint(self) -> str:
        """Returns the budget, in words."""
        charged = "(π − π_b)⁺" if self.step == "lower" else "|π − π_b|"
        return f"Σ_a e {charged} ≤ ε in every state"

    @property
    def promises(self) -> frozenset[Promise]:
        """Returns the promises of this form."""
        if not self.iterate or self.step == "advantage":
            return KEEPS
        reaching = KEEPS | {Promise.REACHES_OPTIMUM}
        return reaching if self.step == "approx" else reaching | {Promise.OPTIMAL_IN_CLASS}

    def improve(self, problem: Problem) -> Improvement:
        """Iterates the step from π_b, or makes it once.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the value bounds.

        Returns
        -------
        Improvement
            The policy, and its value in the estimated MDP.
        """
        step, behavior = self.step_in(problem), problem.behavior
        exact = self.step in ("exact", "lower")
        if self.iterate:
            mdp = problem.estimate()
            plan = (
                policy_iteration(mdp, step, start=behavior)
                if exact
                # The step need not find the best row, so only better ones replace those of π_b.
                else ending_iteration(
                    mdp, step, behavior, partial(evaluate_with_bound, mdp), ITERATION_LIMIT
                )
            )
            return Improvement.of(problem, plan)
        q = q_of_behavior(problem)
        probability = step(q)
        if not exact:
            probability, _ = better_rows(
                behavior.pairs, q, behavior.probability, probability, tie_of(q)
            )
        return improvement_of(problem, Policy(behavior.pairs, probability), iterations=1)

    def step_in(self, problem: Problem) -> GreedyStep:
        """Returns the step: a policy for q within the budget.

        Parameters
        ----------
        problem : Problem
            The data and π_b.

        Returns
        -------
        callable
            A function from q [K] to probabilities [K].
        """
        error = errors_of(self.error, problem, self.delta)
        offsets = problem.counts.pairs.offsets
        behavior = problem.behavior.probability
        budget = float(self.epsilon)
        leave = np.zeros(error.size) if self.step == "lower" else error
        reference = q_of_behavior(problem) if self.step == "advantage" else np.zeros(error.size)

        def step(q: arrays.FloatArray) -> arrays.FloatArray:
            probability = np.empty(q.size)
            if self.step in ("exact", "lower"):
                # Mass may stay with, give way to and go to a pair within a tie of the best: that
                # adds up.
                spend_budget(offsets, q, behavior, leave, error, budget, tie_of(q) / 4, probability)
            else:
                spend_budget_greedily(
                    offsets, q, behavior, error, reference, budget, tie_of(q), probability
                )
            return probability

        return step


def q_of_behavior(problem: Problem) -> arrays.FloatArray:
    """Returns q of π_b [K] in the estimated MDP."""
    mdp = problem.estimate()
    return q_values(mdp, evaluate(mdp, problem.behavior))
