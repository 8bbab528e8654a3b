"""Writes sections as one HTML page that needs no other file, always the same bytes.

Every text is escaped by Jinja2; the page may use its own style and script, and ask for nothing.
"""

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from surestep._words import harmless
from surestep.report.pictures import svg
from surestep.sections import Section

LINE_LENGTH = 20_000  # letters of a sentence


def page(title: str, eyebrow: str, sections: Sequence[Section], about: str = "") -> str:
    """Returns a page of these sections; the first has the heading of the page.

    `eyebrow` and `about` stand in smaller letters above the heading.
    """
    template = environment().get_template("templates/page.html")
    return template.render(
        title=title,
        eyebrow=eyebrow,
        about=about,
        sections=sections,
        style=asset("assets/page.css"),
        script=asset("assets/page.js"),
    ).lstrip()


@cache
def environment() -> Environment:
    """Returns the environment of Jinja2: it escapes every text, and a missing name is an error."""
    made = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "svg": svg,
        "fingerprint": fingerprint,
        "label": harmless,
        "line": lambda text: harmless(text, LINE_LENGTH),
    }
    return made


def fingerprint(content: str) -> str:
    """Returns the name that a content security policy has for a script or style."""
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """Returns the text of a file of the report."""
    return (files("surestep.report") / name).read_text("utf-8")
