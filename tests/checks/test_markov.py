"""How far back the Markov checks look, in worlds whose memory is known."""

import numpy as np
import pytest

from surestep import DecisionLog, Pairs
from surestep.checks import says
from surestep.checks.check import GivenLog
from surestep.checks.markov import next_state_by_past, reward_by_past
from surestep.checks.running import LEVEL


def log_of(actions, next_states=None, rewards=None, states=None):
    """Episodes [E, H] whose state is the number of the step, unless others are given."""
    episodes, steps = actions.shape
    if states is None:
        states = np.tile(np.arange(steps), (episodes, 1))
        next_states = states + 1
    size = 1 + max(states.max(), next_states.max())
    return DecisionLog(
        Pairs.full(int(size), 2),
        states.ravel(),
        actions.ravel(),
        (np.zeros(actions.shape) if rewards is None else rewards).ravel(),
        next_states.ravel(),
        np.zeros(actions.size, np.bool_),
        np.tile(np.arange(steps) == steps - 1, episodes),
        steps * np.arange(episodes + 1),
    )


def earlier(actions, back):
    return np.pad(actions, ((0, 0), (back, 0)))[:, : actions.shape[1]]


@pytest.mark.parametrize(
    ("pays", "back"),
    [
        (lambda a: 0.3 * a - 0.7 * earlier(a, 2), 2),  # always 1: +0.3 a step at once, −0.4 in all
        (lambda a: a * 0.3 + earlier(a, 3), 3),
        # From the third step on: neither step before tells anything alone.
        (lambda a: 0.5 * (earlier(a, 1) ^ earlier(a, 2)) * (np.arange(6) > 1), 2),
        (lambda a: 0.5 * earlier(a, 1), 1),
    ],
)
def test_effects_up_to_three_steps_back_are_seen(pays, back):
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (400, 6))
    log = log_of(actions, rewards=pays(actions) + rng.normal(0, 0.3, actions.shape))
    check = reward_by_past(GivenLog(log, 1, LEVEL))
    assert (check.outcome, check.figures) == ("failed", {"back": back})
    assert check.p_value <= check.level == LEVEL
    assert ("previous steps help to predict the reward" in says(check)) == (back > 1)


def test_states_that_an_action_two_steps_back_decides_are_seen():
    rng = np.random.default_rng(0)
    every = rng.integers(0, 2, (300, 11))  # the first three before the episode begins
    actions = every[:, 3:]
    states = np.where(rng.random((300, 9)) < 0.7, every[:, :9], 0)
    log = log_of(actions, states[:, 1:], states=states[:, :-1])
    check = next_state_by_past(GivenLog(log, 1, LEVEL))
    assert (check.outcome, check.figures["back"]) == ("failed", 2)


@pytest.mark.parametrize(("steps", "back"), [(2, 1), (3, 2), (6, 3)])
def test_a_pass_says_how_far_it_looked(steps, back):
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, (600, steps))
    log = log_of(actions, rewards=0.3 * actions + rng.normal(size=actions.shape))
    check = reward_by_past(GivenLog(log, 1, LEVEL))
    assert (check.outcome, check.figures) == ("passed", {"back": back})
    named = "previous step helps" if back == 1 else f"{back} previous steps help"
    assert says(check) == f"No sign that the {named} to predict the reward."


@pytest.mark.thorough
@pytest.mark.parametrize("logs", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_markov_logs_fail_at_most_as_often_as_stated(logs):
    """All four pasts together: at a level of 0.1, within 3 standard errors."""
    rng = np.random.default_rng(2)
    fails = 0
    for seed in range(logs):
        actions = rng.integers(0, 2, (120, 5))
        rewards = 0.3 * actions + rng.normal(size=actions.shape)
        check = reward_by_past(GivenLog(log_of(actions, rewards=rewards), seed, 0.1))
        fails += check.outcome == "failed"
    assert fails <= 0.1 * logs + 3 * np.sqrt(0.09 * logs)
