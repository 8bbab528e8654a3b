"""A certificate that says why there is none."""

import json

import pytest

from surestep import Certificate, Counts, Policy, Problem, certify
from surestep.certificates import APriori, NoClaim, verify
from surestep.errors import InvalidParameter


def small_problem(**changes):
    counts = Counts.from_dense([[[3, 1], [0, 2]], [[0, 5], [1, 4]]], rewards=[[0, 1], [1, 0]])
    given = {"behavior": Policy.uniform(counts), "discount": 0.9, "value_bounds": (-2.0, 10.0)}
    return Problem(counts=counts, **(given | changes))


def test_it_claims_nothing_and_says_why():
    problem = small_problem()
    found = certify(problem, problem.behavior, NoClaim(refusal="nobody knows"))
    assert (found.standing, found.lower, found.zeta) == ("none", None, None)
    assert (found.span, found.says_nothing) == (12.0, True)
    assert any("nobody knows" in note for note in found.notes)
    assert verify(Certificate.from_json(found.to_json()), problem, problem.behavior) == found


def test_the_kind_that_was_asked_for_is_a_fact_of_its_own():
    problem = small_problem()
    refused = NoClaim(refusal="no range: of rewards", asked="robust")
    found = certify(problem, problem.behavior, refused)
    assert found.parameters == {
        "refusal": "no range: of rewards", "asked": "robust", "delta": 0.1
    }  # fmt: skip
    assert found.notes == ("Why there is no guarantee: robust: no range: of rewards.",)
    assert verify(Certificate.from_json(found.to_json()), problem, problem.behavior) == found


def test_one_of_version_3_is_read_and_verified():
    """Then the kind stood at the beginning of the refusal."""
    problem = small_problem()
    refused = certify(problem, problem.behavior, NoClaim(refusal="no range: at all", asked="a-b"))
    before = json.loads(refused.to_json()) | {"schema_version": 3}
    before["parameters"] = {"refusal": "a-b: no range: at all", "delta": 0.1}
    read = Certificate.from_json(json.dumps(before))
    assert read == refused
    assert verify(read, problem, problem.behavior) == refused
    for reason in ("nobody knows", "Of all: none", "a-b: "):
        before["parameters"]["refusal"] = reason
        read = Certificate.from_json(json.dumps(before)).parameters
        assert (read["refusal"], read["asked"]) == (reason, None)
    before["schema_version"] = 4
    before["parameters"]["refusal"] = "a-b: no range"
    assert "asked" not in Certificate.from_json(json.dumps(before)).parameters


@pytest.mark.parametrize("asked", ["", 3])
def test_a_kind_asked_for_is_a_word(asked):
    with pytest.raises(InvalidParameter, match="asked is"):
        NoClaim(refusal="so", asked=asked)


@pytest.mark.parametrize("refusal", ["", None, 3])
def test_a_refusal_has_a_reason(refusal):
    with pytest.raises(InvalidParameter, match="refusal is"):
        NoClaim(refusal=refusal)


@pytest.mark.parametrize("certifier", [APriori(), NoClaim(refusal="nobody knows")])
def test_the_premises_of_a_problem_are_assumptions_of_every_certificate(certifier):
    problem = small_problem(premises=["The moon is full.", "Nobody sleeps."])
    bare = certify(small_problem(), problem.behavior, certifier)
    found = certify(problem, problem.behavior, certifier)
    assert found.assumptions == (*bare.assumptions, "The moon is full.", "Nobody sleeps.")


def test_premises_are_sentences():
    with pytest.raises(InvalidParameter, match="premises is"):
        small_problem(premises="One sentence, not in a list.")
