"""The stress test of an improvement: how large it is, and that the folder is whole all the time."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import surestep
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import write_table
from support.pump_commands import run_surestep
from surestep._files import write_folder
from surestep.certificates.registry import Asked
from surestep.errors import ResultMismatch
from surestep.pipeline import Effort, explain, verify_result
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import draft, prepared, result_of
from surestep.pipeline.stress_test import OWN_SIZE, planned
from surestep.pipeline.terms import Terms
from surestep.rehearsal.rehearse import rehearse
from surestep.results.unfinished import STRESS_TEST, begin, finish, settle

SIZES = (0.5, 1.0)
TOO_LARGE = "the log is too large for one by default"
TERMS = Terms.of(discount=0.9, n_wedge=3, certificates=["robust", "a-priori"], worlds=6)


def nobody(*told):
    """Nobody is told anything."""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    home = tmp_path_factory.mktemp("stress test")
    return write_table(home / "log.csv", world(5, states=4, episodes=40).rows, NAMES)


@pytest.fixture(scope="module")
def made(log):
    return draft(gather(surestep.read_log(log, columns=COLUMNS), TERMS))


@pytest.fixture(scope="module")
def found(made):
    """What nothing interrupted has found."""
    return made.finished(nobody)


@pytest.fixture(scope="module")
def whole(found):
    """The files of its result."""
    return result_of(found).files()


@pytest.fixture(scope="module", autouse=True)
def few_sizes():
    """Collects only small logs in worlds: what is shown here does not depend on how many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surestep.pipeline.stress_test.SIZES", SIZES)
        yield


def interrupt_at(number):
    def tell(what, done, total):
        if done >= number:
            raise KeyboardInterrupt

    return tell


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.thorough
@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_what_is_interrupted_is_whole_and_goes_on(number, made, whole, log, tmp_path):
    out = tmp_path / "out"
    begin(out, result_of(made.findings).files())
    with pytest.raises(KeyboardInterrupt):
        made.finished(interrupt_at(number), Effort(folder=out))
    saved = surestep.load(out)
    assert saved.awaits_stress_test
    assert "Not yet stress tested" in saved.report
    assert saved.files() == contents(out) == result_of(made.findings).files()
    assert saved.act(("p0", "0"), np.random.default_rng(0))
    assert explain(saved, ("p0", "0")).actions
    with pytest.raises(ResultMismatch, match="is not finished: its stress test is still to come"):
        verify_result(out, log)
    begin(out, result_of(made.findings).files())  # as the same command does
    finish(out, result_of(made.finished(nobody, Effort(folder=out))).files())
    assert contents(out) == whole
    assert not (out / STRESS_TEST).exists()
    assert not surestep.load(out).awaits_stress_test
    assert "Not yet stress tested" not in surestep.load(out).report
    assert verify_result(out, log).confirmed


@pytest.mark.one_quick
@pytest.mark.parametrize("moves", range(8))
def test_a_kill_at_any_moment_of_the_end_leaves_a_whole_result(
    moves, made, whole, tmp_path, monkeypatch
):
    """The new files are read from their block, also where one is written by half."""
    out, left = tmp_path / "out", moves
    begin(out, result_of(made.findings).files())

    def count_down():
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1

    def replace(source, target, real=os.replace):
        count_down()
        real(source, target)

    def write_bytes(path, content, real=Path.write_bytes):
        real(path, content[: len(content) // 2])
        count_down()
        real(path, content)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(KeyboardInterrupt):
        finish(out, whole)
    monkeypatch.undo()
    expected = result_of(made.findings).files() if moves == 0 else whole
    assert surestep.load(out).files() == expected
    settle(out)
    assert contents(out) == expected
    if moves > 0:
        assert sorted(out.iterdir()) == sorted(out / name for name in whole)


@pytest.mark.thorough
def test_a_time_limit_is_recorded_with_the_number_reached(made, found, log, tmp_path, monkeypatch):
    blocks = len(found.rehearsal.family) + 2  # a round: all kinds, and all luck
    ticks = iter([0.0] * (1 + blocks) + [9.0] * 99)
    monkeypatch.setattr(sys.modules[rehearse.__module__], "monotonic", lambda: next(ticks))
    found = result_of(made.finished(nobody, Effort(time_limit=9.0)))
    parameters = found.record.parameters
    assert (parameters.time_limit, parameters.worlds) == (9.0, 5)
    assert found.rehearsal.worlds == 5
    assert "--worlds 5" in found.record.command
    found.save(tmp_path / "out")
    monkeypatch.undo()
    assert verify_result(tmp_path / "out", log).confirmed
    # Where nothing was reached, the result stays without.
    assert made.finished(nobody, Effort(time_limit=0.0)).awaits_stress_test


def test_a_stress_test_that_was_taken_away_is_missed(made, whole, log, tmp_path):
    out = tmp_path / "out"
    begin(out, result_of(made.findings).files())
    finish(out, whole)
    record = json.loads((out / "run.json").read_text())
    del record["outputs"]["rehearsal.json"]
    (out / "run.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    (out / "rehearsal.json").unlink()
    with pytest.raises(surestep.SurestepError, match="its stress test is still to come"):
        verify_result(out, log)


def plan(log, **terms):
    asked = Terms.of(**{"discount": 0.9, "certificates": ["posterior"]} | terms)
    return planned(asked, prepared(gather(surestep.read_log(log, columns=COLUMNS), asked)))


def test_a_small_log_has_ten_worlds_or_what_delta_needs(log):
    how = plan(log)
    assert (how.worlds, how.sizes) == (10, SIZES)
    assert plan(log, delta=0.05).worlds == 19  # fewer cannot calibrate
    assert plan(log, worlds=0).why_none == "none was asked for"
    assert plan(log, worlds=40).worlds == 40
    horizon = "trajectory:horizon=2,claim=horizon"
    refused = plan(log, certificates=[horizon])
    assert (refused.worlds, refused.why_none) == (0, Asked.of(horizon).why_not_rehearsed)


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["decisions", "situations"])
def test_a_larger_log_is_tested_at_one_size_and_a_large_one_is_not(which, log, monkeypatch):
    asked = Terms.of(discount=0.9)
    problem = prepared(gather(surestep.read_log(log, columns=COLUMNS), asked)).problem
    size = int(problem.counts.visits.sum()) if which == "decisions" else problem.num_states

    def allow(name, worlds_times_size):
        most = (worlds_times_size, 10**9) if which == "decisions" else (10**9, worlds_times_size)
        monkeypatch.setattr(f"surestep.pipeline.stress_test.{name}", most)

    kinds = ["posterior:train_share=0.3"]
    allow("MOST_AT_ALL_SIZES", 10 * size)
    assert plan(log, certificates=kinds)[:2] == (10, SIZES)
    allow("MOST_AT_ALL_SIZES", 10 * size - 1)
    assert plan(log, certificates=kinds)[:2] == (10, OWN_SIZE)
    assert plan(log, certificates=kinds, worlds=30)[:2] == (30, OWN_SIZE)  # as asked for
    allow("MOST_AT_OWN_SIZE", 10 * size)
    assert plan(log, certificates=kinds)[:2] == (10, OWN_SIZE)
    how = plan(log, certificates=kinds, delta=0.05)  # nineteen worlds are too many
    assert (how.worlds, how.sizes, how.why_none) == (0, OWN_SIZE, TOO_LARGE)
    allow("MOST_AT_OWN_SIZE", 10 * size - 1)
    how = plan(log, certificates=kinds)
    assert (how.worlds, how.sizes, how.why_none) == (0, OWN_SIZE, TOO_LARGE)
    # Counts alone have no decisions to go through. Where nothing is believed, nothing can be wrong.
    how = plan(log, certificates=["robust"], algorithm="spibb", n_wedge=3)
    large = which == "situations"
    assert (how.worlds, how.sizes) == ((0, ()) if large else (10, SIZES))
    assert plan(log, certificates=kinds, worlds=30)[:2] == (30, OWN_SIZE)


@pytest.mark.thorough
def test_beyond_the_allowance_the_page_still_says_how_often_beliefs_are_wrong(
    log, tmp_path, monkeypatch
):
    monkeypatch.setattr("surestep.pipeline.stress_test.MOST_AT_OWN_SIZE", (0, 0))
    terms = Terms.of(discount=0.9, n_wedge=3)
    made = draft(gather(surestep.read_log(log, columns=COLUMNS), terms))
    out = tmp_path / "out"
    begin(out, result_of(made.findings).files())
    assert surestep.load(out).awaits_stress_test
    result = result_of(made.finished(nobody, Effort(folder=out)))
    finish(out, result.files())
    saved = surestep.load(out)
    assert not saved.awaits_stress_test
    assert saved.record.parameters.worlds == 0
    wrong = saved.rehearsal.wrong_beliefs
    assert wrong.total == saved.rehearsal.luck.size == 10
    assert f"wrong there in {wrong.happened:,} of 10 worlds" in saved.report
    assert "Only worlds without any benefit were simulated" in saved.report
    assert verify_result(out, log).confirmed


def test_verify_repeats_all_but_the_stress_test_where_that_is_asked(
    whole, log, tmp_path, monkeypatch
):
    def no_worlds(*given):
        raise AssertionError("a stress test was run")

    monkeypatch.setattr(sys.modules[draft.__module__], "rehearsal_of", no_worlds)
    out = tmp_path / "out"
    write_folder(out, whole)
    found = verify_result(out, log, worlds=0)
    assert (found.level, found.difference, found.confirmed) == ("same bytes", "", True)
    told = run_surestep("verify", out, log, "--worlds", "0")
    assert told.exit_code == 0, told.output
    but = "all but the stress test, which was not repeated"
    assert found.repeated == but
    assert told.stdout.startswith(f"confirmed: the same bytes in {but}\n")
    with pytest.raises(AssertionError, match="a stress test was run"):
        verify_result(out, log)
    told = run_surestep("verify", out, log, "--worlds", "5")
    assert told.exit_code == 2
    assert "Error: --worlds is 5, expected 0, to leave the stress test out, or" in told.stderr
    record = json.loads(whole["run.json"])
    record["estimates"]["policy"] = 99.0
    (out / "run.json").write_text(json.dumps(record))
    told = run_surestep("verify", out, log, "--worlds", "0")
    assert told.exit_code == 1
    assert told.stdout.startswith("refuted\nrun.json: estimates: policy was 99.0, is ")


def test_without_a_stress_test_every_file_is_repeated(log, tmp_path):
    given = {"columns": COLUMNS, "discount": 0.9, "certificates": ["robust"], "worlds": 0}
    surestep.improve(log, **given).save(tmp_path / "out")
    assert verify_result(tmp_path / "out", log, worlds=0).repeated == "every file"


@pytest.mark.one_quick
@pytest.mark.parametrize("worlds", [None, 6])
def test_a_policy_that_changed_nothing_is_not_stress_tested(worlds, log, tmp_path):
    source = surestep.read_log(log, columns=COLUMNS)
    made = draft(gather(source, Terms.of(discount=0.9, n_wedge=10**6, worlds=worlds)))
    result = result_of(made.finished(nobody))
    assert (result.verdict, result.rehearsal) == ("nothing changed", None)
    assert not result_of(made.findings).awaits_stress_test
    assert "Not stress tested: nothing changed." in result.report
    result.save(tmp_path / "out")
    assert verify_result(tmp_path / "out", log).confirmed
