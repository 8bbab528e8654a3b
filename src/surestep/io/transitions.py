"""Transitions: the rows of counts, column by column, and how equal ones are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray
from surestep.io.exact_sums import added

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
        return Transitions(
            change(self.state),
            change(self.action),
            change(self.next_state),
            change(self.terminated),
            change(self.times),
            change(self.reward_sum),
            change(self.least_reward),
            change(self.greatest_reward),
            None if self.lowest is None else change(self.lowest),
            None if self.highest is None else change(self.highest),
        )


def strung(parts: Sequence[Transitions]) -> Transitions:
    """All parts, one after the other; all of them have propensities, or none."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Transitions._fields
        if getattr(parts[0], name) is not None
    }
    return Transitions(**columns)


def grouped(rows: Transitions, keys: Sequence[str] = KEYS) -> Transitions:
    """Rows with distinct keys in rising order, each with its times, sums and extremes."""
    order = np.lexsort([getattr(rows, key) for key in reversed(keys)])
    if order.size == 0:
        return rows
    rows = rows.each(lambda column: column[order])
    new = np.ones(order.size, np.bool_)
    new[1:] = np.any([np.diff(getattr(rows, key)) != 0 for key in keys], axis=0)
    begin = np.flatnonzero(new)
    low, high = rows.lowest, rows.highest
    return rows.each(lambda column: column[begin])._replace(
        times=np.add.reduceat(rows.times, begin),
        reward_sum=added(rows.reward_sum, begin),
        least_reward=np.minimum.reduceat(rows.least_reward, begin),
        greatest_reward=np.maximum.reduceat(rows.greatest_reward, begin),
        lowest=None if low is None else np.minimum.reduceat(low, begin),
        highest=None if high is None else np.maximum.reduceat(high, begin),
    )
