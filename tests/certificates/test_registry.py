"""The contract of certifiers: each claim can be saved, and made again from the data alone.

Certifiers as text: what is written is what is read.

A certificate that says why there is none.
"""

import copy
import dataclasses
import json
from dataclasses import replace
from functools import cache

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import surestep.certificates
from support.problems import uniform_problem
from support.strategies import problems
from surestep import Certificate, Counts, Pairs, Policy, Problem, certify
from surestep.algorithms import SPIBB
from surestep.bounds import BOUNDS
from surestep.certificates import (
    CERTIFIERS,
    APriori,
    Asked,
    NoClaim,
    Posterior,
    Robust,
    Stitched,
    Trajectory,
    make_certifier,
    verify,
)
from surestep.certificates.registry import kinds
from surestep.errors import (
    CertificateMismatch,
    CertificateRefused,
    InvalidCertificate,
    InvalidParameter,
    ShapeMismatch,
)
from surestep.model import Statement, certificate_schema

SETTINGS = {  # by name: certifiers that cover the policies of SPIBB with N∧ = 2
    "no-claim": [
        NoClaim(refusal="nobody knows", code="unknown"),
        NoClaim(refusal="nobody asks", code="unasked", delta=0.05),
    ],
    "a-priori": [
        *(APriori(bound=name) for name, bound in BOUNDS.items() if bound.bootstraps),
        APriori(delta=0.01, n_wedge=2),
        APriori(delta=np.float64(0.2), n_wedge=np.int64(2)),
    ],
    "robust": [
        *(
            Robust(set=kind, strict=strict, reward_low=-3.0, reward_high=3)
            for kind in ("interval", "l1", "two-successor")
            for strict in (False, True)
        ),
        Robust(delta=np.float64(0.2), known_start=True, reward_low=-4.0, reward_high=4.0),
    ],
    "posterior": [
        Posterior(draws=19, reward_low=-4.0, reward_high=4.0),
        Posterior(
            delta=0.2,
            draws=np.int64(9),
            prior="jeffreys",
            starts="known",
            seed=3,
            rewards="bounded",
            reward_low=-4.0,
            reward_high=np.float64(4.0),
        ),
        Posterior(draws=9, prior="jeffreys", reward_low=-4.0, reward_high=4.0),
    ],
    "trajectory": [Trajectory(reward_low=0.0, reward_high=1.0)],
    "stitched": [Stitched(), Stitched(logger="fixed", delta=np.float64(0.2), seed=3)],
}
# Need whole episodes: their own tests are in test_trajectory.py and test_stitched.py.
LOGGED = tuple(name for name, kind in CERTIFIERS.items() if kind.needs.episodes)
CASES = [
    certifier for name in CERTIFIERS if name not in LOGGED for certifier in SETTINGS.get(name, ())
]
# A claim that holds for any two policies does not change with them.
CLAIMING = [certifier for certifier in CASES if certifier.name != "no-claim"]
USABLE = problems(max_states=3).filter(lambda problem: 0 < problem.discount < 1)
MOON = ["The moon is full.", "Nobody sleeps."]


def every(certifiers):
    """A test for each of the certifiers."""
    return pytest.mark.parametrize("certifier", certifiers, ids=repr)


def example():
    """A problem that data says something about, and SPIBB's policy for it."""
    table = np.array([[[50, 10], [10, 90]], [[1, 1], [80, 120]]])
    counts = Counts.from_dense(table, rewards=[[0.0, 1.0], [2.0, 0.0]])
    problem = uniform_problem(counts, 0.5, (0.0, 4.0))
    return problem, SPIBB(n_wedge=2).improve(problem).policy


# ---- what holds for all -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CERTIFIERS)
def test_a_registered_certifier_has_settings_to_be_tested_with(name):
    assert SETTINGS.get(name), f"give {name} some settings in {__file__}"
    assert all(type(certifier) is CERTIFIERS[name] for certifier in SETTINGS[name])
    assert CERTIFIERS[name].name == name


@every(CASES)
@settings(max_examples=6)
@given(problem=USABLE)
def test_a_claim_is_the_same_every_time_and_survives_being_saved(certifier, problem):
    policy = SPIBB(n_wedge=2).improve(problem).policy
    before = copy.deepcopy(problem)
    found = certify(problem, policy, certifier)
    assert problem == before
    assert certify(problem, policy, certifier) == found
    assert found.kind == certifier.name
    assert found.delta == found.parameters["delta"] == certifier.delta
    assert found.assumptions
    assert found.span == problem.value_bounds[1] - problem.value_bounds[0]
    assert set(found.parameters) == {field.name for field in dataclasses.fields(certifier)}
    saved = Certificate.from_json(found.to_json())
    assert saved == found
    assert verify(saved, problem, policy) == found


@every(CASES)
def test_a_certificate_satisfies_the_published_schema(certifier):
    found = certify(*example(), certifier)
    jsonschema.Draft202012Validator(certificate_schema()).validate(json.loads(found.to_json()))


@every(CASES)
def test_settings_survive_repr(certifier):
    names = vars(surestep.certificates) | {"np": np}
    assert eval(repr(certifier), names) == certifier  # noqa: S307


@every(CASES)
def test_value_figures_are_figures(certifier):
    assert certifier.value_figures <= set(certify(*example(), certifier).figures)


@every(CASES)
@pytest.mark.parametrize("thing", [None, "log", 3])
def test_what_is_no_problem_or_policy_is_refused(certifier, thing):
    problem, policy = example()
    with pytest.raises(InvalidParameter, match="problem is of type"):
        certify(thing, policy, certifier)
    with pytest.raises(InvalidParameter, match="policy is of type"):
        certify(problem, thing, certifier)


@every(CASES)
def test_a_policy_of_another_system_is_refused(certifier):
    with pytest.raises(ShapeMismatch, match="the problem has 2 states, the policy has 3"):
        certify(example()[0], Policy.uniform(Pairs.full(3, 2)), certifier)


@pytest.mark.parametrize("thing", [None, APriori, SPIBB(n_wedge=2)], ids=repr)
def test_what_is_no_certifier_is_refused(thing):
    with pytest.raises(InvalidParameter, match=r"certifier is of type .*, expected APriori"):
        certify(*example(), thing)


# ---- verify -----------------------------------------------------------------------------------


def spoiled(value):
    """Another value of the same type."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, float):
        return value * (1 + 1e-6) + 1e-6
    return 1 if value is None else value + 1


@cache
def confirmed(certifier):
    """A problem, a policy, and a claim about it that is confirmed as it is."""
    problem, policy = example()
    found = certify(problem, policy, certifier)
    assert verify(found, problem, policy) == found
    return problem, policy, found


@every(CLAIMING)
@given(data=st.data())
def test_a_changed_number_or_word_is_found(certifier, data):
    problem, policy, found = confirmed(certifier)
    part = data.draw(st.sampled_from(["lower", "delta", "span", "figures", "parameters", "words"]))
    if part in ("figures", "parameters"):
        facts = getattr(found, part)
        name = data.draw(st.sampled_from(sorted(facts)))
        assume(name != "evaluation_error")
        changed = replace(found, **{part: facts | {name: spoiled(facts[name])}})
    elif part == "words":
        name = data.draw(st.sampled_from(["assumptions", "notes", "standing"]))
        other = "as-published" if found.standing == "asymptotic" else "asymptotic"
        words = other if name == "standing" else (*getattr(found, name), "And so on.")
        changed = replace(found, **{name: words})
    else:
        changed = replace(
            found, **{part: spoiled(getattr(found, part)) if part != "delta" else 0.3}
        )
    try:
        again = verify(changed, problem, policy)
    except (CertificateRefused, InvalidParameter):
        pass
    else:  # a setting that this problem does not ask for: then nothing else may have changed
        assert part == "parameters"
        assert replace(again, parameters=found.parameters) == found


def test_the_message_says_what_differs():
    problem, policy = example()
    found = certify(problem, policy, APriori())
    text = r"lower is 1\.0 in the certificate, but -\d+\.\d+ when computed from this problem"
    with pytest.raises(CertificateMismatch, match=text):
        verify(replace(found, lower=1.0), problem, policy)
    changed = replace(found, figures=found.figures | {"visits": 3})
    with pytest.raises(CertificateMismatch, match=r"figures\.visits is 3 in the certificate"):
        verify(changed, problem, policy)
    changed = replace(found, figures=found.figures | {"extra": 3})
    with pytest.raises(CertificateMismatch, match="the names of figures"):
        verify(changed, problem, policy)


@pytest.mark.parametrize("change", [1e-12, 1e-5])
def test_only_the_last_digits_may_differ(change):
    problem, policy = example()
    found = certify(problem, policy, APriori())
    figures = {
        name: value * (1 + change) if isinstance(value, float) else value
        for name, value in found.figures.items()
    }
    changed = replace(found, lower=found.lower * (1 + change), figures=figures)
    if change < 1e-9:
        assert verify(changed, problem, policy) == found
    else:
        with pytest.raises(CertificateMismatch):
            verify(changed, problem, policy)


@pytest.mark.parametrize("wrong", ["much", None, True, 1])
def test_a_number_agrees_with_no_word_and_no_other_number(wrong):
    problem, policy = example()
    found = certify(problem, policy, APriori())
    for name in ("loss", "visits"):
        changed = replace(found, figures=found.figures | {name: wrong})
        with pytest.raises(CertificateMismatch, match=f"figures.{name} is"):
            verify(changed, problem, policy)


def test_values_may_differ_by_a_share_of_the_span():
    problem, _ = example()
    found = certify(problem, problem.behavior, APriori())
    assert found.lower == 0
    slack = 1e-9 * found.span
    assert found.span == 4
    assert verify(replace(found, lower=0.99 * slack), problem, problem.behavior) == found
    with pytest.raises(CertificateMismatch, match="lower is"):
        verify(replace(found, lower=1.01 * slack), problem, problem.behavior)
    assert (found.figures["copying_error"], found.figures["discount"]) == (0.0, 0.5)
    for name, value, agrees in (
        ("copying_error", 0.99 * slack, True),
        ("copying_error", 1.01 * slack, False),
        ("discount", 0.5 + 0.4e-9, True),
        ("discount", 0.5 + 0.9 * slack, False),  # no value, so relative to itself
    ):
        changed = replace(found, figures=found.figures | {name: value})
        if agrees:
            assert verify(changed, problem, problem.behavior) == found
        else:
            with pytest.raises(CertificateMismatch, match=rf"figures\.{name} is"):
                verify(changed, problem, problem.behavior)


def test_a_whole_double_may_be_written_without_its_point():
    problem, policy = example()
    found = certify(problem, policy, APriori())
    text = found.to_json().replace('"value_high": 4.0', '"value_high": 4')
    assert type(Certificate.from_json(text).figures["value_high"]) is int
    assert verify(Certificate.from_json(text), problem, policy) == found


@every(CLAIMING)
def test_another_policy_is_found(certifier):
    problem, policy = example()
    found = certify(problem, policy, certifier)
    others = [
        problem.behavior,
        policy.mix(problem.behavior, 1e-6),
        Policy.deterministic(problem.counts, [1, 0]),  # changes a pair seen twice
    ]
    for other in others:
        with pytest.raises(CertificateRefused):
            verify(found, problem, other)


@every(CLAIMING)
def test_another_problem_is_found(certifier):
    problem, policy = example()
    found = certify(problem, policy, certifier)
    counts = problem.counts
    for change in (
        {"counts": replace(counts, times=counts.times + (np.arange(counts.times.size) == 0))},
        {"counts": replace(counts, starts=np.array([1, 1]))},
        {"discount": 0.5 + 1e-6},
        {"value_bounds": (0.0, 4.0 + 1e-6)},
        {"value_bounds": (-1e-6, 4.0)},
        {"behavior": problem.behavior.mix(policy, 1e-6)},
        {"behavior": replace(problem.behavior, estimated=True)},
    ):
        with pytest.raises(CertificateRefused):
            verify(found, replace(problem, **change), policy)


def test_a_kind_or_settings_that_nobody_knows_are_refused():
    problem, policy = example()
    found = certify(problem, policy, APriori())
    with pytest.raises(CertificateRefused, match="kind is 'oracle', which cannot be verified"):
        verify(replace(found, kind="oracle"), problem, policy)
    with pytest.raises(InvalidCertificate, match=r"parameters\.bound is missing"):
        verify(replace(found, parameters={}), problem, policy)
    with pytest.raises(InvalidCertificate, match=r"parameters\.luck is no setting of a-priori"):
        verify(replace(found, parameters=found.parameters | {"luck": 1}), problem, policy)
    with pytest.raises(InvalidParameter, match="certificate is of type dict"):
        verify(json.loads(found.to_json()), problem, policy)


def settings_of(kind, **choices):
    return st.fixed_dictionaries({}, optional=choices).map(lambda given: kind(**given))


levels = st.floats(0.02, 0.9)
ANY_CERTIFIER = st.one_of(
    settings_of(APriori, bound=st.sampled_from(["2s", "beta"]), delta=levels,
                n_wedge=st.integers(1, 99)),
    settings_of(Robust, set=st.sampled_from(["l1", "two-successor"]), strict=st.booleans(),
                known_start=st.booleans(), delta=levels),
    settings_of(Posterior, prior_weight=st.floats(0.5, 1e6), draws=st.integers(100, 9999),
                starts=st.just("known"), seed=st.integers(0, 2**63 - 1).map(np.int64)),
)  # fmt: skip


@given(ANY_CERTIFIER)
def test_settings_that_are_written_are_read_again(certifier):
    text = str(Asked.of(certifier))
    assert make_certifier(text) == certifier
    assert str(Asked.of(text)) == text


def test_all_that_settings_say_counts_as_given_and_of_a_name_nothing():
    assert str(Asked.of("posterior")) == "posterior"
    assert Asked.of(Posterior()).make(delta=0.2) == Posterior()
    assert str(Asked.of(Robust(set="l1"))) == (
        "robust:set=l1,strict=true,delta=0.1,known_start=false"
    )
    assert str(Asked.of("a-priori:n-wedge=none")) == "a-priori:n_wedge=none"


def test_settings_that_were_given_win():
    assert Asked.of("posterior:delta=0.2").make(delta=0.1, draws=50) == Posterior(
        delta=0.2, draws=50
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("robus", "there is no kind of certificate 'robus'; did you mean robust"),
        ("", f"expected one of {', '.join(kinds())}"),
        ("no-claim", "there is no kind of certificate 'no-claim'"),
        ("robust:sett=l1", "robust has no setting 'sett'; did you mean set"),
        ("robust:set", "a setting of a certificate is 'set', expected NAME=VALUE"),
        ("robust:set=", "expected NAME=VALUE"),
        ("robust:set=l1,set=interval", "the setting set of robust is given twice"),
        ("robust:set=ball", "set is 'ball'.*interval"),
        ("posterior:draws=2", "draws is 2, expected at least 1/delta"),
        ("trajectory", "betting needs to know what rewards are possible"),
        (NoClaim(refusal="so", code="so"), "expected one that claims something"),
        (APriori, "certifier is of type type, expected .* or a name, one of"),
    ],
)
def test_what_names_no_certifier_is_refused(text, words):
    with pytest.raises(InvalidParameter, match=words):
        Asked.of(text).make()


def test_every_setting_has_a_default_that_is_left_out():
    for kind in ("a-priori", "robust", "posterior"):
        certifier = make_certifier(kind)
        assert {field.name for field in dataclasses.fields(certifier)} == set(Asked.of(kind).takes)


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
    for wrong in ({"refusal": 3}, {"code": None}, {"asked": 3}):
        with pytest.raises(InvalidParameter, match=f"{next(iter(wrong))} is"):
            NoClaim(**{"refusal": "so", "code": "so"} | wrong)


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
