"""Warns when episodes return less than a level: an e-detector (Shin, Ramdas and Rinaldo 2022).

**The detector.** Let G_1, G_2, … be returns in the order of their starts, G_t ≤ h, and c < h the
level. For a stake λ with λ (h − c) < 1,

    M_0 = 0,   M_t = (M_{t−1} + 1) (1 + λ (c − G_t)) = Σ_{s ≤ t} Π_{i = s..t} (1 + λ (c − G_i)).

It is the capital of somebody who puts 1 on every episode, bets that from there on returns are below
c, and never takes anything out. `detect` takes the mean M over λ ∈ {.1, .25, .5, .8} / (h − c), and
raises the alarm at the first t with M_t ≥ A.

**Theorem.** If E[G_t | G_1, …, G_{t−1}] ≥ c for all t ≤ N, an alarm among the first N episodes has
a chance of at most N/A. *Proof.* Every factor is positive, as c − G_t ≥ −(h − c), and has a
conditional mean of at most 1. So E[M_t | past] ≤ M_{t−1} + 1: the numbers M_t − t are a
supermartingale, of each λ and of their mean. Let τ be the alarm, or N if that is earlier. By
optional stopping E[M_τ] ≤ E[τ] ≤ N; and M_τ ≥ 0, with M_τ ≥ A where there was an alarm. By Markov's
inequality P(alarm by N) ≤ N/A. ∎ Without a fixed N, E[τ] ≥ E[M_τ] ≥ A: the mean run to a false
alarm is A or longer.

So **A = N/α** for a chance of at most α among the next N episodes. It may be looked at after every
episode: the alarm is one event for all looks. Among twice as many episodes the chance is 2α.

**What breaks it.** A level above the mean, if only by luck: the mean of 100 old episodes is above
the true mean in half of all cases. So a level is a *lower bound*. And seasons: c must be below the
mean in every season (`lowest_season`), or returns are compared with those of a small holdout that
goes on as before (`paired`): the same weeks make both better or worse. Returns in the order of
their ends break it, too, where bad ones are known early.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, expect_count, first_where
from surestep._settings import Delta, check_setting
from surestep.errors import InvalidParameter
from surestep.offpolicy import empirical_bernstein

SHARES = (0.1, 0.25, 0.5, 0.8)  # of the largest stake 1 / (h − c), as far as the sources tried them
ROUNDING = 1e-9  # added to ln A, for what rounding may add to ln M
LEAST_IN_SEASON = 2  # episodes: fewer have no spread


class Detection(NamedTuple):
    """What a detector saw: ln M after every episode, ln A, and the alarm.

    `alarm` is the place of the episode that raised it, `since` the place of the first episode after
    the change, as far as the evidence tells; both None without an alarm.
    """

    evidence: FloatArray  # [n] ln M
    goal: float  # ln A
    alarm: int | None = None
    since: int | None = None

    @property
    def closeness(self) -> FloatArray:
        """Returns ln M / ln A [n], from 0 to 1: how near an alarm was after each episode."""
        share: FloatArray = np.clip(self.evidence / self.goal, 0.0, 1.0)
        return share


def detect(
    returns: FloatArray, level: float, high: float, *, within: int, alpha: float
) -> Detection:
    """Watches returns [n], each at most `high`, for a mean below the level.

    An alarm among the first `within` has a chance of at most `alpha` while the mean is no lower.
    """
    goal = goal_of(within, alpha)
    steps = log_factors(returns, level, high)
    capital = np.cumsum(steps, axis=1)  # of whoever began with the first episode
    evidence = np.logaddexp.reduce(summed(capital), axis=0) - math.log(len(SHARES))
    above = np.flatnonzero(evidence >= goal + ROUNDING)
    if not above.size:
        return Detection(evidence, goal)
    alarm = int(above[0])
    began = capital[:, alarm, np.newaxis] - capital[:, : alarm + 1] + steps[:, : alarm + 1]
    since = int(np.argmax(np.logaddexp.reduce(began, axis=0)))
    return Detection(evidence, goal, alarm, since)


def goal_of(within: int, alpha: float) -> float:
    """Returns ln A = ln(N/α)."""
    expect_count("within", within)
    check_setting("alpha", alpha, Delta)
    return math.log(within) - math.log(alpha)


def log_factors(returns: FloatArray, level: float, high: float) -> FloatArray:
    """Returns ln(1 + λ (c − G)) of every stake and episode [4, n]."""
    if not level < high:
        raise InvalidParameter(
            f"level is {level:.10g}, expected less than {high:.10g}, the highest return: nothing "
            "could ever be above it"
        )
    for place, others in first_where(~(returns <= high), "episode"):
        raise InvalidParameter(
            f"episode {place + 1:,} returned {returns[place]:.10g}, expected at most "
            f"{high:.10g}{others}"
        )
    shares = np.array(SHARES)[:, np.newaxis]
    factors: FloatArray = np.log1p(shares * (level - returns) / (high - level))
    return factors


def summed(capital: FloatArray) -> FloatArray:
    """Returns ln M of every stake and episode [4, n] by the sums of ln factors up to each.

    M_t = P_t Σ_{s < t} 1/P_s with P_t the product of the first t factors.
    """
    before = np.concatenate([np.zeros((len(capital), 1)), capital[:, :-1]], axis=1)
    return capital + np.logaddexp.accumulate(-before, axis=1)


def paired(returns: FloatArray, held_out: BoolArray) -> tuple[FloatArray, IntArray]:
    """Compares each episode of the holdout with those of the new policy since the one before.

    Returns the mean of the latter less the former [m], and the places [m] of the former among all.
    An episode of the holdout without such neighbours is left out. If the new policy is better by
    Δ or more in every season, and seasons do not turn between neighbours, each difference has a
    mean of Δ or more; they lie within ±(highest − lowest return).
    """
    places = np.flatnonzero(held_out)
    ours = np.cumsum(np.where(held_out, 0.0, returns))[places]
    many = np.cumsum(~held_out)[places]
    number = np.diff(many, prepend=0)
    there = number > 0
    mean = np.diff(ours, prepend=0.0)[there] / number[there]
    return mean - returns[places][there], places[there]


def lowest_season(
    returns: FloatArray, seasons: int, low: float, high: float, delta: float
) -> float:
    """Returns a lower bound of the mean return in the lowest season, with a chance of 1 − δ.

    Returns [n] lie in the order of starts, and seasons are equal parts of them; each has its bound
    (`empirical_bernstein`) at δ/k, so that all k hold at once.
    """
    parts = np.array_split(returns, seasons)
    if len(parts[-1]) < LEAST_IN_SEASON:
        raise InvalidParameter(
            f"seasons is {seasons:,}, but the log has {returns.size:,} episodes; expected at least "
            f"{LEAST_IN_SEASON} episodes in each"
        )
    return min(empirical_bernstein(part, low, high, delta / seasons) for part in parts)
