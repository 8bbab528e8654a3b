"""What a memory is worth in three partially observed worlds of Simão, Suilen and Jansen (2023).

    python benchmarks/memory.py [--logs 100] [--episodes 100 1000 10000] [--memories 0 1 2]

Logs come from a current policy that sees the present only. States are the last k observations and
actions with the present observation; Basic RL and SPIBB (N∧ = 10) plan in the estimated model of
these states. The same walks are read with each k. Printed is the exact worth of the policies in the
hidden world, mean and the mean of the worst tenth of the logs.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from surestep.algorithms import SPIBB, Algorithm, BasicRL
from surestep.environments import make

SMALLEST = ("--logs", "2", "--episodes", "50", "--memories", "0", "1")
WORLDS = ("tiger", "voicemail", "cheese-maze")
METHODS: dict[str, Algorithm] = {"Basic RL": BasicRL(), "SPIBB": SPIBB(n_wedge=10)}


def worths(name: str, memory: int, episodes: int, logs: int) -> dict[str, np.ndarray]:
    """Returns the true worth [logs] of the policy of each method."""
    world = make(name, memory=memory)
    problems = [world.problem(world.sample(episodes, seed)) for seed in range(logs)]
    return {
        method: world.truth.worth(
            np.stack([algorithm.improve(each).policy.probability for each in problems])
        )
        for method, algorithm in METHODS.items()
    }


def worst_tenth(values: np.ndarray) -> float:
    """Returns the mean of the lowest tenth, of one value at least."""
    return float(np.sort(values)[: max(values.size // 10, 1)].mean())


def table(logs: int, sizes: Sequence[int], memories: Sequence[int]) -> None:
    """Prints a row for each world, number of episodes and memory."""
    print("| world | current | episodes | k | Basic RL, worst tenth | SPIBB, worst tenth |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in WORLDS:
        current = make(name, memory=0).performance_of_behavior()
        for episodes in sizes:
            for memory in memories:
                found = worths(name, memory, episodes, logs).values()
                cells = [f"{each.mean():.3f}, {worst_tenth(each):.3f}" for each in found]
                row = [f"`{name}`", f"{current:.3f}", f"{episodes:,}", str(memory), *cells]
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--episodes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--memories", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    table(given.logs, given.episodes, given.memories)
