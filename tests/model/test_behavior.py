"""The estimated behavior policy, and the mark that it leaves on what follows."""

import copy
import pickle
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.strategies import counts
from surestep import Counts, Policy, Problem, estimate_behavior

SMOOTHING = st.sampled_from([0, 0.5, 1, 7.25, 1e-300, 1e308, np.float32(2)])


@given(log=counts(), smoothing=SMOOTHING)
def test_shares_are_those_of_the_visits_with_pseudo_counts(log, smoothing):
    found = estimate_behavior(log, smoothing)
    for s in range(log.pairs.num_states):
        run = slice(log.pairs.offsets[s], log.pairs.offsets[s + 1])
        weight = [Fraction(int(n)) + Fraction(float(smoothing)) for n in log.visits[run]]
        total = sum(weight)
        exact = [w / total if total else Fraction(1, len(weight)) for w in weight]
        assert_allclose(found.probability[run], [float(x) for x in exact], rtol=1e-12)


@given(log=counts())
def test_without_smoothing_the_estimate_makes_the_log_most_likely(log):
    best = estimate_behavior(log)
    seen = log.visits > 0

    def likelihood(policy):
        return float((log.visits[seen] * np.log(policy.probability[seen])).sum())

    for other in (Policy.uniform(log), estimate_behavior(log, 1.0)):
        assert likelihood(best) >= likelihood(other) - 1e-9


@given(log=counts())
def test_an_estimate_is_marked_and_so_is_what_is_mixed_with_it(log):
    estimate, known = estimate_behavior(log), Policy.uniform(log)
    assert estimate.estimated
    assert not known.estimated
    for mixture in (estimate.mix(known, 0.5), known.mix(estimate, 0.5), estimate.mix(estimate, 1)):
        assert mixture.estimated
    assert not known.mix(known, 0.5).estimated
    assert Policy(log.pairs, estimate.probability) != estimate
    assert pickle.loads(pickle.dumps(estimate)) == estimate == copy.deepcopy(estimate)  # noqa: S301


def test_a_problem_says_whether_its_behavior_is_estimated():
    log = Counts.from_dense(np.ones((2, 2, 2), int), rewards=np.zeros((2, 2)))
    terms = {"counts": log, "discount": 0.9, "value_bounds": (0.0, 1.0)}
    assert Problem(behavior=estimate_behavior(log), **terms).behavior_is_estimated
    assert not Problem(behavior=Policy.uniform(log), **terms).behavior_is_estimated
