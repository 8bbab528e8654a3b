"""The report: one page that holds a result and everything around it, for people to read."""

from __future__ import annotations

from surestep.report.html import Element, asset, document, element
from surestep.report.pages.answer import answer_section
from surestep.report.pages.certificate import certificate_section
from surestep.report.pages.certificates import certificates_section
from surestep.report.pages.changes import table_section, top_section
from surestep.report.pages.curves import bounds_section, choices_section
from surestep.report.pages.data import data_section, wanted_section
from surestep.report.pages.record import glossary_section, record_section
from surestep.report.pages.rehearsal import rehearsal_section
from surestep.results.findings import Findings

TITLE = "Policy improvement report"
REHEARSAL_TITLE = "Rehearsal of a policy improvement"


def result_page(findings: Findings) -> str:
    """The report on a result as one HTML page that needs nothing else; always the same bytes."""
    made = (
        answer_section(findings),
        top_section(findings),
        table_section(findings),
        data_section(findings),
        certificate_section(findings),
        certificates_section(findings),
        rehearsal_section(findings),
        bounds_section(findings),
        choices_section(findings),
        wanted_section(findings),
        record_section(findings.record),
        glossary_section(),
    )
    return page(TITLE, [section for section in made if section is not None])


def rehearsal_page(findings: Findings) -> str:
    """The rehearsal of an improvement as a page of its own, with the claims that were rehearsed."""
    made = (rehearsal_section(findings), certificates_section(findings), glossary_section())
    return page(REHEARSAL_TITLE, [section for section in made if section is not None])


def page(title: str, sections: list[Element]) -> str:
    """A page of sections, each of which has an id and begins with a heading."""
    header = element("header", element("p", "surestep", class_="eyebrow"), element("h1", title))
    contents = element(
        "nav", element("ol", map(entry, sections)), class_="contents", aria_label="Contents"
    )
    sheet = element("div", header, contents, element("main", sections), class_="sheet")
    return document(title, [sheet], style=asset("page.css"), script=asset("page.js"))


def entry(section: Element) -> Element:
    """A link to a section, named like its heading."""
    heading = next(child for child in section.children if isinstance(child, Element))
    words = [child for child in heading.children if isinstance(child, str)]
    return element("li", element("a", words, href=f"#{dict(section.attributes)['id']}"))
