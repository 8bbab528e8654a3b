"""N visits to a radius to a loss: the paper's bounds, as published, and inversions."""

from surestep.bounds.loss import (
    BOUNDS,
    BestBound,
    BoundAnswer,
    best_bound,
    compare_bounds,
    equivalent_n_wedge,
    n_wedge,
    value_span,
    zeta,
)
from surestep.bounds.radius import (
    BetaBound,
    Bound,
    Coverage,
    KSuccessor,
    ProblemSize,
    SPIBBBound,
    StandardSPI,
    StandardSPIWithoutGamma,
    TwoSuccessorBound,
    credible_width,
)

__all__ = [
    "BOUNDS",
    "BestBound",
    "BetaBound",
    "Bound",
    "BoundAnswer",
    "Coverage",
    "KSuccessor",
    "ProblemSize",
    "SPIBBBound",
    "StandardSPI",
    "StandardSPIWithoutGamma",
    "TwoSuccessorBound",
    "best_bound",
    "compare_bounds",
    "credible_width",
    "equivalent_n_wedge",
    "n_wedge",
    "value_span",
    "zeta",
]
