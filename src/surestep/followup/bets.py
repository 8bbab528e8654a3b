"""Bets on a pilot: what episodes of two arms prove, after every one of them at once.

**The pilot.** Episode t gets the new policy with chance π_t, fixed before it starts; A_t says
whether it does. It returns G_t in [lo, hi], declared beforehand. Let m₀ in [lo, hi] be fixed
beforehand, too (the mean of old returns), and

    Z_t = (A_t/π_t − (1 − A_t)/(1 − π_t)) (G_t − m₀).

Given the past, E[Z_t] = E[G_t | new] − E[G_t | control] = Δ_t, the gain on that day: m₀ drops out.
The least that Z_t can be is ℓ_t = −max((m₀ − lo)/π_t, (hi − m₀)/(1 − π_t)) ≤ −(hi − lo).

**The bet** against a gain of Δ > −(hi − lo), with stakes fixed beforehand:

    K_n(Δ) = ¼ Σ_j Π_{t ≤ n} (1 + λ_jt (Z_t − Δ)),
    λ_jt = min(s_j √(π_t (1 − π_t)), .99/(Δ − ℓ_t)),   s_j = √(2 ln(1/δ) / (N_j v)),

with v the variance of old returns, and N_j = ¼, 1, 4 and 16 times the episodes planned.

**Theorem.** If Δ_t ≤ Δ for all t, then K_n(Δ) ≥ 1/δ for some n has a chance of at most δ.
*Proof.* Every factor is at least 1 − .99 > 0, as Z_t ≥ ℓ_t, and has a mean of 1 + λ_jt (Δ_t − Δ),
which is at most 1, given the past. So each product is a nonnegative supermartingale that starts at
1, and so is their mean. Ville's inequality. ∎

**The bound.** Each factor falls in Δ: its slope is −λ where the cap does not bind, and there
.99 (Z − Δ)/(Δ − ℓ) has the slope −.99 (Z − ℓ)/(Δ − ℓ)² ≤ 0. So {Δ: K_n(Δ) ≥ 1/δ for some n so far}
is an interval from the left, and its right end L_n rises with n. With Δ* = sup_t Δ_t, L_n > Δ* says
that Δ* itself is refuted, which has a chance of at most δ for all n together. So one may look after
every episode and stop at will. The claim is "the gain was above L_n on some day"; where days
differ, it says nothing about their average. Levels may drift, and shares rise or depend on the
past: the proof does not mind.

**The other way round** the same bet is on −G in [−hi, −lo], around −m₀: Z is −Z, and the bound is
one on the loss.

**Outcomes that come late.** Episodes count in the order of their starts, up to the first pending
one; after its deadline it counts lo in the new arm and hi in the control. Then Z is at most what it
would be, every factor is at most what it would be, and K at most the capital of a pilot in which
all outcomes are known. That is true at every look, whatever is known then. So the theorem holds for
L. In the order of completion it would not: good outcomes may be known early. ∎ The same argument
covers returns that a clock cut, which count at their lowest and highest.

**The mean of the new arm alone** is bounded by Z = m₀ + (A/π)(G − m₀), which is at least
m₀ − (m₀ − lo)/π ≤ lo.

**Past episodes as control** have no chances. If the means μ and μ′ of both are constant,

    K(μ, μ′) = .8 Π(1 + λ(G_I − μ)) Π(1 + λ′(μ′ − G_b))
             + .1 Π(1 + κ(G_I − μ)) + .1 Π(1 + κ′(μ′ − G_b))

is such a process, too, with stakes at most .99/(μ − lo) and .99/(hi − μ′). It falls in μ and rises
in μ′. So in the cell μ ∈ [g_i, g_{i+1}], μ′ ∈ [g_j, g_{j+1}] it is at least K(g_{i+1}, g_j); where
that is 1/δ at some look, the cell is refuted, and the bound is the least g_i − g_{j+1} of the
others. Single points of a grid would prove nothing about those between them. A level that moves
breaks it, and no check of the new rows has the power to exclude that: two worlds in which the new
policy's actions do the same, and only those that it never takes have become better since, give new
rows of one distribution. In one of them it gains, and in the other it does not. So a gain over past
episodes is believed at most, however many rows the drift checks pass.

**The share of arms.** If A_t has the chance π_t, Π_t q_θ(A_t)/π_t(A_t) is a nonnegative martingale
for every θ, with q_θ the chance whose odds are e^θ times as large; so is the mean over several θ.
It exceeds 1/α with a chance of at most α, however often one looks.
"""

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels.bets import MOST, first_reached

PLANNED = np.array([0.25, 1.0, 4.0, 16.0])  # times the episodes planned: one stake for each
TILTS = np.array([0.1, 0.25, 0.5, 1.0, 2.0])  # of the odds of an arm, both ways
HALVINGS = 60  # of the interval in which a bound is looked for
POINTS = 400  # bounds that a line over time may have
CELLS = 200  # of the range of returns, for each of two means


class Wager(NamedTuple):
    """What is fixed before the first episode: the range of returns, and what stakes follow from."""

    low: float
    high: float
    middle: float  # m₀
    variance: float  # of returns
    planned: int  # episodes of both arms
    delta: float

    @property
    def stakes(self) -> FloatArray:
        """Returns s_j, one for each number of episodes that a proof may take."""
        planned = PLANNED * self.planned
        return np.asarray(np.sqrt(2 * math.log(1 / self.delta) / (planned * self.variance)))


class Series(NamedTuple):
    """Numbers whose means are bounded from below, one an episode."""

    value: FloatArray  # [n]
    least: FloatArray  # [n] that the value can be
    weight: FloatArray  # [n] of the stakes
    floor: float  # the mean is above that for certain
    ceiling: float


def gains(wager: Wager, new: BoolArray, chance: FloatArray, returns: FloatArray) -> Series:
    """Returns Z of each episode [n]; `chance` is that of the new policy."""
    side = np.where(new, 1 / chance, -1 / (1 - chance))
    least = -np.maximum(
        (wager.middle - wager.low) / chance, (wager.high - wager.middle) / (1 - chance)
    )
    weight = np.sqrt(chance * (1 - chance))
    span = wager.high - wager.low
    return Series(side * (returns - wager.middle), least, weight, -span, span)


def levels(wager: Wager, new: BoolArray, chance: FloatArray, returns: FloatArray) -> Series:
    """Returns numbers whose mean is that of the new policy alone."""
    value = wager.middle + np.where(new, (returns - wager.middle) / chance, 0.0)
    least = wager.middle - (wager.middle - wager.low) / chance
    return Series(value, least, np.sqrt(chance), wager.low, wager.high)


def reached(series: Series, wager: Wager, claims: FloatArray) -> FloatArray:
    """Returns after how many episodes each claim is refuted; ∞ where it is not."""
    when = np.empty(claims.size, np.int64)
    first_reached(
        series.value, series.least, series.weight, wager.stakes, claims, 1 / wager.delta, when
    )
    return np.where(when > series.value.size, np.inf, when)


def lower_bound(series: Series, wager: Wager) -> float:
    """Returns L after all episodes, by bisection; at worst what is certain anyway."""
    low, high = series.floor, series.ceiling
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refuted = reached(series, wager, np.array([middle]))[0] < np.inf
        low, high = (middle, high) if refuted else (low, middle)
    return low


def bounds_over_time(series: Series, wager: Wager) -> FloatArray:
    """Returns L after each episode [n], rounded down to one of `POINTS` numbers."""
    claims = np.linspace(series.floor, lower_bound(series, wager), POINTS)
    when = np.maximum.accumulate(reached(series, wager, claims))  # rounding may swap equal ones
    when[0] = 0  # what is certain
    after = np.arange(1, series.value.size + 1)
    return np.asarray(claims[np.searchsorted(when, after, side="right") - 1])


def past_bounds(wager: Wager, control: FloatArray, new: FloatArray, looks: IntArray) -> FloatArray:
    """Returns the bound on the gain over past episodes, after so many new ones (`looks`)."""
    grid = np.linspace(wager.low, wager.high, CELLS + 1)
    goals = 2 * np.array([[math.log(1 / wager.delta)], [math.log(10 / wager.delta)]])
    with np.errstate(divide="ignore"):  # stakes [2, C + 1]: on both means, and on one alone
        new_stakes = np.minimum(
            np.sqrt(goals / (wager.planned * wager.variance)), MOST / (grid - wager.low)
        )
        old_stakes = np.minimum(
            np.sqrt(goals / (max(control.size, 1) * wager.variance)), MOST / (wager.high - grid)
        )
    ours = np.ones(new_stakes.shape)
    theirs = capital_of(old_stakes, grid - control[:, np.newaxis])
    standing = np.ones((CELLS, CELLS), np.bool_)
    gain = grid[:-1, np.newaxis] - grid[1:]
    bounds = list[float]()
    for fresh in np.split(new, looks)[:-1]:
        ours *= capital_of(new_stakes, fresh[:, np.newaxis] - grid)
        alone = 0.1 * ours[1, 1:, np.newaxis] + 0.1 * theirs[1, :-1]
        standing &= 0.8 * np.outer(ours[0, 1:], theirs[0, :-1]) + alone < 1 / wager.delta
        bounds.append(gain[standing].min(initial=wager.high - wager.low))
    return np.array(bounds)


def capital_of(stakes: FloatArray, won: FloatArray) -> FloatArray:
    """Returns the products over episodes of 1 and what each stake wins; `won` [n, C + 1]."""
    logs = np.stack([np.log1p(stake * won).sum(axis=0) for stake in stakes])
    return np.asarray(np.exp(np.minimum(logs, 300.0)))


def share_evidence(new: BoolArray, chance: FloatArray) -> FloatArray:
    """Returns the evidence after each episode [n] that arms have other chances than planned."""
    tilts = np.append(-TILTS, TILTS)[:, np.newaxis]
    odds = np.where(new, tilts, 0.0) - np.log1p(chance * np.expm1(tilts))
    return np.asarray(np.exp(np.minimum(np.cumsum(odds, axis=1), 300.0)).mean(axis=0))
