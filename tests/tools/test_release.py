"""What a release ships beside code, and the tools that count its lines and set it up."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

import check_wheel
import surestep
from environment import SETS, lock_of, parts_of
from statements import beyond, number_of_statements

ROOT = Path(__file__).parents[2]


def test_the_citation_is_of_this_version_and_names_the_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert str(cited["version"]) == surestep.__version__
    paper = cited["preferred-citation"]
    assert paper["title"].startswith("More for Less")
    assert [author["family-names"] for author in paper["authors"]] == [
        *("Wienhöft", "Suilen", "Simão", "Dubslaff", "Baier", "Jansen")
    ]
    for entry in (cited, paper):
        assert {"authors", "title", "type"} <= entry.keys()


def test_the_changelog_goes_by_version_newest_first():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert len(headings) == len(re.findall("^## ", text, re.MULTILINE))
    assert headings[0] in ("Unreleased", surestep.__version__)
    released = [tuple(map(int, name.split("."))) for name in headings if name != "Unreleased"]
    assert released == sorted(set(released), reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def test_every_extra_is_tried_by_itself():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tried = {*check_wheel.TRIES, check_wheel.RESOLVED} - {check_wheel.CORE}
    assert tried == set(project["optional-dependencies"])


def test_pins_are_the_lock_without_its_digests():
    pins = check_wheel.pinned(ROOT / "requirements" / "demo.txt").splitlines()
    assert len(pins) > 10
    assert all(re.match(r"[\w.-]+==[\w.]+( ;.*)?$", pin) for pin in pins), pins


def test_the_policies_that_a_release_refers_to_are_there():
    assert "DeprecationWarning" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert "surestep --version --json" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


TEXT = """import math


# A remark.
def area(radius):
    square = (
        radius**2
    )
    return math.pi * square
"""


def test_statements_are_counted_however_they_are_laid_out():
    assert number_of_statements(TEXT) == 4


def test_packages_above_their_budget_are_named():
    statements = Counter({".": 5, "room": 14, "room/small": 3, "hall": 7})
    assert beyond(statements, {".": 5, "room": 17, "hall": 7}) == []
    assert beyond(statements, {".": 5, "room": 14, "room/small": 3, "hall": 7}) == []
    (fault,) = beyond(statements, {".": 5, "room": 16, "hall": 7})
    assert fault == "room has 17 statements, its budget is 16"
    assert len(beyond(statements, {".": 4, "room": 17, "cellar": 9})) == 3  # over, gone, without


@pytest.mark.parametrize("packages", SETS)
def test_every_package_is_in_one_part_with_its_hashes(packages):
    lock = lock_of(packages).read_text(encoding="utf-8")
    expected = [line for line in lock.splitlines() if not line.startswith("#")]
    parts = parts_of(lock_of(packages), 2)
    assert sorted(line for part in parts for line in part.splitlines()) == sorted(expected)
    for part in parts:
        assert part[0].isalnum()
        assert part.endswith("\n")
        for above, line in zip(part.splitlines(), part.splitlines()[1:], strict=False):
            assert line.startswith(" ") == above.endswith("\\")
    assert abs(parts[0].count("==") - parts[1].count("==")) <= 1
