"""Known MDP to a best policy: one generic loop, many greedy steps.

Each round backs up the value, q = r + ΓPv, lets the greedy step choose a policy π for q, and looks
at the residual d = Σ_a π q − v. By `planning.proof`, d brackets both V^π − v and the gap to the
best value in the class that the greedy step searches, no matter where v came from: the loop stops
as soon as the bracket is small, and otherwise brings v nearer to V^π.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray, floats
from surestep.errors import InvalidParameter, InvalidPolicy, NotConverged
from surestep.kernels import backup
from surestep.kernels.extremes import difference_range
from surestep.kernels.greedy import greedy
from surestep.model.mdp import FiniteMDP
from surestep.model.plan import Plan
from surestep.model.policy import Policy
from surestep.planning.chain import half_range, largest, policy_chain, solve_sweeps
from surestep.planning.evaluation import (
    SWEEPS_PER_STEP,
    Method,
    check_method,
    choose_method,
    evaluate,
    solve,
)
from surestep.planning.proof import TIE_TOLERANCE, Judge

GreedyStep = Callable[[FloatArray], FloatArray]  # q [K] to the probabilities of a policy [K]
Range = tuple[float, float]  # the smallest and the largest entry
ValueUpdate = Callable[[FloatArray, FloatArray, Range], FloatArray]
Sweep = Literal["jacobi", "gauss-seidel"]

ITERATION_LIMIT = 1_000
INEXACT = 0.1  # how much of the residual an iterative evaluation leaves for the next round


def optimal(mdp: FiniteMDP, *, tolerance: float | None = None) -> Plan:
    """A best policy π* and its value, by policy iteration.

    Among equally good actions the lowest is taken. `tolerance` is the largest error allowed in the
    values; by default 1e-10 of the largest reward and value, or what doubles can prove.
    """
    judge = Judge.of(mdp, tolerance)
    start = np.zeros(mdp.num_states)
    return iterate(mdp, best_actions(mdp), start, evaluation_update(mdp, "auto", judge), judge)


def policy_iteration(
    mdp: FiniteMDP,
    greedy_step: GreedyStep,
    start: Policy,
    *,
    method: Method = "auto",
    tolerance: float | None = None,
    limit: int = ITERATION_LIMIT,
) -> Plan:
    """Policy iteration from `start`, with any greedy step.

    `greedy_step(q)` gives the probabilities [K] of the policy that maximises Σ_a π(a|s) q(s,a) in
    its class, up to ties of `TIE_TOLERANCE` · max |q|. `method` is how policies are evaluated.
    """
    check_method(method)
    judge = Judge.of(mdp, tolerance)
    value = evaluate(mdp, start, method=method)
    update = evaluation_update(mdp, method, judge)
    return iterate(mdp, greedy_step, value, update, judge, limit)


def modified_policy_iteration(
    mdp: FiniteMDP,
    greedy_step: GreedyStep | None = None,
    *,
    sweeps: int = 20,
    tolerance: float | None = None,
    limit: int = 100 * ITERATION_LIMIT,
) -> Plan:
    """Policy iteration in which each policy is evaluated by a few sweeps only (Puterman 1994, 6.5).

    Without a greedy step, the best policy of all.
    """
    if sweeps < 1:
        raise InvalidParameter(f"sweeps is {sweeps}, expected 1 or more")

    def update(policy: FloatArray, backed_up: FloatArray, residuals: Range) -> FloatArray:
        return solve_sweeps(policy_chain(mdp, policy), backed_up, 0.0, sweeps)[0]

    judge = Judge.of(mdp, tolerance)
    start = np.zeros(mdp.num_states)
    return iterate(mdp, greedy_step or best_actions(mdp), start, update, judge, limit)


def value_iteration(
    mdp: FiniteMDP,
    *,
    sweep: Sweep = "jacobi",
    tolerance: float | None = None,
    limit: int | None = None,
) -> Plan:
    """Value iteration with a sound stopping rule: V* lies within `error_bound`, provably.

    A "jacobi" sweep reads the old values only, on all cores; a "gauss-seidel" sweep uses each new
    value at once, on one core. The limit is by default the number of sweeps after which another
    one cannot help.
    """
    if sweep not in get_args(Sweep):
        raise InvalidParameter(f"sweep is {sweep!r}, expected one of {', '.join(get_args(Sweep))}")
    judge = Judge.of(mdp, tolerance)
    arrays = model_arrays(mdp)
    value, after = np.zeros(mdp.num_states), np.empty(mdp.num_states)
    allowed = SWEEPS_PER_STEP * judge.horizon.high + 100 if limit is None else limit
    sweeps = 0
    while sweeps < allowed:
        sweeps += 1
        backup.best_values(mdp.pairs.offsets, *arrays, value, after)
        residuals = difference_range(after, value)
        residual = max(map(abs, residuals))
        verdict = judge.verdict(residuals, float(np.abs(value).max()), TIE_TOLERANCE)
        if verdict.good:
            policy = Policy(mdp.pairs, best_actions(mdp)(pair_values(mdp, value)))
            return Plan(policy, value, sweeps, residual, verdict.error)
        if residual <= verdict.floor:
            judge.refuse(verdict)
        if sweep == "gauss-seidel":
            backup.gauss_seidel_sweep(mdp.pairs.offsets, *arrays, after)
            sweeps += 1
        elif judge.horizon.uniform:  # all states are off by nearly the same number
            after += verdict.middle - sum(residuals) / 2
        value, after = after, value
    raise NotConverged(f"value iteration stopped after {sweeps} sweeps, the limit")


def iterate(
    mdp: FiniteMDP,
    greedy_step: GreedyStep,
    value: FloatArray,
    update: ValueUpdate,
    judge: Judge,
    limit: int = ITERATION_LIMIT,
) -> Plan:
    """The loop that all planners share; `update(π, Tv, residuals)` brings v nearer to V^π."""
    for iteration in range(1, limit + 1):
        q = pair_values(mdp, value)
        policy = floats("the greedy step's policy", greedy_step(q), q.shape, InvalidPolicy)
        backed_up = np.empty(mdp.num_states)
        backup.expected_values(mdp.pairs.offsets, policy, q, backed_up)
        residuals = difference_range(backed_up, value)
        residual = max(map(abs, residuals))
        verdict = judge.verdict(residuals, float(np.abs(value).max()), TIE_TOLERANCE)
        if verdict.good:
            return Plan(Policy(mdp.pairs, policy), value, iteration, residual, verdict.error)
        if residual <= verdict.floor:
            judge.refuse(verdict)
        if judge.horizon.uniform:  # all states are off by nearly the same number
            if verdict.high - verdict.middle <= verdict.goal / 2:
                value = value + verdict.middle
                continue
            backed_up += verdict.middle - sum(residuals) / 2
        after = update(policy, backed_up, residuals)
        if np.array_equal(after, value):
            judge.refuse(verdict)
        value = after
    raise NotConverged(f"policy iteration stopped after {limit} rounds, the limit")


def evaluation_update(mdp: FiniteMDP, method: Method, judge: Judge) -> ValueUpdate:
    """V^π: exactly where that is cheap, else until the residual is a tenth of what it was."""

    def update(policy: FloatArray, backed_up: FloatArray, residuals: Range) -> FloatArray:
        nonlocal method
        chain = policy_chain(mdp, policy)
        if method == "auto":  # the policies of one model are alike enough to choose once
            method = choose_method(chain)
        target = INEXACT * (half_range if judge.horizon.uniform else largest)(residuals)
        return solve(
            chain,
            method,
            backed_up,
            target,
            judge.horizon,
            lambda _, reached: reached <= target,
        )[0]

    return update


def best_actions(mdp: FiniteMDP) -> GreedyStep:
    """The greedy step over all policies: the best action, the lowest among ties."""

    def greedy_step(q: FloatArray) -> FloatArray:
        probability = np.empty(q.size)
        tie = TIE_TOLERANCE * float(np.abs(q).max())
        greedy(mdp.pairs.offsets, q, tie, probability)
        return probability

    return greedy_step


def pair_values(mdp: FiniteMDP, value: FloatArray) -> FloatArray:
    """q [K]: the value of each pair, if v is what follows."""
    q = np.empty(mdp.num_pairs)
    backup.pair_values(*model_arrays(mdp), value, q)
    return q


def model_arrays(mdp: FiniteMDP) -> tuple[IntArray, IndexArray, FloatArray, FloatArray, FloatArray]:
    """The arrays of a model in the order in which the backup kernels take them."""
    return mdp.offsets, mdp.successor, mdp.probability, mdp.discount, mdp.expected_reward
