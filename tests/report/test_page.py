"""The page and the terminal: the same facts, labels are only text, and nothing is loaded."""

import hashlib
import io
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache

import html5lib
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_certificate,
    with_checks,
    with_many_columns,
    with_many_states,
    with_words,
    without_changes,
)
from support.pump_commands import UNTESTED, run_surestep, write_lines
from surestep.cli.terminal import terminal
from surestep.report.answer import answer_section
from surestep.report.result import rehearsal_page, result_page, result_sections
from surestep.report.terminal import print_sections
from surestep.sections import Bar, Bars, Caption, Item, Key, Section

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
    "tr": set(), "th": {"scope", "class", "data-kind"}, "td": {"class", "data-key", "data-heading"},
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


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples)
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
    certificate = replace(plain.certificates[0], notes=(said,), figures={"n": said})
    root = read(
        result_page(replace(hostile, certificates=(certificate, *hostile.certificates[1:])))
    )
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


PAGES = {
    "machine": lambda: result_page(machine()),
    "unchanged": lambda: result_page(without_changes(machine())),
    "columns": lambda: result_page(with_many_columns(with_checks(gridworld_findings()))),
    "rehearsed": lambda: result_page(rehearsed_findings()),
    "twice": lambda: result_page(claimed_twice(rehearsed_findings())),
    "rehearsal": lambda: rehearsal_page(rehearsed_findings()),
    "many": lambda: result_page(with_many_states(machine(), 1_500, label_length=100)),
    "grouped": lambda: result_page(grouped(gridworld_findings())),
}


def claimed_twice(findings):
    return replace(
        findings,
        certificates=(
            *findings.certificates[:1],
            *findings.certificates,
            *findings.certificates[1:],
        ),
    )


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


@pytest.mark.one_quick
@pytest.mark.parametrize("name", PAGES)
def test_it_is_short_sound_and_asks_for_nothing(name):
    page = PAGES[name]()
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


def test_the_same_page_has_the_same_bytes():
    assert PAGES["rehearsed"]() == PAGES["rehearsed"]()


def printed(sections, width=100, colour=None):
    file = io.StringIO()
    console = terminal(
        file=file, width=width, highlight=False, markup=False, emoji=False, color_system=colour,
        force_terminal=colour is not None,
    )  # fmt: skip
    print_sections(sections, console)
    return file.getvalue()


@pytest.mark.thorough
def test_the_answer_fits_on_a_screen(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rng, rows = np.random.default_rng(3), ["state,action,reward"]
    for treated in rng.random(3000) < 0.5:  # which helps in all of 15 situations
        paid = int(rng.random() < 0.2 + 0.6 * treated)
        rows.append(f"situation {rng.integers(15)},{('wait', 'treat')[int(treated)]},{paid}")
    given = ("--discount", "0", "--ending", "0", "1", *UNTESTED, "-o", tmp_path / "out")
    result = run_surestep("improve", write_lines(tmp_path / "log.csv", rows), *given)
    assert result.exit_code == 0, result.output
    lines = result.stdout[result.stdout.index("Adopt it") :].splitlines()
    assert lines[0] == "Adopt it"
    lines[-1] = lines[-1].replace(str(tmp_path), "")
    assert lines[-1] == "Wrote 6 files into /out. Open the report: /out/report.html"
    assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 25  # as a terminal breaks them
    for findings in (
        with_many_columns(gridworld_findings()),
        gridworld_findings(),
        maintenance_findings(estimated=True),
    ):
        lines = printed([answer_section(findings, 2)]).splitlines()
        assert len(lines) <= 25 - 5  # that `improve` adds
        assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "make",
    [
        maintenance_findings,
        lambda: with_checks(
            with_certificate(gridworld_findings(), standing="proved", lower=0.12345678)
        ),
        rehearsed_findings,
        lambda: without_changes(maintenance_findings()),
    ],
)
def test_page_and_terminal_say_the_same(make):
    findings = make()
    root = html5lib.parse(result_page(findings), namespaceHTMLElements=False)
    page = " ".join("".join(root.find("body").itertext()).split())
    screen = " ".join(printed(result_sections(findings), width=1_000).split())
    answer = answer_section(findings)
    said = [answer.title, *answer.sentences]
    said += [text for key in answer.keys for text in key[:3]]
    folded = []
    for part in answer.parts:
        words = folded if part.folded else said
        words += [part.title, *part.sentences]
        words += [text for item in part.items for text in (item.title, item.text, item.aside)]
    assert len(said) > (8 if findings.changes else 4)
    for text in said:
        assert " ".join(text.split()) in page
        assert " ".join(text.split()) in screen
    for text in folded:
        assert " ".join(text.split()) in page
    assert "(empty)" not in screen


EVIL = st.sampled_from(
    ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\u202eturned", "[bold]markup[/]", "[/]", ":ok:",
     "one\nconfirmed", "back\rover\x7f", "\u2028", "", "\ud800", "x" * 10_000]
)  # fmt: skip


@settings(max_examples=settings.default.max_examples)
@given(st.lists(EVIL, min_size=6, max_size=6), EVIL, EVIL)
def test_labels_are_shown_and_never_obeyed(states, action, column):
    hostile = with_words(
        maintenance_findings(),
        states=tuple((text, str(place)) for place, text in enumerate(states)),
        actions=tuple((action, str(place)) for place in range(3)),
        state_columns=(column, "place"),
        action_columns=("what", "which"),
    )
    hostile = replace(hostile, record=replace(hostile.record, command=action[:80]))
    sections = [section._replace(folded=False) for section in result_sections(hostile)]
    text = printed(sections)
    assert not {*text} & {*map(chr, (*range(10), *range(11, 32), *range(127, 160)))}
    assert not {*text} & {"\u202e", "\u2028", "\ud800"}
    for label in (states[hostile.changes[0].state], column):
        if label.startswith(("[", ":")):
            assert label in text  # as it is: no markup, no picture of a word
    assert max(map(len, text.splitlines())) <= 100


def test_colours_are_beside_words_that_say_the_same():
    section = Section(
        "one",
        "Title",
        keys=[Key("Count", "7", "per day", "bad"), Key("None", "0", "")],
        items=[Item("Broken", "It is.", sign="✗", mood="bad"), Item("Alone")],
        pictures=[Bars(Caption("b", "Bars", "Some."), "x", "pair", [Bar("[a]", 8), Bar("b", 1)])],
        mood="good",
        command="surestep " + "x" * 200,
    )
    text = printed([section, section._replace(folded=True)])
    assert text.count("Title") == 1
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[1:5] == ["  Count: 7 · per day", "  None: 0", "  ✗ Broken: It is.", "  • Alone"]
    assert lines.pop(5) == f"  {section.command}"  # which is copied whole
    assert "".join(lines[5:]) == ""  # pictures are on the page alone
    coloured = printed([section], colour="standard")
    assert "\x1b[1;32mTitle" in coloured
    assert "\x1b[1;31m7" in coloured
