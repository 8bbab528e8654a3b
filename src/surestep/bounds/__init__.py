"""Computes the paper's published bounds: the loss ζ that N visits allow, and N for a given ζ."""

from surestep.bounds.loss import (
    BOUNDS,
    Bound,
    BoundAnswer,
    FactoredBound,
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
    "FactoredBound",
    "KSuccessor",
    "ProblemSize",
    "compare_bounds",
    "equivalent_n_wedge",
    "n_wedge",
    "zeta",
]
