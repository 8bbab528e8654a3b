"""Logged probabilities: the policy that wrote them comes back, and what contradicts it is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import all_pairs, policies
from surestep.errors import InvalidLog
from surestep.io.labels.label_tables import policy_from_propensities
from surestep.model import Pairs

LABELS = {"state_labels": ("a", "b"), "action_labels": ("x", "y", "z")}
PAIRS = Pairs.full(2, 3, **LABELS)


@st.composite
def logged_policies(draw):
    """A policy, and the pairs that a log of it happens to show."""
    policy = draw(policies(draw(all_pairs())))
    possible = np.flatnonzero(policy.probability > 0)
    shown = draw(st.lists(st.sampled_from(possible.tolist()), unique=True))
    return policy, np.array(shown, int)


@given(logged=logged_policies())
def test_what_was_seen_is_kept_and_the_rest_is_shared(logged):
    policy, seen = logged
    pairs = policy.pairs
    found = policy_from_propensities(
        pairs, seen, policy.probability[seen], policy.probability[seen]
    )
    shared = uniform = 0
    for s in range(pairs.num_states):
        run = range(pairs.offsets[s], pairs.offsets[s + 1])
        rest = 1 - sum(policy.probability[k] for k in run if k in seen)
        unknown = [k for k in run if k not in seen]
        uniform += len(unknown) == len(run)
        shared += len(unknown) < len(run) and rest > 1e-6
        for k in run:
            expected = rest / len(unknown) if k in unknown else policy.probability[k]
            assert found.policy.probability[k] == pytest.approx(expected, abs=1e-12)
    assert found.states_completed == shared
    assert found.states_unseen == uniform
    assert not found.policy.estimated


@given(policy=st.deferred(lambda: all_pairs().flatmap(policies)))
def test_a_log_that_shows_everything_gives_the_policy_itself(policy):
    seen = np.flatnonzero(policy.probability > 0)
    exactly = policy.probability[seen]
    found = policy_from_propensities(policy.pairs, seen, exactly * (1 - 1e-10), exactly)
    np.testing.assert_allclose(found.policy.probability, policy.probability, atol=1e-12)
    assert found.states_completed == found.states_unseen == 0


def test_a_rest_within_rounding_is_no_probability_of_unseen_actions():
    shown = np.array([0.3, 0.7 - 1e-8])
    found = policy_from_propensities(PAIRS, np.array([0, 1]), shown, shown)
    assert found.policy.probability[2] == 0
    assert found.policy.probability.tolist()[3:] == [1 / 3] * 3
    assert (found.states_completed, found.states_unseen) == (0, 1)


@pytest.mark.parametrize(
    ("seen", "low", "high", "message"),
    [
        (
            [4],
            [0.3],
            [0.4],
            "the logged probability of state 'b', action 'y' is between 0.3 and 0.4: the policy "
            "that made the log looks at more than the state columns",
        ),
        ([0], [0.5], [0.5 * (1 + 3e-9)], "looks at more than the state columns"),
        (
            [0, 1],
            [0.5, 0.6],
            [0.5, 0.6],
            "actions seen in state 'a' sum to 1.1, expected at most 1",
        ),
        ([0, 1, 2], [0.2] * 3, [0.2] * 3, "actions seen in state 'a' sum to 0.6, expected 1;"),
    ],
)
def test_contradictions_are_told(seen, low, high, message):
    with pytest.raises(InvalidLog) as refusal:
        policy_from_propensities(PAIRS, *map(np.array, (seen, low, high)))
    assert message in str(refusal.value)
