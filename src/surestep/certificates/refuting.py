"""Compares bounds of rewards, values and returns with the data; refuses bounds that they refute."""

from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import refused
from surestep.certificates.episodes import over_at_last, with_ends
from surestep.errors import RefutedBounds
from surestep.kernels.runs import discounted_returns
from surestep.model import Counts, FactoredProblem, Problem
from surestep.model.log import DecisionLog, Excerpt, least_and_greatest, row_name

SAME = 1e-9  # relative to the larger bound: what adding up rewards may be off


def check_reward_bounds(counts: Counts, bounds: tuple[float, float]) -> None:
    """Refuses bounds that a known or observed reward exceeds; of sums, the mean is compared."""
    low, high = bounds
    least, greatest = counts.observed_rewards()
    slack = SAME * max(abs(low), abs(high))
    below = least < low - slack
    single = counts.rewards.known or counts.rewards.least is not None
    beyond = (counts.observed > 0) & (below | (greatest > high + slack))
    for i, others in arrays.first_where(beyond, counts.rewards.per):
        what = f"{'a' if single else 'the mean'} reward of {counts.reward_name(i)}"
        reward = least[i] if below[i] else greatest[i]
        raise refused(
            "rewards-beyond-bounds",
            RefutedBounds,
            what=what,
            reward=reward,
            low=low,
            high=high,
            others=others,
        )


def check_values(problem: Problem, *, ends: bool = True) -> None:
    """Refuses value bounds that contradict the reward of a visited pair, or the worth of an end.

    V = r + γ V' with V and V' within the bounds, so V_min − γ V_max ≤ r ≤ V_max − γ V_min. Here r
    is the true mean; where rewards vary, nobody knows it for certain, and nothing is refused.
    """
    counts = with_ends(problem)
    low, high = problem.value_bounds
    pairs = counts.pairs
    slack = SAME * max(abs(low), abs(high), SAME)
    ending = counts.unseen_reward()
    earned = list[tuple[Any, ...]]()
    if always_alike(counts, slack):
        step = low - problem.single_discount * high, high - problem.single_discount * low
        seen = counts.observed > 0
        per_pair = counts.rewards.per == "pair"
        owner = np.arange(pairs.num_pairs) if per_pair else arrays.run_owners(counts.offsets)
        means = least_and_greatest(counts.means()[seen], owner[seen], pairs.num_pairs)
        earned = [(counts.visits > 0, *means, *step)]
    earned.append((counts.terminal[pairs.state] & ends, ending, ending, low, high))
    for some, least, most, lowest, highest in earned:
        beyond = some & ((least > highest + slack) | (most < lowest - slack))
        for k, others in arrays.first_where(beyond, "pair"):
            raise refused(
                "earnings-beyond-values",
                RefutedBounds,
                pair=pairs.pair_name(k),
                least=least[k],
                most=most[k],
                low=low,
                high=high,
                allowed_low=lowest,
                allowed_high=highest,
                others=others,
            )


def always_alike(counts: Counts, slack: float) -> bool:
    """Tells whether every pair or transition is known to earn the same each time.

    Rewards that differ by less than `slack`, or in the last digits alone, count as the same. Where
    one varies, others may vary too that were seen too seldom to show it, so none counts as exact.
    Where only sums are known, any may vary.
    """
    least, greatest = counts.rewards.least, counts.rewards.greatest
    if least is None or greatest is None:
        return counts.rewards.known
    rounding = np.maximum(SAME * np.maximum(np.abs(least), np.abs(greatest)), slack)
    return not bool((greatest - least > rounding).any())


def check_returns(
    problem: Problem, log: DecisionLog, bounds: tuple[float, float], *, rests: bool = False
) -> None:
    """Refuses bounds of returns that an episode exceeds, if it was recorded until it was over.

    With `rests`, the return from every later step on is compared as well; there 0 is always
    possible.
    """
    if isinstance(log, Excerpt):  # no return is known
        return
    offsets = log.episode_offsets
    earned = discounted_returns(offsets, log.reward, problem.single_discount)
    later = ~arrays.marked(offsets[:-1], log.num_steps)
    over = np.repeat(over_at_last(log), arrays.run_lengths(offsets)) & (rests | ~later)
    refuse_beyond(offsets, np.where(over, earned, np.nan), bounds, 0.0)


def check_node_returns(problem: FactoredProblem) -> None:
    """Refuses bounds of returns that an episode exceeds from any step on, whatever follows a cut.

    After a cut at most the greatest return may follow, at least the least; 0 is always possible.
    """
    log, discount = problem.log, problem.discount
    lengths = arrays.run_lengths(log.offsets)
    steps = arrays.ranges(0, lengths)
    within = steps < (problem.horizon or np.inf)
    earned = discounted_returns(log.offsets, np.where(within, log.earned, 0.0), discount)
    over = log.ended[log.offsets[1:] - 1] | (lengths >= (problem.horizon or np.inf))
    left = np.repeat(~over, lengths) * discount ** (np.repeat(lengths, lengths) - steps)
    refuse_beyond(log.offsets, earned, problem.return_bounds, left)


def refuse_beyond(
    offsets: arrays.IntArray,
    earned: arrays.FloatArray,
    bounds: tuple[float, float],
    left: arrays.FloatArray | float,
) -> None:
    """Refuses bounds of returns that what is earned from a step on exceeds; NaN is not compared.

    What follows counts with the weight `left`.
    """
    low, high = bounds
    slack = SAME * max(abs(low), abs(high), SAME)
    later = ~arrays.marked(offsets[:-1], earned.size)
    least, most = np.where(later, min(low, 0.0), low), np.where(later, max(high, 0.0), high)
    below = earned + left * max(high, 0.0) < least - slack
    beyond = below | (earned + left * min(low, 0.0) > most + slack)
    for i, others in arrays.first_where(beyond, "step"):
        raise refused(
            "returns-beyond-bounds",
            RefutedBounds,
            row=row_name(offsets, i),
            earned=earned[i],
            low=least[i],
            high=most[i],
            others=others,
        )
