"""Errors that the estimate of a pair may have: the e(s,a) that Soft-SPIBB weighs changes with.

Each is a width that falls with the visits and is ∞ for a pair never visited, so that π_b is kept
there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep._names import unknown
from surestep.bounds import BOUNDS, Bound, Coverage, ProblemSize
from surestep.errors import InvalidParameter
from surestep.kernels.runs import discounted_returns
from surestep.model.problem import Problem


def hoeffding(problem: Problem, delta: float) -> FloatArray:
    """e = √(2 ln(2|S||A|/δ) / N): Hoeffding's inequality on q [K] (Nadjahi et al. 2019)."""
    visits = problem.counts.visits
    log_term = log_pairs_over(problem, delta) + math.log(2)
    return np.where(visits > 0, np.sqrt(2 * log_term / np.maximum(visits, 1)), np.inf)


def empirical_bernstein(problem: Problem, delta: float) -> FloatArray:
    """e = 2 (√(2 v L/N) + 7L/(3(N − 1))), L = ln(4|S||A|/δ) (Maurer and Pontil 2009; Scholl 2022).

    v is the variance of the returns that followed the pair, over (2 V_max)²; N ≥ 2 is needed.
    """
    if problem.value_bound == 0:
        raise InvalidParameter(
            "value_bounds is (0, 0), expected a larger one: the Bernstein error is a share of it"
        )
    returns = pair_returns(problem)
    log_term = log_pairs_over(problem, delta) + math.log(4)
    enough = returns.times > 1
    times = np.maximum(returns.times, 2)
    variance = returns.variance / (2 * problem.value_bound) ** 2
    width = 2 * (np.sqrt(2 * variance * log_term / times) + 7 * log_term / (3 * (times - 1)))
    return np.where(enough, width, np.inf)


def log_pairs_over(problem: Problem, delta: float) -> float:
    """ln(|S||A|/δ), added up so that nothing overflows."""
    return math.log(problem.num_states) + math.log(problem.num_actions) - math.log(delta)


ERROR_FUNCTIONS = {"hoeffding": hoeffding, "bernstein": empirical_bernstein}


def check_error(error: str | Bound) -> None:
    """Refuses what is no error function, and no bound about rows."""
    rows = [name for name, bound in BOUNDS.items() if bound.covers is Coverage.ROW]
    bound = BOUNDS.get(error) if isinstance(error, str) else error
    known = isinstance(error, str) and error in ERROR_FUNCTIONS
    if not known and (isinstance(bound, type) or getattr(bound, "covers", None) != Coverage.ROW):
        why = ": it weighs how wrong the estimate of a whole row of a pair may be"
        raise unknown(f"error is {error!r}", error, [*ERROR_FUNCTIONS, *rows], why)


def errors_of(error: str | Bound, problem: Problem, delta: float) -> FloatArray:
    """e(s,a) for all pairs [K]: ∞ where a pair is closed, so that nothing pays for a change."""
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
    pair, size = log.pair, problem.counts.pairs.num_pairs
    times = np.bincount(pair, minlength=size)
    mean = np.bincount(pair, returns, size) / np.maximum(times, 1)
    spread = np.bincount(pair, (returns - mean[pair]) ** 2, size)
    return PairReturns(times, mean, spread / np.maximum(times - 1, 1))
