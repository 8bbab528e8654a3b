"""The worth of N visits: the radius of each bound of the paper's Table 1.

A radius is about the bound's own model, and each bound says what it covers. A `row` radius bounds
the L1 error of a whole row of the estimated MDP, ‖P̂(·|s,a) − P(·|s,a)‖₁. A `split` radius is about
one binary (or k-ary) split of the transformed MDP; it is *not* a bound on a row's L1 error.

All of them are `as-published`: taken over from the papers, with their gaps. Logarithms are added up
before anything is exponentiated, so 2^|S| is never formed.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from typing import Annotated, ClassVar, Protocol, runtime_checkable

import numpy as np
from msgspec import Meta
from scipy.special import betainccinv, betaincinv, ndtri_exp

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep._settings import Delta, Settings, check_setting, check_settings
from surestep.errors import InvalidParameter
from surestep.model.certificate import Standing
from surestep.model.problem import Problem

LN2 = math.log(2.0)
LARGEST_DOUBLE = int(np.finfo(np.float64).max)
KNOT_BITS = 16  # knots of the beta width have this many binary digits
LAST_KNOT = 2.0**49  # up to here, 10¹⁵ visits, the inverse beta function is accurate
SURELY_ABOVE_ROUNDING = 1e-11  # far above the last digits of a library, far below a step of knots
SMALLEST_LOG = -700.0  # below it, e^x is no normal double


class Coverage(Enum):
    """The error that a radius bounds: of a row, or of one split."""

    ROW = "row"  # the L1 error of a row
    SPLIT = "split"  # one split of the two-successor (k-successor) MDP


@runtime_checkable
class Bound(Protocol):
    """A bound of the paper: a radius, and the loss factor in front of it."""

    covers: ClassVar[Coverage] = Coverage.SPLIT
    standing: ClassVar[Standing] = "as-published"
    bootstraps: ClassVar[bool] = True  # π_b is kept where data is scarce, and a gain counts

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """Returns the radius that `visits` of every trusted pair buy, jointly for all pairs."""
        ...

    def loss_factor(self, discount: float) -> float:
        """Returns the f(γ) in ζ = f(γ) · V_max · radius − gain; 4/(1 − γ) where π_b is kept."""
        return 4 / (1 - discount)


@dataclass(frozen=True, slots=True)
class ProblemSize:
    """|S|, |A| and δ, on which radii rest; for losses V_max and γ too.

    And the largest number of successors of a row, where it is known.
    """

    states: Annotated[int, Meta(ge=1)]
    actions: Annotated[int, Meta(ge=1)]
    delta: Delta
    _: KW_ONLY
    value_bound: Annotated[float | None, Meta(gt=0)] = None
    discount: Annotated[
        float | None, Meta(gt=0, lt=1, description="the bounds are void without discounting")
    ] = None
    branching: Annotated[int | None, Meta(ge=1)] = None

    @classmethod
    def of(cls, problem: Problem, delta: float) -> ProblemSize:
        """Returns the size of a problem that has one discount."""
        return cls(
            problem.num_states,
            problem.num_actions,
            delta,
            value_bound=problem.value_bound,
            discount=problem.single_discount,
        )

    def __post_init__(self) -> None:
        """Checks the ranges."""
        check_settings(self)
        if self.branching is not None and self.branching > self.states:
            raise InvalidParameter(
                f"branching is {self.branching}, expected at most the number of states, "
                f"{self.states}"
            )

    def for_bound(self, bound: Bound) -> ProblemSize:
        """Returns the size as the bound takes it: bounds about splits have no use for branching."""
        return self if bound.covers is Coverage.ROW else replace(self, branching=None)

    @property
    def log_pairs(self) -> float:
        """ln(|S||A|)."""
        return math.log(self.states) + math.log(self.actions)

    @property
    def log_split_share(self) -> float:
        """ln δ_T with δ_T = δ / (|S|²|A|²): the share of δ that one split gets (Theorem 4)."""
        return math.log(self.delta) - 2 * self.log_pairs


def weissman(visits: object, log_term: float) -> FloatArray:
    """√((2/N) · log_term), the L1 deviation bound of Weissman et al. (2003), Theorem 2.1."""
    radius: FloatArray = np.sqrt(2.0 * log_term / read_visits(visits))
    return radius


def row_log_term(size: ProblemSize) -> float:
    """ln(2 |S||A| 2^b / δ), with b = |S|, or the largest number of successors where it is known."""
    successors = size.states if size.branching is None else size.branching
    return LN2 + size.log_pairs + successors * LN2 - math.log(size.delta)


@dataclass(frozen=True, slots=True)
class StandardSPI(Bound):
    """Standard SPI (Petrik et al. 2016; the paper's Eq. 2): ζ = 2γ V_max/(1 − γ) · radius.

    radius(N) = √((2/N) ln(2 |S||A| 2^|S| / δ)). It asks for N visits of *every* pair.
    """

    covers: ClassVar = Coverage.ROW
    bootstraps: ClassVar = False

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """√((2/N) ln(2 |S||A| 2^|S| / δ))."""
        return weissman(visits, row_log_term(size))

    def loss_factor(self, discount: float) -> float:
        """2γ/(1 − γ)."""
        return 2 * discount / (1 - discount)


@dataclass(frozen=True, slots=True)
class StandardSPIWithoutGamma(StandardSPI):
    """Standard SPI as Table 1 prints its N, without the γ² that follows from its ζ."""

    def loss_factor(self, discount: float) -> float:
        """2/(1 − γ)."""
        return 2 / (1 - discount)


@dataclass(frozen=True, slots=True)
class SPIBBBound(Bound):
    """SPIBB (Laroche et al. 2019): radius(N) = √((2/N) ln(2 |S||A| 2^|S| / δ)).

    With `branching` = 2 this is the paper's Lemma 1, for MDPs that have two successors anyway.
    """

    covers: ClassVar = Coverage.ROW

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """√((2/N) ln(2 |S||A| 2^|S| / δ))."""
        return weissman(visits, row_log_term(size))


@dataclass(frozen=True, slots=True)
class KSuccessor(Settings, Bound):
    """k-successor MDPs (appendix): radius(N) = √((2/N) ln(2 |S|²|A|² 2^k / ((k − 1) δ)))."""

    k: Annotated[int, Meta(ge=2)] = 3

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """√((2/N) ln(2 |S|²|A|² 2^k / ((k − 1) δ)))."""
        refuse_branching(size)
        log_term = LN2 + self.k * LN2 - math.log(self.k - 1) - size.log_split_share
        return weissman(visits, log_term)


@dataclass(frozen=True, slots=True)
class TwoSuccessorBound(Bound):
    """Two-successor MDPs (Theorem 3): radius(N) = √((2/N) ln(8 |S|²|A|² / δ))."""

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """√((2/N) ln(8 |S|²|A|² / δ))."""
        return KSuccessor(2).radius(visits, size)


@dataclass(frozen=True, slots=True)
class BetaBound(Bound):
    """Beta credible width of one split (Theorem 4 and Table 1; the text of Theorem 4 drops a 2).

    radius(N) = 1 − 2·I⁻¹(δ_T/2; N/2+1, N/2+1) = √I_c⁻¹(δ_T; ½, N/2+1), δ_T = δ / (|S|²|A|²).
    """

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """1 − 2·I⁻¹(δ_T/2; N/2+1, N/2+1)."""
        refuse_branching(size)
        return symmetric_beta_width(read_visits(visits), size.log_split_share)


def symmetric_beta_width(visits: FloatArray, log_share: float) -> FloatArray:
    """Returns the width r of the central interval of Beta(N/2 + 1, N/2 + 1), mass 1 − e^log_share.

    It falls with N, and `n_wedge` searches by that, so the last bits of a library may not make it
    rise. The library is asked at knots only, which lie so far apart that its errors cannot turn two
    answers round; in between, q = (1 − r²)/r² is a line. It nearly is one: q = αa + β + O(z²/a)
    with z = Φ⁻¹(1 − δ_T/2), so r is off by less than one part in 10¹². Sums, products, quotients
    and roots are rounded correctly everywhere, and so keep the order. Beyond the last knot r falls
    with √a, up to one part in a.
    """
    a = visits / 2.0 + 1.0
    fraction, exponent = np.frexp(np.minimum(a, LAST_KNOT))
    below = np.floor(np.ldexp(fraction, KNOT_BITS))
    knots = np.ldexp([below, below + 1.0], exponent - KNOT_BITS)
    low, high = odds_against(knots, log_share)
    way = np.minimum((a - knots[0]) / (knots[1] - knots[0]), 1.0)
    between = 1.0 / np.sqrt(1.0 + np.minimum(low + way * (high - low), high))
    beyond = np.sqrt(LAST_KNOT / a) / np.sqrt(1.0 + low)
    width: FloatArray = np.where(a < LAST_KNOT, between, beyond)
    return width


def odds_against(a: FloatArray, log_share: float) -> FloatArray:
    """q = (1 − r²)/r² for the width r of `symmetric_beta_width`, as accurately as libraries can.

    With p ~ Beta(a, a), t = 1 − 2p has a density ∝ (1 − t²)^(a−1) and t² ~ Beta(½, a), so
    P(t² > r²) = δ_T gives r² = I_c⁻¹(δ_T; ½, a) and 1 − r² = I⁻¹(δ_T; a, ½). The smaller one is
    taken, so nothing cancels. Where δ_T is no double any more, the upper end of
    `beta_width_bracket` stands in for r, and 1 for what the library cannot tell from it.
    """
    if log_share < SMALLEST_LOG:
        upper = beta_width_bracket(2.0 * (a - 1.0), log_share)[1]
        odds: FloatArray = 1.0 / upper**2 - 1.0
        return odds * (odds > SURELY_ABOVE_ROUNDING)
    share = math.exp(log_share)
    square, rest = betainccinv(0.5, a, share), betaincinv(a, 0.5, share)
    wide = square > 0.5
    exact: FloatArray = np.where(wide, rest, 1.0 - square) / np.where(wide, 1.0 - rest, square)
    return exact


def beta_width_bracket(visits: FloatArray, log_share: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of `symmetric_beta_width`, from the logarithm of δ_T alone.

    Let x = δ_T/2 = P(t > r), z(q) = Φ⁻¹(1 − q), and C = ∫(1 − t²)^(N/2) dt = √π Γ(s)/Γ(s + ½) with
    s = N/2 + 1; √(s − ¼) ≤ Γ(s + ½)/Γ(s) ≤ √s (Watson 1959).

    Upper: put t = sin θ. P(θ > φ) = C⁻¹ ∫_φ cos^(N+1) θ dθ, and cos θ ≤ exp(−θ²/2) on [0, π/2], so
    x ≤ C⁻¹ √(2π/(N+1)) Φ(−φ√(N+1)) ≤ √((N+2)/(N+1)) Φ(−φ√(N+1)) by C ≥ √(2π/(N+2)). Hence
    φ ≤ z(x √((N+1)/(N+2))) / √(N+1), and r = sin φ.

    Lower: put t = tanh u. P(u > y) = C⁻¹ ∫_y sech^(N+2) u du, and sech u ≥ exp(−u²/2), so
    x ≥ √(1 − 1/(2N+4)) Φ(−y√(N+2)) by C ≤ √(2π/(N + 3/2)). Hence
    y ≥ z(x / √(1 − 1/(2N+4))) / √(N+2), and r = tanh y.
    """
    log_x = log_share - LN2
    squeeze = 0.5 * np.log1p(-1.0 / (visits + 2.0))  # ln √((N+1)/(N+2))
    stretch = 0.5 * np.log1p(-0.5 / (visits + 2.0))  # ln √(1 − 1/(2N+4))
    angle = -ndtri_exp(log_x + squeeze) / np.sqrt(visits + 1.0)
    upper = np.sin(np.minimum(angle, math.pi / 2))
    lower = np.tanh(-ndtri_exp(np.minimum(log_x - stretch, -LN2)) / np.sqrt(visits + 2.0))
    return lower, upper


def credible_width(visits: object, delta: float, prior: tuple[float, float] = (1.0, 1.0)) -> float:
    """Returns the largest width of the central 1 − δ credible interval of one split (Corollary 3).

    1 − 2·I⁻¹(δ/2; (N+α₁+α₂)/2, (N+α₁+α₂)/2) under the prior Beta(α₁, α₂): for any outcome of N
    visits, the interval is no wider. It comes without a ζ: the corollary has none.
    """
    check_setting("delta", delta, Delta)
    if len(prior) != 2 or not all(arrays.is_number(part) and 0 < part < math.inf for part in prior):
        raise InvalidParameter(f"prior is {prior!r}, expected two finite numbers above 0")
    width = symmetric_beta_width(read_visits(visits) + (sum(prior) - 2.0), math.log(delta))
    return float(width)


def read_visits(visits: object) -> FloatArray:
    """Visit counts of at least 1, as doubles; a whole number beyond all doubles is infinite."""
    if isinstance(visits, int) and visits > LARGEST_DOUBLE:
        return np.asarray(np.inf)
    given = float(visits) if isinstance(visits, int) else visits  # NumPy's integers have 64 bits
    counts = arrays.numbers("the number of visits", given, InvalidParameter).astype(np.float64)
    if not ((counts >= 1) & (counts < np.inf)).all():
        raise InvalidParameter(f"the number of visits is {visits!r}, expected at least 1")
    return counts


def refuse_branching(size: ProblemSize) -> None:
    """Refuses a branching for splits, whose number of successors is fixed."""
    if size.branching is not None:
        raise InvalidParameter(
            f"branching is {size.branching}, but this bound is about splits, whose number of "
            "successors is fixed; expected none"
        )
