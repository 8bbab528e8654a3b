"""SciPy matrices, one an action, to runs of successors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.errors import InvalidModel
from surestep.model.pairs import Pairs


def read_matrices(name: str, matrices: Sequence[Any]) -> list[csr_array]:
    """Square sparse matrices of one size, with repeated entries added up and sorted rows."""
    if not isinstance(matrices, Sequence) or not matrices:
        raise InvalidModel(f"{name} is not a sequence of sparse matrices, one an action")
    result: list[csr_array] = []
    for action, matrix in enumerate(matrices):
        if not issparse(matrix):
            raise InvalidModel(
                f"{name}[{action}] is of type {type(matrix).__name__}, expected a SciPy sparse "
                "matrix (tables go into FiniteMDP.from_dense)"
            )
        if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
            raise InvalidModel(f"{name}[{action}] holds {matrix.dtype} values, expected numbers")
        size = result[0].shape[0] if result else matrix.shape[0]
        if matrix.ndim != 2 or matrix.shape != (size, size) or size == 0:
            raise InvalidModel(
                f"{name}[{action}] has shape {matrix.shape}, expected {(size, size)}"
            )
        # Doubles before anything else: repeated entries would add up in, say, 8 bits.
        rows = csr_array(matrix.astype(np.float64), copy=True)
        rows.sum_duplicates()
        result.append(rows)
    return result


def stacked(matrices: list[csr_array], pairs: Pairs) -> tuple[IntArray, IntArray, FloatArray]:
    """Transitions of the enabled pairs: (successors a pair [K], successor [T], value [T])."""
    lengths = np.zeros(pairs.num_pairs, np.int64)
    pieces = []
    for action, matrix in enumerate(matrices):
        matrix.eliminate_zeros()
        pair_of_state = np.full(pairs.num_states, -1, np.int64)
        mine = np.flatnonzero(pairs.action == action)
        pair_of_state[pairs.state[mine]] = mine
        pair = pair_of_state[arrays.run_owners(matrix.indptr.astype(np.int64))]
        kept = pair >= 0
        pieces.append((pair[kept], matrix.indices[kept], matrix.data[kept]))
        lengths += np.bincount(pair[kept], minlength=pairs.num_pairs)
    pair = np.concatenate([piece[0] for piece in pieces])
    order = np.argsort(pair, kind="stable")  # keeps the rising successors of each row
    successor = np.concatenate([piece[1] for piece in pieces])[order]
    value = np.concatenate([piece[2] for piece in pieces])[order]
    return lengths, successor.astype(np.int64), value


def rewards_at(
    matrices: list[csr_array], pairs: Pairs, offsets: IntArray, successor: IntArray
) -> FloatArray:
    """Returns the rewards [T] of the matrices at the given transitions, 0 where they have none."""
    expected = (pairs.num_actions, pairs.num_states)
    if (len(matrices), matrices[0].shape[0]) != expected:
        raise InvalidModel(
            f"R has {len(matrices)} matrices of {matrices[0].shape[0]} states, expected "
            f"{expected[0]} of {expected[1]}"
        )
    pair = arrays.run_owners(offsets)
    reward = np.zeros(successor.size)
    for action, matrix in enumerate(matrices):
        mine = np.flatnonzero(pairs.action[pair] == action)
        if mine.size:
            reward[mine] = np.asarray(matrix[pairs.state[pair[mine]], successor[mine]]).ravel()
    return reward
