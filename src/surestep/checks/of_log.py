"""All checks that a log alone allows, at one level together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surestep._arrays import IntArray
from surestep.checks.check import Check, CheckCode, WhyUnchecked
from surestep.checks.drift import next_state_drift, reward_drift
from surestep.checks.memory import behavior_check, next_state_check, reward_check
from surestep.checks.values import model_check
from surestep.model.log import DecisionLog

DELTA = 0.05  # the chance that a test fails although all assumptions hold, at most
TESTS: tuple[CheckCode, ...] = (
    "markov-next-state",
    "markov-reward",
    "model-returns",
    "drift-next-state",
    "drift-reward",
    "behavior-memory",
)
LEVEL = DELTA / 9  # of each of these and of practice-changed: a little less than a seventh
MOST_STEPS = 150_000  # of a log that are looked at: whole episodes, drawn at random beyond that


def check_log(
    log: DecisionLog,
    names: Sequence[str],
    *,
    discount: float | None = None,
    drawn_from: int = 0,
) -> tuple[Check, ...]:
    """Returns the checks of Markov, drift and memory; `names` [S] are those of the states.

    The episodes of the log may have been drawn from more.
    The model's values are left out without a discount. Seeds come from the data, so that nobody
    can try others. Checks never change a claim.
    """
    log = log.with_outcomes()
    seed = seed_of(log)
    part = sampled(log, seed)
    returns = Check.unchecked("model-returns", "no-discount")
    if discount is not None and discount < 1:
        returns = model_check(part, discount, names, seed=seed + 5, level=LEVEL)
    checks = (
        next_state_check(part, seed=seed, level=LEVEL),
        reward_check(part, seed=seed + 1, level=LEVEL),
        returns,
        next_state_drift(part, seed=seed + 2, level=LEVEL),
        reward_drift(part, seed=seed + 3, level=LEVEL),
        behavior_check(part, seed=seed + 4, level=LEVEL),
    )
    episodes = (part.num_episodes, max(log.num_episodes, drawn_from))
    if episodes[0] == episodes[1]:
        return checks
    return tuple(replace(x, episodes=episodes) if x.why is None else x for x in checks)


def unchecked(why: WhyUnchecked) -> tuple[Check, ...]:
    """Returns that none of these could be checked, and why."""
    return tuple(Check.unchecked(code, why) for code in TESTS)


def seed_of(log: DecisionLog) -> int:
    """Returns a seed that the data decide, however states and actions are numbered."""
    digest = hashlib.sha256(log.reward.tobytes())
    digest.update(log.episode_offsets.tobytes())
    return int.from_bytes(digest.digest()[:7], "big")


def sampled(log: DecisionLog, seed: int) -> DecisionLog:
    """Returns the log, or whole episodes of a large one, in their order; at least one."""
    return log if log.num_steps <= MOST_STEPS else log.episodes(looked_at(log, seed))


def looked_at(log: DecisionLog, seed: int) -> IntArray:
    """Returns the numbers of these episodes."""
    if log.num_steps <= MOST_STEPS:
        return np.arange(log.num_episodes)
    order = np.random.default_rng(seed).permutation(log.num_episodes)
    upto = np.cumsum(np.diff(log.episode_offsets)[order])
    chosen = order[: max(int(np.searchsorted(upto, MOST_STEPS)), 1)]
    return np.sort(chosen)
