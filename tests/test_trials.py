"""Trials: what is proposed, claimed and true; refusals are answers."""

from dataclasses import replace

import numpy as np
import pytest

from support.known_worlds import ARMS, bandit, bandit_problem
from support.problems import uniform_problem
from surestep import FiniteMDP, MDPBatch, Policy, certify, evaluate, sample_log
from surestep.algorithms import SPIBB, BasicRL, BetaSPIBB, LowerSPIBB
from surestep.algorithms.contract import Limited, Limits
from surestep.certificates import Posterior, Robust, Stitched, training_part
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused
from surestep.model import LoggedRewards, ProblemBatch
from surestep.trials import claimed, proposed_each, true_gains

ROBUST = Robust(known_start=True, reward_low=0.0, reward_high=1.0)
UNSURE = Posterior(rewards="bounded", reward_low=2.0, reward_high=3.0)  # no reward is so high


def test_each_proposal_is_that_of_what_its_judge_leaves_to_the_choice():
    problems, algorithm = [bandit_problem(40, seed=seed) for seed in range(3)], SPIBB(n_wedge=3)
    judges = [Stitched(train_share=share) for share in (0.2, 0.5, 0.8)]
    policies, n_wedge = proposed_each(algorithm, problems, judges)
    for problem, judge, policy in zip(problems, judges, policies, strict=True):
        part = training_part(problem, judge.train_share, None)
        np.testing.assert_array_equal(policy, algorithm.improve(part).policy.probability)
    assert n_wedge == 3
    whole, _ = proposed_each(algorithm, problems)
    np.testing.assert_array_equal(whole[0], algorithm.improve(problems[0]).policy.probability)
    assert (whole != policies).any()


def test_where_nothing_is_proposed_the_behavior_policy_stays():
    few, many = bandit_problem(1), bandit_problem(40)
    policies, _ = proposed_each(BasicRL(), [few, many], [Stitched(train_share=0.4)] * 2)
    np.testing.assert_array_equal(policies[0], few.behavior.probability)
    assert (policies[1] != many.behavior.probability).any()
    # Whoever is to choose N∧ refuses every candidate.
    choosing = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=UNSURE)
    policies, n_wedge = proposed_each(choosing, [many])
    np.testing.assert_array_equal(policies[0], many.behavior.probability)
    assert n_wedge is None
    # In what was recorded nothing ends, so that no policy is better than π_b.
    mdp = FiniteMDP.from_dense(np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), 5, 4, np.random.default_rng(0))
    endless = uniform_problem(log.counts(), 1.0, (0.0, 1.0))
    policies, _ = proposed_each(SPIBB(n_wedge=1), [endless])
    np.testing.assert_array_equal(policies, endless.behavior.probability[np.newaxis])


@pytest.mark.parametrize("rewards", ["observed", "by pair", "known", "known by transition"])
def test_data_sets_that_are_planned_at_once_propose_what_each_would(rewards):
    problems = [with_rewards(bandit_problem(40, seed=seed), rewards) for seed in range(4)]
    batch = ProblemBatch.from_problems(problems)
    for b, problem in enumerate(problems):
        np.testing.assert_array_equal(batch.counts.visits[b], problem.counts.visits)
        np.testing.assert_array_equal(batch.counts.starts[b], problem.counts.starts)
        one = batch.problem(b).estimate()
        np.testing.assert_allclose(one.expected_reward, problem.estimate().expected_reward)
    chooses = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=ROBUST)
    plain = BasicRL(), SPIBB(n_wedge=8), BetaSPIBB(spibb_n_wedge=8), LowerSPIBB(n_wedge=8)
    for improver in (*plain, chooses):
        policies, _ = proposed_each(improver, problems)
        for problem, policy in zip(problems, policies, strict=True):
            expected = improver.improve(problem).policy.probability
            np.testing.assert_allclose(policy, expected, atol=1e-12)


def test_data_sets_with_other_ends_come_back_in_their_places():
    """Only those with the same ends are planned at once, the others one by one."""
    known = {1: [0, 1, 0], 3: [0, 0, 1], 4: [0, 1, 0]}
    problems = [bandit_problem(40, seed=seed) for seed in range(5)]
    for place, ends in known.items():
        counts = replace(problems[place].counts, terminal=np.array(ends, bool))
        problems[place] = replace(problems[place], counts=counts, log=None)
    for improver in (SPIBB(n_wedge=3), Limited(algorithm=BasicRL(), limits=Limits(least_visits=3))):
        policies, _ = proposed_each(improver, problems)
        for problem, policy in zip(problems, policies, strict=True):
            expected = improver.improve(problem).policy.probability
            np.testing.assert_allclose(policy, expected, atol=1e-12)


def with_rewards(problem, kind):
    """The problem with the same rewards, told in another way."""
    counts, mdp = problem.counts, bandit()
    pair = np.repeat(np.arange(mdp.num_pairs), np.diff(counts.offsets))
    known = mdp.dense().R[counts.pairs.state[pair], counts.pairs.action[pair], counts.successor]
    rewards = {
        "observed": counts.rewards,
        "by pair": LoggedRewards(
            np.bincount(pair, counts.rewards.values, mdp.num_pairs), "pair", False
        ),
        "known": LoggedRewards(mdp.expected_reward, "pair", True),
        "known by transition": LoggedRewards(known, "transition", True),
    }
    return replace(problem, counts=replace(counts, rewards=rewards[kind]), log=None)


def test_claims_are_those_of_certify_together_or_each_for_itself():
    problems = [bandit_problem(200, seed=seed) for seed in range(3)]
    policies, _ = proposed_each(SPIBB(n_wedge=3), problems)
    others = [replace(ROBUST, delta=delta) for delta in (0.1, 0.2, 0.3)]
    for certifiers in ([ROBUST] * 3, others):
        claims = claimed(certifiers, problems, policies)
        for problem, row, certifier, lower in zip(
            problems, policies, certifiers, claims.lower, strict=True
        ):
            policy = Policy(problem.counts.pairs, row)
            assert lower == pytest.approx(certify(problem, policy, certifier).lower, abs=1e-9)
        assert [*claims.standing] == ["proved"] * 3
        assert [*claims.refusal] == [""] * 3


def test_a_refusal_is_no_claim_but_a_code():
    problem = bandit_problem(30)
    behavior = np.tile(problem.behavior.probability, (3, 1))
    refused = CertificateRefused("not calibrated", code="no-rank")
    claims = claimed([refused, UNSURE, ROBUST], [problem] * 3, behavior)
    np.testing.assert_array_equal(np.isnan(claims.lower), [True, True, False])
    assert [bool(word) for word in claims.standing] == [False, False, True]
    assert claims.refusal[0] == "no-rank"
    assert claims.refusal[1]
    assert claims.refusal[2] == ""


def test_gains_are_those_of_each_policy_in_its_model():
    other = replace(bandit(), reward=bandit().reward * 2)
    models = MDPBatch.from_models([bandit(), other])
    uniform = Policy.uniform(bandit())
    greedy = np.tile(uniform.probability, (2, 1))
    greedy[:, :ARMS] = [0.0, 0.0, 0.0, 1.0]
    true = true_gains(models, greedy, uniform, (0.0, 2.0))
    assert true.gain == pytest.approx([0.325, 0.65])
    assert true.behavior == pytest.approx([0.475, 0.95])
    one = true_gains(MDPBatch.from_models([other]), greedy, uniform, (0.0, 2.0))
    assert one.gain == pytest.approx([0.65, 0.65])
    expected = evaluate(other, uniform) @ other.initial
    assert one.behavior == pytest.approx([expected, expected])
    twice = true_gains(models, np.concatenate([greedy, greedy]), uniform, (0.0, 2.0))
    for figures, again in zip(true, twice, strict=True):
        np.testing.assert_array_equal(again, np.concatenate([figures, figures]))


def test_values_lie_outside_by_the_larger_of_both_sides():
    uniform = Policy.uniform(bandit())
    models = MDPBatch.from_models([bandit(), bandit()])
    greedy = np.tile(uniform.probability, (2, 1))
    greedy[1, :ARMS] = [0.0, 0.0, 0.0, 1.0]
    for bounds, outside in (
        ((0.0, 1.0), [0.0, 0.0]),
        ((0.0, 0.6), [0.0, 0.2]),  # the best arm earns 0.8, the uniform policy 0.475
        ((0.1, 0.375), [0.1, 0.425]),  # and the ends are worth 0
    ):
        true = true_gains(models, greedy, uniform, bounds)
        assert true.gain == pytest.approx([0.0, 0.325])
        assert true.outside == pytest.approx(outside)


def test_a_policy_that_may_never_end_is_worth_the_lower_value_bound():
    P = np.zeros((3, 2, 3))
    P[0, 0, 0] = P[0, 1, 1] = 1.0
    R = np.zeros((3, 2, 3))
    R[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 1.0)
    waits, treats = np.array([1, 0, 1, 0, 1, 0]), np.array([0, 1, 1, 0, 1, 0])
    policies = np.array([waits, treats], float)
    true = true_gains(MDPBatch.from_models([mdp]), policies, Policy.uniform(mdp), (-0.5, 1.0))
    assert true.gain == pytest.approx([-1.5, 0.0])
    assert true.outside == pytest.approx([0.0, 0.0])
