"""Holds facts that certifiers use besides the counts: ranges of rewards, a split, seeds.

**Bounds of returns from the rewards of single steps.** Let a step after which an episode goes on
earn within [a, b] (`running`), and a step that ends it within [c, d] (`ending`). From a state with
a decision, the return is either

    G = Σ_{t<T} γ^t r_t + γ^T e      with r_t ∈ [a, b] and e ∈ [c, d], T ≥ 0,

or, if the episode never ends, the infinite sum Σ_t γ^t r_t.

**Claim.** For γ < 1, min(a/(1−γ), c) ≤ G ≤ max(b/(1−γ), d).

*Proof.* Let w = 1 − γ^T, which is between 0 and 1. The weights γ^t, t < T, add up to w/(1−γ). So
the first sum is w/(1−γ) times a mean of numbers in [a, b], and G = w·x + (1−w)·e with x between
a/(1−γ) and b/(1−γ): a convex combination of x and e. Without an end w is 1. ∎

With γ = 1 sums have no bound unless running steps earn nothing. Then G is e, or 0 without an end.

A value is a mean of returns, so it has the same bounds in states with a decision. An end itself is
worth 0, so bounds of values that include ends must include 0.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import surestep._arrays as arrays
from surestep.errors import InvalidParameter, said
from surestep.model.statements import Statement

LARGEST = 1e150  # the squares of rewards up to this one are doubles
# The decider acted alike in all episodes of the log, or may have learnt during the log.
Logger = Literal["fixed", "adaptive"]
Range = tuple[float, float]
NOTHING: Range = (0.0, 0.0)


class Ranges(NamedTuple):
    """The ranges of rewards: of steps that do not end an episode, and of steps that do."""

    running: Range
    ending: Range

    @classmethod
    def seen(cls, rewards: arrays.FloatArray, ending: arrays.BoolArray) -> "Ranges":
        """Returns the ranges of the rewards seen [N], (0, 0) if there are none."""

        def of(some: arrays.FloatArray) -> Range:
            return (float(some.min()), float(some.max())) if some.size > 0 else NOTHING

        return cls(of(rewards[~ending]), of(rewards[ending]))

    def statement(self, *, declared: bool) -> Statement:
        """Makes the assumption that rewards keep these ranges, as declared or as seen."""
        (a, b), (c, d) = self
        return Statement(
            "rewards-as-declared" if declared else "rewards-within-seen",
            {"running_low": a, "running_high": b, "ending_low": c, "ending_high": d},
        )

    @property
    def rewards(self) -> Range:
        """Returns the range of all rewards."""
        return hull(self)

    def returns(self, discount: float) -> Range:
        """Returns the range of returns from any state with a decision."""
        if discount == 1 and self.running != NOTHING:
            raise InvalidParameter(
                f"discount is 1 and a running step earns {arrays.shown(self.running[0])} to "
                f"{arrays.shown(self.running[1])}, so that returns have no bounds; expected a "
                "discount below 1, or what whole episodes return, also from any step on "
                f"({said('returns=(low, high)', 'returns = [low, high]')})"
            )
        low, high = (for_ever(reward, discount) for reward in self.running)
        bounds = min(low, float(self.ending[0])), max(high, float(self.ending[1]))
        if not all(abs(bound) <= LARGEST for bound in bounds):
            raise InvalidParameter(
                f"rewards from {self.rewards[0]} to {self.rewards[1]} with discount {discount} "
                "allow returns beyond all numbers; expected rewards in another unit, a smaller "
                "discount, or ranges of what steps may earn"
            )
        return bounds


def for_ever(reward: float, discount: float) -> float:
    """Computes r/(1−γ) from the decimals as printed: 20 for 1 and 0.95, not 20 − 2·10⁻¹⁴."""
    if reward == 0:
        return 0.0
    try:
        return float(Fraction(repr(float(reward))) / (1 - Fraction(repr(float(discount)))))
    except OverflowError:
        return math.copysign(math.inf, reward)


def single_rewards(returns: Range, discount: float) -> Ranges:
    """Returns the ranges of single rewards that follow from a range of returns from any step on.

    The return from a step on is r + γG′, with G′ from the next step on: r is their difference.
    """
    low, high = with_zero(returns)
    return Ranges((low - discount * high, high - discount * low), (low, high))


def hull(ranges: Iterable[Range]) -> Range:
    """Returns the smallest range that contains all of these; (0, 0) if there are none."""
    known = list(ranges) or [NOTHING]
    return min(low for low, _ in known), max(high for _, high in known)


def with_zero(bounds: Range) -> Range:
    """Returns the bounds, extended to include 0."""
    return min(0.0, float(bounds[0])), max(0.0, float(bounds[1]))


class Split(NamedTuple):
    """The split of a log into a part that chooses the policy, and a part that judges it."""

    train_share: float
    logger: Logger


class Known(NamedTuple):
    """Facts about the data and statements of the user; None stands for unknown."""

    delta: float | None = None
    seed: int | None = None
    split: Split | None = None  # None if the data cannot be split
    reward_bounds: tuple[float, float] | None = None  # of single rewards, as declared
    ranges: Ranges | None = None  # of running and ending steps, if they were declared
    rewards_seen: tuple[float, float] | None = None  # the smallest and the largest, and 0
    rewards_vary: bool = False  # one transition earned different rewards
    returns: tuple[float, float] | None = None  # the bounds of returns, declared or seen
    bound: str | None = None  # the published bound of the algorithm
    n_wedge: int | None = None  # if it was fixed before the data
    transitions: int = 0  # the number of different transitions in the data
    steps: int = 0  # the number of rows of the log
    episodes: int = 0  # recorded
    single: Ranges = Ranges(NOTHING, NOTHING)  # of steps, as seen; then as declared, if they were

    @property
    def possible_rewards(self) -> tuple[float, float] | None:
        """Returns the declared bounds of single rewards, or else the bounds of rewards seen."""
        return self.rewards_seen if self.reward_bounds is None else self.reward_bounds

    def usual(self) -> dict[str, Any]:
        """Returns the settings that every kind of certifier takes from these facts."""
        split = {} if self.split is None else self.split._asdict()
        return {
            "delta": self.delta,
            "seed": self.seed,
            **split,
            "bound": self.bound,
            "n_wedge": self.n_wedge,
            **ends("reward", self.reward_bounds),
            **ends("return", self.returns),
        }


def ends(what: str, bounds: tuple[float, float] | None) -> dict[str, float | None]:
    """Returns the two settings that bound rewards or returns, such as `reward_low`."""
    low, high = (None, None) if bounds is None else bounds
    return {f"{what}_low": low, f"{what}_high": high}
