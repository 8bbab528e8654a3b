"""Confidence sets for chances, rows and means, from counts: at a fixed n, or for all n at once.

Fixed n. Clopper and Pearson (1934): an end of the interval is where the chance of so extreme a
count falls to δ/2. For the mean μ of n draws from [0, 1] with sum k, Hoeffding (1963, Theorem 1)
gives P(n·kl(k/n, μ) ≥ x, k/n on one side of μ) ≤ e^(−x), so two sides at n·kl ≤ ln(2/δ). For whole
rows, Weissman et al. (2003): P(‖p̂ − p‖₁ ≥ ε) ≤ (2^m − 2) e^(−nε²/2) on a support of m states.

All n at once (*strict*). Let x₁, x₂, … in [0, 1] have mean p given what came before. For any q,
x ↦ (q/p)^x ((1−q)/(1−p))^(1−x) is convex, so it lies below (1−x)(1−q)/(1−p) + x q/p, whose mean is
1. The product over the draws, mixed over q with the density of Beta(½, ½), is therefore a
nonnegative supermartingale that starts at 1, and by Ville's inequality exceeds 1/δ with probability
δ at most, ever. With k = Σ x it is B(k+½, n−k+½) / (B(½, ½) p^k (1−p)^(n−k)), so that

    n·kl(k/n, p) ≤ ln(1/δ) + k ln(k/n) + (n−k) ln(1−k/n) − ln B(k+½, n−k+½) + ln B(½, ½)

holds for all n at once, for counts as for sums of rewards; how n came about does not matter. The
same with Dirichlet(½, …, ½) is a ball n·KL(p̂, p) ≤ c for whole rows; Pinsker's inequality puts it
inside the L1 ball of radius √(2c/n).

What is computed is widened by more than it can be off.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, betaln, gammaln, xlogy

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray

MOST_VISITS = 1e15  # up to here the inverse beta function is accurate
WIDENED = 1e-12  # of each end: more than the inverse beta function is off
MOST_STEPS, STEP_PRECISION = 100, 2.0**-50  # of Newton's method
SMALLEST_SUM = 1e-200  # below it, sums of rewards count as 0, which widens the interval
LN2 = math.log(2.0)


def chance_interval(
    times: IntArray, visits: IntArray, delta: FloatArray | float, *, strict: bool
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the chance of what came `times` times in `visits` visits; both hold at 1 − δ.

    There is one δ for all, or one for each.
    """
    if not strict:
        tail = np.broadcast_to(np.asarray(delta) / 2, times.shape)
        low = clopper_pearson_low(times, visits, tail)
        return low, 1.0 - clopper_pearson_low(visits - times, visits, tail)
    k, n = times.astype(np.float64), visits.astype(np.float64)
    return deviance_interval(k, n, mixture_regret(k, n) - np.log(delta))


def mean_interval(
    sums: FloatArray, visits: IntArray, delta: float, *, strict: bool
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the mean of draws from [0, 1] of which `visits` add up to `sums`, at 1 − δ."""
    n = visits.astype(np.float64)
    k = np.clip(sums, 0.0, n)
    regret = mixture_regret(k, n) if strict else np.full(n.shape, LN2)
    return deviance_interval(k, n, regret - math.log(delta))


def row_radius(
    times: IntArray, offsets: IntArray, support: IntArray | int, delta: float, *, strict: bool
) -> FloatArray:
    """Returns the L1 distance [K] between row and frequencies, at 1 − δ each; at most 2.

    A row may have `support` states, one number for all or one for each [K].
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


def clopper_pearson_low(times: IntArray, visits: IntArray, tail: FloatArray) -> FloatArray:
    """The p at which `times` or more of `visits` have the chance `tail`; 0 where that is certain.

    P(X ≥ k) = I_p(k, n − k + 1). The upper end for k is 1 minus the lower end for n − k.
    """
    some = times > 0
    low = np.zeros(times.shape)
    low[some] = betaincinv(times[some], visits[some] - times[some] + 1.0, tail[some])
    return low * (1 - WIDENED)


def deviance_interval(
    k: FloatArray, n: FloatArray, allowed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns all p with n·kl(k/n, p) ≤ allowed; [0, 1] where n is 0."""
    return deviance_low(k, n, allowed), 1.0 - deviance_low(n - k, n, allowed)


def deviance_low(k: FloatArray, n: FloatArray, allowed: FloatArray) -> FloatArray:
    """The smallest p with k ln(p̂/p) + (n−k) ln((1−p̂)/(1−p)) ≤ allowed, p̂ = k/n; from below.

    In x = ln(p/p̂) the left side is convex and falls, so Newton's steps from where it is too large
    stay there, up to rounding. The first x is where the first term alone is too large: the second
    is at least (n−k) ln(1−p̂).
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


def mixture_regret(k: FloatArray, n: FloatArray) -> FloatArray:
    """max_p ln p^k (1−p)^(n−k) − ln B(k+½, n−k+½) + ln B(½, ½), and what it may be off."""
    share = k / np.maximum(n, 1.0)
    best = xlogy(k, share) + xlogy(n - k, 1.0 - share)
    regret: FloatArray = best - betaln(k + 0.5, n - k + 0.5) + math.log(math.pi)
    return regret + rounding(n)


def row_regret(times: IntArray, offsets: IntArray, support: IntArray) -> FloatArray:
    """Computes `mixture_regret` of rows [K], with Dirichlet(½, …, ½) over `support` [K] states.

    ln B(k + ½) − ln B(½) = Σ (lnΓ(k+½) − lnΓ(½)) − lnΓ(n + m/2) + lnΓ(m/2): states that were never
    seen add nothing.
    """
    n = arrays.run_sums(times, offsets).astype(np.float64)
    share = times / np.maximum(n[arrays.run_owners(offsets)], 1.0)
    terms = xlogy(times, share) - gammaln(times + 0.5) + 0.5 * math.log(math.pi)
    whole = gammaln(n + support / 2) - gammaln(support / 2)
    regret: FloatArray = arrays.run_sums(terms, offsets) + whole + rounding(n + support)
    return regret


def rounding(n: FloatArray) -> FloatArray:
    """Bounds the rounding in sums and differences of terms up to n ln n."""
    error: FloatArray = 2.0**-47 * n * np.log(n + 2.0)
    return error
