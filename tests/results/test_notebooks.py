"""What notebooks show: tables with every label escaped, frames, and pictures."""

import csv
import io
from dataclasses import replace

import html5lib
import numpy as np
import pytest

import surestep
from support.findings import rehearsed_findings
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import write_table
from surestep import Problem
from surestep import _reprs as frames
from surestep._words import floored, signed
from surestep.errors import InvalidParameter, MissingExtra
from surestep.results.plots import Plots, most_changed, shortened

HOSTILE = "<script>alert('$1')</script>"
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    rows = world(5, states=4, episodes=120).rows
    log = write_table(tmp_path_factory.mktemp("logs") / "log.csv", rows, NAMES)
    return surestep.read_log(log, columns=COLUMNS)


@pytest.fixture(scope="module")
def result(source):
    terms = {"discount": 0.9, "n_wedge": 3, "worlds": 0, "certificates": ["robust", "a-priori"]}
    made = surestep.improve(source, **terms)
    words = made.table.vocabulary
    column = words.state_columns[0]
    labels = {column: {text: f"{HOSTILE} {text}" for text in {s[0] for s in words.states}}}
    return surestep.improve(source, names=labels, **terms)


def test_html_says_what_it_is_and_escapes_every_label(source, result):
    findings = rehearsed_findings()
    problem = Problem(
        counts=source.counts().to_counts(),
        behavior=surestep.estimate_behavior(source.counts().to_counts()),
        discount=0.9,
        value_bounds=(-9.0, 9.0),
    )
    for noun in (source, problem, result.certificate, findings.rehearsal):
        text = noun._repr_html_()
        assert text.startswith("<table>")
        assert type(noun).__name__ in text
        assert len(text) < 5000
        assert len(repr(noun)) < 300
    frame = html5lib.parseFragment(result._repr_html_(), namespaceHTMLElements=False)
    (page,) = frame
    assert (page.tag, page.attrib["srcdoc"]) == ("iframe", result.report)
    assert f"<script>{HOSTILE}" not in result.report
    hostile = replace(source, table=replace(source.table, name=HOSTILE))
    assert "<script>" not in hostile._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_the_rows_of_the_file(result, library, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(frames, "find_spec", lambda name: True if name == library else None)
    frame = result.to_frame()
    assert type(frame).__module__.startswith(library)
    rows = [*csv.DictReader(io.StringIO(result.files()["policy.csv"].decode()))]
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert names == list(rows[0])
    for name in names:
        values = frame[name].to_pylist() if library == "pyarrow" else frame[name].to_list()
        for value, row in zip(values, rows, strict=True):
            written = row[name]
            if value is None:
                assert written == ""
            elif isinstance(value, float):
                assert float(written) == value
            else:
                assert written.lower() == str(value).lower()


def test_without_any_library_there_is_a_command(result, monkeypatch):
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        result.to_frame()


def test_changes_are_drawn_in_the_order_of_what_they_gain(result):
    pytest.importorskip("matplotlib")
    table = result.table
    gains = np.zeros(table.pairs.num_states)
    for k, state in enumerate(table.pairs.state):
        moved = table.probability[k] - table.behavior[k]
        gains[state] += moved * table.advantage[k] * table.decisions[state]
    ordered = most_changed(table)
    assert set(ordered) == set(np.flatnonzero(table.changed))
    assert (np.diff(gains[ordered]) <= 1e-12).all()
    figure = result.plot.changes()
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    labels = [", ".join(table.vocabulary.state_name(int(s))) for s in ordered[::-1]]
    assert names == [shortened(label) for label in labels]
    assert figure._repr_png_().startswith(PNG)


def test_certificates_are_drawn_at_their_lower_bounds(result):
    pytest.importorskip("matplotlib")
    figure = result.plot.certificates()
    texts = [text.get_text() for text in figure.axes[0].texts]
    for claim in result.certificates:
        said = f"{claim.standing}, L = {signed(floored(claim.lower))}"
        said = "says nothing" if claim.says_nothing else said
        assert any(said in text for text in texts)
    assert figure._repr_png_().startswith(PNG)


def test_the_stress_test_is_drawn_world_by_world(result):
    pytest.importorskip("matplotlib")
    findings = rehearsed_findings()
    claims = (findings.certificate, *findings.others)
    figure = Plots(findings.table, claims, findings.rehearsal, findings.gain).rehearsal()
    gain = findings.rehearsal.gain[:, 0]
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    worse = (gain < -findings.rehearsal.tolerance).sum()
    assert f"worse than the current policy: {worse}" in legend
    assert figure._repr_png_().startswith(PNG)
    with pytest.raises(InvalidParameter, match="make the result with worlds=10"):
        result.plot.rehearsal()
