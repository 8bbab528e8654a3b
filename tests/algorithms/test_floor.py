"""A floor of visits: what was seen less often is decided by π_b, whatever the algorithm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import problems
from surestep.algorithms import BasicRL, Floored, RaMDP
from surestep.errors import InvalidParameter
from surestep.model import Pairs, Policy


@given(problem=problems(), least=st.integers(1, 12), kappa=st.floats(0, 3))
def test_what_was_hardly_seen_stays_as_it_was(problem, least, kappa):
    for algorithm in (BasicRL(), RaMDP(kappa=kappa)):
        found = Floored(algorithm=algorithm, least_visits=least).improve(problem)
        scarce = problem.counts.visits < least
        behavior = problem.behavior.probability
        np.testing.assert_allclose(found.policy.probability[scarce], behavior[scarce], atol=1e-12)
        if not scarce.any():
            assert found.policy == algorithm.improve(problem).policy


def test_the_rest_keeps_the_proportions_of_the_algorithm():
    from surestep.algorithms.floor import kept_where

    pairs = Pairs.full(2, 3)
    behavior = Policy(pairs, np.array([0.5, 0.3, 0.2, 0.5, 0.25, 0.25]))
    policy = Policy(pairs, np.array([0.9, 0.06, 0.04, 1.0, 0.0, 0.0]))
    kept = np.array([True, False, False, True, False, False])
    found = kept_where(kept, policy, behavior).probability
    # State 0: half stays, and the rest is shared 6 to 4. State 1: the policy has nothing elsewhere.
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2, 0.5, 0.25, 0.25], atol=1e-12)


def test_a_floor_is_a_whole_number():
    with pytest.raises(InvalidParameter, match=r"least_visits is 0\.5, expected a whole number"):
        Floored(algorithm=BasicRL(), least_visits=0.5)
