"""Sampled logs: their distribution against all trajectories, their flags, and what is refused."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracles import trajectories
from support.strategies import episodic_mdps, mdps, policies
from surestep import FiniteMDP, Policy, SurestepError, estimate_mdp, sample_counts, sample_log
from surestep.environments import make
from surestep.errors import InvalidModel, InvalidParameter

LABELS = {"state_labels": ("ward", "home", "out"), "action_labels": ("wait", "treat")}

# ward: wait stays or goes home, treat goes home or out; home: both lead out, where all is over.
P = np.zeros((3, 2, 3))
P[0] = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
P[1] = [[0.0, 0.0, 1.0], [0.125, 0.0, 0.875]]
R = np.arange(18.0).reshape(3, 2, 3)
WARD = FiniteMDP.from_dense(P, R, 0.5, [0.75, 0.25, 0.0], **LABELS)
MIXED = Policy.from_dense(WARD, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])


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


def test_the_estimate_from_a_long_log_is_close_to_the_model():
    # Hoeffding per entry and 18 entries: off by more than this once in 10⁹ logs.
    log = sample(episodes=40_000, horizon=50)
    counts = log.counts()
    estimate = estimate_mdp(counts, 0.5).dense()
    visits = WARD.pairs.dense(counts.visits)
    for s in range(2):
        for a in range(2):
            limit = math.sqrt(math.log(2 * 18 * 1e9) / (2 * visits[s, a]))
            assert np.abs(estimate.P[s, a] - P[s, a]).max() <= limit
    assert np.array_equal(estimate.P > 0, P > 0)
    assert counts.terminal.tolist() == [False, False, True]


def test_a_generator_in_the_same_state_gives_the_same_log():
    assert sample(seed=3) == sample(seed=3)
    assert sample(seed=3) != sample(seed=4)


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
        ({"mdp": MIXED}, InvalidParameter, "mdp is of type Policy, expected FiniteMDP"),
    ],
)
def test_what_cannot_be_sampled_is_refused_by_name(changes, error, words):
    with pytest.raises(SurestepError) as refusal:
        sample(**changes)
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
    world = make("gridworld")
    assert world.sample(3, seed) == world.sample(3, np.random.default_rng(int(seed)))
