"""Counts of a log with the labels of its user; counts of several logs can be merged.

Rewards are added up as whole multiples of 10^−scale, so that a sum does not depend on its order.
Everything is in one normal form: labels rise, transitions rise, and the scale is the smallest that
all sums and all least and greatest rewards fit. Equal logs therefore have equal counts, however
they were cut into pieces.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidCounts, ShapeMismatch
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label, joined
from surestep.model import Counts, LoggedRewards, Pairs
from surestep.model.known import hull
from surestep.model.noun import noun

END_LABEL = "(end)"
Ends = tuple[float, float]  # the least and the greatest reward
LARGEST_SUM = 10**38  # a sum must be smaller to fit the 38 digits of the file


class Episodes(NamedTuple):
    """The number of episodes of a log, by how they ended; 0 where transitions are loose."""

    recorded: int
    terminated: int
    truncated: int

    @property
    def unflagged(self) -> int:
        """Returns the number of episodes without a recorded end."""
        return self.recorded - self.terminated - self.truncated


REWARDS = ("reward_sum", "least_reward", "greatest_reward")  # in whole multiples of 10^−scale
END = -1  # stands for the missing next state of a step that terminated
KEYS = ("state", "action", "next_state", "terminated")


class Transitions(NamedTuple):
    """Visits #_D(s,a,s') of numbered labels; rewards are whole multiples of 10^−scale."""

    state: arrays.IntArray  # [T]
    action: arrays.IntArray  # [T]
    next_state: arrays.IntArray  # [T] END if a terminated step has no next state
    terminated: arrays.BoolArray  # [T]
    times: arrays.IntArray  # [T]
    reward_sum: arrays.AnyArray  # [T] 64 bits, or Python integers of any size
    least_reward: arrays.AnyArray  # [T] the least single reward
    greatest_reward: arrays.AnyArray  # [T]
    lowest: arrays.FloatArray | None = (
        None  # [T] logged propensity of the action; None if none was logged
    )
    highest: arrays.FloatArray | None = None  # [T]

    def changed(self, change: Callable[[arrays.AnyArray], arrays.AnyArray]) -> Self:
        """Applies `change` to every column."""
        columns: list[Any] = [None if column is None else change(column) for column in self]
        return type(self)(*columns)


@noun("states", "actions", "rows_read")
@dataclass(frozen=True, slots=True, eq=False)
class LabelledCounts:
    """Transition counts of a log, labelled with the texts of its columns.

    Made by `LogSource.counts` and `read_counts`.

    Parameters
    ----------
    state_columns, action_columns : tuple of str
        The columns that make a state and an action.
    states, actions : tuple of tuple of str
        The labels in rising order, one text a column.
    transitions : Transitions
        #_D(s,a,s') with sums and ranges of rewards, as columns [T].
    scale : int
        Rewards are whole multiples of 10^−scale.
    starts : array of int [S]
        How many episodes start in each state.
    rows_read : int
        The number of rows of the log.
    dropped : dict of str to int
        The number of rows that were left out, by reason.
    decided : array of bool [S]
        Whether a row of the log decides in the state, even one that was left out.
    episodes : Episodes
        The number of episodes, by how they ended.
    binnings : dict of str to Binning
        The bins of columns of numbers.
    sources : tuple of str
        SHA-256 of the logs that were counted, rising.
    dropped_rewards : dict of str to tuple of float
        The least and the greatest reward of rows that were left out, by reason.
    signals : dict of str to LabelledCounts
        Counts of further signals, by name.
    edges : tuple of str
        Digests of the first row of the log and of the row that would follow its last.
    ends_apart : bool, default False
        Whether a state that ends some episodes, and goes on in others, has an end of its own.

    Examples
    --------
    >>> log = surestep.read_log({"state": ["a", "a"], "action": ["x", "y"], "reward": [1, 0]})
    >>> log.counts().actions
    (('x',), ('y',))
    """

    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    transitions: Transitions
    scale: int
    starts: arrays.IntArray
    rows_read: int
    dropped: Mapping[str, int]
    decided: arrays.BoolArray
    episodes: Episodes
    binnings: Mapping[str, Binning] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    dropped_rewards: Mapping[str, Ends] = field(default_factory=dict)
    signals: "Mapping[str, LabelledCounts]" = field(default_factory=dict)
    edges: tuple[str, ...] = field(default=(), compare=False)
    ends_apart: bool = False

    @property
    def goes_on(self) -> arrays.BoolArray:
        """Tells of each state whether some episode goes on there [S+1]; the last place is the END.

        An episode goes on if a row decides in the state, or a step led there without ending.
        """
        known = np.append(self.decided, True)
        known[self.transitions.next_state[~self.transitions.terminated]] = True
        return known

    def end_states(self) -> tuple[Label, ...]:
        """Returns the states where episodes end.

        Returns
        -------
        tuple of tuple of str
            Labels of states in which episodes terminate and never go on, then those of `own_ends`.
        """
        rows = self.transitions
        over = rows.next_state[rows.terminated & ~self.goes_on[rows.next_state]]
        named = (self.states[s] for s in np.unique(over))
        return (*named, *dict.fromkeys(self.own_ends().values()))

    def own_ends(self) -> dict[int, Label]:
        """Returns labels for the ends in states where some steps terminate and others go on.

        Returns
        -------
        dict of int to tuple of str
            The label by number of the state, or END. No state of the log has it. It is the same
            for all states, unless `ends_apart`.
        """
        rows = self.transitions
        labels = dict[int, Label]()
        taken = {*self.states}
        shared = rows.terminated & self.goes_on[rows.next_state]
        for s in np.unique(rows.next_state[shared]).tolist():
            label: Label = (END_LABEL,) * len(self.state_columns)
            another = "({})"
            if self.ends_apart and s != END:
                label = self.states[s]
                another = f"{{}} {END_LABEL}"
            while label in taken:
                label = tuple(map(another.format, label))
            labels[s] = label
        return labels

    def led_to(
        self, next_state: arrays.IntArray, terminated: arrays.BoolArray, pairs: Pairs
    ) -> arrays.IntArray:
        """Returns the states of `pairs` that steps led to.

        Parameters
        ----------
        next_state : array of int [N]
            Numbers of states of these counts, or END.
        terminated : array of bool [N]
            Steps that ended their episode; they may lead to ends of their own.
        pairs : Pairs
            Pairs with labels of states.

        Returns
        -------
        array of int [N]
            Numbers of states of `pairs`.
        """
        known = pairs.state_labels
        ends = self.own_ends()
        state = np.append(known_places("state", [*map(joined, self.states)], known), END)
        end = state.copy()
        end[[*ends]] = known_places("state", [*map(joined, ends.values())], known)
        return np.where(terminated, end[next_state], state[next_state])

    def to_counts(
        self, pairs: Pairs | None = None, whole: "LabelledCounts | None" = None
    ) -> Counts:
        """Returns the counts over numbered pairs.

        A step that terminated leads to its next state, which is then terminal; it leads to an end
        of its own if it has no next state, or if other episodes go on there.

        Parameters
        ----------
        pairs : Pairs, optional
            Pairs with labels; by default every action in every state seen.
        whole : LabelledCounts, optional
            The counts of which these are a part, with the same numbers of states: they say where
            episodes end.

        Returns
        -------
        Counts
            The counts, with logged rewards.

        Raises
        ------
        ShapeMismatch
            The log has a state, or takes an action, that `pairs` lack.
        """
        rows = self.transitions
        if pairs is None:
            states = [*map(joined, dict.fromkeys((*self.states, *self.end_states())))]
            actions = [joined(label) for label in self.actions]
            pairs = Pairs.full(
                len(states), len(actions), state_labels=states, action_labels=actions
            )
        led = (whole or self).led_to(rows.next_state, rows.terminated, pairs)
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
        terminal = arrays.marked(led[rows.terminated], pairs.num_states)
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

    def pairs_of_rows(self, pairs: Pairs) -> arrays.IntArray:
        """Finds the pair of every transition by its labels.

        Parameters
        ----------
        pairs : Pairs
            Pairs with labels.

        Returns
        -------
        array of int [T]
            Numbers of pairs; −1 where the action is not enabled.
        """
        rows = self.transitions
        state = known_places("state", [*map(joined, self.states)], pairs.state_labels)[rows.state]
        action = known_places("action", [*map(joined, self.actions)], pairs.action_labels)
        return pairs.find(state, action[rows.action])


def merge_counts(parts: Sequence[LabelledCounts]) -> LabelledCounts:
    """Adds up counts of several logs; the result does not depend on their order.

    Parameters
    ----------
    parts : sequence of LabelledCounts
        Counts with the same columns, bins and signals.

    Returns
    -------
    LabelledCounts
        The counts of all logs together.

    Raises
    ------
    InvalidCounts
        Two parts have counted the same log.
    ShapeMismatch
        Columns, bins or signals differ, or an episode is cut between two files.

    Examples
    --------
    >>> january = surestep.read_log({"state": ["a"], "action": ["x"], "reward": [1.0]})
    >>> february = surestep.read_log({"state": ["a"], "action": ["y"], "reward": [0.0]})
    >>> surestep.io.merge_counts([january.counts(), february.counts()]).rows_read
    2
    """
    if not parts:
        raise InvalidCounts("there are no counts to merge, expected at least one")
    first = parts[0]
    for part in parts[1:]:
        for role in ("state", "action"):
            ours = getattr(first, f"{role}_columns")
            theirs = getattr(part, f"{role}_columns")
            if ours != theirs:
                raise ShapeMismatch(
                    f"the {role} is {', '.join(ours)} in some counts and {', '.join(theirs)} in "
                    "others; expected the same columns in the same order"
                )
        if part.binnings != first.binnings:
            raise ShapeMismatch(
                "the counts have different bins; expected the same edges or widths everywhere "
                "(quantiles of one part are not those of another)"
            )
        if (part.transitions.lowest is None) != (first.transitions.lowest is None):
            raise ShapeMismatch(
                "some counts have logged propensities and others have none; expected all or none"
            )
        if part.signals.keys() != first.signals.keys():
            raise ShapeMismatch("the counts have different signals; expected the same everywhere")
    sources = merged_sources(parts)
    states = tuple(sorted({label for part in parts for label in part.states}))
    actions = tuple(sorted({label for part in parts for label in part.actions}))
    scale = max(part.scale for part in parts)
    starts = np.zeros(len(states), np.int64)
    decided = np.zeros(len(states), np.bool_)
    moved = list[Transitions]()
    for part in parts:
        state = positions(part.states, states)
        np.add.at(starts, state, part.starts)
        decided[state[part.decided]] = True
        rows = part.transitions
        factor = 10 ** (scale - part.scale)
        moved.append(
            rows._replace(
                state=state[rows.state],
                action=positions(part.actions, actions)[rows.action],
                next_state=np.append(state, END)[rows.next_state],
                **{name: scaled(getattr(rows, name), factor) for name in REWARDS},
            )
        )
    # All parts have propensities, or none.
    columns = zip(*moved, strict=True)
    joint: list[Any] = [None if same[0] is None else np.concatenate(same) for same in columns]
    merged = grouped(Transitions(*joint))
    scale, merged = smallest_scale(scale, merged)
    reasons = sorted({reason for part in parts for reason in part.dropped})
    ranges = [part.dropped_rewards for part in parts]
    return LabelledCounts(
        first.state_columns,
        first.action_columns,
        states,
        actions,
        merged.changed(arrays.freeze),
        scale,
        arrays.freeze(starts),
        sum(part.rows_read for part in parts),
        {reason: sum(part.dropped.get(reason, 0) for part in parts) for reason in reasons},
        arrays.freeze(decided),
        Episodes(*map(sum, zip(*(part.episodes for part in parts), strict=True))),
        first.binnings,
        sources,
        {
            why: hull(ends[why] for ends in ranges if why in ends)
            for why in sorted(set().union(*ranges))
        },
        {name: merge_counts([part.signals[name] for part in parts]) for name in first.signals},
        first.edges if len(parts) == 1 else (),
    )


def counts_of_costs(counts: LabelledCounts) -> LabelledCounts:
    """Negates the costs in counts; returns counts of rewards."""
    rows = counts.transitions
    earned = rows._replace(
        reward_sum=0 - rows.reward_sum,
        least_reward=0 - rows.greatest_reward,
        greatest_reward=0 - rows.least_reward,
    )
    lost = {why: (0.0 - high, 0.0 - low) for why, (low, high) in counts.dropped_rewards.items()}
    return replace(counts, transitions=earned.changed(arrays.freeze), dropped_rewards=lost)


def merged_sources(parts: Sequence[LabelledCounts]) -> tuple[str, ...]:
    """Returns the digests of all counted logs.

    Refuses a log that two parts have counted. Refuses an episode that begins at the end of one
    part and continues in another.
    """
    holder = dict[str, int]()
    begins = {part.edges[0]: place for place, part in enumerate(parts, 1) if part.edges}
    for place, part in enumerate(parts, 1):
        for source in part.sources:
            if source in holder:
                raise InvalidCounts(
                    f"counts {holder[source]} and {place} are of the same log (SHA-256 "
                    f"{source[:16]}…), whose rows would count twice; expected every log once"
                )
            holder[source] = place
        then = begins.get(part.edges[1], place) if part.edges else place
        if then != place:
            raise ShapeMismatch(
                f"the last episode of counts {place} goes on in counts {then}, so that it would "
                "count as two; expected files of whole episodes: count both logs together"
            )
    return tuple(sorted(holder))


def in_units(sums: arrays.AnyArray, unit: int) -> arrays.FloatArray:
    """Divides the sums by `unit`, rounding once; returns doubles."""
    if sums.dtype != object and max(largest_size(sums), unit) <= arrays.LARGEST_EXACT_DOUBLE:
        return np.asarray(sums / unit, float)
    return np.array([int(total) / unit for total in sums], float)


def smallest_scale(scale: int, rows: Transitions) -> tuple[int, Transitions]:
    """Returns the smallest scale that all rewards fit, and the transitions in it."""
    rewards = [getattr(rows, name) for name in REWARDS]
    while scale > 0 and not any((numbers % 10).any() for numbers in rewards):
        scale -= 1
        rewards = [numbers // 10 for numbers in rewards]
    if max(map(largest_size, rewards)) >= LARGEST_SUM:
        raise InvalidCounts(
            f"a sum of rewards needs more than 38 digits ({scale} of them after the point); round "
            "the rewards to fewer digits"
        )
    return scale, rows._replace(**dict(zip(REWARDS, map(narrowed, rewards), strict=True)))


def positions(labels: Iterable[Any], among: Iterable[Any]) -> arrays.IntArray:
    """Returns the place of each label in `among`; −1 for one that is missing."""
    place = {label: index for index, label in enumerate(among)}
    return np.array([place.get(label, -1) for label in labels], np.int64)


def known_places(kind: str, labels: Sequence[str], among: Sequence[str] | None) -> arrays.IntArray:
    """Returns the place of each label in `among`; refuses a label that the pairs lack."""
    if among is None:
        raise ShapeMismatch(f"the pairs have no labels of {kind}s to find those of the log by")
    places = positions(labels, among)
    for i, _ in arrays.first_where(places < 0, kind):
        raise ShapeMismatch(f"the log has the {kind} {labels[i]!r}, which the pairs do not have")
    return places


def counts_digest(counts: LabelledCounts) -> str:
    """Returns the SHA-256 of columns, labels and numbers.

    Unlike the bytes of a counts file, it does not depend on the version of the Parquet writer.
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
    for column in (counts.starts, counts.decided, *counts.transitions):
        if column is None:
            digest.update(b"none")
        elif column.dtype == object:  # whole numbers of any size
            digest.update(",".join(map(str, column)).encode())
        else:
            kind = "<f8" if column.dtype.kind == "f" else "<i8"
            digest.update(np.ascontiguousarray(column, kind).tobytes())
    return digest.hexdigest()


# ---- rewards and their sums as whole numbers: of 64 bits if they fit, else of Python ------------

SAFE = 2**62  # of 64 bits


def exact_type(database: Any, table: str, columns: Iterable[str]) -> str:
    """Returns the SQL type in which NumPy gets whole numbers exactly: BIGINT, else VARCHAR."""
    largest = ", ".join(f"max(abs(CAST({column} AS HUGEINT)))" for column in columns)
    sizes = database.execute(f"SELECT {largest} FROM {table}").fetchone()
    return "BIGINT" if all(size is None or size < SAFE for size in sizes) else "VARCHAR"


def integers(values: arrays.AnyArray) -> arrays.AnyArray:
    """Returns the numbers of a column of an `exact_type`; texts become integers of any size."""
    return np.array([*map(int, values)], object) if values.dtype == object else values


def narrowed(numbers: arrays.AnyArray) -> arrays.AnyArray:
    """Converts the numbers to 64 bits if all fit; else returns them unchanged."""
    return numbers.astype(np.int64, copy=False) if largest_size(numbers) < SAFE else numbers


def scaled(numbers: arrays.AnyArray, factor: int) -> arrays.AnyArray:
    """Multiplies the numbers by a factor; uses Python integers if 64 bits may overflow."""
    if numbers.dtype != object and largest_size(numbers) * factor >= SAFE:
        numbers = numbers.astype(object)
    return numbers if factor == 1 else numbers * factor


def added(numbers: arrays.AnyArray, begin: arrays.IntArray) -> arrays.AnyArray:
    """Adds up the numbers of each run; `begin` has the first place of each run."""
    if numbers.dtype != object and np.abs(numbers).sum(dtype=float) >= SAFE / 2:
        numbers = numbers.astype(object)
    return narrowed(np.add.reduceat(numbers, begin))


def largest_size(numbers: arrays.AnyArray) -> int:
    """Returns the largest absolute value."""
    return 0 if numbers.size == 0 else max(abs(int(numbers.max())), abs(int(numbers.min())))


def grouped(rows: Transitions, keys: Sequence[str] = KEYS) -> Transitions:
    """Groups rows by their keys, in rising order; adds up times and sums, and merges ranges."""
    order = np.lexsort([getattr(rows, key) for key in reversed(keys)])
    if order.size == 0:
        return rows
    rows = rows.changed(lambda column: column[order])
    begin = np.flatnonzero(arrays.first_of_equal(*(getattr(rows, key) for key in keys)))
    return rows.changed(lambda column: column[begin])._replace(
        times=np.add.reduceat(rows.times, begin),
        reward_sum=added(rows.reward_sum, begin),
        least_reward=np.minimum.reduceat(rows.least_reward, begin),
        greatest_reward=np.maximum.reduceat(rows.greatest_reward, begin),
        lowest=None if rows.lowest is None else np.minimum.reduceat(rows.lowest, begin),
        highest=None if rows.highest is None else np.maximum.reduceat(rows.highest, begin),
    )
