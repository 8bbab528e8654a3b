"""LabelledCounts: what a table of decisions counts up to, with the users' own labels, mergeable.

Rewards are added up as whole multiples of 10^−scale, so that a sum does not depend on its order.
Everything is in one normal form: labels rise, transitions rise, and the scale is the smallest that
all sums and all least and greatest rewards fit. Equal logs therefore have equal counts, however
they were cut into pieces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import LARGEST_EXACT_DOUBLE, AnyArray, BoolArray, FloatArray, IntArray
from surestep._reprs import short_repr
from surestep.errors import InvalidCounts, ShapeMismatch
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label, joined
from surestep.model import Counts, Pairs
from surestep.model.counts import LoggedRewards


def merged_sources(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The sources of all parts; one that is in two of them is refused."""
    holder = dict[str, int]()
    for number, part in enumerate(parts, 1):
        for source in part:
            if source in holder:
                raise InvalidCounts(
                    f"counts {holder[source]} and {number} are of the same log (SHA-256 "
                    f"{source[:16]}…), whose rows would count twice; expected every log once"
                )
            holder[source] = number
    return tuple(sorted(holder))


END_LABEL = "(end)"
Ends = tuple[float, float]  # the least and the greatest reward
LARGEST_SUM = 10**38  # what the file has room for


class Episodes(NamedTuple):
    """The number of episodes of a log, by how they ended; 0 where transitions are loose."""

    recorded: int
    terminated: int
    truncated: int

    @property
    def unflagged(self) -> int:
        """Episodes of which nothing says how they ended."""
        return self.recorded - self.terminated - self.truncated


@dataclass(frozen=True, slots=True, eq=False)
class LabelledCounts:
    """The counts of a table of decisions, its labels as text, one text a column."""

    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    states: tuple[Label, ...]  # rising
    actions: tuple[Label, ...]  # rising
    transitions: Transitions
    scale: int
    starts: IntArray  # [states]
    rows_read: int
    dropped: Mapping[str, int]  # why → how many rows
    decided: BoolArray  # [states] whether somebody decides there, be it in a row that was dropped
    episodes: Episodes
    binnings: Mapping[str, Binning] = field(default_factory=dict)  # of columns of numbers
    sources: tuple[str, ...] = ()  # SHA-256 of the logs that were counted, rising
    # Why rows were dropped that show what they earned → the least and the greatest reward.
    dropped_rewards: Mapping[str, Ends] = field(default_factory=dict)
    signals: Mapping[str, LabelledCounts] = field(default_factory=dict)  # further ones, by name
    # Of one file: digests of its first row, and of the row that would follow its last.
    edges: tuple[str, ...] = field(default=(), compare=False)
    ends_apart: bool = False  # whether states that terminate, yet go on for others, end apart

    __repr__ = short_repr("states", "actions", "rows_read")

    @property
    def goes_on(self) -> BoolArray:
        """Returns where it goes on [states + 1]: somebody decides there, or a step did not end it.

        The last place is the END: nobody knows a state there.
        """
        rows, known = self.transitions, np.append(self.decided, True)
        known[rows.next_state[~rows.terminated]] = True
        return known

    def end_states(self) -> tuple[Label, ...]:
        """Returns the states where episodes end.

        First those in which they terminate and it never goes on, then ends of their own, where
        some are needed.
        """
        rows, goes_on = self.transitions, self.goes_on
        over = np.unique(rows.next_state[rows.terminated])
        named = (self.states[s] for s in over if not goes_on[s])
        return (*named, *dict.fromkeys(self.own_ends().values()))

    def own_ends(self) -> dict[int, Label]:
        """Returns the label of an end by the state, or END, where steps terminate yet others go on.

        No state of the log has such a label. It is the same for all, unless ends are told apart.
        """
        rows, labels, taken = self.transitions, dict[int, Label](), {*self.states}
        shared = rows.terminated & self.goes_on[rows.next_state]
        for s in np.unique(rows.next_state[shared]).tolist():
            label, another = (END_LABEL,) * len(self.state_columns), "({})"
            if self.ends_apart and s != END:
                label, another = self.states[s], f"{{}} {END_LABEL}"
            while label in taken:
                label = tuple(map(another.format, label))
            labels[s] = label
        return labels

    def led_to(self, next_state: IntArray, terminated: BoolArray, pairs: Pairs) -> IntArray:
        """Returns where steps [n] led among `pairs`: those that terminated may lead to own ends."""
        known, ends = pairs.state_labels, self.own_ends()
        state = np.append(known_places("state", [*map(joined, self.states)], known), END)
        end = state.copy()
        end[[*ends]] = known_places("state", [*map(joined, ends.values())], known)
        return np.where(terminated, end[next_state], state[next_state])

    def to_counts(self, pairs: Pairs | None = None) -> Counts:
        """Counts over `pairs`, found by their labels; by default every action in every state seen.

        A step that terminated leads to its next state, which is then terminal; to an end of its own
        where no next state was given, or where it went on for others.
        """
        rows = self.transitions
        if pairs is None:
            states = [*map(joined, dict.fromkeys((*self.states, *self.end_states())))]
            actions = [joined(label) for label in self.actions]
            shape = len(states), len(actions)
            pairs = Pairs.full(*shape, state_labels=states, action_labels=actions)
        led = self.led_to(rows.next_state, rows.terminated, pairs)
        pair = self.pairs_of_rows(pairs)
        if (pair < 0).any():
            t = int(np.argmax(pair < 0))
            raise ShapeMismatch(
                f"the log takes action {joined(self.actions[rows.action[t]])!r} in state "
                f"{joined(self.states[rows.state[t]])!r}, where it is not enabled"
            )
        merged = grouped(rows._replace(state=pair, next_state=led), keys=("state", "next_state"))
        starts = np.zeros(pairs.num_states, np.int64)
        starts[known_places("state", [*map(joined, self.states)], pairs.state_labels)] = self.starts
        terminal = np.zeros(pairs.num_states, np.bool_)
        terminal[led[rows.terminated]] = True
        total, *ends = (in_units(getattr(merged, name), 10**self.scale) for name in REWARDS)
        return Counts(
            pairs,
            arrays.offsets_of(np.bincount(merged.state, minlength=pairs.num_pairs)),
            merged.next_state,
            merged.times,
            LoggedRewards(total, "transition", False, *ends),
            starts,
            terminal,
        )

    def pairs_of_rows(self, pairs: Pairs) -> IntArray:
        """Finds the pair of every transition [T], by its labels; −1 where it is not enabled."""
        rows = self.transitions
        state = known_places("state", [*map(joined, self.states)], pairs.state_labels)[rows.state]
        action = known_places("action", [*map(joined, self.actions)], pairs.action_labels)
        return pairs.find(state, action[rows.action])


def merge_counts(parts: Sequence[LabelledCounts]) -> LabelledCounts:
    """The counts of all parts together: the same, whatever the parts and their order.

    Parts that counted the same log are refused, and an episode that is cut between two files.
    """
    if not parts:
        raise InvalidCounts("there are no counts to merge, expected at least one")
    first = parts[0]
    for part in parts[1:]:
        for role in ("state", "action"):
            ours, theirs = getattr(first, f"{role}_columns"), getattr(part, f"{role}_columns")
            if ours != theirs:
                raise ShapeMismatch(
                    f"the {role} is {', '.join(ours)} in some counts and {', '.join(theirs)} in "
                    "others; expected the same columns in the same order"
                )
    if any(part.binnings != first.binnings for part in parts):
        raise ShapeMismatch(
            "the counts have different bins; expected the same edges or widths everywhere "
            "(quantiles of one part are not those of another)"
        )
    if len({part.transitions.lowest is None for part in parts}) > 1:
        raise ShapeMismatch(
            "some counts have logged propensities and others have none; expected all or none"
        )
    if any(part.signals.keys() != first.signals.keys() for part in parts):
        raise ShapeMismatch("the counts have different signals; expected the same everywhere")
    sources = merged_sources(part.sources for part in parts)
    check_whole_episodes(parts)
    states = tuple(sorted({label for part in parts for label in part.states}))
    actions = tuple(sorted({label for part in parts for label in part.actions}))
    scale = max(part.scale for part in parts)
    starts, decided = np.zeros(len(states), np.int64), np.zeros(len(states), np.bool_)
    moved = list[Transitions]()
    for part in parts:
        state, action = positions(part.states, states), positions(part.actions, actions)
        np.add.at(starts, state, part.starts)
        decided[state[part.decided]] = True
        moved.append(renumbered(part, state, action, scale))
    merged = grouped(concatenated(moved))
    scale, merged = smallest_scale(scale, merged)
    reasons = sorted({reason for part in parts for reason in part.dropped})
    return LabelledCounts(
        first.state_columns,
        first.action_columns,
        states,
        actions,
        merged.each(arrays.freeze),
        scale,
        arrays.freeze(starts),
        sum(part.rows_read for part in parts),
        {reason: sum(part.dropped.get(reason, 0) for part in parts) for reason in reasons},
        arrays.freeze(decided),
        Episodes(*map(sum, zip(*(part.episodes for part in parts), strict=True))),
        first.binnings,
        sources,
        merged_ends(part.dropped_rewards for part in parts),
        {name: merge_counts([part.signals[name] for part in parts]) for name in first.signals},
        first.edges if len(parts) == 1 else (),
    )


def negated(counts: LabelledCounts) -> LabelledCounts:
    """Returns the counts of costs: what was paid is earned with a minus."""
    rows, dropped = counts.transitions, counts.dropped_rewards
    ends = {"least_reward": 0 - rows.greatest_reward, "greatest_reward": 0 - rows.least_reward}
    earned = rows._replace(reward_sum=0 - rows.reward_sum, **ends)
    lost = {why: (0.0 - high, 0.0 - low) for why, (low, high) in dropped.items()}
    return replace(counts, transitions=earned.each(arrays.freeze), dropped_rewards=lost)


def check_whole_episodes(parts: Sequence[LabelledCounts]) -> None:
    """Refuses parts of which one ends within an episode with which another one begins."""
    begins = {part.edges[0]: place for place, part in enumerate(parts, 1) if part.edges}
    for place, part in enumerate(parts, 1):
        then = begins.get(part.edges[1], place) if part.edges else place
        if then != place:
            raise ShapeMismatch(
                f"the last episode of counts {place} goes on in counts {then}, so that it would "
                "count as two; expected files of whole episodes: count both logs together"
            )


def merged_ends(parts: Iterable[Mapping[str, Ends]]) -> dict[str, Ends]:
    """Returns the least and the greatest reward of all parts, by why rows were dropped."""
    merged = dict[str, Ends]()
    for part in parts:
        for why, (low, high) in sorted(part.items()):
            least, greatest = merged.get(why, (low, high))
            merged[why] = min(low, least), max(high, greatest)
    return merged


def renumbered(part: LabelledCounts, state: IntArray, action: IntArray, scale: int) -> Transitions:
    """The transitions of a part by the numbers that labels have in the whole."""
    rows, factor = part.transitions, 10 ** (scale - part.scale)
    return rows._replace(
        state=state[rows.state],
        action=action[rows.action],
        next_state=np.append(state, END)[rows.next_state],
        **{name: scaled(getattr(rows, name), factor) for name in REWARDS},
    )


def in_units(sums: AnyArray, unit: int) -> FloatArray:
    """The sums as doubles: whole numbers divide with one rounding, however large they are."""
    if sums.dtype != object and max(largest(sums), unit) <= LARGEST_EXACT_DOUBLE:
        return np.asarray(sums / unit, float)
    return np.array([int(total) / unit for total in sums], float)


def smallest_scale(scale: int, rows: Transitions) -> tuple[int, Transitions]:
    """The same rewards with as few digits after the point as all of them need."""
    rewards = [getattr(rows, name) for name in REWARDS]
    while scale > 0 and not any((numbers % 10).any() for numbers in rewards):
        scale, rewards = scale - 1, [numbers // 10 for numbers in rewards]
    if max(map(largest, rewards)) >= LARGEST_SUM:
        raise InvalidCounts(
            f"a sum of rewards needs more than 38 digits ({scale} of them after the point); round "
            "the rewards to fewer digits"
        )
    return scale, rows._replace(**dict(zip(REWARDS, map(narrowed, rewards), strict=True)))


def positions(labels: Sequence[Any], among: Sequence[Any]) -> IntArray:
    """Returns the place of each label among those of all parts."""
    place = {label: index for index, label in enumerate(among)}
    return np.array([place[label] for label in labels], np.int64)


def known_places(kind: str, labels: Sequence[str], among: Sequence[str] | None) -> IntArray:
    """Returns the place of each label among those that a model knows."""
    if among is None:
        raise ShapeMismatch(f"the pairs have no labels of {kind}s to find those of the log by")
    known = set(among)
    for label in labels:
        if label not in known:
            raise ShapeMismatch(f"the log has the {kind} {label!r}, which the pairs do not have")
    return positions(labels, among)


def counts_digest(counts: LabelledCounts) -> str:
    """SHA-256 over columns, labels and numbers, in the one order that counts have.

    Unlike the bytes of a counts file, it is the same whatever version of Parquet's writer is used.
    """
    words: dict[str, Any] = {
        "state_columns": counts.state_columns,
        "action_columns": counts.action_columns,
        "states": counts.states,
        "actions": counts.actions,
        "scale": counts.scale,
        "rows_read": counts.rows_read,
        "dropped": dict(sorted(counts.dropped.items())),
        "episodes": counts.episodes,
        "dropped_rewards": counts.dropped_rewards,
    }
    digest = hashlib.sha256(json.dumps(words, ensure_ascii=True).encode())
    rows = counts.transitions
    for column in (counts.starts, counts.decided, *rows):
        if column is None:
            digest.update(b"none")
        elif column.dtype == object:  # whole numbers of any size
            digest.update(",".join(map(str, column)).encode())
        else:
            kind = "<f8" if column.dtype.kind == "f" else "<i8"
            digest.update(np.ascontiguousarray(column, kind).tobytes())
    return digest.hexdigest()


# ---- rewards and their sums as whole numbers: of 64 bits where they fit, else Python's own ------

LIMB = 10**13  # three of them hold 38 digits, each in 64 bits
LIMBS = ("high", "middle", "low")
SAFE = 2**62  # of 64 bits


def limbs(number: str, name: str) -> str:
    """SQL: a HUGEINT as three columns of 64 bits, `{name}_high`, `_middle` and `_low`."""
    parts = (f"{number} // {LIMB**2}", f"{number} // {LIMB} % {LIMB}", f"{number} % {LIMB}")
    return ", ".join(
        f"CAST({part} AS BIGINT) AS {name}_{limb}" for part, limb in zip(parts, LIMBS, strict=True)
    )


def whole_numbers(columns: Mapping[str, AnyArray], name: str) -> AnyArray:
    """The numbers of which these columns hold the limbs."""
    high, middle, low = (columns[f"{name}_{limb}"] for limb in LIMBS)
    if not high.any() and np.abs(middle).max(initial=0) < SAFE // LIMB:
        return np.asarray(middle * LIMB + low, np.int64)
    return narrowed((high.astype(object) * LIMB + middle) * LIMB + low)


def narrowed(numbers: AnyArray) -> AnyArray:
    """The same numbers in 64 bits, if all fit."""
    if numbers.dtype != object:
        return numbers
    fits = numbers.size == 0 or max(abs(numbers.max()), abs(numbers.min())) < SAFE
    return numbers.astype(np.int64) if fits else numbers


def scaled(numbers: AnyArray, factor: int) -> AnyArray:
    """The numbers times a factor."""
    if numbers.dtype != object and largest(numbers) * factor >= SAFE:
        numbers = numbers.astype(object)
    return numbers if factor == 1 else numbers * factor


def added(numbers: AnyArray, begin: IntArray) -> AnyArray:
    """The sum of each run of numbers, given where runs begin."""
    if numbers.dtype != object and np.abs(numbers).sum(dtype=float) >= SAFE / 2:
        numbers = numbers.astype(object)
    return narrowed(np.add.reduceat(numbers, begin))


def largest(numbers: AnyArray) -> int:
    """The largest absolute value."""
    return 0 if numbers.size == 0 else max(abs(int(numbers.max())), abs(int(numbers.min())))


REWARDS = ("reward_sum", "least_reward", "greatest_reward")  # in whole multiples of 10^−scale
END = -1  # where a step led that terminated without a next state
KEYS = ("state", "action", "next_state", "terminated")


class Transitions(NamedTuple):
    """#_D(s,a,s') by number of labels, and rewards, in whole multiples of 10^−scale."""

    state: IntArray  # [T]
    action: IntArray  # [T]
    next_state: IntArray  # [T] END where a terminated step gave none
    terminated: BoolArray  # [T]
    times: IntArray  # [T]
    reward_sum: AnyArray  # [T] 64 bits, or Python integers of any size
    least_reward: AnyArray  # [T] of single rewards
    greatest_reward: AnyArray  # [T]
    lowest: FloatArray | None = None  # [T] logged propensity of the action; None if none was logged
    highest: FloatArray | None = None  # [T]

    def each(self, change: Callable[[AnyArray], AnyArray]) -> Transitions:
        """The same change made to every column."""
        columns: list[Any] = [None if column is None else change(column) for column in self]
        return Transitions(*columns)


def concatenated(parts: Sequence[Transitions]) -> Transitions:
    """All parts, one after the other; all of them have propensities, or none."""
    columns = zip(*parts, strict=True)
    joint: list[Any] = [None if same[0] is None else np.concatenate(same) for same in columns]
    return Transitions(*joint)


def grouped(rows: Transitions, keys: Sequence[str] = KEYS) -> Transitions:
    """Rows with distinct keys in rising order, each with its times, sums and extremes."""
    order = np.lexsort([getattr(rows, key) for key in reversed(keys)])
    if order.size == 0:
        return rows
    rows = rows.each(lambda column: column[order])
    begin = np.flatnonzero(arrays.first_of_equal(*(getattr(rows, key) for key in keys)))
    low, high = rows.lowest, rows.highest
    return rows.each(lambda column: column[begin])._replace(
        times=np.add.reduceat(rows.times, begin),
        reward_sum=added(rows.reward_sum, begin),
        least_reward=np.minimum.reduceat(rows.least_reward, begin),
        greatest_reward=np.maximum.reduceat(rows.greatest_reward, begin),
        lowest=None if low is None else np.minimum.reduceat(low, begin),
        highest=None if high is None else np.maximum.reduceat(high, begin),
    )
