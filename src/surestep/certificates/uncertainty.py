"""From counts to a set that contains the true MDP with probability 1 − δ.

δ is shared evenly among what is not known: the row of every pair that does not end the episode, its
mean reward unless rewards are known, and the start distribution unless it is known. A row's share
is divided again among all its |S| states, or the |S| − 1 nodes of its tree. Where the problem says
to which m states a pair may lead, these m count instead, and a row with one is known. So all levels
are fixed before the data; what the data happens to show decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray
from surestep.certificates.confidence import (
    MOST_VISITS,
    chance_interval,
    mean_interval,
    row_radius,
)
from surestep.certificates.refuting import check_reward_bounds
from surestep.errors import CertificateRefused
from surestep.model.counts import Counts
from surestep.model.problem import Problem
from surestep.model.statements import Statement
from surestep.model.successors import Successors
from surestep.planning.rectangular import (
    Earnings,
    IntervalRows,
    L1Rows,
    RectangularSet,
    SetRows,
    SupportTrees,
    TreeRows,
)

SetKind = Literal["interval", "l1", "two-successor"]

SMALLEST_LEVEL = 1e-100  # below 1e-105, SciPy's inverse beta function is no number at times
REWARD_SLACK = 1e-9  # of the range: what adding up rewards may be off


class SetTerms(NamedTuple):
    """Settings of the set of MDPs: its kind, its δ, and what is known of rewards and starts."""

    kind: SetKind
    strict: bool
    delta: float
    reward_range: tuple[float, float] | None
    known_start: bool


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The set: models around the counts, and start distributions; and how δ was shared."""

    models: RectangularSet
    starts: SetRows | None  # one row; None where the start distribution is known
    initial: FloatArray  # [S] how episodes started in the data
    parts: int  # how many rows, rewards and start distributions share δ

    def least_start(self, value: FloatArray) -> float:
        """min over start distributions of Σ ι(s) v(s)."""
        if self.starts is None:
            return float(self.initial @ value)
        one, none = np.ones(1), np.zeros(1)
        stored = np.zeros(np.count_nonzero(self.initial))
        return float(self.starts.worst(Earnings(stored, none, none), one, value).q[0])


class Observed(NamedTuple):
    """The counts of each row's successors, which rise, and how many states it may lead to."""

    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    times: IntArray  # [T]
    ends: BoolArray  # [K] pairs that end the episode
    sizes: IntArray  # [K]
    closed: bool  # the stored successors are all that may come

    @classmethod
    def of(cls, counts: Counts, ends: BoolArray, support: Successors | None) -> Observed:
        """Returns the rows of the counts, over all states or over the given successors."""
        if support is not None:
            times = support.times(counts)
            return cls(support.offsets, support.successor, times, ends, support.sizes, True)
        sizes = np.full(ends.size, counts.pairs.num_states)
        return cls(counts.offsets, counts.successor, counts.times, ends, sizes, False)


def uncertainty_of(problem: Problem, terms: SetTerms) -> Uncertainty:
    """Returns the set of all MDPs that the counts leave possible at 1 − δ."""
    counts = sorted_counts(problem.counts)
    ends = counts.terminal[counts.pairs.state]
    refuse_unusable(problem, ends, terms)
    observed = Observed.of(counts, ends, problem.support)
    unknown_rows = int(np.count_nonzero(~ends & (observed.sizes > 1)))
    unknown_rewards = 0 if counts.rewards.known else int(np.count_nonzero(~ends))
    parts = unknown_rows + unknown_rewards + (0 if terms.known_start else 1)
    share = terms.delta / max(parts, 1)
    size = counts.pairs.num_states
    smallest = SMALLEST_LEVEL * size * max(parts, 1)
    common.check_delta(terms.delta, f"the {parts} parts that share it", smallest)
    low, high = (
        over_support(earned, counts, problem.support)
        for earned in earnings(counts, ends, share, terms)
    )
    models = RectangularSet(
        counts.pairs,
        np.full(counts.pairs.num_pairs, problem.single_discount),
        set_rows(observed, size, share, terms),
        low,
        high,
    )
    starts = None
    if not terms.known_start:
        begun = np.flatnonzero(counts.starts).astype(np.int32)
        one_row, goes_on = np.array([0, begun.size]), np.zeros(1, np.bool_)
        every = np.array([size])
        started = Observed(one_row, begun, counts.starts[begun], goes_on, every, closed=False)
        starts = set_rows(started, size, share, terms)
    return Uncertainty(models, starts, counts.starts / counts.starts.sum(), parts)


def set_rows(observed: Observed, num_states: int, share: float, terms: SetTerms) -> SetRows:
    """Sets of rows that each contain the true one with probability 1 − share."""
    offsets, successor, times, ends, sizes, closed = observed
    visits, owner = arrays.run_sums(times, offsets), arrays.run_owners(offsets)
    if terms.kind == "l1":
        radius = row_radius(times, offsets, sizes, share, strict=terms.strict)
        seen = visits > 0
        # Where nothing was seen the center is any row: the radius is 2.
        center = np.where(
            seen[owner],
            times / np.maximum(visits, 1)[owner],
            1.0 / np.maximum(arrays.run_lengths(offsets), 1)[owner],
        )
        return L1Rows.of(offsets, successor, center, np.where(seen, radius, 2.0), ends, closed)
    if terms.kind == "two-successor":
        trees = SupportTrees.of(offsets, successor, ends, num_states, closed=closed)
        passed, left = trees.counts(times)
        level = (share / np.maximum(sizes - 1, 1))[arrays.run_owners(trees.node_offsets)]
        return TreeRows(trees, *chance_interval(left, passed, level, strict=terms.strict))
    level = share / np.maximum(sizes, 1)
    low, high = chance_interval(times, visits[owner], level[owner], strict=terms.strict)
    _, elsewhere = chance_interval(np.zeros_like(visits), visits, level, strict=terms.strict)
    return IntervalRows.of(offsets, successor, low, high, elsewhere, ends, sizes)


def over_support(earned: Earnings, counts: Counts, support: Successors | None) -> Earnings:
    """Returns the earnings of a step at the given successors, not those that the counts store."""
    if support is None:
        return earned
    place = support.places(counts)
    stored = earned.outside[arrays.run_owners(support.offsets)]
    stored[place[place >= 0]] = earned.stored[place >= 0]
    return earned._replace(stored=stored)


def earnings(
    counts: Counts, ends: BoolArray, share: float, terms: SetTerms
) -> tuple[Earnings, Earnings]:
    """Returns the least and the most that each step may earn.

    Sums of rewards say something about the mean reward of a pair, which then does not depend on the
    successor. A known reward does; where none is stored, the range is all that is known.
    """
    rewards, owner = counts.rewards, arrays.run_owners(counts.offsets)
    ending = counts.unseen_reward()
    low, high = terms.reward_range or (0.0, 0.0)  # without a range, every reward is stored
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


def refuse_unusable(problem: Problem, ends: BoolArray, terms: SetTerms) -> None:
    """Refuses counts that the set cannot be built from: too many, or with rewards left open."""
    counts = problem.counts
    if counts.visits.sum() > MOST_VISITS or counts.starts.sum() > MOST_VISITS:
        raise CertificateRefused(Statement("too-many-visits", {"most": MOST_VISITS}))
    pairs, rewards = counts.pairs, counts.rewards
    stored, sizes = problem.stored_sizes(), problem.support_sizes()
    if terms.reward_range is not None:
        check_reward_bounds(counts, terms.reward_range)
    elif not rewards.known:
        raise CertificateRefused(Statement("rewards-not-known"))
    elif rewards.per == "transition":
        common.refuse_where(
            "rewards-partly-known",
            ~ends & (stored < sizes),
            "pair",
            lambda k: {"pair": pairs.pair_name(k), "known": stored[k], "all": sizes[k]},
        )


def sorted_counts(counts: Counts) -> Counts:
    """Returns the counts with the successors of each pair in rising order, as trees need them."""
    owner = arrays.run_owners(counts.offsets)
    order = np.lexsort((counts.successor, owner))
    if (order[1:] > order[:-1]).all():
        return counts
    rewards = counts.rewards
    if rewards.per == "transition":
        rewards = rewards.changed(lambda values: values[order])
    successor, times = counts.successor[order], counts.times[order]
    return replace(counts, successor=successor, times=times, rewards=rewards)
