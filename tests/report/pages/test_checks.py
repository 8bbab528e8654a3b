"""Checks on a page: a line each, in plain words, with its picture and its numbers."""

from dataclasses import replace

import html5lib
import pytest
from surestep.report.pages.checks import check_line, returns_figure

from findings import maintenance_findings, with_checks
from surestep.checks import Check, says, title
from surestep.report.page import result_page


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
    assert len(lines) == len(checks)
    for line, check in zip(lines, checks.values(), strict=True):
        text = " ".join("".join(line.itertext()).split())
        assert check.outcome in line.get("class").split()
        assert title(check) in text
        assert " ".join(says(check).split()) in text


def test_tests_have_a_small_picture_and_the_others_a_wide_one(section):
    pictures = [len([*line.iter("{http://www.w3.org/2000/svg}svg")]) for line in lines_of(section)]
    assert pictures == [1, 0, 1, 1, 0, 1, 1, 1, 1]
    assert not [*section.iter("script")]


def test_what_no_log_of_that_size_would_show_gets_no_tick():
    check = Check.unchecked("drift-next-state", "too-small")
    line = str(check_line(check))
    assert "(not tested)" in line
    assert "✓" not in line


def test_returns_outside_of_what_luck_does_are_red(checks):
    check = checks["model-returns"]
    inside = replace(check, picture=check.picture[1:])
    red = ["vermilion" in str(returns_figure(drawn)) for drawn in (check, inside)]
    assert red == [True, False]
