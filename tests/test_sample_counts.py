"""Counts drawn by population: the law of simulated logs, exactly."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtrc

from support.strategies import policies
from surestep import FiniteMDP, Policy
from surestep._arrays import run_lengths, run_owners
from surestep.errors import SurestepError
from surestep.sampling import CountSampler, sample_counts, sample_log

FALSE_ALARM = 1e-6  # of each statistical test, over the seeds; the seeds are fixed


def small_world():
    """Three states, two actions, one end; a start that is random."""
    table = np.zeros((4, 2, 4))
    table[0, 0] = [0.5, 0.3, 0.0, 0.2]
    table[0, 1] = [0.0, 0.6, 0.4, 0.0]
    table[1, 0] = [0.1, 0.0, 0.9, 0.0]
    table[1, 1] = [0.25, 0.25, 0.25, 0.25]
    table[2, 0] = [0.0, 1.0, 0.0, 0.0]
    table[2, 1] = [0.7, 0.0, 0.0, 0.3]
    reward = np.random.default_rng(0).normal(size=(4, 2, 4))
    return FiniteMDP.from_dense(table, reward, 0.9, initial=[0.8, 0.2, 0.0, 0.0])


def skewed_policy(mdp):
    """A policy that takes each action with another probability, one of them never."""
    return Policy.from_dense(mdp, [[0.7, 0.3], [1.0, 0.0], [0.2, 0.8], [0.5, 0.5]])


def trajectories(mdp, policy, horizon):
    """Every trajectory as the transitions it takes, with its probability."""
    ends = {int(s) for s in mdp.pairs.state[run_lengths(mdp.offsets) == 0]}
    found = [((), int(s), float(p)) for s, p in enumerate(mdp.initial) if p > 0]
    for _ in range(horizon):
        longer = []
        for taken, state, chance in found:
            if state in ends:
                longer.append((taken, state, chance))
                continue
            for k in range(*mdp.pairs.offsets[state : state + 2]):
                for t in range(*mdp.offsets[k : k + 2]):
                    p = chance * float(policy.probability[k] * mdp.probability[t])
                    if p > 0:
                        longer.append(((*taken, t), int(mdp.successor[t]), p))
        found = longer
    return [(taken, chance) for taken, _, chance in found]


def count_law(mdp, policy, episodes, horizon):
    """The exact probability of every vector of counts."""
    single = trajectories(mdp, policy, horizon)
    law = Counter()
    for chosen in itertools.product(single, repeat=episodes):
        counts = np.zeros(mdp.num_transitions, int)
        chance = 1.0
        for taken, p in chosen:
            np.add.at(counts, list(taken), 1)
            chance *= p
        law[tuple(counts.tolist())] += chance
    return law


def population(mdp, policy, episodes, horizon, rng):
    """Counts by population."""
    return CountSampler.of(mdp, policy).draw(episodes, horizon, rng)[0]


def simulated(mdp, policy, episodes, horizon, rng):
    """Counts by simulation of whole trajectories."""
    log = sample_log(mdp, policy, episodes, horizon, rng)
    key = run_owners(mdp.offsets) * mdp.num_states + mdp.successor
    return np.bincount(
        np.searchsorted(key, log.pair * mdp.num_states + log.next_state),
        minlength=mdp.num_transitions,
    )


@pytest.mark.parametrize("sampler", [population, pytest.param(simulated, marks=pytest.mark.slow)])
def test_both_samplers_draw_from_the_exact_law_of_the_counts(sampler):
    """χ² against all vectors of counts, rare ones pooled."""
    mdp = small_world()
    policy, rng, draws = skewed_policy(mdp), np.random.default_rng(11), 10_000
    law = count_law(mdp, policy, episodes=2, horizon=3)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    seen = Counter(tuple(sampler(mdp, policy, 2, 3, rng).tolist()) for _ in range(draws))
    assert set(seen) <= set(law)
    common = [counts for counts, chance in law.items() if chance * draws >= 10]
    expected = np.array([law[counts] for counts in common])
    observed = np.array([seen[counts] for counts in common])
    expected = np.append(expected, 1 - expected.sum()) * draws
    observed = np.append(observed, draws - observed.sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chdtrc(expected.size - 1, statistic) > FALSE_ALARM


def test_means_of_many_trajectories_are_the_expected_visits():
    mdp = small_world()
    policy, rng, episodes, horizon = skewed_policy(mdp), np.random.default_rng(3), 10**6, 6
    times, starts = CountSampler.of(mdp, policy).draw(episodes, horizon, rng)
    dense = mdp.dense()
    chain = np.einsum("sa,sat->st", policy.dense(), dense.P)
    state, expected = np.array(mdp.initial), np.zeros((4, 2, 4))
    for _ in range(horizon):
        expected += state[:, None, None] * policy.dense()[:, :, None] * dense.P
        state = state @ chain
    pair = run_owners(mdp.offsets)
    mean = expected[mdp.pairs.state[pair], mdp.pairs.action[pair], mdp.successor] * episodes
    # A trajectory takes a transition at most `horizon` times, so the variance of a count is at
    # most horizon · mean; |z| > 6 has a probability below 1e-6 even for all of them together.
    assert (np.abs(times - mean) <= 6 * np.sqrt(horizon * mean + 1)).all()
    assert starts.sum() == episodes
    assert abs(starts[1] - 0.2 * episodes) < 6 * np.sqrt(0.16 * episodes)


@given(st.data(), st.integers(1, 40), st.integers(1, 8), st.integers(0, 1000))
def test_counts_are_those_of_some_trajectories(data, episodes, horizon, seed):
    mdp = small_world()
    policy = data.draw(policies(mdp.pairs))
    counts = sample_counts(mdp, policy, episodes, horizon, np.random.default_rng(seed))
    assert counts == sample_counts(mdp, policy, episodes, horizon, np.random.default_rng(seed))
    assert counts.starts.sum() == episodes
    assert episodes <= counts.visits.sum() <= episodes * horizon
    # Whoever decides in a state started there or came there, and the last step needs no decision.
    came = np.bincount(counts.successor, counts.times, mdp.num_states) + counts.starts
    decided = np.bincount(counts.pairs.state, counts.visits, mdp.num_states)
    assert (decided <= came).all()
    assert came.sum() - decided.sum() == episodes
    assert (counts.visits[policy.probability == 0] == 0).all()
    assert (counts.times > 0).all()
    np.testing.assert_array_equal(counts.terminal, [False] * 3 + [bool(came[3] > 0)])


def test_rewards_are_those_of_the_transitions_taken():
    mdp = small_world()
    counts = sample_counts(mdp, Policy.uniform(mdp), 50, 5, np.random.default_rng(1))
    assert not counts.rewards.known
    table = mdp.dense().R
    pair = run_owners(counts.offsets)
    means = table[counts.pairs.state[pair], counts.pairs.action[pair], counts.successor]
    np.testing.assert_allclose(counts.mean_reward(), means, rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"episodes": 0}, "episodes"),
        ({"horizon": 1.5}, "horizon"),
        ({"rng": 7.5}, "rng"),
        ({"policy": None}, "policy"),
    ],
)
def test_bad_arguments_are_refused_by_name(changed, message):
    mdp = small_world()
    arguments = {
        "mdp": mdp,
        "policy": Policy.uniform(mdp),
        "episodes": 5,
        "horizon": 5,
        "rng": np.random.default_rng(0),
    }
    with pytest.raises(SurestepError, match=message):
        sample_counts(**{**arguments, **changed})
