"""A section more of the report, made here, from `improve` to `verify`."""

import re

from surestep.report.html import element

import surestep
from labelled_worlds import COLUMNS, NAMES, world
from log_tables import write_table
from surestep.pipeline import verify_result
from surestep.report.page import SECTIONS


def busiest_section(findings):
    """Returns where the new policy spends most of its time."""
    state = int(findings.occupancy.argmax())
    words = ", ".join(findings.table.vocabulary.states[state])
    return element("section", element("h2", "Busiest"), element("p", words), id="busiest")


def test_a_section_of_ones_own_is_on_the_page_and_is_verified(tmp_path, monkeypatch):
    log = write_table(tmp_path / "log.csv", world(5, states=5, episodes=60).rows, NAMES)
    monkeypatch.setitem(SECTIONS, "busiest", busiest_section)
    source = surestep.read_log(log, columns=COLUMNS)
    out = tmp_path / "out"
    surestep.improve(source, discount=0.9, n_wedge=12, worlds=0).save(out)
    page = (out / "report.html").read_text()
    assert '<a href="#busiest">Busiest</a>' in page
    assert re.search('<section id="busiest"[^>]*><h2>Busiest</h2>', page)
    assert verify_result(out, log).level == "same bytes"
    monkeypatch.delitem(SECTIONS, "busiest")
    assert verify_result(out, log).difference.startswith("report.html: ")
