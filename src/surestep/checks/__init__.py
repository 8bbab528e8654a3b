"""Tests the assumptions of claims on a log. Each module has a test, its title and its sentences."""

from surestep.checks import (
    behavior_memory,
    claims,
    clock,
    copies,
    declared_policy,
    drift,
    enough_data,
    hidden_causes,
    markov,
    memory,
    model_returns,
    outcomes,
    practice_changed,
    stock,
    stops,
    structure,
    ties,
)  # fmt: skip
from surestep.checks.check import CHECKS, Check
from surestep.checks.running import check_log
from surestep.checks.structure import LeftOut, StructureTest, blind_share, check_structure
from surestep.checks.words import failed, says, title

__all__ = [
    "CHECKS",
    "Check",
    "LeftOut",
    "StructureTest",
    "blind_share",
    "check_log",
    "check_structure",
    "failed",
    "says",
    "title",
]

IN_ORDER = (  # of the page
    outcomes.KIND,
    copies.KIND,
    clock.KIND,
    ties.KIND,
    stops.KIND,
    *markov.KINDS,
    memory.KIND,
    model_returns.KIND,
    *drift.KINDS,
    behavior_memory.KIND,
    practice_changed.KIND,
    declared_policy.KIND,
    *structure.KINDS,
    hidden_causes.KIND,
    enough_data.KIND,
    stock.KIND,
    *claims.KINDS,
    enough_data.FEW,
)
CHECKS.update({kind.code: kind for kind in IN_ORDER})
