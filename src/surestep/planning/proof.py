"""Turns residuals of values into proven bounds on their errors.

For a policy π with weights W = Γ_π P_π, any vector v and d = r_π + W v − v,

    V^π − v = (I − W)⁻¹ d,    (I − W)⁻¹ = Σ_n Wⁿ ≥ 0,

so V^π − v lies between min(d) and max(d) times (I − W)⁻¹ 1, the expected discounted number of
steps. Any w with w ≥ 1 + Γ_a P_a w for every action a bounds that number for all policies at once.

If d = max over a class of policies of (r_π + W_π v) − v, the best policy of the class has a d that
is nowhere larger, so its value lies below the same upper bound (and above the greedy policy's).
"""

from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.errors import NotConverged, said
from surestep.model.mdp import FiniteMDP

TIE_TOLERANCE = 1e-12  # relative to max |q|: pairs this close are equally good, the lowest wins
DEFAULT_TOLERANCE = 1e-10  # relative to max |R| + max |v|
LOOSEST_DEFAULT = 1e-3  # the largest relative error accepted if no tolerance is given
SMALLEST_NORMAL = 2.0**-1022  # below it, rounding errors are as large as just above it
ROW_EXCESS = 3 * arrays.ROUNDING_SLACK  # how far a row of P_π may sum above or below 1
Tolerance = Annotated[float | None, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Horizon:
    """Bounds low ≤ w ≤ high on the expected discounted number of steps, for every policy."""

    low: float
    high: float
    uniform: bool  # one discount and no ends, so that w is the same number for every state

    def size(self, change: tuple[float, float]) -> float:
        """Returns the size of a change from its (min, max); shifts of all states do not count.

        If w differs between states, they do: then it is max |·|.
        """
        return (change[1] - change[0]) / 2 if self.uniform else max(change[1], -change[0])


@dataclass(frozen=True, slots=True)
class Bracket:
    """The bracket that a residual proves, low ≤ V(s) − v(s) ≤ high, and the error to reach."""

    low: float
    high: float
    goal: float
    floor: float  # a residual this small is rounding and ties

    @property
    def error(self) -> float:
        """Returns the largest |V(s) − v(s)| that is possible."""
        return max(-self.low, self.high)

    @property
    def middle(self) -> float:
        """Returns the middle of the bracket."""
        return (self.low + self.high) / 2

    @property
    def good(self) -> bool:
        """Tells whether the error is small enough."""
        return self.error <= self.goal


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Turns residuals of one model into proven errors.

    Rounding: a computed residual is a sum of at most `terms` − 4 rounded terms, which together are
    no larger than max |R| + max |v|. 2⁻⁵² a term is twice the unit roundoff, which covers the
    terms of second order.
    """

    horizon: Horizon
    reward_scale: float  # max |R|
    terms: int
    tolerance: float | None  # the largest error allowed; None: as little as doubles can prove
    leeway: float = 0.0  # relative to max |R| + max |v|: a residual that need not become smaller

    @classmethod
    def of(
        cls, mdp: FiniteMDP, tolerance: float | None, horizon: Horizon, terms: int = 0
    ) -> "StoppingRule":
        """Returns the rule for residuals of Bellman backups: sums over successors, then actions.

        Where other sums are longer, `terms` is the number of theirs.
        """
        check_setting("tolerance", arrays.as_python(tolerance), Tolerance)
        return cls(
            horizon,
            max(arrays.largest_magnitude(values) for values in (mdp.reward, mdp.ending_reward)),
            max(most_terms(mdp.offsets, mdp.pairs.offsets), terms),
            tolerance,
        )

    def bracket(
        self, residuals: tuple[float, float], value_scale: float, tie_tolerance: float = 0.0
    ) -> Bracket:
        """Returns the bracket for the smallest and the largest residual, max |v|, and ties."""
        if not (np.isfinite(residuals).all() and np.isfinite(value_scale)):
            raise NotConverged("the values are too large for doubles; scale the rewards down")
        scale = self.reward_scale + value_scale + SMALLEST_NORMAL  # no |q| is larger
        slack = self.terms * 2.0**-52 * scale
        ties = tie_tolerance * scale
        lowest, highest = residuals[0] - slack - ties, residuals[1] + slack + ties
        steps = self.horizon
        floor = slack + ties + self.leeway * scale
        goal = self.tolerance
        if goal is None:
            goal = min(
                max(DEFAULT_TOLERANCE * scale, 4 * floor * steps.high), LOOSEST_DEFAULT * scale
            )
        return Bracket(
            low=lowest * (steps.high if lowest < 0 else steps.low),
            high=highest * (steps.high if highest > 0 else steps.low),
            goal=goal,
            floor=floor,
        )


def refuse(
    bracket: Bracket, tolerance: float | None, *, plan: Any = None, evaluation: Any = None
) -> NoReturn:
    """Raises `NotConverged`: the proven error is larger than the goal.

    If a tolerance was given, the exception has the plan or evaluation that was reached.
    """
    asked = "the default" if tolerance is None else "the tolerance asked for"
    words = (
        f"the error of the values is proven to be at most {bracket.error:.3g}, expected "
        f"{bracket.goal:.3g} ({asked}); give a larger tolerance, or discounts further below 1"
    )
    if tolerance is None:
        raise NotConverged(words)
    name = "evaluation" if plan is None else "plan"
    taken = said(f", or take what was reached: `except NotConverged as error: error.{name}`", "")
    raise NotConverged(words + taken, plan=plan, evaluation=evaluation)


def most_terms(offsets: arrays.IntArray, pair_offsets: arrays.IntArray) -> int:
    """Returns the number of rounded terms in the residual of a backup, with some to spare."""
    successors = int(arrays.run_lengths(offsets).max(initial=0))
    return successors + int(arrays.run_lengths(pair_offsets).max()) + 8
