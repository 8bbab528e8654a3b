"""Sampled logs and counts: their laws against all trajectories, their flags, what is refused."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtrc

from support.oracles import trajectories
from support.strategies import episodic_mdps, mdps, policies
from surestep import FiniteMDP, Policy, SurestepError, sample_counts, sample_log
from surestep._arrays import run_owners
from surestep.environments import make
from surestep.errors import InvalidModel, InvalidParameter
from surestep.sampling import CountSampler

LABELS = {"state_labels": ("ward", "home", "out"), "action_labels": ("wait", "treat")}

# ward: wait stays or goes home, treat goes home or out; home: both lead out, where all is over.
P = np.zeros((3, 2, 3))
P[0] = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
P[1] = [[0.0, 0.0, 1.0], [0.125, 0.0, 0.875]]
R = np.arange(18.0).reshape(3, 2, 3)
WARD = FiniteMDP.from_dense(P, R, 0.5, [0.75, 0.25, 0.0], **LABELS)
MIXED = Policy.from_dense(WARD, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
FALSE_ALARM = 1e-6  # of each statistical test, over the seeds; the seeds are fixed


def sample(mdp=WARD, policy=MIXED, episodes=50, horizon=4, seed=0):
    return sample_log(mdp, policy, episodes, horizon, np.random.default_rng(seed))


def episode_rows(log):
    """Each episode as a tuple of (state, action, next state)."""
    rows = list(zip(log.state.tolist(), log.action.tolist(), log.next_state.tolist(), strict=True))
    ends = log.episode_offsets.tolist()
    return [tuple(rows[a:b]) for a, b in pairwise(ends)]


def test_trajectories_come_as_often_as_they_should():
    # Hoeffding: with 26 trajectories or fewer, a frequency is off by more than this once in 10⁹.
    episodes, horizon = 40_000, 3
    log = sample(episodes=episodes, horizon=horizon)
    found = {}
    for rows in episode_rows(log):
        found[rows] = found.get(rows, 0) + 1
    expected = {}
    for trajectory in trajectories(WARD, MIXED, horizon):
        rows = tuple((step.state, step.action, step.next_state) for step in trajectory.steps)
        expected[rows] = float(trajectory.probability)
    assert set(found) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1.0)
    limit = math.sqrt(math.log(2 * len(expected) * 1e9) / (2 * episodes))
    for rows, chance in expected.items():
        assert abs(found.get(rows, 0) / episodes - chance) <= limit, rows


def test_flags_rewards_and_lengths_are_those_of_the_model():
    log = sample(episodes=300)
    assert set(np.diff(log.episode_offsets)) == {1, 2, 3, 4}
    last = log.episode_offsets[1:] - 1
    assert np.array_equal(log.terminated, log.next_state == 2)
    assert np.array_equal(np.flatnonzero(log.terminated | log.truncated), last)
    assert not (log.terminated & log.truncated).any()
    assert (np.diff(log.episode_offsets)[log.truncated[last]] == 4).all()
    assert np.array_equal(log.reward, R[log.state, log.action, log.next_state])
    assert log.pairs is WARD.pairs


@given(mdp=episodic_mdps(), data=st.data(), seed=st.integers(0, 2**32))
def test_a_log_shows_only_what_is_possible(mdp, data, seed):
    policy = data.draw(policies(mdp.pairs))
    log = sample(mdp, policy, episodes=5, horizon=6, seed=seed)
    assert log.num_episodes == 5
    assert np.diff(log.episode_offsets).max() <= 6
    assert (mdp.dense().P[log.state, log.action, log.next_state] > 0).all()
    assert (policy.dense()[log.state, log.action] > 0).all()
    assert np.array_equal(log.terminated, log.next_state == mdp.num_states - 1)


@given(mdp=mdps(max_states=3), data=st.data())
def test_a_model_is_refused_exactly_for_ends_that_no_log_can_show(mdp, data):
    policy = data.draw(policies(mdp.pairs))
    ending = np.diff(mdp.offsets) == 0
    over = np.array([ending[mdp.pairs.state == s].all() for s in range(mdp.num_states)])
    taken = ending & (policy.probability > 0)
    by_action = taken & ~over[mdp.pairs.state]
    with_reward = taken & (mdp.ending_reward != 0)
    at_start = over & (mdp.initial > 0)
    if by_action.any() or with_reward.any() or at_start.any():
        with pytest.raises(InvalidModel, match="expected"):
            sample(mdp, policy)
    else:
        assert sample(mdp, policy).num_episodes == 50


def test_actions_and_successors_of_probability_zero_are_never_taken():
    mdp = FiniteMDP(
        WARD.pairs,
        np.array([0, 2, 4, 6, 8, 8, 8]),
        np.array([0, 1, 2, 1, 0, 2, 2, 0]),
        np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]),
        np.zeros(8),
        np.full(6, 0.5),
        np.array([0.0, 1.0, 0.0]),
    )
    log = sample(mdp, Policy.from_dense(mdp, [[0, 1], [1, 0], [0, 1]]), episodes=2000)
    assert episode_rows(log) == [((1, 0, 2),)] * 2000


def test_the_oracle_gives_a_trajectory_the_probability_computed_by_hand():
    (chance,) = (
        t.probability
        for t in trajectories(WARD, MIXED, 2)
        if [(s.state, s.action, s.next_state) for s in t.steps] == [(0, 0, 1), (1, 1, 2)]
    )
    # start · wait · home · treat · out
    assert chance == Fraction(3 * 1 * 1 * 1 * 7, 4 * 4 * 2 * 2 * 8)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"mdp": FiniteMDP.from_dense(P * [[[1], [0]], [[1], [1]], [[0], [0]]], R, 0.5, 0)},
            InvalidModel,
            "the policy takes state 0, action 1 with probability 0.75, but it has no successor, "
            "and a log needs a next state; expected a transition to an end state of the model's "
            "own; 1 of 6 pairs is affected",
        ),
        (
            {"mdp": FiniteMDP.from_dense(P, np.ones((3, 2)), 0.5, 0, **LABELS)},
            InvalidModel,
            "state 'out', action 'wait' earns 1.0 after the end of the episode, which no log "
            "shows; expected 0 (give the reward to the transitions that lead there); 1 of 6",
        ),
        (
            {"mdp": FiniteMDP.from_dense(P, R, 0.5, [0.5, 0.0, 0.5], **LABELS)},
            InvalidModel,
            "episodes start in state 'out' with probability 0.5, where they are over at once",
        ),
        ({"episodes": 0}, InvalidParameter, "episodes is 0, expected a whole number of 1 or more"),
        ({"horizon": 1.5}, InvalidParameter, "horizon is 1.5, expected a whole number"),
        ({"mdp": MIXED}, InvalidParameter, "mdp is of type Policy, expected FiniteMDP"),
        ({"policy": None}, InvalidParameter, "policy is "),
    ],
)
def test_what_cannot_be_sampled_is_refused_by_name(changes, error, words):
    given = {"mdp": WARD, "policy": MIXED, "episodes": 50, "horizon": 4, "rng": 0} | changes
    for draw in (sample_log, sample_counts):
        with pytest.raises(SurestepError) as refusal:
            draw(**given)
        assert type(refusal.value) is error
        assert words in str(refusal.value)


@pytest.mark.parametrize("rng", [None, True, -1, 0.5, np.random, np.random.RandomState(0)])
def test_randomness_is_a_generator_or_its_seed(rng):
    for sample in (sample_log, sample_counts):
        with pytest.raises(InvalidParameter, match=r"rng is .*, expected a numpy.random.Generator"):
            sample(WARD, MIXED, 1, 1, rng)


@pytest.mark.parametrize("seed", [0, 7, np.int32(7), 2**70])
def test_a_whole_number_is_the_seed_of_a_generator(seed):
    for sample in (sample_log, sample_counts):
        drawn = sample(WARD, MIXED, 20, 5, np.random.default_rng(int(seed)))
        assert sample(WARD, MIXED, 20, 5, seed) == drawn
        assert sample(WARD, MIXED, 20, 5, 3) != drawn
    world = make("gridworld")
    assert world.sample(3, seed) == world.sample(3, np.random.default_rng(int(seed)))


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


def count_law(mdp, policy, episodes, horizon):
    """The exact probability of every vector of counts."""
    key, states = run_owners(mdp.offsets) * mdp.num_states + mdp.successor, mdp.num_states
    single = [
        (np.searchsorted(key, [step.pair * states + step.next_state for step in each.steps]), each)
        for each in trajectories(mdp, policy, horizon)
    ]
    law = Counter()
    for chosen in itertools.product(single, repeat=episodes):
        taken = np.concatenate([places for places, _ in chosen])
        counts = np.bincount(taken, minlength=mdp.num_transitions)
        law[tuple(counts.tolist())] += math.prod(float(each.probability) for _, each in chosen)
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


@pytest.mark.thorough
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
