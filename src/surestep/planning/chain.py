"""Builds the Markov chain of a policy in an MDP, and solves x = b + W x by the best-suited method.

In most models that people make, only small parts lead back to themselves: protocols count, clocks
run, work gets done. A few sweeps in place solve such a part once the values of its successors are
known. So large chains are solved one strongly connected component after the other, successors
first; see `kernels.components`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy  # loads its parts when they are needed

from surestep._arrays import (
    FloatArray,
    IndexArray,
    IntArray,
    offsets_of,
    ranges,
    run_lengths,
    run_owners,
    run_sums,
)
from surestep.errors import NotConverged
from surestep.kernels.backup import chain_step, difference_range
from surestep.kernels.components import Order, leads_ahead, settle_components, strong_components
from surestep.planning.backups import Backup, RowModel, averaged
from surestep.planning.proof import Horizon

FAST = 0.8  # sweeps are fast if each leaves at most this part of the residual, on average
MOST_FAST_SWEEPS = 100
MOST_SWEEPS = 1_000  # of one component; one that needs more is left to other methods
SolveMethod = Literal["auto", "dense", "sparse", "iterative", "components"]
GoodEnough = Callable[[FloatArray, float], bool]  # takes a solution and its residual

DENSE_STATES = 300  # up to this number of states, a dense LU is the fastest
FILL_PER_STATE = 100  # up to this number of predicted factor entries a state, a sparse LU pays
LARGEST_FILL = 20_000_000
KRYLOV_STEPS = 1_000
# The errors that solvers raise if a chain is singular up to rounding.
SINGULAR = (np.linalg.LinAlgError, RuntimeError, ZeroDivisionError)
TOO_MANY_STEPS = (
    "without discounting, the policy takes so many steps before it ends that nothing can be proven "
    "in doubles; expected a discount below 1, or likelier ends"
)
SWEEPS_PER_STEP = 40  # (1 − 1/w)^(40 w) < 1e-17: more sweeps cannot help


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Weights W(s,s') = Σ_a π(a|s) Γ(s,a) P(s'|s,a) by rows; a row may list a successor twice."""

    offsets: IntArray  # [S+1]
    successor: IndexArray  # [≤ T]
    weight: FloatArray  # [≤ T]
    reward: FloatArray  # [S] r_π
    by_component: Order | None = None  # its states, if their order is known

    def step(self, value: FloatArray) -> FloatArray:
        """Returns r_π + W v."""
        result = np.empty_like(value)
        chain_step(self.offsets, self.successor, self.weight, self.reward, value, result)
        return result

    def matrix(self) -> "scipy.sparse.csr_array":
        """Returns W as a SciPy matrix in canonical form (copied: SciPy sorts in place)."""
        size = self.reward.size
        matrix = scipy.sparse.csr_array(
            (self.weight, self.successor, self.offsets), shape=(size, size), copy=True
        )
        matrix.sum_duplicates()
        return matrix

    def system(self) -> "scipy.sparse.csr_array":
        """Returns I − W as a SciPy matrix."""
        return scipy.sparse.csr_array(
            scipy.sparse.identity(self.reward.size, format="csr") - self.matrix()
        )

    def part(self, states: IndexArray, value: FloatArray) -> "Chain":
        """Returns the chain among `states`, given the values of all other states."""
        lengths = run_lengths(self.offsets)[states]
        taken = ranges(self.offsets[states], lengths)
        place = np.full(self.reward.size, -1, np.int32)
        place[states] = np.arange(states.size)
        successor, weight = self.successor[taken], self.weight[taken]
        inside = place[successor] >= 0
        row = run_owners(offsets_of(lengths))
        known = np.where(inside, 0.0, weight * value[successor])
        return Chain(
            offsets_of(np.bincount(row[inside], minlength=states.size)),
            place[successor[inside]],
            weight[inside],
            self.reward[states] + np.bincount(row, known, minlength=states.size),
        )

    def model(self) -> Backup:
        """Returns the chain as a model with one pair a state."""
        return Backup(
            np.arange(self.offsets.size),
            self.offsets,
            self.successor,
            self.weight,
            np.ones(self.reward.size),
            self.reward,
        )

    def transposed(self, right_side: FloatArray) -> "Chain":
        """Returns the chain with Wᵀ in place of W, and another right-hand side."""
        matrix = self.matrix().T.tocsr()
        return Chain(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data,
            right_side,
        )


def policy_chain(mdp: RowModel, policy: FloatArray) -> Chain:
    """Makes the chain of a policy [K], of the transitions that the policy takes."""
    pairs = mdp.pairs
    goes_on = (policy > 0) & (mdp.discount > 0)
    lengths = run_lengths(mdp.offsets)
    taken = np.repeat(goes_on, lengths)
    share = np.repeat((policy * mdp.discount)[goes_on], lengths[goes_on])
    return Chain(
        offsets_of(run_sums(lengths * goes_on, pairs.offsets)),
        mdp.successor[taken],
        share * mdp.probability[taken],
        averaged(pairs, policy, mdp.expected_reward),
    )


def solve_dense(chain: Chain) -> FloatArray:
    """Solves by LAPACK's dense LU: S² memory, S³ time."""
    system = np.eye(chain.reward.size)
    np.subtract.at(system, (run_owners(chain.offsets), chain.successor), chain.weight)
    return np.linalg.solve(system, chain.reward)


def solve_sparse(chain: Chain) -> FloatArray:
    """Solves by SuperLU: exact; time and memory grow with the fill."""
    solution: FloatArray = scipy.sparse.linalg.splu(chain.system().tocsc()).solve(chain.reward)
    return solution


def solve_krylov(
    chain: Chain, start: FloatArray, target: float, limit: int
) -> tuple[FloatArray, float]:
    """Solves by BiCGSTAB from `start`, until the residual is at most `target` or nothing is gained.

    Returns the point reached and its largest residual. After a breakdown, or `limit` steps, the
    iteration begins anew there, if they made the residual much smaller.
    """
    system = chain.system()
    value, smallest = start, largest(change_range(chain, start))
    while smallest > target:
        with np.errstate(all="ignore"):  # a breakdown divides by 0, and shows in the residual
            change = (chain.step(value) - value) / smallest
            atol = target / smallest
            correction, _ = scipy.sparse.linalg.bicgstab(
                system, change, rtol=0.0, atol=atol, maxiter=limit
            )
            solution = value + smallest * correction
        reached = largest(change_range(chain, solution))
        if not reached < smallest / 2:  # also true for NaN
            break
        value, smallest = solution, reached
    return value, smallest


def solve_by_sweeps(
    chain: Chain,
    start: FloatArray,
    target: float,
    horizon: Horizon,
    *,
    limit: int = MOST_FAST_SWEEPS,
    slowest: float = FAST,
) -> tuple[FloatArray, float]:
    """Solves by at most `limit` ≥ 1 sweeps v ← r_π + W v, as long as they shrink the residual fast.

    A sweep has to leave no more than `slowest` of it, on average. Returns the point reached and the
    size of the last change. The residual there is no larger: W is nonnegative and its rows sum to
    at most 1. On a uniform horizon, a change that is the same for all states shrinks by γ in each
    later sweep, so its sum is added at once and does not count as residual.
    """
    value = start
    first = 0.0
    for count in range(limit):
        value, previous = chain.step(value), value
        change = difference_range(value, previous)
        residual = horizon.size(change)
        if count == 0:
            first = residual
        if not residual > target or residual > slowest**count * first:
            break
    if horizon.uniform:
        value += (change[0] + change[1]) / 2 * ((horizon.low + horizon.high) / 2 - 1)
    return value, residual


def largest(change: tuple[float, float]) -> float:
    """Returns the size of a change from its (min, max): max |·|."""
    return max(change[1], -change[0])


def change_range(chain: Chain, value: FloatArray) -> tuple[float, float]:
    """Returns (min, max) of r_π + W v − v."""
    return difference_range(chain.step(value), value)


def predicted_fill(chain: Chain) -> int:
    """Estimates the entries in the factors of I − W from above.

    The estimate is twice the envelope after reverse Cuthill–McKee ordering.
    """
    size = chain.reward.size
    matrix = chain.matrix()
    pattern = (matrix + matrix.T).tocsr()
    place = np.argsort(scipy.sparse.csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True))
    row = place[run_owners(pattern.indptr.astype(np.int64))]
    reach = np.zeros(size, np.int64)
    np.maximum.at(reach, row, row - place[pattern.indices])
    return int(2 * reach.sum() + size)


def settle(
    model: Backup,
    target: float,
    value: FloatArray,
    *,
    known: Order | None = None,
    solve_slow: Callable[[IndexArray], None] | None = None,
) -> None:
    """Brings `value` [S] to a residual of `target`, component by component.

    `solve_slow` is called with the states of each component for which sweeps are too slow; without
    it their values stay less exact. `known` is the order of the components if it is known.
    """
    order = known or order_by_component(model.pair_offsets, model.offsets, model.successor)
    reached = settle_components(model, order, 0, target, MOST_SWEEPS, value)
    while reached < order.starts.size - 1:
        if solve_slow is not None:
            solve_slow(order.order[slice(*order.starts[reached : reached + 2])])
        reached = settle_components(model, order, reached + 1, target, MOST_SWEEPS, value)


def order_by_component(pair_offsets: IntArray, offsets: IntArray, successor: IndexArray) -> Order:
    """Finds the components; searches depth-first only if some state leads to an earlier one."""
    states = pair_offsets.size - 1
    if leads_ahead(pair_offsets, offsets, successor):
        backwards = np.arange(states, dtype=np.int32)[::-1].copy()
        return Order(backwards, backwards, np.arange(states + 1))
    return Order(*strong_components(pair_offsets, offsets, successor))


def undiscounted_total(chain: Chain, start: FloatArray, target: float) -> FloatArray:
    """Solves x = b + W x for a chain that ends, up to a residual of `target`."""
    unlimited = Horizon(1.0, np.inf, uniform=False)
    try:
        return solve_to(chain, start, target, unlimited)
    except SINGULAR:
        raise NotConverged(TOO_MANY_STEPS) from None


def solve_to(
    chain: Chain, start: FloatArray, target: float, horizon: Horizon, method: SolveMethod = "auto"
) -> FloatArray:
    """Solves x = b + W x: exactly if that is cheap, else up to a residual of `target`."""
    return solve(
        chain,
        method,
        start,
        target=target,
        horizon=horizon,
        good_enough=lambda _, residual: residual <= target,
    )[0]


def solve(
    chain: Chain,
    method: SolveMethod,
    start: FloatArray,
    *,
    target: float,
    horizon: Horizon,
    good_enough: GoodEnough,
) -> tuple[FloatArray, SolveMethod]:
    """Solves x = b + W x; returns the solution and the method that was used.

    `target` is the residual to aim for, `good_enough(x, residual)` decides whether a solution is
    accepted, and `horizon` limits the sweeps. Exact methods need none of them.
    """
    large = method == "auto" and chain.reward.size > DENSE_STATES
    if large and chain.by_component is None:
        value, residual = solve_by_sweeps(chain, start, target, horizon)
        if good_enough(value, residual):
            return value, "iterative"
    if large or method == "components":
        return solve_components(chain, start, target, horizon), "components"
    if method == "iterative":
        value, residual = solve_by_sweeps(chain, start, target, horizon)
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
    """Solves by BiCGSTAB, and by sweeps if that breaks down."""
    residual = largest(change_range(chain, start))
    value = start
    if not good_enough(value, residual):
        value, residual = solve_krylov(chain, value, target, KRYLOV_STEPS)
    if not good_enough(value, residual):
        # More sweeps cannot help, or would take too long.
        limit = int(min(SWEEPS_PER_STEP * horizon.high, 10_000_000))
        plain = replace(horizon, uniform=False)
        value, _ = solve_by_sweeps(chain, value, target, plain, limit=limit, slowest=np.inf)
    return value


def solve_components(
    chain: Chain, start: FloatArray, target: float, horizon: Horizon
) -> FloatArray:
    """Solves one component after the other, each after all that it leads to."""
    value = start.copy()

    def solve_slow(states: IndexArray) -> None:
        value[states] = solve_part(chain.part(states, value), value[states], target, horizon)

    settle(chain.model(), target, value, known=chain.by_component, solve_slow=solve_slow)
    return value


def solve_part(chain: Chain, start: FloatArray, target: float, horizon: Horizon) -> FloatArray:
    """Solves a component with slow sweeps: by dense LU if small, sparse LU if it fills little."""
    size = chain.reward.size
    if size <= DENSE_STATES:
        return solve_dense(chain)
    if predicted_fill(chain) <= min(FILL_PER_STATE * size, LARGEST_FILL):
        return solve_sparse(chain)
    return solve_slowly(chain, start, target, horizon, lambda _, residual: residual <= target)
