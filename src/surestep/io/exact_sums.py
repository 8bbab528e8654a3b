"""Rewards and their sums as whole numbers: of 64 bits where they fit, else Python's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surestep._arrays import AnyArray, IntArray

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
