"""Plans of stitched certificates: which bet on rounds to make, as fold 1 expects the most of it.

Both policies may be rolled out together, which makes their difference vary less, or in turn, which
lets a bet on either fear the bad luck of that one only. Fold 1 rehearses all ways; fold 2, which
certifies, never sees which of them would have been best on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.certificates.bets import (
    LARGEST_SHARE,
    TOGETHER,
    log_goal,
    lower_limit,
    lower_limit_in_turn,
    usual_stake,
    usual_stakes,
)
from surestep.certificates.refuting import SAME
from surestep.certificates.stacks import Tally, Way, horizons, roll_out_each
from surestep.kernels.stitched import BOTH, OURS, THEIRS, Case, Course, Rounds, Stacks, Turns

PLANNING, CERTIFYING = 1, 2  # what random numbers are for: never the same ones
REHEARSALS = 4  # runs on fold 1
MOST_ROUNDS = 100_000  # of a run: rollouts that are cut at once would never end
SMALLEST_SPREAD = 1e-3  # of X, relative to its range
CLEARLY = 0.1  # of the range of returns: what rollouts in turn must promise more than paired ones
CYCLES = (2, 3, 4, 6)  # rounds in turn, of which one is of π_I


class Plan(NamedTuple):
    """A bet on rounds, with the L that fold 1 expects of it."""

    way: Way
    delta: float
    stake: float = 0.0  # on rounds of both policies, or of one of them
    turns: Turns | None = None  # the stakes where policies take turns
    score: float = 0.0  # the lower limit to be expected
    robust: bool = False  # with robust tails

    def lower(self, rounds: Rounds, course: Course) -> float:
        """Returns L of rounds that were made this way."""
        if self.turns is not None:
            return lower_limit_in_turn(rounds.differences, rounds.complete, self.turns, self.delta)
        least = least_of(self.way.who, course)
        return lower_limit(rounds.differences, rounds.complete, self.stake, least, self.delta)


class Fold(NamedTuple):
    """A first fold that plans: its stacks, the course on them, and the bet that is to be made."""

    stacks: Stacks
    course: Course
    ratio: float  # the size of the second fold relative to this one
    delta: float
    seed: int


def plans_at(folds: Sequence[Fold]) -> list[Plan]:
    """Returns the bet of each fold on both policies at once, or in turn where it expects more.

    That has to be clearly more. All folds are rolled out together.
    """
    cases = [
        Case(stacks, course, stacks.sizes > 0, seed, most_rounds(stacks, course))
        for stacks, course, _, _, seed in folds
    ]

    def rehearsed(ways: Sequence[Sequence[Way]]) -> list[list[Plan]]:
        outcomes = roll_out_each(cases, ways, PLANNING, REHEARSALS, keep=False)
        return [
            [
                bet_on(outcome.tallies, fold.course, fold.ratio, Plan(way, fold.delta))
                for way, outcome in zip(several, outcomes_each, strict=True)
            ]
            for fold, several, outcomes_each in zip(folds, ways, outcomes, strict=True)
        ]

    def best(plans: Iterable[Plan]) -> Plan:
        return max(plans, key=lambda plan: plan.score)

    sides = (BOTH, OURS, THEIRS)
    longest = max((horizons(fold.course.discount) for fold in folds), key=len)
    alone = rehearsed(
        [
            [Way(who, steps, steps) for who in sides for steps in horizons_of(fold, len(longest))]
            for fold in folds
        ]
    )
    bests = [
        [best(plan for plan in plans if plan.way.who == who) for who in sides] for plans in alone
    ]
    turns = rehearsed(
        [
            [Way(cycle, ours.way.horizon, theirs.way.their_horizon) for cycle in CYCLES]
            for _, ours, theirs in bests
        ]
    )
    return [
        clearly_best(paired, best(in_turn), fold.course)
        for (paired, _, _), in_turn, fold in zip(bests, turns, folds, strict=True)
    ]


def horizons_of(fold: Fold, number: int) -> tuple[int | None, ...]:
    """Returns so many horizons of a fold; of fewer than that, the last one comes again."""
    own = horizons(fold.course.discount)
    return own + own[-1:] * (number - len(own))


def clearly_best(paired: Plan, in_turn: Plan, course: Course) -> Plan:
    """Returns the bet on both policies at once, or the one in turn where that is clearly better."""
    return in_turn if in_turn.score > paired.score + CLEARLY * span_of(course) else paired


def bet_on(tallies: Sequence[Tally], course: Course, ratio: float, plan: Plan) -> Plan:
    """Returns the bet with its stakes, and with what to expect of it, by rounds on fold 1.

    With mean x̄ and variance v of the rounds, m of them to be expected on fold 2, and the stake λ,
    the lower limit to be expected is x̄ − ln(q/δ)/(λm) − λv/2.
    """
    if plan.way.who > OURS:
        return bet_in_turn(tallies, course, ratio, plan)
    (tally,), least = tallies, least_of(plan.way.who, course)
    if tally.number == 0:
        return plan._replace(score=least)
    mean, variance = tally.mean, spread_of(tally, course)
    number = ratio * tally.number
    stake = usual_stake(number, variance, plan.delta)
    capped = min(stake, largest_stake(mean - least, course))
    score = mean - log_goal(plan.delta) / (capped * number) - capped * variance / 2
    return plan._replace(stake=stake, score=max(score, least))


def bet_in_turn(tallies: Sequence[Tally], course: Course, ratio: float, plan: Plan) -> Plan:
    """Returns the bet on rounds in turn, with its stakes, and with what to expect of it.

    With means x̄, x̄′ and variances v, v′ of both kinds of rounds, m and m′ of them to be expected,
    and the stakes Λ/m and Λ/m′, that is x̄ + x̄′ − ln(q/wδ)/Λ − Λ (v/m + v′/m′)/2.
    """
    ends = [least_of(who, course) for who in (OURS, THEIRS)]
    if min(tally.number for tally in tallies) == 0:
        return plan._replace(score=-math.inf)  # no stake would be known
    (mean, their_mean) = (tally.mean for tally in tallies)
    variance, their_variance = (spread_of(tally, course) for tally in tallies)
    lengths = ratio * tallies[0].number, ratio * tallies[1].number
    usual = usual_stakes(lengths, (variance, their_variance), plan.delta)
    caps = [largest_stake(mean - ends[0], course), largest_stake(their_mean - ends[1], course)]
    factor = min(usual[0] * lengths[0], caps[0] * lengths[0], caps[1] * lengths[1])
    turns = Turns(
        plan.way.who,
        TOGETHER,
        *usual,
        usual_stake(lengths[0], variance, plan.delta),
        usual_stake(lengths[1], their_variance, plan.delta),
        LARGEST_SHARE,
        (ends[0], -ends[1]),
    )
    goal = log_goal(plan.delta * TOGETHER)
    spread = variance / lengths[0] + their_variance / lengths[1]
    score = mean + their_mean - goal / factor - factor * spread / 2
    return plan._replace(turns=turns, score=max(score, sum(ends)))


def kinds_of(who: int, rounds: Rounds) -> list[FloatArray]:
    """Returns what the complete rounds gave, flat: those of π_I and of π_b, if they take turns."""
    if who <= OURS:
        return [rounds.values]
    place = np.arange(rounds.differences.shape[1])
    there = place < rounds.complete[:, np.newaxis]
    return [
        rounds.differences[there & (place % who == 0)],
        rounds.differences[there & (place % who > 0)],
    ]


def spread_of(tally: Tally, course: Course) -> float:
    """Returns the variance of rounds, and not less than for a thousandth of a range."""
    smallest = SMALLEST_SPREAD * span_of(course)
    return max(tally.variance, smallest**2)


def largest_stake(above_least: float, course: Course) -> float:
    """Returns the largest stake on a mean that lies so far above the least value."""
    return LARGEST_SHARE / max(above_least, SMALLEST_SPREAD * span_of(course))


def most_rounds(stacks: Stacks, course: Course) -> int:
    """Returns the number of rounds at which a run ends in any case."""
    starts = int(stacks.sizes.sum()) if course.start_chances.size else stacks.starts.size
    return min(starts, MOST_ROUNDS)


def span_of(course: Course) -> float:
    """Returns how far returns may lie apart, and a little more, so that it is never 0."""
    low, high = course.limits
    return high - low + SAME * max(abs(low), abs(high), SAME)


def least_of(who: int, course: Course) -> float:
    """Returns the least that a round can give, and a little less, for the rounding of sums."""
    low, high = course.limits
    exact = {BOTH: low - high, OURS: low, THEIRS: -high}[who]
    return exact - SAME * max(abs(low), abs(high), SAME)
