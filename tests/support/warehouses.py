"""Engines that run the queries of `surestep count --sql`, and a log to run them on."""

import csv
import hashlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np

COLUMNS = {
    "episode": "VARCHAR",
    "step": "INTEGER",
    "moment": "TIMESTAMP",
    "ward": "VARCHAR",
    "mood": "VARCHAR",
    "action": "VARCHAR",
    "reward": "DOUBLE PRECISION",
    "terminated": "INTEGER",
    "truncated": "INTEGER",
}
SERVER = "/usr/lib/postgresql"  # where Debian's package puts initdb and pg_ctl
PATIENCE = 60  # seconds, for what takes one or two


def rows_of(episodes, rng, *, between):
    """Rows of episodes; decisions of several lie `between` each other, or all of one in a row.

    Some episodes are stopped by a clock, some at a row of which nobody knows where it led. The
    chances and rewards are such that the second action is the better one.
    """
    rows = []
    for e in range(episodes):
        ward, step = int(rng.integers(3)), 0
        while True:
            action = int(rng.integers(2))
            second = e * 60 + (step * 61 if between else 0)
            over, stopped = rng.random(2) < (0.25, 0.04)
            earned = int(rng.integers(0, 60) + 40 * action) / 100
            moment = f"2025-03-{1 + second // 86_400:02} {second // 3600 % 24:02}:"
            moment += f"{second // 60 % 60:02}:{second % 60:02}"
            labels = (f"w{ward}", "calm" if ward else "upset", f"a{action}")
            rows.append(
                (f"e{e}", step, moment, *labels, earned, int(over), int(stopped and not over))
            )
            if over or stopped or step == 11:
                break
            ward = (ward + int(rng.integers(1 + action))) % 3
            step += 1
    return rows


def first_entries(rows, share, first, most):
    """Counts of parts and pairs, and the first entries of each, by the definition."""
    place = {}
    in_order = sorted(
        rows, key=lambda row: (row[2], hashlib.md5(row[0].encode()).hexdigest(), row[1])
    )
    for rank, row in enumerate(in_order):
        place[row[:2]] = rank
    episodes = {}
    for row in sorted(rows, key=lambda row: row[1]):
        episodes.setdefault(row[0], []).append(row)
    kept = []  # (when it was decided, row, the next state)
    starts = []
    for several in episodes.values():
        decided = -1
        stays = [row for row in several if not row[8]]  # a clock stopped it, and nobody knows more
        if stays:
            starts.append((place[stays[0][:2]], stays[0][3:5]))
        for row, ahead in zip(several, [*several[1:], None], strict=True):
            decided = max(decided, place[row[:2]])
            if not row[8]:
                kept.append((decided, row[1], row, None if ahead is None else ahead[3:5]))
    starts.sort()
    border = starts[round(share * len(starts))][0]
    stacks, sizes = {}, {}
    for decided, _, row, ahead in sorted(kept, key=lambda entry: entry[:2]):
        key = ("choosing" if decided < border else "judging", row[3:6])
        sizes[key] = sizes.get(key, 0) + 1
        if sizes[key] <= (first if key[0] == "choosing" else most):
            stacks.setdefault(key, []).append((row[6], ahead, row[7]))
    began = {
        part: [s for at, s in starts if (at < border) == (part == "choosing")]
        for part in ("choosing", "judging")
    }
    return sizes, stacks, began


def write_log(folder, rows, *, but=(), ahead=False):
    """The rows as a Parquet file, in their order; without some columns, or with next states."""
    left_out = f"EXCLUDE ({', '.join(but)})" if but else ""
    near = "OVER (PARTITION BY episode ORDER BY step)"
    more = [f"lead({name}) {near} AS next_{name}" for name in ("ward", "mood")] if ahead else []
    if ahead:  # else a flag must say that nobody knows it
        stopped = f"CASE WHEN lead(step) {near} IS NULL THEN 1 - terminated ELSE 0 END"
        left_out = f"REPLACE ({stopped} AS truncated)"
    with duckdb.connect() as database:
        filled(database, rows)
        columns = ", ".join([f"* {left_out}", *more])
        database.execute(
            f"COPY (SELECT {columns} FROM log ORDER BY rowid) TO '{folder / 'log.parquet'}'"
        )
    return folder / "log.parquet"


def filled(database, rows):
    """Makes the table `log` of the rows."""
    typed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    database.execute(f"CREATE TABLE log ({typed})")
    database.executemany(f"INSERT INTO log VALUES ({', '.join('?' * len(COLUMNS))})", rows)


class Duck:
    """DuckDB."""

    dialect = "duckdb"

    def __init__(self, rows):
        self.database = duckdb.connect()
        filled(self.database, rows)

    def run(self, script):
        self.database.execute(script)

    def answer(self, query):
        cursor = self.database.execute(query)
        return [column[0] for column in cursor.description], cursor.fetchall()


class Lite(Duck):
    """SQLite, with the function md5, which it lacks."""

    dialect = "sqlite"

    def __init__(self, rows):
        self.database = sqlite3.connect(":memory:")
        self.database.create_function("md5", 1, lambda x: hashlib.md5(x.encode()).hexdigest())
        filled(self.database, rows)

    def run(self, script):
        self.database.executescript(script)


class Postgres:
    """A real PostgreSQL, asked through psql; its rows come as CSV."""

    dialect = "postgres"

    def __init__(self, socket, rows):
        self.socket = socket
        self.psql("DROP TABLE IF EXISTS log, surestep_counts, surestep_entries")
        typed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        lines = "".join(f"{','.join(map(str, row))}\n" for row in rows)
        self.psql(f"CREATE TABLE log ({typed})")
        self.psql("COPY log FROM STDIN WITH (FORMAT csv)", lines)

    def psql(self, command, given=""):
        words = ["psql", "-h", self.socket, "-U", "surestep", "-d", "postgres", "-X", "-q"]
        return subprocess.run(
            [*words, "-v", "ON_ERROR_STOP=1", "-c", command],
            input=given, capture_output=True, text=True, check=True, timeout=PATIENCE,
        ).stdout  # fmt: skip

    def run(self, script):
        self.psql(script)

    def answer(self, query):
        text = self.psql(f"COPY ({query}) TO STDOUT WITH (FORMAT csv, HEADER, NULL '(none)')")
        names, *rows = csv.reader(text.splitlines())
        return names, [tuple(None if x == "(none)" else x for x in row) for row in rows]


def postgres_program(name):
    """The program of PostgreSQL; None where it is not installed."""
    found = sorted(Path(SERVER).glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@contextmanager
def postgres():
    """Runs a server of our own on a socket in a new folder; yields the folder."""
    initdb, control = map(postgres_program, ("initdb", "pg_ctl"))
    # Where another user can go, and short: a socket has 107 letters.
    folder = Path(tempfile.mkdtemp(prefix="surestep-pg", dir="/tmp"))
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody", "nogroup")
    settings = f"-k {folder} -c listen_addresses='' -c fsync=off"

    def call(*words):
        subprocess.run(
            words, check=True, timeout=PATIENCE, cwd=folder, stdout=subprocess.DEVNULL, **user
        )

    data = folder / "data"
    try:
        call(initdb, "-D", data, "-U", "surestep", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        call(control, "-D", data, "-o", settings, "-l", folder / "log", "-w", "start")
        try:
            yield str(folder)
        finally:
            call(control, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def save(engine, folder):
    """Saves both tables of an engine as Parquet; returns the files."""
    files = []
    for table in ("counts", "entries"):
        names, rows = engine.answer(f"SELECT * FROM surestep_{table}")
        columns = {
            name: np.array([str(x) if x is not None else None for x in column], object)
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
        files.append(folder / f"{engine.dialect}-{table}.parquet")
        with duckdb.connect() as database:
            database.register("made", columns)
            database.execute(f"COPY (FROM made) TO '{files[-1]}'")
    return files
