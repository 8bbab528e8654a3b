"""All bounds side by side, for the two questions a person has before collecting data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from surestep._arrays import is_number
from surestep.bounds.loss import BOUNDS, n_wedge, zeta
from surestep.bounds.radius import ProblemSize
from surestep.errors import InvalidParameter


class BoundAnswer(NamedTuple):
    """The answer of one bound; None where nothing was asked, or where it has no answer."""

    method: str
    covers: str  # 'row' or 'split'
    standing: str
    zeta: float | None  # the ζ that the visits buy
    says_nothing: bool | None  # whether that ζ is at least the span of values
    n_wedge: int | None  # the visits that the wanted ζ takes
    refusal: str | None  # why it has no answer


def compare_bounds(
    size: ProblemSize,
    value_bounds: tuple[float, float],
    *,
    visits: int | None = None,
    wanted_zeta: float | None = None,
    gain: float = 0.0,
) -> tuple[BoundAnswer, ...]:
    """Returns the ζ that `visits` buy and the visits that `wanted_zeta` takes, under every bound.

    `value_bounds` is (V_min, V_max); the V_max of the size, the paper's, is the larger magnitude.
    Branching counts for bounds about rows; splits have a number of successors of their own.
    """
    span = value_span(value_bounds)
    size = replace(size, value_bound=max(abs(value_bounds[0]), abs(value_bounds[1])))
    answers = []
    for method, bound in BOUNDS.items():
        loss = needed = refusal = None
        if gain != 0 and not bound.bootstraps:
            refusal = "its formula has no gain"
        else:
            own_size = size.for_bound(bound)
            if visits is not None:
                loss = zeta(bound, visits, own_size, gain=gain)
            if wanted_zeta is not None:
                needed = n_wedge(bound, wanted_zeta, own_size, gain=gain)
        nothing = None if loss is None else loss >= span
        answers.append(
            BoundAnswer(method, bound.covers.value, bound.standing, loss, nothing, needed, refusal)
        )
    return tuple(answers)


def value_span(value_bounds: tuple[float, float]) -> float:
    """V_max − V_min: two policies cannot differ by more, so a ζ of this size says nothing."""
    if not (isinstance(value_bounds, tuple | list) and len(value_bounds) == 2):
        raise InvalidParameter(f"value_bounds is {value_bounds!r}, expected two numbers")
    low, high = value_bounds
    if not (is_number(low) and is_number(high) and -math.inf < low < high < math.inf):
        raise InvalidParameter(
            f"the value bounds are {low!r} and {high!r}, expected two finite numbers, the lower "
            "one first"
        )
    return high - low
