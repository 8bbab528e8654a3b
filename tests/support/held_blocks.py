"""Work in blocks whose workers stop and wait where a test wants to interfere, and say who they are.

It is a rehearsal, or an experiment; what is finished is kept beside the permits to go on.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from support.known_worlds import two_ways_problem
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior
from surestep.experiments import make_experiment, run_experiment
from surestep.rehearsal import Completed, DrawnFromPosterior, rehearse

BLOCKS = 15  # three rounds of five worlds at most: two kinds in two stages, and luck; or 15 sizes
MOST_CALLS = 10  # of an algorithm in a block: five worlds, two sizes; or ten repetitions
KEPT = "kept"
OPEN = "open"  # the file that lets everybody go on


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSPIBB:
    """SPIBB that takes a permit out of a folder every time, or says who it is and waits for one."""

    n_wedge: int
    folder: str

    name: ClassVar = "held-spibb"

    def improve(self, problem):
        wait_for_permit(Path(self.folder))
        return SPIBB(n_wedge=self.n_wedge).improve(problem)


def wait_for_permit(folder):
    said = False
    while not (folder / OPEN).exists():
        for permit in folder.glob("permit-*"):
            try:
                permit.unlink()
                return
            except FileNotFoundError:  # somebody else took it
                continue
        if not said:
            say_held(folder)
            said = True
        time.sleep(0.02)


def say_held(folder):
    """Writes a file whose name says which process of which machine waits."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    (folder / f"held-{os.getpid()}-{node}").touch()


def held(folder):
    """The processes that have waited so far, and their machines."""
    names = [path.name.split("-") for path in folder.glob("held-*")]
    return {(int(process), node) for _, process, node in names}


def rehearsed(folder, kept=KEPT, **where):
    """A small rehearsal, as text."""
    return rehearse(
        two_ways_problem(),
        HeldSPIBB(n_wedge=3, folder=str(folder)),
        Posterior(starts="known", prior="weight", draws=19, delta=0.2),
        rng=np.random.default_rng(1),
        worlds=12,
        sizes=(1.0, 4.0),
        family=(Completed("self-loop"), DrawnFromPosterior("jeffreys")),
        folder=folder / kept,
        **where,
    ).to_json()


def experimented(folder, kept=KEPT, **where):
    """The table of a small experiment, as bytes."""
    experiment = make_experiment(
        "held",
        environments=["bandit"],
        algorithms=[HeldSPIBB(n_wedge=3, folder=str(folder))],
        episodes=list(range(10, 10 + BLOCKS)),
        repetitions=MOST_CALLS,
        seed=1,
    )
    return run_experiment(experiment, folder / kept, **where).read_bytes()


WORK = {"rehearsal": rehearsed, "experiment": experimented}


def finished(folder):
    """The blocks that are kept, and when each was written."""
    files = [*(folder / KEPT).glob("*.npz"), *(folder / KEPT).glob("blocks/[!.]*.npz")]
    return {path.name: path.stat().st_mtime_ns for path in files}
