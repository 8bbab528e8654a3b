"""Files that an earlier release wrote are read by this one; a format changes only with a reader.

Those in tests/data/saved were made by version 0.1.0, in that folder, by these commands. They stay
as they are: a format that grows gets files of its own beside them.

    C="--state condition --state demand --action decision"
    surestep improve log.csv $C --discount 0.95 --set method.n_wedge=1 --kind a-priori \\
        --kind robust --worlds 1 -o result
    surestep count log.csv $C -o counts.parquet
    surestep certify result log.csv --kind robust:set=l1 -o claim.json
"""

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import surestep
from surestep._json import typed
from surestep.io.counts.labelled import counts_digest
from surestep.model import statements
from surestep.pipeline import certify_result, verify_result
from surestep.results import findings, record, result
from surestep.results.result import certificates_from_json

SAVED = Path(__file__).parents[1] / "data" / "saved"
COLUMNS = {"state": ["condition", "demand"], "action": "decision"}


@pytest.fixture
def saved(tmp_path):
    """A copy: whoever reads it must not need to change it."""
    return shutil.copytree(SAVED, tmp_path / "saved")


def of_another_release(monkeypatch):
    """Makes this release one with a number of its own, as the next one will be."""
    monkeypatch.setattr(result, "__version__", "99.0")
    monkeypatch.setattr("surestep.pipeline.verify.__version__", "99.0")


def reworded(monkeypatch):
    """Words every statement otherwise."""
    usual = statements.Statement.__str__
    monkeypatch.setattr(statements.Statement, "__str__", lambda said: f"Now: {usual(said)}")


def laid_out_otherwise(folder):
    """Writes all JSON on one line, names in the order of the alphabet, with digests that fit."""
    for path in [*folder.glob("*.json"), folder / "run.json"]:
        content = json.loads(path.read_text())
        if path.name == "run.json":
            for name in content["outputs"]:
                digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
                content["outputs"][name] = digest
        path.write_text(json.dumps(content, sort_keys=True))


def test_a_result_of_an_earlier_release_is_read(saved):
    kept = surestep.load(saved / "result")
    assert kept.verdict == "not shown to be better"
    assert [claim.kind for claim in kept.certificates] == ["a-priori", "robust"]
    assert kept.rehearsal.worlds == 1
    assert kept.act(("fair", "low"), 1) in ("ease", "run", "sell", "service")


def test_it_is_made_again_from_its_log_and_judged(saved):
    """Whether by the same numbers is another question: rules of the release may have changed."""
    assert verify_result(saved / "result", saved / "log.csv").level
    assert certify_result(saved / "result", saved / "log.csv", ["robust"]).same_log


def test_other_sentences_and_another_layout_leave_it_readable(saved, monkeypatch):
    before = surestep.load(saved / "result")
    laid_out_otherwise(saved / "result")
    assert surestep.load(saved / "result").table == before.table
    of_another_release(monkeypatch)
    reworded(monkeypatch)
    monkeypatch.setattr(findings, "rung_of", lambda *claims, **more: "believed better")
    after = surestep.load(saved / "result")
    assert after.certificates == before.certificates
    assert str(after.certificate.assumptions[0]).startswith("Now: ")


@pytest.mark.thorough
def test_values_are_compared_and_not_sentences_or_layout(tmp_path, saved, monkeypatch):
    given = {"columns": COLUMNS, "discount": 0.95, "n_wedge": 1, "certificates": ["a-priori"]}
    surestep.improve(saved / "log.csv", **given, worlds=0).save(tmp_path / "out")
    laid_out_otherwise(tmp_path / "out")
    found = verify_result(tmp_path / "out", saved / "log.csv")
    assert found.level == "same values"
    assert found.difference.endswith("has other bytes")
    reworded(monkeypatch)
    assert verify_result(tmp_path / "out", saved / "log.csv").level == "refuted"  # by the page
    of_another_release(monkeypatch)
    found = verify_result(tmp_path / "out", saved / "log.csv")
    assert found.level == "same values"
    assert "report.html has the words of that release, and was not compared" in found.difference


def test_counts_and_certificates_of_an_earlier_release_are_read(saved, monkeypatch):
    counts = surestep.io.read_counts(saved / "counts.parquet")
    source = surestep.read_log(saved / "log.csv", columns=COLUMNS)
    assert counts_digest(counts) == counts_digest(replace(source.counts(), edges=source.edges()))
    (claim,) = certificates_from_json((saved / "claim.json").read_text())
    assert (claim.kind, claim.parameters["set"]) == ("robust", "l1")
    reworded(monkeypatch)
    assert certificates_from_json((saved / "claim.json").read_text()) == (claim,)


@dataclass(frozen=True, slots=True)
class Grown:
    """A record that has got a field since files were written."""

    rows: int
    known: tuple[str, ...] = ()


def test_a_field_with_a_default_may_be_missing_and_an_unknown_one_may_not():
    assert typed({"rows": 3}, Grown) == Grown(3)
    for content in ({"rows": 3, "more": 1}, {"known": []}, {"rows": 3, "known": [1]}):
        with pytest.raises(ValueError, match=r"other fields|missing|expected str"):
            typed(content, Grown)


def test_a_record_of_a_later_release_is_refused_in_words(saved):
    path = saved / "result" / "run.json"
    content = json.loads(path.read_text()) | {"version": record.VERSION + 1}
    path.write_text(json.dumps(content))
    with pytest.raises(surestep.errors.InvalidResult, match="of version"):
        surestep.load(saved / "result")
