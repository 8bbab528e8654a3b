"""Bounds the mean return of the logged episodes themselves from above ("returns of practice").

Stitched rollouts of π_b show the worth of that policy. Where nobody recorded π_b, it is estimated,
and people may have acted otherwise. The episodes of fold 2 show how they really acted.

**The bounded mean.** Let episodes 1, …, n be those that *begin* in fold 2, in the order of their
starts, and G_e the return of episode e. Let μ_e = E[G_e | fold 1, Y_1, …, Y_{e−1}], with Y as
below, and ρ_b = (μ_1 + … + μ_n)/n. If people acted alike in all episodes, all μ_e are ρ(π_b),
whatever π_b looked at. If they learnt on the way, ρ_b is the mean over all that they did.

**The paid return.** Y_e = G_e where an episode was recorded until it was over. Where a clock cut it
after t steps, Y_e is its return so far plus γ^t times the upper bound of values, and no more than
h, the greatest return: given the record, the mean of the rest is a value. Where the reason of the
end is not known, or the episode is pending, Y_e = h. So
E[Y_e | fold 1, Y_1, …, Y_{e−1}] ≥ μ_e, and Y_e ≤ h.

**Theorem.** Let c and λ > 0 come from fold 1, with λ (h − c) < 1, and K = Π_e (1 + λ (c − Y_e)).
With m_e the conditional mean of Y_e, Π_{e ≤ t} (1 + λ (c − Y_e)) / (1 + λ (c − m_e)) is a
nonnegative martingale that starts at 1, as every factor is above 0. So K ≥ (1/δ) Π_e (1 + λ (c −
m_e)) has a chance of at most δ (Markov; and by Ville's inequality for any n). Numbers above 0 have
a product of at most their mean to the power n, so that this is at most (1 + λ (c − m̄))^n, with m̄
the mean of the m_e. Hence, but for a chance of δ, 1 + λ (c − m̄) > (δK)^{1/n}, which is

    ρ_b ≤ m̄ < U = c + (1 − (δK)^{1/n}) / λ. ∎

The capital at the end counts; the largest on the way would be about the first episodes only. The
bound is not on c itself, so no means have to be tried one by one, and the μ_e may differ.

**The error of an estimate.** Beliefs, and intervals for readers, compare with π̂_b, and count its
error. By the visits behind it, π_b(·|s) has a Dirichlet distribution with a prior of
weight 1, centred at π̂_b. To the first order, an action that is taken more often by x changes ρ(π_b)
by x d(s) Q(s,a), with the visits d and the values Q of π̂_b in the model of the data.

*Not* valid are: taking whole episodes alone (that selects by length); leaving out lost or pending
ones; multiplying K with the capital of rounds, which read the same rows; fixing c or λ by fold 2.
"""

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.kernels.runs import discounted_returns
from surestep.model import Counts, Pairs, Problem
from surestep.model.log import UNKNOWN, DecisionLog
from surestep.planning.evaluation import evaluate, occupancy, q_values

AT_ONCE = 2**22  # numbers that are drawn at a time
BEHAVIOR = 5  # beside a seed: the numbers that draw π_b


def paid_returns(problem: Problem, log: DecisionLog, high: float) -> arrays.FloatArray:
    """Returns Y of every episode that begins in the log; `high` is the greatest return."""
    offsets = log.episode_offsets
    last = log.episode_offsets[1:] - 1
    earned = discounted_returns(offsets, log.reward, problem.single_discount)
    at_end = np.maximum.reduceat(problem.counts.unseen_reward(), problem.counts.pairs.offsets[:-1])
    over = log.terminated[last]
    led = log.next_state[last]
    left = problem.single_discount ** arrays.run_lengths(offsets)
    paid = earned[offsets[:-1]] + left * np.where(over, at_end[led], problem.value_bounds[1])
    paid = np.where(over, paid, np.minimum(paid, high))
    paid = np.where(led == UNKNOWN, high, paid)
    return paid if log.continued is None else paid[~log.continued]


class BehaviorDoubt(NamedTuple):
    """The distribution of ρ(π_b) around ρ(π̂_b), to the first order."""

    pairs: Pairs
    alpha: arrays.FloatArray  # [K] of the Dirichlet distributions
    mean: arrays.FloatArray  # [K] of them
    worth: arrays.FloatArray  # [K] d(s) Q(s,a)

    @classmethod
    def of(cls, problem: Problem, counts: Counts) -> "BehaviorDoubt":
        """Returns the distribution in the model of a problem, by the counts behind π̂_b."""
        model = problem.estimate()
        pairs = problem.counts.pairs
        often = arrays.run_sums(occupancy(model, problem.behavior), pairs.offsets)[pairs.state]
        return cls.about(often * q_values(model, evaluate(model, problem.behavior)), counts)

    @classmethod
    def about(cls, worth: arrays.FloatArray, counts: Counts) -> "BehaviorDoubt":
        """Returns the distribution where Σ_s d(s) Q(s,a) of each pair [K] is known."""
        pairs = counts.pairs
        alpha = counts.visits + 1 / arrays.run_lengths(pairs.offsets)[pairs.state]
        mean = alpha / arrays.run_sums(alpha, pairs.offsets)[pairs.state]
        return cls(pairs, alpha, mean, worth)

    def variance(self) -> float:
        """Returns the variance of ρ(π_b)."""
        offsets = self.pairs.offsets
        middle = arrays.run_sums(self.mean * self.worth, offsets)
        squares = self.mean * (self.worth - middle[self.pairs.state]) ** 2
        total = arrays.run_sums(self.alpha, offsets)
        return float((arrays.run_sums(squares, offsets) / (total + 1)).sum())

    def draws(self, number: int, seed: int) -> arrays.FloatArray:
        """Draws `number` values of ρ(π_b) − ρ(π̂_b); equal seeds give all signals the same π_b."""
        rng = np.random.default_rng((seed, BEHAVIOR))
        drawn = np.empty(number)
        several = max(AT_ONCE // self.alpha.size, 1)
        for first in range(0, number, several):
            pieces = rng.standard_gamma(self.alpha, (min(several, number - first), self.alpha.size))
            whole = np.add.reduceat(pieces, self.pairs.offsets[:-1], axis=1)[:, self.pairs.state]
            chances = pieces / np.maximum(whole, np.finfo(float).tiny)
            drawn[first : first + several] = (chances - self.mean) @ self.worth
        return drawn
