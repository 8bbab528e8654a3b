"""What a release ships beside code: how to cite it, what changed, what is promised."""

import re
import tomllib
from pathlib import Path

import yaml

import check_wheel
import surestep

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
