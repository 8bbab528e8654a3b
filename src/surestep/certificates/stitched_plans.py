"""Plans of stitched certificates: which bets on rounds to make, as fold 1 expects the most of them.

Both policies may be rolled out together, which makes their difference vary less, or each for
itself, which lets each be cut after a horizon of its own. Fold 1 rehearses all ways; fold 2, which
certifies, never sees which of them would have been best on it.
"""

from __future__ import annotations

from typing import NamedTuple

from surestep.certificates.bets import LARGEST_SHARE, log_goal, usual_stake
from surestep.certificates.refuting import SAME
from surestep.certificates.stacks import Way, horizons, roll_out_each
from surestep.kernels.stitched import BOTH, OURS, THEIRS, Course, Draw, Rounds, Stacks

PLANNING, CERTIFYING = 1, 2  # what random numbers are for: never the same ones
REHEARSALS = 4  # runs on fold 1
MOST_ROUNDS = 100_000  # of a run: rollouts that are cut at once would never end
SMALLEST_SPREAD = 1e-3  # of X, relative to its range
CLEARLY = 0.03  # of the range of returns: what rollouts apart must promise more than paired ones
BEHAVIOR_SHARE = 0.25  # of δ, for π_b where it is rolled out alone


class Bet(NamedTuple):
    """A bet on the rounds of one policy, or of both, with the L that fold 1 expects of it."""

    who: int  # BOTH, OURS or THEIRS
    delta: float
    horizon: int | None  # None: a rollout is never cut for its length
    stake: float
    score: float  # the lower limit to be expected


class Plan(NamedTuple):
    """A bet on both policies at once, or one on either."""

    bets: tuple[Bet, ...]
    robust: bool = False  # with robust tails

    @property
    def score(self) -> float:
        """Returns the L to be expected."""
        return sum(bet.score for bet in self.bets)


def plan_at(stacks: Stacks, course: Course, ratio: float, delta: float, seed: int) -> Plan:
    """Returns the bet on both policies at once, or on either where fold 1 expects clearly more."""
    levels = {
        BOTH: delta,
        OURS: (1 - BEHAVIOR_SHARE) * delta,
        THEIRS: BEHAVIOR_SHARE * delta,
    }
    ways = [Way(who, horizon) for who in levels for horizon in horizons(course.discount)]
    draw = Draw(seed, PLANNING, BOTH, REHEARSALS, most_rounds(stacks, course))
    rounds = roll_out_each(stacks, course, stacks.sizes > 0, ways, draw)
    bets = [
        bet_on(rolled, course, ratio, Bet(way.who, levels[way.who], way.horizon, 0.0, 0.0))
        for way, rolled in zip(ways, rounds, strict=True)
    ]
    both, ours, theirs = (
        max((bet for bet in bets if bet.who == who), key=lambda bet: bet.score) for who in levels
    )
    paired, apart = Plan((both,)), Plan((ours, theirs))
    return apart if apart.score > paired.score + CLEARLY * span_of(course) else paired


def bet_on(rounds: Rounds, course: Course, ratio: float, bet: Bet) -> Bet:
    """Returns the bet with its stake, and with what to expect of it, by rounds on fold 1.

    With mean x̄ and variance v of the rounds, m of them to be expected on fold 2, and the stake λ,
    the lower limit to be expected is x̄ − ln(q/δ)/(λm) − λv/2.
    """
    values, least = rounds.values, least_of(bet.who, course)
    if values.size == 0:
        return bet._replace(score=least)
    mean, smallest = float(values.mean()), SMALLEST_SPREAD * span_of(course)
    variance = max(float(values.var()), smallest**2)
    number = ratio * float(rounds.complete.mean())
    stake = usual_stake(number, variance, bet.delta)
    capped = min(stake, LARGEST_SHARE / max(mean - least, smallest))
    score = mean - log_goal(bet.delta) / (capped * number) - capped * variance / 2
    return bet._replace(stake=stake, score=max(score, least))


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
