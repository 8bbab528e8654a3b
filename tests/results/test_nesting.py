"""JSON that goes on and on inside itself: refused in one line by everything that reads JSON."""

import sys

import duckdb
import pytest

from support.pump_commands import run_surestep
from surestep import Certificate
from surestep.errors import SurestepError
from surestep.io.counts.file import read_counts
from surestep.rehearsal.result import rehearsal_from_json
from surestep.results.record import Record
from surestep.results.result import certificates_from_json

READERS = [Certificate.from_json, certificates_from_json, Record.from_json, rehearsal_from_json]
LIMIT = sys.getrecursionlimit()
DEPTHS = (LIMIT - 100, LIMIT, 5 * LIMIT, 100_000)


def nested(depth):
    """Lists and objects, some of which end."""
    yield "[" * depth
    yield "[" * depth + "]" * depth
    yield '{"a":' * depth
    yield '{"kind":' * depth + "1" + "}" * depth
    yield '[{"algorithm": "spibb", "n_wedge": ' + "[" * depth + "]" * depth + "}]"
    yield '{"algorithm": "spibb", "n_wedge": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__qualname__)
@pytest.mark.parametrize("depth", DEPTHS)
def test_texts_are_refused(reader, depth):
    for text in nested(depth):
        with pytest.raises(SurestepError) as refused:
            reader(text)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("depth", DEPTHS)
def test_manifests_of_counts_are_refused(depth, tmp_path):
    path = tmp_path / "counts.parquet"
    duckdb.execute(
        f"COPY (SELECT 1 AS x) TO '{path}' "
        f"(FORMAT parquet, KV_METADATA {{surestep: '{'[' * depth}'}})"
    )
    with pytest.raises(SurestepError, match="no file of counts"):
        read_counts(path)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("run.json", ("explain", ".", "--state", "a")),
        ("claims.json", ("certify", ".", "log.csv", "--check", "claims.json")),
    ],
)
def test_the_command_line_says_so_in_one_line(name, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("[" * 100_000)
    told = run_surestep(*given)
    assert told.exit_code == 2
    assert isinstance(told.exception, SystemExit)
    assert len(told.stderr.splitlines()) == 1
