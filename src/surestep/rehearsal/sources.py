"""Worlds: a model that counts as true, and a source of data that π_b collects there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from surestep._arrays import FloatArray, IntArray, run_lengths, run_owners
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.sampling import CountSampler, sample_log


class Data(NamedTuple):
    """Data collected in a world, over the transitions of its truth."""

    times: IntArray  # [T]
    earned: FloatArray  # [T] the sum of the rewards
    starts: IntArray  # [S]
    log: DecisionLog | None = None


class World(Protocol):
    """A model that counts as true, and a source of data."""

    @property
    def truth(self) -> FiniteMDP:
        """The model that counts as true."""
        ...

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The counts of that many episodes of π_b."""
        ...

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The same with the log, for what looks at whole episodes."""
        ...


@dataclass(frozen=True, slots=True)
class Simulated:
    """A model in which π_b acts anew."""

    truth: FiniteMDP
    sampler: CountSampler
    noise: tuple[float, float] | None = None  # every reward is one of these two; None: no noise

    @classmethod
    def of(
        cls, truth: FiniteMDP, behavior: Policy, noise: tuple[float, float] | None = None
    ) -> Simulated:
        """The world of that truth."""
        # A log does not show what ends are worth, so the sampler must not either.
        silent = replace(truth, ending_reward=np.zeros(truth.num_pairs))
        return cls(truth, CountSampler.of(silent, behavior), noise)

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Counts of episodes that end where the model says so, or after `horizon` steps."""
        times, starts = self.sampler.draw(episodes, horizon, rng)
        earned = times * self.truth.reward
        if self.noise is not None:
            low, high = self.noise
            earned = low * times + (high - low) * rng.binomial(times, self.chance_of_high())
        return Data(times, earned, starts)

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The log of such episodes."""
        log = sample_log(self.sampler.mdp, self.sampler.policy, episodes, horizon, rng)
        place, size = places_in(self.truth, log), self.truth.num_transitions
        times = np.bincount(place, minlength=size)
        if self.noise is None:
            return Data(times, times * self.truth.reward, starts_of(log), log)
        low, high = self.noise
        reward = np.where(rng.random(place.size) < self.chance_of_high()[place], high, low)
        earned: FloatArray = np.bincount(place, reward, size).astype(np.float64)
        return Data(times, earned, starts_of(log), replace(log, reward=reward))

    def chance_of_high(self) -> FloatArray:
        """Returns the chance of the higher of the two rewards [T], which leaves means as they are.

        Means beyond the two are moved to the nearest.
        """
        low, high = self.noise or (0.0, 1.0)
        chance: FloatArray = np.clip((self.truth.reward - low) / (high - low), 0.0, 1.0)
        return chance


@dataclass(frozen=True, slots=True)
class Resampled:
    """A model that was estimated from a log, and the episodes of that log."""

    truth: FiniteMDP
    log: DecisionLog
    taken: IntArray  # [N] the transition of each step

    @classmethod
    def of(cls, truth: FiniteMDP, log: DecisionLog) -> Resampled:
        """The world of that truth, whose transitions include those of the log."""
        known = log.with_outcomes()
        return cls(truth, known, places_in(truth, known))

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Counts of episodes drawn with replacement, each as long as it was."""
        total = self.log.num_episodes
        return self.data_of(rng.multinomial(episodes, np.full(total, 1 / total)))

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """The log of episodes drawn with replacement."""
        chosen = rng.integers(0, self.log.num_episodes, episodes)
        data = self.data_of(np.bincount(chosen, minlength=self.log.num_episodes))
        return data._replace(log=self.log.episodes(chosen))

    def data_of(self, copies: IntArray) -> Data:
        """The counts of so many copies of each episode [E]."""
        by_step = np.repeat(copies, run_lengths(self.log.episode_offsets))
        size, first = self.truth.num_transitions, self.log.state[self.log.episode_offsets[:-1]]
        earned = np.bincount(self.taken, by_step * self.log.reward, size)
        return Data(
            np.rint(np.bincount(self.taken, by_step, size)).astype(np.int64),
            earned.astype(np.float64),
            np.rint(np.bincount(first, copies, self.truth.num_states)).astype(np.int64),
        )


def starts_of(log: DecisionLog) -> IntArray:
    """Counts the episodes of a log by the state that they start in [S]."""
    first = log.state[log.episode_offsets[:-1]]
    return np.bincount(first, minlength=log.pairs.num_states)


def places_in(truth: FiniteMDP, log: DecisionLog) -> IntArray:
    """The transition of the model that each step of the log takes [N]."""
    size = np.int64(truth.num_states)
    key = run_owners(truth.offsets) * size + truth.successor
    return np.searchsorted(key, log.pair * size + log.next_state)
