"""Known MDP and policy to values, each with a proven bound on its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from surestep._arrays import FloatArray, expect, run_lengths
from surestep._reprs import short_repr
from surestep.errors import InvalidParameter, NotConverged
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import HasPolicy, Policy, policy_of
from surestep.planning.chain import (
    Chain,
    change_range,
    largest,
    policy_chain,
    predicted_fill,
    solve_dense,
    solve_fast_sweeps,
    solve_krylov,
    solve_sparse,
    solve_sweeps,
)
from surestep.planning.components import Components
from surestep.planning.ends import goes_round, refuse_endless
from surestep.planning.proof import LOOSEST_DEFAULT, Bracket, Horizon, StoppingRule, horizon_of
from surestep.planning.pruning import Backup

Method = Literal["auto", "dense", "sparse", "iterative", "components"]

DENSE_STATES = 300  # up to here a dense LU is the fastest
FILL_PER_STATE = 100  # predicted factor entries a state up to which a sparse LU is worth it
LARGEST_FILL = 20_000_000
KRYLOV_STEPS = 1_000
# What solvers raise where a chain is singular up to rounding.
SINGULAR = (np.linalg.LinAlgError, RuntimeError, ZeroDivisionError)
TOO_MANY_STEPS = (
    "without discounting, the policy takes so many steps before it ends that nothing can be proven "
    "in doubles; expected a discount below 1, or likelier ends"
)
ENOUGH_STEPS = 0.01  # the residual of the number of steps: it makes a bound 1 % larger
SWEEPS_PER_STEP = 40  # (1 − 1/w)^(40 w) < 1e-17: more sweeps cannot help


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """V^π, and how far it can be off: |V^π(s) − value(s)| ≤ `error_bound` in every state."""

    value: FloatArray  # [S]
    residual: float  # max_s |(T_π v)(s) − v(s)|
    error_bound: float
    method: Method  # the one that was used

    __repr__ = short_repr("value", "error_bound", "method")


def evaluate(
    mdp: FiniteMDP, policy: Policy, *, method: Method = "auto", tolerance: float | None = None
) -> FloatArray:
    """V^π [S]: the expected discounted reward from each state. See `evaluate_with_bound`."""
    return evaluate_with_bound(mdp, policy, method=method, tolerance=tolerance).value


def evaluate_with_bound(
    mdp: FiniteMDP, policy: Policy, *, method: Method = "auto", tolerance: float | None = None
) -> Evaluation:
    """V^π with a proven bound on its error.

    Methods: "dense" LU, "sparse" LU, "iterative" (sweeps while they are fast, then BiCGSTAB),
    "components" (one strongly connected component after the other, each by sweeps in place, or by
    one of the others where these are slow), or "auto": dense when small, sweeps while they are
    fast, else components. `tolerance` is the largest error allowed; by default 1e-10 of the largest
    reward and value, or what doubles can prove.
    """
    check_inputs(mdp, policy, method)
    chain = policy_chain(mdp, policy.probability)
    # A row of the chain adds up the successors of all actions in one sum.
    longest = int(run_lengths(chain.offsets).max()) + int(run_lengths(mdp.pairs.offsets).max())
    rule = StoppingRule.of(mdp, tolerance, horizon_under(mdp, policy, chain))
    rule = replace(rule, terms=max(rule.terms, longest + 8))

    def bracket(value: FloatArray, residuals: tuple[float, float]) -> Bracket:
        return rule.bracket(residuals, float(np.abs(value).max()))

    start = np.zeros(mdp.num_states)
    first = bracket(start, (0.0, 0.0))
    value, used = solve(
        chain,
        method,
        start,
        target=max(first.goal / rule.horizon.high / 2, first.floor),
        horizon=rule.horizon,
        good_enough=lambda value, _: bracket(value, change_range(chain, value)).good,
    )
    residuals = change_range(chain, value)
    final = bracket(value, residuals)
    if not final.good:
        rule.refuse(final)
    return Evaluation(value, largest(residuals), final.error, used)


def performance(
    mdp: FiniteMDP,
    policy: Policy | HasPolicy,
    *,
    method: Method = "auto",
    tolerance: float | None = None,
) -> float:
    """ρ(π, M) = Σ_s ι(s) V^π(s), of a policy or of what a Plan, an Improvement or a Result has."""
    value = evaluate(mdp, policy_of(policy), method=method, tolerance=tolerance)
    return float(mdp.initial @ value)


def q_values(mdp: FiniteMDP, value: FloatArray) -> FloatArray:
    """Q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for every pair [K]."""
    return Backup.of(mdp).q(value)


def occupancy(mdp: FiniteMDP, policy: Policy, *, method: Method = "auto") -> FloatArray:
    """Expected discounted visits of each pair [K]: Σ_t E[γ^t 1(s_t = s, a_t = a)].

    With discounts per pair, γ^t is the product of the discounts passed. The errors of all pairs
    together are at most 1e-9 · max w, with w the expected discounted number of steps, or what
    doubles can prove.
    """
    check_inputs(mdp, policy, method)
    chain = policy_chain(mdp, policy.probability)
    horizon = horizon_under(mdp, policy, chain)
    chain = chain.transposed(mdp.initial)
    rounding = (int(run_lengths(chain.offsets).max()) + 8) * 2.0**-52
    allowed = min(max(1e-9, 4 * rounding * (1 + horizon.high)), LOOSEST_DEFAULT)

    def imbalance(visits: FloatArray) -> float:
        # In the sum norm, (I − Wᵀ)⁻¹ is at most max w.
        change = float(np.abs(chain.step(visits) - visits).sum())
        return change + rounding * (1 + float(np.abs(visits).sum()))

    visits, _ = solve(
        chain,
        method,
        mdp.initial,
        target=allowed / mdp.num_states / 10,
        horizon=replace(horizon, uniform=False),  # that is about W, not Wᵀ
        good_enough=lambda visits, _: imbalance(visits) <= allowed,
    )
    if not imbalance(visits) <= allowed:
        raise NotConverged(
            f"inflow and outflow of the visits differ by {imbalance(visits):.3g}, expected at most "
            f"{allowed:.3g}; try another method, or discounts further below 1"
        )
    return np.repeat(visits, run_lengths(mdp.pairs.offsets)) * policy.probability


def horizon_under(mdp: FiniteMDP, policy: Policy, chain: Chain) -> Horizon:
    """Bounds on the number of steps: for every policy, or for this one where others may never end.

    Where pairs of discount 1 go round, the policy must end for certain.
    """
    if not goes_round(mdp):
        return horizon_of(mdp)
    refuse_endless(mdp, policy.probability)
    return Horizon(1.0, chain_steps(chain), uniform=False)


def chain_steps(chain: Chain) -> float:
    """max w for a w ≥ 1 + W w, from the expected number of steps.

    Certificate: if w > 0 and w − W w ≥ θ > 0, then w/θ qualifies, and W has no eigenvalue as large
    as 1 (Perron and Frobenius), however the w was found.
    """
    counting = replace(chain, reward=np.ones(chain.reward.size))
    steps = undiscounted_total(counting, counting.reward, ENOUGH_STEPS)
    most, excess = float(steps.max()), change_range(counting, steps)[1]
    theta = 1 - excess - (int(run_lengths(chain.offsets).max()) + 8) * 2.0**-52 * most
    if not (theta > 0 and steps.min() > 0):
        raise NotConverged(TOO_MANY_STEPS)
    return most / theta


def undiscounted_total(chain: Chain, start: FloatArray, target: float) -> FloatArray:
    """Solves x = b + W x for a chain that ends, up to a residual of `target`."""
    unlimited = Horizon(1.0, np.inf, uniform=False)
    try:
        return solve(
            chain, "auto", start, target, unlimited, lambda _, residual: residual <= target
        )[0]
    except SINGULAR:
        raise NotConverged(TOO_MANY_STEPS) from None


def solve(
    chain: Chain,
    method: Method,
    start: FloatArray,
    target: float,
    horizon: Horizon,
    good_enough: Callable[[FloatArray, float], bool],
) -> tuple[FloatArray, Method]:
    """Solves x = b + W x; the solution and the method that was used.

    `target` is the residual to aim for, `good_enough(x, residual)` the judgement that counts, and
    `horizon` limits the sweeps. Exact methods need none of them.
    """
    if method == "auto" and chain.reward.size > DENSE_STATES:
        value, residual = solve_fast_sweeps(chain, start, target, horizon)
        if good_enough(value, residual):
            return value, "iterative"
        return solve_components(chain, start, target, horizon), "components"
    if method == "components":
        return solve_components(chain, start, target, horizon), method
    if method == "iterative":
        value, residual = solve_fast_sweeps(chain, start, target, horizon)
        return solve_slowly(chain, value, target, horizon, good_enough), method
    if method == "sparse":
        return solve_sparse(chain), method
    return solve_dense(chain), "dense"


def solve_slowly(
    chain: Chain,
    start: FloatArray,
    target: float,
    horizon: Horizon,
    good_enough: Callable[[FloatArray, float], bool],
) -> FloatArray:
    """Solves by BiCGSTAB, and by sweeps where that breaks down."""
    residual = largest(change_range(chain, start))
    value = start
    if not good_enough(value, residual):
        value, residual = solve_krylov(chain, value, target, KRYLOV_STEPS)
    if not good_enough(value, residual):
        sweeps = int(min(SWEEPS_PER_STEP * horizon.high, 10_000_000))
        value, _ = solve_sweeps(chain, value, target, sweeps)
    return value


def solve_components(
    chain: Chain, start: FloatArray, target: float, horizon: Horizon
) -> FloatArray:
    """Solves one component after the other, those that others lead to first."""
    components, value = Components.of(chain.model()), start.copy()
    reached = components.settle(0, target, value)
    while reached < components.number:
        states = components.states(reached)
        value[states] = solve_part(chain.part(states, value), value[states], target, horizon)
        reached = components.settle(reached + 1, target, value)
    return value


def solve_part(chain: Chain, start: FloatArray, target: float, horizon: Horizon) -> FloatArray:
    """Solves a component on which sweeps are slow: dense when small, sparse if little fills in."""
    size = chain.reward.size
    if size <= DENSE_STATES:
        return solve_dense(chain)
    limit = min(FILL_PER_STATE * size, LARGEST_FILL)
    if predicted_fill(chain, limit) <= limit:
        return solve_sparse(chain)
    return solve_slowly(chain, start, target, horizon, lambda _, residual: residual <= target)


def check_inputs(mdp: FiniteMDP, policy: Policy, method: str) -> None:
    """Refuses what is no model, no policy of it, or no method."""
    expect("mdp", mdp, FiniteMDP)
    expect("policy", policy, Policy)
    check_same_pairs("the model", mdp.pairs, "the policy", policy.pairs)
    if method not in get_args(Method):
        raise InvalidParameter(
            f"method is {method!r}, expected one of {', '.join(get_args(Method))}"
        )
