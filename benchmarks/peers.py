"""Why not deep offline RL? The same logs through d3rlpy's CQL and BCQ, and through surestep.

    python benchmarks/peers.py [FOLDER] [--data-sets 20] [--device cpu] [--csv docs/peers.csv]

d3rlpy needs an environment of its own, since it asks for an old Gymnasium and weighs 5.6 GB:

    python -m venv .peers && .peers/bin/pip install d3rlpy

FOLDER, by default .peers/fits, keeps the logs and d3rlpy's fits, so that a run that was ended goes
on where it stopped; `benchmarks/peers_fit.py` makes the fits and says how and with which settings.
Without that environment, what is kept already and our side are shown. Every policy is evaluated
exactly in the true model: its performance with Student's 95 % interval (asymptotic), in how many
data sets it is worse than π_b, and the least seconds that a fit takes alone.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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
    path: Path


class Fit(NamedTuple):
    """What one fit is worth, and the seconds it took."""

    performance: float
    seconds: float


def draw(name: str, episodes: int, number: int, folder: Path) -> Data:
    """Draws a data set, and writes it where d3rlpy can read it."""
    benchmark = make(name)
    log = benchmark.sample(episodes, np.random.default_rng((SEED, episodes, number)))
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
    for setting in SETTINGS:
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


def rows_of(name: str, fits: list[dict[str, Fit]]) -> list[dict[str, Any]]:
    """Returns a row for each way, over all data sets of an environment."""
    behavior = make(name).performance_of_behavior()
    rows = []
    for way in dict.fromkeys(way for each in fits for way in each):
        mine = [each[way] for each in fits if way in each]
        earned = np.array([fit.performance for fit in mine])
        mean, low, high = student_interval(earned)
        seconds = min(fit.seconds for fit in mine)  # others may have used the machine as well
        row = {
            "method": way,
            "data_sets": len(mine),
            "mean_performance": f"{mean:.3f}",
            "mean_low": f"{low:.3f}" if len(mine) > 1 else "",
            "mean_high": f"{high:.3f}" if len(mine) > 1 else "",
            "least": f"{earned.min():.3f}",
            "most": f"{earned.max():.3f}",
            "worse_than_current": int((earned < behavior - 1e-9).sum()),
            "seconds": round(seconds, 3 if seconds < 10 else None),
        }
        rows.append(row)
    return rows


def show(name: str, episodes: int, rows: list[dict[str, Any]]) -> None:
    """Prints a table in Markdown."""
    benchmark = make(name)
    behavior, best = benchmark.performance_of_behavior(), benchmark.optimal_performance()
    print(f"\n{name}, {episodes:,} trajectories: π_b earns {behavior:.3f}, the best {best:.3f}\n")
    print(f"| {' | '.join(rows[0])} |")
    print(f"| --- {'| ---: ' * (len(rows[0]) - 1)}|")
    for row in rows:
        print(f"| {' | '.join(map(str, row.values()))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".peers/fits"))
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--device", default="cpu", help="where d3rlpy learns: cpu or cuda")
    parser.add_argument("--csv", type=Path, help="a file for the whole table")
    parser.add_argument("--episodes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--environments", nargs="+", choices=ENVIRONMENTS, default=ENVIRONMENTS)
    parser.add_argument("--dry", action="store_true", help="our side only, and keep nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as nowhere:
        folder = Path(nowhere) if given.dry else given.folder
        folder.mkdir(parents=True, exist_ok=True)
        cells = {
            (name, episodes): [
                draw(name, episodes, number, folder) for number in range(given.data_sets)
            ]
            for name in given.environments
            for episodes in given.episodes
        }
        if PYTHON.exists() and not given.dry:
            script = Path(__file__).with_name("peers_fit.py")
            command = [str(PYTHON), str(script), str(folder), "--device", given.device]
            subprocess.run(command, check=True)
        else:
            print(f"d3rlpy is not asked; it needs {INSTALL}")
        ours(next(iter(cells.values()))[0])  # compiles
        table = []
        for (name, episodes), data in cells.items():
            rows = rows_of(name, [ours(each) | theirs(each) for each in data])
            show(name, episodes, rows)
            table += [{"world": name, "trajectories": episodes, **row} for row in rows]
        if given.csv:
            with open(given.csv, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, table[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)


if __name__ == "__main__":
    main()
