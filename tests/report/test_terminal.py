"""The terminal: the same facts as the page, in few lines, and no label is obeyed."""

import io
from dataclasses import replace
from functools import cache

import html5lib
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
    with_words,
    without_changes,
)
from support.pump_commands import UNTESTED, run_surestep, write_lines
from surestep.cli.improve import SHOWN_CHANGES
from surestep.cli.terminal import terminal
from surestep.report.answer import answer_section
from surestep.report.result import result_page, result_sections
from surestep.report.terminal import print_sections
from surestep.sections import Bar, Bars, Caption, Item, Key, Section


def printed(sections, width=100, colour=None):
    file = io.StringIO()
    console = terminal(
        file=file, width=width, highlight=False, markup=False, emoji=False, color_system=colour,
        force_terminal=colour is not None,
    )  # fmt: skip
    print_sections(sections, console)
    return file.getvalue()


@cache
def machine():
    return maintenance_findings()


@cache
def wide():
    """Findings of many columns."""
    columns = tuple(f"measurement number {i}" for i in range(20))
    states = tuple(tuple(f"value {s} of {name}" for name in columns) for s in range(25))
    return with_words(gridworld_findings(), state_columns=columns, states=states)


def test_the_answer_fits_on_a_screen(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rng, rows = np.random.default_rng(3), ["state,action,reward"]
    for treated in rng.random(3000) < 0.5:  # which helps in all of 15 situations
        paid = int(rng.random() < 0.2 + 0.6 * treated)
        rows.append(f"situation {rng.integers(15)},{('wait', 'treat')[int(treated)]},{paid}")
    given = ("--discount", "0.9", "--ending", "0", "1", *UNTESTED, "-o", tmp_path / "out")
    result = run_surestep("improve", write_lines(tmp_path / "log.csv", rows), *given)
    assert result.exit_code == 0, result.output
    lines = result.stdout[result.stdout.index("Adopt it") :].splitlines()
    assert lines[0] == "Adopt it"
    lines[-1] = lines[-1].replace(str(tmp_path), "")
    assert lines[-1] == "Wrote 6 files into /out. Open the report: /out/report.html"
    assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 25  # as a terminal breaks them
    for findings in (wide(), gridworld_findings(), maintenance_findings(estimated=True)):
        lines = printed([answer_section(findings, SHOWN_CHANGES)]).splitlines()
        assert len(lines) <= 25 - 5  # that `improve` adds
        assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "make",
    [
        lambda: machine(),
        lambda: with_checks(
            with_certificate(gridworld_findings(), standing="proved", lower=0.12345678)
        ),
        rehearsed_findings,
        lambda: without_changes(machine()),
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
    for part in answer.parts:
        said += [part.title, *part.sentences]
        said += [text for item in part.items for text in (item.title, item.text, item.aside)]
    assert len(said) > 8
    for text in said:
        assert " ".join(text.split()) in page
        assert " ".join(text.split()) in screen
    assert "(empty)" not in screen


EVIL = st.sampled_from(
    ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\u202eturned", "[bold]markup[/]", "[/]", ":ok:",
     "one\nconfirmed", "back\rover\x7f", "\u2028", "", "\ud800", "x" * 10_000]
)  # fmt: skip


@settings(max_examples=25)
@given(st.lists(EVIL, min_size=6, max_size=6), EVIL, EVIL)
def test_labels_are_shown_and_never_obeyed(states, action, column):
    hostile = with_words(
        machine(),
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
    assert lines[5].split() == ["[a]", "█" * 32, "8", "pairs"]
    assert lines[6].split() == ["b", "█" * 4, "1", "pair"]
    coloured = printed([section], colour="standard")
    assert "\x1b[1;32mTitle" in coloured
    assert "\x1b[1;31m7" in coloured
