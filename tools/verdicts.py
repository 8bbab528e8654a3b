"""Holds the words at the top of a result against the truth, in worlds that are hard for claims.

python tools/verdicts.py [RUNS] [--repetitions N] [--seed S] [--worlds W] [--seconds T]
                         [--workers N] [--engine local|ray] [--address ADDRESS]

Each repetition makes a log, gives it to `surestep.improve` as a user would, and compares what
stands at the top of the result with the true gain. Rows go into RUNS/verdicts.csv, by default in
runs/coverage; a run that was ended goes on where it stopped. `--worlds` is the size of the stress
test, which can only undo beliefs, never proofs: by default there is none, since it takes most of
the time. Logs are judged by `--workers` processes, or on a Ray cluster, as `surestep run` does it.

Beside the families of `surestep run coverage` there are careless logs (`careless_logs.py`): what is
wrong with them is in their tables and descriptions, which only `improve` reads, also those of a
structure (`careless_structures.py`).
"""

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import careless_logs
import surestep
from judged_results import JudgedResult, read_verdicts
from surestep import DecisionLog, Policy
from surestep.environments import Benchmark
from surestep.errors import InvalidLog, SurestepError
from surestep.experiments.cell import data_seed, made
from surestep.experiments.experiment import EnvironmentSpec, read_experiments
from surestep.parallel import ENGINES, available_cores, map_as_done
from surestep.results.structured import StructuredResult

SEED = 2024
FILE = "verdicts.csv"
RUNS = (
    "alike",
    "noisy",
    "bandit",
    "rare",
    "undeclared",
    "adaptive",
    "broken",
)  # whose environments and sizes are taken


def verdict_of(benchmark: Benchmark, log: DecisionLog, worlds: int) -> dict[str, object]:
    """Gives the log to `improve`, and holds its result against the truth."""
    result = surestep.improve(
        table_of(log),
        discount=benchmark.discount,
        behavior=behavior_of(benchmark),
        worlds=worlds,
        **declared_in(benchmark),
    )
    both = np.stack([policy_in(benchmark, result).probability, benchmark.behavior.probability])
    worth = benchmark.truth.worth(both)
    gain, before = float(worth[0] - worth[1]), float(worth[1])
    return said_in(result) | {"gain": gain, "behavior_performance": before}


def verdict_of_careless(name: str, episodes: int, seed: int, worlds: int) -> dict[str, object]:
    """Gives a careless log to `improve`; what is refused claims nothing, and gains nothing."""
    log = careless_logs.WORLDS[name][0](seed, episodes)
    about = {"behavior_performance": log.before}
    try:
        result = log.improved(worlds)
    except InvalidLog:
        return about | {
            "verdict": "refused",
            "lower": number(None),
            "belief": number(None),
            "gain": 0.0,
        }
    return about | said_in(result) | {"gain": log.gain_of(result)}


def said_in(result: surestep.Result | StructuredResult) -> dict[str, object]:
    """What stands at the top of a result, and what it rests on.

    Beside a structure, a claim that may not prove is a belief, too.
    """
    if isinstance(result, StructuredResult):
        certificates = [one for one in (result.certificate, result.belief) if one is not None]
        beliefs = [max(number(one.lower) for one in certificates)]
    else:
        certificates = [*result.certificates]
        beliefs = [one.lower for one in certificates if one.kind == "posterior"]
    return {
        "verdict": result.verdict,
        "lower": number(certificates[0].lower),
        "belief": number(beliefs[0] if beliefs else None),
    }


def declared_in(benchmark: Benchmark) -> dict[str, tuple[float, float]]:
    """What a user would declare of rewards: ranges of steps, bounds of returns, or nothing."""
    if not benchmark.declared:
        return {}
    if benchmark.ranges is not None:
        return dict(zip(("running", "ending"), benchmark.ranges, strict=True))
    return {"returns": benchmark.return_bounds or benchmark.value_bounds}


def number(lower: float | None) -> float:
    return float("nan") if lower is None else float(lower)


def table_of(log: DecisionLog) -> dict[str, np.ndarray]:
    """The log as a user has it: columns with the usual names."""
    episode = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
    names = ("state", "action", "reward", "next_state", "terminated", "truncated", "step")
    return {"episode": episode} | {name: np.asarray(getattr(log, name)) for name in names}


def behavior_of(benchmark: Benchmark) -> dict[str, np.ndarray]:
    """π_b as a table, but for the ends of episodes, where nobody decides."""
    mdp = benchmark.mdp
    leads_on = np.diff(mdp.offsets) > 0
    decided = np.bincount(mdp.pairs.state, leads_on, mdp.num_states)[mdp.pairs.state] > 0
    return {
        "state": mdp.pairs.state[decided],
        "action": mdp.pairs.action[decided],
        "probability": benchmark.behavior.probability[decided],
    }


def policy_in(benchmark: Benchmark, result: surestep.Result) -> Policy:
    """The improved policy, over the pairs of the benchmark; π_b where the result says nothing."""
    table, pairs = result.table, benchmark.mdp.pairs
    states = np.array([int(label[0]) for label in table.vocabulary.states])
    actions = np.array([int(label[0]) for label in table.vocabulary.actions])
    decided = table.decided
    place = pairs.find(states[table.pairs.state[decided]], actions[table.pairs.action[decided]])
    probability = benchmark.behavior.probability.copy()
    probability[place] = table.probability[decided]
    return Policy(pairs, probability)


def families() -> Iterator[tuple[list[EnvironmentSpec], int]]:
    """The worlds of each family in the runs that count claims, with each of their sizes."""
    for name in RUNS:
        (experiment,) = read_experiments(f"coverage/{name}")
        worlds: dict[str, list[EnvironmentSpec]] = {}
        for environment in experiment.environments:
            worlds.setdefault(environment.family, []).append(environment)
        for members in worlds.values():
            for episodes in experiment.episodes:
                yield members, episodes


class Case(NamedTuple):
    """A log that is to be made and judged."""

    environment: EnvironmentSpec | str  # the name of careless logs
    episodes: int
    repetition: int
    worlds: int  # of the stress test
    seed: int = SEED


def missing_cases(path: Path, repetitions: int, worlds: int, seed: int = SEED) -> list[Case]:
    """The cases without a row, the first repetitions of all families first.

    Repetitions take the worlds of a family in turn.
    """
    done = {(row.family, row.episodes, row.repetition, row.worlds) for row in read_verdicts(path)}
    cells = [(members[0].family, members, episodes) for members, episodes in families()]
    cells += careless_cells()
    return [
        Case(members[repetition % len(members)], episodes, repetition, worlds, seed)
        for repetition in range(repetitions)
        for family, members, episodes in cells
        if (family, episodes, repetition, worlds) not in done
    ]


def careless_cells() -> list[tuple[str, list[str], int]]:
    """Careless logs, each a family of its own, with each of their sizes."""
    worlds = careless_logs.WORLDS.items()
    return [(name, [name], episodes) for name, (_, sizes) in worlds for episodes in sizes]


def judged(case: Case) -> JudgedResult:
    """Makes the log of a case, and judges what is said about it."""
    environment, episodes, repetition, worlds, seed = case
    if isinstance(environment, str):
        found = verdict_of_careless(environment, episodes, seed + repetition, worlds)
        return JudgedResult(environment, environment, episodes, repetition, worlds, **found)
    benchmark = made(environment, 0)
    rng = np.random.default_rng(data_seed(seed, environment, episodes, repetition))
    found = verdict_of(benchmark, benchmark.sample(episodes, rng), worlds)
    about = (environment.label, environment.family, episodes, repetition, worlds)
    return JudgedResult(*about, **found)


def run(
    path: Path,
    repetitions: int,
    worlds: int,
    seconds: float,
    *,
    seed: int = SEED,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
) -> None:
    """Adds the rows that are missing, each as soon as it is there."""
    until = time.monotonic() + seconds
    cases = missing_cases(path, repetitions, worlds, seed)
    rows = map_as_done(judged, cases, engine=engine, workers=workers, address=address)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(JudgedResult._fields)
        for _ in cases:
            if time.monotonic() > until:
                return
            _, row = next(rows)
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="?", type=Path, default=Path("runs/coverage"))
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--engine", choices=ENGINES, default="local")
    parser.add_argument("--address")
    given = parser.parse_args()
    try:
        run(
            given.runs / FILE,
            given.repetitions,
            given.worlds,
            given.seconds,
            seed=given.seed,
            workers=given.workers,
            engine=given.engine,
            address=given.address,
        )
    except SurestepError as problem:
        parser.error(str(problem))
    print(f"wrote {given.runs / FILE}")
