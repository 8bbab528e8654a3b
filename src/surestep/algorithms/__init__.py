"""From a problem to a better policy: every algorithm is settings with one verb, `improve`."""

from surestep.algorithms.basic import BasicRL, RaMDP, RMin
from surestep.algorithms.batch import ImprovementBatch, improve_batch
from surestep.algorithms.contract import Algorithm, Promise
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.pessimistic import PessimisticMBIE, RobustMDP
from surestep.algorithms.registry import (
    ALGORITHMS,
    make_algorithm,
    settings_from_json,
    settings_to_json,
)
from surestep.algorithms.soft import (
    AdvantageSoftSPIBB,
    ApproxSoftSPIBB,
    ExactSoftSPIBB,
    LowerSoftSPIBB,
    OneStepApproxSoftSPIBB,
    OneStepExactSoftSPIBB,
)
from surestep.algorithms.spibb import SPIBB, BetaSPIBB, LowerSPIBB, TwoSuccessorSPIBB

__all__ = [
    "ALGORITHMS",
    "DUIPI",
    "SPIBB",
    "AdvantageSoftSPIBB",
    "Algorithm",
    "ApproxSoftSPIBB",
    "BasicRL",
    "BetaSPIBB",
    "ExactSoftSPIBB",
    "ImprovementBatch",
    "LowerSPIBB",
    "LowerSoftSPIBB",
    "OneStepApproxSoftSPIBB",
    "OneStepExactSoftSPIBB",
    "PessimisticMBIE",
    "Promise",
    "RMin",
    "RaMDP",
    "RobustMDP",
    "TwoSuccessorSPIBB",
    "improve_batch",
    "make_algorithm",
    "settings_from_json",
    "settings_to_json",
]
