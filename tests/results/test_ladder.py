"""The ladder of words, rung by rung."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import Certificate
from surestep.checks import CHECKS, Check
from surestep.model.statements import STOPPING, Statement
from surestep.rehearsal import Calibration, Rehearsal
from surestep.report.answer import verdict
from surestep.results.findings import belief_in, rung_of, undone


def claim(standing, lower, **parameters):
    return Certificate(
        kind="posterior" if standing == "posterior" else "stitched", standing=standing,
        lower=lower, delta=0.1, span=1.0, assumptions=("One.",), parameters=parameters, figures={},
    )  # fmt: skip


PROOF, NO_PROOF = claim("proved", 0.2), claim("proved", 0.0)
HELD_OUT = claim("posterior", 0.3, train_share=0.3)
ALL_DATA = claim("posterior", 0.3, train_share=0.0)


def rehearsal_of(lucky=(), rank=None, delta=0.1, strictest="bootstrap"):
    """A stress test with these beliefs where all actions are alike."""
    calibration = None if rank is None else Calibration(99, 10, (rank, 10), (strictest, "other"))
    table = np.zeros((2, 1))
    return Rehearsal(
        kind="stitched", delta=delta, family=("bootstrap", "other"), member=np.array([0, 1]),
        sizes=(1.0,), episodes=(10,), horizon=(5,), own_episodes=10, gain=table, claim=table,
        calibrated_claim=None, calibration=calibration, tolerance=1e-9,
        outside=table.astype(np.bool_), limits=("One.",), lucky_belief=np.array(lucky, float),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("certificates", "fresh", "rung"),
    [
        ([PROOF], False, "proved better"),
        ([PROOF, HELD_OUT], False, "proved better"),
        ([claim("proved", 1e-300)], False, "proved better"),
        ([NO_PROOF], False, "not shown to be better"),
        ([claim("proved", -0.1)], False, "not shown to be better"),
        ([claim("none", None)], False, "not shown to be better"),
        # What is not stood by proves nothing, and no other standing proves or believes.
        ([NO_PROOF, PROOF], False, "not shown to be better"),
        ([claim("none", None), PROOF], False, "not shown to be better"),
        ([claim("asymptotic", 0.2)], False, "not shown to be better"),
        ([claim("as-published", 0.2)], True, "not shown to be better"),
        ([claim("asymptotic", 0.2, train_share=0.5)], False, "not shown to be better"),
        # Believed is what a posterior of other data says, first or not.
        ([NO_PROOF, HELD_OUT], False, "believed better"),
        ([claim("none", None), HELD_OUT], False, "believed better"),
        ([claim("asymptotic", 0.2), HELD_OUT], False, "believed better"),
        ([HELD_OUT], False, "believed better"),
        ([HELD_OUT, PROOF], False, "believed better"),
        ([NO_PROOF, replace(HELD_OUT, lower=0.0)], False, "not shown to be better"),
        ([NO_PROOF, replace(HELD_OUT, lower=-0.1)], True, "not shown to be better"),
        # All of the data, or nobody knows which: never, unless another log made the policy.
        ([ALL_DATA], False, "not shown to be better"),
        ([NO_PROOF, ALL_DATA], False, "not shown to be better"),
        ([NO_PROOF, claim("posterior", 0.3)], False, "not shown to be better"),
        ([claim("posterior", 0.3, train_share=None)], False, "not shown to be better"),
        ([claim("posterior", 0.3, train_share="0.3")], False, "not shown to be better"),
        ([NO_PROOF, ALL_DATA], True, "believed better"),
        ([claim("posterior", 0.3)], True, "believed better"),
    ],
)
def test_every_rung(certificates, fresh, rung):
    assert rung_of(certificates, changed=True, rehearsal=None, fresh=fresh) == rung
    assert rung_of(certificates, changed=False, rehearsal=None, fresh=fresh) == "nothing changed"
    found = verdict(certificates, changed=True, fresh=fresh)
    assert found.rung == rung
    assert (found.mood == "good") == (rung == "proved better")  # green is for proofs only
    assert verdict(certificates, changed=False, fresh=fresh).rung == "nothing changed"


def test_the_first_held_out_posterior_is_the_belief():
    other = replace(HELD_OUT, lower=0.5)
    assert belief_in([PROOF, ALL_DATA, HELD_OUT, other]) is HELD_OUT
    assert belief_in([PROOF, ALL_DATA, HELD_OUT], fresh=True) is ALL_DATA
    assert belief_in([PROOF, ALL_DATA]) is None


# The luck of 19 worlds at δ = 0.1 is that of the 18th: ⌈0.9 · 20⌉.
LUCK = [*np.linspace(-1, 0, 17), 0.3, 5.0]


def test_luck_undoes_a_belief_that_is_no_larger():
    lucky = rehearsal_of(LUCK)
    assert lucky.luck_bound_of_beliefs(0.1) == 0.3
    assert undone(HELD_OUT, lucky)
    larger = replace(HELD_OUT, lower=0.3 + 1e-12)
    assert not undone(larger, lucky)
    rungs = [
        rung_of([NO_PROOF, each], changed=True, rehearsal=lucky) for each in (HELD_OUT, larger)
    ]
    assert rungs == ["not shown to be better", "believed better"]
    words = verdict([NO_PROOF, HELD_OUT], changed=True, rehearsal=lucky).why
    assert "luck alone claims as much" in words
    # It counts how often the belief itself may fail, not how often the proof may.
    surer = replace(HELD_OUT, delta=0.05, lower=4.0)
    assert undone(surer, lucky)
    assert not undone(replace(surer, delta=0.1), lucky)
    # A proof stands, and too few worlds show nothing.
    assert rung_of([PROOF, HELD_OUT], changed=True, rehearsal=lucky) == "proved better"
    assert not undone(HELD_OUT, rehearsal_of([1.0] * 8))
    assert undone(HELD_OUT, rehearsal_of([1.0] * 9))
    assert not undone(HELD_OUT, rehearsal_of([np.nan] * 19))
    assert not undone(HELD_OUT, None)
    assert not undone(claim("none", None), lucky)


def test_calibration_undoes_a_belief_of_which_it_leaves_nothing():
    for rank, rung in ((0, "not shown to be better"), (1, "believed better")):
        found = rehearsal_of(rank=rank)
        assert rung_of([HELD_OUT], changed=True, rehearsal=found) == rung
        words = verdict([HELD_OUT], changed=True, rehearsal=found).why
        assert ("the stress test undoes it" in words) == (rank == 0)
    # What was calibrated is the claim: a belief beside it is another one.
    beside = replace(rehearsal_of([-1.0] * 9, rank=0), luck=np.zeros(9))
    assert rung_of([ALL_DATA, HELD_OUT], changed=True, rehearsal=beside) == "believed better"


def test_a_belief_waits_for_the_stress_test_that_may_undo_it():
    for certificates, rung in (
        ([NO_PROOF, HELD_OUT], "not shown to be better"),
        ([HELD_OUT], "not shown to be better"),
        ([PROOF, HELD_OUT], "proved better"),
    ):
        assert rung_of(certificates, changed=True, rehearsal=None, awaited=True) == rung
        found = verdict(certificates, changed=True, awaited=True)
        assert found.rung == rung
        assert ("is still to come" in found.why) == (rung == "not shown to be better")
    nothing = replace(HELD_OUT, lower=-0.1)
    assert "still to come" not in verdict([NO_PROOF, nothing], changed=True, awaited=True).why


def test_a_proof_is_of_whole_episodes_and_was_named_before_the_data():
    first_steps = claim("proved", 0.2, claim="horizon")
    whole = claim("proved", 0.2, claim="performance")
    rungs = [
        rung_of([each], changed=True, rehearsal=None, fresh=True) for each in (first_steps, whole)
    ]
    assert rungs == ["not shown to be better", "proved better"]
    unnamed = verdict([whole], changed=True, named=False)
    assert (unnamed.rung, unnamed.mood) == ("not shown to be better", "caution")
    assert verdict([whole], changed=True, named=True).mood == "good"
    # A belief was never a proof, and needs no name.
    assert verdict([HELD_OUT], changed=True, named=False).rung == "believed better"


def test_a_belief_is_shown_with_how_often_such_are_wrong():
    """Above the truth by more than rounding, of those that were held at all."""
    found = rehearsal_of([-1.0] * 16 + [1e-10, 0.1, np.nan])
    wrong = found.wrong_beliefs
    assert (wrong.happened, wrong.total) == (1, 18)
    words = verdict([NO_PROOF, HELD_OUT], changed=True, rehearsal=found).why
    assert "In 1 of 18 simulated worlds with nothing to gain it wrongly saw a gain." in words
    assert "Believed, not proved: a model puts the chance of gaining at least" in words
    none = rehearsal_of([np.nan] * 9)
    assert none.wrong_beliefs is None
    for untold in (None, none):
        words = verdict([NO_PROOF, HELD_OUT], changed=True, rehearsal=untold).why
        assert words.endswith("How often such beliefs are wrong was not measured.")


def failing(code, **figures):
    return Check(code=code, outcome="failed", figures=figures)


@pytest.mark.parametrize("code", CHECKS)
def test_a_proof_is_green_only_where_the_log_speaks_against_nothing_that_it_assumes(code):
    checks = [failing(code, **dict.fromkeys(CHECKS[code].figures, 1.0))]
    for assumed in ("markov", "no-hidden-causes", "need-not-be-markov"):
        proof = replace(PROOF, assumptions=(Statement(assumed, {}),))
        found = verdict([proof], changed=True, checks=checks)
        assert found.rung == "proved better"  # as the certificate has it
        doubted = CHECKS[code].against == assumed
        assert found.mood == ("bad" if doubted else "good")
        assert found.why.startswith("One check failed: ") == doubted
        twice = verdict([proof], changed=True, checks=2 * checks)
        assert twice.why.startswith("2 checks failed: ") == doubted
    assert verdict([NO_PROOF], changed=True, checks=checks).mood != "good"


SEEN = Statement(
    "rewards-within-seen",
    {"running_low": -140.0, "running_high": 160.0, "ending_low": -400.0, "ending_high": 500.0},
)


def test_a_proof_within_rewards_that_nobody_declared_is_another_rung_and_never_green():
    proof = replace(PROOF, assumptions=(*PROOF.assumptions, SEEN))
    assert rung_of([proof], changed=True, rehearsal=None) == "proved within the rewards seen"
    found = verdict([proof], changed=True)
    assert (found.rung, found.mood) == ("proved within the rewards seen", "caution")
    question = "Can one step ever earn less than −140 or more than 160, or the last step of"
    assert found.why.startswith(question)
    unproved = replace(NO_PROOF, assumptions=(*NO_PROOF.assumptions, SEEN))
    assert rung_of([unproved], changed=True, rehearsal=None) == "not shown to be better"


def test_a_claim_above_its_own_estimate_is_not_proved():
    for figures, checks, rung in (
        ({"estimate": 0.3}, (), "proved better"),
        ({"estimate": 0.1}, (), "not shown to be better"),
        ({}, (failing("claim-above-estimate", claim=0.2, estimate=0.1),), "not shown to be"),
        ({}, (failing("claim-above-estimate", claim=9.0, estimate=0.5),), "proved better"),
    ):
        proof = replace(claim("proved", 0.2), figures=figures)
        assert rung_of([proof], changed=True, rehearsal=None, checks=checks).startswith(rung)


def test_what_leaves_out_rows_of_unknown_outcome_is_neither_proved_nor_believed_nor_green():
    proof, belief = (replace(each, assumptions=(STOPPING,)) for each in (PROOF, HELD_OUT))
    assert belief_in([NO_PROOF, belief]) is None
    for claims in ([proof], [proof, belief], [NO_PROOF, belief], [belief]):
        assert rung_of(claims, changed=True, rehearsal=None) == "not shown to be better"
        found = verdict(claims, changed=True)
        assert (found.rung, found.mood) == ("not shown to be better", "caution")
        assert found.why.endswith("Say how they ended (`ends`).")
    # Where no gain is claimed, there is none to take back.
    assert "ended" not in verdict([replace(proof, lower=-0.1)], changed=True).why
