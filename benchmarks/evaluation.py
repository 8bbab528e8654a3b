"""The paper's evaluation: seconds a repetition of the full list of data sizes, all methods.

    python benchmarks/evaluation.py [--repetitions 50]

One process on one thread, kernels compiled beforehand. Published figures are those of the
authors' scripts, one repetition on one core; for Resource Gathering an extrapolation.
"""

import argparse
import dataclasses
import time
from collections import defaultdict

import numba

from surestep.experiments import read_experiments
from surestep.experiments.cell import run_methods
from surestep.experiments.run import plan_blocks

# The arguments of the quickest run.
SMALLEST = ("--repetitions", "1")
PUBLISHED = {"gridworld": 45.6, "wet-chicken": 120.0, "resource-gathering": 24 * 60.0}  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=50)
    repetitions = parser.parse_args().repetitions
    numba.set_num_threads(1)
    total = 0.0
    for experiment in read_experiments("paper"):
        environment = experiment.environments[0].name
        if environment not in PUBLISHED:
            continue
        blocks = plan_blocks(dataclasses.replace(experiment, repetitions=repetitions))
        run_methods(blocks[0])  # compiles, or loads, the kernels
        print(f"\n{experiment.title}: milliseconds a repetition")
        by_size: dict[int, float] = defaultdict(float)
        for block in blocks:
            begun = time.perf_counter()
            run_methods(block)
            by_size[block.episodes[0]] += (time.perf_counter() - begun) / repetitions
        for episodes, seconds in sorted(by_size.items()):
            print(f"{episodes:12,} trajectories {1e3 * seconds:9.3f}")
        whole = sum(by_size.values())
        total += whole
        print(
            f"all: {1e3 * whole:.1f} ms; published code {PUBLISHED[environment]:,.1f} s, "
            f"{PUBLISHED[environment] / whole:,.0f} times as long"
        )
    print(f"\n1000 repetitions of all three on one core: {1000 * total / 60:.1f} minutes")


if __name__ == "__main__":
    main()
