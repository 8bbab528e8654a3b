"""CPU seconds of long logs: counting beside the bare query, inspecting and improving.

The logs are those of `logs.py`: episodes of 20 steps, 4 actions, a state that follows from the one
before by a small move, and rewards in cents. Counting gets neither next states nor flags, but the
word `ends = "complete"`; the bare query beside it takes `lead()` and checks nothing. `improve` has
no stress test, but for the pumps of `examples/pumps.toml`, as the command line does it. `shuffling`
is `improve` whose checks draw all shuffles, and do not stop once their verdict is settled.

Every line runs in a process of its own: once on a small log, which loads what was compiled, then
on its own. CPU seconds are of all threads together; where other processes run, they are inflated.

Run: .venv/bin/python benchmarks/rows.py [--rows 1000000 10000000] [--states 300 10000] [--repeat 2]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import duckdb
from logs import AHEAD, DISCOUNT, GROUPED, write_log
from rich.console import Console
from rich.table import Table

from surestep.checks import shuffling
from surestep.io import read_log
from surestep.pipeline import improve
from surestep.pipeline.inspect import inspect

# The arguments of the quickest run.
SMALLEST = ("--rows", "2000", "--states", "5", "--repeat", "1", "--no-pumps")
PUMPS = Path(__file__).parents[1] / "examples" / "pumps.toml"


def bare(path: Path) -> None:
    """Runs the bare query with lead()."""
    rows = f"(SELECT *, {AHEAD} FROM '{path}')"
    query = GROUPED.format("reward", rows).replace("terminated", "next_state IS NULL")
    with duckdb.connect() as database:
        database.execute(query).fetchnumpy()


def shuffling_on(path: Path) -> None:
    """Improves with tests that never stop early."""
    with patch.object(shuffling, "ENOUGH", 10**9):
        WORK["improve"](path)


WORK: dict[str, Callable[[Path], object]] = {
    "bare": bare,
    "count": lambda path: read_log(path, ends="complete").counts(),
    "inspect": lambda path: inspect(read_log(path, ends="complete")),
    "improve": lambda path: improve(path, discount=DISCOUNT, ends="complete", worlds=0),
    "shuffling": shuffling_on,
    "pumps": lambda path: improve(PUMPS),
}


def child(work: str, path: Path, small: Path, repeat: int) -> None:
    """Prints the least CPU seconds of some runs as JSON."""
    WORK[work](small)
    spent = []
    for _ in range(repeat):
        used = time.process_time()
        WORK[work](path)
        spent.append(time.process_time() - used)
    print(json.dumps(min(spent)))


def measure(work: str, path: Path, small: Path, repeat: int) -> float:
    """Returns the CPU seconds of a line, by a process of its own."""
    print(f"… {work} {path.name}", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--child", work, str(path), str(small), str(repeat)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{work} {path.name}: {answer.stderr.strip()}")
    return float(json.loads(answer.stdout))


def written(folder: Path, rows: int, states: int) -> dict[str, Path]:
    """Writes a log without next states and flags as Parquet and as text."""
    whole = folder / "whole.parquet"
    write_log(whole, rows, states=states)
    paths = {}
    for kind in ("parquet", "csv"):
        paths[kind] = folder / f"{rows}-{states}.{kind}"
        few = f"SELECT * EXCLUDE (next_state, terminated, truncated) FROM '{whole}'"
        duckdb.execute(f"COPY ({few}) TO '{paths[kind]}' (FORMAT {kind})")
    whole.unlink()
    return paths


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        work, path, small, repeat = sys.argv[2:]
        child(work, Path(path), Path(small), int(repeat))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--states", type=int, nargs="+", default=[300, 10_000])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--pumps", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    table = Table("", "rows", "states", "CPU s", "bare query", "times")
    with tempfile.TemporaryDirectory(prefix="surestep-") as name:
        small = written(Path(name), 1_000, 5)
        for rows in arguments.rows:
            for states in arguments.states:
                paths = written(Path(name), rows, states)
                for kind, path in paths.items():
                    given = path, small[kind], arguments.repeat
                    by_query, counted = (measure(work, *given) for work in ("bare", "count"))
                    figures = (
                        f"{counted:.1f}",
                        f"{by_query:.1f}",
                        f"{counted / max(by_query, 1e-3):.1f}",
                    )
                    table.add_row(f"count, {kind}", f"{rows:,}", f"{states:,}", *figures)
                for work in ("inspect", "improve", "shuffling"):
                    spent = measure(work, paths["parquet"], small["parquet"], arguments.repeat)
                    table.add_row(work, f"{rows:,}", f"{states:,}", f"{spent:.1f}")
        if arguments.pumps:
            spent = measure("pumps", PUMPS, PUMPS, arguments.repeat)
            table.add_row("improve the pumps, with a stress test", "70,631", "15", f"{spent:.1f}")
    console = Console(width=100)
    console.print(f"{os.cpu_count()} cores, load: {os.getloadavg()[0]:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
