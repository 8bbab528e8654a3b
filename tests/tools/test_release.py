"""What a release ships beside code, and the tools that count, try and publish it."""

import re
import shlex
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

import check_wheel
import commit_subjects
import environment
import surestep
import versions
from environment import INTERPRETERS, interpreters
from line_coverage import lines_of
from statements import beyond, number_of_statements
from surestep.cli.main import main
from surestep.io.counts import file as counts
from surestep.model import certificate
from surestep.results import record

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def read_yaml(path):
    return yaml.load((ROOT / path).read_text(encoding="utf-8"), yaml.BaseLoader)  # `on` is no truth


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


def test_the_page_on_upgrading_names_the_formats_of_this_release():
    text = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    assert f"version {record.VERSION} of `run.json`" in text
    assert f"certificates schema version {certificate.SCHEMA_VERSION}" in text
    assert f"counts version {counts.VERSION} ({counts.READ[0]} is read, too)" in text


def test_every_extra_is_tried_by_itself():
    tried = {*check_wheel.TRIES, check_wheel.RESOLVED} - {check_wheel.CORE}
    assert tried == set(PROJECT["optional-dependencies"])
    assert set(versions.EXTRAS) <= tried


def test_pins_are_the_lock_without_its_digests():
    pins = check_wheel.pinned(ROOT / "requirements" / "demo.txt").splitlines()
    assert len(pins) > 10
    assert all(re.match(r"[\w.-]+==[\w.]+( ;.*)?$", pin) for pin in pins), pins


def test_the_policies_that_a_release_refers_to_are_there():
    assert "DeprecationWarning" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert "`surestep --version`" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_verb_is_tried_with_old_and_new_packages(tmp_path):
    tried = [shlex.split(line)[0] for line in versions.COMMANDS.splitlines()]
    assert sorted(tried) == sorted(main.commands)
    folder = versions.log_folder(tmp_path / "log")
    rows = (folder / "pumps.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("episode,")
    assert {row.partition(",")[0] for row in rows[1:]} == {
        str(pump) for pump in range(1, versions.PUMPS + 1)
    }
    assert tomllib.loads((folder / "small.toml").read_text(encoding="utf-8"))["repetitions"] == 2


def test_a_verb_that_fails_fails_its_environment(tmp_path, monkeypatch, capsys):
    """The environment is this one, and one of its commands is wrong."""
    monkeypatch.setattr(versions, "PLACE", tmp_path)
    monkeypatch.setattr(versions, "install", lambda environment, *_: link_programs(environment))
    monkeypatch.setattr(versions, "COMMANDS", "bound --states 0\n")
    name = f"python3.{sys.version_info.minor}"
    monkeypatch.setattr(versions, "interpreters", lambda: {name: sys.executable})
    assert not versions.works(f"{name}-oldest", name, "oldest", tmp_path)
    said = capsys.readouterr().out
    assert said.startswith(f"{name}-oldest: FAILED with 2: surestep bound --states 0\n")
    assert "Missing option" in said


def link_programs(environment):
    environment.mkdir()
    (environment / "bin").symlink_to(Path(sys.executable).parent)


def test_interpreters_that_do_not_run_are_not_found(tmp_path, monkeypatch):
    for name, code in (("python3.12", "exit 127"), ("python3.13", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
    (behind := tmp_path / "versions" / "3.12.1" / "bin").mkdir(parents=True)
    (behind / "python3.12").symlink_to(tmp_path / "python3.13")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreters() == {
        "python3.12": str(behind / "python3.12"),
        "python3.13": str(tmp_path / "python3.13"),
    }


def test_workflows_try_every_python_that_is_promised():
    assert [f"python{version}" for version in PYTHONS] == list(INTERPRETERS)
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    jobs = read_yaml(".github/workflows/test.yml")["jobs"]
    assert jobs["systems"]["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest", "windows-latest"],
        "python": PYTHONS,
    }
    (asked,) = [
        step["with"]["python-version"]
        for step in jobs["versions"]["steps"]
        if "setup-python" in step.get("uses", "")
    ]
    assert sorted(asked.split()) == PYTHONS


def test_actions_are_pinned_and_only_publishing_may_ask_for_an_identity():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = read_yaml(path)
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            expected = {"id-token": "write"} if name == "publish" else None
            assert job.get("permissions") == expected
            for action in [step["uses"] for step in job["steps"] if "uses" in step]:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
    published = read_yaml(".github/workflows/publish.yml")
    assert published["on"] == {"push": {"tags": ["v*"]}}
    assert published["jobs"]["publish"]["environment"]["name"] == "pypi"
    assert published["jobs"]["publish"]["steps"][-1]["uses"].startswith(
        "pypa/gh-action-pypi-publish@"
    )
    kept = published["jobs"]["build"]["steps"][-1]["with"]["path"]
    assert ROOT / kept == check_wheel.PLACE / "dist"


def test_hooks_run_what_make_test_checks_first():
    (local,) = read_yaml(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"] for hook in local["hooks"] if "stages" not in hook]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^test: .*\n(?:\t.*\n)+", recipe, re.MULTILINE)[0]
    checks = recipe.partition("wheel=$$!;")[2].partition(" > .cache/statements.txt")[0]
    assert entries == [" ".join(check.split()) for check in checks.replace("\\\n", "").split("&&")]


@pytest.mark.parametrize(("letters", "code"), [(72, 0), (73, 1)])
def test_a_subject_has_at_most_72_letters(letters, code, tmp_path, monkeypatch, capsys):
    message = tmp_path / "message"
    message.write_text("ü" * letters + "\n\n" + "a body of any width " * 9, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["commit_subjects.py", "--file", str(message)])
    assert commit_subjects.main() == code
    assert ("73 letters, expected at most 72" in capsys.readouterr().err) == bool(code)


def test_lines_that_ran_are_added_up_by_package():
    def file(run, lines):
        return {"summary": {"covered_lines": run, "num_statements": lines}}

    assert lines_of(
        {
            "src/surestep/errors.py": file(3, 4),
            "src/surestep/io/logs/formats.py": file(1, 2),
            "src/surestep/io/read.py": file(1, 2),
        }
    ) == [
        ".               75.0% of      4 lines",
        "io              50.0% of      4 lines",
        "all             62.5% of      8 lines",
    ]


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


@pytest.mark.parametrize("works", [True, False])
def test_packages_come_by_uv_or_where_it_fails_by_pip(works, tmp_path, monkeypatch):
    said = tmp_path / "said"
    for name, result in (("uv", 0 if works else 2), ("python", 0)):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> "{said}"\nexit {result}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(environment, "UV", tmp_path / "uv")
    monkeypatch.setattr(environment, "hold_uv", lambda: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    environment.install(tmp_path, "--no-deps", "numpy")
    first, *then = said.read_text().splitlines()
    assert first.startswith("uv pip install ")
    assert first.endswith(f"--python {tmp_path}/bin/python --no-deps numpy")
    assert then == [
        f"python -m pip --python {tmp_path}/bin/python install --no-compile --no-deps numpy"
    ] * (not works)


def test_uv_is_installed_once_from_its_lock(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(environment, "UV", tmp_path / "lock" / "bin" / "uv")

    def pip(*command):
        asked.append(command)
        (tmp_path / "lock").mkdir()

    monkeypatch.setattr(environment, "run", pip)
    environment.hold_uv()
    environment.hold_uv()
    (command,) = asked
    assert command[-2:] == ("--requirement", str(ROOT / "requirements" / "uv.txt"))
    assert {"--require-hashes", "--no-deps"} <= set(command)
