"""The paper's evaluation: seconds a repetition of the full list of data sizes, all methods.

    python benchmarks/evaluation.py [--repetitions 50]

One process on one thread, kernels compiled beforehand. Published figures are those of the
authors' scripts, one repetition on one core; for Resource Gathering an extrapolation.
"""

import argparse
import dataclasses

import numba

from surestep.experiments import read_experiments
from surestep.experiments.cell import run_block
from surestep.experiments.run import blocks_of

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
        blocks = blocks_of(dataclasses.replace(experiment, repetitions=repetitions))
        run_block(blocks[0])  # compiles, or loads, the kernels
        print(f"\n{experiment.title}: milliseconds a repetition")
        print(f"{'trajectories':>12} {'sampling':>9} {'improving':>10} {'evaluating':>11}")
        sums = [0.0, 0.0, 0.0]
        by_size: dict[int, list[float]] = {}
        for block in blocks:
            rows = run_block(block)
            parts = [rows.spent[name] for name in ("sampling", "improving", "evaluating")]
            spent = by_size.setdefault(block.episodes[0], [0.0, 0.0, 0.0])
            for i, seconds in enumerate(parts):
                spent[i] += seconds / repetitions
                sums[i] += seconds / repetitions
        for episodes, spent in sorted(by_size.items()):
            shown = [f"{1e3 * seconds:.3f}" for seconds in spent]
            print(f"{episodes:12,} {shown[0]:>9} {shown[1]:>10} {shown[2]:>11}")
        whole = sum(sums)
        total += whole
        print(
            f"{'all':>12} {1e3 * sums[0]:9.2f} {1e3 * sums[1]:10.2f} {1e3 * sums[2]:11.2f}   "
            f"{1e3 * whole:.1f} ms; published code {PUBLISHED[environment]:,.1f} s, "
            f"{PUBLISHED[environment] / whole:,.0f} times as long"
        )
    print(f"\n1000 repetitions of all three on one core: {1000 * total / 60:.1f} minutes")


if __name__ == "__main__":
    main()
