"""Episodes of environments as logs: what the environment did, from Minari's files and by hand."""

import types
import warnings
from collections import Counter

import gymnasium
import minari
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from minari.data_collector import EpisodeBuffer

from surestep.errors import InvalidLog, InvalidParameter, SurestepError
from surestep.io import read_log
from surestep.io.labels.vocabulary import joined
from surestep.io.logs.frames import from_rollouts

STEPS = 4  # after as many, an episode is truncated


class Corridor(gymnasium.Env):
    """Three rooms in a row, and the way out on the right."""

    action_space = spaces.Discrete(2)

    def __init__(self, observation_space, observe):
        self.observation_space, self.observe = observation_space, observe

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room, self.steps = 0, 0
        return self.observe(self.room), {}

    def step(self, action):
        self.steps += 1
        self.room = max(self.room + (1 if action == 1 else -1), 0)
        over = self.room == 3
        return self.observe(self.room), -0.1, over, self.steps == STEPS and not over, {}


VIEWS = {
    "discrete": (spaces.Discrete(4), lambda room: room, lambda room: f"{room}"),
    "multi-discrete": (
        spaces.MultiDiscrete([4, 2]),
        lambda room: np.array([room, room % 2]),
        lambda room: f"{room}, {room % 2}",
    ),
    "binary": (
        spaces.MultiBinary(2),
        lambda room: np.array([room >= 2, room % 2], np.int8),
        lambda room: f"{int(room >= 2)}, {room % 2}",
    ),
    "box of one": (
        spaces.Box(0, 1, (1,), np.float32),
        lambda room: np.array([room / 10], np.float32),
        lambda room: f"{room / 10}",
    ),
    "box": (
        spaces.Box(0, 9, (2, 2), np.float64),
        lambda room: np.array([[room / 10, 0.0], [1.0, 2.5]]),
        lambda room: f"{room / 10}, 0.0, 1.0, 2.5",
    ),
    "text": (spaces.Text(9), lambda room: f"room{room}", lambda room: f"room{room}"),
}


def play(env, policy):
    """One episode as lists, one entry a step, and what happened, room by room."""
    observation, _ = env.reset(seed=0)
    episode = {"observations": [observation], "actions": [], "rewards": []}
    episode |= {"terminations": [], "truncations": []}
    happened, done = [], False
    while not done:
        before, action = env.room, policy[len(happened) % len(policy)]
        observation, reward, over, cut, _ = env.step(action)
        for name, value in zip(episode, (observation, action, reward, over, cut), strict=True):
            episode[name].append(value)
        happened.append((before, action, env.room, over))
        done = over or cut
    return episode, happened


def role_columns(columns):
    """The columns of the state and of the action."""
    return {
        role: tuple(name for name in columns if name == role or name.startswith(f"{role}_"))
        for role in ("state", "action")
    }


def counted(columns):
    """(state, action, next state, over) → times, as the log counts them."""
    found = read_log(columns, columns=role_columns(columns)).counts()
    rows = found.transitions
    label = [joined(state) for state in found.states]
    times = Counter()
    for s, a, n, over, many, total in zip(*rows[:6], strict=True):
        times[label[s], joined(found.actions[a]), label[n], bool(over)] = int(many)
        assert total / 10**found.scale == pytest.approx(-0.1 * many)
    return times


def expected(histories, name):
    return Counter(
        (name(before), f"{action}", name(after), over)
        for happened in histories
        for before, action, after, over in happened
    )


POLICIES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=STEPS), min_size=1, max_size=4)


@pytest.mark.one_quick
@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=3)
@given(plans=POLICIES)
def test_rollouts_count_as_what_happened(view, plans):
    space, observe, name = VIEWS[view]
    env = Corridor(space, observe)
    played = [play(env, plan) for plan in plans]
    assert all(obs in space for obs in played[0][0]["observations"])
    episodes = [episode for episode, _ in played]
    columns = from_rollouts(episodes)
    assert counted(columns) == expected([happened for _, happened in played], name)
    as_attributes = from_rollouts(types.SimpleNamespace(**episode) for episode in episodes)
    np.testing.assert_equal(as_attributes, columns)


def dataset_of(name, env, episodes):
    with warnings.catch_warnings():  # about authors and environments that nobody needs here
        warnings.simplefilter("ignore")
        return minari.create_dataset_from_buffers(
            name,
            [EpisodeBuffer(id=i, **episode) for i, episode in enumerate(episodes)],
            observation_space=env.observation_space,
            action_space=env.action_space,
            data_format="hdf5",
        )


@pytest.fixture
def _local_minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.mark.one_quick
@pytest.mark.usefixtures("_local_minari")
@pytest.mark.parametrize("view", VIEWS)
def test_minari_counts_as_what_happened(view):
    space, observe, name = VIEWS[view]
    env = Corridor(space, observe)
    played = [play(env, plan) for plan in ([1], [0], [1, 0, 1, 1], [1, 1, 0], [1])]
    dataset = dataset_of("corridor/test-v0", env, [episode for episode, _ in played])
    columns = from_rollouts(minari.load_dataset("corridor/test-v0").iterate_episodes())
    assert counted(columns) == expected([happened for _, happened in played], name)
    np.testing.assert_equal(from_rollouts(dataset.iterate_episodes()), columns)
    some = dataset.filter_episodes(lambda episode: bool(episode.terminations[-1]))
    kept = [happened for _, happened in played if happened[-1][-1]]
    assert counted(from_rollouts(some.iterate_episodes())) == expected(kept, name)


def test_the_columns_are_those_of_a_log():
    env = Corridor(*VIEWS["multi-discrete"][:2])
    columns = from_rollouts([play(env, [1])[0], play(env, [0])[0]])
    assert list(columns) == [
        *("episode", "step", "state_0", "state_1", "action", "reward"),
        *("next_state_0", "next_state_1", "terminated", "truncated"),
    ]
    assert columns["episode"].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert columns["step"].tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert columns["terminated"].tolist() == [False, False, True] + [False] * 4
    assert columns["truncated"].tolist() == [False] * 6 + [True]
    starts = read_log(columns, columns=role_columns(columns)).counts().starts
    assert starts.sum() == 2


GOOD = {
    "observations": [0, 1, 2],
    "actions": [0, 1],
    "rewards": [1.0, 2.0],
    "terminations": [False, True],
    "truncations": [False, False],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": [0, 1]}, r"the state has the shape \(2,\), expected 3 rows"),
        ({"terminations": [False]}, r"cannot reshape"),
        ({"observations": np.zeros((3, 8, 8, 3))}, "the state has 192 parts"),
        ({"observations": [[1], [1, 2], [1]]}, "inhomogeneous shape"),
    ],
)
def test_bad_episodes_are_explained(change, message):
    with pytest.raises(InvalidLog, match=f"episode 1 cannot be read .*{message}"):
        from_rollouts([GOOD, {**GOOD, **change}])


def test_episodes_of_different_columns_are_refused():
    with pytest.raises(InvalidLog, match=r"episode 1 has .*action_0.*expected the same of all"):
        from_rollouts([GOOD, {**GOOD, "actions": [(0, 1), (1, 0)]}])


def test_what_is_no_episode_is_refused():
    for junk in (3, None, "episodes", GOOD, b""):
        with pytest.raises(InvalidParameter, match="expected an iterable of episodes"):
            from_rollouts(junk)
    for junk in ([3], [None], [{}], [{**GOOD, "rewards": None}]):
        with pytest.raises(InvalidLog, match="episode 0 cannot be read"):
            from_rollouts(junk)
    empty = {**{key: [] for key in GOOD}, "observations": [0]}
    for nothing in ([], [empty]):
        with pytest.raises(InvalidLog, match="no episode with a step"):
            from_rollouts(nothing)


@settings(max_examples=20)
@given(
    parts=st.fixed_dictionaries(
        dict.fromkeys(
            GOOD,
            st.recursive(
                st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
                lambda inner: st.one_of(
                    st.lists(inner, max_size=3),
                    st.tuples(inner),
                    st.dictionaries(st.text(max_size=2), inner, max_size=2),
                ),
                max_leaves=6,
            ),
        )
    )
)
def test_any_episode_is_read_or_refused(parts):
    try:
        from_rollouts([parts])
    except SurestepError as refusal:
        assert "episode" in str(refusal)  # noqa: PT017
