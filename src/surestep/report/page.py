"""The report: one page that holds a result and everything around it, for people to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from surestep.report.html import Element, asset, document, element
from surestep.report.pages.answer import answer_section
from surestep.report.pages.certificates import certificate_section, certificates_section
from surestep.report.pages.changes import table_section, top_section
from surestep.report.pages.checks import checks_section
from surestep.report.pages.curves import bounds_section, choices_section
from surestep.report.pages.data import data_section, wanted_section
from surestep.report.pages.record import glossary_section, record_section
from surestep.report.pages.rehearsal import rehearsal_section
from surestep.results.findings import Findings

TITLE = "Policy improvement report"
REHEARSAL_TITLE = "Rehearsal of a policy improvement"

Section = Callable[[Findings], Element | None]  # None where there is nothing to show
SECTIONS: dict[str, Section] = {  # by the id of the section, in the order of the page
    "answer": answer_section,
    "top": top_section,
    "changes": table_section,
    "data": data_section,
    "checks": checks_section,
    "certificate": certificate_section,
    "certificates": certificates_section,
    "rehearsal": rehearsal_section,
    "bounds": bounds_section,
    "choices": choices_section,
    "wanted": wanted_section,
    "repeat": record_section,
    "words": glossary_section,
}
ON_PAPER = ("answer", "top", "certificate", "rehearsal")  # in short; the rest is in the file
OF_A_REHEARSAL = ("rehearsal", "certificates", "words")  # what a page without a result has


def result_page(findings: Findings) -> str:
    """Returns the report on a result: one HTML page that needs nothing else, always the same."""
    return page(TITLE, SECTIONS, findings)


def rehearsal_page(findings: Findings) -> str:
    """Returns the rehearsal of an improvement as a page, with the claims that were rehearsed."""
    return page(REHEARSAL_TITLE, OF_A_REHEARSAL, findings)


def page(title: str, names: Iterable[str], findings: Findings) -> str:
    """Returns a page of the sections of these names, with a list of contents."""
    made = {name: SECTIONS[name](findings) for name in names}
    sections = {name: section for name, section in made.items() if section is not None}
    header = element("header", element("p", "surestep", class_="eyebrow"), element("h1", title))
    entries = [entry(name, section) for name, section in sections.items()]
    contents = element("nav", element("ol", entries), class_="contents", aria_label="Contents")
    shown = [
        section if name in ON_PAPER else off_paper(section) for name, section in sections.items()
    ]
    left_out = [section for name, section in sections.items() if name not in ON_PAPER]
    main = element("main", shown, in_the_file(left_out), class_="report")
    sheet = element("div", header, contents, main, class_="sheet")
    return document(title, [sheet], style=asset("page.css"), script=asset("page.js"))


def entry(name: str, section: Element) -> Element:
    """Returns a link to a section, named like its heading."""
    return element("li", element("a", heading_of(section), href=f"#{name}"))


def heading_of(section: Element) -> str:
    """Returns the words of the heading of a section, which is its first element."""
    heading = next(child for child in section.children if isinstance(child, Element))
    return "".join(child for child in heading.children if isinstance(child, str))


def off_paper(section: Element) -> Element:
    """Returns the section as one that is read on the screen only."""
    return replace(section, attributes=(*section.attributes, ("data-off-paper", "")))


def in_the_file(sections: Sequence[Element]) -> Element:
    """Returns what only paper says: that there is more, and where."""
    names = ", ".join(f"“{heading_of(section)}”" for section in sections)
    return element(
        "p",
        element("strong", "This is the report in short. "),
        "The file that it was printed from, report.html, has in full what is summarized here, all "
        f"pictures, and the sections {names}.",
        class_="paper ending",
    )
