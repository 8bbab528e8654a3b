"""Computes the bounds of the paper's Table 1: a radius from N visits, and a loss ζ from a radius.

A radius is about the bound's own model, and each bound says what it covers. A `row` radius bounds
the L1 error of a whole row of the estimated MDP, ‖P̂(·|s,a) − P(·|s,a)‖₁. A `split` radius is about
one binary (or k-ary) split of the transformed MDP; it is *not* a bound on a row's L1 error.

All of them are `as-published`: taken over from the papers, with their gaps. Logarithms are added up
before anything is exponentiated, so 2^|S| is never formed.

**The admissible loss**, and from it back to the number of visits N∧:
ζ(N) = f(γ) · V_max · radius(N) − gain, with the loss factor f of the bound and, for bounds that
bootstrap, the gain ρ(π_I, M̃) − ρ(π_b, M̃) of the improved policy in the estimated MDP.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from msgspec import Meta
from scipy.special import betainccinv, betaincinv

import surestep._arrays as arrays
from surestep._names import refuse_unknown
from surestep._settings import Delta, Settings, check_setting, check_settings
from surestep.errors import InvalidParameter
from surestep.model.certificate import Standing
from surestep.model.problem import Problem

LN2 = math.log(2.0)
KNOT_BITS = 16  # knots of the beta width have this many binary digits
LAST_KNOT = 2.0**49  # up to here, 10¹⁵ visits, the inverse beta function is accurate
SMALLEST_LOG = -700.0  # below it, e^x is no normal double
MOST_VISITS = 2**1024  # beyond all doubles every radius is 0: more are never enough


@runtime_checkable
class Bound(Protocol):
    """A bound of the paper: a radius, and the loss factor in front of it.

    Examples
    --------
    >>> from surestep.bounds import BOUNDS, Bound, ProblemSize
    >>> def visits_for_half(bound: Bound) -> int:
    ...     size = ProblemSize(25, 4, 0.1)
    ...     return next(n for n in range(1, 10_000) if bound.radius(n, size) <= 0.5)
    >>> visits_for_half(BOUNDS["beta"])
    67
    """

    covers: ClassVar[Literal["row", "split"]] = "split"  # the error that a radius bounds
    standing: ClassVar[Standing] = "as-published"
    bootstraps: ClassVar[bool] = True  # π_b is kept where data is scarce, and a gain counts

    def radius(self, visits: object, size: "ProblemSize") -> arrays.FloatArray:
        """Returns the radius that `visits` of every trusted pair buy, jointly for all pairs.

        Parameters
        ----------
        visits : int or array of int
            Visits, 1 or more.
        size : ProblemSize
            States, actions and δ.

        Returns
        -------
        array of float
            The radius for each number of visits.
        """

    def loss_factor(self, discount: float) -> float:
        """Returns the f(γ) in ζ = f(γ) · V_max · radius − gain; 4/(1 − γ) where π_b is kept.

        Parameters
        ----------
        discount : float
            The discount γ.

        Returns
        -------
        float
            The loss factor.
        """
        return 4 / (1 - discount)


@dataclass(frozen=True, slots=True)
class ProblemSize:
    """The numbers that bounds depend on: |S|, |A| and δ for a radius, V_max and γ for a loss.

    Parameters
    ----------
    states : int
        The number of states |S|.
    actions : int
        The number of actions |A|.
    delta : float
        The probability δ with which a bound may fail.
    value_bound : float, optional
        V_max, the largest magnitude of a value. A loss needs it.
    discount : float, optional
        The discount γ, less than 1. A loss needs it.
    branching : int, optional
        The largest number of successors of a pair, if it is known before the data. By default any
        state may follow.

    Examples
    --------
    >>> from surestep.bounds import ProblemSize, zeta
    >>> size = ProblemSize(25, 4, 0.1, value_bound=1.0, discount=0.95)
    >>> round(zeta("spibb", 100, size), 1)
    56.5
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
    def of(cls, problem: Problem, delta: float) -> "ProblemSize":
        """Returns the size of a problem that has one discount.

        Parameters
        ----------
        problem : Problem
            The problem.
        delta : float
            The probability δ with which a bound may fail.

        Returns
        -------
        ProblemSize
            Its size, without a branching.
        """
        return cls(
            problem.num_states,
            problem.num_actions,
            delta,
            value_bound=problem.value_bound,
            discount=problem.single_discount,
        )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.branching is not None and self.branching > self.states:
            raise InvalidParameter(
                f"branching is {self.branching}, expected at most the number of states, "
                f"{self.states}"
            )

    @property
    def log_pairs(self) -> float:
        """Returns ln(|S||A|)."""
        return math.log(self.states) + math.log(self.actions)

    @property
    def log_split_share(self) -> float:
        """Returns ln δ_T, with δ_T = δ / (|S|²|A|²) the share of δ of one split (Theorem 4)."""
        return math.log(self.delta) - 2 * self.log_pairs


def weissman(visits: object, log_term: float) -> arrays.FloatArray:
    """√((2/N) · log_term), the L1 deviation bound of Weissman et al. (2003), Theorem 2.1."""
    radius: arrays.FloatArray = np.sqrt(2.0 * log_term / read_visits(visits))
    return radius


@dataclass(frozen=True, slots=True)
class SPIBBBound(Bound):
    """SPIBB (Laroche et al. 2019): radius(N) = √((2/N) ln(2 |S||A| 2^|S| / δ)).

    With `branching` = 2 this is the paper's Lemma 1, for MDPs that have two successors anyway.
    """

    covers: ClassVar = "row"

    def radius(self, visits: object, size: ProblemSize) -> arrays.FloatArray:
        """Returns √((2/N) ln(2 |S||A| 2^b / δ)), with b = |S|, or the branching if it is known."""
        successors = size.states if size.branching is None else size.branching
        return weissman(visits, LN2 + size.log_pairs + successors * LN2 - math.log(size.delta))


@dataclass(frozen=True, slots=True)
class StandardSPI(SPIBBBound):
    """Standard SPI (Petrik et al. 2016; the paper's Eq. 2): ζ = 2γ V_max/(1 − γ) · radius.

    The radius is that of SPIBB, but it asks for N visits of *every* pair. Table 1 prints its N
    without the γ² that follows from this ζ: then `with_gamma` is False.
    """

    with_gamma: bool = True
    bootstraps: ClassVar = False

    def loss_factor(self, discount: float) -> float:
        """Returns 2γ/(1 − γ), or 2/(1 − γ) without the γ."""
        return 2 * (discount if self.with_gamma else 1) / (1 - discount)


@dataclass(frozen=True, slots=True)
class KSuccessor(Settings, Bound):
    """The bound of k-successor MDPs: radius(N) = √((2/N) ln(2 |S|²|A|² 2^k / ((k − 1) δ))).

    With k = 2 it is Theorem 3 of the paper, √((2/N) ln(8 |S|²|A|² / δ)); for more, its appendix.

    Parameters
    ----------
    k : int, default 3
        The successors of a split, 2 or more.

    Examples
    --------
    >>> from surestep.bounds import KSuccessor, ProblemSize
    >>> round(float(KSuccessor(4).radius(100, ProblemSize(25, 4, 0.1))), 3)
    0.527
    """

    k: Annotated[int, Meta(ge=2)] = 3

    def radius(self, visits: object, size: ProblemSize) -> arrays.FloatArray:
        """Returns √((2/N) ln(2 |S|²|A|² 2^k / ((k − 1) δ))).

        Parameters
        ----------
        visits : int or array of int
            Visits, 1 or more.
        size : ProblemSize
            States, actions and δ; without a branching.

        Returns
        -------
        array of float
            The radius for each number of visits.

        Raises
        ------
        InvalidParameter
            If the size has a branching: that of splits is fixed.
        """
        refuse_branching(size)
        return weissman(visits, LN2 + self.k * LN2 - math.log(self.k - 1) - size.log_split_share)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoredBound(SPIBBBound, Settings):
    """The bound of factored SPIBB, for N draws of the scarcest node: 2 − 2 (1 − r/2)^columns.

    r = √((2/N) ln(2 nodes · 2^values / δ)) is the radius of one node. If the nodes of a step are
    off by TV_i, its next state is off by at most 1 − Π (1 − TV_i): draws that are coupled agree
    with at least this chance. Simão and Spaan (2019) bound it by Σ TV_i, which is more.

    Parameters
    ----------
    columns : int
        The columns that a step draws.
    nodes : int
        The number of nodes that are not known.
    values : int
        The most values of a column.

    Examples
    --------
    >>> from surestep.bounds import FactoredBound, ProblemSize, n_wedge
    >>> machines = ProblemSize(2**20, 21, 0.1, value_bound=400.0, discount=0.95)
    >>> needed = n_wedge(FactoredBound(columns=20, nodes=3, values=2), 100.0, machines)
    >>> f"{needed:,}", n_wedge("spibb", 100.0, machines) // needed
    ('448,307,560', 332)
    """

    columns: Annotated[int, Meta(ge=1)]
    nodes: Annotated[int, Meta(ge=1)]
    values: Annotated[int, Meta(ge=2)]

    def radius(self, visits: object, size: ProblemSize) -> arrays.FloatArray:
        """Returns 2 − 2 (1 − r/2)^columns; of the size, only δ matters.

        Parameters
        ----------
        visits : int or array of int
            Draws of the scarcest node, 1 or more.
        size : ProblemSize
            The size with δ.

        Returns
        -------
        array of float
            The radius for each number of draws, at most 2.
        """
        laws = LN2 + math.log(self.nodes) + self.values * LN2 - math.log(size.delta)
        with np.errstate(divide="ignore"):  # ln 0, where nothing is known
            agree = np.log1p(-np.minimum(weissman(visits, laws) / 2, 1.0))
        radius: arrays.FloatArray = -2.0 * np.expm1(self.columns * agree)
        return radius


@dataclass(frozen=True, slots=True)
class BetaBound(Bound):
    """Beta credible width of one split (Theorem 4 and Table 1; the text of Theorem 4 drops a 2).

    radius(N) = 1 − 2·I⁻¹(δ_T/2; N/2+1, N/2+1) = √I_c⁻¹(δ_T; ½, N/2+1), δ_T = δ / (|S|²|A|²).
    """

    def radius(self, visits: object, size: ProblemSize) -> arrays.FloatArray:
        """Returns 1 − 2·I⁻¹(δ_T/2; N/2+1, N/2+1)."""
        refuse_branching(size)
        return symmetric_beta_width(read_visits(visits), size.log_split_share)


def symmetric_beta_width(visits: arrays.FloatArray, log_share: float) -> arrays.FloatArray:
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
    width: arrays.FloatArray = np.where(
        a < LAST_KNOT, between, np.sqrt(LAST_KNOT / a) / np.sqrt(1.0 + low)
    )
    return width


def odds_against(a: arrays.FloatArray, log_share: float) -> arrays.FloatArray:
    """q = (1 − r²)/r² for the width r of `symmetric_beta_width`, as accurately as libraries can.

    With p ~ Beta(a, a), t = 1 − 2p has a density ∝ (1 − t²)^(a−1) and t² ~ Beta(½, a), so
    P(t² > r²) = δ_T gives r² = I_c⁻¹(δ_T; ½, a) and 1 − r² = I⁻¹(δ_T; a, ½). The smaller one is
    taken, so nothing cancels. A δ_T that is no double any more, as only a δ below 10⁻²⁶⁰ makes it,
    has the width 1, which claims nothing.
    """
    if log_share < SMALLEST_LOG:
        return np.zeros_like(a)
    share = math.exp(log_share)
    square = betainccinv(0.5, a, share)
    rest = betaincinv(a, 0.5, share)
    wide = square > 0.5
    exact: arrays.FloatArray = np.where(wide, rest, 1.0 - square) / np.where(
        wide, 1.0 - rest, square
    )
    return exact


def read_visits(visits: object) -> arrays.FloatArray:
    """Returns visit counts of at least 1 as doubles; a number beyond all doubles is infinite."""
    if isinstance(visits, int) and visits > arrays.LARGEST_DOUBLE:
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


BoundName = Literal["spi", "spi-no-gamma", "spibb", "2s", "beta", "ks"]
BOUNDS: dict[str, Bound] = {
    "spi": StandardSPI(),
    "spi-no-gamma": StandardSPI(with_gamma=False),
    "spibb": SPIBBBound(),
    "2s": KSuccessor(2),
    "beta": BetaBound(),
    "ks": KSuccessor(),
}


def bound_of(method: str | Bound) -> Bound:
    """Returns the bound of that name, or the bound itself."""
    if not isinstance(method, str):
        return method
    refuse_unknown(f"method is {method!r}", method, BOUNDS)
    return BOUNDS[method]


def zeta(method: str | Bound, n_wedge: int, size: ProblemSize, *, gain: float = 0.0) -> float:
    """Returns the ζ that N∧ visits buy: with probability 1 − δ, ρ(π_I) ≥ ρ(π_b) − ζ.

    Parameters
    ----------
    method : str or Bound
        A name of `BOUNDS`, or a bound.
    n_wedge : int
        N∧, the visits of every trusted pair.
    size : ProblemSize
        The problem, with its V_max and discount.
    gain : float, default 0
        The gain of the new policy in the estimated model, for bounds that keep π_b.

    Returns
    -------
    float
        The loss ζ that is admitted; a negative one claims a gain.

    Raises
    ------
    InvalidParameter
        If the size lacks V_max or the discount, or the bound has no gain.

    Examples
    --------
    >>> from surestep.bounds import ProblemSize, zeta
    >>> round(zeta("spibb", 100, ProblemSize(25, 4, 0.1, value_bound=1.0, discount=0.95)), 1)
    56.5
    """
    bound = bound_of(method)
    return loss_scale(bound, size, gain) * float(bound.radius(n_wedge, size)) - gain


def n_wedge(method: str | Bound, zeta: float, size: ProblemSize, *, gain: float = 0.0) -> int:
    """Returns the smallest N∧ with ζ(N∧) ≤ `zeta`, found by evaluating ζ itself.

    Parameters
    ----------
    method : str or Bound
        A name of `BOUNDS`, or a bound.
    zeta : float
        The loss ζ to be admitted; zeta + gain is above 0.
    size : ProblemSize
        The problem, with its V_max and discount.
    gain : float, default 0
        The gain of the new policy in the estimated model, for bounds that keep π_b.

    Returns
    -------
    int
        The visits that every trusted pair needs.

    Raises
    ------
    InvalidParameter
        If no number of visits is enough.

    Examples
    --------
    >>> from surestep.bounds import ProblemSize, n_wedge
    >>> n_wedge("beta", 0.1, ProblemSize(25, 4, 0.1, value_bound=1.0, discount=0.95))
    12487299
    """
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

    The paper keeps ζ^SPIBB of a chosen N∧, and N∧^2s or N∧^β follows. The bounds must have the same
    loss factor; then V_max, γ and the gain cancel, and the smallest N with
    radius_wanted(N) ≤ radius_given(n_wedge) is the answer.

    Parameters
    ----------
    n_wedge : int
        The N∧ of the bound `given`.
    size : ProblemSize
        The problem; V_max and the discount do not matter.
    given : str or Bound
        The bound of `n_wedge`, or its name.
    wanted : str or Bound
        The bound whose N∧ is sought, or its name.

    Returns
    -------
    int
        The N∧ of the bound `wanted`.

    Raises
    ------
    InvalidParameter
        If the bounds have different loss factors.

    Examples
    --------
    >>> from surestep.bounds import ProblemSize, equivalent_n_wedge
    >>> equivalent_n_wedge(100, ProblemSize(25, 4, 0.1), given="spibb", wanted="beta")
    27
    """
    first = bound_of(given)
    second = bound_of(wanted)
    if first.loss_factor(0.5) != second.loss_factor(0.5):
        raise InvalidParameter(
            f"{given!r} and {wanted!r} have different loss factors, expected bounds with the same"
        )
    target = float(first.radius(n_wedge, size))
    return smallest(lambda n: float(second.radius(n, size)) <= target)


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
    """The answer of one bound; None where nothing was asked, or where it has no answer.

    Parameters
    ----------
    method : str
        The name of the bound.
    covers : {"row", "split"}
        The error that its radius bounds.
    standing : str
        How far its proof goes: all are "as-published".
    zeta : float or None
        The ζ that the visits buy.
    says_nothing : bool or None
        Whether that ζ is at least the span of values.
    n_wedge : int or None
        The visits that the wanted ζ takes.
    refusal : str or None
        Why the bound has no answer.

    Examples
    --------
    >>> from surestep.bounds import BoundAnswer
    >>> BoundAnswer("spibb", "row", "as-published", 56.5, True, None, None).says_nothing
    True
    """

    method: str
    covers: str
    standing: str
    zeta: float | None
    says_nothing: bool | None
    n_wedge: int | None
    refusal: str | None


def compare_bounds(
    size: ProblemSize,
    value_bounds: tuple[float, float],
    *,
    visits: int | None = None,
    wanted_zeta: float | None = None,
    gain: float = 0.0,
) -> tuple[BoundAnswer, ...]:
    """Returns the ζ that `visits` buy and the visits that `wanted_zeta` takes, under every bound.

    Parameters
    ----------
    size : ProblemSize
        The problem, with its discount. A branching counts for bounds about rows only.
    value_bounds : tuple of float
        (V_min, V_max). The larger magnitude replaces the `value_bound` of the size.
    visits : int, optional
        Visits of every trusted pair, to be told the ζ that they buy.
    wanted_zeta : float, optional
        A loss to be admitted, to be told the visits that it takes.
    gain : float, default 0
        The gain of the new policy in the estimated model.

    Returns
    -------
    tuple of BoundAnswer
        One answer for each bound of `BOUNDS`.

    Examples
    --------
    >>> from surestep.bounds import ProblemSize, compare_bounds
    >>> answers = compare_bounds(ProblemSize(25, 4, 0.1, discount=0.95), (0.0, 1.0), visits=100)
    >>> [answer.method for answer in answers if answer.says_nothing]
    ['spi', 'spi-no-gamma', 'spibb', '2s', 'beta', 'ks']
    """
    span = value_span(value_bounds)
    size = replace(size, value_bound=max(abs(value_bounds[0]), abs(value_bounds[1])))
    answers = []
    for method, bound in BOUNDS.items():
        loss = needed = refusal = None
        if gain != 0 and not bound.bootstraps:
            refusal = "its formula has no gain"
        else:
            # Bounds about splits have no use for a branching.
            own_size = size if bound.covers == "row" else replace(size, branching=None)
            if visits is not None:
                loss = zeta(bound, visits, own_size, gain=gain)
            if wanted_zeta is not None:
                needed = n_wedge(bound, wanted_zeta, own_size, gain=gain)
        answers.append(
            BoundAnswer(
                method,
                bound.covers,
                bound.standing,
                loss,
                None if loss is None else loss >= span,
                needed,
                refusal,
            )
        )
    return tuple(answers)


def value_span(value_bounds: tuple[float, float]) -> float:
    """Returns V_max − V_min: two policies cannot differ by more, so that a ζ as large is void."""
    check_setting("value_bounds", value_bounds, tuple[float, float])
    low, high = value_bounds
    if low >= high:
        raise InvalidParameter(f"value_bounds is {value_bounds!r}, expected the lower one first")
    return high - low
