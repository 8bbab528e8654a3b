"""The same work on the processor and on a GPU, both in one run, and how far the answers differ.

- "optimal": the best policy of a random sparse model with 4 actions and 4 successors, γ = 0.95,
  proven to 1e-6; and one sweep of it, with the model on the GPU already;
- "posterior": the claim from models drawn for counts with 5 successors a pair, γ = 0.95;
- "gridworld": the same for the Gridworld, with many draws;
- "evaluate", "improve": batches of small models evaluated, and of data sets through SPIBB;
- "rehearsal": SPIBB and a posterior certificate from 99 draws, in 888 worlds of the Gridworld at 5
  data sizes, and calibrated in as many more at one; the processor has as many processes as cores;
- "stitched": stitched certificates of 1,000 logs of the Gridworld;
- "paper": the paper's evaluation, 1,000 repetitions of its three environments.

Times are of the second call: the first compiles, or reads what was compiled before. Without a GPU
the processor's side is printed alone.

Run: .venv/bin/python benchmarks/gpu.py [--work optimal posterior …] [--share 1.0]
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from surestep import (
    Counts,
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    Problem,
    SurestepError,
    certify,
    device,
    evaluate_batch,
    optimal,
)
from surestep._arrays import FloatArray
from surestep.algorithms import SPIBB, improve_batch
from surestep.certificates import Posterior, Stitched, certify_many, training_for
from surestep.environments import make
from surestep.experiments import read_experiments, run_experiment
from surestep.experiments.run import Store
from surestep.kernels.devices import PROCESSOR, device_in_use, machine_for
from surestep.model.batch import ProblemBatch
from surestep.model.counts import LoggedRewards
from surestep.parallel import available_cores
from surestep.planning.backups import Backup
from surestep.rehearsal import default_family, rehearse
from surestep.rehearsal.rehearse import SIZES

SMALLEST = ("--share", "0.0001")  # the arguments of the quickest run
DISCOUNT, PRECISION = 0.95, 1e-6
SWEEPS = 20


class Work(NamedTuple):
    """Something to be done, as a function without arguments that gives numbers."""

    name: str
    do: Callable[[], object]


def random_model(states: int, actions: int = 4, width: int = 4) -> FiniteMDP:
    """A model whose successors lie anywhere, in rising order."""
    rng = np.random.default_rng(0)
    pairs = Pairs.full(states, actions)
    shape = (pairs.num_pairs, width)
    successor = np.sort(rng.integers(0, states - width + 1, shape, np.int32), axis=1)
    successor += np.arange(width, dtype=np.int32)  # no state twice
    chances = rng.random(shape)
    chances /= chances.sum(axis=1, keepdims=True)
    return FiniteMDP(
        pairs,
        np.arange(pairs.num_pairs + 1) * width,
        successor.ravel(),
        chances.ravel(),
        np.repeat(rng.random(pairs.num_pairs), width),
        np.full(pairs.num_pairs, DISCOUNT),
        np.full(states, 1 / states),
    )


def optimal_plan(share: float) -> Iterator[Work]:
    states = max(100, int(1e7 * share))
    mdp = random_model(states)
    yield Work(
        f"optimal, {states:,} states × 4 × 4", lambda: optimal(mdp, tolerance=PRECISION).value
    )

    def sweeps() -> float:
        machine, backup = machine_for(Backup.of(mdp))
        value, after = machine.own(np.zeros(states)), machine.empty(states)
        backup.best(value, after)
        float(after.sum())  # waits until it is done
        start = time.perf_counter()
        for _ in range(SWEEPS):
            backup.best(value, after)
            value, after = after, value
        total = float(value.sum())
        side = "processor" if machine is PROCESSOR else "GPU"
        print(f"    a sweep on the {side}: {(time.perf_counter() - start) / SWEEPS * 1e3:.2f} ms")
        return total

    yield Work(f"{SWEEPS} sweeps of it, and what sending it takes", sweeps)


def posterior_claim(share: float) -> Iterator[Work]:
    states, actions, width, visits = max(200, int(1e4 * share)), 2, 5, 20
    rng = np.random.default_rng(0)
    pairs = Pairs.full(states, actions)
    shape = (pairs.num_pairs, width)
    successor = np.sort(rng.integers(0, states - width + 1, shape), axis=1) + np.arange(width)
    times = 1 + rng.multinomial(visits - width, np.full(width, 1 / width), len(successor))
    reward = rng.random(pairs.num_pairs)
    counts = Counts(
        pairs,
        np.arange(pairs.num_pairs + 1) * width,
        successor.ravel(),
        times.ravel(),
        LoggedRewards(reward, "pair", True),
        np.full(states, 1),
    )
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=DISCOUNT, value_bounds=(0.0, 20.0)
    )
    better = Policy.deterministic(pairs, reward.reshape(states, actions).argmax(axis=1))
    draws = max(20, int(1000 * min(1.0, share)))
    yield Work(
        f"posterior, {states:,} states, {successor.size:,} transitions, {draws:,} draws",
        lambda: certify(problem, better, Posterior(draws=draws)).lower,
    )


def gridworld_posterior(share: float) -> Iterator[Work]:
    benchmark = make("gridworld")
    problem = benchmark.problem(benchmark.sample(1000, np.random.default_rng(0)))
    policy = SPIBB(n_wedge=10).improve(problem).policy
    draws = max(100, int(1e5 * share))
    yield Work(
        f"posterior of the Gridworld, {draws:,} draws",
        lambda: certify(problem, policy, Posterior(draws=draws)).lower,
    )


def batch_of_models(share: float) -> Iterator[Work]:
    size, rng = max(10, int(1e5 * share)), np.random.default_rng(0)
    model = random_model(25)
    chances = rng.random((size, model.pairs.num_pairs, 4))
    chances /= chances.sum(axis=2, keepdims=True)
    batch = MDPBatch(
        model.pairs,
        model.offsets,
        model.successor,
        chances.reshape(size, -1),
        rng.random((size, model.pairs.num_pairs)),
        model.discount,
        model.initial,
    )
    uniform = Policy.uniform(model.pairs)
    yield Work(
        f"{size:,} models of 25 states evaluated", lambda: evaluate_batch(batch, uniform).value
    )


def batch_of_data_sets(share: float) -> Iterator[Work]:
    size, rng = max(10, int(2e4 * share)), np.random.default_rng(0)
    benchmark = make("gridworld")
    problems = ProblemBatch.from_problems(
        [benchmark.problem(benchmark.sample(100, rng)) for _ in range(size)]
    )
    yield Work(
        f"SPIBB on {problems.counts.num_data_sets:,} data sets of the Gridworld",
        lambda: improve_batch(SPIBB(n_wedge=10), problems).value,
    )


def rehearsal(share: float) -> Iterator[Work]:
    benchmark = make("gridworld")
    problem = benchmark.problem(benchmark.sample(50, np.random.default_rng(0)))
    belief, worlds = Posterior(draws=99), max(9, round(111 * share))
    kinds = default_family(problem, belief)[: max(1, round(90 * share))]
    sizes = SIZES if share >= 0.01 else (1.0,)

    def do() -> FloatArray:
        found = rehearse(
            problem,
            SPIBB(n_wedge=27),
            belief,
            rng=np.random.default_rng(0),
            worlds=worlds,
            family=kinds,
            sizes=sizes,
            workers=available_cores() if device_in_use() == "cpu" and share >= 0.1 else 1,
        )
        return found.claim

    number = len(kinds) * worlds
    yield Work(f"rehearsal of the Gridworld, {number} worlds × {len(sizes)} sizes", do)


def stitched_claims(share: float) -> Iterator[Work]:
    benchmark, number = make("gridworld"), max(2, round(1000 * share))
    problems = [
        benchmark.problem(benchmark.sample(300, np.random.default_rng(i))) for i in range(number)
    ]
    certifiers = [Stitched(seed=i) for i in range(number)]
    policies = [
        SPIBB(n_wedge=10).improve(training_for(problem, certifier)).policy
        for certifier, problem in zip(certifiers, problems, strict=True)
    ]
    yield Work(
        f"stitched certificates of {number:,} logs of the Gridworld",
        lambda: [claim.lower for claim in certify_many(problems, policies, certifiers)],
    )


def paper(share: float) -> Iterator[Work]:
    names = ("gridworld", "wet-chicken", "resource-gathering")
    repetitions = max(1, round(1000 * share))

    def do() -> FloatArray:
        workers = available_cores() if device_in_use() == "cpu" and share >= 0.1 else 1
        rows = []
        for name in names:
            (experiment,) = read_experiments(f"paper/{name}")
            sizes = experiment.episodes if share >= 0.1 else experiment.episodes[:1]
            small = replace(experiment, repetitions=repetitions, episodes=sizes)
            with TemporaryDirectory() as folder:
                run_experiment(small, Path(folder) / "run", workers=workers)
                rows.append(Store(Path(folder) / "run").read_table()["performance"])
        return np.concatenate(rows).astype(np.float64)

    yield Work(f"the paper's evaluation, {repetitions:,} repetitions of {len(names)} worlds", do)


WORK = {
    "optimal": optimal_plan,
    "posterior": posterior_claim,
    "gridworld": gridworld_posterior,
    "evaluate": batch_of_models,
    "improve": batch_of_data_sets,
    "rehearsal": rehearsal,
    "stitched": stitched_claims,
    "paper": paper,
}


def second_time(do: Callable[[], object]) -> tuple[float, object]:
    """Seconds of the second call, and what it gave."""
    do()
    start = time.perf_counter()
    given = do()
    return time.perf_counter() - start, given


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", nargs="+", choices=sorted(WORK), default=list(WORK))
    parser.add_argument("--share", type=float, default=1.0, help="of the full size")
    options = parser.parse_args()
    try:
        with device("cuda"):
            gpu = device_in_use()
    except SurestepError as problem:
        gpu = ""
        print(f"Only the processor: {problem}")
    print(f"{len(os.sched_getaffinity(0))} cores{', ' if gpu else ''}{gpu}")
    for name in options.work:
        for work in WORK[name](options.share):
            print(f"{work.name}:")
            with device("cpu"):
                seconds, expected = second_time(work.do)
            print(f"    processor {seconds:.3f} s")
            if gpu:
                with device("cuda"):
                    faster, given = second_time(work.do)
                apart = np.abs(np.asarray(given) - np.asarray(expected)).max()
                print(f"    GPU {faster:.3f} s: {seconds / faster:.1f} times; apart by {apart:.1e}")


if __name__ == "__main__":
    main()
