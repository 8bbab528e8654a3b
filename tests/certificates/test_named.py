"""Certifiers as text: what is written is what is read."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep import Counts, Policy, Problem, certify
from surestep.certificates import APriori, Asked, NoClaim, Posterior, Robust, make_certifier
from surestep.certificates.named import kinds
from surestep.errors import InvalidParameter


def settings_of(kind, **choices):
    return st.fixed_dictionaries({}, optional=choices).map(lambda given: kind(**given))


levels = st.floats(0.02, 0.9)
CERTIFIERS = st.one_of(
    settings_of(APriori, bound=st.sampled_from(["2s", "beta"]), delta=levels,
                n_wedge=st.integers(1, 99)),
    settings_of(Robust, set=st.sampled_from(["l1", "two-successor"]), strict=st.booleans(),
                known_start=st.booleans(), delta=levels),
    settings_of(Posterior, prior_weight=st.floats(0.5, 1e6), draws=st.integers(100, 9999),
                starts=st.just("known"), seed=st.integers(0, 2**63 - 1).map(np.int64)),
)  # fmt: skip


@given(CERTIFIERS)
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


def test_a_policy_is_certified_by_name():
    counts = Counts.from_dense(np.full((2, 2, 2), 5), rewards=np.eye(2), starts=[1, 0])
    behavior = Policy.uniform(counts)
    problem = Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0.0, 2.0))
    for kind in ("a-priori", "posterior", "robust"):
        assert certify(problem, behavior, kind) == certify(problem, behavior, make_certifier(kind))
    assert certify(problem, behavior, "posterior:draws=19").parameters["draws"] == 19


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
