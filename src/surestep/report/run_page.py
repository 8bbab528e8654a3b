"""The page of a run: its curves, its tables and its settings, for people to read."""

from __future__ import annotations

from collections.abc import Mapping

from surestep.experiments.findings import ClaimFindings, RunFindings
from surestep.report.html import Element, asset, document, element, label
from surestep.report.page import entry
from surestep.report.pages.run_claims import (
    CLAIM_GLOSSARY,
    claim_curves_section,
    claim_tables_section,
    short_claims_section,
)
from surestep.report.pages.run_curves import curves_section
from surestep.report.pages.run_settings import settings_section
from surestep.report.pages.run_tables import (
    GLOSSARY,
    short_section,
    tables_section,
    words_section,
)


def run_page(findings: RunFindings) -> str:
    """Returns the page of a run: one HTML file that needs nothing else, always the same."""
    return page_of(
        findings.setup.title,
        {
            "short": short_section(findings),
            "curves": curves_section(findings),
            "tables": tables_section(findings),
            "settings": settings_section(findings.setup),
            "words": words_section(GLOSSARY),
        },
    )


def claims_page(findings: ClaimFindings) -> str:
    """Returns the page of a run with certifiers, in the same form."""
    certifiers = list(dict.fromkeys(one.certifier for one in findings.in_short))
    return page_of(
        findings.setup.title,
        {
            "short": short_claims_section(findings),
            "curves": claim_curves_section(findings),
            "tables": claim_tables_section(findings),
            "settings": settings_section(findings.setup, certifiers),
            "words": words_section(CLAIM_GLOSSARY),
        },
    )


def page_of(title: str, sections: Mapping[str, Element]) -> str:
    """Returns a page of sections by their ids, with a list of contents."""
    header = element(
        "header",
        element("p", "surestep", class_="eyebrow"),
        element("h1", label(title)),
    )
    entries = [entry(name, section) for name, section in sections.items()]
    contents = element("nav", element("ol", entries), class_="contents", aria_label="Contents")
    main = element("main", list(sections.values()), class_="run")
    sheet = element("div", header, contents, main, class_="sheet")
    return document(
        title,
        [sheet],
        style=asset("page.css") + asset("run.css"),
        script=asset("page.js") + asset("run.js"),
    )
