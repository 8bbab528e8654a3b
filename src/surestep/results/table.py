"""PolicyTable: the improved policy pair by pair, beside all that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.io.vocabulary import Vocabulary
from surestep.model import Pairs


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTable:
    """One row a pair: what π_b does there, what π_I does, and what the data says about it.

    Q is the estimated return of taking the action and following π_I from then on; the advantage is
    Q(s,a) − Σ_b π_b(b|s) Q(s,b), how much better the action is than what π_b does there on average.
    """

    vocabulary: Vocabulary
    pairs: Pairs
    probability: FloatArray  # [K] π_I
    behavior: FloatArray  # [K] π_b
    visits: IntArray  # [K]
    trusted: BoolArray | None  # [K] more visits than N∧; None where the algorithm has no N∧
    q: FloatArray  # [K]
    advantage: FloatArray  # [K]
