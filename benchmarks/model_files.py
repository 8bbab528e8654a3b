"""Model files: ours against Storm's, reading and writing the same models in the same run.

Models: 2 actions, 2 successors a pair, a reward a pair. Both read the same file: a UMB archive that
we wrote, and explicit files in the dialect of Storm, the only one that it knows. Times are the best
of several; what was read is compared with what was written.

Run: .venv/bin/python benchmarks/model_files.py [--umb 1000000] [--tra 100000] [--repeat 3]
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
SMALLEST = ("--umb", "100", "--tra", "100", "--repeat", "1")
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


def storm_umb(path: Path):
    options = stormpy.io.UmbImportOptions()
    options.build_state_valuations = False
    return stormpy.build_model_from_umb(path, options=options)


def storm_explicit(path: Path):
    siblings = path.with_suffix(".lab"), path.with_suffix(".trew")
    return stormpy.build_model_from_explicit(path, siblings[0], transition_rewards=siblings[1])


def storm_export(model, path: Path) -> None:
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    stormpy.io.export_to_umb(model, path, options=options)


def in_storms_words(path: Path) -> None:
    """Explicit files of ours without counts and with labels by name."""
    for file in (path, path.with_suffix(".trew")):
        body = file.read_bytes().partition(b"\n")[2]
        file.write_bytes(b"mdp\n" + body if file is path else body)
    path.with_suffix(".lab").write_text("#DECLARATION\ninit\n#END\n0 init\n")


def check(mdp: FiniteMDP, found: FiniteMDP, storm) -> None:
    """Neither of the two may have lost anything."""
    if found != mdp:
        raise SystemExit("what we read is not what was written")
    if (storm.nr_states, storm.nr_transitions) != (mdp.num_states, mdp.num_transitions):
        raise SystemExit("what Storm read is not what was written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--umb", type=int, default=10**6, help="states of the model in UMB")
    parser.add_argument("--tra", type=int, default=10**5, help="states of the explicit model")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    table = Table(title="Seconds for the same files")
    for column in ("file", "states", "transitions", "MB", "", "surestep", "Storm", "Storm ÷ ours"):
        table.add_column(column, justify="left" if column in ("file", "") else "right")

    def row(path: Path, mdp: FiniteMDP, what: str, ours: float, storms: float | None) -> None:
        size = sum(file.stat().st_size for file in path.parent.glob(f"{path.stem}.*")) / 1e6
        name = f"{mdp.num_states:,}", f"{mdp.num_transitions:,}", f"{size:.0f}", what
        theirs = ("–", "–") if storms is None else (f"{storms:.2f}", f"{storms / ours:.1f}")
        table.add_row(path.suffix, *name, f"{ours:.2f}", *theirs)

    with tempfile.TemporaryDirectory() as folder:
        mdp, path = random_model(arguments.umb), Path(folder) / "archive.umb"
        writing, _ = fastest(lambda: write_mdp(mdp, path), arguments.repeat)
        reading, found = fastest(lambda: read_mdp(path, DISCOUNT), arguments.repeat)
        storms, model = fastest(lambda: storm_umb(path), arguments.repeat)
        check(mdp, found, model)
        exporting, _ = fastest(
            lambda: storm_export(model, Path(folder) / "x.umb"), arguments.repeat
        )
        row(path, mdp, "read", reading, storms)
        row(path, mdp, "write", writing, exporting)
        del model, found

        mdp, path = random_model(arguments.tra), Path(folder) / "explicit.tra"
        writing, _ = fastest(lambda: write_mdp(mdp, path), arguments.repeat)
        in_storms_words(path)
        reading, found = fastest(lambda: read_mdp(path, DISCOUNT), arguments.repeat)
        storms, model = fastest(lambda: storm_explicit(path), arguments.repeat)
        check(mdp, found, model)
        row(path, mdp, "read", reading, storms)
        row(path, mdp, "write", writing, None)
    console = Console(width=100)
    console.print(
        f"{os.cpu_count()} cores, load: {os.getloadavg()[0]:.1f}, best of {arguments.repeat}"
    )
    console.print(table)


if __name__ == "__main__":
    main()
