"""Why not deep offline RL? The same logs through d3rlpy's CQL and BCQ, and through surestep.

    python benchmarks/peers.py [FOLDER] [--data-sets 20] [--fits 2]

d3rlpy needs an environment of its own, since it asks for an old Gymnasium and weighs 5.6 GB:

    python -m venv .peers && .peers/bin/pip install d3rlpy

FOLDER, by default .peers/fits, keeps the logs and d3rlpy's fits, so that a run that was ended goes
on where it stopped; `benchmarks/peers_fit.py` makes the fits and says with which settings. Without
that environment, what is kept already and our side are shown. d3rlpy gets the first data sets only
(`--fits`), as 20,000 steps take it two minutes. Every policy is evaluated exactly in the true
model: its performance with Student's 95 % interval (asymptotic), in how many data sets it is worse
than π_b, and the least seconds that a fit took.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from peers_fit import SETTINGS, file_of

from surestep import DecisionLog, Policy
from surestep.algorithms import SPIBB, make_algorithm
from surestep.certificates import Posterior
from surestep.choosing_n_wedge import AutoNWedge
from surestep.environments import Benchmark, make
from surestep.experiments import student_interval
from surestep.model import Improvement, Problem

# The arguments of the quickest run; without a folder that stays.
SMALLEST = ("--data-sets", "1", "--episodes", "50", "--environments", "gridworld", "--dry")
ENVIRONMENTS = ("gridworld", "wet-chicken")
OURS: dict[str, Callable[[Problem], Improvement]] = {
    "Basic RL": make_algorithm("basic-rl").improve,
    "SPIBB, N∧ = 10": make_algorithm("spibb", n_wedge=10).improve,
    "SPIBB, N∧ chosen": AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=Posterior()).improve,
    "Soft-SPIBB, ε = 1": make_algorithm("approx-soft-spibb", epsilon=1.0).improve,
    "DUIPI, ξ = 0.5": make_algorithm("duipi", xi=0.5).improve,
    "RaMDP, κ = 0.05": make_algorithm("ramdp", kappa=0.05).improve,
}
SEED = 2024
INSTALL = "python -m venv .peers && .peers/bin/pip install d3rlpy"
PYTHON = Path(".peers") / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


class Data(NamedTuple):
    """One data set of an environment, and where it is kept."""

    benchmark: Benchmark
    episodes: int
    number: int
    log: DecisionLog
    path: Path | None  # None: it is not for d3rlpy


class Fit(NamedTuple):
    """What one fit is worth, and the seconds it took."""

    performance: float
    seconds: float


def draw(name: str, episodes: int, number: int, folder: Path | None) -> Data:
    """Draws a data set; writes it into a folder, if any, where d3rlpy can read it."""
    benchmark = make(name)
    log = benchmark.sample(episodes, np.random.default_rng((SEED, episodes, number)))
    if folder is None:
        return Data(benchmark, episodes, number, log, None)
    path = folder / f"{name}-{episodes}-{number:03}.log.npz"
    if not path.exists():
        np.savez(
            path,
            state=log.state,
            action=log.action,
            reward=log.reward,
            terminated=log.terminated,
            truncated=log.truncated,
            states=benchmark.num_states,
            actions=benchmark.num_actions,
            discount=benchmark.discount,
        )
    return Data(benchmark, episodes, number, log, path)


def ours(data: Data) -> dict[str, Fit]:
    """Improves by each of our algorithms, and says what came of it."""
    found = {}
    for way, improve in OURS.items():
        began = time.perf_counter()
        policy = improve(problem_of(data)).policy
        found[way] = Fit(worth(data.benchmark, policy), time.perf_counter() - began)
    return found


def problem_of(data: Data) -> Problem:
    """Returns the problem that the log poses; rewards are those of the log, as d3rlpy sees them."""
    return replace(data.benchmark.problem(data.log), counts=data.log.counts())


def theirs(data: Data) -> dict[str, Fit]:
    """Returns what the fits are worth that d3rlpy has made of the data set."""
    found = {}
    for setting in SETTINGS if data.path else ():
        path = file_of(data.path, setting)
        if not path.exists():
            continue
        with np.load(path) as fits:
            for steps, action, seconds in zip(
                fits["steps"], fits["action"], fits["seconds"], strict=True
            ):
                table = np.zeros((data.benchmark.num_states, data.benchmark.num_actions))
                table[np.arange(len(table)), action] = 1.0
                policy = Policy.from_dense(data.benchmark.mdp, table)
                found[f"{setting}, {steps:,} steps"] = Fit(
                    worth(data.benchmark, policy), float(seconds)
                )
    return found


def worth(benchmark: Benchmark, policy: Policy) -> float:
    """Returns ρ of the policy in the true model."""
    return float(benchmark.truth.worth(policy.probability[None])[0])


def show(name: str, episodes: int, fits: list[dict[str, Fit]]) -> None:
    """Prints a table in Markdown: one line for each way, over all its data sets."""
    benchmark = make(name)
    behavior, best = benchmark.performance_of_behavior(), benchmark.optimal_performance()
    print(f"\n{name}, {episodes:,} trajectories: π_b earns {behavior:.3f}, the best {best:.3f}\n")
    print("| | data sets | mean ρ | 95 % | least | most | worse than π_b | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for way in dict.fromkeys(way for each in fits for way in each):
        mine = [each[way] for each in fits if way in each]
        earned = np.array([fit.performance for fit in mine])
        mean, *ends = student_interval(earned)
        between = "–" if len(mine) == 1 else " to ".join(f"{end:.3f}" for end in ends)
        numbers = f"{mean:.3f} | {between} | {earned.min():.3f} | {earned.max():.3f}"
        worse = int((earned < behavior - 1e-9).sum())
        seconds = min(fit.seconds for fit in mine)  # others may have used the machine as well
        took = round(seconds, 3 if seconds < 10 else None)
        print(f"| {way} | {len(mine)} | {numbers} | {worse} | {took} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".peers/fits"))
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--fits", type=int, default=2, help="the data sets that d3rlpy gets")
    parser.add_argument("--episodes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--environments", nargs="+", choices=ENVIRONMENTS, default=ENVIRONMENTS)
    parser.add_argument("--dry", action="store_true", help="our side only, and keep nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as nowhere:
        folder = Path(nowhere) if given.dry else given.folder
        folder.mkdir(parents=True, exist_ok=True)
        cells = {
            (name, episodes): [
                draw(name, episodes, number, folder if number < given.fits else None)
                for number in range(given.data_sets)
            ]
            for name in given.environments
            for episodes in given.episodes
        }
        if PYTHON.exists() and not given.dry:
            script = Path(__file__).with_name("peers_fit.py")
            subprocess.run([str(PYTHON), str(script), str(folder)], check=True)
        else:
            print(f"d3rlpy is not asked; it needs {INSTALL}")
        ours(next(iter(cells.values()))[0])  # compiles
        for (name, episodes), data in cells.items():
            show(name, episodes, [ours(each) | theirs(each) for each in data])


if __name__ == "__main__":
    main()
