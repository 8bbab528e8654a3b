"""Certificates in words: what each is called, and what may be claimed of all of them."""

from dataclasses import replace

import pytest
from surestep.report.pages.answer import how_chosen
from surestep.report.words.certificates import (
    certificate_name,
    claim_words,
    names_of,
    together_words,
)

from findings import rehearsed_findings
from surestep.certificates.registry import CERTIFIERS
from toy_extension import Hopeful


@pytest.mark.parametrize(
    ("deltas", "said"),
    [
        ((0.1, 0.1, 0.1), "That all 3 hold at once has only 1 − 3δ = 70 %."),
        ((0.1, 0.05), "That both hold at once has only 1 less the sum of their δ = 85 %."),
        ((0.5, 0.5), "has only 1 − 2δ, that is, nothing."),
        ((0.1,), "Other guarantees were asked for as well"),
    ],
)
def test_claims_that_hold_together_are_less_sure(deltas, said):
    findings = rehearsed_findings()
    claims = [replace(findings.certificate, delta=delta) for delta in deltas]
    words = together_words([*claims, findings.others[-1]])  # a refusal claims nothing
    assert said in words.replace("\u202f", " ")


def test_names_are_told_apart_by_their_delta_where_needed():
    settled, *others = (rehearsed_findings().certificate, *rehearsed_findings().others)
    stricter = replace(settled, delta=0.04)
    assert names_of([settled, *others[2:]])[0] == certificate_name(settled)
    assert names_of([settled, stricter]) == [
        "posterior, prior weight 5, δ = 0.2",
        "posterior, prior weight 5, δ = 0.04",
    ]
    assert names_of([others[-1], others[-1]]) == ["trajectory", "trajectory"]  # refused both


def test_a_kind_says_itself_what_it_is_called_by_and_what_it_chooses_by(monkeypatch):
    class Named(Hopeful):
        chooses_by = "hope alone"

        @classmethod
        def label(cls, parameters):
            return f"margin {parameters['margin']}", None

    claim = replace(rehearsed_findings().certificate, kind="hopeful", parameters={"margin": 0.5})
    assert certificate_name(claim) == "hopeful"
    assert how_chosen("hopeful") == "the lower bound of the hopeful guarantee"
    monkeypatch.setitem(CERTIFIERS, "hopeful", Named)
    assert certificate_name(claim) == "hopeful, margin 0.5"
    assert how_chosen("hopeful") == "hope alone"


def test_a_claim_in_a_few_words():
    posterior, *_, published, refused = (
        rehearsed_findings().certificate, *rehearsed_findings().others
    )  # fmt: skip
    assert claim_words(replace(posterior, lower=0.25)) == "posterior, L = +0.25"
    assert claim_words(published) == "as-published, L = −46.76, says nothing"
    assert claim_words(refused) == "refused"
