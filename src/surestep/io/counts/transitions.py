"""Rewards and their sums as whole numbers: of 64 bits where they fit, else Python's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray

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


def concatenated(parts: Sequence[Transitions]) -> Transitions:
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
