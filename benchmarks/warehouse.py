"""What a warehouse has to make of a log for a claim: its rows, counts, or first entries as well.

    python benchmarks/warehouse.py [--episodes 100000] [--entries 10000] [--world NAME]

A log of the world is a table in DuckDB, which stands for the warehouse and runs the queries of
`surestep count --sql`. Printed are the rows and bytes that leave it, the seconds that this takes,
what `improve` says (a claim at δ = 0.1 over an estimate of what is done now), and its seconds.

a fifth     the rows of a fifth of the episodes, whole ones, by a hash of their ids
counts      counts of all rows
entries     these, and the first entries of every state and action
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import surestep
from surestep.environments import make
from surestep.io.logs.warehouse import queries_for

SMALLEST = ("--episodes", "60", "--entries", "10")
COLUMNS = {"time": "moment"}


def fill(database: Any, world: str, episodes: int) -> tuple[float, float, float]:
    """Makes the table `log`; returns γ, and what rewards lie between."""
    benchmark = make(world)
    log = benchmark.sample(episodes, np.random.default_rng(1))
    number = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))
    columns: dict[str, Any] = {
        "episode": number,
        "step": log.step,
        "state": log.state,
        "action": log.action,
    }
    columns |= {"reward": np.round(log.reward, 2), "terminated": log.terminated}
    columns |= {"truncated": log.truncated}
    database.register("rows", columns)
    database.execute(
        "CREATE TABLE log AS SELECT *, TIMESTAMP '2025-01-01' + to_seconds(episode * 60 + step) "
        "AS moment FROM rows"
    )
    return benchmark.discount, float(log.reward.min()), float(log.reward.max())


def main() -> None:
    """Prints a line for each of three ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--world", default="gridworld")
    given = parser.parse_args()
    with duckdb.connect() as database, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        discount, low, high = fill(database, given.world, given.episodes)
        ranges = (min(low, 0.0), max(high, 0.0))
        sample, log = folder / "sample.parquet", folder / "log.parquet"
        database.execute(f"COPY (FROM log) TO '{log}'")
        source = surestep.read_log(log, columns=COLUMNS)
        script = queries_for(source, "duckdb", table="log", most=given.entries)
        began = time.perf_counter()
        database.execute(script)
        for table in ("counts", "entries"):
            database.execute(f"COPY (FROM surestep_{table}) TO '{folder / table}.parquet'")
        asked = time.perf_counter() - began
        query = next(x for x in script.splitlines() if "SELECT" in x).removeprefix("-- ")
        database.execute(f"COPY ({query}) TO '{sample}'")
        counted = folder / "counted.parquet"
        surestep.io.write_counts(source.counts(), counted)
        (rows,) = database.execute("SELECT count(*) FROM log").fetchone() or (0,)
        print(f"{given.world}: {rows:,} rows; both queries took {asked:.1f} s")
        both = [folder / "counts.parquet", folder / "entries.parquet"]
        print(f"{'':9} {'rows out':>10} {'MB':>6} {'claim':>8}  {'seconds':>7}  verdict")
        ways = {"a fifth": [sample], "counts": [counted], "entries": both}
        for way, files in ways.items():
            listed = ", ".join(f"'{file}'" for file in files)
            sizes = f"SELECT sum(num_rows) FROM parquet_file_metadata([{listed}])"
            (out,) = database.execute(sizes).fetchone() or (0,)
            size = sum(file.stat().st_size for file in files) / 1e6
            began = time.perf_counter()
            result = surestep.improve(
                files, columns=COLUMNS if way == "a fifth" else None, discount=discount,
                running=ranges, ending=ranges, worlds=0,
            )  # fmt: skip
            took = time.perf_counter() - began
            lower = result.certificate.lower
            claim = "none" if lower is None else f"{lower:.3f}"
            print(f"{way:9} {out:10,} {size:6.1f} {claim:>8}  {took:7.1f}  {result.verdict}")


if __name__ == "__main__":
    main()
