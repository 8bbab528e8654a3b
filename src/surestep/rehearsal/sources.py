"""Draws the data of a stress test: logs or counts that π_b collects in a model taken as true.

Episodes of a world end where the world says so, or after the most steps that one is recorded. Where
a log shows an episode cut off, that is the length of its longest; where every episode was recorded
to its end, ten times as much, so that hardly any is cut off. With counts alone, it is what makes
π_b expect the observed number of steps in the completed estimate. A log of one episode is a stream:
more data means more steps.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.episodes import over_at_last
from surestep.model import Counts, DecisionLog, FiniteMDP, LoggedRewards, Policy, Problem
from surestep.rehearsal.completion import completed, numbered
from surestep.sampling import CountSampler, end_states, sample_log

FEW = 10  # rewards of a transition or a pair, below which those of more are drawn from
MANY = 1000  # draws that are made one by one


class Residuals(NamedTuple):
    """The differences between the rewards of a log and the mean of their transition.

    A transition draws from its own run of them, from that of its pair where it has few, and from
    all where the pair has few. They are scaled down if a reward would leave the range of the log.
    Every run has the mean 0, so means stay what they are.
    """

    value: arrays.FloatArray  # [N] by transitions
    begin: arrays.IntArray  # [T]
    length: arrays.IntArray  # [T]
    scale: arrays.FloatArray  # [T]

    @classmethod
    def of(cls, problem: Problem, truth: FiniteMDP) -> Self | None:
        """Returns the differences for the transitions of a model; None where rewards never vary.

        Known rewards never vary.
        """
        log = problem.log
        if log is None or problem.counts.rewards.known:
            return None
        logged = log.counts()
        least, greatest = logged.observed_rewards()
        if not (varies := greatest > least).any():
            return None
        size = np.int64(truth.num_states)
        known = np.flatnonzero(log.next_state >= 0)
        place = (log.pair * size + log.next_state)[known]
        order = np.argsort(place, kind="stable")
        mean = np.repeat(
            np.where(varies, logged.rewards.values / logged.times, least), logged.times
        )
        value = log.reward[known][order] - mean
        pair = arrays.run_owners(truth.offsets)
        key = pair * size + truth.successor
        ends = np.searchsorted(
            place[order], np.stack([key, key + 1, pair * size, (pair + 1) * size])
        )
        ends = np.where(ends[1] - ends[0] >= FEW, ends[:2], ends[2:])
        ends = np.where(ends[1] - ends[0] >= FEW, ends, np.array([[0], [value.size]]))
        runs, number = np.unique(ends, axis=1, return_inverse=True)
        padded = np.append(value, 0.0)
        cuts = runs.T.ravel()
        lowest, highest = (
            end.reduceat(padded, cuts)[::2][number.ravel()] for end in (np.minimum, np.maximum)
        )
        below, above = truth.reward - log.reward.min(), log.reward.max() - truth.reward
        room = np.minimum(below / np.maximum(-lowest, 1e-300), above / np.maximum(highest, 1e-300))
        return cls(value, ends[0], ends[1] - ends[0], np.clip(room, 0.0, 1.0))

    def draws(self, place: arrays.IntArray, rng: np.random.Generator) -> arrays.FloatArray:
        """Draws one difference for each of these transitions [n], with replacement."""
        drawn = (rng.random(place.size) * self.length[place]).astype(np.int64)
        return np.asarray(self.scale[place] * self.value[self.begin[place] + drawn])

    def sums(self, times: arrays.IntArray, rng: np.random.Generator) -> arrays.FloatArray:
        """Draws, for each transition [T], the sum of `times` differences."""
        many = times > np.maximum(self.length, MANY)
        place = np.repeat(np.arange(times.size), np.where(many, 0, times))
        total = np.bincount(place, self.draws(place, rng), times.size).astype(np.float64)
        for t in np.flatnonzero(many):
            run = self.value[self.begin[t] : self.begin[t] + self.length[t]]
            copies = rng.multinomial(times[t], np.full(run.size, 1 / run.size))
            total[t] = self.scale[t] * (copies @ run)
        return total


class Data(NamedTuple):
    """Data collected in a world, over the transitions of its truth."""

    times: arrays.IntArray  # [T]
    earned: arrays.FloatArray  # [T] the sum of the rewards
    starts: arrays.IntArray  # [S]
    log: DecisionLog | None = None


@dataclass(frozen=True, slots=True)
class Simulated:
    """A world whose data are new episodes of π_b in a model."""

    truth: FiniteMDP
    sampler: CountSampler
    noise: tuple[float, float] | Residuals | None = None  # two: every reward is one of these

    @classmethod
    def of(
        cls,
        truth: FiniteMDP,
        behavior: Policy,
        noise: tuple[float, float] | Residuals | None = None,
    ) -> Self:
        """Makes the world with this model as its truth."""
        # A log does not show what ends are worth, so the sampler must not either.
        return cls(
            truth,
            CountSampler.of(replace(truth, ending_reward=np.zeros(truth.num_pairs)), behavior),
            noise,
        )

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Draws the counts of episodes, which end where the model says so, or at the horizon."""
        times, starts = self.sampler.draw(episodes, horizon, rng)
        earned = times * self.truth.reward
        if isinstance(self.noise, Residuals):
            earned = earned + self.noise.sums(times, rng)
        elif self.noise is not None:
            low, high = self.noise
            earned = low * times + (high - low) * rng.binomial(times, self.chance_of(low, high))
        return Data(times, earned, starts)

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Draws the log of such episodes, step by step."""
        log = sample_log(self.sampler.mdp, self.sampler.policy, episodes, horizon, rng)
        place = places_in(self.truth, log)
        times = np.bincount(place, minlength=self.truth.num_transitions)
        starts = np.bincount(log.state[log.episode_offsets[:-1]], minlength=log.pairs.num_states)
        if self.noise is None:
            return Data(times, times * self.truth.reward, starts, log)
        if isinstance(self.noise, Residuals):
            reward = self.truth.reward[place] + self.noise.draws(place, rng)
        else:
            low, high = self.noise
            reward = np.where(rng.random(place.size) < self.chance_of(low, high)[place], high, low)
        earned: arrays.FloatArray = np.bincount(place, reward, times.size).astype(np.float64)
        return Data(times, earned, starts, replace(log, reward=reward))

    def chance_of(self, low: float, high: float) -> arrays.FloatArray:
        """Returns the chance of the higher of two rewards [T], which leaves means as they are.

        Means beyond the two are moved to the nearest.
        """
        return np.asarray(np.clip((self.truth.reward - low) / (high - low), 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Resampled:
    """A world whose data are episodes of a log, drawn again, and whose truth is a model of it."""

    truth: FiniteMDP
    log: DecisionLog
    taken: arrays.IntArray  # [N] the transition of each step

    @classmethod
    def of(cls, truth: FiniteMDP, log: DecisionLog) -> Self:
        """Makes the world of a model whose transitions include those of the log."""
        known = log.with_outcomes()
        return cls(truth, known, places_in(truth, known))

    def collect(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Draws episodes with replacement, each as long as it was, and counts them."""
        total = self.log.num_episodes
        return self.data_of(rng.multinomial(episodes, np.full(total, 1 / total)))

    def record(self, episodes: int, horizon: int, rng: np.random.Generator) -> Data:
        """Draws the log of episodes, with replacement."""
        chosen = rng.integers(0, self.log.num_episodes, episodes)
        data = self.data_of(np.bincount(chosen, minlength=self.log.num_episodes))
        return data._replace(log=self.log.episodes(chosen))

    def data_of(self, copies: arrays.IntArray) -> Data:
        """Returns the data of a log with this many copies of each episode [E]."""
        by_step = np.repeat(copies, arrays.run_lengths(self.log.episode_offsets))
        size = self.truth.num_transitions
        first = self.log.state[self.log.episode_offsets[:-1]]
        return Data(
            np.rint(np.bincount(self.taken, by_step, size)).astype(np.int64),
            np.bincount(self.taken, by_step * self.log.reward, size).astype(np.float64),
            np.rint(np.bincount(first, copies, self.truth.num_states)).astype(np.int64),
        )


World = Simulated | Resampled  # a model that counts as true, and a source of data


def places_in(truth: FiniteMDP, log: DecisionLog) -> arrays.IntArray:
    """Returns the transition of the model that each step of the log takes [N]."""
    return np.searchsorted(truth.keys(), numbered(log.pair, log.next_state, truth.num_states))


# ---- from a world to data ----------------------------------------------------------------------

NEARLY_ALL = 0.99  # of the observed steps: the last ones may take any time to come
MOST_TIMES = 100  # the longest episode, in observed mean lengths
LONGER = 10  # the longest episode, in observed ones, where none was cut off


class DataSize(NamedTuple):
    """An amount of data: a number of episodes, and the most steps of each."""

    episodes: int
    horizon: int

    def times(self, factor: float) -> "DataSize":
        """Returns the size times a factor, rounded; at least one episode of one step."""
        if self.episodes == 1:
            return DataSize(1, max(1, round(factor * self.horizon)))
        return DataSize(max(1, round(factor * self.episodes)), self.horizon)


def size_of(problem: Problem) -> DataSize:
    """Returns the size of the problem's own data."""
    episodes = int(problem.counts.starts.sum())
    steps = int(problem.counts.visits.sum())
    if problem.log is not None:
        longest = int(arrays.run_lengths(problem.log.episode_offsets).max())
        cut_off = not over_at_last(problem.log).all()
        return DataSize(episodes, longest if cut_off else LONGER * longest)
    return DataSize(
        episodes, horizon_for(completed(problem, "self-loop"), problem.behavior, steps / episodes)
    )


def horizon_for(mdp: FiniteMDP, policy: Policy, mean_length: float) -> int:
    """Returns the least horizon within which episodes are expected to take `mean_length` steps.

    All but a hundredth, since the last steps may take any time; 100 mean lengths at the most.
    """
    going_on = ~end_states(mdp)
    if going_on.all():
        return max(1, round(mean_length))
    pair = arrays.run_owners(mdp.offsets)
    source = mdp.pairs.state[pair]
    weight = policy.probability[pair] * mdp.probability
    limit = int(np.ceil(MOST_TIMES * mean_length))
    here: arrays.FloatArray = mdp.initial
    expected = 0.0
    for horizon in range(1, limit):
        alive = here * going_on
        expected += float(alive.sum())
        if expected >= NEARLY_ALL * mean_length:
            return horizon
        here = np.bincount(mdp.successor, alive[source] * weight, mdp.num_states).astype(float)
    return limit


def problem_of(problem: Problem, truth: FiniteMDP, data: Data) -> Problem:
    """Returns the problem of new data, with the terms and known rewards of the given problem."""
    logged = problem.counts.rewards
    kept = data.times > 0
    if logged.known and logged.per == "transition":
        kept |= np.isin(truth.keys(), problem.counts.keys())  # these are stored, seen or not
    if logged.per == "transition":
        values = truth.reward[kept] if logged.known else data.earned[kept]
    else:
        values = logged.values if logged.known else arrays.run_sums(data.earned, truth.offsets)
    collected = Counts(
        truth.pairs,
        arrays.own(arrays.offsets_of(arrays.run_sums(kept.astype(np.int64), truth.offsets))),
        truth.successor[kept],
        data.times[kept],
        LoggedRewards(values, logged.per, logged.known),
        data.starts,
        ends_shown(problem, truth, data.times),
    )
    return Problem(
        counts=collected,
        behavior=Policy(truth.pairs, problem.behavior.probability),  # known, in every world
        discount=problem.discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
        log=data.log,
        support=problem.support,
    )


def ends_shown(problem: Problem, truth: FiniteMDP, times: arrays.IntArray) -> arrays.BoolArray:
    """Returns the ends of episodes that data show, and those that the user knew without data."""
    counts = problem.counts
    reached = arrays.marked(counts.successor[counts.times > 0], truth.num_states)
    shown = arrays.marked(truth.successor[times > 0], truth.num_states)
    if problem.support is not None:
        shown |= problem.support.ends()
    return counts.terminal & (shown | ~reached)
