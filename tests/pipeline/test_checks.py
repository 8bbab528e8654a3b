"""Checks of assumptions in results and inspections: what cannot be checked says why."""

from collections import Counter

import numpy as np
import pytest

import surestep
from support.labelled_worlds import COLUMNS
from surestep import read_log
from surestep.checks.words import aside
from surestep.errors import InvalidLog
from surestep.pipeline import checks
from surestep.pipeline.inspect import inspect

TERMS = {"discount": 0.9, "n_wedge": 3, "worlds": 0, "certificates": ["robust"]}
OF_LOG = ["markov-next-state", "markov-reward", "drift-next-state", "drift-reward"]
PRACTICE = {"discount": 0.0, "worlds": 0, "certificates": ["stitched"], "ending": (0.0, 1.0)}


def found_in(things):
    return {check.code: check for check in things}


def test_counts_alone_say_what_cannot_be_checked(labelled_log):
    result = surestep.improve(read_log(labelled_log, columns=COLUMNS).counts(), **TERMS)
    found = found_in(result.record.checks)
    assert {found[code].why for code in (*OF_LOG, "behavior-memory")} == {"no-episodes"}
    assert "without whole episodes the previous step" in result.report


@pytest.mark.thorough
def test_a_log_is_checked_also_where_claims_need_only_counts(labelled_log):
    source = read_log(labelled_log, columns=COLUMNS)
    found = found_in(surestep.improve(source, **TERMS).record.checks)
    assert found["markov-next-state"].outcome == "passed"
    # The same of a log by itself, where it was looked at.
    alone = found_in(inspect(source).checks)
    assert {code: alone[code] for code in OF_LOG} == {code: found[code] for code in OF_LOG}
    assert (alone["model-returns"].why, alone["hidden-causes"].why) == ("no-discount", "no-result")
    assert alone["markov-next-state"].episodes is None


@pytest.mark.thorough
def test_of_a_large_log_some_episodes_are_drawn_and_checked(labelled_log, monkeypatch):
    """A share of episodes by their names alone, wherever their rows lie, and whole."""
    source = read_log(labelled_log, columns=COLUMNS)
    rows = source.load().num_steps
    monkeypatch.setattr(checks, "MOST_CHECKED", rows // 2)
    alone = found_in(inspect(source).checks)
    large = found_in(surestep.improve(source, **TERMS).record.checks)
    drawn, many = large["markov-next-state"].episodes
    assert many == 120
    assert 40 < drawn < 80
    for code in OF_LOG:  # states have other numbers, and so other luck
        one, other = alone[code], large[code]
        assert (one.outcome, one.rows) == (other.outcome, other.rows)
        assert one.episodes == other.episodes
    words = f"of {drawn} of 120 episodes (drawn at random)"
    assert words in aside(alone["markov-next-state"])
    monkeypatch.setattr(checks, "MOST_CHECKED", 10)  # less than an episode
    assert found_in(inspect(source).checks)["markov-next-state"].why == "too-large"
    large = found_in(surestep.improve(source, **TERMS).record.checks)
    assert large["drift-reward"].why == "too-large"


def test_drawn_episodes_are_whole_and_the_same_however_rows_lie(labelled_log, tmp_path):
    whole = read_log(labelled_log, columns=COLUMNS)
    part = whole.sampled(0.3, {})
    lines = labelled_log.read_text().splitlines(keepends=True)
    other = tmp_path / "backwards.csv"
    other.write_text(lines[0] + "".join(reversed(lines[1:])))
    again = read_log(other, columns=COLUMNS).sampled(0.3, {})
    lengths = np.diff(whole.load().episode_offsets)
    mine, theirs = (np.sort(np.diff(each.load().episode_offsets)) for each in (part, again))
    np.testing.assert_array_equal(mine, theirs)
    assert not Counter(mine.tolist()) - Counter(lengths.tolist())
    assert 15 < mine.size < 60


def test_loose_transitions_and_refused_logs_say_why(tmp_path):
    loose = {"state": ["a", "b"], "action": ["x", "x"], "reward": [0, 1], "next_state": ["b", "a"]}
    assert {check.why for check in inspect(read_log(loose)).checks[:-1]} == {"no-episodes"}
    twice = loose | {"episode": [1, 1], "step": [0, 0]}
    assert {check.why for check in inspect(read_log(twice)).checks[:-1]} == {"refused"}


@pytest.fixture(scope="module")
def drifting():
    """Visits of which the later half go on otherwise, sorted by a name that means nothing."""
    rng = np.random.default_rng(0)
    rows = []
    for visit in rng.permutation(200):
        state = int(rng.integers(2))
        for step in range(4):
            when = f"2025-{1 + visit // 20:02d}-{1 + visit % 20:02d} 08:0{step}"
            rows.append((visit, step, when, f"s{state}", f"a{rng.integers(2)}", 0.0, step == 3))
            state = int(rng.random() < (0.2 if visit < 100 else 0.8))
    names = ("episode", "number", "when", "state", "action", "reward", "terminated")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("columns", "outcome"),
    [
        ({"step": "number"}, "passed"),
        ({"step": "number", "time": "when"}, "failed"),
        ({"step": "when", "time": "when"}, "failed"),  # one column may say both
    ],
)
def test_drift_is_looked_for_in_the_order_of_time_where_there_is_one(drifting, columns, outcome):
    found = inspect(read_log(drifting, columns=columns)).checks
    (drift,) = [check for check in found if check.code == "drift-next-state"]
    assert drift.outcome == outcome
    with pytest.raises(InvalidLog, match="its steps are numbers; expected time stamps"):
        read_log(drifting, columns={"step": "number", "time": "number"})


def practice_rows(changed, states="ab"):
    """One decision in each of some states: treating gains 0.3; later all but a few are treated."""
    rng = np.random.default_rng(3)
    size = 2000
    late = np.arange(size) >= 600
    treated = rng.random(size) < np.where(late & changed, 0.9, 0.2)
    return {
        "state": rng.choice([*states], size),
        "action": np.where(treated, "treat", "wait"),
        "reward": (rng.random(size) < 0.4 + 0.3 * treated).astype(float),
    }


@pytest.mark.thorough
def test_a_proof_about_practice_that_is_over_says_so():
    source = read_log(practice_rows(changed=True))
    result = surestep.improve(source, train_share=0.3, **PRACTICE)
    found = found_in(result.record.checks)["practice-changed"]
    assert found.outcome == "failed"
    # By hand: the new policy treats everybody, where recent practice treats nine of ten.
    assert result.table.changed.any()
    late = practice_rows(changed=True)
    means = []
    for state in ("a", "b"):
        here = (np.arange(2000) >= 600) & (late["state"] == state)
        treated = late["action"][here] == "treat"
        reward = late["reward"][here]
        means.append((here.sum() / 1400, reward[treated].mean() - reward.mean()))
    expected = sum(share * gain for share, gain in means)
    assert found.figures["gain"] == pytest.approx(expected, abs=1e-9)
    assert found.figures["gain"] < 0.1 < result.record.estimates["gain_of_all"]
    assert "Practice has changed" in result.report
    assert "the practice of that first part" in result.report
    assert "per episode; not proved" in result.report


@pytest.mark.thorough
def test_practice_that_stays_or_was_given_does_not_fail():
    for changed, terms, told in (
        (False, {}, ("passed", None)),
        (True, {"behavior": "uniform"}, ("unchecked", "behavior-given")),
        (True, {"logger": "fixed"}, ("unchecked", "behavior-of-all")),
    ):
        source = read_log(practice_rows(changed, "abcdef"))
        found = found_in(surestep.improve(source, **PRACTICE, **terms).record.checks)
        assert (found["practice-changed"].outcome, found["practice-changed"].why) == told
