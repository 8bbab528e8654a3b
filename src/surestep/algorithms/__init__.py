"""Improves policies: every algorithm is a class of settings with one method, `improve`."""

from surestep.algorithms.batch import ImprovementBatch, improve_batch, improve_batches, is_compiled
from surestep.algorithms.constrained import Bounded, Constrained
from surestep.algorithms.contract import (
    NO_LIMITS,
    ROUNDING,
    Algorithm,
    Improver,
    Limited,
    Limits,
    Promise,
    improve_on_nodes,
    improvement_of,
    limited,
)
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.hcpi import HCPI
from surestep.algorithms.learnt_structure import drafted, learn_structure
from surestep.algorithms.pessimistic import VILCB, PessimisticMBIE, RobustMDP
from surestep.algorithms.provable import Provable
from surestep.algorithms.registry import (
    ALGORITHMS,
    SHELF,
    is_algorithm,
    kind_of,
    make_algorithm,
    needs_log,
    settings_of,
)
from surestep.algorithms.soft import SoftSPIBB
from surestep.algorithms.spibb import (
    SPIBB,
    BasicRL,
    BetaSPIBB,
    LowerSPIBB,
    RaMDP,
    RMin,
    TwoSuccessorSPIBB,
)

__all__ = [
    "ALGORITHMS",
    "DUIPI",
    "HCPI",
    "SPIBB",
    "VILCB",
    "Algorithm",
    "BasicRL",
    "BetaSPIBB",
    "Constrained",
    "ImprovementBatch",
    "LowerSPIBB",
    "PessimisticMBIE",
    "Promise",
    "Provable",
    "RMin",
    "RaMDP",
    "RobustMDP",
    "SoftSPIBB",
    "TwoSuccessorSPIBB",
    "drafted",
    "improve_batch",
    "improve_on_nodes",
    "improvement_of",
    "learn_structure",
    "make_algorithm",
]
