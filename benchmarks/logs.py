"""Counting logs: ours against a bare DuckDB query that computes the same aggregates.

Logs: Parquet, episodes of 20 steps in order, 10⁴ states, 4 actions, rewards in cents; about 3 × 10⁵
distinct transitions. Every line is measured in a process of its own, after one run on a small log.
The bare query checks nothing and adds up doubles; each further line of ours says what it adds, and
the last one checks what claims assume (`docs/checks.md`). CPU
seconds are of all threads together, and tell more than seconds where other processes run. 10⁸ rows
are measured where they are asked for: they take a gigabyte of disk, and minutes.

The same log as text, without next states: the bare query with `lead()`, counting, `inspect` and
`improve` without a stress test. And `improve` as it is on 20,000 rows with many actions or states.

Then the peak memory of counting and writing under a limit: 2,000 states, 4 actions and successors
at random, so that most rows are a group of their own.

Run: .venv/bin/python benchmarks/logs.py [--sizes 1000000 10000000 100000000] [--repeat 2]
    [--wide 20000000] [--limits 200MB 1GB 4GB]
    [--only LINE ...] [--many]
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
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from surestep.checks import check_log
from surestep.errors import SurestepError
from surestep.io import read_log, write_counts
from surestep.io.logs.inspection import inspect_log
from surestep.model import DecisionLog
from surestep.pipeline import improve
from surestep.pipeline.inspect import inspect

# The arguments of the quickest run.
SMALLEST = (
    "--sizes", "1000", "--repeat", "1", "--wide", "1000", "--limits", "100MB",
    "--only", "bare query: count(*), sum(reward)",
    "rows in no order, next_state derived, memory limit 1 GB", "text: count",
)  # fmt: skip
STEPS, STATES, ACTIONS = 20, 10_000, 4
DISCOUNT = 0.95
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
EXTREMES = "bare query: count(*), sum, min and max of the reward in whole cents"
DERIVED = "bare query: next_state derived by a window"
UNORDERED = "rows in no order, next_state derived, memory limit 1 GB"
CHECKED = "count, load, and check what claims assume"
# Of the log as text; the first is the bare query that the others are held against.
TEXT = {
    "text: bare query, next_state by lead()": lambda path: (
        duckdb.connect()
        .execute(GROUPED.format("reward", f"(SELECT *, {AHEAD} FROM read_csv('{path}'))"))
        .fetchnumpy()
    ),
    "text: count": lambda path: read_log(path).counts(),
    "text: inspect, without checks": lambda path: inspect_log(read_log(path)),
    "text: inspect": lambda path: inspect(read_log(path)),
    "text: improve, no stress test": lambda path: improve(path, discount=DISCOUNT, worlds=0),
}
AHEAD = "lead(state) OVER (PARTITION BY episode ORDER BY step) AS next_state"
MANY = {"100 actions": (50, 100), "1,000 actions": (50, 1_000), "10,000 states": (10_000, 4)}
LINES = (BARE, EXACT, EXTREMES, *OURS, DERIVED, CHECKED, *TEXT)
BARE_ONES = (BARE, next(iter(TEXT)))
FEW_STATES = 2_000
LIMITED = "under a memory limit"
NEEDS_SPACE = 10**7  # rows: what has to be put in order is measured up to here


def write_log(path: Path, rows: int, order: str = "", states: int = STATES) -> None:
    """A log in which each state follows from the one before by a small move."""
    with duckdb.connect() as database:
        place = f"hash(i // {STEPS}) % {states} + i % {STEPS}"
        database.execute(
            f"COPY (SELECT i // {STEPS} AS episode, (i % {STEPS})::INTEGER AS step, "
            f"(({place} + hash(i) % 3) % {states})::INTEGER AS state, "
            f"(hash(i + 7) % {ACTIONS})::INTEGER AS action, "
            "(hash(i + 3) % 1000)::DOUBLE / 100 AS reward, "
            f"CASE WHEN i % {STEPS} = {STEPS - 1} THEN {states} "
            f"ELSE (({place} + 1 + hash(i + 1) % 3) % {states})::INTEGER END AS next_state, "
            f"i % {STEPS} = {STEPS - 1} AS terminated, false AS truncated "
            f"FROM (SELECT range AS i FROM range({rows})){order}) TO '{path}' (FORMAT parquet)"
        )


def counting(line: str, path: Path) -> None:
    """Runs one line."""
    if line in TEXT:
        TEXT[line](path)
        return
    source = f"read_parquet('{path}')"
    if line in (BARE, EXACT, EXTREMES, DERIVED):
        if line == DERIVED:
            source = f"(SELECT * REPLACE ({AHEAD}) FROM {source})"
        cents = "(reward * 100)::INTEGER"
        wanted = {EXACT: "reward::DECIMAL(18, 2)", EXTREMES: f"{cents}), min({cents}), max({cents}"}
        reward = wanted.get(line, "reward")
        with duckdb.connect() as database:
            database.execute(GROUPED.format(reward, source)).fetchnumpy()
        return
    log = read_log(path, memory_limit="1GB" if line == UNORDERED else None)
    if line == CHECKED:
        check(log.load())
        return
    absent = dict.fromkeys(OURS.get(line, ()))
    if "next_state" in absent or line == UNORDERED:
        absent["next_state"] = ()
    dataclasses.replace(log, columns=dataclasses.replace(log.columns, **absent)).counts()


def check(steps: DecisionLog) -> None:
    """Checks what claims assume."""
    check_log(steps, steps.pairs.state_labels, discount=DISCOUNT)


def child(line: str, path: Path, small: Path, repeat: int) -> None:
    """Prints the best times and the peak memory of one line as JSON."""
    counting(line, small)
    seconds, cpu = [], []
    for _ in range(repeat):
        begin, used = time.perf_counter(), time.process_time()
        counting(line, path)
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
    print(json.dumps({"seconds": min(seconds), "cpu": min(cpu), "peak": peak_memory()}))


def peak_memory() -> int:
    """The most bytes that this program held, not its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def measure(line: str, *arguments: object) -> dict[str, Any]:
    """What a child process prints of a line."""
    command = [sys.executable, __file__, "--child", line, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{line}: {answer.stderr.strip()}")
    return json.loads(answer.stdout)


def write_wide_log(path: Path, rows: int) -> None:
    """A log in which any state may follow."""
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT i // {STEPS} AS episode, (i % {STEPS})::INTEGER AS step, "
            f"(hash(i) % {FEW_STATES})::INTEGER AS state, "
            f"(hash(i + 7) % {ACTIONS})::INTEGER AS action, "
            "(hash(i + 3) % 1000)::DOUBLE / 100 AS reward, "
            f"(hash(i + 1) % {FEW_STATES})::INTEGER AS next_state, "
            f"i % {STEPS} = {STEPS - 1} AS terminated, false AS truncated "
            f"FROM (SELECT range AS i FROM range({rows}))) TO '{path}' (FORMAT parquet)"
        )


def limited(limit: str, path: Path, output: Path) -> None:
    """Prints the peak memory of counting and writing under a limit, and what came of it."""
    begin = time.perf_counter()
    try:
        counts = read_log(path, memory_limit=limit).counts()
        write_counts(counts, output, memory_limit=limit)
        came = f"{counts.transitions.times.size:,} transitions"
    except SurestepError as problem:
        came = f"refused: {problem}"
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "peak": peak_memory(), "came": came}))


def report_limits(console: Console, folder: Path, rows: int, limits: list[str]) -> None:
    """One table: the peak memory under each limit."""
    path = folder / "wide.parquet"
    write_wide_log(path, rows)
    table = Table("memory limit", "peak memory", "seconds", "", title=f"{rows:,} rows at random")
    for limit in limits:
        print(f"… {rows:,} rows at random: {limit}", file=sys.stderr, flush=True)
        found = measure(LIMITED, limit, path, folder / "counts.parquet")
        peak, seconds = f"{found['peak'] / 1e6:,.0f} MB", f"{found['seconds']:.1f}"
        table.add_row(limit, peak, seconds, found["came"])
    console.print(table)


def report(console: Console, folder: Path, rows: int, repeat: int, wanted: tuple[str, ...]) -> None:
    """One table: the wanted lines at one size."""
    path, small, mixed = (folder / f"{name}.parquet" for name in ("log", "small", "mixed"))
    write_log(path, rows)
    write_log(small, 10_000)
    table = Table(title=f"{rows:,} rows, {path.stat().st_size / 1e9:.2f} GB")
    table.add_column("")
    for column in ("seconds", "CPU s", "speed of bare", "by CPU", "peak memory"):
        table.add_column(column, justify="right")
    lines = dict.fromkeys(LINES, path)
    for log in (path, small):
        as_text = (
            f"COPY (SELECT * EXCLUDE (next_state) FROM '{log}') TO '{log.with_suffix('.csv')}'"
        )
        duckdb.connect().execute(as_text)
    lines |= dict.fromkeys(TEXT, path.with_suffix(".csv"))
    if rows > NEEDS_SPACE:
        del lines[CHECKED]
    else:
        write_log(mixed, rows, " ORDER BY hash(i)")
        lines[UNORDERED] = mixed
    bare = None
    for line, log in lines.items():
        if line not in wanted:
            continue
        print(f"… {rows:,} rows: {line}", file=sys.stderr, flush=True)
        found = measure(line, log, small.with_suffix(log.suffix), repeat)
        bare = found if bare is None or line in BARE_ONES else bare
        table.add_row(
            line,
            f"{found['seconds']:.2f}",
            f"{found['cpu']:.2f}",
            f"{bare['seconds'] / found['seconds']:.0%}",
            f"{bare['cpu'] / found['cpu']:.0%}",
            f"{found['peak'] / 1e6:,.0f} MB",
        )
    console.print(table)


def many_labels(what: str) -> None:
    """Prints the CPU seconds of improving 20,000 rows with many actions or states, once warm."""
    states, actions = MANY[what]
    rng, rows = np.random.default_rng(0), 20_000
    log = {
        "episode": np.arange(rows) // STEPS,
        "step": np.arange(rows) % STEPS,
        "state": rng.integers(0, states, rows).astype(str).astype(object),
        "action": rng.integers(0, actions, rows).astype(str).astype(object),
        "reward": rng.integers(0, 10, rows),
    }
    for _ in range(2):  # the first compiles
        used = time.process_time()
        improve(log, discount=DISCOUNT, ends="complete")
    print(json.dumps({"cpu": time.process_time() - used}))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        line, *given = sys.argv[2:]
        if line in MANY:
            many_labels(line)
        elif line == LIMITED:
            limited(given[0], Path(given[1]), Path(given[2]))
        else:
            child(line, Path(given[0]), Path(given[1]), int(given[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--wide", type=int, default=2 * 10**7, help="rows at random; 0: none")
    parser.add_argument("--limits", nargs="+", default=["200MB", "1GB", "4GB"])
    parser.add_argument("--many", action="store_true", help="logs of many actions or states too")
    every = (*LINES, UNORDERED)
    parser.add_argument("--only", nargs="+", default=every, choices=every, help="these lines")
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
    for rows in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="surestep-") as folder:
            report(console, Path(folder), rows, arguments.repeat, tuple(arguments.only))
    for what in MANY if arguments.many else ():
        print(f"… 20,000 rows, {what}", file=sys.stderr, flush=True)
        console.print(f"improve 20,000 rows with {what}: {measure(what)['cpu']:.1f} CPU s")
    if arguments.wide:
        with tempfile.TemporaryDirectory(prefix="surestep-") as folder:
            report_limits(console, Path(folder), arguments.wide, arguments.limits)


if __name__ == "__main__":
    main()
