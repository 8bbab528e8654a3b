"""The beta bound with its interval centred where the estimate is.

The paper's β radius is the width of a credible interval for the chance p of one split, as if the
estimate p̂ = k/n stood in its middle. It does not; what counts is the larger of the two sides. With
[low, high] the interval at level δ_T, the L1 error of the split is

    2 |p̂ − p| ≤ error(k, n) = 2 max(p̂ − low, high − p̂)

whenever the interval holds p. For `BetaCorrected` it is Clopper and Pearson's, which holds p with
probability 1 − δ_T at least, whatever p is, if n is fixed. For `BetaCorrectedPosterior` it is the
central credible interval under a uniform prior, which holds p with posterior probability 1 − δ_T.

**Before the data** only n is known, and `radius` bounds the maximum of error(k, n) over k. Zubkov
and Serov (2013) prove P(X ≤ k) ≤ Φ(−√(2n·kl((k+1)/n, p))) for X ~ Bin(n, p) and (k+1)/n < p, and
kl(q, p) ≥ 2(p − q)². An upper end of Clopper and Pearson is where P(X ≤ k) = δ_T/2, so with
z = Φ⁻¹(1 − δ_T/2) it lies at most z/(2√n) above (k+1)/n, that is z/(2√n) + 1/n above p̂; lower ends
mirror upper ones. Hoeffding's inequality gives √(ln(2/δ_T)/(2n)) as well. A posterior end is where
P(X ≤ k) = δ_T/2 for n + 1 draws, so it lies at most z/(2√(n+1)) above (k+1)/(n+1), which lies at
most 1/(n+1) above p̂. Both radii fall with n, so they cover all larger n too.

**Rows with more than two successors** are trees of splits, and the errors add up along the tree.
Replace the estimated splits by the true ones, from the leaves upwards: each step changes the row by
P̂(reach) times the error of that split, so that by the triangle inequality

    ‖P̂ − P‖₁ ≤ Σ over splits of P̂(reach) · error(k, n) at the split's own counts.

A split that was never reached adds nothing. Given how often a split was reached, its own outcomes
are independent draws; so m successors, m − 1 splits at δ/(m − 1) each, hold at 1 − δ together.

So a loss ζ from `radius` is proved where every pair that π_b or π_I uses has more than N∧ visits,
its row has at most two successors, known before the data, and rewards are known. Certificates take
the errors of the rows themselves, which may have any number of successors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri_exp

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.bounds.radius import LN2, Coverage, ProblemSize, read_visits, refuse_branching
from surestep.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class BetaCorrected:
    """Clopper and Pearson's interval for each split: at a fixed number of visits, for every p."""

    covers: ClassVar = Coverage.SPLIT
    standing: ClassVar = "proved"
    bootstraps: ClassVar = True
    prior: ClassVar = 0  # of its interval, see `split_error`

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """min(z/√N + 2/N, √(2 ln(2/δ_T)/N), 2), with δ_T = δ / (|S|²|A|²)."""
        refuse_branching(size)
        n, log_half = read_visits(visits), size.log_split_share - LN2
        normal = -ndtri_exp(log_half) / np.sqrt(n) + 2.0 / n
        radius: FloatArray = np.minimum(np.minimum(normal, np.sqrt(-2.0 * log_half / n)), 2.0)
        return radius

    def loss_factor(self, discount: float) -> float:
        """4/(1 − γ)."""
        return 4 / (1 - discount)

    def row_error(self, times: object, delta: float) -> FloatArray:
        """Bounds the L1 error of rows with these counts [..., m] of all successors, at 1 − δ."""
        return dense_row_errors(self, times, delta)


@dataclass(frozen=True, slots=True)
class BetaCorrectedPosterior:
    """The central credible interval of each split under a uniform prior."""

    covers: ClassVar = Coverage.SPLIT
    standing: ClassVar = "posterior"
    bootstraps: ClassVar = True
    prior: ClassVar = 1

    def radius(self, visits: object, size: ProblemSize) -> FloatArray:
        """min(z/√(N+1) + 2/(N+1), 2), with δ_T = δ / (|S|²|A|²)."""
        refuse_branching(size)
        n, log_half = read_visits(visits), size.log_split_share - LN2
        normal = -ndtri_exp(log_half) / np.sqrt(n + 1.0) + 2.0 / (n + 1.0)
        radius: FloatArray = np.minimum(normal, 2.0)
        return radius

    def loss_factor(self, discount: float) -> float:
        """4/(1 − γ)."""
        return 4 / (1 - discount)

    def row_error(self, times: object, delta: float) -> FloatArray:
        """Bounds the L1 error of rows with these counts [..., m] of all successors, at 1 − δ."""
        return dense_row_errors(self, times, delta)


def split_error(
    times: IntArray, visits: IntArray, share: FloatArray | float, prior: int
) -> FloatArray:
    """2 max(p̂ − low, high − p̂) for `times` of `visits` ≥ 1 visits, at 1 − share.

    The low end is a quantile of Beta(k + prior, n − k + 1).

    With a prior of 0 that is Clopper and Pearson's end, with 1 the posterior's. The high end is 1
    minus the low end for n − k.
    """
    tail = np.broadcast_to(np.asarray(share) / 2, times.shape)

    def below(k: IntArray) -> FloatArray:
        low, some = np.zeros(k.shape), k + prior > 0
        low[some] = betaincinv(k[some] + prior, visits[some] - k[some] + 1, tail[some])
        distance: FloatArray = k / visits - low
        return distance

    side: FloatArray = 2.0 * np.maximum(below(times), below(visits - times))
    return side


class RowCounts(NamedTuple):
    """The counts of each row's successors; those never seen may be left out."""

    offsets: IntArray  # [K+1]
    place: IntArray  # [T] from 0 to support − 1, rising in each row
    times: IntArray  # [T]
    support: IntArray  # [K] how many successors each row may have


def row_errors(
    bound: BetaCorrected | BetaCorrectedPosterior, rows: RowCounts, delta: float
) -> FloatArray:
    """Σ P̂(reach) · error over the splits of each row [K]; 2 for a row that was never seen.

    Each holds at 1 − δ. The tree of a row halves blocks whose size is a power of 2, in the order of
    the places. A split of which one side holds no successor at all is none. Only splits that were
    reached are looked at, level by level.
    """
    seen = rows.times > 0
    row, node, passed = arrays.run_owners(rows.offsets)[seen], rows.place[seen], rows.times[seen]
    total, support = arrays.run_sums(rows.times, rows.offsets), rows.support
    share = delta / np.maximum(support - 1, 1)
    error = np.where((total == 0) & (support > 1), 2.0, 0.0)
    for level in range((int(support.max(initial=1)) - 1).bit_length()):
        to_left, node = np.where(node % 2 == 0, passed, 0), node // 2
        first = np.ones(row.size, np.bool_)
        first[1:] = (row[1:] != row[:-1]) | (node[1:] != node[:-1])
        groups = np.append(np.flatnonzero(first), row.size)
        row, node = row[first], node[first]
        passed, left = arrays.run_sums(passed, groups), arrays.run_sums(to_left, groups)
        is_split = (2 * node + 1) * 2**level < support[row]
        here, n = row[is_split], passed[is_split]
        weighted = n * split_error(left[is_split], n, share[here], bound.prior)
        error += np.bincount(here, weighted, total.size) / np.maximum(total, 1)
    return np.minimum(error, 2.0)


def dense_row_errors(
    bound: BetaCorrected | BetaCorrectedPosterior, times: object, delta: float
) -> FloatArray:
    """Returns the errors of rows [..., m] that list the counts of all their successors."""
    counts = arrays.whole_numbers("counts", times, None, InvalidParameter)
    if counts.ndim == 0 or counts.shape[-1] == 0 or (counts < 0).any():
        raise InvalidParameter("counts of a row are empty or negative, expected 0 or more each")
    if not (arrays.is_number(delta) and 0 < delta < 1):
        raise InvalidParameter(f"delta is {delta!r}, expected more than 0 and less than 1")
    *shape, support = counts.shape
    number = math.prod(shape)
    rows = RowCounts(
        np.arange(number + 1) * support,
        np.tile(np.arange(support), number),
        counts.ravel(),
        np.full(number, support),
    )
    return row_errors(bound, rows, float(delta)).reshape(shape)
