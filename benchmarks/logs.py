"""Counting logs: ours against a bare DuckDB query that computes the same aggregates.

Logs: Parquet, episodes of 20 steps in order, 10⁴ states, 4 actions, rewards in cents; about 3 × 10⁵
distinct transitions. Every line is measured in a process of its own, after one run on a small log.
The bare query checks nothing and adds up doubles; each further line of ours says what it adds. CPU
seconds are of all threads together, and tell more than seconds where other processes run.

Run: .venv/bin/python benchmarks/logs.py [--sizes 1000000 10000000 100000000] [--repeat 2]
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from surestep.io import read_log

# The arguments of the quickest run.
SMALLEST = ("--sizes", "1000", "--repeat", "1")
STEPS, STATES, ACTIONS = 20, 10_000, 4
GROUPED = "SELECT state, action, next_state, terminated, count(*), sum({}) FROM {} GROUP BY ALL"
LOOSE = ("episode", "step", "truncated")
# What is measured: the columns that ours does not get, and what it then does.
OURS = {
    "count, labels there, rewards finite and exact": (*LOOSE,),
    "… and flags": ("episode", "step"),
    "… and episodes: order, gaps, ends, states that meet": (),
    "… and next_state derived instead of given": ("next_state",),
}
BARE = "bare query: count(*), sum(reward)"
EXACT = "bare query: count(*), sum(reward as a decimal)"
DERIVED = "bare query: next_state derived by a window"
UNORDERED = "rows in no order, next_state derived, memory limit 1 GB"
LINES = (BARE, EXACT, *OURS, DERIVED)
NEEDS_SPACE = 10**7  # rows: what has to be put in order is measured up to here


def write_log(path: Path, rows: int, order: str = "") -> None:
    """A log in which each state follows from the one before by a small move."""
    with duckdb.connect() as database:
        place = f"hash(i // {STEPS}) % {STATES} + i % {STEPS}"
        database.execute(
            f"COPY (SELECT i // {STEPS} AS episode, (i % {STEPS})::INTEGER AS step, "
            f"(({place} + hash(i) % 3) % {STATES})::INTEGER AS state, "
            f"(hash(i + 7) % {ACTIONS})::INTEGER AS action, "
            "(hash(i + 3) % 1000)::DOUBLE / 100 AS reward, "
            f"CASE WHEN i % {STEPS} = {STEPS - 1} THEN {STATES} "
            f"ELSE (({place} + 1 + hash(i + 1) % 3) % {STATES})::INTEGER END AS next_state, "
            f"i % {STEPS} = {STEPS - 1} AS terminated, false AS truncated "
            f"FROM (SELECT range AS i FROM range({rows})){order}) TO '{path}' (FORMAT parquet)"
        )


def counting(line: str, path: Path) -> None:
    """Runs one line."""
    source = f"read_parquet('{path}')"
    if line in (BARE, EXACT, DERIVED):
        if line == DERIVED:
            near = "lead(state) OVER (PARTITION BY episode ORDER BY step) AS next_state"
            source = f"(SELECT * REPLACE ({near}) FROM {source})"
        reward = "reward::DECIMAL(18, 2)" if line == EXACT else "reward"
        with duckdb.connect() as database:
            database.execute(GROUPED.format(reward, source)).fetchnumpy()
        return
    log = read_log(path, memory_limit="1GB" if line == UNORDERED else None)
    absent = dict.fromkeys(OURS.get(line, ()))
    if "next_state" in absent or line == UNORDERED:
        absent["next_state"] = ()
    dataclasses.replace(log, columns=dataclasses.replace(log.columns, **absent)).counts()


def child(line: str, path: Path, small: Path, repeat: int) -> None:
    """Prints the best times and the peak memory of one line as JSON."""
    counting(line, small)
    seconds, cpu = [], []
    for _ in range(repeat):
        begin, used = time.perf_counter(), time.process_time()
        counting(line, path)
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # of this program, not its parent
    print(json.dumps({"seconds": min(seconds), "cpu": min(cpu), "peak": peak}))


def measure(line: str, path: Path, small: Path, repeat: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", line, str(path), str(small), str(repeat)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{line}: {answer.stderr.strip()}")
    return json.loads(answer.stdout)


def report(console: Console, folder: Path, rows: int, repeat: int) -> None:
    """One table: all lines at one size."""
    path, small, mixed = (folder / f"{name}.parquet" for name in ("log", "small", "mixed"))
    write_log(path, rows)
    write_log(small, 10_000)
    table = Table(title=f"{rows:,} rows, {path.stat().st_size / 1e9:.2f} GB")
    table.add_column("")
    for column in ("seconds", "CPU s", "speed of bare", "by CPU", "peak memory"):
        table.add_column(column, justify="right")
    lines = dict.fromkeys(LINES, path)
    if rows <= NEEDS_SPACE:
        write_log(mixed, rows, " ORDER BY hash(i)")
        lines[UNORDERED] = mixed
    bare = None
    for line, log in lines.items():
        print(f"… {rows:,} rows: {line}", file=sys.stderr, flush=True)
        found = measure(line, log, small, repeat)
        bare = bare or found
        table.add_row(
            line,
            f"{found['seconds']:.2f}",
            f"{found['cpu']:.2f}",
            f"{bare['seconds'] / found['seconds']:.0%}",
            f"{bare['cpu'] / found['cpu']:.0%}",
            f"{found['peak'] / 1e6:,.0f} MB",
        )
    console.print(table)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        line, path, small, repeat = sys.argv[2:]
        child(line, Path(path), Path(small), int(repeat))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
    for rows in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="surestep-") as folder:
            report(console, Path(folder), rows, arguments.repeat)


if __name__ == "__main__":
    main()
