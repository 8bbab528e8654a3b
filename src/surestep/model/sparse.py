"""SciPy matrices, one an action, to runs of successors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from surestep.errors import InvalidModel


def read_matrices(name: str, matrices: Sequence[Any]) -> csr_array:
    """Square sparse matrices [S, S] of one size, one below the other [A·S, S]; rows are sorted."""
    if not isinstance(matrices, Sequence) or not matrices:
        raise InvalidModel(f"{name} is not a sequence of sparse matrices, one an action")
    for action, matrix in enumerate(matrices):
        if not issparse(matrix):
            raise InvalidModel(
                f"{name}[{action}] is of type {type(matrix).__name__}, expected a SciPy sparse "
                "matrix (tables go into FiniteMDP.from_dense)"
            )
        if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
            raise InvalidModel(f"{name}[{action}] holds {matrix.dtype} values, expected numbers")
        size = matrices[0].shape[0]
        if matrix.shape != (size, size) or size == 0:
            raise InvalidModel(
                f"{name}[{action}] has shape {matrix.shape}, expected {(size, size)}"
            )
    # Doubles before anything else: repeated entries would add up in, say, 8 bits.
    rows = csr_array(vstack([matrix.astype(np.float64) for matrix in matrices], format="csr"))
    rows.sum_duplicates()
    return rows
