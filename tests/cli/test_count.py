"""`surestep count` and `surestep merge`: from tables to one file of counts."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from surestep.cli.main import main
from surestep.io import read_counts
from surestep.io.logs import groups

HEADER = "patient,day,ward,severity,decision,gain,done\n"
FIRST = "1,0,a,low,wait,0.5,0\n1,1,a,high,treat,1.25,1\n"
SECOND = "2,0,b,low,wait,2,0\n2,1,b,high,wait,1,0\n"
COLUMNS = [
    *("--episode", "patient", "--step", "day", "--state", "ward", "--state", "severity"),
    *("--action", "decision", "--reward", "gain"),
]


def surestep(*arguments):
    return CliRunner().invoke(main, [str(word) for word in arguments], prog_name="surestep")


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


def test_mistakes_are_told_in_one_line_and_nothing_is_written(tmp_path):
    log, output = tmp_path / "log.csv", tmp_path / "counts.parquet"
    log.write_text(HEADER + FIRST)
    result = surestep("count", log, *COLUMNS[:-1], "gian", "-o", output)
    assert result.exit_code == 2
    assert "no column 'gian', chosen for reward; did you mean 'gain'?" in result.stderr
    result = surestep("count", log, *COLUMNS, "--reward", "done", "-o", output)
    assert (result.exit_code, "reward has 2 columns" in result.stderr) == (2, True)
    result = surestep("merge", log, "-o", output)
    assert (result.exit_code, str(log) in result.stderr) == (2, True)
    assert not output.exists()


def test_an_address_is_for_a_cluster_only(tmp_path):
    result = surestep("count", "log.csv", "--address", "auto", "-o", tmp_path / "counts.parquet")
    assert (result.exit_code, "--address is for --engine ray" in result.stderr) == (2, True)


def test_a_log_is_not_merged_with_itself(tmp_path):
    log, counts = tmp_path / "log.csv", tmp_path / "counts.parquet"
    log.write_text(HEADER + FIRST)
    assert surestep("count", log, *COLUMNS, "-o", counts).exit_code == 0
    result = surestep("merge", counts, counts, "-o", tmp_path / "twice.parquet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: counts 1 and 2 are of the same log (SHA-256 " in result.stderr
    assert not (tmp_path / "twice.parquet").exists()


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
        assert "is no name in UTF-8, which tables need; rename the" in result.stderr
        assert "\\xff" in result.stderr
    assert not (tmp_path / "counts.parquet").exists()


def test_a_temporary_folder_whose_name_is_no_utf_8_is_refused(tmp_path, monkeypatch):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + FIRST)
    monkeypatch.setattr(tempfile, "tempdir", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    result = surestep("count", log, *COLUMNS, "-o", tmp_path / "counts.parquet")
    assert (result.exit_code, "is no name in UTF-8" in result.stderr) == (2, True)


def test_groups_beyond_the_memory_limit_are_refused_with_their_number(tmp_path, monkeypatch):
    log, output = tmp_path / "log.csv", tmp_path / "counts.parquet"
    log.write_text(HEADER + FIRST + SECOND)
    monkeypatch.setattr(groups, "GROUP_BYTES", 20_000_000)
    arguments = ("count", log, *COLUMNS, "-o", output, "--memory-limit")
    result = surestep(*arguments, "100MB")
    assert result.exit_code == 2
    words = "memory_limit is '100MB', but the log has 4 groups (of state, action, next state"
    assert words in result.stderr
    assert "which take 80 MB; expected a limit of at least 160MB" in result.stderr
    assert not output.exists()
    assert surestep(*arguments, "161MB").exit_code == 0


def test_a_long_log_is_refused_by_its_first_rows(tmp_path, monkeypatch):
    """Two groups are allowed, so that four of the rows are looked at."""
    log, output = tmp_path / "log.parquet", tmp_path / "counts.parquet"
    with duckdb.connect() as database:
        columns = (
            "i AS state, 'x' AS action, 0.5 AS reward, 'end' AS next_state, true AS terminated"
        )
        database.execute(f"COPY (SELECT {columns} FROM range(16) AS rows(i)) TO '{log}'")
    monkeypatch.setattr(groups, "GROUP_BYTES", 20_000_000)
    result = surestep("count", log, "-o", output, "--memory-limit", "100MB")
    assert result.exit_code == 2
    assert "the first 4 rows of the log have 4 groups (of state" in result.stderr
    assert "which take 80 MB; expected a limit of at least 160MB" in result.stderr
    assert surestep("count", log, "-o", output, "--memory-limit", "1GB").exit_code == 0


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
    assert ("groups" in "".join(refusal)) != fits
    assert int(peak) * 1024 <= (limit + 200) * 10**6
