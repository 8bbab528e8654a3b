"""Claims by the posterior: their terms, what is refused, and their words."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.posterior_examples import BOUNDS, example, gains_in, posterior_gains, with_sums
from support.problems import logged_problem, uniform_problem
from support.strategies import problems
from surestep import Counts, FiniteMDP, Policy, certify, estimate_behavior, sample_log
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, drawn
from surestep.certificates.posterior import assumptions_of, model_draws
from surestep.certificates.prior import prior_of
from surestep.errors import CertificateRefused
from surestep.model import Statement, Successors


@given(problem=problems(max_states=3).filter(lambda p: p.discount < 1), seed=st.integers(0, 9))
def test_any_problem_gets_a_claim_or_a_reason(problem, seed):
    policy = SPIBB(n_wedge=2).improve(problem).policy
    try:
        found = certify(problem, policy, Posterior(draws=19, seed=seed))
    except CertificateRefused as refusal:
        assert "no reward was ever observed" in str(refusal)  # noqa: PT017
        assert not problem.counts.visits.any()
        return
    assert found.figures["evaluation_error"] < 1e-6 * (1 + problem.value_bound)
    gains = posterior_gains(problem, policy, Posterior(draws=19, seed=seed))
    assert found.lower <= gains.max()
    assert np.abs(gains).max() <= found.span


def ending_example(states):
    """Steps to and fro among many states, until one of two ends; one of them pays."""
    rng = np.random.default_rng(states)
    table = np.zeros((states + 2, 2, states + 2), int)
    for s in range(states):
        for a in range(2):
            table[s, a, [rng.integers(states), s, (s + 1) % states]] += 5
            table[s, a, [states, states + 1]] = [2, 1] if a else [1, 2]
    rewards = np.zeros(table.shape)
    rewards[:, :, states] = 1.0
    over = np.arange(states + 2) >= states
    counts = Counts.from_dense(table, rewards=rewards, starts=np.where(over, 0, 1), terminal=over)
    policy = Policy.from_dense(counts, [[0.0, 1.0]] * (states + 2))
    problem = uniform_problem(counts, 1.0, (0.0, 1.0))
    return problem, policy


@pytest.mark.parametrize(
    ("states", "memory"), [(4, 20_000), pytest.param(130, 2**21, marks=pytest.mark.slow)]
)
def test_gains_without_a_discount_are_those_of_discounts_near_1(states, memory):
    problem, policy = ending_example(states)
    settings = Posterior(draws=9, seed=3)
    whole = posterior_gains(problem, policy, settings)
    # Nearer to 1, what a draw leaves over would count for more than all else.
    near = posterior_gains(replace(problem, discount=1 - 1e-3), policy, settings)
    np.testing.assert_allclose(whole, near, atol=0.02)
    assert np.median(whole) > 0.05
    claim = certify(problem, policy, settings)
    assert 0 < claim.figures["evaluation_error"] < 1e-4
    alone = posterior_gains(problem, policy, settings, memory=memory)
    np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-12)


def test_models_in_which_no_episode_is_proven_to_end_count_as_the_worst():
    problem, policy = ending_example(4)
    settings = Posterior(draws=19)
    models = model_draws(problem, settings).apart()[0]
    question = drawn.DrawnQuestion(
        models, problem.behavior.probability, policy.probability[np.newaxis]
    )
    bounds = []

    def first_endless(*arguments):
        bounds.append(found(*arguments))
        bounds[-1][0] = np.inf
        return bounds[-1]

    found = drawn.step_bounds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawn, "step_bounds", first_endless)
        ((gains,),) = gains_in([question], 19, 2**29)
    ((plain,),) = gains_in([question], 19, 2**29)
    assert gains.lower[0, 0] == -1.0
    np.testing.assert_array_equal(gains.lower[0, 1:], plain.lower[0, 1:])


def test_models_that_cannot_end_are_refused():
    counts = Counts.from_dense([[[3], [4]]], rewards=[[0.0, 1.0]], starts=[1])
    only_here = Successors(counts.pairs, [0, 1, 2], [0, 0])
    problem = uniform_problem(counts, 1.0, (0.0, 1.0), support=only_here)
    with pytest.raises(CertificateRefused, match="in a drawn model an episode never ends"):
        posterior_gains(problem, Policy(counts.pairs, [1.0, 0.0]), Posterior())


def test_value_bounds_that_the_data_contradicts_are_refused():
    problem, policy = example(value_bounds=(-0.5, 1.0))
    with pytest.raises(CertificateRefused, match=r"state 2, action 0 earns 2 to 2, but values"):
        certify(problem, policy, Posterior())
    ends = Counts.from_dense([[[0, 3]], [[0, 0]]], rewards=[[0.0], [4.0]], terminal=[False, True])
    problem = uniform_problem(ends, 0.5, (0.0, 3.0))
    with pytest.raises(CertificateRefused, match=r"state 1, action 0 earns 4 to 4, but values"):
        certify(problem, problem.behavior, Posterior())


def test_rewards_that_differ_are_not_deterministic():
    mdp = FiniteMDP.from_dense([[[1.0]]], [[1.0]], 0.5)
    log = sample_log(mdp, Policy.uniform(mdp), 2, 3, np.random.default_rng(0))
    same = logged_problem(log, 0.5, (0.0, 2.0))
    certify(same, same.behavior, Posterior())
    noisy = replace(log, reward=np.array([1.0, 1.0, 1.0, 1.0, 0.5, 1.0]))
    problem = logged_problem(noisy, 0.5, (0.0, 2.0))
    text = r"state 0, action 0 → state 0 earned 0\.5 and 1\.0 .*rewards='bounded'"
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, problem.behavior, Posterior())
    bounded = Posterior(rewards="bounded", reward_low=0.0, reward_high=1.0)
    certify(problem, problem.behavior, bounded)
    with pytest.raises(CertificateRefused, match=r"a reward of .* is 1\.0, expected reward_low"):
        certify(problem, problem.behavior, replace(bounded, reward_high=0.5))


@pytest.mark.parametrize(
    ("delta", "draws"), [(0.1, 99), (0.01, 99), (0.001, 999), (0.003, 333), (0.004, 249)]
)
def test_few_draws_are_as_few_as_show_what_happens_so_rarely(delta, draws):
    found = Posterior(delta=delta, draws=5000).lighter()
    assert found == Posterior(delta=delta, draws=draws)
    assert found.rank >= 1


def test_the_assumptions_name_the_prior_and_what_is_no_posterior():
    problem, policy = example()

    def assumed(problem, **settings):
        claim = certify(problem, policy, Posterior(draws=9, **settings))
        return " ".join(map(str, claim.assumptions))

    text = assumed(problem)
    assert "over all 4 states, with weight 1.25 each, or with a weight of 5 that lies where" in text
    assert "The latter prior was read off the same data, so this is no exact posterior." in text
    assert "The rewards are known." in text
    assert "Dirichlet prior over 3 states, with weight 1.66667 each" in text
    assert "The behavior policy is known." in text
    assert "no exact posterior" not in assumed(problem, prior="weight")
    assert "start exactly as they did in the log" in assumed(problem, starts="known")
    assert "training part" not in text
    settings = Posterior(train_share=0.25)
    part = assumptions_of(settings, problem, prior_of(problem, "cautious", 5.0))[-1]
    assert part == Statement("chosen-from-part", {"share": 0.25, "seed": None})
    assert "no exact posterior" in assumed(problem, prior="pooled")
    guessed = replace(problem, behavior=estimate_behavior(problem.counts))
    assert "what else it may be counts in the draws" in assumed(guessed)
    observed = with_sums(problem, "transition")
    assert "no exact posterior" in assumed(observed, prior="weight")
    ranged = assumed(observed, **BOUNDS)
    assert "always the same" in ranged
    assert "lie between -0.5 and 1.5" in ranged
    assert "where noise as elsewhere would have shown" in assumed(
        observed, rewards="bounded", **BOUNDS
    )


def test_where_all_episodes_are_over_at_once_a_gain_is_that_of_the_ends():
    counts = Counts.from_dense(
        np.zeros((1, 2, 1), int), rewards=[[1.0, 3.0]], starts=[2], terminal=[True]
    )
    problem = uniform_problem(counts, 0.5, (0.0, 4.0))
    better = Policy.deterministic(counts.pairs, [1])
    assert posterior_gains(problem, better, Posterior(draws=9)) == pytest.approx(1.0, abs=1e-9)
