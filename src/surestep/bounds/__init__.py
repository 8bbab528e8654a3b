"""Bounds of the paper, as published: the loss that N visits allow, and the visits a loss takes."""

from surestep.bounds.loss import (
    BOUNDS,
    Bound,
    BoundAnswer,
    KSuccessor,
    ProblemSize,
    compare_bounds,
    equivalent_n_wedge,
    n_wedge,
    zeta,
)

__all__ = [
    "BOUNDS",
    "Bound",
    "BoundAnswer",
    "KSuccessor",
    "ProblemSize",
    "compare_bounds",
    "equivalent_n_wedge",
    "n_wedge",
    "zeta",
]
