"""A few settings of every registered algorithm, and what each of them promises."""

from __future__ import annotations

from surestep.algorithms import (
    DUIPI,
    HCPI,
    SPIBB,
    VILCB,
    Algorithm,
    BasicRL,
    BetaSPIBB,
    Constrained,
    LowerSPIBB,
    PessimisticMBIE,
    Promise,
    Provable,
    RaMDP,
    RMin,
    RobustMDP,
    SoftSPIBB,
    TwoSuccessorSPIBB,
)

SETTINGS: dict[str, tuple[Algorithm, ...]] = {
    "basic-rl": (BasicRL(),),
    "spibb": (SPIBB(n_wedge=0), SPIBB(n_wedge=20)),
    "lower-spibb": (LowerSPIBB(n_wedge=20),),
    "spibb-2s": (TwoSuccessorSPIBB(spibb_n_wedge=30),),
    "spibb-beta": (BetaSPIBB(spibb_n_wedge=50, delta=0.05),),
    "exact-soft-spibb": (
        SoftSPIBB(epsilon=0.1),
        SoftSPIBB(epsilon=1.0, delta=0.5),
        SoftSPIBB(epsilon=0.5, delta=0.1, error="spibb"),
    ),
    "approx-soft-spibb": (
        SoftSPIBB(epsilon=0.3, step="approx"),
        SoftSPIBB(epsilon=2.0, delta=0.2, step="approx", error="spibb"),
    ),
    "lower-soft-spibb": (
        SoftSPIBB(epsilon=0.3, step="lower"),
        SoftSPIBB(epsilon=2.0, delta=0.2, step="lower", error="spibb"),
    ),
    "advantage-soft-spibb": (
        SoftSPIBB(epsilon=1.0, step="advantage"),
        SoftSPIBB(epsilon=0.5, step="advantage"),
    ),
    "one-step-exact-soft-spibb": (
        SoftSPIBB(epsilon=1.0, iterate=False),
        SoftSPIBB(epsilon=0.5, iterate=False),
    ),
    "one-step-approx-soft-spibb": (
        SoftSPIBB(epsilon=1.0, step="approx", iterate=False),
        SoftSPIBB(epsilon=0.5, step="approx", iterate=False),
    ),
    "ramdp": (RaMDP(kappa=0.0), RaMDP(kappa=0.5)),
    "rmin": (RMin(n_wedge=20),),
    "pessimistic-mbie": (PessimisticMBIE(),),
    "duipi": (DUIPI(xi=0.1), DUIPI(xi=1.0, estimator="frequentist")),
    "robust-mdp": (RobustMDP(delta=0.5),),
    "vi-lcb": (VILCB(), VILCB(delta=0.5, scale=0.05)),
    "hcpi": (HCPI(delta=0.4, train_share=0.5), HCPI(estimator="wis", interval="bca", seed=3)),
    "provable": (Provable(), Provable(rounds=2.5, price=0)),
    "constrained": (Constrained(n_wedge=3), Constrained(n_wedge=0, rounds=2.5, price=0)),
}

NEED_LOG = {"hcpi"}

SPIBBS = {"spibb", "lower-spibb", "spibb-2s", "spibb-beta"}
ITERATED_SOFT = {"exact-soft-spibb", "approx-soft-spibb", "lower-soft-spibb"}
ONE_STEP = {"one-step-exact-soft-spibb", "one-step-approx-soft-spibb"}
SOFT = ITERATED_SOFT | ONE_STEP | {"advantage-soft-spibb"}
PLANNERS = {
    "ramdp",
    "rmin",
    "pessimistic-mbie",
    "vi-lcb",
    "duipi",
}  # in another model than the estimate

HOLDS_FOR = {
    Promise.KEEPS_BEHAVIOR: SPIBBS
    | SOFT
    | {"hcpi", "robust-mdp", "vi-lcb", "provable", "constrained"},
    Promise.NEVER_WORSE: SPIBBS | SOFT | {"basic-rl", "robust-mdp", "provable", "constrained"},
    Promise.REACHES_OPTIMUM: SPIBBS
    | ITERATED_SOFT
    | PLANNERS
    | {"basic-rl", "robust-mdp", "provable", "constrained"},
    Promise.OPTIMAL_IN_CLASS: SPIBBS | {"exact-soft-spibb", "lower-soft-spibb"},
    Promise.RENUMBERING: SPIBBS | SOFT | PLANNERS - {"duipi"} | {"basic-rl", "robust-mdp"},
}


def promises(algorithm: Algorithm) -> set[Promise]:
    """What the contract asks of the algorithm."""
    return {promise for promise, names in HOLDS_FOR.items() if algorithm.name in names}


def needs_log(algorithm: Algorithm) -> bool:
    """Whether the algorithm looks at whole episodes."""
    return algorithm.name in NEED_LOG
