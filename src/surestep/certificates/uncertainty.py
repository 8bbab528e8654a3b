"""Makes a set of MDPs from counts; the set contains the true MDP with probability 1 − δ.

All unknown parts of the MDP have an equal share of δ: the row of every pair that does not end the
episode, its mean reward unless rewards are known, and the start distribution unless it is known. A
row's share is divided again among all its |S| states, or the |S| − 1 nodes of its tree. Where the
problem says to which m states a pair may lead, these m count instead, and a row with one is known.
So all levels are fixed before the data are seen.

**Confidence sets** for chances, rows and means, from counts, hold at a fixed n, or for all n at
once.

*Fixed n.* Clopper and Pearson (1934): an end of the interval is where the chance of so extreme a
count falls to δ/2. For the mean μ of n draws from [0, 1] with sum k, Hoeffding (1963, Theorem 1)
gives P(n·kl(k/n, μ) ≥ x, k/n on one side of μ) ≤ e^(−x), so two sides at n·kl ≤ ln(2/δ). For whole
rows, Weissman et al. (2003): P(‖p̂ − p‖₁ ≥ ε) ≤ (2^m − 2) e^(−nε²/2) on a support of m states.

*All n at once* (strict). Let x₁, x₂, … in [0, 1] have mean p given what came before. For any q,
x ↦ (q/p)^x ((1−q)/(1−p))^(1−x) is convex, so it lies below (1−x)(1−q)/(1−p) + x q/p, whose mean is
1. The product over the draws, mixed over q with the density of Beta(½, ½), is therefore a
nonnegative supermartingale that starts at 1, and by Ville's inequality exceeds 1/δ with probability
δ at most, ever. With k = Σ x it is B(k+½, n−k+½) / (B(½, ½) p^k (1−p)^(n−k)), so that

    n·kl(k/n, p) ≤ ln(1/δ) + k ln(k/n) + (n−k) ln(1−k/n) − ln B(k+½, n−k+½) + ln B(½, ½)

holds for all n at once, for counts as for sums of rewards; how n came about does not matter. The
same with Dirichlet(½, …, ½) is a ball n·KL(p̂, p) ≤ c for whole rows; Pinsker's inequality puts it
inside the L1 ball of radius √(2c/n).

Every interval is widened by more than its rounding error.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv, betaln, gammaln, xlogy

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._settings import Delta
from surestep.certificates.refuting import check_reward_bounds
from surestep.model import Counts, Problem, Successors
from surestep.planning.rectangular import (
    Earnings,
    RectangularSet,
    SetRows,
    passes,
    rows_along_trees,
    rows_in_balls,
    rows_in_intervals,
    worst_rows,
)

MOST_VISITS = 1e15  # up to here the inverse beta function is accurate
WIDENED = 1e-12  # of each end: more than the inverse beta function is off
MOST_STEPS, STEP_PRECISION = 100, 2.0**-50  # of Newton's method
SMALLEST_SUM = 1e-200  # below it, sums of rewards count as 0, which widens the interval
LN2 = math.log(2.0)
SetKind = Literal["interval", "l1", "two-successor"]

SMALLEST_LEVEL = 1e-100  # below 1e-105, SciPy's inverse beta function is no number at times
REWARD_SLACK = 1e-9  # of the range: what adding up rewards may be off


def chance_interval(
    times: arrays.IntArray,
    visits: arrays.IntArray,
    delta: arrays.FloatArray | float,
    *,
    strict: bool,
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns bounds on the chance of an event that came `times` times in `visits` visits.

    Both hold with probability 1 − δ. There is one δ for all, or one for each.
    """
    if not strict:
        tail = np.broadcast_to(np.asarray(delta) / 2, times.shape)
        low = clopper_pearson_low(times, visits, tail)
        return low, 1.0 - clopper_pearson_low(visits - times, visits, tail)
    k, n = times.astype(np.float64), visits.astype(np.float64)
    return deviance_interval(k, n, mixture_regret(k, n) - np.log(delta))


def mean_interval(
    sums: arrays.FloatArray, visits: arrays.IntArray, delta: float, *, strict: bool
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns bounds at 1 − δ on the mean of draws from [0, 1]: `visits` draws add up to `sums`."""
    n = visits.astype(np.float64)
    k = np.clip(sums, 0.0, n)
    regret = mixture_regret(k, n) if strict else np.full(n.shape, LN2)
    return deviance_interval(k, n, regret - math.log(delta))


def row_radius(
    times: arrays.IntArray,
    offsets: arrays.IntArray,
    support: arrays.IntArray | int,
    delta: float,
    *,
    strict: bool,
) -> arrays.FloatArray:
    """Returns a bound at 1 − δ on the L1 distance [K] between each row and its frequencies.

    It is at most 2. A row may lead to `support` states: one number for all rows, or one for each.
    """
    n = arrays.run_sums(times, offsets).astype(np.float64)
    states = np.broadcast_to(support, n.shape)
    several = np.maximum(states, 2)
    if strict:
        exponent = row_regret(times, offsets, several) - math.log(delta)
    else:
        exponent = several * LN2 + np.log1p(-(2.0 ** (1.0 - several))) - math.log(delta)
    radius = np.minimum(np.sqrt(2 * exponent / np.maximum(n, 1.0)) * (1 + WIDENED), 2.0)
    return np.where(states > 1, radius, 0.0)


def clopper_pearson_low(
    times: arrays.IntArray, visits: arrays.IntArray, tail: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns the p at which P(`times` or more in `visits` visits) is `tail`; 0 for no times.

    P(X ≥ k) = I_p(k, n − k + 1). The upper end for k is 1 minus the lower end for n − k.
    """
    low = np.where(times > 0, betaincinv(np.maximum(times, 1), visits - times + 1.0, tail), 0.0)
    return low * (1 - WIDENED)


def deviance_interval(
    k: arrays.FloatArray, n: arrays.FloatArray, allowed: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns all p with n·kl(k/n, p) ≤ allowed; [0, 1] where n is 0."""
    return deviance_low(k, n, allowed), 1.0 - deviance_low(n - k, n, allowed)


def deviance_low(
    k: arrays.FloatArray, n: arrays.FloatArray, allowed: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns the smallest p with k ln(p̂/p) + (n−k) ln((1−p̂)/(1−p)) ≤ allowed, p̂ = k/n.

    In x = ln(p/p̂) the left side is convex and falls, so Newton's steps from where it is too large
    stay there, up to rounding. The first x is where the first term alone is too large: the second
    is at least (n−k) ln(1−p̂). The result is rounded down.
    """
    low = np.zeros(k.shape)
    some = k > SMALLEST_SUM
    k, n, allowed = k[some], n[some], allowed[some]
    rest = n - k
    share = k / np.where(rest > 0, rest, 1.0)
    wrong = -(allowed - xlogy(rest, rest / n)) / k
    for _ in range(MOST_STEPS):
        # With p = p̂ e^x, ln((1−p̂)/(1−p)) = −ln(1 + (p̂ − p)/(1 − p̂)).
        back = -np.expm1(wrong) * share
        excess = -k * wrong - rest * np.log1p(back) - allowed
        slope = k * (1.0 - np.where(rest > 0, np.exp(wrong) / (1.0 + back), 0.0))
        step = np.where(excess > 0, excess / np.maximum(slope, SMALLEST_SUM), 0.0)
        after = np.minimum(wrong + step, 0.0)
        if not (after - wrong > STEP_PRECISION * -wrong).any():
            break
        wrong = after
    low[some] = np.exp(wrong) * (k / n) * (1 - WIDENED)
    return low


def mixture_regret(k: arrays.FloatArray, n: arrays.FloatArray) -> arrays.FloatArray:
    """Returns max_p ln p^k (1−p)^(n−k) − ln B(k+½, n−k+½) + ln B(½, ½), rounded up."""
    share = k / np.maximum(n, 1.0)
    best = xlogy(k, share) + xlogy(n - k, 1.0 - share)
    regret: arrays.FloatArray = best - betaln(k + 0.5, n - k + 0.5) + math.log(math.pi)
    return regret + rounding(n)


def row_regret(
    times: arrays.IntArray, offsets: arrays.IntArray, support: arrays.IntArray
) -> arrays.FloatArray:
    """Computes `mixture_regret` of rows [K], with Dirichlet(½, …, ½) over `support` [K] states.

    ln B(k + ½) − ln B(½) = Σ (lnΓ(k+½) − lnΓ(½)) − lnΓ(n + m/2) + lnΓ(m/2): states that were never
    seen add nothing.
    """
    n = arrays.run_sums(times, offsets).astype(np.float64)
    share = times / np.maximum(n[arrays.run_owners(offsets)], 1.0)
    terms = xlogy(times, share) - gammaln(times + 0.5) + 0.5 * math.log(math.pi)
    whole = gammaln(n + support / 2) - gammaln(support / 2)
    regret: arrays.FloatArray = arrays.run_sums(terms, offsets) + whole + rounding(n + support)
    return regret


def rounding(n: arrays.FloatArray) -> arrays.FloatArray:
    """Bounds the rounding in sums and differences of terms up to n ln n."""
    error: arrays.FloatArray = 2.0**-47 * n * np.log(n + 2.0)
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTerms(common.WithRanges):
    """Settings of the set of MDPs; `Robust` explains them."""

    set: SetKind = "interval"
    strict: bool = True
    delta: Delta = 0.1
    reward_low: common.End = None
    reward_high: common.End = None
    known_start: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The set of models around the counts, the set of starts, and the number of parts of δ."""

    models: RectangularSet
    starts: SetRows | None  # one row; None where the start distribution is known
    initial: arrays.FloatArray  # [S] how episodes started in the data
    parts: int  # how many rows, rewards and start distributions share δ

    def least_start(self, value: arrays.FloatArray) -> float:
        """Returns the least Σ ι(s) v(s) over the start distributions ι of the set."""
        if self.starts is None:
            return float(self.initial @ value)
        one, none = np.ones(1), np.zeros(1)
        stored = np.zeros(np.count_nonzero(self.initial))
        return float(worst_rows(self.starts, Earnings(stored, none, none), one, value).q[0])


class Observed(NamedTuple):
    """The counts of each row's successors, which rise, and how many states it may lead to."""

    offsets: arrays.IntArray  # [K+1]
    successor: arrays.IndexArray  # [T]
    times: arrays.IntArray  # [T]
    ends: arrays.BoolArray  # [K] pairs that end the episode
    sizes: arrays.IntArray  # [K]
    closed: bool  # the stored successors are all that may come


def uncertainty_of(problem: Problem, terms: SetTerms) -> Uncertainty:
    """Returns the set of all MDPs that are possible at 1 − δ, given the counts."""
    counts = sorted_counts(problem.counts)
    ends = counts.terminal[counts.pairs.state]
    refuse_unusable(problem, ends, terms)
    support = problem.support
    stored = counts if support is None else support
    times = counts.times if support is None else support.times(counts)
    observed = Observed(
        stored.offsets,
        stored.successor,
        times,
        ends,
        problem.support_sizes(),
        closed=support is not None,
    )
    parts = sum(unknown_parts(problem, known_start=terms.known_start))
    share = terms.delta / max(parts, 1)
    size = counts.pairs.num_states
    smallest = SMALLEST_LEVEL * size * max(parts, 1)
    common.check_delta(terms.delta, f"the {parts} parts that share it", smallest)
    low, high = (
        over_support(earned, counts, support) for earned in earnings(counts, ends, share, terms)
    )
    models = RectangularSet(
        counts.pairs,
        np.full(counts.pairs.num_pairs, problem.single_discount),
        set_rows(observed, size, share, terms),
        low,
        high,
    )
    return Uncertainty(
        models, start_rows(counts, size, share, terms), counts.starts / counts.starts.sum(), parts
    )


def start_rows(counts: Counts, size: int, share: float, terms: SetTerms) -> SetRows | None:
    """Returns the set of starts, in any of `size` states; None if their distribution is known."""
    if terms.known_start:
        return None
    begun = np.flatnonzero(counts.starts).astype(np.int32)
    one_row, goes_on = np.array([0, begun.size]), np.zeros(1, np.bool_)
    started = Observed(
        one_row, begun, counts.starts[begun], goes_on, np.array([size]), closed=False
    )
    return set_rows(started, size, share, terms)


def unknown_parts(problem: Problem, *, known_start: bool) -> tuple[int, int]:
    """Counts the parts that share δ: unknown rows and starts; and unknown mean rewards."""
    counts = problem.counts
    going_on = ~counts.terminal[counts.pairs.state]
    rows = int(np.count_nonzero(going_on & (problem.support_sizes() > 1)))
    rewards = 0 if counts.rewards.known else int(np.count_nonzero(going_on))
    return rows + (0 if known_start else 1), rewards


def set_rows(observed: Observed, num_states: int, share: float, terms: SetTerms) -> SetRows:
    """Returns a set for each row, which contains the true row with probability 1 − share."""
    offsets, successor, times, ends, sizes, closed = observed
    visits = arrays.run_sums(times, offsets)
    owner = arrays.run_owners(offsets)
    if terms.set == "l1":
        radius = row_radius(times, offsets, sizes, share, strict=terms.strict)
        seen = visits > 0
        # Where nothing was seen the center is any row: the radius is 2.
        center = np.where(
            seen[owner],
            times / np.maximum(visits, 1)[owner],
            1.0 / np.maximum(arrays.run_lengths(offsets), 1)[owner],
        )
        radius = np.where(seen, radius, 2.0)
        return rows_in_balls(offsets, successor, center, radius, ends, closed=closed)
    if terms.set == "two-successor":
        trees = rows_along_trees(offsets, successor, ends, num_states, closed=closed)
        passed, left = passes(trees, times)
        level = (share / np.maximum(sizes - 1, 1))[arrays.run_owners(trees.node_offsets)]
        low, high = chance_interval(left, passed, level, strict=terms.strict)
        return trees._replace(low=low, high=high)
    level = share / np.maximum(sizes, 1)
    low, high = chance_interval(times, visits[owner], level[owner], strict=terms.strict)
    _, elsewhere = chance_interval(np.zeros_like(visits), visits, level, strict=terms.strict)
    return rows_in_intervals(offsets, successor, low, high, elsewhere, ends=ends, support=sizes)


def over_support(earned: Earnings, counts: Counts, support: Successors | None) -> Earnings:
    """Maps the earnings of steps from the transitions of the counts to those of the support."""
    if support is None:
        return earned
    place = support.places(counts)
    stored = earned.outside[arrays.run_owners(support.offsets)]
    stored[place[place >= 0]] = earned.stored[place >= 0]
    return earned._replace(stored=stored)


def earnings(
    counts: Counts, ends: arrays.BoolArray, share: float, terms: SetTerms
) -> tuple[Earnings, Earnings]:
    """Returns the least and the most that each step may earn.

    Sums of rewards bound the mean reward of a pair, which then does not depend on the successor.
    Known rewards do; a transition without a stored reward has the whole reward range.
    """
    rewards = counts.rewards
    owner = arrays.run_owners(counts.offsets)
    ending = counts.unseen_reward()
    low, high = common.range_of(terms, "reward") or (
        0.0,
        0.0,
    )  # without a range, every reward is stored
    if rewards.known:
        outside = (
            [rewards.values] * 2
            if rewards.per == "pair"
            else [np.full(counts.visits.size, end) for end in (low, high)]
        )
        below, above = (Earnings(counts.mean_reward(), end, ending) for end in outside)
        return below, above
    sums = (
        rewards.values if rewards.per == "pair" else arrays.run_sums(rewards.values, counts.offsets)
    )
    width = high - low if high > low else 1.0
    scaled = (sums - counts.visits * low) / width
    least, most = mean_interval(scaled, counts.visits, share, strict=terms.strict)
    slack = REWARD_SLACK * (abs(low) + abs(high))
    means = (
        np.maximum(low + (high - low) * least - slack, low),
        np.minimum(low + (high - low) * most + slack, high),
    )
    below, above = (Earnings(mean[owner], mean, ending) for mean in means)
    return below, above


def refuse_unusable(problem: Problem, ends: arrays.BoolArray, terms: SetTerms) -> None:
    """Refuses counts that the set cannot be built from: too many, or with rewards left open."""
    counts = problem.counts
    if counts.visits.sum() > MOST_VISITS or counts.starts.sum() > MOST_VISITS:
        raise common.refused("too-many-visits", most=MOST_VISITS)
    stored, sizes = problem.stored_sizes(), problem.support_sizes()
    bounds = common.range_of(terms, "reward")
    if bounds is not None:
        check_reward_bounds(counts, bounds)
    elif not counts.rewards.known:
        raise common.refused("rewards-not-known")
    elif counts.rewards.per == "transition":
        for k, others in arrays.first_where(~ends & (stored < sizes), "pair"):
            raise common.refused(
                "rewards-partly-known",
                pair=counts.pairs.pair_name(k),
                known=stored[k],
                all=sizes[k],
                others=others,
            )


def sorted_counts(counts: Counts) -> Counts:
    """Returns the counts with the successors of each pair in rising order, as trees need them."""
    order = np.lexsort((counts.successor, arrays.run_owners(counts.offsets)))
    if (order[1:] > order[:-1]).all():
        return counts
    rewards = counts.rewards
    if rewards.per == "transition":
        rewards = rewards.changed(lambda values: values[order])
    successor, times = counts.successor[order], counts.times[order]
    return replace(counts, successor=successor, times=times, rewards=rewards)
