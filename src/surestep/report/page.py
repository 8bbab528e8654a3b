"""Writes sections as one HTML page that needs no other file, always the same bytes.

Jinja2 escapes every text. The page uses its own style and script, and loads nothing else.
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

LINE_LENGTH = 20_000  # letters after which a sentence is cut


def page(
    eyebrow: str, sections: Sequence[Section], about: str = "", title: str | None = None
) -> str:
    """Returns a page of these sections; the first has the heading of the page.

    `eyebrow` and `about` stand in smaller letters above the heading. The tab has the title, or
    else the heading.
    """
    template = environment().get_template("templates/page.html")
    return template.render(
        title=sections[0].title if title is None else title,
        eyebrow=eyebrow,
        about=about,
        sections=sections,
        style=asset("assets/page.css"),
        script=asset("assets/page.js"),
    ).lstrip()


@cache
def environment() -> Environment:
    """Returns the Jinja2 environment, which escapes every text and refuses missing names."""
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
    """Returns the hash by which a content security policy allows a script or style."""
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """Returns the text of a file of the report."""
    return (files("surestep.report") / name).read_text("utf-8")
