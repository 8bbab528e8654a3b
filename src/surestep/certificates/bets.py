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
of all series on: a t of 1 would make L the luck of one seed. As that holds for all t at once, the
number of series may depend on everything, such as the length of the log.

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

**Which bet to make** on rounds of a stitched certificate is planned by fold 1. Both policies may be
rolled out together, which makes their difference vary less, or in turn, which lets a bet on either
fear the bad luck of that one only. Fold 1 tries pairs by all horizons, and turns by horizons near
the best of these; fold 2, which certifies, never sees which would have been best on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.certificates.refuting import SAME
from surestep.certificates.stacks import Tallies, Way, horizons, tally_each
from surestep.kernels.nodes import NodeCourse
from surestep.kernels.records import line, places
from surestep.kernels.stitched import (
    BOTH,
    OURS,
    THEIRS,
    Bets,
    Case,
    Course,
    Stacks,
    Tallied,
    Turns,
    last_refuted_of,
)
from surestep.kernels.types import RoomSize

Figures = TypeVar("Figures", float, FloatArray)
Terms = Course | NodeCourse  # of which bets need the discount and the bounds of returns

ONE_OF = 8  # q: one of so many series has to reach q/δ
LARGEST_SHARE = 0.99  # c: of all that may be lost, the part that a bet may lose
HALVINGS = 60  # of the bisection
HALVINGS_IN_TURN = 16  # of the one through pairs of means, whose cells are coarser than 2⁻¹⁵
TOGETHER = 0.8  # w: of the capital, the part that bets on two means at once
ROUNDING = 1e-9  # of the goal, for what rounding may add to a capital
PLANNING, CERTIFYING = 1, 2  # streams of random numbers, never shared
PLANNING_SEED = 0  # of all plans: near ties are decided alike, whatever seed certifies
PLANNING_RUNS = 8  # runs on fold 1 for each policy among which one is chosen
READ_BY_ALL = 2**15  # entries of fold 1 up to which all runs are made
MOST_READ = 2**17  # entries: of a larger fold 1 so many are read, by fewer runs
SERIES_A_RUN = (
    16  # for the certified policy, a run for each so many series, and no fewer than these
)
READ_AT_LAST = 2**21  # entries of fold 1 for it: enough that data decide its plan
MOST_ROUNDS = 100_000  # of a run: rollouts that are cut at once would never end
SMALLEST_SPREAD = 1e-3  # of X, relative to its range
CLEARLY = 0.01  # of the range of returns: what rollouts in turn must promise more than paired ones
CYCLES = (2, 3, 4, 6)  # rounds in turn, of which one is of π_I


def log_goal(delta: float, one_of: int = ONE_OF) -> float:
    """Returns ln(q/δ), which the logarithm of a capital has to reach."""
    return math.log(one_of) - math.log(delta)


def stake_for(goal: Figures, spread: Figures) -> Figures:
    """Returns √(2 ln(q/δ) / σ²) of single numbers or of arrays, with ln(q/δ) as `goal`."""
    return np.sqrt(2.0 * goal / spread)  # type: ignore[no-any-return]


class Bet(NamedTuple):
    """A bet on the first `complete` [R] values of R series of M values."""

    series: FloatArray
    complete: IntArray
    delta: float
    turns: Turns  # with a cycle of 1 where all values are of one kind; see `on_one_mean`
    at_least: float | None = None  # a level: then only L ≥ this is tested
    one_of: int = ONE_OF  # q

    @property
    def limits(self) -> tuple[float, float]:
        """Returns the least possible value, and the greatest observed; no bet refutes that one."""
        if self.turns.cycle > 1:
            return self.turns.limits
        least = self.turns.limits[0]
        there = np.arange(self.series.shape[1]) < self.complete[:, np.newaxis]
        return least, float(self.series.max(initial=least, where=there))

    def search(self, limits: tuple[float, float]) -> tuple[float, int]:
        """Returns the mean, or gain, to test first, and the number of tests."""
        if self.at_least is not None:
            return self.at_least, 1
        least, most = limits
        if self.turns.cycle > 1:
            return 0.0, HALVINGS_IN_TURN
        return least + (most - least) / 2, HALVINGS


def on_one_mean(stake: float, least: float) -> Turns:
    """Returns the stake on values of one kind, each at least `least`, as `Turns` of cycle 1."""
    return Turns(1, 1.0, stake, 0.0, 0.0, 0.0, LARGEST_SHARE, (least, math.inf))


def limits_of(bets: Sequence[Bet]) -> list[float]:
    """Returns L of each bet, all computed in one call; all have the same number of series and q."""
    if not bets:
        return []
    lower = np.empty(len(bets))
    limits = [bet.limits for bet in bets]
    first, halvings = zip(*map(Bet.search, bets, limits), strict=True)
    last_refuted_of.all(
        len(bets),
        RoomSize(),
        Bets(
            np.array([bet.turns.cycle for bet in bets]),
            np.array([bet.turns[1:7] for bet in bets]),
            np.array(limits),
            np.array([math.exp(log_goal(bet.delta, bet.one_of)) * (1 + ROUNDING) for bet in bets]),
            np.array(first),
            np.array(halvings),
            places(bet.series.ravel() for bet in bets),
            line(bet.series.ravel() for bet in bets),
            line(bet.complete for bet in bets),
            bets[0].one_of,
        ),
        lower,
    )
    return lower.tolist()


class ReturnsBet(NamedTuple):
    """A bet on returns of practice, as fold 1 plans it; see `practice`."""

    centre: float  # c
    stake: float  # λ
    expected: float  # U, by the returns of fold 1

    @classmethod
    def of(cls, returns: FloatArray, ratio: float, delta: float, course: Terms) -> ReturnsBet:
        """Plans the bet from returns of fold 1; fold 2 is `ratio` times as large."""
        centre = float(returns.mean())
        closest = SMALLEST_SPREAD * span_of(course)
        number = ratio * returns.size
        variance = max(float(returns.var()), closest**2)
        largest = LARGEST_SHARE / max(-least_of(THEIRS, course) - centre, closest)
        stake = min(stake_for(-math.log(delta), number * variance), largest)
        bet = cls(centre, stake, 0.0)
        return bet._replace(expected=bet.upper(returns, number, delta))

    def upper(self, returns: FloatArray, number: float, delta: float) -> float:
        """Returns U of returns [n], or of as many times as large a `number` of such."""
        grown = float(np.log1p(self.stake * (self.centre - returns)).mean())
        return self.centre - math.expm1(grown + math.log(delta) / number) / self.stake


class BetPlan(NamedTuple):
    """A bet on rounds, with the L that fold 1 expects of it."""

    way: Way
    fold: Fold
    turns: Turns  # the stakes
    score: float  # the lower limit to be expected, less U where it is compared with returns

    def bet(self, rounds: Tallied, at_least: float | None) -> Bet:
        """Returns the bet on rounds that were made this way."""
        if self.fold.baseline is not None:  # L is less than what is asked for here, by U
            at_least = None
        return Bet(
            rounds.differences,
            rounds.complete,
            self.fold.delta,
            self.turns,
            at_least,
            self.fold.one_of,
        )


class Fold(NamedTuple):
    """A first fold, which plans: its stacks, the course on them, and the kind of bet to plan."""

    stacks: Any  # of pairs, or of nodes, as `tally` expects
    course: Any  # `Terms`
    ratio: float  # the size of the second fold relative to this one
    delta: float
    alone: bool = False  # rounds are of π_I alone
    robust: bool = False  # with robust tails
    baseline: ReturnsBet | None = None  # replaces rounds of π_b
    one_of: int = ONE_OF  # q


class ExpectedBets(NamedTuple):
    """Bets of F folds on W ways each, and the L that the fold expects of each."""

    score: FloatArray  # [F, W]
    stakes: FloatArray  # [F, W, 1], or where policies take turns [F, W, 4]: those of `Turns`

    def plan(self, fold: Fold, way: Way, place: tuple[int, int]) -> BetPlan:
        """Returns the bet at a place: that of this fold on this way."""
        stakes = self.stakes[place].tolist()
        if way.who <= OURS:
            turns = on_one_mean(stakes[0], least_of(way.who, fold.course))
        else:
            limits = least_of(OURS, fold.course), -least_of(THEIRS, fold.course)
            ours, theirs, ours_alone, theirs_alone = stakes
            turns = Turns(
                way.who, TOGETHER, ours, theirs, ours_alone, theirs_alone, LARGEST_SHARE, limits
            )
        upper = 0.0 if fold.baseline is None else fold.baseline.expected
        return BetPlan(way, fold, turns, float(self.score[place]) - upper)


Tally = Callable[[Sequence[Fold], Sequence[Sequence[Way]], int], Tallies]


def tally_pairs(folds: Sequence[Fold], ways: Sequence[Sequence[Way]], runs: int) -> Tallies:
    """Adds up the rounds of folds with stacks of pairs; see `tally_each`."""
    cases = [case_of(stacks, course, stacks, PLANNING_SEED) for stacks, course, *_ in folds]
    return tally_each(cases, ways, PLANNING, runs)


def plans_at(
    folds: Sequence[Fold], runs: int, tally: Tally = tally_pairs, clearly: float = CLEARLY
) -> list[BetPlan]:
    """Returns the best bet of each fold: on both policies at once, or in turn if clearly better.

    A bet in turn has to expect more by `clearly`; a fold with `alone` bets on rounds of π_I alone.
    All folds are rolled out together in `runs` runs; `tally` adds up their rounds.
    """
    plans: dict[int, BetPlan] = {}
    left: dict[int, list[Way]] = {}  # folds that a bet in turn may be better for, and ways to try
    for who in (BOTH, OURS):
        some = [f for f, fold in enumerate(folds) if fold.alone == (who == OURS)]
        if not some:
            continue
        ways = ways_of(who, [folds[f] for f in some])
        bets, tallies = rolled([folds[f] for f in some], ways, runs, tally)
        for row, f in enumerate(some):
            best = int(bets.score[row].argmax())
            plans[f] = bets.plan(folds[f], ways[row][best], (row, best))
            # In turn, rounds have the mean of paired ones: only where that is far above what a
            # paired bet expects may a bet in turn expect more by `clearly`. Its horizon is looked
            # for near that of the paired bet.
            least = plans[f].score + clearly * span_of(folds[f].course)
            if who == BOTH and tallies.mean[row, :, 0].max() > least:
                near = np.clip([best - 1, best, best + 1], 0, len(ways[row]) - 1)
                left[f] = [ways[row][place] for place in near]
    if left:
        in_turn = plans_in_turn([folds[f] for f in left], [*left.values()], runs, tally)
        for f, plan in zip(left, in_turn, strict=True):
            if plan.score > plans[f].score + clearly * span_of(folds[f].course):
                plans[f] = plan
    return [plans[f] for f in range(len(folds))]


def best_plans(
    each: Sequence[Sequence[Fold]],
    runs: int,
    tally: Tally = tally_pairs,
    clearly: float = CLEARLY,
) -> list[BetPlan]:
    """Returns the best bet of each group of folds, all of which are planned together."""
    plans = iter(plans_at([fold for several in each for fold in several], runs, tally, clearly))
    return [max((next(plans) for _ in several), key=lambda plan: plan.score) for several in each]


def plans_in_turn(
    folds: Sequence[Fold], ours: Sequence[Sequence[Way]], runs: int, tally: Tally
) -> list[BetPlan]:
    """Returns the best bet of each fold on rounds in turn.

    The horizon of π_b is the best for rounds of it alone, that of π_I the one of `ours` that is the
    best in the shortest cycle, and the cycle the best with both.
    """
    # π_b by itself does the same in all folds of a log: one of them rolls it out for all.
    log_of = [(id(fold.stacks), fold.robust, fold.ratio, fold.delta) for fold in folds]
    one_of_each = dict(zip(log_of, folds, strict=True))
    ways = ways_of(THEIRS, [*one_of_each.values()])
    bets, _ = rolled([*one_of_each.values()], ways, min(runs, PLANNING_RUNS), tally)
    theirs = {
        log: several[best].horizon
        for log, several, best in zip(one_of_each, ways, bets.score.argmax(axis=1), strict=True)
    }
    shortest, *longer = CYCLES
    first = [
        [way._replace(who=shortest, their_horizon=theirs[log]) for way in several]
        for log, several in zip(log_of, ours, strict=True)
    ]
    plans = best_in_turn(folds, first, runs, tally)
    second = [[plan.way._replace(who=cycle) for cycle in longer] for plan in plans]
    others = best_in_turn(folds, second, runs, tally)
    return [max(pair, key=lambda plan: plan.score) for pair in zip(plans, others, strict=True)]


def best_in_turn(
    folds: Sequence[Fold], ways: Sequence[Sequence[Way]], runs: int, tally: Tally
) -> list[BetPlan]:
    """Returns the best bet of each fold among ways in turn."""
    bets, _ = rolled(folds, ways, runs, tally)
    best = bets.score.argmax(axis=1).tolist()
    return [bets.plan(fold, ways[f][best[f]], (f, best[f])) for f, fold in enumerate(folds)]


def ways_of(who: int, folds: Sequence[Fold]) -> list[list[Way]]:
    """Returns a way for each horizon; where a fold has fewer, its last comes again."""
    each = [horizons(fold.course.discount) for fold in folds]
    number = max(map(len, each))
    return [[Way(who, n, n) for n in own + own[-1:] * (number - len(own))] for own in each]


def rolled(
    folds: Sequence[Fold], ways: Sequence[Sequence[Way]], runs: int, tally: Tally
) -> tuple[ExpectedBets, Tallies]:
    """Rolls folds out in several ways each, all with the same policies, and bets on the rounds."""
    who = ways[0][0].who
    tallies = tally(folds, ways, runs)
    levels = Levels.of(folds)
    if who > OURS:
        return bets_in_turn(levels, tallies), tallies
    return bets_alone(levels, who, tallies), tallies


class Levels(NamedTuple):
    """The figures [F, 1] of F folds that determine their bets."""

    ratio: FloatArray
    goal: FloatArray  # ln(q/δ)
    goal_together: FloatArray  # ln(q/wδ)
    closest: FloatArray  # to the least value that a mean is taken to lie
    least: FloatArray  # [3, F, 1] that a round of BOTH, OURS and THEIRS can give

    @classmethod
    def of(cls, folds: Sequence[Fold]) -> Levels:
        """Computes the figures of these folds."""
        figures = [
            (
                fold.ratio,
                log_goal(fold.delta, fold.one_of),
                log_goal(fold.delta * TOGETHER, fold.one_of),
                SMALLEST_SPREAD * span_of(fold.course),
                *(least_of(who, fold.course) for who in (BOTH, OURS, THEIRS)),
            )
            for fold in folds
        ]
        ratio, goal, together, closest, *least = np.array(figures).T[..., np.newaxis]
        return cls(ratio, goal, together, closest, np.array(least))

    def largest_stake(self, above_least: FloatArray) -> FloatArray:
        """Returns the largest stake on means at this distance above the least value."""
        return LARGEST_SHARE / np.maximum(above_least, self.closest)


def bets_alone(levels: Levels, who: int, tallies: Tallies) -> ExpectedBets:
    """Returns bets on rounds of one kind, each with the lower limit expected from fold 1.

    With mean x̄ and variance v of the rounds, m of them to be expected on fold 2, and the stake λ,
    the lower limit to be expected is x̄ − ln(q/δ)/(λm) − λv/2.
    """
    number, mean, variance = (figure[..., 0] for figure in tallies)
    there = number > 0
    least = levels.least[who]
    length = levels.ratio * np.where(there, number, 1.0)
    variance = np.maximum(variance, levels.closest**2)
    stake = stake_for(levels.goal, length * variance)
    capped = np.minimum(stake, levels.largest_stake(mean - least))
    score = mean - levels.goal / (capped * length) - capped * variance / 2
    score, stake = np.where(there, [np.maximum(score, least), stake], [least, np.zeros_like(least)])
    return ExpectedBets(score, stake[..., np.newaxis])


def bets_in_turn(levels: Levels, tallies: Tallies) -> ExpectedBets:
    """Returns bets on rounds in turn, each with the lower limit expected from fold 1.

    With means x̄, x̄′ and variances v, v′ of both kinds of rounds, m and m′ of them to be expected,
    and the stakes Λ/m and Λ/m′, that is x̄ + x̄′ − ln(q/wδ)/Λ − Λ (v/m + v′/m′)/2.
    """
    number, mean, variance = (np.moveaxis(figure, -1, 0) for figure in tallies)
    least = levels.least[[OURS, THEIRS]]
    there = number.min(axis=0) > 0  # else no stake is known
    lengths = levels.ratio * np.where(there, number, 1.0)
    variances = np.maximum(variance, levels.closest**2)
    caps = levels.largest_stake(mean - least) * lengths
    spread = (variances / lengths).sum(axis=0)
    stakes = stake_for(levels.goal, spread) / lengths  # Λ is not capped here
    factor = np.minimum(stakes[0] * lengths[0], caps.min(axis=0))
    score = mean.sum(axis=0) - levels.goal_together / factor - factor * spread / 2
    alone = stake_for(levels.goal, lengths * variances)
    return ExpectedBets(
        np.where(there, np.maximum(score, least.sum(axis=0)), -np.inf),
        np.stack([*stakes, *alone], axis=-1),
    )


def kinds_of(who: int, rounds: Tallied) -> list[FloatArray]:
    """Returns the outcomes of complete rounds, flat; of rounds in turn, first π_I's, then π_b's."""
    place = np.arange(rounds.differences.shape[1])
    there = place < rounds.complete[:, np.newaxis]
    if who <= OURS:
        return [rounds.differences[there]]
    return [
        rounds.differences[there & (place % who == 0)],
        rounds.differences[there & (place % who > 0)],
    ]


def case_of(stacks: Stacks, course: Course, first: Stacks, seed: int) -> Case:
    """Returns the case of a course on stacks; only pairs that the `first` fold saw are read.

    A run ends with the last start of the log, or after `MOST_ROUNDS`.
    """
    starts = int(stacks.sizes.sum()) if course.start_chances.size else stacks.starts.size
    return Case(stacks, course, first.sizes > 0, seed, min(starts, MOST_ROUNDS))


def span_of(course: Terms) -> float:
    """Returns the width of the range of returns, and a little more, so that it is never 0."""
    low, high = course.limits
    return high - low + SAME * max(abs(low), abs(high), SAME)


def least_of(who: int, course: Terms) -> float:
    """Returns the least outcome of a round, less a little for the rounding of sums."""
    low, high = course.limits
    exact = {BOTH: low - high, OURS: low, THEIRS: -high}[who]
    return exact - SAME * max(abs(low), abs(high), SAME)
