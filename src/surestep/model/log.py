"""DecisionLog: what was decided, step by step, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, FloatArray, IndexArray, IntArray, Remembering
from surestep._reprs import short_repr
from surestep._settings import Each
from surestep.errors import InvalidLog, InvalidParameter
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.pairs import Pairs, read_noun

UNKNOWN = -1  # the next state of a row of which nobody knows where it led


@dataclass(frozen=True, slots=True, eq=False)
class DecisionLog(arrays.ByValue, Remembering):
    """Episodes of decisions, one row a step: `action` in `state` earned `reward`, led to the next.

    Episode e owns the rows `episode_offsets[e]` … `episode_offsets[e+1] − 1`. Its last row, and no
    other, carries a flag, as in Gymnasium: `terminated` where the process was over, with nothing
    left to earn, `truncated` where only the recording stopped. Both at once mean terminated. A last
    row without a flag has the next state −1: nobody knows where it led, nor why it is the last.

    `propensity` says with which probability each row's action was taken, given all that whoever
    acted looked at, which may be more than the state; None where nobody recorded it. `order` ranks
    the rows in the order of the decisions, where those of several episodes lie between each other;
    None: as they lie. An episode that is `continued` began before its first row here, and one that
    is `cut` goes on after its last.
    """

    pairs: Pairs
    state: Annotated[IndexArray, Each("N", 0, below="S")]
    action: Annotated[IndexArray, Each("N", 0, below="A")]
    reward: Annotated[FloatArray, Each("N")]
    next_state: Annotated[IndexArray, Each("N", UNKNOWN, below="S")]  # −1 where nobody knows it
    terminated: Annotated[BoolArray, Each("N")]
    truncated: Annotated[BoolArray, Each("N")]
    episode_offsets: IntArray  # [E+1]
    propensity: Annotated[FloatArray | None, Each("N", 0, 1)] = None
    order: Annotated[IntArray | None, Each("N")] = None
    continued: Annotated[BoolArray | None, Each("E")] = None  # None: no episode is
    cut: Annotated[BoolArray | None, Each("E")] = None  # None: no episode is
    pair: IntArray = field(init=False)  # [N] the pair of each row's state and action

    __repr__ = short_repr("num_episodes", "num_steps", "pairs.num_states", "pairs.num_actions")

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        size = arrays.numbers("state", self.state, InvalidLog).size
        given, owns = self.episode_offsets, ("episode {}".format, "step")
        offsets = arrays.read_full_offsets("episode_offsets", given, size, InvalidLog, owns)
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
        """N, the number of rows."""
        return self.state.size

    @property
    def num_episodes(self) -> int:
        """E, the number of episodes."""
        return self.episode_offsets.size - 1

    @property
    def step(self) -> IntArray:
        """Counts the steps of its episode that came before each row [N]."""
        return arrays.ranges(0, arrays.run_lengths(self.episode_offsets))

    @property
    def starts(self) -> IndexArray:
        """Returns the states in which the episodes that began here did so, in their order."""
        first = self.state[self.episode_offsets[:-1]]
        return first if self.continued is None else first[~self.continued]

    def whole(self) -> DecisionLog | None:
        """Returns the episodes of which a split has left all rows here; None where there are none.

        That is no word about clocks: an episode may be whole, and truncated.
        """
        torn = [marks for marks in (self.continued, self.cut) if marks is not None]
        kept = ~np.any(torn, axis=0) if torn else np.ones(self.num_episodes, np.bool_)
        if kept.all():
            return self
        return self.episodes(kept) if kept.any() else None

    def with_outcomes(self) -> DecisionLog:
        """Returns the log without the rows of which nobody knows where they led."""
        return self.rows(self.next_state != UNKNOWN)

    def rows(self, kept: BoolArray) -> DecisionLog:
        """Returns the log as if only some rows [N] had been recorded, those of an episode in a row.

        Recording then stopped at the last of them. An episode without its first row is continued.
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
        marks = continued if continued.any() else None
        return arrays.altered(part, truncated=truncated, continued=marks)

    def counts(self, rewards: object = None) -> Counts:
        """Returns the counts of the log: #_D(s,a,s'), starts, rewards, and where episodes are over.

        Rewards are summed per transition, with the least and the greatest, or known beforehand
        where `rewards` ([S, A], [S, A, S] or [K]) gives them, as in `Counts.from_dense`. A state in
        which an episode terminated is marked as terminal. A row of which nobody knows where it led
        counts as a start at most.
        """
        if rewards is None:
            return self.remembered("counts", lambda: self._counts(None))
        return self._counts(arrays.numbers("rewards", rewards, InvalidLog))

    def _counts(self, table: AnyArray | None) -> Counts:
        """Returns the counts, with rewards as the table knows them."""
        pairs = self.pairs
        size = np.int64(pairs.num_states)
        known = self.next_state != UNKNOWN
        key = (self.pair * size + self.next_state)[known]  # fits 64 bits: states have 31
        if table is not None and table.ndim == 3:
            # Known per transition: kept for transitions never seen too, with a count of 0.
            shown = np.arange(pairs.num_pairs * size)
            times = np.bincount(key, minlength=shown.size)
            logged = LoggedRewards(flat_cube(pairs, table), "transition", True)
        else:
            shown, place = np.unique(key, return_inverse=True)
            times = np.bincount(place)
            if table is None:
                reward = self.reward[known]
                sums = np.bincount(place, weights=reward).astype(np.float64, copy=False)
                ends = least_and_greatest(reward, place, shown.size)
                logged = LoggedRewards(arrays.own(sums), "transition", False, *ends)
            else:
                logged = LoggedRewards(pairs.flat("rewards", table, InvalidLog), "pair", True)
        return Counts(
            pairs,
            arrays.own(arrays.offsets_of(np.bincount(shown // size, minlength=pairs.num_pairs))),
            shown % size,
            arrays.own(times),
            logged,
            np.bincount(self.starts, minlength=pairs.num_states),
            ends_of(self),
        )

    def episodes(self, which: object) -> DecisionLog:
        """Returns the log of some episodes only: a slice, numbers in any order, or a mask [E].

        In another order than they have here, rows count as decided in the order in which they lie.
        """
        chosen = chosen_episodes(which, self.num_episodes)
        lengths = arrays.run_lengths(self.episode_offsets)[chosen]
        part = self._of_rows(arrays.ranges(self.episode_offsets[chosen], lengths), lengths, chosen)
        rising = (chosen[1:] > chosen[:-1]).all()
        return part if rising else arrays.altered(part, order=None)

    def _of_rows(self, rows: AnyArray, lengths: IntArray, episodes: AnyArray) -> DecisionLog:
        """Returns some rows of the log, which were checked with it: that takes its time."""
        values = {column.name: getattr(self, column.name) for column in fields(self)}
        parts = {
            name: column[episodes if name in ("continued", "cut") else rows]
            for name, column in values.items()
            if isinstance(column, np.ndarray) and name != "episode_offsets"
        }
        return arrays.altered(self, **parts, episode_offsets=arrays.offsets_of(lengths))

    __setstate__ = arrays.restore_frozen


def least_and_greatest(
    reward: FloatArray, place: IntArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Returns the least and greatest of the rewards [N] of each of `size` places; 0 if none."""
    least, greatest = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, place, reward)
    np.maximum.at(greatest, place, reward)
    unseen = least > greatest
    return arrays.own(np.where(unseen, 0.0, least)), arrays.own(np.where(unseen, 0.0, greatest))


def row_name(offsets: IntArray, row: int) -> str:
    """'episode 3, step 5'."""
    episode = arrays.owner(offsets, row)
    return f"episode {episode}, step {row - int(offsets[episode])}"


def check_steps(log: DecisionLog) -> None:
    """Checks that the last step of an episode says how it ended, and others lead to the next."""
    offsets, state, next_state = log.episode_offsets, log.state, log.next_state
    flagged, last = log.terminated | log.truncated, np.zeros(log.num_steps, np.bool_)
    last[offsets[1:] - 1] = True
    torn = np.append(next_state[:-1] != state[1:], True)
    wrong = np.where(last, flagged == (next_state == UNKNOWN), flagged | torn)
    for i, others in arrays.first_where(wrong, "step"):
        expected = f"a flag (truncated, if only recording stopped), or {UNKNOWN} if nobody knows it"
        if not last[i]:
            expected = f"no flag, and the state in which the next step begins, {state[i + 1]}"
        raise InvalidLog(
            f"{row_name(offsets, i)} has the next state {next_state[i]}, terminated "
            f"{log.terminated[i]} and truncated {log.truncated[i]}; expected {expected}{others}"
        )


def check_ranks(log: DecisionLog) -> None:
    """Checks that decisions of an episode, and the first ones of all, are ranked as they lie."""
    order, offsets, continued = log.order, log.episode_offsets, log.continued
    if order is None:
        return
    first = offsets[:-1] if continued is None else offsets[:-1][~continued]
    early = np.append(False, order[1:] <= order[:-1])
    early[offsets[:-1]] = False
    early[first[1:]] = order[first[1:]] <= order[first[:-1]]
    for i, others in arrays.first_where(early, "step"):
        raise InvalidLog(
            f"order of {row_name(offsets, i)} is {order[i]}, not above that of the step, or start, "
            f"before it; expected steps, and episodes, in the order in which they began{others}"
        )


def chosen_episodes(which: object, num_episodes: int) -> IntArray:
    """Returns the numbers of the episodes that a slice, a list of numbers or a mask [E] selects."""
    if isinstance(which, slice):
        try:
            chosen: AnyArray = np.arange(*which.indices(num_episodes))
        except (TypeError, ValueError) as problem:
            raise InvalidParameter(f"the slice {which} selects no episodes: {problem}") from None
    else:
        chosen = arrays.numbers("the selection of episodes", which, InvalidParameter)
        if chosen.dtype == np.bool_:
            mask = arrays.shaped("the mask of episodes", chosen, (num_episodes,), InvalidParameter)
            chosen = np.flatnonzero(mask)
        chosen = arrays.indices("the selection of episodes", chosen, num_episodes, InvalidParameter)
    if chosen.size == 0:
        raise InvalidParameter("the selection holds no episode, expected at least one")
    return chosen.astype(np.int64)


def flat_cube(pairs: Pairs, cube: AnyArray) -> FloatArray:
    """Returns a table [S, A, S] as one row of length S for each enabled pair, flat."""
    shape = (pairs.num_states, pairs.num_actions, pairs.num_states)
    rows: FloatArray = arrays.shaped("rewards", cube, shape, InvalidLog)[pairs.state, pairs.action]
    return rows.ravel()


def ends_of(log: DecisionLog) -> BoolArray:
    """Returns the states [S] in which an episode terminated; none may have gone on there."""
    pairs = log.pairs
    over = np.zeros(pairs.num_states, np.bool_)
    over[log.next_state[log.terminated]] = True
    goes_on = np.zeros(pairs.num_states + 1, np.bool_)  # the last place is UNKNOWN
    goes_on[log.state] = True
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
