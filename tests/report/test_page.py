"""The page: labels are text and nothing else, nothing is loaded, and it is short until unfolded."""

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache

import html5lib
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_checks,
    with_many_states,
    with_words,
    without_changes,
)
from surestep.report.result import rehearsal_page, result_page

LABELS = st.text(st.characters(), max_size=30) | st.sampled_from([
    "", "<script>alert(1)</script>", "</td></tr></table><h1>gone", "\"' onmouseover=alert(1) x='",
    '=cmd|" /C calc"!A0', "\u202eright to left\u2066", "nul \x00 and \x1b[31m",
    "line\r\nbreak\ttab", "&amp; &lt; &#60; &copy {{ 7 * 7 }} {% raw %}", "x" * 10_000,
    "very long " * 1_000, "\ud800 half", "\ufffe\U0010ffff\x85", "-->]]><![CDATA[",
])  # fmt: skip
ELEMENTS = {
    "html": {"lang"}, "head": set(), "meta": {"charset", "http-equiv", "content", "name"},
    "title": {"id"}, "style": set(), "script": set(), "body": set(), "main": {"class"},
    "section": {"id", "class"}, "details": {"id"}, "summary": set(), "h1": set(), "h2": set(),
    "h3": set(), "h4": set(), "p": {"class"}, "bdi": set(), "ul": {"class"}, "li": {"class"},
    "span": {"class", "aria-hidden"}, "i": {"class"}, "div": {"class", "role", "aria-labelledby",
    "tabindex"}, "dl": {"class"}, "dt": set(), "dd": set(), "pre": set(), "code": set(),
    "table": {"id", "data-sortable"}, "caption": {"id"}, "thead": set(), "tbody": set(),
    "tr": set(), "th": {"scope", "class", "data-kind"}, "td": {"class", "data-key"},
    "figure": set(), "figcaption": set(), "strong": set(),
    "svg": {"viewBox", "role", "class", "aria-labelledby"}, "desc": {"id"}, "g": {"transform"},
    "rect": {"x", "y", "width", "height", "class"}, "text": {"x", "y", "class"},
    "path": {"d", "class"}, "circle": {"cx", "cy", "r", "class"},
}  # fmt: skip


@cache
def machine():
    return with_checks(maintenance_findings())


def read(page):
    """The tree of a page, which is without any error and has nothing that should not be there."""
    page.encode()
    root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
    nodes = [node for node in root.iter() if isinstance(node.tag, str)]
    for node in nodes:
        node.tag = node.tag.rpartition("}")[2]
        assert {*node.keys()} <= ELEMENTS[node.tag], node.tag
    names = [node.get("id") for node in nodes if node.get("id")]
    assert len(names) == len({*names})
    for node in nodes:
        assert {*(node.get("aria-labelledby") or "").split()} <= {*names}
        if node.tag == "svg":
            assert [part.tag for part in node[:2]] == ["title", "desc"]
            assert all((part.text or "").strip() for part in node[:2])
    return root


def words(node, unfolded=False):
    """The words of a node; with `unfolded`, only those that are read without a click."""
    if node.tag in ("style", "script", "title", "desc") or not isinstance(node.tag, str):
        return []
    found = (node.text or "").split()
    for part in node:
        if not (unfolded and node.tag == "details" and part.tag != "summary"):
            found += words(part, unfolded)
        found += (part.tail or "").split()
    return found


@settings(max_examples=25)
@given(
    st.lists(LABELS, min_size=6, max_size=6, unique=True),
    st.lists(LABELS, min_size=3, max_size=3, unique=True),
    LABELS,
    LABELS,
)
def test_labels_of_any_kind_are_text_and_nothing_else(states, actions, column, name):
    plain = machine()
    record = replace(
        plain.record,
        inputs=(replace(plain.record.inputs[0], name=name),),
        command=name,
        parameters=msgspec.structs.replace(plain.record.parameters, algorithm={name: name}),
        versions={name: name},
    )
    checks = with_checks(plain, name).record.checks
    hostile = with_words(
        replace(plain, record=replace(record, checks=checks)),
        states=tuple((text,) for text in states),
        actions=tuple((text,) for text in actions),
        state_columns=(column,),
    )
    said = name.encode("utf-8", "replace").decode() or "x"  # a certificate refuses anything else
    certificate = replace(plain.certificate, notes=(said,), figures={"n": said})
    root = read(result_page(replace(hostile, certificate=certificate)))
    assert [node.tag for node in root.find(".//table[@id='situations']").iter()] == plain_tags()
    shown = "".join(root.find(".//table[@id='situations']/tbody/tr/td").itertext())
    assert len(shown) <= 120
    assert shown.strip("\t\n\r") == shown
    text = " ".join("".join(root.find("body").itertext()).split(" "))
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
    )


@cache
def plain_tags():
    """The elements of the table of situations with plain labels."""
    root = read(result_page(machine()))
    return [node.tag for node in root.find(".//table[@id='situations']").iter()]


def pages():
    grid = gridworld_findings()
    columns = tuple(f"measurement number {i}" for i in range(20))
    states = tuple(tuple(f"value {s} of {name}" for name in columns) for s in range(25))
    same = rehearsed_findings()
    return {
        "machine": result_page(machine()),
        "unchanged": result_page(without_changes(machine())),
        "columns": result_page(with_words(with_checks(grid), state_columns=columns, states=states)),
        "rehearsed": result_page(same),
        "twice": result_page(replace(same, others=(same.certificate, *same.others, *same.others))),
        "rehearsal": rehearsal_page(same),
        "many": result_page(with_many_states(with_checks(grid), 1_500, label_length=100)),
        "grouped": result_page(grouped(grid)),
    }


def grouped(findings):
    """Findings in which one advice holds in thousands of situations."""
    many = with_many_states(findings, 1_500)
    table = many.table
    actions = len(table.vocabulary.actions)
    one = table.probability[-actions:]
    probability = table.probability.copy().reshape(-1, actions)
    probability[1::2] = one
    labels = tuple((f"situation {s}", "same") for s in range(1_500))
    return with_words(
        replace(many, table=replace(table, probability=probability.ravel())), states=labels
    )


@pytest.fixture(scope="module")
def made():
    return pages()


@pytest.mark.parametrize(
    "name",
    ["machine", "unchanged", "columns", "rehearsed", "twice", "rehearsal", "many", "grouped"],
)
def test_it_is_short_sound_and_asks_for_nothing(name, made):
    page = made[name]
    root = read(page)
    assert 20 < len(words(root, unfolded=True)) <= 1_500
    (policy,) = (m.get("content") for m in root.iter("meta") if m.get("http-equiv"))
    for tag in ("style", "script"):
        (node,) = root.iter(tag)
        digest = b64encode(hashlib.sha256(node.text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|\bsrc=|\bhref=", page.split("<main")[0])
    assert len([*root.iter("h1")]) == 1


def test_the_same_page_has_the_same_bytes(made):
    assert result_page(rehearsed_findings()) == made["rehearsed"]
