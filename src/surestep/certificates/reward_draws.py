"""Rewards in a posterior over models: known, seen, or never seen."""

from typing import Literal, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import refused, statement_if
from surestep.certificates.episodes import with_ends
from surestep.certificates.refuting import SAME, check_reward_bounds, check_values
from surestep.kernels.posterior import FIRST, LOW, REACH, SECOND, WEIGHT, RewardDraws
from surestep.model import Counts, Problem, Statement
from surestep.model.known import Ranges

RewardModel = Literal["deterministic", "bounded"]

LEAST_OTHERS, MOST_OTHERS = 1.0, 100.0  # visits that the others of a group may weigh
SHOWN = 5.0  # unusual rewards that noise would have shown on average: none comes once in 150 times


def reward_draws(problem: Problem, model: RewardModel, ranges: Ranges | None) -> RewardDraws:
    """Checks that data and settings fit together; returns the rewards of drawn models."""
    check_values(problem)
    counts = problem.counts
    rewards = counts.rewards
    per_pair = rewards.per == "pair"
    bounds = () if ranges is None else ranges.rewards
    if all_known(problem):
        earned = rewards.values
        if per_pair:  # known ends of episodes have no row
            earned = np.where(counts.terminal[counts.pairs.state], np.nan, earned)
        return RewardDraws.known(earned, per_pair, counts.pairs.num_pairs)
    if bounds and not rewards.known:
        check_reward_bounds(counts, bounds)
    if model == "deterministic" and not rewards.known:
        check_deterministic(problem)
    mean = counts.means()
    observed = (counts.observed > 0) | rewards.known
    if not observed.any() and not bounds:
        raise refused("no-reward-observed")
    seen = np.zeros((mean.size, 5))
    seen[:, LOW] = np.where(observed, mean, np.nan)
    kin = kin_of(counts, mean, observed)
    others = 0.0
    if model == "bounded" and not rewards.known:
        others = add_noise(problem, seen, observed, kin, bounds)
    atoms = atoms_of(seen[observed], kin.of_seen[observed], kin.number, others, bounds)
    draws = RewardDraws(per_pair, kin.of_pair, seen, *atoms, np.array([others]))
    if ranges is None or rewards.known:
        return draws
    least, greatest = (np.where(counts.terminal, end, on) for on, end in zip(*ranges, strict=True))
    return draws._replace(least=least, greatest=greatest)


class Kin(NamedTuple):
    """Groups of rewards that are likely to be alike."""

    of_pair: arrays.IntArray  # [K]; −1 where transitions to the same state are of one group
    of_seen: arrays.IntArray  # [K] or [T]
    number: int  # of groups


def kin_of(counts: Counts, mean: arrays.FloatArray, observed: arrays.BoolArray) -> Kin:
    """Returns the grouping in which the observed means predict each other best.

    Transitions are grouped by successor, by pair, or all together; pairs by state, by action, or
    all together. The prediction of a mean is the average of the others in its group, to which the
    mean of all others is added as one more.
    """
    pairs = counts.pairs
    together = Kin(np.zeros(pairs.num_pairs, np.int64), np.zeros(mean.size, np.int64), 1)
    if counts.rewards.per == "pair":
        state, action = pairs.state.astype(np.int64), pairs.action.astype(np.int64)
        candidates = [
            Kin(state, state, pairs.num_states),
            Kin(action, action, pairs.num_actions),
        ]
    else:
        pair, successor = arrays.run_owners(counts.offsets), counts.successor.astype(np.int64)
        candidates = [
            Kin(np.full(pairs.num_pairs, -1), successor, pairs.num_states),
            Kin(np.arange(pairs.num_pairs), pair, pairs.num_pairs),
        ]
    seen = mean[observed] / largest_of(mean[observed])  # squares stay finite
    rest = (seen.sum() - seen) / max(seen.size - 1, 1)

    def error(kin: Kin) -> float:
        group = kin.of_seen[observed]
        sums = np.bincount(group, seen, kin.number)[group]
        return float(np.sum((seen - (sums - seen + rest) / np.bincount(group)[group]) ** 2))

    return min([*candidates, together], key=error)


def add_noise(
    problem: Problem,
    seen: arrays.FloatArray,
    observed: arrays.BoolArray,
    kin: Kin,
    bounds: tuple[float, ...],
) -> float:
    """Writes the laws of mean rewards, which are noisy, into `seen`; returns the weight of others.

    Among all n rewards between least and greatest with a given mean, those vary most that are only
    at the two ends: x n times the greatest, (1 − x) n times the least. Their Bayesian bootstrap has
    the mean least + (greatest − least) · Beta(x n, (1 − x) n).
    """
    counts = with_ends(problem)
    visits = counts.observed
    least, greatest = counts.observed_rewards()
    if counts.rewards.least is None:
        least, greatest = (np.full(least.size, end) for end in bounds)
    mean = seen[:, LOW].copy()
    reach = greatest - least
    varied = observed & (reach > SAME * largest_of(least, greatest))
    share = np.zeros(mean.size)
    share[varied] = np.clip((mean[varied] - least[varied]) / reach[varied], 0.0, 1.0)
    noisy = observed & ~calm_groups(kin, visits, np.minimum(share, 1 - share))[kin.of_seen]
    between = noisy & (share > 0) & (share < 1)
    seen[noisy, WEIGHT] = visits[noisy]
    seen[between, LOW], seen[between, REACH] = least[between], reach[between]
    seen[between, FIRST] = (share * visits)[between]
    seen[between, SECOND] = ((1 - share) * visits)[between]
    unit = largest_of(least, greatest)  # squares stay finite
    spread = (share * (1 - share) * (reach / unit) ** 2)[noisy]
    return weight_of_others(mean[noisy] / unit, spread, visits[noisy], kin.of_seen[noisy])


def weight_of_others(
    mean: arrays.FloatArray,
    spread: arrays.FloatArray,
    visits: arrays.IntArray,
    group: arrays.IntArray,
) -> float:
    """Returns κ = σ²/τ²: so many visits tell as much about a mean as the others of its group.

    σ² is the variance of single rewards, τ² that of the true means in a group, by the moments of a
    one-way layout: Σ n (m − M)² has the mean (T − G) σ² + Σ_g (N_g − Σ n²/N_g) τ², where M is the
    mean of the group, and N_g its visits.
    """
    total = np.bincount(group, visits)
    present = total > 0
    center = np.bincount(group, visits * mean) / np.maximum(total, 1)
    between = float(visits @ (mean - center[group]) ** 2)
    free = mean.size - int(present.sum())
    within = float(visits @ spread) / max(float((visits - 1).sum()), 1.0)
    squares = np.bincount(group, visits.astype(np.float64) ** 2)
    reached = float((total - squares / np.maximum(total, 1)).sum())
    excess = between - free * within
    if not excess * MOST_OTHERS > within * reached:
        return MOST_OTHERS
    return max(LEAST_OTHERS, within * reached / excess)


def calm_groups(kin: Kin, visits: arrays.IntArray, minority: arrays.FloatArray) -> arrays.BoolArray:
    """Returns the groups [G] whose rewards never varied, although noise would have shown.

    `minority` is the share of visits with an unusual reward. At the rate of the groups that vary, a
    calm group should have shown at least `SHOWN` unusual rewards, and it showed none.
    """
    shown = np.bincount(kin.of_seen, visits, kin.number)
    unusual = np.bincount(kin.of_seen, visits * minority, kin.number)
    varied = unusual > 0
    rate = unusual.sum() / max(shown[varied].sum(), 1.0)
    calm: arrays.BoolArray = ~varied & (shown * rate >= SHOWN)
    return calm


def largest_of(*rewards: arrays.FloatArray) -> float:
    """Returns the largest magnitude of a reward, to compare rewards by; 1 where all are 0."""
    return max(float(np.abs(values).max(initial=0.0)) for values in rewards) or 1.0


def atoms_of(
    rows: arrays.FloatArray,
    group: arrays.IntArray,
    number: int,
    others: float,
    bounds: tuple[float, ...],
) -> tuple[arrays.IntArray, arrays.FloatArray]:
    """Returns the laws that unknown rewards are drawn from, by group; equal rows become one.

    A row has the weight n (1 + κ)/(n + κ): 1 for one visit, and 1 + κ where it is known. The two
    bounds, if given, belong to no group and have the weight of one visit together.
    """
    visits = np.where(rows[:, WEIGHT] > 0, rows[:, WEIGHT], np.inf)
    weight = (1 + others) / (1 + others / visits)
    keyed, place = np.unique(
        np.column_stack([group, rows[:, :WEIGHT]]), axis=0, return_inverse=True
    )
    atoms = np.column_stack([keyed[:, 1:], np.bincount(place.ravel(), weight, len(keyed))])
    ends = np.zeros((len(bounds), 5))
    ends[:, LOW], ends[:, WEIGHT] = bounds, 0.5
    owner = keyed[:, 0].astype(np.int64)
    return arrays.offsets_of(np.bincount(owner, minlength=number)), np.concatenate([atoms, ends])


def all_known(problem: Problem) -> bool:
    """Tells whether the reward of every transition that may come is known, seen or not."""
    counts = problem.counts
    if not counts.rewards.known or counts.rewards.per == "pair":
        return counts.rewards.known
    partial = problem.stored_sizes() < problem.support_sizes()
    return not partial[~counts.terminal[counts.pairs.state]].any()


def reward_statements(
    problem: Problem, model: RewardModel, ranges: Ranges | None, extreme: float
) -> tuple[Statement, ...]:
    """Returns the assumptions about rewards."""
    rewards = problem.counts.rewards
    if all_known(problem):
        return (Statement("rewards-known"),)
    per = {"per": rewards.per}
    if rewards.known:
        seen = Statement("rewards-given-known")
    elif model == "bounded":
        seen = Statement("rewards-bootstrapped", per)
    else:
        seen = Statement("rewards-never-vary", per)
    low, high = (None, None) if ranges is None else ranges.rewards
    return (
        seen,
        Statement("rewards-unseen-alike", per),
        *statement_if(ranges is not None, "reward-bounds-weighted", low=low, high=high),
        *statement_if(extreme > 0 and not rewards.known, "extremes-weighted", weight=extreme),
    )


def check_deterministic(problem: Problem) -> None:
    """Refuses counts, or a log, in which one transition (or pair) earned different rewards."""
    counts = with_ends(problem)
    least, greatest = counts.observed_rewards()
    vary = greatest - least > SAME * largest_of(least, greatest)
    for i, others in arrays.first_where(vary, counts.rewards.per):
        raise refused(
            "rewards-not-deterministic",
            what=counts.reward_name(i),
            least=least[i],
            most=greatest[i],
            others=others,
        )
