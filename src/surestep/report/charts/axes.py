"""Axes: from a number to its place in a picture, and where to write numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from surestep.report.numbers import short


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers along one side of a picture."""

    label: str
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        """Checks that the range has a length, which places are measured in."""
        if not -math.inf < self.low < self.high < math.inf or (self.log and self.low <= 0):
            raise ValueError(f"the axis {self.label!r} goes from {self.low} to {self.high}")

    @classmethod
    def around(cls, label: str, values: Iterable[float], *, log: bool = False) -> Axis:
        """Returns the axis that all finite values fit on, with some room; 1 to 10 without any."""
        fitting = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        if not fitting:
            return cls(label, 1.0, 10.0, log)
        low, high = min(fitting), max(fitting)
        if log:
            return cls(label, low / 1.15, high * 1.15, log)
        room = 0.06 * (high - low) or abs(high) / 2 or 1.0
        return cls(label, low - room, high + room)

    def share(self, value: float) -> float:
        """Returns where a value lies, from 0 (low) to 1 (high); beyond the ends outside of that."""
        if self.log:
            if value <= 0:
                return -1.0
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Returns round numbers on the axis, with their texts."""
        values = log_ticks(self.low, self.high) if self.log else even_ticks(self.low, self.high)
        return tuple((value, short(value)) for value in values)


def even_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Returns multiples of a round step, about as many as wanted.

    >>> even_ticks(-0.3, 1.1)
    [0.0, 0.5, 1.0]
    """
    rough = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Returns powers of ten, evenly thinned out; with twos and fives where there are few.

    >>> log_ticks(8, 1200), log_ticks(3, 30)
    ([10.0, 100.0, 1000.0], [5.0, 10.0, 20.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks[:: math.ceil(len(ticks) / most)]
    return ticks or [low, high]
