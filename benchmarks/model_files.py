"""Model files: ours against Storm's, reading and writing the same model in the same run.

The model: 2 actions, 2 successors a pair, a reward a pair. Both read the UMB archive that we wrote.
Times are the best of several; what was read is compared with what was written.

Run: .venv/bin/python benchmarks/model_files.py [--states 1000000] [--repeat 3]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import stormpy
from rich.console import Console
from rich.table import Table

from surestep import FiniteMDP, Pairs
from surestep.io import read_mdp, write_mdp

# The arguments of the quickest run.
SMALLEST = ("--states", "100", "--repeat", "1")
DISCOUNT, ACTIONS, WIDTH = 0.95, 2, 2


def random_model(states: int) -> FiniteMDP:
    """A sparse model that starts in state 0."""
    rng = np.random.default_rng(1)
    pairs = states * ACTIONS
    successor = np.sort(rng.integers(0, states - WIDTH + 1, (pairs, WIDTH))) + np.arange(WIDTH)
    return FiniteMDP(
        Pairs.full(states, ACTIONS),
        np.arange(pairs + 1) * WIDTH,
        successor.ravel(),
        rng.dirichlet(np.ones(WIDTH), pairs).ravel(),
        np.repeat(rng.random(pairs), WIDTH),
        np.full(pairs, DISCOUNT),
        np.eye(1, states)[0],
    )


def fastest(action, repeat: int):
    """The best time of several runs, and what the last one gave."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begin)
    return min(times), result


def storm_import(path: Path):
    options = stormpy.io.UmbImportOptions()
    options.build_state_valuations = False
    return stormpy.build_model_from_umb(path, options=options)


def storm_export(model, path: Path) -> None:
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    stormpy.io.export_to_umb(model, path, options=options)


def check(mdp: FiniteMDP, found: FiniteMDP, storm) -> None:
    """Neither of the two may have lost anything."""
    if found != mdp:
        raise SystemExit("what we read is not what was written")
    if (storm.nr_states, storm.nr_transitions) != (mdp.num_states, mdp.num_transitions):
        raise SystemExit("what Storm read is not what was written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10**6, help="states of the model")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    mdp = random_model(arguments.states)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ours.umb"
        writing, _ = fastest(lambda: write_mdp(mdp, path), arguments.repeat)
        reading, found = fastest(lambda: read_mdp(path, DISCOUNT), arguments.repeat)
        importing, model = fastest(lambda: storm_import(path), arguments.repeat)
        check(mdp, found, model)
        theirs = Path(folder) / "storms.umb"
        exporting, _ = fastest(lambda: storm_export(model, theirs), arguments.repeat)
        size = path.stat().st_size / 1e6
    table = Table(title="Seconds for the same archive")
    for column in ("", "states", "transitions", "MB", "surestep", "Storm", "Storm ÷ ours"):
        table.add_column(column, justify="right" if column else "left")
    for what, ours, storms in (("read", reading, importing), ("write", writing, exporting)):
        shape = f"{mdp.num_states:,}", f"{mdp.num_transitions:,}", f"{size:.0f}"
        table.add_row(what, *shape, f"{ours:.2f}", f"{storms:.2f}", f"{storms / ours:.1f}")
    console = Console(width=100)
    console.print(
        f"{os.cpu_count()} cores, load: {os.getloadavg()[0]:.1f}, best of {arguments.repeat}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
