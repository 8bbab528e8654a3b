"""Defines the counts of a log: the number of times of each transition, with rewards and starts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np

import surestep._arrays as arrays
from surestep._settings import Each, check_settings
from surestep.errors import InvalidCounts, ShapeMismatch
from surestep.model.mdp import dense_pairs
from surestep.model.noun import noun
from surestep.model.pairs import (
    Labels,
    Transitions,
    check_same_pairs,
    read_noun,
    spread_rows,
    united,
)

LARGEST_TOTAL = 2**61  # two totals can be added in 64 bits
MEAN_SLACK = 1e-9  # the rounding allowed in a mean, relative to the largest reward


@noun("per", "known", "values")
@dataclass(frozen=True, slots=True, eq=False)
class LoggedRewards(arrays.ByValue):
    """The rewards of a log: known beforehand, or summed over the visits.

    Parameters
    ----------
    values : array of float [K] or [T]
        The reward of each pair or transition, or the sum of its observed rewards.
    per : {"pair", "transition"}
        The owner of each reward.
    known : bool
        True if `values` are rewards known beforehand, and not sums.
    least : array of float [K] or [T], optional
        The smallest single reward observed, 0 if there is none. With `greatest` it shows whether
        rewards vary, which sums do not; None for known rewards, or if only sums are available.
    greatest : array of float [K] or [T], optional
        The largest single reward observed, likewise.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[4, 1]], [[0, 0]]], reward_sums=[[8.0], [0.0]])
    >>> counts.rewards
    LoggedRewards(per='pair', known=False, values=0…8)
    """

    values: arrays.FloatArray  # [K] or [T]
    per: Literal["pair", "transition"]
    known: bool
    least: arrays.FloatArray | None = None  # as `values`
    greatest: arrays.FloatArray | None = None

    def __post_init__(self) -> None:
        """Checks all but the sizes of arrays, which `Counts` checks."""
        check_settings(self, InvalidCounts)
        given = self.least is not None
        if given != (self.greatest is not None) or (given and self.known):
            raise InvalidCounts(
                "the least or the greatest rewards are given without the others, or for known "
                "ones; expected both with sums, or neither"
            )

    def changed(self, change: Callable[[arrays.FloatArray], arrays.FloatArray]) -> "LoggedRewards":
        """Applies a change to all arrays.

        Parameters
        ----------
        change : callable
            Takes an array and returns one.

        Returns
        -------
        LoggedRewards
            The changed rewards.
        """
        ends = (None if end is None else change(end) for end in (self.least, self.greatest))
        return LoggedRewards(change(self.values), self.per, self.known, *ends)


@noun("pairs.num_states", "pairs.num_pairs", "visits", "rewards.known")
@dataclass(frozen=True, slots=True, eq=False)
class Counts(Transitions, arrays.ByValue):
    """The counts #_D(s,a,s') of a log: all its information about a Markov process.

    `first + second` merges the counts of two logs of the same states and actions.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the transitions `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The state that each transition leads to.
    times : array of int [T]
        The number of times #_D(s,a,s') each transition was seen.
    rewards : LoggedRewards
        The rewards of pairs or transitions.
    starts : array of int [S]
        The number of episodes that started in each state.
    terminal : array of bool [S], optional
        States in which episodes are known to end; by default none.

    Attributes
    ----------
    visits : array of int [K]
        The number of times #_D(s,a) each pair was visited.

    Raises
    ------
    InvalidCounts
        If numbers contradict each other, or no episode started.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    >>> counts.visits, (counts + counts).visits
    (array([4, 0]), array([8, 0]))
    >>> counts.dense()
    array([[[3, 1]],
    <BLANKLINE>
           [[0, 0]]])
    """

    times: Annotated[arrays.IntArray, Each("T", 0)]
    rewards: LoggedRewards
    starts: Annotated[arrays.IntArray, Each("S", 0)]
    terminal: Annotated[arrays.BoolArray, Each("S")] = field(default=None)  # type: ignore[arg-type]
    visits: arrays.IntArray = field(init=False)  # [K]

    def __post_init__(self) -> None:
        read_noun(self, InvalidCounts)
        pairs = self.pairs
        for what in ("times", "starts"):
            if getattr(self, what).sum(dtype=np.float64) > LARGEST_TOTAL:
                raise InvalidCounts(f"the sum of all {what} is more than {LARGEST_TOTAL}")
        if not self.starts.any():
            raise InvalidCounts("starts add up to 0, expected at least 1 episode")
        visits = arrays.run_sums(self.times, self.offsets)
        for s, others in arrays.first_where(
            self.terminal & (arrays.run_sums(visits, pairs.offsets) > 0), "state"
        ):
            raise InvalidCounts(
                f"{pairs.state_name(s)} is marked as terminal, but decisions were made "
                f"there{others}"
            )
        arrays.keep(self, visits=arrays.own(visits))
        arrays.keep(self, rewards=checked_rewards(self, self.rewards))

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
    ) -> "Counts":
        """Makes counts of tables, with exactly one kind of reward.

        Parameters
        ----------
        C : array of int [S, A, S]
            The number of times each transition was seen.
        rewards : array of float [S, A] or [S, A, S], optional
            Rewards known beforehand, also for pairs never visited.
        reward_sums : array of float [S, A] or [S, A, S], optional
            Observed rewards, added up over the visits.
        starts : array of int [S], optional
            The number of episodes that started in each state; by default one, in state 0.
        enabled : array of bool [S, A], optional
            False for actions that do not exist; by default all exist.
        terminal : array of bool [S], optional
            States in which episodes are known to end; by default none.
        state_labels : sequence of str, optional
            Names of the states.
        action_labels : sequence of str, optional
            Names of the actions.

        Returns
        -------
        Counts
            The counts. Transitions never seen are stored only for known rewards [S, A, S].

        Raises
        ------
        InvalidCounts
            If shapes do not match, or both or neither kind of reward is given.
        """
        cube = arrays.whole_numbers("C", C, None, InvalidCounts)
        if cube.ndim != 3 or cube.shape[0] != cube.shape[2] or 0 in cube.shape:
            raise InvalidCounts(f"C has shape {cube.shape}, expected [states, actions, states]")
        if (rewards is None) == (reward_sums is None):
            given = "both" if rewards is not None else "neither"
            raise InvalidCounts(f"{given} of rewards and reward_sums given, expected exactly one")
        pairs = dense_pairs(cube.shape[:2], enabled, state_labels, action_labels)
        for i, others in arrays.first_where(cube.any(axis=2) & ~pairs.enabled(), "pair"):
            raise InvalidCounts(
                f"C counts visits of {pairs.state_name(i // pairs.num_actions)}, "
                f"{pairs.action_name(i % pairs.num_actions)}, which is not enabled; expected "
                f"0{others}"
            )
        rows = cube[pairs.state, pairs.action]  # [K, S]
        known = rewards is not None
        name = "rewards" if known else "reward_sums"
        values = arrays.numbers(name, rewards if known else reward_sums, InvalidCounts)
        stored = rows != 0
        if values.ndim == 3:
            earned = arrays.shaped(name, values, cube.shape, InvalidCounts)
            earned = earned[pairs.state, pairs.action]
            # Known rewards of unseen transitions are kept, with a count of 0. Sums of unseen
            # transitions are kept too, so that `Counts` refuses them by name.
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

    def mean_reward(self) -> arrays.FloatArray:
        """Computes the reward of each transition.

        Returns
        -------
        array of float [T]
            The known reward, or the mean of the observed rewards.
        """
        values = self.means()
        return (
            np.repeat(values, arrays.run_lengths(self.offsets))
            if self.rewards.per == "pair"
            else values
        )

    def means(self) -> arrays.FloatArray:
        """Computes the reward of each pair, or of each transition, as `rewards.per` says.

        Returns
        -------
        array of float [K] or [T]
            The known reward, or the mean of the observed rewards.
        """
        if self.rewards.known:
            return self.rewards.values
        return self.rewards.values / np.maximum(self.observed, 1)

    @property
    def observed(self) -> arrays.IntArray:
        """Counts the observed rewards of each pair [K] or transition [T]."""
        return self.visits if self.rewards.per == "pair" else self.times

    def observed_rewards(self) -> tuple[arrays.FloatArray, arrays.FloatArray]:
        """Finds the least and the greatest reward of each pair or transition.

        Returns
        -------
        tuple of array of float [K] or [T]
            Both are the mean if only sums are available, the reward itself if it is known, and 0 if
            nothing was observed.
        """
        if self.rewards.least is not None and self.rewards.greatest is not None:
            return self.rewards.least, self.rewards.greatest
        mean = self.means()
        return mean, mean

    def reward_name(self, index: int) -> str:
        """Names the pair or transition of a reward in a message.

        Parameters
        ----------
        index : int
            The place of the reward.

        Returns
        -------
        str
            Such as "state 3, action 1".
        """
        if self.rewards.per == "pair":
            return self.pairs.pair_name(index)
        return self.transition_name(index)

    def unseen_reward(self) -> arrays.FloatArray:
        """Computes the rewards of pairs never visited.

        Returns
        -------
        array of float [K]
            The known reward of each pair, else 0; 0 at visited pairs.
        """
        known = self.rewards.known and self.rewards.per == "pair"
        return np.where(self.visits == 0, self.rewards.values if known else 0.0, 0.0)

    def dense(self) -> arrays.IntArray:
        """Makes the table of counts.

        Returns
        -------
        array of int [S, A, S]
            The table `C` of `from_dense`.
        """
        return self.dense_cube(self.times)

    def __add__(self, other: "Counts") -> "Counts":
        """Returns the counts of both logs together."""
        return merge(self, other) if isinstance(other, Counts) else NotImplemented


def merge(first: Counts, second: Counts) -> Counts:
    """Adds up counts, starts and reward sums; known rewards must agree."""
    check_same_pairs("the first counts", first.pairs, "the second counts", second.pairs)
    ours, theirs = first.rewards, second.rewards
    if describe_rewards(ours) != describe_rewards(theirs):
        raise ShapeMismatch(
            f"the first counts have {describe_rewards(ours)}, the second {describe_rewards(theirs)}"
        )
    together, places = united(first.pairs, (first, second))
    size = together.successor.size
    times = spread_rows([first.times, second.times], places, size).sum(axis=0)
    if ours.per == "pair":  # rewards are those of pairs, which both have
        places = [np.arange(first.pairs.num_pairs)] * 2
        size = first.pairs.num_pairs
    if ours.known:
        here, there = spread_rows([ours.values, theirs.values], places, size, np.nan)
        name = first.pairs.pair_name if ours.per == "pair" else together.transition_name
        for i, others in arrays.first_where(
            (here != there) & ~np.isnan(here) & ~np.isnan(there), ours.per
        ):
            raise ShapeMismatch(
                f"the known reward of {name(i)} is {here[i]} in the first counts and {there[i]} in "
                f"the second{others}"
            )
        values = np.where(np.isnan(here), there, here)
    else:
        with np.errstate(over="ignore"):  # an infinite sum is refused by name below
            values = spread_rows([ours.values, theirs.values], places, size).sum(axis=0)
    ends = list[arrays.FloatArray]()
    if ours.least is not None:
        for ours_end, theirs_end, sign in zip(
            first.observed_rewards(), second.observed_rewards(), (1.0, -1.0), strict=True
        ):
            # If one of the counts observed nothing, the other one decides.
            here, there = (
                np.where(part.observed > 0, sign * end, np.inf)
                for part, end in ((first, ours_end), (second, theirs_end))
            )
            end = spread_rows([here, there], places, size, np.inf).min(axis=0)
            ends.append(np.where(np.isinf(end), 0.0, sign * end))
    return Counts(
        replace(
            first.pairs,
            state_labels=first.pairs.state_labels or second.pairs.state_labels,
            action_labels=first.pairs.action_labels or second.pairs.action_labels,
        ),
        together.offsets,
        together.successor,
        times,
        LoggedRewards(values, ours.per, ours.known, *ends),
        first.starts + second.starts,
        first.terminal | second.terminal,
    )


def describe_rewards(rewards: LoggedRewards) -> str:
    """Names the kind of rewards in a message: 'known rewards per pair'."""
    what = "known rewards" if rewards.known else "reward sums"
    ends = "" if rewards.least is None else ", with the least and the greatest reward,"
    return f"{what}{ends} per {rewards.per}"


def checked_rewards(counts: Counts, rewards: LoggedRewards) -> LoggedRewards:
    """Checks that rewards are finite and of the right length, and 0 if nothing was observed.

    The least and the greatest rewards, where they are given, must enclose the mean.
    """
    arrays.expect("rewards", rewards, LoggedRewards, InvalidCounts)
    observed = counts.observed
    name = counts.reward_name
    values = arrays.floats(
        "reward" if rewards.known else "reward sum",
        rewards.values,
        observed.shape,
        InvalidCounts,
        name,
    )
    if not rewards.known:
        for i, others in arrays.first_where((observed == 0) & (values != 0), "value"):
            raise InvalidCounts(
                f"reward sum of {name(i)} is {values[i]}, but it was never observed; expected "
                f"0{others}"
            )
    values = arrays.freeze(values)
    if rewards.least is None:
        return LoggedRewards(values, rewards.per, rewards.known)
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
    ends = arrays.freeze(least), arrays.freeze(greatest)
    return LoggedRewards(values, rewards.per, rewards.known, *ends)
