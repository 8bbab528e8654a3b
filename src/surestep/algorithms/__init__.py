"""Improves policies: every algorithm is a class of settings with one method, `improve`."""

from surestep.algorithms.batch import ImprovementBatch, improve_batch
from surestep.algorithms.constrained import Constrained
from surestep.algorithms.contract import Algorithm, Promise, improve_on_nodes, improvement_of
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.hcpi import HCPI
from surestep.algorithms.learnt_structure import drafted, learn_structure
from surestep.algorithms.pessimistic import VILCB, PessimisticMBIE, RobustMDP
from surestep.algorithms.provable import Provable
from surestep.algorithms.registry import ALGORITHMS, make_algorithm
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
