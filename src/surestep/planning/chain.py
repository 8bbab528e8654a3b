"""The Markov chain that a policy makes of an MDP, and ways to solve x = b + W x on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, identity
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels.chain import chain_rows, chain_sizes, chain_step
from surestep.kernels.components import Order
from surestep.kernels.extremes import difference_range
from surestep.kernels.krylov import bicgstab_step
from surestep.planning.proof import Horizon
from surestep.planning.pruning import Backup, RowModel

FAST = 0.8  # sweeps that leave more of the residual than this, each on average, are not fast
MOST_FAST_SWEEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Weights W(s,s') = Σ_a π(a|s) Γ(s,a) P(s'|s,a) by rows; a successor may stand there twice."""

    offsets: IntArray  # [S+1]
    successor: IndexArray  # [≤ T]
    weight: FloatArray  # [≤ T]
    reward: FloatArray  # [S] r_π
    found: Order | None = None  # its states by component, where they are known

    def step(self, value: FloatArray) -> FloatArray:
        """r_π + W v."""
        result = np.empty_like(value)
        chain_step(self.offsets, self.successor, self.weight, self.reward, value, result)
        return result

    def matrix(self) -> csr_array:
        """W as a SciPy matrix in canonical form (copied: SciPy sorts in place)."""
        size = self.reward.size
        rows = (self.weight, self.successor, self.offsets)
        matrix = csr_array(rows, shape=(size, size), copy=True)
        matrix.sum_duplicates()
        return matrix

    def part(self, states: IndexArray, value: FloatArray) -> Chain:
        """Returns the chain among `states`, where the values of all others are known."""
        lengths = arrays.run_lengths(self.offsets)[states]
        offsets = arrays.offsets_of(lengths)
        taken = arrays.ranges(self.offsets[states], lengths)
        place = np.full(self.reward.size, -1, np.int32)
        place[states] = np.arange(states.size)
        successor, weight = self.successor[taken], self.weight[taken]
        inside, row = place[successor] >= 0, arrays.run_owners(offsets)
        known = np.where(inside, 0.0, weight * value[successor])
        return Chain(
            arrays.offsets_of(np.bincount(row[inside], minlength=states.size)),
            place[successor[inside]],
            weight[inside],
            self.reward[states] + np.bincount(row, known, minlength=states.size),
        )

    def model(self) -> Backup:
        """Returns the chain as a model with one pair a state."""
        states = np.arange(self.offsets.size)
        ones = np.ones(self.reward.size)
        return Backup(states, self.offsets, self.successor, self.weight, ones, self.reward)

    def transposed(self, right_side: FloatArray) -> Chain:
        """Returns the chain with Wᵀ in place of W, and another right-hand side."""
        matrix = self.matrix().T.tocsr()
        return Chain(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data,
            right_side,
        )


def policy_chain(mdp: RowModel, policy: FloatArray) -> Chain:
    """Makes the chain of a policy with probabilities [K]; linear in the transitions taken."""
    model, num_states = Backup.of(mdp), mdp.pairs.num_states
    lengths, reward = np.empty(num_states, np.int64), np.empty(num_states)
    chain_sizes(model, policy, lengths, reward)
    offsets = arrays.offsets_of(lengths)
    successor, weight = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    chain_rows(model, policy, offsets, successor, weight)
    return Chain(offsets, successor, weight, reward)


def solve_dense(chain: Chain) -> FloatArray:
    """Solves by LAPACK's dense LU: S² memory, S³ time."""
    system = np.eye(chain.reward.size)
    np.subtract.at(system, (arrays.run_owners(chain.offsets), chain.successor), chain.weight)
    return np.linalg.solve(system, chain.reward)


def solve_sparse(chain: Chain) -> FloatArray:
    """Solves by SuperLU: exact; time and memory grow with the fill."""
    factors = splu((identity(chain.reward.size, format="csr") - chain.matrix()).tocsc())
    solution: FloatArray = factors.solve(chain.reward)
    return solution


def solve_krylov(
    chain: Chain, start: FloatArray, target: float, limit: int
) -> tuple[FloatArray, float]:
    """Solves by BiCGSTAB from `start`, until the residual is at most `target` or nothing is gained.

    The point reached and its largest residual. A breakdown restarts the iteration where it is.
    """
    value, shadow = start, change_of(chain, start)
    smallest = float(np.abs(shadow).max())
    while smallest > target and limit > 0:
        solution = value.copy()
        work = np.zeros((4, solution.size))
        work[0] = shadow
        scalars = np.ones(3)
        for _ in range(limit):
            limit -= 1
            size = bicgstab_step(
                chain.offsets, chain.successor, chain.weight, shadow, solution, work, scalars
            )
            if not target < size < 1e3 * smallest:  # done, broken down, or diverging
                break
        change = change_of(chain, solution)
        reached = float(np.abs(change).max())
        if not reached < smallest / 2:  # also where it is NaN
            break
        value, shadow, smallest = solution, change, reached
    return value, smallest


def solve_sweeps(
    chain: Chain, start: FloatArray, target: float, limit: int
) -> tuple[FloatArray, float]:
    """Solves by at most `limit` ≥ 1 sweeps v ← r_π + W v, which always converge.

    The point reached and the size of the last change. The residual there is no larger: W is
    nonnegative and its rows sum to at most 1.
    """
    value, change = start, np.inf
    for _ in range(limit):
        value, after = chain.step(value), value
        change = largest(difference_range(value, after))
        if not change > target:
            break
    return value, change


def solve_fast_sweeps(
    chain: Chain, start: FloatArray, target: float, horizon: Horizon
) -> tuple[FloatArray, float]:
    """Solves by sweeps while each shrinks the residual a lot, as on models that mix fast.

    On a uniform horizon, a change that is the same for all states goes on to be γ times as large
    for ever, so it is added up at once and does not count as residual.
    """
    size = half_range if horizon.uniform else largest
    value, sizes = start, []
    for count in range(MOST_FAST_SWEEPS):
        value, previous = chain.step(value), value
        change = difference_range(value, previous)
        sizes.append(size(change))
        if not sizes[-1] > target or sizes[-1] > FAST**count * sizes[0]:
            break
    if horizon.uniform:
        value += (change[0] + change[1]) / 2 * ((horizon.low + horizon.high) / 2 - 1)
    return value, sizes[-1]


def change_of(chain: Chain, value: FloatArray) -> FloatArray:
    """r_π + W v − v, NaN where values are too large for doubles."""
    with np.errstate(invalid="ignore", over="ignore"):
        change: FloatArray = chain.step(value) - value
    return change


def largest(change: tuple[float, float]) -> float:
    """Returns the size of a change from its (min, max): max |·|."""
    return max(change[1], -change[0])


def half_range(change: tuple[float, float]) -> float:
    """Returns the size of a change, not counting what is the same for all states."""
    return (change[1] - change[0]) / 2


def change_range(chain: Chain, value: FloatArray) -> tuple[float, float]:
    """(min, max) of r_π + W v − v."""
    return difference_range(chain.step(value), value)


def predicted_fill(chain: Chain, limit: int) -> int:
    """Estimates the entries in the factors of I − W from above; more than `limit` if many.

    The estimate is twice the envelope after reverse Cuthill–McKee ordering. A breadth-first probe
    tells wide graphs, whose envelope is large anyway, without ordering them.
    """
    size = chain.reward.size
    if frontier_exceeds(chain, limit // size, levels=300):
        return limit + 1
    matrix = chain.matrix()
    pattern = (matrix + matrix.T).tocsr()
    order = reverse_cuthill_mckee(pattern, symmetric_mode=True)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    row = place[arrays.run_owners(pattern.indptr.astype(np.int64))]
    reach = np.zeros(size, np.int64)
    np.maximum.at(reach, row, row - place[pattern.indices])
    return int(2 * reach.sum() + size)


def frontier_exceeds(chain: Chain, width: int, levels: int) -> bool:
    """Tells whether a breadth-first search from three states meets a level wider than `width`."""
    size = chain.reward.size
    seen = np.zeros(size, np.bool_)
    frontier = np.unique([0, size // 2, size - 1])
    seen[frontier] = True
    for _ in range(levels):
        rows = [chain.successor[chain.offsets[s] : chain.offsets[s + 1]] for s in frontier.tolist()]
        reached = np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)
        frontier = reached[~seen[reached]]
        if frontier.size > width:
            return True
        if frontier.size == 0:
            return False
        seen[frontier] = True
    return False
