"""The benchmarks as Gymnasium environments: its own checks, the law of steps, and refusals."""

import math
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surestep.environments import PUBLISHED, make, register
from surestep.environments.gymnasium_envs import TABULAR
from surestep.errors import InvalidParameter

register()


def started(env_id, seed=0, **parameters):
    env = gymnasium.make(env_id, **parameters).unwrapped
    env.reset(seed=seed)
    return env


def in_new_interpreter(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )


def test_every_published_benchmark_is_registered_once():
    register()  # a second time: nothing happens, not even a warning
    ours = {env_id for env_id in gymnasium.registry if env_id.startswith("surestep/")}
    assert ours == {*TABULAR}
    assert {*TABULAR.values()} == set(PUBLISHED)
    for env_id, name in TABULAR.items():
        assert gymnasium.make(env_id).unwrapped.benchmark == make(name)


@pytest.mark.parametrize("env_id", TABULAR)
def test_gymnasium_has_nothing_to_complain_about(env_id):
    check_env(gymnasium.make(env_id).unwrapped)  # warnings are errors here


@pytest.mark.parametrize("env_id", ["surestep/Gridworld-v0", "surestep/ResourceGatheringRagged-v0"])
def test_steps_come_as_often_as_the_model_says(env_id):
    env = started(env_id)
    mdp = env.benchmark.mdp
    states, labels = mdp.num_states, mdp.pairs.num_actions
    seen, draws = np.zeros((states, labels, states)), np.random.default_rng(2)
    state, info = env.reset()
    for _ in range(6_000):
        action = draws.choice(np.flatnonzero(info["action_mask"]))
        following, reward, terminated, truncated, info = env.step(action)
        seen[state, action, following] += 1
        transition = mdp.successor == following
        pair = mdp.pairs.find(np.array([state]), np.array([action]))[0]
        transition[: mdp.offsets[pair]] = transition[mdp.offsets[pair + 1] :] = False
        assert reward == mdp.reward[transition]
        if terminated or truncated:
            following, info = env.reset()
        state = following
    # Hoeffding for every transition at once: off by more than this once in 10⁹ runs.
    visits = seen.sum(axis=2, keepdims=True)
    limit = np.sqrt(math.log(2 * 1304 * 1e9) / (2 * np.maximum(visits, 1)))
    gap = np.abs(seen / np.maximum(visits, 1) - mdp.dense().P) * (visits > 0)
    assert (gap <= limit).all()
    assert (seen[mdp.dense().P == 0] == 0).all()


def test_episodes_terminate_at_the_goal_and_are_truncated_at_the_horizon():
    env = started("surestep/Gridworld-v0")
    lengths, ends = [], set()
    env.action_space.seed(0)
    for _ in range(200):
        state, _ = env.reset()
        assert state == 0
        for step in range(1, 52):
            state, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            assert terminated == (state == 24) == (reward == 1)
            assert truncated == (step == 50 and not terminated)
            if terminated or truncated:
                break
        lengths.append(step)
        ends.add(terminated)
    assert max(lengths) == 50
    assert ends == {True, False}


def test_the_horizon_follows_the_parameters_and_a_stream_has_none():
    env = started("surestep/Gridworld-v0", size=8)
    assert env.observation_space.n == 64
    flags = [env.step(3)[3] for _ in range(80)]
    assert flags == [False] * 79 + [True]
    endless = started("surestep/WetChickenHeuristic-v0")
    assert not any(endless.step(0)[3] for _ in range(1000))


def test_an_action_that_does_not_exist_is_a_wasted_step():
    env = started("surestep/ResourceGatheringRagged-v0")
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 1, 0]  # home is at the lower border
    state, reward, terminated, truncated, info = env.step(3)
    assert (state, reward, terminated, truncated) == (0, 0.0, False, False)
    assert info["action_mask"].tolist() == [1, 1, 1, 0]
    assert env.step(0)[0] == 1


def test_the_same_seed_gives_the_same_episode():
    def episode(seed):
        env = started("surestep/WetChicken-v0", seed)
        return [env.step(t % 5)[0].tolist() for t in range(30)]

    assert episode(3) == episode(3)
    assert episode(3) != episode(4)


@pytest.mark.parametrize("action", [5, -1, 0.5, "drift", None, np.array([0, 1])])
def test_what_is_no_action_is_refused(action):
    env = started("surestep/WetChicken-v0")
    with pytest.raises(InvalidParameter, match=r"action is .*, expected 0 to 4"):
        env.step(action)


def test_a_step_needs_an_episode_that_goes_on():
    env = gymnasium.make("surestep/Gridworld-v0", size=2).unwrapped
    with pytest.raises(InvalidParameter, match=r"call reset\(\) first"):
        env.step(0)
    env.reset(seed=0)
    while not env.step(0)[2]:
        pass
    with pytest.raises(InvalidParameter, match="the episode is over"):
        env.step(0)


def test_a_new_interpreter_finds_an_environment_by_its_module():
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('surestep.environments.gymnasium_envs:surestep/Gridworld-v0')\n"
        "print(env.reset(seed=0)[0])\n"
        "import surestep.environments\n"  # which registers the others
        "print(gymnasium.make('surestep/WetChicken-v0').reset(seed=0)[0])"
    )
    result = in_new_interpreter(code)
    assert (result.stdout, result.stderr) == ("0\n0\n", "")


def test_without_gymnasium_the_message_ends_with_the_command():
    code = (
        "import sys\nsys.modules['gymnasium'] = None\n"
        "from surestep.environments import make, register\nmake('gridworld')\nregister()"
    )
    last = in_new_interpreter(code).stderr.splitlines()[-1]
    assert last == (
        "surestep.errors.MissingExtra: environments to act in need Gymnasium, which is not "
        "installed; install it in a clone of surestep with: pip install '.[rl]'"
    )
