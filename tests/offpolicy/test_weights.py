"""Importance weights against plain products of rationals, and what has no weights."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.logs import log_of
from support.strategies import decision_logs, policies
from surestep import Pairs, Policy, SurestepError
from surestep.errors import InvalidLog, UnsupportedPolicy
from surestep.offpolicy.weights import importance_weights, unsupported_pairs

LABELS = {"state_labels": ("ward", "out"), "action_labels": ("wait", "treat")}
WARD = Pairs.full(2, 2, **LABELS)


def ward_log(*actions):
    """One episode in the ward that takes the actions and is then out."""
    *others, last = actions
    return log_of(WARD, [*((0, action, 1.0, 0) for action in others), (0, last, 1.0, 1)])


def policy_of(wait, out=(1.0, 0.0)):
    return Policy.from_dense(WARD, [[wait, 1 - wait], out])


@given(log=decision_logs(), data=st.data())
def test_weights_are_the_products_of_the_ratios_of_their_episode(log, data):
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    policy = data.draw(policies(log.pairs))
    found = importance_weights(log, policy, behavior)
    ratio, cumulative = [], []
    for e in range(log.num_episodes):
        weight = Fraction(1)
        for k in log.pair[log.episode_offsets[e] : log.episode_offsets[e + 1]]:
            exact = Fraction(policy.probability[k]) / Fraction(behavior.probability[k])
            weight *= exact
            ratio.append(float(exact))
            cumulative.append(float(weight))
    assert_allclose(found.ratio, ratio, rtol=1e-12)
    assert_allclose(found.cumulative, cumulative, rtol=1e-12)
    assert np.array_equal(found.total, found.cumulative[log.episode_offsets[1:] - 1])


@given(log=decision_logs(), data=st.data())
def test_weights_of_the_behavior_itself_are_exactly_one(log, data):
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.3)
    assert (importance_weights(log, behavior, behavior).cumulative == 1).all()


@given(data=st.data())
def test_unsupported_pairs_are_those_that_only_the_policy_takes(data):
    pairs = data.draw(decision_logs()).pairs
    policy, behavior = data.draw(policies(pairs)), data.draw(policies(pairs))
    found = unsupported_pairs(policy, behavior)
    chances = zip(policy.probability, behavior.probability, strict=True)
    assert found.tolist() == [bool(p > 0 and b == 0) for p, b in chances]
    assert not unsupported_pairs(policy, policy).any()


def test_support_matters_only_where_the_log_decides():
    behavior, policy = policy_of(0.5, out=(1.0, 0.0)), policy_of(0.25, out=(0.0, 1.0))
    assert unsupported_pairs(policy, behavior).tolist() == [False, False, False, True]
    assert importance_weights(ward_log(0, 1), policy, behavior).cumulative.tolist() == [0.5, 0.75]


def test_weights_too_small_for_a_double_are_zero():
    behavior, policy = policy_of(0.5), policy_of(2.0**-20)
    weights = importance_weights(ward_log(*[0] * 100), policy, behavior)
    assert weights.cumulative[0] == 2.0**-19
    assert weights.total.tolist() == [0.0]


@pytest.mark.parametrize(
    ("steps", "policy", "behavior", "error", "words"),
    [
        ([0, 1], 0.5, 1.0, InvalidLog, "step 1 takes state 'ward', action 'treat', .* 1 of 2 step"),
        ([0], 0.75, 1.0, UnsupportedPolicy, "state 'ward', action 'treat' with probability 0.25, "),
        ([0] * 1200, 1.0, 0.5, UnsupportedPolicy, "step 1023 is too large .* 177 of 1200 steps ar"),
        ([0], 1.0, 1e-320, UnsupportedPolicy, "weight of episode 0, step 0 is too large for a dou"),
    ],
)
def test_what_has_no_weights_is_refused_by_name(steps, policy, behavior, error, words):
    with pytest.raises(SurestepError, match=words) as refusal:
        importance_weights(ward_log(*steps), policy_of(policy), policy_of(behavior))
    assert type(refusal.value) is error
