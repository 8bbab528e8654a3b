"""Finds best policies of a known MDP: one loop for all planners, with any greedy step.

Each round backs up the value, q = r + ΓPv, lets the greedy step choose a policy π for q, and looks
at the residual d = Σ_a π q − v. By `planning.proof`, d brackets both V^π − v and the gap to the
best value in the class that the greedy step searches, no matter where v came from: the loop stops
as soon as the bracket is small, and otherwise brings v nearer to V^π.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidPolicy, NotConverged, named_in_errors
from surestep.kernels.backup import difference_range, gauss_seidel_sweep
from surestep.kernels.components import leads_ahead
from surestep.kernels.devices import brought_home, machine_for
from surestep.model import FiniteMDP, Plan, Policy
from surestep.planning.backups import Backup, averaged, best_of
from surestep.planning.chain import (
    DENSE_STATES,
    FAST,
    SWEEPS_PER_STEP,
    SolveMethod,
    largest,
    policy_chain,
    settle,
    solve_to,
)
from surestep.planning.ends import refuse_endless
from surestep.planning.evaluation import (
    check_inputs,
    evaluate_as_proven,
    evaluate_with_bound,
)
from surestep.planning.horizons import rule_for_all
from surestep.planning.proof import TIE_TOLERANCE, StoppingRule, refuse
from surestep.planning.total import ending_iteration, may_last

GreedyStep = Callable[
    [arrays.FloatArray], arrays.FloatArray
]  # maps q [K] to the probabilities of a policy [K]

ITERATION_LIMIT = 1_000
SWEEPS_BETWEEN = 10  # of value iteration in place, after each evaluation of a large model
INEXACT = 0.1  # the part of the residual that an iterative evaluation leaves for the next round


def best_of_all(mdp: FiniteMDP, tolerance: float | None, terms: int = 0) -> Plan:
    """Returns a best policy of a model in which all policies end.

    `terms` is the number of terms in a sum over successors, if it exceeds the model's own.
    """
    rule = rule_for_all(mdp, tolerance, terms)
    value: arrays.FloatArray = np.zeros(mdp.num_states)
    sweeps = 0
    if mdp.num_states > DENSE_STATES:
        if not leads_ahead(mdp.pairs.offsets, mdp.offsets, mdp.successor):
            plan = jacobi(mdp, rule, sweep_limit(rule, None), slowest=FAST)
            if plan is not None:
                return plan
        # Component by component; values of components with slow sweeps are less exact.
        bracket = rule.bracket((0.0, 0.0), 0.0, TIE_TOLERANCE)
        settle(Backup.of(mdp), max(bracket.goal / rule.horizon.high / 2, bracket.floor), value)
        sweeps = SWEEPS_BETWEEN
    return iterate(mdp, best_actions(mdp), value, rule, sweeps=sweeps)


def policy_iteration(
    mdp: FiniteMDP,
    greedy_step: GreedyStep,
    start: Policy,
    *,
    method: SolveMethod = "auto",
    tolerance: float | None = None,
    limit: int = ITERATION_LIMIT,
) -> Plan:
    """Finds the best policy of a class by policy iteration, with any greedy step.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    greedy_step : callable
        Takes q [K], and returns the probabilities [K] of the policy that maximises
        Σ_a π(a|s) q(s,a) in its class, up to ties of 1e-12 · max |q|.
    start : Policy
        The first policy. If some policy may go round for ever without discount, this one must end
        for certain.
    method : {"auto", "dense", "sparse", "iterative", "components"}
        The way to evaluate policies; see `evaluate_with_bound`.
    tolerance : float, optional
        The largest error allowed; see `evaluate_with_bound`.
    limit : int, default 1000
        The most rounds.

    Returns
    -------
    Plan
        The policy and its value. If some policy may go round for ever, the error bound holds for
        the value of this policy only.

    Raises
    ------
    NeverEnds
        If a policy may never end.
    NotConverged
        If the tolerance cannot be proved within the limit.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, policy_iteration
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> def cautious(q):  # no action with more than three quarters
    ...     better = q.reshape(2, 2).argmax(axis=1)
    ...     return np.where(np.arange(2) == better[:, None], 0.75, 0.25).ravel()
    >>> policy_iteration(mdp, cautious, Policy.uniform(mdp)).policy.dense()
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    arrays.expect_count("limit", limit)
    if may_last(mdp):
        refuse_endless(mdp, check_inputs(mdp, start).probability)
        evaluated = partial(evaluate_with_bound, mdp, method=method, tolerance=tolerance)
        return ending_iteration(mdp, greedy_step, start, evaluated, limit)
    rule = rule_for_all(mdp, tolerance)
    value = evaluate_as_proven(mdp, start, method, tolerance).value
    return iterate(mdp, greedy_step, value, rule, method=method, limit=limit)


def value_iteration(
    mdp: FiniteMDP,
    *,
    tolerance: float | None = None,
    limit: int | None = None,
) -> Plan:
    """Finds a best policy by value iteration; V* provably lies within its `error_bound`.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    tolerance : float, optional
        The largest error allowed; see `evaluate_with_bound`.
    limit : int, optional
        The most sweeps. By default the number after which another sweep cannot help.

    Returns
    -------
    Plan
        The policy and its value.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved within the limit.

    Examples
    --------
    >>> from surestep import FiniteMDP, value_iteration
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> value_iteration(mdp).value.round(6)
    array([2.666667, 4.      ])
    """
    if limit is not None:
        arrays.expect_count("limit", limit)
    rule = rule_for_all(mdp, tolerance)
    allowed = sweep_limit(rule, limit)
    plan = jacobi(mdp, rule, allowed, slowest=np.inf)
    if plan is None:
        raise NotConverged(f"value iteration stopped after {allowed} sweeps, the limit")
    return plan


def jacobi(mdp: FiniteMDP, rule: StoppingRule, limit: int, slowest: float) -> Plan | None:
    """Returns the plan of value iteration on all cores, or on a GPU.

    Returns None at the limit, or if a sweep leaves on average more than `slowest` of the residual.
    """
    machine, backup = machine_for(Backup.of(mdp))
    value = machine.own(np.zeros(mdp.num_states))
    after = machine.empty(mdp.num_states)
    sizes: list[float] = []
    while len(sizes) < limit:
        backup.best(value, after)
        residuals = difference_range(after, value)
        bracket = rule.bracket(residuals, float(np.abs(value).max()), TIE_TOLERANCE)
        residual = largest(residuals)
        if bracket.good or residual <= bracket.floor:
            q = backup.q(value)
            plan = Plan(
                Policy(mdp.pairs, best_of(mdp.pairs, q)),
                brought_home(value),
                len(sizes) + 1,
                residual,
                bracket.error,
                brought_home(q),
            )
            if not bracket.good:  # doubles cannot prove more
                refuse(bracket, rule.tolerance, plan=plan)
            return plan
        sizes.append(rule.horizon.size(residuals))
        window = min(len(sizes), 10)
        if window >= 2 and sizes[-1] > slowest ** (window - 1) * sizes[-window]:
            return None
        if rule.horizon.uniform:  # all states are off by nearly the same number
            after += bracket.middle - sum(residuals) / 2
        value, after = after, value
    return None


def sweep_limit(rule: StoppingRule, limit: int | None) -> int:
    """Returns the given limit, or the number of sweeps after which another one cannot help."""
    return int(min(SWEEPS_PER_STEP * rule.horizon.high, 1e9)) + 100 if limit is None else limit


def iterate(
    mdp: FiniteMDP,
    greedy_step: GreedyStep,
    value: arrays.FloatArray,
    rule: StoppingRule,
    *,
    method: SolveMethod = "auto",
    sweeps: int = 0,
    limit: int = ITERATION_LIMIT,
) -> Plan:
    """Runs the loop of all planners: each round brings v to V^π, or near it.

    The evaluation is exact if that is cheap, else it leaves a tenth of the residual. Sweeps of
    value iteration in place may follow. If paths are long, one round of policy iteration improves
    only the states next to the last change. A sweep carries a change along the numbering of the
    states, and costs a few steps of an iterative evaluation: far fewer rounds are needed.
    """
    model = Backup.of(mdp)
    for iteration in range(1, limit + 1):
        q = model.q(value)
        with named_in_errors("the greedy step gave no policy", InvalidPolicy):
            policy = Policy(mdp.pairs, greedy_step(q))
        backed_up = averaged(mdp.pairs, policy.probability, q)
        residuals = difference_range(backed_up, value)
        residual = largest(residuals)
        bracket = rule.bracket(residuals, float(np.abs(value).max()), TIE_TOLERANCE)
        plan = Plan(policy, value, iteration, residual, bracket.error, arrays.own(q))
        if bracket.good:
            return plan
        if residual <= bracket.floor:
            refuse(bracket, rule.tolerance, plan=plan)
        if rule.horizon.uniform:  # all states are off by nearly the same number
            if bracket.high - bracket.middle <= bracket.goal / 2:
                value = value + bracket.middle
                continue
            backed_up += bracket.middle - sum(residuals) / 2
        chain = policy_chain(mdp, policy.probability)
        target = INEXACT * rule.horizon.size(residuals)
        after = solve_to(chain, backed_up, target, rule.horizon, method)
        for sweep in range(sweeps):
            gauss_seidel_sweep(model, sweep % 2 == 1, after)
        if np.array_equal(after, value):
            refuse(bracket, rule.tolerance, plan=plan)
        value = after
    raise NotConverged(f"policy iteration stopped after {limit} rounds, the limit", plan=plan)


def best_actions(mdp: FiniteMDP) -> GreedyStep:
    """Returns the greedy step over all policies: the best action, the lowest among ties."""
    return lambda q: best_of(mdp.pairs, q)
