"""The action must not tell that recording stops: false alarms, and what is noticed."""

import numpy as np
import pytest

from surestep import DecisionLog
from surestep.checks.check import GivenLog
from surestep.checks.stops import check
from surestep.model import Pairs

STATES, LONGEST = 3, 8


def logged(seed, episodes, clock, breaks=0.0):
    """Returns a log that a clock stops; under the second action it also breaks, unseen."""
    rng = np.random.default_rng(seed)
    good, tries = np.ones((STATES, 2)), np.full((STATES, 2), 2.0)
    rows, lengths = [], []
    for episode in range(episodes):
        left = episodes // 20 + 1 - episode // 20  # 20 episodes begin at a time
        steps = int(rng.integers(1, LONGEST + 1)) if clock == "any time" else min(LONGEST, left)
        chance = 0.1 + 0.8 * episode / episodes if clock == "drift" else 0.5
        state, first = int(rng.integers(STATES)), len(rows)
        for _ in range(steps):
            action = int(rng.random() < chance)
            if clock == "learner" and rng.random() > 0.3:
                action = int(np.argmax(good[state] / tries[state]))
            good[state, action] += rng.random() < 0.4 + 0.2 * action
            tries[state, action] += 1
            following = int(rng.integers(STATES)) if rng.random() < 0.6 else action
            rows.append((state, action, following))
            state = following
            if action and rng.random() < breaks:
                break
        rows[-1] = (*rows[-1][:2], -1)
        lengths.append(len(rows) - first)
    state, action, following = map(np.array, zip(*rows, strict=True))
    none, offsets = np.zeros(state.size, np.bool_), np.append(0, np.cumsum(lengths))
    pairs = Pairs.full(STATES, 2)
    return DecisionLog(pairs, state, action, none.astype(float), following, none, none, offsets)


def alarms(clock, episodes, runs, level):
    found = [check(GivenLog(logged(seed, episodes, clock), seed, level)) for seed in range(runs)]
    return sum(each.outcome == "failed" for each in found)


@pytest.mark.one_quick
@pytest.mark.parametrize("clock", ["any time", "date", "drift", "learner"])
def test_honest_clocks_raise_few_alarms(clock):
    """At the level 0.05, 25 logs have more than 5 alarms with a chance of 0.0012."""
    assert alarms(clock, 200, 25, 0.05) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["any time", "date", "drift", "learner"])
def test_honest_clocks_raise_alarms_at_the_level(clock):
    """At the level 0.05, 300 logs have more than 28 alarms with a chance of 0.0006."""
    assert alarms(clock, 600, 300, 0.05) <= 28


def test_stops_after_an_action_are_noticed():
    found = [check(GivenLog(logged(s, 300, "date", 0.2), s, 0.005)).outcome for s in range(10)]
    assert found.count("failed") >= 8


def test_without_unknown_stops_there_is_no_line():
    log = logged(0, 50, "any time").with_outcomes()
    assert check(GivenLog(log, 0, 0.05)) is None
