"""Worlds where claims are put to the test: they are what they say, counted in other ways."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from surestep import DecisionLog, Policy, optimal, performance
from surestep.environments import make
from surestep.environments.families import LAWS
from surestep.environments.hidden import expected_visits
from surestep.model.log import UNKNOWN

SEEDS = st.integers(0, 2**32 - 1)


def policies(benchmark, number=6):
    """Some policies [B, K], sharp and flat."""
    rng = np.random.default_rng(0)
    mdp = benchmark.mdp
    return np.stack(
        [Policy.softmax(mdp, rng.normal(scale=4, size=mdp.num_pairs)).probability]
        + [Policy.softmax(mdp, rng.normal(size=mdp.num_pairs)).probability] * (number - 1)
    )


def returns(log: DecisionLog, discount):
    """The discounted return of each episode."""
    weighted = log.reward * discount**log.step
    return np.add.reduceat(weighted, log.episode_offsets[:-1])


# ---- little effect ----------------------------------------------------------------------------


@given(seed=SEEDS)
def test_where_all_is_alike_every_policy_is_worth_the_same(seed):
    benchmark = make("alike", seed=seed)
    worth = benchmark.truth.worth(policies(benchmark))
    assert_allclose(worth, benchmark.performance_of_behavior(), rtol=0, atol=1e-12)
    rows = benchmark.mdp.dense().P
    assert_allclose(rows, np.repeat(rows[:, :1], 4, axis=1), rtol=0, atol=1e-15)


@given(seed=SEEDS, effect=st.floats(0, 1))
def test_rows_lie_between_the_mean_and_their_own(seed, effect):
    none, some, full = (make("nearly-alike", seed=seed, effect=e) for e in (0, effect, 1))
    assert none.mdp == make("alike", seed=seed).mdp
    dense = [benchmark.mdp.dense().P for benchmark in (none, some, full)]
    assert_allclose(dense[1], (1 - effect) * dense[0] + effect * dense[2], rtol=0, atol=1e-12)
    assert some.behavior == full.behavior
    # π_b does the same at every λ: only what deviates from it has less effect.
    assert some.performance_of_behavior() == pytest.approx(
        full.performance_of_behavior(), abs=1e-12
    )
    assert_allclose((dense[2] > 0).sum(axis=2)[:-1], 4)
    assert (dense[2][-1] == 0).all()


def test_entering_the_last_state_pays_once_and_ends():
    mdp = make("nearly-alike").mdp
    assert np.array_equal(mdp.reward, (mdp.successor == 19).astype(float))
    log = make("nearly-alike").sample(200, np.random.default_rng(0))
    assert np.array_equal(log.terminated, log.next_state == 19)
    assert np.array_equal(log.reward, log.terminated.astype(float))


def test_less_effect_leaves_less_to_gain():
    effects = (0.02, 0.05, 0.1, 0.2, 0.5, 1)
    worlds = [make("nearly-alike", seed=3, effect=effect) for effect in effects]
    gains = [each.optimal_performance() - each.performance_of_behavior() for each in worlds]
    assert np.all(np.diff([0.0, *gains]) > 0)
    assert gains[-1] > 0.15


# ---- noise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_noise_has_mean_one(law):
    values, chances = LAWS[law]
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert values @ chances == pytest.approx(1, abs=1e-12)
    assert (values >= 0).all()


def test_laws_are_as_different_as_their_names():
    spread = {law: chances @ (values - 1) ** 2 for law, (values, chances) in LAWS.items()}
    assert spread["two-point"] == pytest.approx(1, abs=1e-12)
    assert spread["skewed"] == pytest.approx(19, abs=1e-9)
    values, chances = LAWS["heavy-tailed"]
    tails = np.cumsum(chances[::-1])[::-1]
    assert_allclose(tails[:-4] / tails[1:-3], 2**1.5, rtol=0.02)  # up to the cut
    assert values[-1] / values[0] == 512


@pytest.mark.parametrize("law", LAWS)
def test_noise_changes_no_value_and_shows_in_the_log(law):
    benchmark = make("noisy", law=law, effect=0.5)
    rows = benchmark.mdp.dense().P
    assert_allclose(rows, make("nearly-alike", effect=0.5).mdp.dense().P, rtol=0, atol=1e-12)
    every = policies(benchmark)
    coarse = [performance(benchmark.mdp, Policy(benchmark.mdp.pairs, each)) for each in every]
    assert_allclose(benchmark.truth.worth(every), coarse, rtol=0, atol=1e-12)
    log = benchmark.sample(2_000, np.random.default_rng(1))
    states = set(log.next_state)
    paid = {state: np.unique(log.reward[log.next_state == state]) for state in states}
    assert max(map(len, paid.values())) > 1
    mean = benchmark.mdp.reward[benchmark.mdp.successor == 19][0]
    assert mean == pytest.approx(1, abs=1e-12)
    assert_allclose(np.unique(log.reward[log.terminated]), LAWS[law][0][: len(paid[19])])


# ---- bandits ----------------------------------------------------------------------------------


@given(seed=SEEDS, arms=st.integers(2, 100), effect=st.floats(0, 1))
def test_a_bandit_is_one_decision(seed, arms, effect):
    benchmark = make("bandit", seed=seed, arms=arms, effect=effect)
    chance = benchmark.mdp.dense().P[0, :, 1]
    full = make("bandit", seed=seed, arms=arms, effect=1).mdp.dense().P[0, :, 1]
    share = benchmark.behavior.dense()[0]
    assert_allclose(chance, (1 - effect) * (share @ full) + effect * full, rtol=0, atol=1e-12)
    assert benchmark.performance_of_behavior() == pytest.approx(share @ full, abs=1e-12)
    assert benchmark.optimal_performance() == pytest.approx(chance.max(), abs=1e-12)
    log = benchmark.sample(20, np.random.default_rng(0))
    assert log.num_steps == 20
    assert log.terminated.all()


# ---- loggers that learn -----------------------------------------------------------------------


@pytest.mark.thorough
def test_a_learner_that_never_exploits_is_the_policy():
    """Means of 20,000 draws: off by 5 standard errors once in 10⁶ runs for each of 10 arms."""
    benchmark = make("adaptive/bandit", epsilon=1)
    log = benchmark.sample(20_000, np.random.default_rng(2))
    share = benchmark.behavior.dense()[0]
    taken = np.bincount(log.action, minlength=10) / log.num_steps
    assert (np.abs(taken - share) <= 5 * np.sqrt(share * (1 - share) / log.num_steps)).all()
    chance = benchmark.mdp.dense().P[0, :, 1]
    for arm in range(10):
        won = log.reward[log.action == arm]
        spread = math.sqrt(chance[arm] * (1 - chance[arm]) / len(won))
        assert abs(won.mean() - chance[arm]) <= 5 * spread


def test_a_learner_takes_what_has_paid_best():
    benchmark = make("adaptive/bandit", epsilon=0)
    log = benchmark.sample(300, np.random.default_rng(4))
    wins, tries = np.zeros(10), np.zeros(10)
    for action, reward in zip(log.action, log.reward, strict=True):
        if tries.any():
            means = np.where(tries > 0, wins / np.maximum(tries, 1), -1)
            assert action == means.argmax()
        wins[action] += reward
        tries[action] += 1


def test_a_learner_counts_what_follows_not_what_is_paid_at_once():
    """Replays the log: with ε = 0 every action in a known state has the best mean return."""
    benchmark = make("adaptive", effect=1, epsilon=0)
    log = benchmark.sample(60, np.random.default_rng(5))
    total, tries = np.zeros((20, 4)), np.zeros((20, 4))
    for first, last in zip(log.episode_offsets[:-1], log.episode_offsets[1:], strict=True):
        for row in range(first, last):
            state = log.state[row]
            if tries[state].any():
                means = np.where(tries[state] > 0, total[state] / np.maximum(tries[state], 1), -1)
                assert means[log.action[row]] == means.max()
        returned = 0.0
        for row in reversed(range(first, last)):
            returned = log.reward[row] + 0.95 * returned
            total[log.state[row], log.action[row]] += returned
            tries[log.state[row], log.action[row]] += 1


@pytest.mark.thorough
def test_what_a_learner_saw_is_no_fair_sample():
    """Means of arms that began badly stay too low: that is what the family is for.

    In 300 logs the mean of an arm's wins minus its chance lies many standard errors below 0.
    """
    benchmark = make("adaptive/bandit", arms=5, effect=0, epsilon=0.1)
    chance, gaps = benchmark.mdp.dense().P[0, :, 1], []
    for seed in range(300):
        log = benchmark.sample(60, np.random.default_rng(seed))
        gaps += [
            log.reward[log.action == arm].mean() - chance[arm]
            for arm in range(5)
            if (log.action == arm).any()
        ]
    assert np.mean(gaps) < -5 * np.std(gaps) / math.sqrt(len(gaps))


# ---- logs that show less than there is --------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_policies_of_groups_are_judged_in_the_world_itself(seed):
    benchmark = make("coarse", seed=seed)
    fine, shown = benchmark.truth.mdp, benchmark.simulator.shown
    assert fine.num_states == 96
    assert np.bincount(shown).tolist() == [5] * 19 + [1]
    policy = Policy(benchmark.mdp.pairs, policies(benchmark)[0])
    table = policy.dense()[shown]
    worth = performance(fine, Policy.from_dense(fine, table))
    assert benchmark.truth.worth(policy.probability[np.newaxis])[0] == pytest.approx(
        worth, abs=1e-12
    )


def test_the_model_of_groups_is_what_very_many_episodes_show():
    benchmark = make("coarse", seed=2)
    log = benchmark.sample(20_000, np.random.default_rng(3))
    seen = np.zeros((20, 4, 20))
    np.add.at(seen, (log.state, log.action, log.next_state), 1)
    visits = seen.sum(axis=2, keepdims=True)
    gap = np.abs(seen / np.maximum(visits, 1) - benchmark.mdp.dense().P)
    # Rows are no independent draws; five times a binomial's spread, and some for rare rows.
    assert (gap * (visits > 0) <= 2.5 / np.sqrt(np.maximum(visits, 1))).all()
    assert np.array_equal(log.terminated, log.next_state == 19)


def test_groups_are_no_markov_process():
    """What the model says of the best policy of groups is not what it is worth."""
    wrong = []
    for seed in range(5):
        benchmark = make("coarse", seed=seed)
        plan = optimal(benchmark.mdp).policy
        said = performance(benchmark.mdp, plan)
        wrong.append(abs(said - benchmark.truth.worth(plan.probability[np.newaxis])[0]))
    assert max(wrong) > 0.02


def test_expected_visits_are_those_of_a_power_of_the_chain():
    benchmark = make("nearly-alike")
    mdp, table = benchmark.mdp, benchmark.behavior.dense()
    chain = np.einsum("sa,sat->st", table, mdp.dense().P)
    at = sum(np.linalg.matrix_power(chain, t)[0] for t in range(7))
    expected = (at[:, np.newaxis] * table).ravel()
    assert_allclose(expected_visits(mdp, benchmark.behavior, 7), expected, rtol=0, atol=1e-12)


def test_treatment_does_nothing_and_looks_harmful():
    benchmark = make("hidden-cause")
    worth = benchmark.truth.worth(policies(benchmark))
    assert_allclose(worth, benchmark.performance_of_behavior(), rtol=0, atol=1e-12)
    # P(severe | treated) = 0.8, so that a treated patient dies with 0.8 · 0.05 + 0.2 · 0.
    rows = benchmark.mdp.dense().P
    assert_allclose(rows[3, 1, [4, 3, 2, 11]], [0.18, 0.42, 0.36, 0.04], rtol=0, atol=1e-12)
    assert_allclose(rows[3, 0, [4, 3, 2, 11]], [0.72, 0.18, 0.09, 0.01], rtol=0, atol=1e-12)
    waiting = Policy.deterministic(benchmark.mdp, np.zeros(12, int))
    said = performance(benchmark.mdp, waiting) - performance(benchmark.mdp, benchmark.behavior)
    assert said > 0.3


def test_without_a_tilt_the_hidden_cause_does_no_harm():
    benchmark = make("hidden-cause", tilt=0)
    for each in policies(benchmark):
        said = performance(benchmark.mdp, Policy(benchmark.mdp.pairs, each))
        assert said == pytest.approx(benchmark.performance_of_behavior(), abs=1e-12)


def test_doctors_follow_the_policy_on_average():
    benchmark = make("hidden-cause")
    acting = benchmark.simulator.acting(benchmark.behavior).dense()
    assert_allclose(acting[:2], [[0.8, 0.2], [0.2, 0.8]], rtol=0, atol=1e-12)
    log = benchmark.sample(2_000, np.random.default_rng(6))
    assert abs(log.action.mean() - 0.5) <= 5 * 0.5 / math.sqrt(log.num_steps)


# ---- the truth of all -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nearly-alike", "noisy", "bandit", "coarse", "hidden-cause"])
def test_behavior_earns_in_logs_what_the_truth_says(name):
    """Mean returns within five standard errors, and what the horizon cuts off."""
    benchmark = make(name)
    log = benchmark.sample(4_000, np.random.default_rng(8))
    earned = returns(log, benchmark.discount)
    noise = 5 * earned.std() / math.sqrt(earned.size)
    cut = benchmark.discount**benchmark.horizon * benchmark.value_bounds[1]
    expected = benchmark.performance_of_behavior()
    assert expected - noise - cut * (name != "bandit") <= earned.mean() <= expected + noise


# ---- rewards that hardly ever show -------------------------------------------------------------


@pytest.mark.parametrize("name", ["disaster", "jackpot"])
def test_what_hardly_ever_shows_decides_which_action_is_better(name):
    benchmark = make(name, situations=3)
    usual, tempting = benchmark.mdp.pairs.dense(benchmark.mdp.expected_reward)[0]
    assert usual - tempting == pytest.approx(0.5, abs=0.01)
    log = benchmark.sample(20_000, np.random.default_rng(1))
    rare, often = (-500.0, 1.5) if name == "disaster" else (2000.0, 1.0)
    chance = 0.002 if name == "disaster" else 0.0005
    mine = log.reward[np.isin(log.reward, [rare, often])]
    # Its spread is that of 160,000 draws, and more: once in 10⁶ logs it is five times as far off.
    assert np.mean(mine == rare) == pytest.approx(chance, abs=5 * np.sqrt(chance / mine.size))
    assert np.unique(log.state).tolist() == [0, 1, 2]
    assert np.mean(log.action) == pytest.approx(0.2, abs=0.01)


def test_a_copied_log_has_every_episode_several_times():
    log = make("copied", times=3).sample(10, 1)  # four episodes
    first, offsets = log.episodes(slice(0, 4)), log.episode_offsets
    assert log.num_episodes == 10
    again = log.episodes(slice(4, 8))
    assert np.array_equal(first.reward, again.reward)
    assert np.array_equal(first.pair, again.pair)
    assert np.array_equal(np.diff(offsets)[:4], np.diff(offsets)[4:8])


def test_an_outcome_in_the_state_makes_a_deadly_drug_look_harmless():
    ward = make("outcome-in-state")
    log = ward.sample(500, 1)
    last = log.episode_offsets[1:] - 1
    assert set(log.state[last]) == {0, 1, 2}  # in care after eight weeks, died, discharged
    assert not np.delete(log.state, last).any()
    assert set(log.action[log.state == 1]) == {1}  # only the drug kills
    seen = log.counts().visits
    drug = np.ones(ward.mdp.num_pairs)
    drug[0::2] = 0.0
    said = performance(ward.mdp, Policy(ward.mdp.pairs, drug)) - performance(
        ward.mdp, ward.behavior
    )
    true = ward.truth.worth(np.stack([drug, ward.behavior.probability]))
    assert said > 1
    assert true[0] - true[1] < -1
    assert seen[2] == 0  # nobody died without it


def test_recording_that_stops_when_machines_break_hides_that_they_do():
    machines = make("stops-that-know")
    log = machines.sample(500, 1)
    last = log.episode_offsets[1:] - 1
    cut = log.next_state[last] == UNKNOWN
    assert not log.terminated.any()
    assert set(log.action[last[cut]]) == {1}  # machines that run
    assert set(np.diff(log.episode_offsets)[~cut]) == {30}
    run = np.tile([0.0, 1.0], 3)
    said = performance(machines.mdp, Policy(machines.mdp.pairs, run))
    true = machines.truth.worth(np.stack([run, machines.behavior.probability]))
    assert said == pytest.approx(10)
    assert true[0] == pytest.approx(0.8 / 0.28)
    assert true[0] < true[1]
