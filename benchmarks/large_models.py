"""A model in files, planned within a limit of memory; sweeps against just reading the files.

A random sparse model, 4 actions and 4 successors a pair, γ = 0.95, is written block by block,
checked, swept and planned to 1e-6, after a small one, for which kernels are compiled. Nothing holds
all of its transitions at any time: the peak of the whole process is printed. A sweep reads every
file once; beside it stands what plain reading of the same files takes, first with the system's
cache of them emptied, then with all of them in it.

Run: .venv/bin/python benchmarks/large_models.py [--states 6250000] [--megabytes 600] [--folder …]
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surestep import device, optimal
from surestep.model import MappedMDP, StateBlock, write_mapped
from surestep.planning.pruning import Backup
from surestep.planning.streamed import StreamedBackup, backup_of

SMALLEST = ("--states", "2000", "--megabytes", "10")  # the arguments of the quickest run
ACTIONS, WIDTH, DISCOUNT, PRECISION = 4, 4, 0.95, 1e-6
STATES_A_BLOCK = 50_000
READ_AT_A_TIME = 2**23
REPEAT = 3  # the fastest counts
COMPILED_STATES = 10_000  # enough for all threads
SWEPT = ("pair_offsets", "offsets", "successor", "probability", "discount", "reward")


def random_blocks(states: int) -> Iterator[StateBlock]:
    """A model whose successors lie anywhere, a block of states at a time."""
    for first in range(0, states, STATES_A_BLOCK):
        size = min(STATES_A_BLOCK, states - first)
        rng, pairs = np.random.default_rng([0, first]), size * ACTIONS
        successor = rng.integers(0, states - WIDTH + 1, (pairs, WIDTH), np.int32)
        successor.sort(axis=1)
        successor += np.arange(WIDTH, dtype=np.int32)  # no state twice
        chances = rng.random((pairs, WIDTH))
        chances /= chances.sum(axis=1, keepdims=True)
        yield StateBlock(
            np.arange(size + 1) * ACTIONS,
            np.tile(np.arange(ACTIONS, dtype=np.int32), size),
            np.arange(pairs + 1) * WIDTH,
            successor.ravel(),
            chances.ravel(),
            np.repeat(rng.random(pairs), WIDTH),
            np.full(pairs, DISCOUNT),
        )


def timed(action) -> tuple[float, object]:
    """Seconds of one call, and what it gave."""
    start = time.perf_counter()
    given = action()
    return time.perf_counter() - start, given


def read(files: list[Path]) -> None:
    """Reads files from beginning to end, and does nothing with them."""
    buffer = bytearray(READ_AT_A_TIME)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def forget(files: list[Path]) -> None:
    """Empties the system's cache of the files."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sweeps_and_reads(mdp: MappedMDP, files: list[Path]) -> None:
    """One sweep beside one reading of the files, from the disk and from the system's cache."""
    backup, size = StreamedBackup(mdp), sum(path.stat().st_size for path in files)
    value, after = np.random.default_rng(1).random(mdp.num_states), np.empty(mdp.num_states)

    def sweep() -> None:
        backup.best(value, after)

    for place in ("disk", "cache"):
        if place == "disk" and not hasattr(os, "posix_fadvise"):
            print("The system's cache cannot be emptied here.")
            continue
        times: dict[str, list[float]] = {"reading": [], "sweeping": []}
        for _ in range(REPEAT):
            for name, action in (("reading", lambda: read(files)), ("sweeping", sweep)):
                if place == "disk":
                    forget(files)
                times[name].append(timed(action)[0])
        reading, sweeping = min(times["reading"]), min(times["sweeping"])
        print(
            f"From the {place}: a sweep takes {sweeping:.3g} s for {size / 1e9:.2f} GB, "
            f"{size / sweeping / 1e9:.2f} GB/s; reading alone {reading:.3g} s, "
            f"{size / reading / 1e9:.2f} GB/s; the sweep has {reading / sweeping:.0%} of that."
        )


def sweep_in_memory(mdp: MappedMDP) -> None:
    """What a sweep would take with all arrays in memory, from the first block of them."""
    block = mdp.block(0, mdp.starts[1])
    backup = Backup(*(array.copy() for array in backup_of(block)))
    value, after = np.random.default_rng(1).random(mdp.num_states), np.empty(block.states.stop)
    share = block.successor.size / mdp.num_transitions
    seconds = min(timed(lambda: backup.best(value, after))[0] for _ in range(REPEAT)) / share
    print(f"In memory a sweep would take {seconds:.3g} s, by its first block.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--states", type=int, default=6_250_000, help="16 transitions each")
    parser.add_argument("--megabytes", type=int, default=600, help="the limit for planning")
    parser.add_argument("--folder", type=Path, help="where files are put, and removed again")
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(dir=options.folder) as place, device("cpu"):
        compiled = Path(place) / "small"
        few = min(COMPILED_STATES, options.states)
        write_mapped(compiled, random_blocks(few), num_states=few)
        optimal(MappedMDP(compiled, 10**8), tolerance=PRECISION)
        folder = Path(place) / "model"
        writing, _ = timed(
            lambda: write_mapped(folder, random_blocks(options.states), num_states=options.states)
        )
        checking, mdp = timed(lambda: MappedMDP(folder, options.megabytes * 10**6))
        files = [folder / f"{name}.npy" for name in SWEPT]
        total = sum(path.stat().st_size for path in folder.iterdir())
        print(
            f"{mdp.num_states:,} states, {mdp.num_pairs:,} pairs, {mdp.num_transitions:,} "
            f"transitions in {total / 1e9:.2f} GB of files: made and written in {writing:.0f} s, "
            f"checked in {checking:.0f} s, {len(mdp.starts) - 1} blocks."
        )
        sweeps_and_reads(mdp, files)
        sweep_in_memory(mdp)
        before = time.process_time()
        planning, plan = timed(lambda: optimal(mdp, tolerance=PRECISION))
        of_processor = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"Best policy within {options.megabytes / 1e3:.2f} GB, proven to {plan.error_bound:.1e}: "
        f"{planning:.1f} s, {of_processor:.1f} CPU s, {plan.iterations} sweeps. The process never "
        f"held more than {peak:.2f} GB, Python and all."
    )


if __name__ == "__main__":
    main()
