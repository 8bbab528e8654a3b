"""The ladder of words, rung by rung."""

from dataclasses import replace

import numpy as np
import pytest

from support.claims import SEEN, claim, failing, rehearsal_of
from surestep.checks import CHECKS
from surestep.model.statements import STOPPING, Statement
from surestep.report.answer import EXPLAIN, verdict
from surestep.results.findings import belief_in, rung_of, undone

PROOF, NO_PROOF = claim("proved", 0.2), claim("proved", 0.0)
HELD_OUT = claim("posterior", 0.3, train_share=0.3)
ALL_DATA = claim("posterior", 0.3, train_share=0.0)
STOPPED = claim("posterior", 0.3, STOPPING, train_share=0.3)


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
        # A proof is of whole episodes, and of rewards that somebody declared.
        ([claim("proved", 0.2, claim="horizon")], True, "not shown to be better"),
        ([claim("proved", 0.2, claim="performance")], True, "proved better"),
        ([claim("proved", 0.2, SEEN)], False, "proved within the rewards seen"),
        ([claim("proved", 0.0, SEEN)], False, "not shown to be better"),
        # What leaves out rows of unknown outcome proves nothing, and may be believed.
        ([claim("proved", 0.2, STOPPING)], False, "not shown to be better"),
        ([NO_PROOF, STOPPED], False, "believed better"),
        ([STOPPED], False, "believed better"),
        ([claim("proved", 0.2, STOPPING), STOPPED], False, "believed better"),
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
    assert belief_in([NO_PROOF, STOPPED]) is STOPPED


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


def test_a_belief_is_wrong_above_the_truth_by_more_than_rounding():
    wrong = rehearsal_of([-1.0] * 16 + [1e-10, 0.1, np.nan]).wrong_beliefs
    assert (wrong.happened, wrong.total) == (1, 18)
    assert rehearsal_of([np.nan] * 9).wrong_beliefs is None


def test_a_proof_does_not_wait_for_the_stress_test_that_may_undo_a_belief():
    assert rung_of([PROOF, HELD_OUT], changed=True, rehearsal=None, awaited=True) == "proved better"
    assert "still to come" not in verdict([PROOF, HELD_OUT], changed=True, awaited=True).why
    nothing = replace(HELD_OUT, lower=-0.1)
    assert "still to come" not in verdict([NO_PROOF, nothing], changed=True, awaited=True).why
    # Where no gain is claimed, there is none to take back.
    assert "stopped" not in verdict([claim("proved", -0.1, STOPPING)], changed=True).why


@pytest.mark.parametrize("code", CHECKS)
def test_a_proof_is_green_only_where_the_log_speaks_against_nothing_that_it_assumes(code):
    checks = [failing(code)]
    for assumed in ("markov", "no-hidden-causes", "need-not-be-markov"):
        proof = replace(PROOF, assumptions=(Statement(assumed, {}),))
        found = verdict([proof], changed=True, checks=checks)
        if CHECKS[code].asks:  # before anything is believed
            assert found[:3] == ("not shown to be better", "bad", "Answer one question first")
            continue
        doubted = CHECKS[code].against == assumed
        rung = rung_of([proof], changed=True, rehearsal=None, checks=checks)
        assert found.rung == rung == ("not shown to be better" if doubted else "proved better")
        assert found.mood == ("bad" if doubted else "good")
        assert found.why.startswith("One check failed: ") == doubted
        twice = verdict([proof], changed=True, checks=2 * checks)
        assert twice.why.startswith("2 checks failed: ") == doubted
    assert verdict([NO_PROOF], changed=True, checks=checks).mood != "good"


def test_a_belief_goes_with_its_assumptions():
    checks = [failing("markov-reward")]
    for assumed, rung in (("markov", "not shown to be better"), ("need-not-be-markov", "believed")):
        claims = [NO_PROOF, replace(HELD_OUT, assumptions=(Statement(assumed, {}),))]
        found = verdict(claims, changed=True, checks=checks)
        assert rung_of(claims, changed=True, rehearsal=None, checks=checks) == found.rung
        assert found.rung.startswith(rung)
        assert (found.action == EXPLAIN) == (assumed == "markov")
    doubted = replace(PROOF, assumptions=(Statement("markov", {}),))
    trusted = replace(HELD_OUT, assumptions=(Statement("need-not-be-markov", {}),))
    found = verdict([doubted, trusted], changed=True, checks=checks)
    assert (found.rung, found.action) == ("believed better", "Pilot it")


def test_a_claim_above_its_own_estimate_is_not_proved():
    for figures, checks, rung in (
        ({"estimate": 0.3}, (), "proved better"),
        ({"estimate": 0.2}, (), "proved better"),  # as much as is claimed
        ({"estimate": 0.1}, (), "not shown to be better"),
        ({}, (failing("claim-above-estimate", claim=0.2, estimate=0.1),), "not shown to be"),
        ({}, (failing("claim-above-estimate", claim=9.0, estimate=0.5),), "proved better"),
    ):
        proof = replace(claim("proved", 0.2), figures=figures)
        assert rung_of([proof], changed=True, rehearsal=None, checks=checks).startswith(rung)
