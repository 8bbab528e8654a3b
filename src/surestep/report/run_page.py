"""The page of a run: its curves, its tables and its settings, for people to read."""

from __future__ import annotations

from collections.abc import Callable

from surestep.experiments.findings import RunFindings
from surestep.report.html import Element, asset, document, element, label
from surestep.report.page import entry
from surestep.report.pages.run_curves import curves_section
from surestep.report.pages.run_settings import settings_section
from surestep.report.pages.run_tables import short_section, tables_section, words_section

SECTIONS: dict[str, Callable[[RunFindings], Element]] = {  # by id, in the order of the page
    "short": short_section,
    "curves": curves_section,
    "tables": tables_section,
    "settings": settings_section,
    "words": words_section,
}


def run_page(findings: RunFindings) -> str:
    """Returns the page of a run: one HTML file that needs nothing else, always the same."""
    sections = {name: section(findings) for name, section in SECTIONS.items()}
    header = element(
        "header",
        element("p", "surestep", class_="eyebrow"),
        element("h1", label(findings.title)),
    )
    entries = [entry(name, section) for name, section in sections.items()]
    contents = element("nav", element("ol", entries), class_="contents", aria_label="Contents")
    main = element("main", list(sections.values()), class_="run")
    sheet = element("div", header, contents, main, class_="sheet")
    return document(
        findings.title,
        [sheet],
        style=asset("page.css") + asset("run.css"),
        script=asset("page.js") + asset("run.js"),
    )
