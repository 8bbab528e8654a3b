"""A rehearsal whose workers stop and wait where a test wants to interfere, and say who they are.

It runs as a script too, so that a test can lose the process that drives a cluster.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surestep import FiniteMDP, Policy, Problem, sample_log
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior
from surestep.rehearsal import Completed, DrawnFromPosterior, KeptBlocks, rehearse

BLOCKS = 15  # three rounds of five worlds at most: two kinds in two stages, and luck
MOST_CALLS = 10  # of an algorithm in a block: five worlds, two sizes
OPEN = "open"  # the file that lets everybody go on


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSPIBB:
    """SPIBB that takes a permit out of a folder every time, or says who it is and waits for one."""

    n_wedge: int
    folder: str

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


def problem():
    P = np.zeros((3, 2, 3))
    P[0, :, 2] = [0.3, 0.7]
    P[0, :, 1] = 1 - P[0, :, 2]
    R = np.zeros((3, 2, 3))
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    log = sample_log(mdp, Policy.uniform(mdp), 30, 1, np.random.default_rng(0))
    return Problem(
        counts=log.counts(), behavior=Policy.uniform(mdp), discount=0.9, value_bounds=(0.0, 1.0)
    )


def rehearsed(folder, **where):
    """A small rehearsal; what it finishes is kept beside the permits."""
    return rehearse(
        problem(),
        HeldSPIBB(n_wedge=3, folder=str(folder)),
        Posterior(starts="known", prior="weight", draws=19, delta=0.2),
        rng=np.random.default_rng(1),
        worlds=12,
        sizes=(1.0, 4.0),
        family=(Completed("self-loop"), DrawnFromPosterior("jeffreys")),
        kept=KeptBlocks(folder / "kept"),
        **where,
    ).to_json()


if __name__ == "__main__":
    folder, address = Path(sys.argv[1]), sys.argv[2]
    (folder / "found.json").write_text(rehearsed(folder, engine="ray", address=address))
