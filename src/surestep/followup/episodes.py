"""Episodes: what whole cases returned after a policy was made, in the order of their starts.

**What a return may be.** An episode that is over returned G. One that a clock cut after H steps
returned what it earned so far, and γ^H times a value that nobody saw; so `lowest` and `highest` are
the ends of what it may have returned. Of a pending one nothing is known yet but the declared range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from surestep._arrays import AnyArray, BoolArray, FloatArray


class Measure(NamedTuple):
    """A number that whole episodes return: more is better, costs are below 0."""

    name: str
    low: float  # the least return of an episode
    high: float  # and the greatest
    discount: float = 1.0
    margin: float = 0.0  # by how much it may get worse; the first has to get better
    at_most: float | None = None  # of a chance: a limit on its own, whatever the control does
    cost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Episodes:
    """Episodes in the order of their starts; M measures, the one that is improved first."""

    measures: tuple[Measure, ...]
    ids: tuple[str, ...]  # [E]
    starts: FloatArray | None  # [E] seconds since 1970 (UTC); None where no column has times
    arm: AnyArray | None  # [E] the text of the column of arms; None without one
    returns: FloatArray  # [M, E] as recorded, of unfinished ones so far
    lowest: FloatArray  # [M, E] the least that they may have returned
    highest: FloatArray  # [M, E] the most
    pending: BoolArray  # [E] the outcome is not known yet
    followed: FloatArray  # [E] the share of decisions that the new policy takes, too

    def __len__(self) -> int:
        return len(self.ids)
