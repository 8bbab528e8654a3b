"""From a radius to the admissible loss ζ, and from ζ back to the number of visits N∧.

ζ(N) = f(γ) · V_max · radius(N) − gain, with the loss factor f of the bound and, for bounds that
bootstrap, the gain ρ(π_I, M̃) − ρ(π_b, M̃) of the improved policy in the estimated MDP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import surestep._arrays as arrays
from surestep._names import unknown
from surestep._settings import check_setting
from surestep.bounds.radius import (
    BetaBound,
    Bound,
    KSuccessor,
    ProblemSize,
    SPIBBBound,
    StandardSPI,
    StandardSPIWithoutGamma,
    TwoSuccessorBound,
)
from surestep.errors import InvalidParameter

MOST_VISITS = 2**1024  # beyond all doubles every radius is 0: more are never enough

BoundName = Literal["spi", "spi-no-gamma", "spibb", "2s", "beta", "ks"]
BOUNDS: dict[str, Bound] = {
    "spi": StandardSPI(),
    "spi-no-gamma": StandardSPIWithoutGamma(),
    "spibb": SPIBBBound(),
    "2s": TwoSuccessorBound(),
    "beta": BetaBound(),
    "ks": KSuccessor(),
}


def bound_of(method: str | Bound) -> Bound:
    """Returns the bound of that name, or the bound itself."""
    if not isinstance(method, str):
        return method
    if method not in BOUNDS:
        raise unknown(f"method is {method!r}", method, BOUNDS)
    return BOUNDS[method]


def zeta(method: str | Bound, n_wedge: int, size: ProblemSize, *, gain: float = 0.0) -> float:
    """Returns the ζ that N∧ visits buy: with probability 1 − δ, ρ(π_I) ≥ ρ(π_b) − ζ."""
    bound = bound_of(method)
    return loss_scale(bound, size, gain) * float(bound.radius(n_wedge, size)) - gain


def n_wedge(method: str | Bound, zeta: float, size: ProblemSize, *, gain: float = 0.0) -> int:
    """Returns the smallest N∧ with ζ(N∧) ≤ `zeta`, found by evaluating ζ itself."""
    bound = bound_of(method)
    scale = loss_scale(bound, size, gain)
    if not (arrays.is_number(zeta) and math.isfinite(zeta) and zeta + gain > 0):
        raise InvalidParameter(
            f"zeta is {zeta!r} with a gain of {gain!r}, expected zeta + gain above 0: no amount of "
            "data makes the radius 0"
        )
    return smallest(lambda n: scale * float(bound.radius(n, size)) - gain <= zeta)


def equivalent_n_wedge(
    n_wedge: int, size: ProblemSize, *, given: str | Bound, wanted: str | Bound
) -> int:
    """Returns the N∧ of the bound `wanted` that promises what `n_wedge` promises under `given`.

    The paper's methodology: ζ^SPIBB of a chosen N∧ is kept, and N∧^2s or N∧^β follows. The bounds
    must have the same loss factor; then V_max, γ and the gain cancel, and the smallest N with
    radius_wanted(N) ≤ radius_given(n_wedge) is the answer.
    """
    first, second = bound_of(given), bound_of(wanted)
    if first.loss_factor(0.5) != second.loss_factor(0.5):
        raise InvalidParameter(
            f"{given!r} and {wanted!r} have different loss factors, expected bounds with the same"
        )
    target = float(first.radius(n_wedge, size))
    return smallest(lambda n: float(second.radius(n, size)) <= target)


class BestBound(NamedTuple):
    """The bound that needs the fewest visits, and how many."""

    name: str
    n_wedge: int
    standing: str


def best_bound(zeta: float, size: ProblemSize, *, gain: float = 0.0) -> BestBound:
    """Returns the bootstrapping bound that needs the fewest visits for ζ.

    Where 2^b < 4|S||A|, standard SPIBB beats 2s; b is |S|, or `branching` where it is known, which
    bounds about splits have no use for.
    """
    usable = [
        BestBound(name, n_wedge(bound, zeta, size.for_bound(bound), gain=gain), bound.standing)
        for name, bound in BOUNDS.items()
        if bound.bootstraps
    ]
    return min(usable, key=lambda best: best.n_wedge)


def loss_scale(bound: Bound, size: ProblemSize, gain: float) -> float:
    """Returns f(γ) · V_max; refuses a size without them, and a gain where the bound has none."""
    if size.value_bound is None or size.discount is None:
        missing = "value_bound" if size.value_bound is None else "discount"
        raise InvalidParameter(f"{missing} of the size is None, expected a number: ζ depends on it")
    check_setting("gain", gain, float)
    if gain != 0 and not bound.bootstraps:
        raise InvalidParameter(
            f"gain is {gain!r}, but the formula of standard SPI has no gain; expected 0"
        )
    return bound.loss_factor(size.discount) * size.value_bound


def smallest(enough: Callable[[int], bool]) -> int:
    """Returns the smallest whole number of at least 1 that is enough; being enough is monotone."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_VISITS:
            raise InvalidParameter(
                "no number of visits is enough; expected a larger ζ, or smaller values"
            )
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# ---- all bounds side by side, for the two questions a person has before collecting data ---------


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
    if not (arrays.is_number(low) and arrays.is_number(high) and -math.inf < low < high < math.inf):
        raise InvalidParameter(
            f"the value bounds are {low!r} and {high!r}, expected two finite numbers, the lower "
            "one first"
        )
    return high - low
