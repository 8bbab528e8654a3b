"""A model in files, planned while the process may hold less than the model.

A random sparse model, 4 actions and 4 successors a pair, γ = 0.95, is written piece by piece,
loaded (which checks it) and planned to 1e-6, after a small one, for which kernels are compiled. The
system may not give the process more than a limit of memory beside the files, which it maps.

Run: .venv/bin/python benchmarks/large_models.py [--states 2500000] [--megabytes 700] [--folder …]
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from surestep import FiniteMDP, device, optimal

SMALLEST = ("--states", "2000")  # the arguments of the quickest run
ACTIONS, WIDTH, DISCOUNT, PRECISION = 4, 4, 0.95, 1e-6
STATES_AT_A_TIME = 50_000
COMPILED_STATES = 10_000  # enough for all threads
WORDS = {"format": "surestep model 1", "num_actions": ACTIONS}


def write(folder: Path, states: int) -> None:
    """Writes a model whose successors lie anywhere, some states at a time."""
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps(WORDS), "utf-8")
    pairs = states * ACTIONS

    def file(name: str, size: int, kind: type) -> np.ndarray:
        return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, (size,))

    file("pair_offsets", states + 1, np.int64)[:] = np.arange(states + 1) * ACTIONS
    file("offsets", pairs + 1, np.int64)[:] = np.arange(pairs + 1) * WIDTH
    file("action", pairs, np.int32)[:] = np.tile(np.arange(ACTIONS), states)
    file("discount", pairs, np.float64)[:] = DISCOUNT
    file("ending_reward", pairs, np.float64)[:] = 0.0
    file("initial", states, np.float64)[:] = np.eye(1, states)[0]
    successors = file("successor", pairs * WIDTH, np.int32).reshape(pairs, WIDTH)
    probability = file("probability", pairs * WIDTH, np.float64).reshape(pairs, WIDTH)
    reward = file("reward", pairs * WIDTH, np.float64).reshape(pairs, WIDTH)
    for first in range(0, pairs, STATES_AT_A_TIME * ACTIONS):
        part = slice(first, min(first + STATES_AT_A_TIME * ACTIONS, pairs))
        rng, size = np.random.default_rng([0, first]), part.stop - first
        drawn = np.sort(rng.integers(0, states - WIDTH + 1, (size, WIDTH), np.int32), axis=1)
        successors[part] = drawn + np.arange(WIDTH, dtype=np.int32)  # no state twice
        chances = rng.random((size, WIDTH))
        probability[part] = chances / chances.sum(axis=1, keepdims=True)
        reward[part] = rng.random((size, 1))


def timed(action) -> tuple[float, object]:
    """Seconds of one call, and what it gave."""
    start = time.perf_counter()
    given = action()
    return time.perf_counter() - start, given


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--states", type=int, default=2_500_000, help="16 transitions each")
    parser.add_argument("--megabytes", type=int, default=700, help="the limit, without files")
    parser.add_argument("--folder", type=Path, help="where files are put, and removed again")
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(dir=options.folder) as place, device("cpu"):
        small, folder = Path(place) / "small", Path(place) / "model"
        write(small, min(COMPILED_STATES, options.states))
        optimal(FiniteMDP.load(small), tolerance=PRECISION)
        writing, _ = timed(lambda: write(folder, options.states))
        total = sum(path.stat().st_size for path in folder.iterdir())
        unlimited = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (options.megabytes * 10**6, unlimited[1]))
        checking, mdp = timed(lambda: FiniteMDP.load(folder))
        print(
            f"{mdp.num_states:,} states, {mdp.num_pairs:,} pairs, {mdp.num_transitions:,} "
            f"transitions in {total / 1e9:.2f} GB of files: made and written in {writing:.0f} s, "
            f"loaded and checked in {checking:.0f} s."
        )
        before = time.process_time()
        planning, plan = timed(lambda: optimal(mdp, tolerance=PRECISION))
        of_processor = time.process_time() - before
        resource.setrlimit(resource.RLIMIT_DATA, unlimited)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"Best policy, proven to {plan.error_bound:.1e}: {planning:.1f} s, {of_processor:.1f} CPU "
        f"s, {plan.iterations} sweeps, within {options.megabytes / 1e3:.2f} GB beside the files; "
        f"with what the system kept of them {peak:.2f} GB."
    )


if __name__ == "__main__":
    main()
