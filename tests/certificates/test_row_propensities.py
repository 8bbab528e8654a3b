"""Weights by the probabilities that rows name: right where whoever acted saw what states hide.

A hidden severity u is drawn once an episode. Whoever acts sees it, the log does not: all steps are
in one state. What a step pays depends on u and on the action before, so nothing here is Markov.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.logs import log_of as steps_of
from support.problems import logged_problem
from surestep import DecisionLog, Pairs, Policy, certify, estimate_behavior
from surestep.certificates import Trajectory
from surestep.errors import CertificateRefused, InvalidLog
from surestep.offpolicy import importance_weights, paired_returns, paired_rewards

PAIRS = Pairs.full(2, 2)  # the ward, and being out of it
SEVERE = Fraction(1, 3)
DISCOUNT = Fraction(9, 10)
LOW = -1.5  # no reward is below it
TREATED = {0: Fraction(1, 10), 1: Fraction(9, 10)}  # by severity: chance of action 1
ALWAYS_WAITS = Policy.from_dense(PAIRS, [[1.0, 0.0], [1.0, 0.0]])
MEAN = float(SEVERE * TREATED[1] + (1 - SEVERE) * TREATED[0])
AVERAGED = Policy.from_dense(PAIRS, [[1 - MEAN, MEAN], [1.0, 0.0]])
MIXED = Policy.from_dense(PAIRS, [[0.25, 0.75], [1.0, 0.0]])


def pays(severe, before, action):
    """Severe cases pay less, treating helps the more of them, and twice in a row hurts."""
    return Fraction(1) - 2 * severe + action * (Fraction(1, 4) + severe) - before * action


PAID = np.array([[[float(pays(u, b, a)) for a in (0, 1)] for b in (0, 1)] for u in (0, 1)])


def every_episode(treated=TREATED):
    """Yields (chance, severity, actions) of every episode of two steps."""
    for severe, first, second in product((0, 1), repeat=3):
        chance = SEVERE if severe else 1 - SEVERE
        for action in (first, second):
            chance *= treated[severe] if action else 1 - treated[severe]
        if chance:
            yield chance, severe, (first, second)


def log_of(episodes, treated=TREATED, *, propensities=True):
    """Returns the log of (severity, actions)."""
    logged, told = [], []
    for severe, (first, second) in episodes:
        paid = PAID[severe, 0, first], PAID[severe, first, second]
        logged.append([(0, first, paid[0], 0), (0, second, paid[1], 1)])
        treats = float(treated[severe])
        told += [treats if action else 1 - treats for action in (first, second)]
    log = steps_of(PAIRS, *logged)
    return replace(log, propensity=np.array(told)) if propensities else log


def true_gain(waits, treated=TREATED):
    """Δ by rationals: π waits with this probability, whoever acts looks at the severity."""

    def value(treats):
        return sum(
            (SEVERE if severe else 1 - SEVERE)
            * (treats[severe] if first else 1 - treats[severe])
            * (treats[severe] if second else 1 - treats[severe])
            * (pays(severe, 0, first) + DISCOUNT * pays(severe, first, second))
            for severe, first, second in product((0, 1), repeat=3)
        )

    return value({0: 1 - Fraction(waits), 1: 1 - Fraction(waits)}) - value(treated)


def expected(policy, values_of, treated=TREATED, *, propensities=True, behavior=None):
    """Returns the mean of the values of all episodes, each by its exact chance."""
    listed = [*every_episode(treated)]
    log = log_of([each[1:] for each in listed], treated, propensities=propensities)
    weights = importance_weights(
        log, policy, Policy.uniform(PAIRS) if behavior is None else behavior
    )
    return float(np.array([float(chance) for chance, *_ in listed]) @ values_of(weights))


def by_rewards(weights):
    return paired_rewards(weights, float(DISCOUNT), LOW, 2).values


def by_returns(weights):
    return paired_returns(weights, float(DISCOUNT), 2 * LOW).values


@pytest.mark.parametrize("values_of", [by_rewards, by_returns])
@pytest.mark.parametrize(("policy", "waits"), [(ALWAYS_WAITS, 1), (MIXED, Fraction(1, 4))])
def test_weights_by_rows_are_unbiased_though_nothing_is_markov(policy, waits, values_of):
    assert_allclose(expected(policy, values_of), float(true_gain(waits)), rtol=1e-12)


def test_weights_by_the_mean_of_the_state_are_biased():
    """What rows are there for: the exact mean of what was done claims a gain that is a loss."""
    biased = expected(ALWAYS_WAITS, by_rewards, propensities=False, behavior=AVERAGED)
    assert true_gain(1) < 0 < biased


def test_what_nobody_would_have_done_lowers_the_mean():
    """Severe cases are always treated: then no row tells what waiting would have paid."""
    always = {0: Fraction(1, 10), 1: Fraction(1)}
    for values_of in (by_rewards, by_returns):
        assert expected(ALWAYS_WAITS, values_of, always) < float(true_gain(1, always)) - 0.1


def problem_of(log):
    return logged_problem(log, float(DISCOUNT), (-2.0, 2.0), estimate_behavior(log.counts()))


CERTIFIER = Trajectory(
    horizon=2, claim="horizon", reward_low=LOW, reward_high=2.0, train_share=0.0, delta=0.2
)


@pytest.mark.thorough
def test_claims_are_wrong_no_more_often_than_stated_and_by_means_they_are():
    """150 logs: a rate of δ = 0.2 shows more than 0.2 + 3 · 0.033 with a chance of 0.2 %."""
    rng = np.random.default_rng(16)

    def is_wrong(*, propensities):
        severe = (rng.random(100) < float(SEVERE)).astype(int)
        treats = np.where(severe == 1, 0.9, 0.1)[:, None] > rng.random((100, 2))
        drawn = [*zip(severe.tolist(), treats.astype(int).tolist(), strict=True)]
        problem = problem_of(log_of(drawn, propensities=propensities))
        if not propensities:
            problem = replace(problem, behavior=AVERAGED)
        claim = certify(problem, ALWAYS_WAITS, CERTIFIER)
        return claim.lower > float(true_gain(1)) + 1e-9

    assert sum(is_wrong(propensities=True) for _ in range(150)) <= 150 * (0.2 + 3 * 0.033)
    assert sum(is_wrong(propensities=False) for _ in range(20)) >= 18


def test_the_certificate_says_what_it_rests_on():
    log = log_of([each[1:] for each in every_episode()])
    claim = certify(problem_of(log), MIXED, CERTIFIER)
    codes = [each.code for each in claim.assumptions]
    assert codes[0] == "propensities-of-rows"
    assert not {"markov", "no-hidden-causes", "behavior-known", "rows-supported"} & {*codes}
    assert "need-not-be-markov" in [each.code for each in claim.notes]
    asymptotic = Trajectory(horizon=2, claim="horizon", interval="student-t", train_share=0.0)
    said = [each.code for each in certify(problem_of(log), MIXED, asymptotic).assumptions]
    assert said[:2] == ["propensities-of-rows", "rows-supported"]


def test_rows_are_kept_through_every_cut_of_a_log():
    log = log_of([each[1:] for each in every_episode()])
    assert_allclose(log.episodes([3, 0]).propensity, log.propensity[[6, 7, 0, 1]])
    half = Trajectory(horizon=1, claim="horizon", reward_low=LOW, reward_high=2.0, train_share=0.5)
    assert certify(problem_of(log), MIXED, half).figures["episodes"] == 4


def test_an_estimate_of_who_acted_is_refused():
    estimated = problem_of(log_of([each[1:] for each in every_episode()], propensities=False))
    with pytest.raises(CertificateRefused, match="or the probability of each row's action"):
        certify(estimated, MIXED, CERTIFIER)


@pytest.mark.parametrize("told", [0.0, 1.5, np.nan])
def test_what_is_no_probability_of_an_action_taken_is_refused(told):
    with pytest.raises(InvalidLog, match="episode 0, step 0"):
        DecisionLog(PAIRS, [0], [0], [0.0], [1], [True], [False], [0, 1], [told])
