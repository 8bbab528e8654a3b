"""What the rest of the log says, which did not choose the policy: of changes, and of how much
was seen.
"""

import re
from dataclasses import replace

import numpy as np
from surestep.report.html import document
from surestep.report.pages.answer import headline
from surestep.report.pages.changes import top_section
from surestep.report.pages.data import data_section

from findings import maintenance_findings
from surestep.description import DEFAULT_CERTIFICATES
from surestep.pipeline.findings import wanted_pairs

MACHINE = maintenance_findings()


def text_of(section):
    """The words of a section."""
    page = document("t", [section], style="", script="")
    return " ".join(re.sub("<[^>]+>", " ", page).replace("\u202f", " ").split())


def judged(*evidence):
    """The findings with what the rest of the log says of each change."""
    changes = [c._replace(evidence=said) for c, said in zip(MACHINE.changes, evidence, strict=True)]
    return replace(MACHINE, changes=tuple(changes))


def test_changes_that_the_rest_contradicts_are_not_among_those_that_matter_most():
    contradicted = ["contradicted", "open", "confirmed", "contradicted", "open"]
    findings = judged(*contradicted)
    said = text_of(top_section(findings))
    for change, evidence in zip(findings.changes, contradicted, strict=True):
        (name,) = findings.table.vocabulary.state_name(change.state)
        assert (f"condition {name} " in said) == (evidence != "contradicted")
    assert "Contradicted" not in said
    assert top_section(judged(*["contradicted"] * 5)) is None


def test_evidence_of_all_changes_is_counted_on_top():
    said = headline(judged("open", "contradicted", "open", "confirmed", "open"))
    assert said.endswith("By the rest of the log: 1 confirmed, 3 open, 1 contradicted.")
    assert "By the rest" not in headline(judged(*[None] * 5))


class Kept:
    """An improvement whose N∧ nothing reaches, and which is worth nothing."""

    n_wedge = 1000

    class plan:
        value = np.full(MACHINE.table.pairs.num_states, -1e9)


def test_what_was_tried_fewer_than_five_times_is_not_worth_more_data():
    """Whichever part tried it: everything looks better than what is done, and nothing is known."""
    table, size = MACHINE.table, MACHINE.table.pairs.num_pairs
    tries = np.arange(size) % 10
    held_out = tries // 2
    never = np.zeros(size, np.bool_)
    table = replace(table, visits=tries - held_out, held_out_visits=held_out, trusted=never)
    found = wanted_pairs(table, np.ones(table.pairs.num_states), Kept)
    assert {wanted.pair for wanted in found} == {*np.flatnonzero(tries >= 5).tolist()}


def test_what_only_the_rest_shows_is_seen_in_the_log():
    table = MACHINE.table
    first, other = (table.pairs.state == state for state in (0, 1))
    visits = np.where(first | other, 0, table.visits)
    held_out = np.where(other, 0, 7)
    seen = {"visits": visits, "held_out_visits": held_out, "trusted": visits > MACHINE.n_wedge}
    findings = replace(MACHINE, table=replace(table, **seen))
    said = text_of(data_section(findings))
    assert "1 situation has no decision in the log at all" in said
    assert f"{int(other.sum())} were never seen in all of the log" in said
    assert "Decisions in the log … of them in the part that judges" in said
    assert f"Decisions counted {int((visits + held_out).sum()):,} " in said
    (name,) = table.vocabulary.state_name(0)
    share, seen = f"{name} ", 7 * int(first.sum())
    assert re.search(f"{re.escape(share)}[0-9.]+ % {seen} {seen} ", said)
    assert "by the number of times the part of the log that chose shows them" in said
    alone = text_of(data_section(MACHINE))
    assert "part that judges" not in alone
    assert "by the number of times the log shows them" in alone


def test_certificates_that_are_made_where_none_are_named():
    assert DEFAULT_CERTIFICATES == ("stitched", "posterior", "robust")
