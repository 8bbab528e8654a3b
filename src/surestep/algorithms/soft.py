"""Soft-SPIBB: change π_b as far as a budget allows in which uncertain pairs are expensive.

Every policy obeys Σ_a e(s,a) |π(a|s) − π_b(a|s)| ≤ ε in each state, with e the error function; the
lower form charges increases only. ε is that budget itself (of the two published codes, one passes
2ε to its routines). Source: Nadjahi, Laroche and Tachet des Combes (2019); lower, advantage and
Bernstein forms: Scholl, Dietrich, Otte and Udluft (2022).

The error e(s,a) that the estimate of a pair may have is a width that falls with the visits and is ∞
for a pair never visited, so that π_b is kept there.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep._names import unknown
from surestep._settings import check_settings
from surestep.algorithms.contract import Promise, improvement_of, tie_of
from surestep.bounds import BOUNDS, Bound, ProblemSize
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.runs import discounted_returns
from surestep.kernels.soft import keep_better_rows, spend_budget, spend_budget_greedily
from surestep.model import Improvement, Plan, Policy, Problem
from surestep.planning.backups import Backup
from surestep.planning.evaluation import evaluate, evaluate_with_bound
from surestep.planning.iteration import ITERATION_LIMIT, GreedyStep, policy_iteration

KEEPS = frozenset({Promise.KEEPS_BEHAVIOR, Promise.RENUMBERING})
STEPS = {
    "exact": "the best policy of the estimated MDP within the budget: a linear program per state",
    "lower": "the best policy of the estimated MDP where the budget pays for increases only",
    "approx": "the greedy approximation of the exact step, and a guard that keeps better rows",
    "advantage": "`approx` that, in each state, also gains under q of π_b",
}


def hoeffding_error(problem: Problem, delta: float) -> FloatArray:
    """Returns e = √(2 ln(2|S||A|/δ) / N), by Hoeffding on q [K] (Nadjahi et al. 2019)."""
    visits = problem.counts.visits
    log_term = log_pairs_over(problem, delta) + math.log(2)
    return np.where(visits > 0, np.sqrt(2 * log_term / np.maximum(visits, 1)), np.inf)


def bernstein_error(problem: Problem, delta: float) -> FloatArray:
    """e = 2 (√(2 v L/N) + 7L/(3(N − 1))), L = ln(4|S||A|/δ) (Maurer and Pontil 2009; Scholl 2022).

    v is the variance of the returns that followed the pair, over (2 V_max)²; N ≥ 2 is needed.
    """
    if problem.value_bound == 0:
        raise InvalidParameter(
            "value_bounds is (0, 0), expected a larger one: the Bernstein error is a share of it"
        )
    returns = pair_returns(problem)
    log_term = log_pairs_over(problem, delta) + math.log(4)
    times = np.maximum(returns.times, 2)
    variance = returns.variance / (2 * problem.value_bound) ** 2
    width = 2 * (np.sqrt(2 * variance * log_term / times) + 7 * log_term / (3 * (times - 1)))
    return np.where(returns.times > 1, width, np.inf)


def log_pairs_over(problem: Problem, delta: float) -> float:
    """Returns ln(|S||A|/δ), added up so that nothing overflows."""
    return math.log(problem.num_states) + math.log(problem.num_actions) - math.log(delta)


ERROR_FUNCTIONS = {"hoeffding": hoeffding_error, "bernstein": bernstein_error}


def errors_of(error: str | Bound, problem: Problem, delta: float) -> FloatArray:
    """Returns e(s,a) of all pairs [K]; ∞ where a pair is closed, which no budget pays for."""
    arrays.expect("problem", problem, Problem)
    if isinstance(error, str) and error in ERROR_FUNCTIONS:
        errors = ERROR_FUNCTIONS[error](problem, delta)
    else:
        bound = BOUNDS[error] if isinstance(error, str) else error
        size = ProblemSize(problem.num_states, problem.num_actions, delta)
        visits = problem.counts.visits
        errors = np.where(visits > 0, bound.radius(np.maximum(visits, 1), size), np.inf)
    return np.where(problem.open_pairs(), errors, np.inf)


# ---- returns that followed each pair in the log: Monte Carlo's estimate of q under π_b ----------


class PairReturns(NamedTuple):
    """Every-visit returns of the pairs [K]: how many, their mean, their variance (ddof 1)."""

    times: IntArray
    mean: FloatArray  # 0 where there is none
    variance: FloatArray  # 0 where there are fewer than two


def pair_returns(problem: Problem) -> PairReturns:
    """Returns the discounted returns after every visit, to the end of its episode in the log."""
    log = problem.log
    if log is None:
        raise InvalidParameter(
            "this algorithm looks at the returns of whole episodes, but the problem has no log; "
            "give it as Problem(log=…)"
        )
    log = log.with_outcomes()
    returns = np.empty(log.reward.size)
    discounted_returns(log.episode_offsets, log.reward, problem.single_discount, returns)
    pair = log.pair
    size = problem.counts.pairs.num_pairs
    times = np.bincount(pair, minlength=size)
    mean = np.bincount(pair, returns, size) / np.maximum(times, 1)
    spread = np.bincount(pair, (returns - mean[pair]) ** 2, size)
    return PairReturns(times, mean, spread / np.maximum(times - 1, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftSPIBB:
    """Soft-SPIBB in all its forms: how a step is made, how often, and by which q of π_b.

    Parameters
    ----------
    epsilon : float
        The budget ε of each state.
    delta : float
        The chance that the error function fails; 1 by default.
    error : {"hoeffding", "bernstein"} or Bound
        The error that the estimate of a pair may have, or a bound about rows; "hoeffding" by
        default. "bernstein" needs the log.
    step : {"exact", "lower", "approx", "advantage"}
        "exact", the default, is the best policy within the budget, a linear program per state.
        "lower" is the same where the budget pays for increases only. "approx" is the published
        greedy step, guarded so that only better rows replace old ones. "advantage" is "approx" that
        in each state also gains under q of π_b.
    iterate : bool
        True, the default, iterates the step; False takes one step from π_b, exact or approx, on its
        q.
    behavior_q : {"model", "monte-carlo"}
        q of π_b, for one step and for "advantage": in the estimated MDP, the default, or the mean
        return after each visit, which needs the log.

    Notes
    -----
    Published code approximates the "lower" step. In published code the guard of "approx" sleeps
    through the first iteration; here π_b itself is guarded.

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
    error: str | Bound = "hoeffding"
    step: Annotated[
        Literal["exact", "lower", "approx", "advantage"],
        Meta(description="it says how a policy is made better"),
    ] = "exact"
    iterate: bool = True
    behavior_q: Annotated[
        Literal["model", "monte-carlo"], Meta(description="it says where q of π_b comes from")
    ] = "model"

    def __post_init__(self) -> None:
        """Checks the settings."""
        error = self.error
        bound = BOUNDS.get(error) if isinstance(error, str) else error
        of_rows = not isinstance(bound, type) and getattr(bound, "covers", None) == "row"
        if not of_rows and not (isinstance(error, str) and error in ERROR_FUNCTIONS):
            rows = [name for name, known in BOUNDS.items() if known.covers == "row"]
            why = ": it weighs how wrong the estimate of a whole row of a pair may be"
            raise unknown(f"error is {error!r}", error, [*ERROR_FUNCTIONS, *rows], why)
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
        """Returns the promises; a step on the log's q may be worse than π_b in the estimate."""
        if not self.iterate and self.behavior_q == "monte-carlo":
            return KEEPS
        if not self.iterate or self.step == "advantage":
            return KEEPS | {Promise.NEVER_WORSE}
        reaching = KEEPS | {Promise.NEVER_WORSE, Promise.REACHES_OPTIMUM}
        return reaching if self.step == "approx" else reaching | {Promise.OPTIMAL_IN_CLASS}

    @property
    def looks_at_log(self) -> bool:
        """Tells whether returns of whole episodes have a say."""
        by_q = self.step == "advantage" or not self.iterate
        return self.error == "bernstein" or (by_q and self.behavior_q == "monte-carlo")

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
        step = self.step_in(problem)
        exact = self.step in ("exact", "lower")
        if self.iterate:
            if exact:
                plan = policy_iteration(problem.estimate(), step, start=problem.behavior)
            else:
                plan = guarded_iteration(problem, step)
            return Improvement.of(problem, plan)
        pairs = problem.counts.pairs
        q = q_of_behavior(problem, self.behavior_q)
        probability = step(q) if exact else problem.behavior.probability.copy()
        if not exact:
            keep_better_rows(pairs.offsets, q, step(q), tie_of(q), probability)
        return improvement_of(problem, Policy(pairs, probability), iterations=1)

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
        reference: FloatArray = np.zeros(error.size)
        if self.step == "advantage":
            reference = q_of_behavior(problem, self.behavior_q)

        def step(q: FloatArray) -> FloatArray:
            probability = np.empty(q.size)
            if self.step in ("exact", "lower"):
                # Mass may stay with, give way to and go to a pair within a tie of the best: that
                # adds up.
                tie = tie_of(q) / 4
                spend_budget(offsets, q, behavior, leave, error, budget, tie, probability)
            else:
                tie = tie_of(q)
                spend_budget_greedily(
                    offsets, q, behavior, error, reference, budget, tie, probability
                )
            return probability

        return step


def guarded_iteration(problem: Problem, step: GreedyStep) -> Plan:
    """Replaces rows of π_b by rows that are better under the current q, until there are none.

    Each round improves on the last (policy improvement theorem), so the policy is never worse than
    π_b; `step` need not find the best row. The plan's error bound is about the policy's own value.
    """
    mdp = problem.estimate()
    backup = Backup.of(mdp)
    probability = problem.behavior.probability.copy()
    for iteration in range(1, ITERATION_LIMIT + 1):
        evaluation = evaluate_with_bound(mdp, Policy(mdp.pairs, probability))
        q = backup.q(evaluation.value)
        if keep_better_rows(mdp.pairs.offsets, q, step(q), tie_of(q), probability) == 0:
            return evaluation.plan(Policy(mdp.pairs, probability), iteration, q)
    raise NotConverged(f"guarded iteration stopped after {ITERATION_LIMIT} rounds, the limit")


def q_of_behavior(problem: Problem, source: str) -> FloatArray:
    """Returns q of π_b [K] in the estimated MDP, or the mean return after each pair in the log."""
    if source == "monte-carlo":
        return pair_returns(problem).mean
    mdp = problem.estimate()
    return Backup.of(mdp).q(evaluate(mdp, problem.behavior))
