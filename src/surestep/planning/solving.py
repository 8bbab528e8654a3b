"""Solving x = b + W x for one chain, by the method that suits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from surestep._arrays import FloatArray
from surestep.errors import NotConverged
from surestep.planning.chain import (
    Chain,
    change_range,
    largest,
    predicted_fill,
    solve_dense,
    solve_fast_sweeps,
    solve_krylov,
    solve_sparse,
    solve_sweeps,
)
from surestep.planning.components import Components
from surestep.planning.proof import Horizon

Method = Literal["auto", "dense", "sparse", "iterative", "components"]
GoodEnough = Callable[[FloatArray, float], bool]  # a solution and its residual to the judgement

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
SWEEPS_PER_STEP = 40  # (1 − 1/w)^(40 w) < 1e-17: more sweeps cannot help


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
    good_enough: GoodEnough,
) -> tuple[FloatArray, Method]:
    """Solves x = b + W x; the solution and the method that was used.

    `target` is the residual to aim for, `good_enough(x, residual)` the judgement that counts, and
    `horizon` limits the sweeps. Exact methods need none of them.
    """
    if method == "auto" and chain.reward.size > DENSE_STATES:
        if chain.found is not None:
            return solve_components(chain, start, target, horizon), "components"
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
    good_enough: GoodEnough,
) -> FloatArray:
    """Solves by BiCGSTAB, and by sweeps where that breaks down."""
    residual = largest(change_range(chain, start))
    value = start
    if not good_enough(value, residual):
        value, residual = solve_krylov(chain, value, target, KRYLOV_STEPS)
    if not good_enough(value, residual):
        value, _ = solve_sweeps(chain, value, target, most_sweeps(horizon))
    return value


def most_sweeps(horizon: Horizon) -> int:
    """Returns the number of sweeps after which another one cannot help, or would never come."""
    return int(min(SWEEPS_PER_STEP * horizon.high, 10_000_000))


def solve_components(
    chain: Chain, start: FloatArray, target: float, horizon: Horizon
) -> FloatArray:
    """Solves one component after the other, those that others lead to first."""
    components, value = Components.of(chain.model(), chain.found), start.copy()
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
