"""What checks say: every figure in its sentence, and nothing that comforts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from support.findings import maintenance_findings, with_checks
from surestep.checks import CHECKS, Check, failed, says, title
from surestep.checks.check import WHY
from surestep.checks.words import aside, summary


@pytest.fixture(scope="module")
def checks():
    return {check.code: check for check in with_checks(maintenance_findings()).record.checks}


@pytest.mark.parametrize("code", CHECKS)
def test_every_check_has_a_title_and_a_sentence_that_names_its_figures(code):
    kind = CHECKS[code]
    assert kind.title
    assert not kind.title.endswith(".")
    if code == "hidden-causes":
        check = Check(code=code, outcome="told", figures=dict.fromkeys(kind.figures, 0.25))
    else:
        figures = {name: 0.25 if "share" in name else 3.0 for name in kind.figures}
        check = Check(code=code, outcome="failed", figures=figures)
    said = says(check)
    assert said.endswith(".")
    shown = set(kind.figures) - {"states", "has_gain", "scarce_states", "open_states"}
    for name in shown:
        other = replace(check, figures=check.figures | {name: check.figures[name] + 0.5})
        whole = replace(check, figures=check.figures | {name: check.figures[name] + 1})
        assert says(other) != said or says(whole) != said, name


@pytest.mark.parametrize("why", WHY)
@pytest.mark.parametrize("code", ["hidden-causes", "model-returns"])
def test_what_is_not_tested_has_a_reason(code, why):
    check = Check.unchecked(code, why)
    assert says(check).endswith(WHY[why])
    assert aside(check) == ""


def test_an_aside_has_the_test_and_what_it_would_have_noticed(checks):
    said = aside(checks["markov-next-state"]).replace("\u202f", " ")
    assert said.startswith("Permutation test over 1,234 rows, at most one per episode and kind: p")
    assert "5 % of all next situations, four of five such logs would show it." in said
    untold = aside(replace(checks["markov-next-state"], noticed=None, episodes=(7, 1200)))
    assert "of 7 of 1,200 episodes (drawn at random)" in untold
    assert "four of five" not in untold
    returns = aside(checks["model-returns"])
    assert "in 2 situations, and would have noticed a difference of 0.2 in each." in returns
    assert aside(checks["enough-data"]).startswith("It fails where more than half")


def test_small_shares_keep_two_digits_and_gains_are_said(checks):
    hidden = checks["hidden-causes"]
    assert "an action 3.7 times as often (in odds)" in says(hidden)
    older = {"proved": 0.00063, "estimated": 0.04, "lower": 350.0}
    said = says(replace(hidden, figures=older)).replace("\u202f", " ")
    assert "claim of +350 could fall" in said
    assert "by more than 4 % at every step" in said
    assert "from 0.063 % on" in said
    changed = checks["practice-changed"]
    assert "+0.4 per episode; not proved" in says(changed)
    # A gain that cannot be estimated is not called zero.
    assert "cannot be estimated" in says(replace(changed, figures={"gain": 0.0, "has_gain": 0.0}))


def test_the_summary_names_what_failed(checks):
    assert summary([*checks.values()]).startswith("Of 9 assumptions, 6 were tested; 4 failed: “")
    assert [check.code for check in failed([*checks.values()])] == [
        *("markov-next-state", "model-returns", "practice-changed", "enough-data")
    ]
    (one,) = failed([checks["practice-changed"], checks["drift-reward"]])
    assert summary([one]) == f"Of 1 assumption, 1 was tested; 1 failed: “{title(one)}”."
    passed = [check for check in checks.values() if check.outcome == "passed"]
    assert summary(passed) == "Of 2 assumptions, 2 were tested; none failed."
    assert summary([checks["markov-reward"]]) == "Of 1 assumption, none could be tested."


def test_failures_speak_against_what_certificates_say_they_assume():
    spoken = {code: kind.against for code, kind in CHECKS.items()}
    assert {code for code, each in spoken.items() if each == "no-hidden-causes"} == {
        *("behavior-memory", "acted-on-more")
    }
    assert {code for code, each in spoken.items() if each == "markov"} == {
        *("markov-next-state", "markov-reward", "model-returns", "drift-next-state"),
        "drift-reward",
        "memory",
    }
    assert spoken["stops-that-know"] == "stopped-by-clock"


def test_the_docs_explain_each_code_once():
    docs = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?`) \|", docs, re.M)
    assert re.findall("`(.*?)`", " ".join(cells)) == [*CHECKS]
