"""Robust claims under hidden causes, against the worst case of single models of their sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import Counts, Policy, Problem, certify
from surestep.certificates import Robust
from surestep.certificates.tilted_sets import tilted_claim, tilts
from surestep.checks import says
from surestep.checks.check import Check
from surestep.pipeline.checks import worst_case

SEEDS = st.integers(0, 10_000)


def some_problem(seed, times=3_000, discount=0.8, known=True):
    rng = np.random.default_rng(seed)
    seen = rng.multinomial(times, rng.dirichlet(np.ones(3), size=(3, 2)))
    rewards = rng.random((3, 2))
    rewards = rewards[..., np.newaxis] * np.ones(3)
    counts = Counts.from_dense(seen, rewards=rewards)
    if not known:
        counts = Counts.from_dense(seen, reward_sums=seen * rewards)
    behavior, policy = rng.dirichlet(np.ones(2), size=(2, 3))
    policy[0] = behavior[0]  # one state goes on as before
    problem = Problem(
        counts=counts,
        behavior=Policy.from_dense(counts, behavior),
        discount=discount,
        value_bounds=(0.0, 1 / (1 - discount)),
    )
    return problem, Policy.from_dense(counts, policy)


@settings(max_examples=20)
@given(seed=SEEDS, odds=st.floats(1.0, 5.0), more=st.floats(1.0, 2.0), known=st.booleans())
def test_a_tilted_claim_is_below_the_worst_case_of_the_estimate(seed, odds, more, known):
    problem, policy = some_problem(seed, known=known)
    judge = Robust(known_start=True, reward_low=0.0, reward_high=1.0)
    claim = tilted_claim(judge, problem, policy)
    claimed = claim(odds)
    assert claimed <= worst_case(problem, [problem.estimate()], policy).gains(odds)[0] + 1e-9
    assert claim(odds * more) <= claimed + 1e-9
    without = certify(problem, policy, judge).lower
    assert claim(1.0) == pytest.approx(without, abs=1e-9)


def test_a_claim_of_many_visits_is_nearly_the_worst_case_of_the_estimate():
    problem, policy = some_problem(4, times=10**9)
    best = Policy.deterministic(problem.counts, [1, 0, 1])
    judge = Robust(known_start=True)
    for chosen in (policy, best):
        worst = worst_case(problem, [problem.estimate()], chosen).gains(2.0)[0]
        assert tilted_claim(judge, problem, chosen)(2.0) == pytest.approx(worst, abs=0.005)


def test_intervals_and_whole_episodes_are_tilted():
    problem, _ = some_problem(1)
    assert tilts(Robust(), problem)
    assert not tilts(Robust(set="l1"), problem)


def test_the_odds_of_the_robust_claim_are_said_where_there_is_one():
    figures = {"estimate_odds": 3.0, "belief_odds": 2.0, "robust_odds": 1.25}
    told = Check(code="hidden-causes", outcome="told", figures=figures)
    assert "stands up to 3, what all possible models promise up to 1.2" in says(told)
    del figures["robust_odds"]
    assert "possible models" not in says(
        Check(code="hidden-causes", outcome="told", figures=figures)
    )
