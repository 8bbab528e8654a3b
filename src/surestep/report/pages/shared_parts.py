"""Parts that several sections of the report show in the same way."""

from __future__ import annotations

from surestep.report.html import Element, Node, element, label
from surestep.report.words.rehearsal import no_rehearsal_words
from surestep.results.findings import Findings
from surestep.results.table import PolicyTable

ESTIMATED = "current policy estimated"


def estimated_tag(findings: Findings) -> Element | None:
    """Returns the mark of an estimated π_b."""
    return element("span", ESTIMATED, class_="tag") if findings.behavior_is_estimated else None


def action_words(table: PolicyTable, pair: int) -> Element:
    """Returns the action of a pair in the users' own words."""
    texts = table.vocabulary.action_name(int(table.pairs.action[pair]))
    parts: list[Node] = []
    for text in texts:
        parts += [", " if parts else None, label(text)]
    return element("span", parts)


def none_made(findings: Findings, *more: Node) -> Element:
    """Returns a box that says why there is no stress test, and more in the same paragraph."""
    loud, words = no_rehearsal_words(findings.no_rehearsal)
    return element(
        "div",
        element("p", loud, class_="loud"),
        element("p", words, *more),
        class_=f"box {'caution' if findings.awaits_stress_test else 'plain'}",
    )
