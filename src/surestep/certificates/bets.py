"""A lower bound on a mean from several series of values, each as long as the data lets it be.

Let X_1, X_2, … be a series with E[X_i | those before] ≤ Δ and X_i ≥ `least`. For a stake λ fixed
beforehand and λ(μ) = min(λ, c / (μ − least)), c < 1, the capital of who bets on more than μ is

    K_t(μ) = Π_{i ≤ t} (1 + λ(μ) (X_i − μ)).

Every factor is positive, as X_i − μ ≥ −(μ − least), and at μ = Δ has a conditional mean of at most
1. So K(Δ) is a nonnegative supermartingale that starts at 1, and by Ville's inequality it *ever*
reaches q/δ with probability at most δ/q. The data may have only some first values of the series,
*whatever* decides how many: the largest capital among these is no larger than the largest of all.

**Several series**, each with other random numbers over the same data. Let e_r be q/δ where the
capital of series r reaches q/δ, else 0: its mean is at most 1. The numbers are drawn alike for all,
so the e_r are exchangeable, and of exchangeable numbers the means S_t/t of the first t are a
martingale if read backwards: E[S_t/t | S_{t+1}, S_{t+2}, …] = S_{t+1}/(t + 1). By Ville's
inequality from the last one on, the largest of these means is 1/δ or more with probability at most
δ (the exchangeable Markov inequality, Ramdas and Manole 2023). In other words: for some t, at least
a share 1/q of the first t series reaches q/δ, with probability at most δ. Asked for are t from half
of all series on: a t of 1 would make L the luck of one seed.

Every factor falls as μ rises: with a constant stake clearly, with the stake c / (μ − least) since
(X − μ) / (μ − least) = (X − least) / (μ − least) − 1 does. So the μ at which that happens fill an
interval up to L, and L > Δ would mean that Δ is one of them: P(L > Δ) ≤ δ.

**Two means in turn.** Let every c-th value be one of G, with a mean of at most ρ given those
before and at least `least`, and the others values of −G′, with a mean of at most −ρ′ and at least
−`most`; Δ = ρ − ρ′ is asked for. Against the means μ and μ′ there are three capitals, all of which
are nonnegative supermartingales at μ = ρ, μ′ = ρ′, and so is any mean of them with fixed weights:

    K(μ, μ′) = w Π (1 + λ(G − μ)) Π (1 + λ′(μ′ − G′)) + u Π (1 + κ(G − μ)) + u Π (1 + κ′(μ′ − G′)).

The first needs *one* goal for both means, not one for each at a share of δ, and each of its stakes
has to fear the bad luck of one of the two only. With mλ = m′λ′ for m and m′ values, it does not
matter to the first order which of the means is how wrong, as long as they differ by too much. The
other two are for means that are far off. K falls in μ and rises in μ′. L is the largest gain with
which *all* μ′, and μ = μ′ + L, are refuted; a μ below `least` needs no refuting. If L > Δ, then
(ρ′ + L, ρ′) is refuted, and with it (ρ, ρ′), as K falls in μ: P(L > Δ) ≤ δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._types import RoomSize
from surestep.kernels.lines import line, places
from surestep.kernels.stitched import Bets, Turns, last_refuted_of

Figures = TypeVar("Figures", float, FloatArray)

ONE_OF = 3  # q: one of so many series has to reach q/δ
LARGEST_SHARE = 0.99  # c: of all that may be lost, the part that a bet may lose
HALVINGS = 60  # of the bisection
HALVINGS_IN_TURN = 24  # of the one that goes through many pairs of means each time
TOGETHER = 0.8  # w: of the capital, the part that bets on two means at once
ROUNDING = 1e-9  # of the goal, for what rounding may add to a capital


def log_goal(delta: float) -> float:
    """ln(q/δ), what the logarithm of a capital has to reach."""
    return math.log(ONE_OF) - math.log(delta)


def goal_at(delta: float) -> float:
    """q/δ, and a little more."""
    return math.exp(log_goal(delta)) * (1 + ROUNDING)


def stake_for(goal: Figures, spread: Figures) -> Figures:
    """√(2 ln(q/δ) / σ²) of single numbers or of arrays, with ln(q/δ) as `goal`."""
    return np.sqrt(2.0 * goal / spread)  # type: ignore[no-any-return]


class Bet(NamedTuple):
    """A bet on series [R, M], of which the first `complete` [R] values are there."""

    series: FloatArray
    complete: IntArray
    delta: float
    least: float  # that a value can be
    stake: float
    turns: Turns | None = None  # where the values are of two kinds in turn, instead of both

    @property
    def goal(self) -> float:
        """Returns what a capital has to reach."""
        return goal_at(self.delta)

    @property
    def stakes(self) -> tuple[float, ...]:
        """Returns the stakes as `Bets` has them."""
        if self.turns is not None:
            return self.turns[1:7]
        return 1.0, self.stake, 0.0, 0.0, 0.0, LARGEST_SHARE

    @property
    def limits(self) -> tuple[float, float]:
        """Returns the least value, and the greatest that there is: nothing is won against it."""
        if self.turns is not None:
            return self.turns.limits
        there = np.arange(self.series.shape[1]) < self.complete[:, np.newaxis]
        return self.least, float(self.series.max(initial=self.least, where=there))


def limits_of(bets: Sequence[Bet]) -> list[float]:
    """Returns L of each of several bets on as many series each, made together."""
    if not bets:
        return []
    lower = np.empty(len(bets))
    in_turn = [bet.turns is not None for bet in bets]
    last_refuted_of.all(
        len(bets),
        RoomSize(),
        Bets(
            np.array([1 if bet.turns is None else bet.turns.cycle for bet in bets]),
            np.array([bet.stakes for bet in bets]),
            np.array([bet.limits for bet in bets]),
            np.array([bet.goal for bet in bets]),
            np.where(in_turn, HALVINGS_IN_TURN, HALVINGS),
            places(bet.series.ravel() for bet in bets),
            line(bet.series.ravel() for bet in bets),
            line(bet.complete for bet in bets),
            ONE_OF,
        ),
        lower,
    )
    return lower.tolist()


def usual_stakes(
    lengths: Sequence[Figures], variances: Sequence[Figures], goal: Figures
) -> tuple[Figures, Figures]:
    """Returns λ = Λ/m and λ′ = Λ/m′, with Λ = √(2 ln(q/δ) / (σ²/m + σ′²/m′)), of ln(q/δ)."""
    (ours, theirs), (our_variance, their_variance) = lengths, variances
    stake = stake_for(goal, our_variance / ours + their_variance / theirs)
    return stake / ours, stake / theirs
