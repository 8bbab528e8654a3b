"""Elements: text stays text, whatever it looks like, and nothing that loads or runs gets in."""

import unicodedata

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surestep.report.html import document, element, label, written

ANY_TEXT = st.text(st.characters(), max_size=40)  # lone surrogates included
MARKUP = st.sampled_from(
    ["</script>", "<img src=x onerror=alert(1)>", "&amp;", "&lt", "<!--", "]]>", "\"'`", "\x00"]
)
HOSTILE = st.lists(st.one_of(ANY_TEXT, MARKUP), max_size=4).map("".join)


def parsed(markup):
    """The tree of a page, which must be without any error."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parse(markup)


def page_of(*body):
    return document("title", body, style="p { margin: 0 }", script="'use strict';")


def shown(text):
    """What a reader sees of a text: characters that HTML has no room for are replaced."""

    def character(c):
        if ord(c) < 32 and c not in "\t\n":
            return chr(0x2400 + ord(c))
        if c == "\x7f":
            return "\u2421"
        nothing = 0xFDD0 <= ord(c) <= 0xFDEF or ord(c) & 0xFFFE == 0xFFFE
        return "\ufffd" if nothing or unicodedata.category(c) in ("Cc", "Cs") else c

    return "".join(c if c in "\t\n" else character(c) for c in text)


@given(HOSTILE, HOSTILE)
def test_text_and_attributes_come_back_as_they_went_in(text, attribute):
    root = parsed(page_of(element("p", "a", text, element("b", title=attribute))))
    (paragraph,) = root.iter("p")
    assert paragraph.text == shown("a" + text)
    (bold,) = list(paragraph)
    assert bold.attrib == {"title": shown(attribute)}
    inside = ["meta"] * 5 + ["title", "style", "body", "p", "b", "script"]
    assert [node.tag for node in root.iter()] == ["html", "head", *inside]


@given(HOSTILE)
def test_labels_are_isolated_short_and_on_one_line(text):
    (cell,) = parsed(page_of(element("p", label(text)))).iter("p")
    (inside,) = list(cell)
    found = "".join(cell.itertext())
    assert "\n" not in found
    assert "\t" not in found
    assert 0 < len(found) <= 120
    if text:
        assert inside.tag == "bdi"
        expected = shown(text).replace("\n", "\u240a").replace("\t", "\u2409")
        assert found == (expected if len(expected) <= 120 else f"{expected[:119]}…")
    else:
        assert found == "(empty)"


def test_nested_lists_are_flattened_and_none_is_left_out():
    assert written(element("span", "a", None, ["b", [element("i", "c"), None]])) == (
        "<span>ab<i>c</i></span>"
    )


def test_words_become_attributes():
    made = element("input", class_="x", aria_label="y", hidden=True, disabled=False, title=None)
    assert written(made) == '<input class="x" aria-label="y" hidden>'


@pytest.mark.parametrize("tag", ["script", "style", "a b", "", "p>"])
def test_other_elements_are_refused(tag):
    with pytest.raises(ValueError, match="is no element that a page may have"):
        element(tag)


@pytest.mark.parametrize(
    "name", ["onclick", "style", "src", "srcset", "action", "formaction", "a=b"]
)
def test_attributes_that_run_or_load_are_refused(name):
    with pytest.raises(ValueError, match="is no attribute that a page may have"):
        element("p", **{name: "x"})


@pytest.mark.parametrize(
    "address", ["http://example.org", "//example.org", "javascript:x", "", "#"]
)
def test_links_stay_on_the_page(address):
    with pytest.raises(ValueError, match="expected a place on the page"):
        element("a", href=address)
    assert written(element("a", href="#answer")) == '<a href="#answer"></a>'


def test_void_elements_have_no_content():
    with pytest.raises(ValueError, match="has no content"):
        element("input", "x")


@pytest.mark.parametrize("content", ["a</b", "<!-- x"])
def test_a_script_cannot_end_itself(content):
    with pytest.raises(ValueError, match="must not contain"):
        document("t", [], style="", script=content)
