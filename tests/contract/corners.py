"""Settings at the corners of their range, and a log so small that everything is quick."""

from __future__ import annotations

import math

import numpy as np

CORNERS = (
    *(0, 1, -1, 3, 0.5, -0.0, 5e-324, 1e-300, 1e-16),
    *(math.nextafter(1, 0), math.nextafter(1, 2), 1e16, 1e308, -1e308),
    *(math.nan, math.inf, -math.inf, 2**31, 2**63, 2**200, 10**400),
)
LONGEST_LINE = 1500


def small_log() -> dict[str, np.ndarray]:
    """30 episodes of three steps, in two states, with rewards 0, 1 or 2 that go with the action."""
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(30):
        state = "a"
        for step in range(3):
            action = int(rng.integers(2))
            following = "end" if step == 2 else "ab"[int(rng.integers(2))]
            reward = float(action + (state == "b"))
            rows.append((episode, step, state, "xy"[action], reward, following, step == 2, 0.5))
            state = following
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated")
    columns = zip((*names, "behavior_prob"), zip(*rows, strict=True), strict=True)
    return {
        name: np.array(values, object if isinstance(values[0], str) else None)
        for name, values in columns
    }
