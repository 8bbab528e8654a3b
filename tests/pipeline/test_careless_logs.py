"""Logs as people have them: no wrong proof comes out, and the honest twin is still proved."""

from functools import cache

import numpy as np
import pytest

import surestep
from careless_logs import (
    copied_rows,
    end_of_some,
    gone_when_broken,
    one_went_on,
    outcome_in_state,
    stops_that_know,
    stream,
    two_steps_back,
)
from surestep.errors import InvalidLog
from surestep.pipeline import certify_result
from surestep.report.answer import verdict

# The world, a seed that once gave a wrong proof, its cases, and those of the honest twin.
WORLDS = {
    "outcome-in-state": (outcome_in_state, 1, 600, 400),
    None: (end_of_some, 0, 600, 600),
    "stops-that-know": (stops_that_know, 0, 400, 200),
    "clock-unsupported": (gone_when_broken, 0, 300, 200),
    "copies": (copied_rows, 2, 100, 500),
}


def improved(log, **more):
    told = {"behavior": "estimate", "worlds": 0, "certificates": ["stitched", "posterior"]}
    return surestep.improve(log.table, **(told | log.told | more))


@cache
def case_of(world, *case):
    """A log, and what is made of it: several tests look at the same."""
    log = world(*case)
    return log, improved(log)


def answered(result):
    changed = bool(result.table.changed.any())
    return verdict(result.certificates, changed=changed, record=result.record)


def failed(result):
    return {check.code for check in result.record.checks if check.outcome == "failed"}


@pytest.mark.one_quick
@pytest.mark.parametrize("check", WORLDS)
def test_a_fault_of_a_log_proves_nothing(check):
    world, seed, cases, honest = WORLDS[check]
    faulty, result = case_of(world, seed, cases)
    assert faulty.gain <= 0  # the truth
    assert not result.verdict.startswith("proved")
    assert check is None or check in failed(result)
    assert answered(result).action not in ("Adopt it", "Pilot it")
    twin, result = case_of(world, seed, honest, False)
    assert result.verdict == "proved better"
    assert not failed(result) & {*WORLDS}
    assert result.certificate.lower <= twin.gain


@pytest.mark.thorough
def test_what_is_paid_two_steps_later_is_noticed():
    """The model claims a gain where the truth is a loss: page and verdict ask to find out first."""
    faulty, result = case_of(two_steps_back, 0, 334)
    assert faulty.gain == pytest.approx(-0.8)
    assert result.certificate.lower > 0
    assert result.verdict == "not shown to be better"
    assert "markov-reward" in failed(result)
    assert answered(result).action == "First find out why a check failed"
    twin, result = case_of(two_steps_back, 0, 334, False)
    assert answered(result).action == "Adopt it"
    assert result.certificate.lower <= twin.gain == pytest.approx(0.6)


@pytest.mark.thorough
def test_what_was_known_before_is_asked_and_answered(tmp_path):
    log, asked = case_of(outcome_in_state, 1, 600)
    answer = answered(asked)
    assert answer.action == "Answer one question first"
    assert "('status': 'died' and 'discharged')" in answer.why
    assert "known before the decision?" in answer.why
    assert asked.verdict == "not shown to be better"
    asked.save(tmp_path / "asked")
    judged = certify_result(tmp_path / "asked", log.table, ["stitched"])
    assert judged.verdict(judged.certificates[0]).action == "Answer one question first"
    columns = log.told["columns"] | {"known_before": ["status"]}
    assert "outcome-in-state" not in failed(improved(log, columns=columns))


@pytest.mark.thorough
def test_another_log_of_which_the_stops_know_proves_nothing(tmp_path):
    case_of(stops_that_know, 0, 200, False)[1].save(tmp_path / "made")
    for fault, action in ((False, "Adopt it"), (True, "Answer one question first")):
        table = stops_that_know(7, 200, fault).table
        judged = certify_result(tmp_path / "made", table, ["stitched"])
        assert judged.fresh
        assert judged.certificates[0].lower > 0
        assert judged.verdict(judged.certificates[0]).action == action


def test_rows_without_episodes_need_a_discount_of_nothing():
    log = stream(0, 30)
    with pytest.raises(InvalidLog, match=r"'episode': …, 'step': ….*'next_state': ….*discount=0"):
        improved(log)
    with pytest.raises(InvalidLog, match="discount=0"):
        surestep.read_log(log.table).counts_of_all()
    assert improved(log, discount=0.0).record.parameters.discount == 0


@pytest.mark.thorough
def test_a_death_counts_whatever_another_row_did_there():
    table = one_went_on(1, 600)
    unsafe = {"states": "state = 'dead'", "within": 5, "at_most": 0.1}
    told = {"discount": 0.9, "running": (0, 1), "ending": (0, 1), "worlds": 0}
    result = surestep.improve(table, behavior="estimate", unsafe=unsafe, **told)
    assert result.verdict == "nothing changed"
    died = (table["next_state"] == "dead").sum() / 600
    before = result.certificate.signals[1].before
    assert before == pytest.approx(died, abs=0.05)  # the first part of the log tells it
    assert died == pytest.approx(0.25, abs=0.05)  # half of those under `quick`


def test_a_step_that_goes_on_makes_its_next_state_no_end():
    table = end_of_some(0, 50).table
    counts = surestep.read_log(table).counts()
    assert counts.end_states() == (("(end)",),)
    numbered = counts.to_counts()
    (end,) = np.flatnonzero(numbered.terminal)
    assert numbered.pairs.state_labels[end] == "(end)"
    log = surestep.read_log(table).load()
    assert np.array_equal(log.counts().terminal, numbered.terminal)
