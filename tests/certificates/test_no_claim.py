"""A certificate that says why there is none."""

import pytest

from surestep import Certificate, Counts, Policy, Problem, certify
from surestep.certificates import APriori, NoClaim, verify
from surestep.errors import InvalidParameter
from surestep.model import Statement

MOON = ["The moon is full.", "Nobody sleeps."]


def small_problem(**changes):
    counts = Counts.from_dense([[[3, 1], [0, 2]], [[0, 5], [1, 4]]], rewards=[[0, 1], [1, 0]])
    given = {"behavior": Policy.uniform(counts), "discount": 0.9, "value_bounds": (-2.0, 10.0)}
    return Problem(counts=counts, **(given | changes))


def test_it_claims_nothing_and_says_why():
    problem = small_problem()
    nothing = NoClaim(refusal="nobody knows", code="unknown")
    found = certify(problem, problem.behavior, nothing)
    assert (found.standing, found.lower, found.zeta) == ("none", None, None)
    assert (found.span, found.says_nothing) == (12.0, True)
    assert [str(note) for note in found.notes] == ["Why there is no guarantee: nobody knows."]
    assert verify(Certificate.from_json(found.to_json()), problem, problem.behavior) == found


def test_the_kind_that_was_asked_for_is_a_fact_of_its_own():
    problem = small_problem()
    refused = NoClaim(refusal="no range: of rewards", code="rewards-not-known", asked="robust")
    found = certify(problem, problem.behavior, refused)
    why = {"asked": "robust", "refusal": "no range: of rewards"}
    assert found.parameters == {"code": "rewards-not-known", "delta": 0.1} | why
    assert found.notes == (Statement("no-guarantee", why),)
    assert str(found.notes[0]) == "Why there is no guarantee: robust: no range: of rewards."
    assert verify(Certificate.from_json(found.to_json()), problem, problem.behavior) == found


def test_a_refusal_has_a_reason_in_words():
    for given in ({"refusal": 3}, {"code": None}, {"asked": 3}):
        with pytest.raises(InvalidParameter, match=f"{next(iter(given))} is"):
            NoClaim(**{"refusal": "so", "code": "so"} | given)


@pytest.mark.parametrize("certifier", [APriori(), NoClaim(refusal="so", code="so")])
def test_the_premises_of_a_problem_are_assumptions_of_every_certificate(certifier):
    problem = small_problem(premises=MOON)
    bare = certify(small_problem(), problem.behavior, certifier)
    found = certify(problem, problem.behavior, certifier)
    own = [Statement("in-own-words", {"sentence": each}) for each in MOON]
    assert found.assumptions == (*bare.assumptions, *own)
    assert [*map(str, found.assumptions[-2:])] == MOON


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("One sentence, not in a list.", "premises is"),
        ([""], r"premises\[0\] is"),
        ([3], "3, expe"),
    ],
)
def test_premises_are_statements_or_sentences(given, message):
    with pytest.raises(InvalidParameter, match=message):
        small_problem(premises=given)
