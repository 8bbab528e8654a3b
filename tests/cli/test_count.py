"""`surestep count` and `surestep merge`: from tables to one file of counts."""

from click.testing import CliRunner

from surestep.cli.main import main
from surestep.io import read_counts

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
    assert "dropped 1 rows: the recording stopped" in result.stdout
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
