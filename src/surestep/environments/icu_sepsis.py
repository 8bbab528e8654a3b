"""Builds ICU-Sepsis: treatment of sepsis, estimated from real stays (Choudhary et al. 2024).

The states are 713 clusters of patients, death, survival and a state after both. The 25 actions are
five doses each of fluids and vasopressors. Survival pays 1. The model is a data file of the package
`icu-sepsis`. The file is read without importing the package, since an import would load a Gym that
is no longer maintained.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from surestep._arrays import FloatArray
from surestep.environments.benchmark import Benchmark, Portion
from surestep.environments.families import shrunk
from surestep.environments.hidden import Merged
from surestep.errors import MissingExtra, install
from surestep.model import FiniteMDP, Pairs, Policy

PACKAGE = "icu-sepsis"
FILE = "icu_sepsis/envs/assets/dynamics.npz"
PATIENTS = 713  # clusters, before death, survival and the state after both
SURVIVAL = PATIENTS + 1
STATES = PATIENTS + 3
ACTIONS = tuple(f"fluids {dose // 5}, vasopressors {dose % 5}" for dose in range(25))
HORIZON = 500


def icu_sepsis(
    effect: Portion = 1.0,
    discount: Annotated[float, Meta(gt=0, le=1)] = 0.99,
    ends: Literal["states", "flag"] = "states",
) -> Benchmark:
    """Builds ICU-Sepsis with the experts' policy as π_b, and effects at `effect`.

    Rows are shrunk towards their mean under the experts, whose value does not change. With `ends`
    "states", a log records the end of a stay as a state, death or survival. With "flag", one end
    stands for both, so that the last reward is noisy. An action that no expert took in a state has
    the mean effect of the others, as in the package's first version.
    """
    rows, start, experts = read_tables()
    prize = np.eye(STATES)[SURVIVAL]
    labels = (*(f"patients {group}" for group in range(PATIENTS)), "death", "survival", "after")
    rows = shrunk(rows, experts, effect)
    mdp = FiniteMDP.from_dense(
        rows,
        np.broadcast_to(prize, rows.shape),
        float(discount),
        start,
        state_labels=labels,
        action_labels=ACTIONS,
    )
    behavior = Policy.from_dense(mdp, experts)
    log = None
    if ends == "flag":
        pairs = Pairs.full(
            PATIENTS + 1,
            len(ACTIONS),
            state_labels=(*labels[:PATIENTS], "end"),
            action_labels=ACTIONS,
        )
        log = Merged(mdp=mdp, pairs=pairs, shown=np.minimum(np.arange(STATES), PATIENTS))
        # Only ends are merged, and they have no successors, so shares of visits do not matter.
        mdp = log.model(np.ones(mdp.num_pairs))
        behavior = Policy.from_dense(pairs, experts[: PATIENTS + 1])
    return Benchmark(
        name="icu-sepsis",
        mdp=mdp,
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=(0.0, 1.0),  # survival pays once
        simulator=log,
    )


def read_tables() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns P [S, A, S] up to the ends, the start [S], and the experts' policy [S, A]."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError:
        path = Path(FILE)
    if not path.exists():
        raise MissingExtra(
            f"the model of icu-sepsis is in the package {PACKAGE}, of which the file {FILE} is not "
            f"installed; {install('icu')}"
        )
    with np.load(path) as tables:
        rows = tables["tx_mat"]
        start = tables["d_0"]
        experts = tables["expert_policy"]
    rows[PATIENTS:] = 0.0
    experts[PATIENTS:] = 1 / len(ACTIONS)  # ends have no decisions, so any policy will do
    return rows, start, experts
