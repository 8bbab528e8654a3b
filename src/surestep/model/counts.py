"""Counts: all that a log of Markov decisions says about the dynamics, and their merging."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray
from surestep._reprs import short_repr
from surestep._settings import Each, check_settings
from surestep.errors import InvalidCounts, ShapeMismatch
from surestep.model.mdp import dense_pairs
from surestep.model.pairs import (
    Labels,
    Pairs,
    check_same_pairs,
    read_noun,
    transition_name,
    united,
)

LARGEST_TOTAL = 2**61  # two totals can be added in 64 bits
MEAN_SLACK = 1e-9  # relative to the largest reward: what adding up may be off


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRewards(arrays.ByValue):
    """The rewards of a log: known beforehand, or summed over the visits.

    Sums do not say whether rewards vary: the least and the greatest that was observed do.
    """

    values: FloatArray  # [K] for "pair", [T] for "transition"
    per: Literal["pair", "transition"]
    known: bool  # the reward itself; otherwise the sum of what was observed
    # Of single rewards, 0 where none was observed; None where rewards are known, or only sums are
    least: FloatArray | None = None  # [K] or [T], as `values`
    greatest: FloatArray | None = None

    __repr__ = short_repr("per", "known", "values")

    def __post_init__(self) -> None:
        """Checks the words; `Counts` checks the numbers, whose meaning it knows."""
        check_settings(self, InvalidCounts)
        given = self.least is not None
        if given != (self.greatest is not None) or (given and self.known):
            raise InvalidCounts(
                "the least or the greatest rewards are given without the others, or for known "
                "ones; expected both with sums, or neither"
            )

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> LoggedRewards:
        """Returns rewards with the same change made to all arrays."""
        ends = (None if end is None else change(end) for end in (self.least, self.greatest))
        return LoggedRewards(change(self.values), self.per, self.known, *ends)

    __setstate__ = arrays.restore_frozen


@dataclass(frozen=True, slots=True, eq=False)
class Counts(arrays.ByValue):
    """#_D(s,a,s') and what belongs to it: the sufficient statistic of a log of Markov decisions.

    `first + second` merges two logs of the same states and actions.
    """

    pairs: Pairs
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    times: Annotated[IntArray, Each("T", 0)]  # #_D(s,a,s')
    rewards: LoggedRewards
    starts: Annotated[IntArray, Each("S", 0)]  # how many episodes started there
    # Episodes are known to end there; None means nowhere
    terminal: Annotated[BoolArray, Each("S")] = field(default=None)  # type: ignore[arg-type]
    visits: IntArray = field(init=False)  # [K] #_D(s,a)

    __repr__ = short_repr("pairs.num_states", "pairs.num_pairs", "visits", "rewards.known")

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        read_noun(self, InvalidCounts)
        pairs = self.pairs
        for what in ("times", "starts"):
            if getattr(self, what).sum(dtype=np.float64) > LARGEST_TOTAL:
                raise InvalidCounts(f"the sum of all {what} is more than {LARGEST_TOTAL}")
        if not self.starts.any():
            raise InvalidCounts("starts add up to 0, expected at least 1 episode")
        visits = arrays.run_sums(self.times, self.offsets)
        decided = arrays.run_sums(visits, pairs.offsets) > 0
        for s, others in arrays.first_where(self.terminal & decided, "state"):
            raise InvalidCounts(
                f"{pairs.state_name(s)} is marked as terminal, but decisions were made "
                f"there{others}"
            )
        arrays.keep(self, visits=arrays.own(visits))
        arrays.keep(self, rewards=read_rewards(self, self.rewards))

    @classmethod
    def from_dense(
        cls,
        C: object,
        *,
        rewards: object = None,
        reward_sums: object = None,
        starts: object = None,
        enabled: object = None,
        terminal: object = None,
        state_labels: Labels = None,
        action_labels: Labels = None,
    ) -> Counts:
        """Counts given by tables: whole numbers `C` [S, A, S] and exactly one kind of reward.

        `rewards` ([S, A] or [S, A, S]) is known, also for pairs never visited; `reward_sums`
        (same shapes) is what was observed, added up over the visits. `starts` [S] counts the starts
        (default: one episode, from state 0); `enabled` [S, A] masks actions that do not exist;
        `terminal` [S] marks states in which episodes are known to end.
        """
        cube = arrays.whole_numbers("C", C, None, InvalidCounts)
        if cube.ndim != 3 or cube.shape[0] != cube.shape[2] or 0 in cube.shape:
            raise InvalidCounts(f"C has shape {cube.shape}, expected [states, actions, states]")
        if (rewards is None) == (reward_sums is None):
            given = "both" if rewards is not None else "neither"
            raise InvalidCounts(f"{given} of rewards and reward_sums given, expected exactly one")
        pairs = dense_pairs(cube.shape[:2], enabled, state_labels, action_labels)
        lost = cube.any(axis=2) & ~pairs.enabled()
        for i, others in arrays.first_where(lost, "pair"):
            raise InvalidCounts(
                f"C counts visits of {pairs.state_name(i // pairs.num_actions)}, "
                f"{pairs.action_name(i % pairs.num_actions)}, which is not enabled; expected "
                f"0{others}"
            )
        rows = cube[pairs.state, pairs.action]  # [K, S]
        known = rewards is not None
        name = "rewards" if known else "reward_sums"
        values = arrays.numbers(name, rewards if known else reward_sums, InvalidCounts)
        stored, per_transition = rows != 0, values.ndim == 3
        if per_transition:
            earned = arrays.shaped(name, values, cube.shape, InvalidCounts)
            earned = earned[pairs.state, pairs.action]
            # Known rewards are kept for transitions never seen, with a count of 0. So are sums of
            # such, which are refused by name.
            stored |= known or earned != 0
            logged = LoggedRewards(earned[stored], "transition", known)
        else:
            logged = LoggedRewards(pairs.flat(name, values, InvalidCounts), "pair", known)
        pair, successor = np.nonzero(stored)
        if starts is None:
            starts = np.eye(1, pairs.num_states, dtype=np.int64)[0]
        return cls(
            pairs,
            arrays.offsets_of(np.count_nonzero(stored, axis=1)),
            successor,
            rows[pair, successor],
            logged,
            starts,  # type: ignore[arg-type]
            terminal,  # type: ignore[arg-type]
        )

    def mean_reward(self) -> FloatArray:
        """Returns the reward of each transition [T]: known, or the mean of what was observed."""
        values = self.means()
        per_pair = self.rewards.per == "pair"
        return np.repeat(values, arrays.run_lengths(self.offsets)) if per_pair else values

    def means(self) -> FloatArray:
        """Returns the reward of each pair [K] or transition [T]: known, or the mean of the sums."""
        rewards = self.rewards
        if rewards.known:
            return rewards.values
        means: FloatArray = rewards.values / np.maximum(self.observed, 1)
        return means

    @property
    def observed(self) -> IntArray:
        """Counts the observations of each pair [K] or transition [T] that rewards are about."""
        return self.visits if self.rewards.per == "pair" else self.times

    def observed_rewards(self) -> tuple[FloatArray, FloatArray]:
        """Returns the least and greatest reward seen of each pair [K] or transition [T]; else 0.

        Both are the mean where only sums are known, and the reward itself where that is.
        """
        rewards = self.rewards
        if rewards.least is not None and rewards.greatest is not None:
            return rewards.least, rewards.greatest
        mean = self.means()
        return mean, mean

    def reward_name(self, index: int) -> str:
        """Returns the name of the pair or transition whose reward has that place."""
        rewards = self.rewards
        return name_of_reward(self.pairs, rewards.per, self.offsets, self.successor, index)

    def unseen_reward(self) -> FloatArray:
        """Returns the reward [K] of pairs never visited: known per pair, else 0; 0 at others."""
        if self.rewards.known and self.rewards.per == "pair":
            return np.where(self.visits == 0, self.rewards.values, 0.0)
        return np.zeros(self.pairs.num_pairs)

    def __add__(self, other: Counts) -> Counts:
        """Returns the counts of both logs together."""
        if not isinstance(other, Counts):
            return NotImplemented
        return merge(self, other)

    __setstate__ = arrays.restore_frozen


def merge(first: Counts, second: Counts) -> Counts:
    """Adds up counts, starts and reward sums; known rewards must agree. Order does not matter."""
    check_same_pairs("the first counts", first.pairs, "the second counts", second.pairs)
    ours, theirs = first.rewards, second.rewards
    if describe_rewards(ours) != describe_rewards(theirs):
        raise ShapeMismatch(
            f"the first counts have {describe_rewards(ours)}, the second {describe_rewards(theirs)}"
        )
    offsets, successor, places = united(first.pairs, (first, second))
    times: IntArray = np.zeros(successor.size, np.int64)
    for counts, place in zip((first, second), places, strict=True):
        times[place] += counts.times
    size = first.pairs.num_pairs if ours.per == "pair" else successor.size

    def both(values: FloatArray, others: FloatArray, absent: float) -> tuple[FloatArray, ...]:
        """Returns what both counts have for each pair or transition of either."""
        if ours.per == "pair":
            return values, others
        spread = np.full(size, absent), np.full(size, absent)
        spread[0][places[0]], spread[1][places[1]] = values, others
        return spread

    if ours.known:
        here, there = both(ours.values, theirs.values, np.nan)
        for i, others in arrays.first_where(
            (here != there) & ~np.isnan(here) & ~np.isnan(there), ours.per
        ):
            raise ShapeMismatch(
                "the known reward of "
                f"{name_of_reward(first.pairs, ours.per, offsets, successor, i)} is {here[i]} in "
                f"the first counts and {there[i]} in the second{others}"
            )
        values = np.where(np.isnan(here), there, here)
    else:
        with np.errstate(over="ignore"):  # an infinite sum is refused by name below
            values = np.add(*both(ours.values, theirs.values, 0.0))
    ends = list[FloatArray]()
    if ours.least is not None:
        for ours_end, theirs_end, sign in zip(
            first.observed_rewards(), second.observed_rewards(), (1.0, -1.0), strict=True
        ):
            # What was never observed is beyond every reward: the other one counts.
            here, there = (
                np.where(part.observed > 0, sign * end, np.inf)
                for part, end in ((first, ours_end), (second, theirs_end))
            )
            end = np.minimum(*both(here, there, np.inf))
            ends.append(np.where(np.isinf(end), 0.0, sign * end))
    return Counts(
        with_labels_of_both(first.pairs, second.pairs),
        offsets,
        successor,
        times,
        LoggedRewards(values, ours.per, ours.known, *ends),
        first.starts + second.starts,
        first.terminal | second.terminal,
    )


def name_of_reward(
    pairs: Pairs, per: str, offsets: IntArray, successor: IndexArray, index: int
) -> str:
    """Returns the name of the pair or transition whose reward has that place."""
    if per == "pair":
        return pairs.pair_name(index)
    return transition_name(pairs, offsets, successor, index)


def with_labels_of_both(first: Pairs, second: Pairs) -> Pairs:
    """Returns the pairs of both, with the labels that either has; if both have, they agree."""
    return dataclasses.replace(
        first,
        state_labels=second.state_labels if first.state_labels is None else first.state_labels,
        action_labels=second.action_labels if first.action_labels is None else first.action_labels,
    )


def describe_rewards(rewards: LoggedRewards) -> str:
    """'known rewards per pair', for messages."""
    what = "known rewards" if rewards.known else "reward sums"
    ends = "" if rewards.least is None else ", with the least and the greatest reward,"
    return f"{what}{ends} per {rewards.per}"


def read_rewards(counts: Counts, rewards: LoggedRewards) -> LoggedRewards:
    """Finite rewards of the right length; sums are 0 where nothing was observed."""
    arrays.expect("rewards", rewards, LoggedRewards, InvalidCounts)
    observed, name = counts.observed, counts.reward_name
    what = "reward" if rewards.known else "reward sum"
    values = arrays.floats(what, rewards.values, observed.shape, InvalidCounts, name)
    if not rewards.known:
        for i, others in arrays.first_where((observed == 0) & (values != 0), "value"):
            raise InvalidCounts(
                f"reward sum of {name(i)} is {values[i]}, but it was never observed; expected "
                f"0{others}"
            )
    ends = read_ends(rewards, values, observed, name)
    return LoggedRewards(arrays.freeze(values), rewards.per, rewards.known, *ends)


def read_ends(
    rewards: LoggedRewards, values: FloatArray, observed: IntArray, name: Callable[[int], str]
) -> tuple[FloatArray, ...]:
    """Returns the least and the greatest rewards, with the mean of the sums `values` between them.

    None where they are not known; 0 where nothing was observed.
    """
    if rewards.least is None:
        return ()
    least, greatest = (
        arrays.floats(what, end, observed.shape, InvalidCounts, name)
        for what, end in (("least reward", rewards.least), ("greatest reward", rewards.greatest))
    )
    for i, others in arrays.first_where(
        (observed == 0) & ((least != 0) | (greatest != 0)), "value"
    ):
        raise InvalidCounts(
            f"rewards of {name(i)} are {least.flat[i]} to {greatest.flat[i]}, but it was never "
            f"observed; expected 0{others}"
        )
    mean = values / np.maximum(observed, 1)
    slack = MEAN_SLACK * np.maximum(np.abs(least), np.abs(greatest))
    for i, others in arrays.first_where(
        (least > greatest) | (mean < least - slack) | (mean > greatest + slack), "value"
    ):
        raise InvalidCounts(
            f"rewards of {name(i)} are {least.flat[i]} to {greatest.flat[i]}, and their mean is "
            f"{mean.flat[i]}; expected it between them{others}"
        )
    return arrays.freeze(least), arrays.freeze(greatest)
