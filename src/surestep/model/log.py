"""Defines the decision log: recorded decisions, step by step, with rewards and next states."""

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._reprs import frame_of
from surestep._settings import Each
from surestep.errors import InvalidLog, InvalidParameter
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.noun import noun
from surestep.model.pairs import Pairs, in_labels, read_noun

UNKNOWN = -1  # stands for a next state that was not recorded


@noun("num_episodes", "num_steps", "pairs.num_states", "pairs.num_actions")
@dataclass(frozen=True, slots=True, eq=False)
class DecisionLog(arrays.ByValue, arrays.Remembering):
    """Episodes of decisions, one row a step.

    The last row of an episode, and no other, carries a flag, as in Gymnasium. A last row without a
    flag has the next state −1: its next state and the reason why it is the last are unknown.
    `len(log)` is the number of rows.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    state : array of int [N]
        The state of each row.
    action : array of int [N]
        The action that was taken in that state.
    reward : array of float [N]
        The reward of that action.
    next_state : array of int [N]
        The next state; −1 if it is unknown.
    terminated : array of bool [N]
        True if the process was over, with nothing left to earn.
    truncated : array of bool [N]
        True if only the recording stopped. Both flags at once mean terminated.
    episode_offsets : array of int [E+1]
        Episode e owns the rows `episode_offsets[e]` … `episode_offsets[e+1] − 1`.
    propensity : array of float [N], optional
        The probability with which each row's action was taken, given all that the decider looked
        at, which may be more than the state; None if it was not recorded.
    order : array of int [N], optional
        The rank of each row in the order of the decisions, if episodes overlap in time; by default
        the order of the rows.
    continued : array of bool [E], optional
        Episodes that began before their first row here; by default none.
    cut : array of bool [E], optional
        Episodes that go on after their last row here; by default none.
    number : array of int [E], optional
        Numbers that tell episodes apart, and that they keep in every part of the log.

    Attributes
    ----------
    pair : array of int [N]
        The pair of each row's state and action.

    Raises
    ------
    InvalidLog
        If the rows are no episodes, or take actions that are not enabled.

    Examples
    --------
    >>> log = surestep.DecisionLog(
    ...     surestep.Pairs.full(2, 2),
    ...     state=[0, 0, 0],
    ...     action=[0, 1, 0],
    ...     reward=[0.0, 5.0, 0.0],
    ...     next_state=[0, 1, 0],
    ...     terminated=[False, True, False],
    ...     truncated=[False, False, True],
    ...     episode_offsets=[0, 2, 3],
    ... )
    >>> len(log), log.num_episodes, log.counts().visits
    (3, 2, array([2, 1, 0, 0]))
    >>> log.to_pandas()[["episode", "step", "state", "action", "reward"]]
       episode  step  state  action  reward
    0        0     0      0       0     0.0
    1        0     1      0       1     5.0
    2        1     0      0       0     0.0
    """

    pairs: Pairs
    state: Annotated[arrays.IndexArray, Each("N", 0, below="S")]
    action: Annotated[arrays.IndexArray, Each("N", 0, below="A")]
    reward: Annotated[arrays.FloatArray, Each("N")]
    next_state: Annotated[arrays.IndexArray, Each("N", UNKNOWN, below="S")]
    terminated: Annotated[arrays.BoolArray, Each("N")]
    truncated: Annotated[arrays.BoolArray, Each("N")]
    episode_offsets: arrays.IntArray  # [E+1]
    propensity: Annotated[arrays.FloatArray | None, Each("N", 0, 1)] = None
    order: Annotated[arrays.IntArray | None, Each("N")] = None
    continued: Annotated[arrays.BoolArray | None, Each("E")] = None
    cut: Annotated[arrays.BoolArray | None, Each("E")] = None
    number: Annotated[arrays.IntArray | None, Each("E")] = None
    pair: arrays.IntArray = field(init=False)  # [N]

    def __post_init__(self) -> None:
        size = arrays.numbers("state", self.state, InvalidLog).size
        offsets = arrays.read_full_offsets(
            "episode_offsets", self.episode_offsets, size, InvalidLog, ("episode {}".format, "step")
        )
        name = partial(row_name, offsets)
        read_noun(self, InvalidLog, {"N": size, "E": offsets.size - 1}, {"N": name})
        pairs = self.pairs
        pair = pairs.find(self.state, self.action)
        for i, others in arrays.first_where(pair < 0, "step"):
            raise InvalidLog(
                f"{pairs.action_name(int(self.action[i]))} of {name(i)} is not enabled in "
                f"{pairs.state_name(int(self.state[i]))}{others}"
            )
        for i, others in arrays.first_where(np.asarray(self.propensity == 0), "step"):
            raise InvalidLog(
                f"propensity of {name(i)} is 0, expected more: it is that of an action that was "
                f"taken{others}"
            )
        arrays.keep(self, episode_offsets=offsets, pair=arrays.own(pair))
        check_steps(self)
        check_ranks(self)

    @property
    def num_steps(self) -> int:
        """Returns N, the number of rows."""
        return self.state.size

    def __len__(self) -> int:
        return self.num_steps

    @property
    def num_episodes(self) -> int:
        """Returns E, the number of episodes."""
        return self.episode_offsets.size - 1

    @property
    def step(self) -> arrays.IntArray:
        """Counts the steps of its episode that came before each row [N]."""
        return arrays.ranges(0, arrays.run_lengths(self.episode_offsets))

    @property
    def starts(self) -> arrays.IndexArray:
        """Returns the first state of each episode that began here, in their order."""
        first = self.state[self.episode_offsets[:-1]]
        return first if self.continued is None else first[~self.continued]

    def whole(self) -> "DecisionLog | None":
        """Keeps the episodes that are neither continued nor cut.

        Returns
        -------
        DecisionLog or None
            None if there are none. A whole episode may be truncated.
        """
        torn = [marks for marks in (self.continued, self.cut) if marks is not None]
        kept = ~np.any(torn, axis=0) if torn else np.ones(self.num_episodes, np.bool_)
        if kept.all():
            return self
        return self.episodes(kept) if kept.any() else None

    def with_outcomes(self) -> "DecisionLog":
        """Drops the rows whose next state is unknown.

        Returns
        -------
        DecisionLog
            The rows whose next state is known.
        """
        return self.rows(self.next_state != UNKNOWN)

    def rows(self, kept: arrays.BoolArray) -> "DecisionLog":
        """Makes the log as if only some rows had been recorded.

        Parameters
        ----------
        kept : array of bool [N]
            The rows; the kept rows of an episode must follow each other.

        Returns
        -------
        DecisionLog
            Recording stopped at the last kept row of an episode, and an episode without its first
            row is continued.
        """
        if kept.all():
            return self
        if not kept.any():
            raise InvalidLog(
                "no row of the log is left, or says where it led; expected at least one"
            )
        lengths = arrays.run_sums(kept.astype(np.int64), self.episode_offsets)
        there = lengths > 0
        part = self._of_rows(kept, lengths[there], there)
        last = part.episode_offsets[1:] - 1
        truncated = part.truncated.copy()
        truncated[last] |= ~part.terminated[last] & (part.next_state[last] != UNKNOWN)
        continued = ~kept[self.episode_offsets[:-1]][there]
        if part.continued is not None:
            continued |= part.continued
        return arrays.altered(
            part, truncated=truncated, continued=continued if continued.any() else None
        )

    def counts(self, rewards: object = None) -> Counts:
        """Counts transitions and starts.

        Parameters
        ----------
        rewards : array of float [S, A], [S, A, S] or [K], optional
            Rewards known beforehand, as in `Counts.from_dense`. By default the rewards of the log
            are summed per transition, with the least and the greatest.

        Returns
        -------
        Counts
            A state in which an episode terminated is marked as terminal. A row whose next state is
            unknown counts only as a start, if it is one.
        """
        if rewards is None:
            return self.remembered("counts", lambda: self._counts(None))
        return self._counts(arrays.numbers("rewards", rewards, InvalidLog))

    def _counts(self, table: arrays.AnyArray | None) -> Counts:
        """Returns the counts, with the known rewards of the table if there is one."""
        pairs = self.pairs
        size = np.int64(pairs.num_states)
        known = self.next_state != UNKNOWN
        key = (self.pair * size + self.next_state)[known]  # fits 64 bits: states have 31
        if table is not None and table.ndim == 3:
            # Known rewards of unseen transitions are kept too, with a count of 0.
            shown = np.arange(pairs.num_pairs * size)
            times = np.bincount(key, minlength=shown.size)
            rows = arrays.shaped(
                "rewards",
                table,
                (pairs.num_states, pairs.num_actions, pairs.num_states),
                InvalidLog,
            )[pairs.state, pairs.action]
            logged = LoggedRewards(rows.ravel(), "transition", True)
        else:
            shown, place = np.unique(key, return_inverse=True)
            times = np.bincount(place)
            if table is None:
                reward = self.reward[known]
                sums = np.bincount(place, weights=reward).astype(np.float64, copy=False)
                logged = LoggedRewards(
                    arrays.own(sums),
                    "transition",
                    False,
                    *least_and_greatest(reward, place, shown.size),
                )
            else:
                logged = LoggedRewards(pairs.flat("rewards", table, InvalidLog), "pair", True)
        return Counts(
            pairs,
            arrays.own(arrays.offsets_of(np.bincount(shown // size, minlength=pairs.num_pairs))),
            shown % size,
            arrays.own(times),
            logged,
            np.bincount(self.starts, minlength=pairs.num_states),
            terminal_states(self),
        )

    def episodes(self, which: object) -> "DecisionLog":
        """Selects episodes.

        Parameters
        ----------
        which : slice, array of int or array of bool [E]
            Numbers in any order, or a mask.

        Returns
        -------
        DecisionLog
            These episodes. If their order is changed, the order of the rows becomes the order of
            the decisions.
        """
        chosen = chosen_episodes(which, self.num_episodes)
        lengths = arrays.run_lengths(self.episode_offsets)[chosen]
        part = self._of_rows(arrays.ranges(self.episode_offsets[chosen], lengths), lengths, chosen)
        return part if (chosen[1:] > chosen[:-1]).all() else arrays.altered(part, order=None)

    def _of_rows(
        self, rows: arrays.AnyArray, lengths: arrays.IntArray, episodes: arrays.AnyArray
    ) -> "DecisionLog":
        """Returns some rows of the log; they are not checked again, since that is slow."""
        values = {column.name: getattr(self, column.name) for column in fields(self)}
        parts = {
            name: column[episodes if name in ("continued", "cut", "number") else rows]
            for name, column in values.items()
            if isinstance(column, np.ndarray) and name != "episode_offsets"
        }
        return arrays.altered(self, **parts, episode_offsets=arrays.offsets_of(lengths))

    def to_pandas(self) -> Any:
        """Makes a data frame of the rows, with their episodes and steps.

        Returns
        -------
        pandas.DataFrame
            States and actions are labels if the pairs have them, else numbers. An unknown next
            state is None, or −1 without labels.

        Raises
        ------
        MissingExtra
            If pandas is not installed.
        """
        columns = {
            "episode": arrays.run_owners(self.episode_offsets),
            "step": self.step,
            "state": in_labels(self.pairs.state_labels, self.state),
            "action": in_labels(self.pairs.action_labels, self.action),
            "reward": self.reward,
            "next_state": in_labels(self.pairs.state_labels, self.next_state),
            "terminated": self.terminated,
            "truncated": self.truncated,
        }
        if self.propensity is not None:
            columns["propensity"] = self.propensity
        return frame_of(columns, ["pandas"])


class Seen(NamedTuple):
    """The counts of a log, or of a part of it, and the first states in which episodes began."""

    counts: Counts
    starts: arrays.IndexArray  # in their order


@noun("num_steps", "pairs.num_states", "pairs.num_actions")
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Excerpt(DecisionLog):
    """The first rows of every pair in each of two parts of a log, beside the counts of all rows.

    Every row is an episode of its own here. No episode is whole, so that nothing may be asked of
    episodes but their number and their starts.
    """

    seen: Seen  # in all of the log
    chooses: Annotated[arrays.BoolArray | None, Each("N")] = None  # None: this is a part
    parts: tuple[Seen, Seen] | None = None  # the one that chooses a policy, the one that judges it
    share: float | None = None  # of the episodes: those of the first part

    @property
    def num_episodes(self) -> int:
        """Returns the number of episodes of the log."""
        return int(self.seen.counts.starts.sum())

    @property
    def starts(self) -> arrays.IndexArray:
        """Returns the first state of each of the first episodes."""
        return self.seen.starts

    def whole(self) -> None:
        """Returns None: no episode is whole."""

    def _counts(self, table: arrays.AnyArray | None) -> Counts:
        """Returns the counts of all rows."""
        if table is not None:
            raise InvalidLog("entries of a log have its own rewards; expected no others")
        return self.seen.counts

    def split(self, share: float) -> tuple[DecisionLog, DecisionLog]:
        """Returns both parts, which were made when the rows were chosen.

        Parameters
        ----------
        share : float
            The share of the episodes that the first part is asked to have.

        Returns
        -------
        tuple of DecisionLog
            The same objects every time.
        """
        first, parts = self.chooses, self.parts
        if first is None or parts is None or share != self.share:
            raise InvalidLog(
                f"the entries have parts of their own, split at {self.share}, and cannot be split "
                f"at {share:g}; expected the rows of the log, or entries with that train_share"
            )

        def made() -> tuple[DecisionLog, DecisionLog]:
            rows = (
                self._of_rows(x, np.ones(np.count_nonzero(x), np.int64), x) for x in (first, ~first)
            )
            one, other = (
                arrays.altered(part, seen=seen, chooses=None, parts=None)
                for part, seen in zip(rows, parts, strict=True)
            )
            return one, other

        return self.remembered("split", made)


def least_and_greatest(
    reward: arrays.FloatArray, place: arrays.IntArray, size: int
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns the least and greatest of the rewards [N] of each of `size` places; 0 if none."""
    least = np.full(size, np.inf)
    greatest = np.full(size, -np.inf)
    np.minimum.at(least, place, reward)
    np.maximum.at(greatest, place, reward)
    unseen = least > greatest
    return arrays.own(np.where(unseen, 0.0, least)), arrays.own(np.where(unseen, 0.0, greatest))


def row_name(offsets: arrays.IntArray, row: int) -> str:
    """Names a row: 'episode 3, step 5'."""
    episode = arrays.owner(offsets, row)
    return f"episode {episode}, step {row - int(offsets[episode])}"


def check_steps(log: DecisionLog) -> None:
    """Checks that the last step of an episode says how it ended, and others lead to the next."""
    flagged = log.terminated | log.truncated
    last = arrays.marked(log.episode_offsets[1:] - 1, log.num_steps)
    wrong = np.where(
        last,
        flagged == (log.next_state == UNKNOWN),
        flagged | np.append(log.next_state[:-1] != log.state[1:], True),
    )
    for i, others in arrays.first_where(wrong, "step"):
        expected = f"a flag (truncated, if only recording stopped), or {UNKNOWN} if nobody knows it"
        if not last[i]:
            expected = f"no flag, and the state in which the next step begins, {log.state[i + 1]}"
        raise InvalidLog(
            f"{row_name(log.episode_offsets, i)} has the next state {log.next_state[i]}, "
            f"terminated {log.terminated[i]} and truncated {log.truncated[i]}; expected "
            f"{expected}{others}"
        )


def check_ranks(log: DecisionLog) -> None:
    """Checks that the ranks of rows rise within each episode, and from first row to first row."""
    order = log.order
    offsets = log.episode_offsets
    if order is None:
        return
    first = offsets[:-1] if log.continued is None else offsets[:-1][~log.continued]
    early = np.append(False, order[1:] <= order[:-1])
    early[offsets[:-1]] = False
    early[first[1:]] = order[first[1:]] <= order[first[:-1]]
    for i, others in arrays.first_where(early, "step"):
        raise InvalidLog(
            f"order of {row_name(offsets, i)} is {order[i]}, not above that of the step, or start, "
            f"before it; expected steps, and episodes, in the order in which they began{others}"
        )


def chosen_episodes(which: object, num_episodes: int) -> arrays.IntArray:
    """Returns the numbers of the episodes that a slice, a list of numbers or a mask [E] selects."""
    if isinstance(which, slice):
        try:
            chosen: arrays.AnyArray = np.arange(*which.indices(num_episodes))
        except (TypeError, ValueError) as problem:
            raise InvalidParameter(f"the slice {which} selects no episodes: {problem}") from None
    else:
        chosen = arrays.numbers("the selection of episodes", which, InvalidParameter)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(
                arrays.shaped("the mask of episodes", chosen, (num_episodes,), InvalidParameter)
            )
        chosen = arrays.indices("the selection of episodes", chosen, num_episodes, InvalidParameter)
    if chosen.size == 0:
        raise InvalidParameter("the selection holds no episode, expected at least one")
    return chosen.astype(np.int64)


def terminal_states(log: DecisionLog) -> arrays.BoolArray:
    """Marks the states [S] in which an episode terminated; refuses a log that goes on there."""
    if isinstance(log, Excerpt):
        return log.seen.counts.terminal
    pairs = log.pairs
    over = arrays.marked(log.next_state[log.terminated], pairs.num_states)
    goes_on = arrays.marked(log.state, pairs.num_states + 1)  # the last place is UNKNOWN
    goes_on[log.next_state[~log.terminated]] = True
    for state, others in arrays.first_where(over & goes_on[:-1], "state"):
        end = int(np.argmax(log.terminated & (log.next_state == state)))
        there = (log.state == state) | (~log.terminated & (log.next_state == state))
        other = row_name(log.episode_offsets, int(np.argmax(there)))
        raise InvalidLog(
            f"{row_name(log.episode_offsets, end)} terminates in {pairs.state_name(state)}, but "
            f"{other} goes on there; expected an end where nobody decides and every step "
            f"terminates (give terminated steps a next state of their own){others}"
        )
    return arrays.own(over)
