"""The report on a result, and on a rehearsal: their sections, and their pages."""

from __future__ import annotations

from surestep.report.answer import answer_section
from surestep.report.certificates import certificates_section
from surestep.report.changes import table_section
from surestep.report.checks import checks_section
from surestep.report.data import data_section, wanted_section
from surestep.report.page import page
from surestep.report.record import record_section, words_section
from surestep.report.stress_test import stress_test_section
from surestep.results.findings import Findings
from surestep.sections import Section

TITLE = "Policy improvement report"


def result_sections(findings: Findings) -> list[Section]:
    """Returns all there is to say of a result; the first is for those who read no further."""
    return [
        answer_section(findings),
        *([table_section(findings)] if findings.changes else []),
        data_section(findings),
        checks_section(findings.record.checks),
        certificates_section(findings),
        stress_test_section(findings),
        wanted_section(findings),
        record_section(findings),
        words_section(),
    ]


def result_page(findings: Findings) -> str:
    """Returns the report on a result: one HTML page that needs nothing else, always the same."""
    return page(TITLE, TITLE, result_sections(findings))


def rehearsal_page(findings: Findings) -> str:
    """Returns the rehearsal of an improvement as a page, with the claims that were rehearsed."""
    sections = [
        stress_test_section(findings, folded=False),
        certificates_section(findings),
        words_section(),
    ]
    return page("Rehearsal of a policy improvement", "Stress test", sections)
