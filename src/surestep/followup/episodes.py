"""Holds the returns of whole episodes that came after a result, in the order of their starts.

**What a return may be.** An episode that is over returned G. One that a clock cut after H steps
returned what it earned so far, and γ^H times a value that nobody saw; so `lowest` and `highest` are
the ends of what it may have returned. Of a pending one nothing is known yet but the declared range.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Self

import msgspec
import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that whole episodes return, with its range: more is better, costs are below 0."""

    name: str
    low: float  # the least return of an episode
    high: float  # and the greatest
    discount: float = 1.0
    margin: float = 0.0  # by how much it may get worse; the first has to get better
    at_most: float | None = None  # of a chance: a limit on its own, whatever the control does
    middle: float = 0.0  # the mean of old returns, and their variance: a pilot's stakes
    variance: Annotated[float, msgspec.Meta(ge=1e-100)] = 1.0


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

    def after(self, past: Self, names: tuple[str, str]) -> Self:
        """Returns these episodes after past ones, as two arms with these names.

        Past episodes without an end may have returned anything.
        """
        both = [past, self]
        open_ended = np.where(past.pending, np.inf, 0.0)
        before = np.full(len(past), -np.inf) if past.starts is None else past.starts
        return replace(
            self,
            ids=past.ids + self.ids,
            starts=None if self.starts is None else np.append(before, self.starts),
            arm=np.repeat(names, [len(one) for one in both]),
            returns=np.concatenate([one.returns for one in both], axis=1),
            lowest=np.concatenate([past.lowest - open_ended, self.lowest], axis=1),
            highest=np.concatenate([past.highest + open_ended, self.highest], axis=1),
            pending=np.append(np.zeros(len(past), np.bool_), self.pending),
            followed=np.concatenate([one.followed for one in both]),
        )
