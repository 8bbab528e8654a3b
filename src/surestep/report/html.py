"""HTML as values: pages are trees of elements, and text becomes markup in one place only.

A string in the tree is always text, so a label that looks like markup stays a label. Addresses
other than places on the page, handlers and inline styles cannot be written at all; the page's own
policy (`document`) forbids the browser to follow any.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
PLACE = re.compile(r"#[a-z][a-z0-9-]*")
VOID = frozenset({"br", "col", "hr", "input", "meta"})
RAW = frozenset({"script", "style"})  # their content is no text; only `document` makes them
ADDRESSES = frozenset({"action", "data", "formaction", "poster", "src", "srcset"})
ON_A_LINE = frozenset(
    {"body", "div", "figure", "h1", "h2", "h3", "head", "li", "p", "section", "style", "tr", "ul"}
)
SHORTENED = 120  # characters of a label that a page shows

# What HTML has no room for: control characters get their pictures, the rest the replacement mark.
UNWRITABLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0)), "\ufffd"),
    **{plane << 16 | code: "\ufffd" for plane in range(17) for code in (0xFFFE, 0xFFFF)},
}
IN_TEXT = UNWRITABLE | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
IN_ATTRIBUTE = IN_TEXT | {ord('"'): "&quot;"}


@dataclass(frozen=True, slots=True)
class Element:
    """An element of HTML or SVG; its strings are text, whatever they look like."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Element | str, ...]


Node = Element | str | None | Iterable["Node"]


def element(tag: str, *children: Node, **attributes: str | float | bool | None) -> Element:
    """Returns an element with its children; None is left out, and lists are flattened.

    Attributes are words: `class_` is class, `aria_label` aria-label. True writes the bare name,
    False and None nothing.
    """
    if not NAME.fullmatch(tag) or tag in RAW:
        raise ValueError(f"{tag!r} is no element that a page may have")
    written = tuple(
        (name, "" if value is True else str(value))
        for name, value in ((attribute_name(word), value) for word, value in attributes.items())
        if value is not None and value is not False
    )
    for name, text in written:
        check_attribute(name, text)
    if tag in VOID and children:
        raise ValueError(f"{tag} has no content")
    return Element(tag, written, tuple(flattened(children)))


@cache
def attribute_name(word: str) -> str:
    """Returns the attribute of a Python word: `class_` is class, `aria_label` aria-label."""
    return word.rstrip("_").replace("_", "-")


def check_attribute(name: str, text: str) -> None:
    """Refuses what could run code, load something or be dropped by the page's own policy."""
    if not NAME.fullmatch(name) or name.startswith("on") or name == "style" or name in ADDRESSES:
        raise ValueError(f"{name!r} is no attribute that a page may have")
    if name == "href" and not PLACE.fullmatch(text):
        raise ValueError(f"href is {text!r}, expected a place on the page, like #answer")


def flattened(nodes: Iterable[Node]) -> Iterator[Element | str]:
    """Yields the elements and texts of nested lists, in order."""
    for node in nodes:
        if isinstance(node, str | Element):
            yield node
        elif node is not None:
            yield from flattened(node)


def label(text: str) -> Element:
    """Returns a name from the data, shortened; line ends are shown, direction marks kept inside."""
    shown = text.translate({9: "\u2409", 10: "\u240a"})
    if not shown:
        return element("span", "(empty)", class_="empty")
    if len(shown) > SHORTENED:
        shown = f"{shown[: SHORTENED - 1]}…"
    return element("bdi", shown)


# ---- writing ----------------------------------------------------------------------------------


def written(root: Element) -> str:
    """Returns the markup of an element."""
    parts: list[str] = []
    write(root, parts)
    return "".join(parts)


def write(node: Element | str, parts: list[str]) -> None:
    """Adds the markup of a node to the parts: the only place where text becomes markup."""
    if isinstance(node, str):
        parts.append(node.translate(IN_TEXT))
        return
    parts.append(f"<{node.tag}")
    for name, text in node.attributes:
        parts.append(f' {name}="{text.translate(IN_ATTRIBUTE)}"' if text else f" {name}")
    parts.append(">")
    if node.tag in RAW:
        parts += map(checked_raw, node.children)
    else:
        for child in node.children:
            write(child, parts)
    if node.tag not in VOID:
        parts.append(f"</{node.tag}>")
    if node.tag in ON_A_LINE:
        parts.append("\n")


def checked_raw(content: Element | str) -> str:
    """Returns the content of a script or style; refuses what could end it."""
    if isinstance(content, Element) or "</" in content or "<!--" in content:
        raise ValueError("a script or style must not contain elements, '</' or '<!--'")
    return content


def document(title: str, body: Sequence[Node], *, style: str, script: str) -> str:
    """Returns a whole page, which may use its own style and script, and ask for nothing else."""
    policy = (
        f"default-src 'none'; style-src '{fingerprint(style)}'; script-src '{fingerprint(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        Element("style", (), (style,)),
    )
    content = element("body", body, Element("script", (), (script,)))
    return f"<!DOCTYPE html>\n{written(element('html', head, content, lang='en'))}\n"


def fingerprint(content: str) -> str:
    """Returns the name that a content security policy has for a script or style."""
    return f"sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def asset(name: str) -> str:
    """Returns the text of a file in report/assets."""
    return (files("surestep.report") / "assets" / name).read_text("utf-8")
