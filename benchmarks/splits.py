"""What it costs to keep choice and claim apart: ways to split a log, held against the truth.

    python benchmarks/splits.py [--data-sets 40] [--worlds 5]

In every data set SPIBB chooses, with the N∧ that the training part expects the most of, and a
stitched certificate claims, at δ = 0.1 in all. "exchanged" are two halves, each of which chooses a
policy that the other one judges at δ/2; the policy with the larger claim is taken. (That needs a
logger who does not learn: a later half that chooses knows what the earlier one led to.) Printed are
the mean of what is claimed, 0 where that is a loss; the mean gain that the policy really has; how
often a gain is claimed; and how often more than there is.
"""

import argparse

import numpy as np

from surestep import performance
from surestep.certificates import Stitched
from surestep.choosing import ChosenNWedge, choose_n_wedge
from surestep.environments import Benchmark, make
from surestep.model import DecisionLog

SMALLEST = ("--data-sets", "1", "--worlds", "1")
DELTA = 0.1
SHARES = (0.2, 0.3, 0.5)
WORLDS = (
    ("gridworld", {}, 300),
    ("gridworld", {}, 1_000),
    ("nearly-alike", {"effect": 1.0}, 1_000),
    ("nearly-alike", {"effect": 0.2}, 1_000),
    ("alike", {}, 1_000),
)


def chosen(
    benchmark: Benchmark, log: DecisionLog, share: float, delta: float, seed: int
) -> ChosenNWedge:
    """Returns the policy of the first part of the log, and what the rest claims of it."""
    judge = Stitched(delta=delta, train_share=share, seed=seed)
    return choose_n_wedge(benchmark.problem(log), "spibb", judge)


def exchanged(benchmark: Benchmark, log: DecisionLog, seed: int) -> ChosenNWedge:
    """Returns the better of both halves' policies, each judged by the other half."""
    half, episodes = log.num_episodes // 2, np.arange(log.num_episodes)
    turned = log.episodes(np.roll(episodes, -half))
    both = [chosen(benchmark, each, 0.5, DELTA / 2, seed) for each in (log, turned)]
    return max(both, key=lambda each: each.certificate.lower or -np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=40)
    parser.add_argument("--worlds", type=int, help="the first so many")
    given = parser.parse_args()
    data_sets = given.data_sets
    for name, settings, episodes in WORLDS[: given.worlds]:
        found: dict[str, list[tuple[float, float]]] = {}
        for i in range(data_sets):
            varied = {} if name == "gridworld" else {"seed": 1 + i % 8}
            benchmark = make(name, **settings, **varied)
            log = benchmark.sample(episodes, np.random.default_rng(1_000 + i))
            ways = {f"first {s:g}": chosen(benchmark, log, s, DELTA, i) for s in SHARES}
            for way, taken in (ways | {"exchanged": exchanged(benchmark, log, i)}).items():
                gain = performance(benchmark.mdp, taken.policy)
                gain -= benchmark.performance_of_behavior()
                found.setdefault(way, []).append((taken.certificate.lower or 0.0, gain))
        print(f"{name} {settings or ''}, {episodes:,} episodes, {data_sets} data sets")
        for way, rows in found.items():
            lower, gain = np.array(rows).T
            print(
                f"  {way:10} claimed {np.maximum(lower, 0).mean():7.4f} of {gain.mean():7.4f}   "
                f"a gain in {(lower > 0).mean():4.0%}   wrong in {(lower > gain + 1e-9).sum()}"
            )


if __name__ == "__main__":
    main()
