"""Logs of three states and two actions in which one assumption, or none, does not hold."""

from __future__ import annotations

import numpy as np

from surestep import DecisionLog, Pairs

STATES, ACTIONS, STEPS = 3, 2, 8


def remembering_log(
    seed,
    *,
    episodes=150,
    lag=0.0,  # the chance that the action before decides the next state
    paid_lag=0.0,  # what the action before adds to the reward
    drift=0.0,  # the chance that in late episodes the next state is 0
    paid_drift=0.0,
    severity=0.0,  # how much more often a patient is treated who is severe all the time
):
    """Returns a log; with the usual arguments, of a Markov process and a policy of the state."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS)).cumsum(axis=2)
    late = np.arange(episodes) >= episodes / 2
    severe = rng.random(episodes) < 0.5
    state, before = rng.integers(STATES, size=episodes), np.zeros(episodes, np.int64)
    columns = {name: [] for name in ("state", "action", "reward", "next_state")}
    for _ in range(STEPS):
        treat = 0.3 + 0.1 * state + severity * np.where(severe, 1, -1) * 0.3
        action = (rng.random(episodes) < treat).astype(np.int64)
        place = rng.random(episodes)[:, None]
        following = (place > rows[state, action]).sum(axis=1).clip(max=STATES - 1)
        following = np.where(rng.random(episodes) < lag, before, following)
        following = np.where(late & (rng.random(episodes) < drift), 0, following)
        reward = rng.normal(following, 1.0) + paid_lag * before + paid_drift * late
        for name, column in zip(columns, (state, action, reward, following), strict=True):
            columns[name].append(column)
        state, before = following, action
    flat = {name: np.stack(column, axis=1).ravel() for name, column in columns.items()}
    last = np.tile(np.arange(STEPS) == STEPS - 1, episodes)
    offsets = np.arange(episodes + 1) * STEPS
    return DecisionLog(
        Pairs.full(STATES, ACTIONS), *flat.values(), np.zeros_like(last), last, offsets
    )
