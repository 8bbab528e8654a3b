"""`surestep count` and `surestep merge`: from tables to one file of counts."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest

from support.pump_commands import run_surestep as surestep
from surestep.io import read_counts

HEADER = "patient,day,ward,severity,decision,gain,done\n"
FIRST = "1,0,a,low,wait,0.5,0\n1,1,a,high,treat,1.25,1\n"
SECOND = "2,0,b,low,wait,2,0\n2,1,b,high,wait,1,0\n"
COLUMNS = [
    *("--episode", "patient", "--step", "day", "--state", "ward", "--state", "severity"),
    *("--action", "decision", "--reward", "gain"),
]


def test_counting_prints_what_it_understood_and_writes_the_counts(tmp_path):
    log, output = tmp_path / "log.csv", tmp_path / "counts.parquet"
    log.write_text(HEADER + FIRST + SECOND)
    result = surestep("count", log, *COLUMNS, "-o", output, "--memory-limit", "1GB")
    assert result.exit_code == 0, result.output
    assert "state       ward, severity\n" in result.stdout
    assert "terminated  done\n" in result.stdout
    assert "next_state  (derived from the next step)\n" in result.stdout
    assert "read 4 rows: 4 states, 2 actions, 3 transitions\n" in result.stdout
    assert "dropped 1 row: the recording stopped" in result.stdout
    assert "2 episodes: 1 terminated, 0 truncated, 1 without a word how" in result.stdout
    assert read_counts(output).rows_read == 4


def test_merging_gives_the_bytes_of_counting_at_once(tmp_path):
    logs = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for log, rows in zip(logs, (FIRST, SECOND), strict=True):
        log.write_text(HEADER + rows)
        surestep("count", log, *COLUMNS, "-o", log.with_suffix(".parquet"))
    surestep("count", *logs, *COLUMNS, "-o", tmp_path / "whole.parquet")
    parts = [log.with_suffix(".parquet") for log in reversed(logs)]
    result = surestep("merge", *parts, "-o", tmp_path / "merged.parquet")
    assert result.exit_code == 0, result.output
    assert "merged 2 files: 4 rows, 4 states, 3 transitions" in result.stdout
    whole, merged = (tmp_path / f"{name}.parquet" for name in ("whole", "merged"))
    assert whole.read_bytes() == merged.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
def test_names_that_are_no_utf_8_are_told_in_one_line(tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/log\xff.csv"))
    odd.write_text(HEADER + FIRST)
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "log.csv").write_text(HEADER + FIRST)
    for words in (
        ("count", odd, *COLUMNS, "-o", tmp_path / "counts.parquet"),
        ("count", folder, *COLUMNS, "-o", tmp_path / "counts.parquet"),
        ("inspect", odd, *COLUMNS),
        ("improve", odd, *COLUMNS, "--discount", "0.9", "-o", tmp_path / "out"),
        ("merge", odd, "-o", tmp_path / "counts.parquet"),
    ):
        result = surestep(*words)
        assert result.exit_code == 2, result.output
        assert "is no name in UTF-8; rename the" in result.stderr
        assert "\\xff" in result.stderr
    assert not (tmp_path / "counts.parquet").exists()


def test_a_temporary_folder_whose_name_is_no_utf_8_is_refused(tmp_path, monkeypatch):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + FIRST)
    monkeypatch.setattr(tempfile, "tempdir", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    result = surestep("count", log, *COLUMNS, "-o", tmp_path / "counts.parquet")
    assert (result.exit_code, "is no name in UTF-8" in result.stderr) == (2, True)


def random_log(path, rows):
    """Steps of 300 states and 4 actions that lead anywhere, so that most of them are different."""
    form = "parquet" if path.suffix == ".parquet" else "csv, header"
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT i // 20 AS episode, i % 20 AS step, hash(i) % 300 AS state, "
            "hash(i + 7) % 4 AS action, hash(i + 3) % 10 AS reward, i % 20 = 19 AS terminated "
            f"FROM range({rows}) AS rows(i)) TO '{path}' (FORMAT {form})"
        )
    return path


@pytest.mark.one_quick
@pytest.mark.parametrize(("limit", "ending"), [("10MB", "csv"), ("45MB", "parquet")])
def test_a_memory_limit_that_is_too_low_is_told_in_one_line(limit, ending, tmp_path):
    """The first is too little to count, the second to write what was counted."""
    log, output = random_log(tmp_path / f"log.{ending}", 200_000), tmp_path / "counts.parquet"
    result = surestep("count", log, "-o", output, "--memory-limit", limit)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1] == (
        f"Error: memory_limit is '{limit}', which is too little for this; give more, or have fewer "
        "states (coarser bins)"
    )
    assert not output.exists()


def test_a_full_temporary_folder_is_told_in_one_line(tmp_path):
    resource = pytest.importorskip("resource", reason="the size of files cannot be limited here")
    log = random_log(tmp_path / "log.csv", 4000)
    counts, output = tmp_path / "counts.parquet", tmp_path / "merged.parquet"
    assert surestep("count", log, "-o", counts).exit_code == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        result = surestep("merge", counts, "-o", output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: there is too little room in {tempfile.gettempdir()}; set TMPDIR to a folder with "
        "more\n"
    )
    assert not output.exists()


MEASURED = """
import re, sys
from pathlib import Path
from surestep.errors import InvalidParameter
from surestep.io import read_log, write_counts
try:
    counts = read_log(sys.argv[1], memory_limit=sys.argv[2]).counts()
    write_counts(counts, sys.argv[3], memory_limit=sys.argv[2])
except InvalidParameter as problem:
    print(problem)
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("limit", "fits"), [(200, False), (400, True)])
def test_a_memory_limit_holds_for_the_whole_process(limit, fits, tmp_path):
    """A million transitions, nearly all of them different; 200 MB besides are documented."""
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT i // 20 AS episode, i % 20 AS step, hash(i) % 2000 AS state, "
            "hash(i + 7) % 4 AS action, hash(i + 3) % 100 AS reward, hash(i + 1) % 2000 AS "
            "next_state, i % 20 = 19 AS terminated FROM range(1000000) AS rows(i)) "
            f"TO '{tmp_path / 'log.parquet'}' (FORMAT parquet)"
        )
    paths = tmp_path / "log.parquet", f"{limit}MB", tmp_path / "counts.parquet"
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    *refusal, peak = answer.stdout.splitlines()
    assert ("is too little" in "".join(refusal)) != fits
    assert int(peak) * 1024 <= (limit + 200) * 10**6
