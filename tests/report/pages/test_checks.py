"""Checks on a page: a line each, in plain words, with its picture and its numbers."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import html5lib
import pytest

from findings import maintenance_findings, with_checks
from surestep.checks import Check, CheckCode
from surestep.checks.check import WhyUnchecked
from surestep.report.page import result_page
from surestep.report.pages.checks import check_line, returns_figure
from surestep.report.words import checks as words_of
from surestep.report.words.checks import TITLES, check_words, noticed_words, summary_words


@pytest.fixture(scope="module")
def checks():
    return {check.code: check for check in with_checks(maintenance_findings()).record.checks}


@pytest.fixture(scope="module")
def section():
    """The section of checks of a page whose states have names that look like markup."""
    page = result_page(with_checks(maintenance_findings(), "<script>alert(1)</script>"))
    root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
    (found,) = (node for node in root.iter("section") if node.get("id") == "checks")
    return found


def lines_of(section):
    return [node for node in section.iter("li") if "check" in (node.get("class") or "").split()]


def test_every_assumption_has_a_line_with_its_sign_and_its_words(section, checks):
    lines = lines_of(section)
    assert len(lines) == len(get_args(CheckCode)) == len(checks)
    for line, check in zip(lines, checks.values(), strict=True):
        text = " ".join("".join(line.itertext()).split())
        assert check.outcome in line.get("class").split()
        assert TITLES[check.code] in text
        said = check_words(check).split(", such as ")[0]  # names are others there
        assert " ".join(said.split()) in text


def test_tests_have_a_small_picture_and_the_others_a_wide_one(section):
    pictures = [len([*line.iter("{http://www.w3.org/2000/svg}svg")]) for line in lines_of(section)]
    assert pictures == [1, 0, 1, 1, 0, 1, 1, 1, 1]
    assert not [*section.iter("script")]


def test_how_many_fail_is_said_first(checks):
    assert summary_words([*checks.values()]) == "4 of 6 assumptions failed; 3 could not be tested."
    passed = [check for check in checks.values() if check.outcome == "passed"]
    assert summary_words(passed) == "2 assumptions were tested, and nothing speaks against them."
    assert summary_words([checks["markov-reward"]]) == "None of the assumptions could be tested."


def test_words_say_what_would_have_been_noticed(checks):
    assert "5\u202f% of all next states" in noticed_words(checks["markov-next-state"])
    assert noticed_words(replace(checks["markov-next-state"], noticed=None)) == ""
    assert noticed_words(checks["enough-data"]) == ""


def test_what_no_log_of_that_size_would_show_gets_no_tick():
    check = Check.unchecked("drift-next-state", "too-small")
    assert check_words(check).startswith("Not tested: the log is too small")
    line = str(check_line(check))
    assert "(not tested)" in line
    assert "✓" not in line
    assert summary_words([check]) == "None of the assumptions could be tested."


def test_returns_outside_of_what_luck_does_are_red(checks):
    check = checks["model-returns"]
    assert "900 rows, which change places within their states" in words_of.test_words(check)
    assert noticed_words(check) == "A difference of 0.2 would have been noticed in each of them."
    inside = replace(check, picture=check.picture[1:])
    red = ["vermilion" in str(returns_figure(drawn)) for drawn in (check, inside)]
    assert red == [True, False]


def test_hidden_causes_are_told_in_words(checks):
    words = check_words(checks["hidden-causes"])
    assert "by more than 4\u202f% at every step" in words
    assert "from 0.063\u202f% on" in words


def test_places_that_the_log_hardly_knows_are_named(checks):
    words = check_words(checks["enough-data"]).replace("\u202f", " ")
    assert "60 % in 2 states of open bins (31 decisions), such as 'ward'." in words
    assert words_of.test_words(checks["enough-data"]).startswith("It fails where more than half")


def test_where_nothing_is_scarce_the_least_known_of_the_busiest_states_is_named(checks):
    nowhere = dict.fromkeys(checks["enough-data"].figures, 0.0)
    words = check_words(replace(checks["enough-data"], outcome="passed", figures=nowhere))
    assert "least of all in 'ward', with 60\u202f% of its time and 2" in words


@pytest.mark.parametrize("why", get_args(WhyUnchecked))
@pytest.mark.parametrize("code", ["hidden-causes", "model-returns"])
def test_what_is_not_checked_has_a_reason(code, why):
    assert check_words(Check.unchecked(code, why)).endswith(".")


def test_the_docs_explain_each_code():
    docs = (Path(__file__).parents[3] / "docs" / "checks.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?`) \|", docs, re.M)
    assert re.findall("`(.*?)`", " ".join(cells)) == [*get_args(CheckCode)]
