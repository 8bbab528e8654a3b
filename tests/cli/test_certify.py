"""`surestep certify`: further claims about a saved policy, from its log or from another one."""

import json
import re
import shlex
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from support.pump_commands import EXAMPLES, LINES, PUMPS, UNTESTED, run_surestep, write_lines
from surestep import read_log
from surestep.model import certificate_schema
from surestep.pipeline.evidence import gather
from surestep.pipeline.improve import draft, result_of
from surestep.pipeline.terms import Terms

BEHAVIOR = ("--behavior", EXAMPLES / "pumps_policy.csv")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A result of the first pumps, and a log of later ones."""
    home = tmp_path_factory.mktemp("certify")
    write_lines(home / "log.csv", LINES[:3013])  # whole episodes
    write_lines(home / "later.csv", [LINES[0], *LINES[3013:8991]])
    ranges = shlex.split("--running -400 500 --ending -400 500 --set method.n_wedge=5")
    terms = (*BEHAVIOR, *ranges, "-o", home / "out")
    done = run_surestep("improve", home / "log.csv", *PUMPS, *UNTESTED, *terms)
    assert done.exit_code == 0, done.output
    return home


def test_claims_of_several_kinds_name_their_standing_and_assumptions(home):
    kinds = ("--kind", "robust:set=two-successor,strict=true", "--kind", "a-priori:bound=beta")
    result = run_surestep("certify", home / "out", home / "log.csv", *kinds)
    assert result.exit_code == 0, result.output
    said = re.sub("[ \n]+", " ", result.stdout)
    for words in (
        "robust, two-successor, strict: not shown to be better No useful guarantee: this log",
        "a-priori, beta: not shown to be better No useful guarantee: this log cannot rule out",
        "Proved: holds for every size of the log, if its assumptions hold.",
        "As-published: taken from the papers, with known gaps.",
        "Every reward lies between -400.0 and 500.0, as given.",
        "Each holds with 90\u202f% confidence. If you pick the best of 2 afterwards, trust it only",
    ):
        assert words in said, words
    assert "another log" not in result.stdout


def share_of_result(home):
    return json.loads((home / "out" / "run.json").read_text())["parameters"]["train_share"]


@pytest.mark.thorough
def test_claims_are_kept_in_the_same_bytes(home, tmp_path):
    kinds = ("--kind", "robust", "--kind", "posterior:draws=99,prior=jeffreys")
    for name in ("claims.json", "again.json"):
        made = run_surestep(
            "certify", home / "out", home / "log.csv", *kinds, "-o", tmp_path / name
        )
        assert made.exit_code == 0
    kept = (tmp_path / "claims.json").read_text()
    assert (tmp_path / "again.json").read_text() == kept
    for claim in json.loads(kept):
        jsonschema.validate(claim, certificate_schema())


@pytest.mark.thorough
def test_another_log_judges_by_whole_episodes_too(home, tmp_path):
    out = tmp_path / "claim.json"
    kinds = ("--kind", "trajectory:horizon=5,claim=horizon", "--kind", "robust")
    result = run_surestep("certify", home / "out", home / "later.csv", *kinds, "-o", out)
    assert result.exit_code == 0, result.output
    assert "This is another log than the one that the policy was made from.\n" in result.stdout
    assert "No episode of this log is one that the policy was made from: files with the" in (
        " ".join(result.stdout.split())
    )
    claim = json.loads(out.read_text())[0]
    assert claim["parameters"]["train_share"] == 0
    codes = [assumption["code"] for assumption in claim["assumptions"]]
    assert {"chosen-without-log", "behavior-of-result"} <= {*codes}


@pytest.mark.thorough
def test_a_belief_from_files_that_made_the_policy_is_none(home):
    """Together with others they are another log, but what chose the policy is still in it."""
    log, later = home / "log.csv", home / "later.csv"
    for logs, share, believed in (
        ([later], "0", True),
        ([log], share_of_result(home), True),  # by what did not choose
        ([log], "0", False),
        ([log, later], "0", False),
    ):
        kind = f"posterior:delta=0.9,draws=99,train_share={share}"
        found = run_surestep("certify", home / "out", *logs, "--kind", kind)
        assert found.exit_code == 0, found.output
        assert (": believed better\n" in found.stdout) is believed
        assert ("another log" in found.stdout) is (logs != [log])


def arms(seed, number=200):
    """A log of two arms, of which one pays seldom and the other often."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=number)
    paid = rng.random(number) < np.array([0.1, 0.9])[arm]
    return [
        "episode,step,state,action,reward,next_state,terminated,behavior_prob",
        *(f"{i},0,here,{'ab'[arm[i]]},{float(paid[i])},there,true,0.5" for i in range(number)),
    ]


@pytest.fixture(scope="module")
def believed(tmp_path_factory):
    """A result with a belief, by its stress test: finished, such that luck undoes it, to come."""
    home = tmp_path_factory.mktemp("believed")
    write_lines(home / "log.csv", arms(0))
    write_lines(home / "later.csv", arms(1))
    terms = Terms.of(discount=0.5, n_wedge=5, certificates=["robust", "posterior"], worlds=1)
    made = draft(gather(read_log(home / "log.csv"), terms))
    result_of(made.findings).save(home / "to come")
    found = made.finished(lambda *told: None)
    result = result_of(found)
    assert result.certificates[1].lower > 0
    result.save(home / "finished")
    lucky = replace(found.rehearsal, lucky_belief=np.ones(10))
    result_of(replace(found, rehearsal=lucky)).save(home / "undone")
    return home


MEASURED = "simulated worlds with nothing to gain it wrongly saw a gain."
UNMEASURED = "How often such beliefs are wrong was not measured."
BELIEVED, NOT_SHOWN = ": believed better", ": not shown to be better"


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("folder", "log", "more", "headline", "words"),
    [
        ("finished", "log.csv", (), BELIEVED, MEASURED),
        ("finished", "log.csv", ("--delta", "0.2"), BELIEVED, UNMEASURED),
        ("finished", "log.csv", ("--ending", "-1", "2"), BELIEVED, UNMEASURED),
        ("finished", "later.csv", (), BELIEVED, UNMEASURED),
        ("undone", "log.csv", (), NOT_SHOWN, "luck alone claims as much"),
        ("undone", "log.csv", ("--kind", "posterior:seed=7,draws=499"), NOT_SHOWN, "luck alone"),
        ("undone", "later.csv", (), BELIEVED, UNMEASURED),
        ("to come", "log.csv", (), NOT_SHOWN, "is still to come."),
        ("to come", "later.csv", (), BELIEVED, UNMEASURED),
    ],
)
def test_a_belief_is_shown_with_the_stress_test_of_its_result(
    folder, log, more, headline, words, believed
):
    kind = () if "--kind" in more else ("--kind", "posterior")
    result = run_surestep("certify", believed / folder, believed / log, *kind, *more)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert words in said
    assert headline in said
    assert (BELIEVED in said) == (headline == BELIEVED)


def test_a_description_that_contradicts_the_stakes_of_the_result_is_refused(believed, tmp_path):
    for said, found in (("discount = 0.6", "says 0.6, the result"), ('unit = "€"', "says '€'")):
        path = tmp_path / "mine.toml"
        path.write_text(f'files = "{believed / "log.csv"}"\n[stakes]\n{said}\n', encoding="utf-8")
        done = run_surestep("certify", believed / "finished", path, "--kind", "robust")
        assert done.exit_code == 2
        assert f"stakes.{said.partition(' ')[0]}: your description {found}" in done.stderr
