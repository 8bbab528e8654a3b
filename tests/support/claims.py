"""Claims, stress tests and failed checks that nobody made, for tests of what is said of them."""

import numpy as np

from surestep import Certificate
from surestep.checks import CHECKS, Check
from surestep.model.statements import Statement
from surestep.rehearsal import Calibration, Rehearsal

MARKOV = Statement("markov", {})
SEEN = Statement(
    "rewards-within-seen",
    {"running_low": -140.0, "running_high": 160.0, "ending_low": -400.0, "ending_high": 500.0},
)


def claim(standing, lower, *assumptions, **parameters):
    return Certificate(
        kind="posterior" if standing == "posterior" else "stitched", standing=standing,
        lower=lower, delta=0.1, span=1.0, assumptions=assumptions or (MARKOV,),
        notes=("The log is too small.",) if lower is None else (), parameters=parameters,
        figures={},
    )  # fmt: skip


def rehearsal_of(lucky=(), rank=None):
    """A stress test with these beliefs where all actions are alike."""
    calibration = None if rank is None else Calibration(99, 10, (rank, 10), ("bootstrap", "other"))
    table = np.zeros((2, 1))
    return Rehearsal(
        kind="stitched", delta=0.1, family=("bootstrap", "other"), member=np.array([0, 1]),
        sizes=(1.0,), episodes=(10,), horizon=(5,), own_episodes=10, gain=table, claim=table,
        calibrated_claim=None, calibration=calibration, tolerance=1e-9,
        outside=table.astype(np.bool_), limits=("One.",), lucky_belief=np.array(lucky, float),
    )  # fmt: skip


def failing(code, **figures):
    """A check that failed, with these figures or any."""
    given = figures or dict.fromkeys(CHECKS[code].figures, 17.0)
    return Check(code=code, outcome="failed", figures=given)
