"""`surestep watch` as people and schedulers call it."""

import csv
import hashlib
import json
import shlex
import shutil

import pytest
from click.testing import CliRunner

from surestep.cli.main import main

ROWS = [("mild", "wait", 1), ("mild", "treat", 0), ("severe", "wait", 0), ("severe", "treat", 1)]
HEAD = ("case", "step", "state", "action", "reward")


def write(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A result, its log, and rows after it: as good as before, and worse from row 60 on."""
    folder = tmp_path_factory.mktemp("watch")
    write(folder / "log.csv", [(e, 0, *ROWS[e % 4]) for e in range(240)])
    advised = [ROWS[0], ROWS[3]]
    write(folder / "new.csv", [(e, 0, *advised[e % 2]) for e in range(120)])
    falls = [(e, 0, *advised[e % 2][:2], int(e < 60)) for e in range(120)]
    write(folder / "falls.csv", falls)
    write(folder / "rich.csv", [(1, 0, "mild", "wait", 9)])
    write(folder / "empty.csv", [])
    words = shlex.split("--episode case --ends complete --discount 0 --ending 0 1 --worlds 0 -o")
    done = CliRunner().invoke(
        main, ["improve", str(folder / "log.csv"), *words, str(folder / "result")]
    )
    assert done.exit_code == 0, done.output
    return folder


def run(folder, *words):
    words = [str(folder / word) if "." in str(word) or word == "result" else word for word in words]
    return CliRunner().invoke(main, ["watch", *words])


def test_no_alarm_ends_with_0_and_writes_a_page(folder):
    done = run(folder, "result", "new.csv", "-o", "new.html")
    assert done.exit_code == 0, done.output
    assert "No alarm after 120 episodes" in done.output
    assert "120 decisions are as advised" in done.output
    assert "No alarm after 120 episodes" in (folder / "new.html").read_text()


def test_an_alarm_ends_with_1(folder):
    done = run(folder, "result", "falls.csv", "-o", "falls.html")
    assert done.exit_code == 1
    assert "Alarm: the new policy is no longer as good" in done.output
    assert "go back to that" in " ".join(done.output.split())


@pytest.mark.thorough
def test_json_is_the_whole_answer_and_the_page_is_written_too(folder):
    done = run(folder, "result", "falls.csv", "--json", "-o", "json.html")
    assert done.exit_code == 1
    content = json.loads(done.stdout)
    assert content["alarm"] is True
    assert content["episodes"] == 120
    assert (folder / "json.html").is_file()


@pytest.mark.thorough
def test_the_same_command_writes_the_same_bytes(folder):
    pages = []
    for _ in range(2):
        run(folder, "result", "falls.csv", "-o", "again.html")
        pages.append((folder / "again.html").read_bytes())
    assert pages[0] == pages[1]
    for name in ("falls.csv", "result/run.json"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest().encode() in pages[0]


@pytest.mark.thorough
def test_the_old_log_is_found_beside_the_result_or_named(folder, tmp_path):
    (folder / "log.csv").rename(tmp_path / "log.csv")
    try:
        done = run(folder, "result", "falls.csv", "-o", "lost.html")
        assert "Not tested: the level of former practice" in done.output
        assert "Not tested: the old log is not there. Name it (--log)." in done.output
        named = run(folder, "result", "falls.csv", "--log", tmp_path / "log.csv", "-o", "x.html")
        assert named.exit_code == 1
        assert "Not tested: the old log" not in named.output
    finally:
        (tmp_path / "log.csv").rename(folder / "log.csv")


@pytest.mark.thorough
def test_without_any_level_it_is_no_watch(folder, tmp_path):
    """The result believes and proves nothing, and its log is gone: the exit code is 2, not 0."""
    words = shlex.split("--episode case --ends complete --discount 0 --ending 0 1 --worlds 0")
    given = ["improve", str(folder / "log.csv"), *words, "--kind", "robust", "-o"]
    CliRunner().invoke(main, [*given, str(tmp_path / "weak")])
    new = str(folder / "new.csv")
    done = CliRunner().invoke(
        main, ["watch", str(tmp_path / "weak"), new, "-o", f"{tmp_path}/x.html"]
    )
    assert done.exit_code == 2
    assert "Nothing is watched: there is no level; name the old log (--log)." in done.output
    assert "Not watched: there is no level to compare with" in done.output


def test_a_log_of_the_same_name_with_other_rows_is_not_taken_for_it(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.csv", [(e, 0, *ROWS[0]) for e in range(240)])
    done = run(folder, "result", "falls.csv", "-o", "other.html")
    assert done.exit_code == 1  # by the one beside the result


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nowhere", "new.csv"], "holds no result"),
        (["result", "nowhere.csv"], "nowhere.csv"),
        (["result", "empty.csv"], "empty.csv"),
        (["result", "rich.csv"], "returned 9, expected at most 1, as was declared"),
        (["result", "new.csv", "--within", "0"], "--within"),
        (["result", "new.csv", "--alpha", "2"], "alpha is "),
        (["result", "new.csv", "--alpha", "often"], "--alpha"),
        (["result", "new.csv", "--seasons", "999"], "seasons is 999, expected 1 to 240"),
        (["result", "new.csv", "--holdout", "arm", "before"], "there is no column 'arm'"),
        (["result", "new.csv", "--holdout", "state", "gone"], "'gone' in no episode"),
        (["result", "new.csv", "--pending", "open"], "there is no column 'open'"),
        (["result", "new.csv", "--time", "day"], "day"),
        (["result", "new.csv", "--log", "nowhere.csv"], "nowhere.csv"),
        (["result"], "LOG"),
        (["result", "new.csv", "-o", "new.csv"], "it is the input"),
        (["result", "new.csv", "--set", "stakes.discount=1"], "stakes.discount"),
    ],
)
def test_mistakes_are_told_in_one_line(folder, words, expected):
    before = (folder / "new.csv").read_bytes()
    done = run(folder, *words)
    assert done.exit_code == 2, done.output
    assert expected in done.output
    assert "Traceback" not in done.output
    assert (folder / "new.csv").read_bytes() == before


@pytest.mark.thorough
def test_a_watch_is_made_again_and_compared(folder):
    run(folder, "result", "falls.csv", "-o", "again.html", "--within", "500")
    verify = ["verify", str(folder / "again.json")]
    done = CliRunner().invoke(main, [*verify, str(folder / "falls.csv")])
    assert (done.exit_code, "confirmed" in done.output) == (0, True), done.output
    other = CliRunner().invoke(main, [*verify, str(folder / "new.csv")])
    assert (other.exit_code, "again.json comes out otherwise" in other.output) == (1, True)
    page = folder / "again.html"
    page.write_text(page.read_text().replace("Alarm", "All well"), encoding="utf-8")
    forged = CliRunner().invoke(main, [*verify, str(folder / "falls.csv")])
    assert "again.html comes out otherwise" in forged.output


@pytest.mark.thorough
def test_another_log_has_to_be_called_so_and_the_record_says_it(folder):
    """Old rows that earned nothing set no level: they silence the alarm of row 60."""
    write(folder / "poor.csv", [(e, 0, *ROWS[e % 4][:2], int(e % 20 == 0)) for e in range(240)])
    refused = run(folder, "result", "falls.csv", "--log", folder / "poor.csv", "-o", "poor.html")
    assert refused.exit_code == 2
    assert "does not have the counts that the result was made from" in refused.output
    assert "--another-log" in refused.output
    both = ("--log", folder / "log.csv", "--another-log", folder / "poor.csv")
    assert run(folder, "result", "falls.csv", *both).exit_code == 2
    named = ("--another-log", folder / "poor.csv", "-o", "poor.html")
    done = run(folder, "result", "falls.csv", *named)
    assert "The old log is not the one that the result was made from" in " ".join(
        done.output.split()
    )
    kept = json.loads((folder / "poor.json").read_text())
    assert kept["settings"]["another_log"] == "poor.csv"
    assert "counts of the old log, which is not that of the result" in kept["inputs"]
    again = CliRunner().invoke(main, ["verify", f"{folder}/poor.json", f"{folder}/falls.csv"])
    assert (again.exit_code, "confirmed" in again.output) == (0, True), again.output


@pytest.mark.thorough
def test_a_watch_is_verified_with_an_old_log_that_lies_elsewhere(folder, tmp_path):
    """Without that log the levels are others: this is no reason to refute the watch."""
    old, poor = tmp_path / "old.csv", tmp_path / "poor.csv"
    shutil.copytree(folder / "result", tmp_path / "copy" / "result")
    shutil.copy(folder / "log.csv", old)
    write(poor, [(e, 0, *ROWS[e % 4][:2], int(e % 20 == 0)) for e in range(240)])
    result, new = tmp_path / "copy" / "result", folder / "new.csv"
    for option, path in (("--log", old), ("--another-log", poor)):
        page = tmp_path / "copy" / f"watch{option}.html"
        words = ("watch", result, new, option, path, "-o", page)
        assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
        verify = ["verify", str(page.with_suffix(".json")), str(new)]
        alone = CliRunner().invoke(main, verify)
        assert (alone.exit_code, "refuted" in alone.output) == (2, False), alone.output
        given = CliRunner().invoke(main, [*verify, "--log", str(path)])
        assert (given.exit_code, "confirmed" in given.output) == (0, True), given.output
    of_result = CliRunner().invoke(main, ["verify", str(result), str(old), "--log", str(old)])
    assert of_result.exit_code == 2


@pytest.mark.parametrize("content", ["[1, 2]", '{"settings": 1}', "not JSON", "3", '"x"'])
def test_a_file_of_somebody_else_is_not_replaced(content, folder):
    other = folder / "budget.json"
    other.write_text(content)
    done = run(folder, "result", "new.csv", "-o", "budget.html")
    assert done.exit_code == 2
    assert "budget.json exists and is not of a watch" in " ".join(done.output.split())
    assert other.read_text() == content
    assert not (folder / "budget.html").exists()


def test_an_old_log_that_was_found_and_a_page_of_somebody_else_are_not_replaced(folder):
    (folder / "letter.html").write_text("<title>A letter</title>")
    for name, words in (("log.csv", "does not end"), ("letter.html", "exists and is not of a")):
        before = (folder / name).read_bytes()
        done = run(folder, "result", "new.csv", "-o", name)
        assert done.exit_code == 2
        assert f"{name} {words}" in " ".join(done.output.split())
        assert (folder / name).read_bytes() == before


def test_nothing_is_written_into_a_result(folder):
    before = sorted((folder / "result").iterdir())
    done = run(folder, "result", "new.csv", "-o", "result/watch.html")
    assert done.exit_code == 2
    assert "is in the folder of a result" in " ".join(done.output.split())
    assert sorted((folder / "result").iterdir()) == before


@pytest.mark.parametrize("name", ["w.json", "w.JSON", "w.htm"])
def test_a_page_of_another_ending_would_replace_the_answer_or_not_be_found(name, folder):
    done = run(folder, "result", "new.csv", "-o", name)
    assert done.exit_code == 2
    assert f"{name} does not end in .html; name the page, such" in " ".join(done.output.split())
    assert not [*folder.glob("w.*")]


@pytest.mark.parametrize("content", ["{", "[]", '{"settings": {}}', '{"settings": 1}'])
def test_another_json_file_is_no_watch(content, folder):
    (folder / "other.json").write_text(content)
    done = CliRunner().invoke(main, ["verify", str(folder / "other.json"), str(folder / "new.csv")])
    assert done.exit_code == 2
    assert "is not what `surestep watch` writes" in " ".join(done.output.split())
