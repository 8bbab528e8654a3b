"""A section more of the report, made here, from `improve` to `verify`."""

import pytest

import surestep
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import write_table
from surestep.pipeline import verify_result
from surestep.report import result as report
from surestep.sections import Section


def busiest_section(findings):
    """Returns where the current policy spends most of its time."""
    state = int(findings.behavior_occupancy.argmax())
    words = ", ".join(findings.table.vocabulary.states[state])
    return Section("busiest", "Busiest", [words])


@pytest.mark.thorough
def test_a_section_of_ones_own_is_on_the_page_and_is_verified(tmp_path, monkeypatch):
    log = write_table(tmp_path / "log.csv", world(5, states=5, episodes=60).rows, NAMES)
    built_in = report.result_sections
    monkeypatch.setattr(
        report, "result_sections", lambda found: [*built_in(found), busiest_section(found)]
    )
    source = surestep.read_log(log, columns=COLUMNS)
    out = tmp_path / "out"
    surestep.improve(source, discount=0.9, n_wedge=12, worlds=0).save(out)
    assert '<section id="busiest" class="plain">\n<h2>Busiest</h2>' in (
        (out / "report.html").read_text()
    )
    assert verify_result(out, log).level == "same bytes"
    monkeypatch.undo()
    assert verify_result(out, log).difference.startswith("report.html: ")
