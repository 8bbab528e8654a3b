"""From a problem to a better policy: every algorithm is settings with one verb, `improve`."""

from surestep.algorithms.batch import COMPILED, ImprovementBatch, improve_batch
from surestep.algorithms.constrained import Constrained
from surestep.algorithms.contract import Algorithm, Improver, Promise, improvement_of
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.hcpi import HCPI
from surestep.algorithms.limits import Limited, Limits
from surestep.algorithms.pessimistic import PessimisticMBIE, RobustMDP
from surestep.algorithms.provable import Provable
from surestep.algorithms.registry import (
    ALGORITHMS,
    Description,
    described,
    is_algorithm,
    kind_of,
    make_algorithm,
    needs_log,
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
from surestep.model.estimates import estimate_behavior

__all__ = [
    "ALGORITHMS",
    "COMPILED",
    "DUIPI",
    "HCPI",
    "SPIBB",
    "Algorithm",
    "BasicRL",
    "BetaSPIBB",
    "Constrained",
    "Description",
    "ImprovementBatch",
    "Improver",
    "Limited",
    "Limits",
    "LowerSPIBB",
    "PessimisticMBIE",
    "Promise",
    "Provable",
    "RMin",
    "RaMDP",
    "RobustMDP",
    "SoftSPIBB",
    "TwoSuccessorSPIBB",
    "described",
    "estimate_behavior",
    "improve_batch",
    "improvement_of",
    "is_algorithm",
    "kind_of",
    "make_algorithm",
    "needs_log",
]
