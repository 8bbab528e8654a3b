"""Computes intervals for advantages of actions, for changes, and for the gain, from logged steps.

Let V be the values of π_I, taken as known, and Y = r + γ V(s') what one step of a pair is worth.
The advantage of action a in state s is the mean of Y there, less the mean over the actions of π_b:

    A(s,a) = Σ_b c_b · m(s,b),  c_b = 1[b = a] − π_b(b|s).

Each mean m is taken over n logged steps and two imaginary ones, at the least and at the greatest Y
of the state. If all Y of the state are equal, those of the log are used, and if these are equal,
too, the bounds of all values: what was seen is not all that can be. So two equal steps leave doubt,
and a pair never tried may be anywhere between (for two outcomes, this is the interval of Agresti
and Coull). With the variances v and numbers n of all,

    A ± z · √(Σ_b c_b² v_b / n_b).

It is an approximation for readers, not a guarantee, and it ignores the uncertainty of V. With
c_b = π_I(b|s) − π_b(b|s), the same formula gives the worth of the whole change in a state.

**The gain.** With the discounted visits d_I, d_b of both policies in the model of the data, and
their values there, an error of the model at pair k moves the gain, to the first order, by that of
the mean of

    d_I(k) (r + γ V_I(s')) − d_b(k) (r + γ V_b(s')),

so the variances of these means add up over pairs. The starts of episodes add the variance of the
mean of V_I − V_b. An estimated π_b adds its own variance (`certificates.practice`).

**Lost cases.** The model leaves out a step without a known outcome, as if it had the outcomes of
other steps. At worst it ended with the least possible reward of an end, or went on to the
situation of least worth; at best it had the greatest. A pair with n known and l lost steps, which
are worth x in all, then has Q = (n (r + γ V) + x) / (n + l). So it earns a mean reward and goes on
with the discount γ n / (n + l).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from surestep._arrays import FloatArray, freeze, run_owners, run_sums
from surestep.certificates.practice import BehaviorDoubt
from surestep.model import Counts, DecisionLog, FiniteMDP, Policy, Problem
from surestep.model.log import UNKNOWN, least_and_greatest
from surestep.planning import evaluate, occupancy, performance

SMALLEST_TAIL = 1e-300  # for smaller tails, normal quantiles are infinite


Ends = tuple[FloatArray, FloatArray]


def advantage_intervals(problem: Problem, value: FloatArray, delta: float) -> Ends:
    """Returns the ends [K] of 1 − δ intervals for all advantages, from the data of the problem.

    `value` [S] has the values of π_I.
    """
    pairs = problem.counts.pairs
    behavior = problem.behavior.probability
    mean, doubt = step_means(problem, value)
    # Σ_b c_b² v_b/n_b = Σ_b π_b² v_b/n_b + (1 − 2π_a) v_a/n_a.
    usual = run_sums(behavior * mean, pairs.offsets)[pairs.state]
    total = run_sums(behavior**2 * doubt, pairs.offsets)[pairs.state] + (1 - 2 * behavior) * doubt
    return around(mean - usual, total, delta)


def change_intervals(problem: Problem, value: FloatArray, policy: Policy, delta: float) -> Ends:
    """Returns the ends [S] of intervals for the gain of one decision in each state that changes.

    All of them hold together with 1 − δ; in other states both ends are 0. `value` [S] has the
    values of the policy, which must not be chosen from the data of the problem.
    """
    offsets = problem.counts.pairs.offsets
    moved = policy.probability - problem.behavior.probability
    mean, doubt = step_means(problem, value)
    changed = run_sums(np.abs(moved), offsets) > 0
    share = delta / max(int(np.count_nonzero(changed)), 1)
    return around(run_sums(moved * mean, offsets), run_sums(moved**2 * doubt, offsets), share)


def gain_interval(
    problem: Problem, policy: Policy, delta: float, estimated_from: Counts | None = None
) -> tuple[float, float, float]:
    """Returns the gain that the model of the data estimates, and the ends of a 1 − δ interval.

    If π_b is estimated from `estimated_from`, the interval is for the gain over the true π_b.
    """
    model = problem.estimate()
    ours, theirs = (course_of(problem, model, chosen) for chosen in (policy, problem.behavior))
    doubt = None
    if estimated_from is not None and (policy.probability != problem.behavior.probability).any():
        doubt = BehaviorDoubt.of(problem, estimated_from)
    return difference_interval(problem, ours, theirs, delta, doubt)


class Course(NamedTuple):
    """A policy in the model of the data: its values, its visits, and the worth of successors."""

    value: FloatArray  # [S]
    visits: FloatArray  # [K] d(k)
    after: FloatArray  # [T] of the counts: γ d(k) V(s')


def course_of(problem: Problem, model: FiniteMDP, policy: Policy) -> Course:
    """Evaluates a policy in the model of a problem; returns its values and visits."""
    counts = problem.counts
    value = evaluate(model, policy)
    visits = occupancy(model, policy)
    after = problem.single_discount * visits[run_owners(counts.offsets)] * value[counts.successor]
    return Course(value, visits, after)


def difference_interval(
    problem: Problem, ours: Course, theirs: Course, delta: float, doubt: BehaviorDoubt | None
) -> tuple[float, float, float]:
    """Returns the return of one course less that of another, and the ends of an interval.

    `doubt` is the uncertainty of a policy that is estimated; None if both are known.
    """
    start, variance = difference(problem, ours, theirs, doubt)
    low, high = around(np.array([start]), np.array([variance]), delta)
    return start, float(low[0]), float(high[0])


def difference(
    problem: Problem, ours: Course, theirs: Course, doubt: BehaviorDoubt | None
) -> tuple[float, float]:
    """Returns the return of one course less that of another, and the variance of that estimate."""
    counts = problem.counts
    pair = run_owners(counts.offsets)
    number = counts.visits + 2.0
    reward, least, greatest = reward_moments(counts)
    visits = ours.visits - theirs.visits
    weight = visits[pair]
    worth = weight * reward + ours.after - theirs.after
    spread = weight**2 * np.maximum((greatest - reward) * (reward - least), 0.0)
    # Two imaginary steps, at the least and the greatest worth of a step of the state.
    lowest, highest = ends_by_state(
        problem,
        *(
            end + problem.single_discount * ours.value[counts.successor]
            for end in (least, greatest)
        ),
    )
    unknown = np.where(counts.terminal, 0.0, highest - lowest)  # ends have a known worth
    reach = visits * unknown[counts.pairs.state] / 2
    times = counts.times / np.maximum(counts.visits[pair], 1)
    mean = run_sums(times * worth, counts.offsets)
    variance = run_sums(times * ((worth - mean[pair]) ** 2 + spread), counts.offsets)
    variance = (counts.visits * variance + 2 * reach**2) / number
    initial = counts.starts / counts.starts.sum()
    better = ours.value - theirs.value
    start = float(initial @ better)
    of_starts = float(initial @ (better - start) ** 2) / max(int(counts.starts.sum()), 1)
    total = float((variance / number).sum()) + of_starts
    if doubt is not None:
        total += doubt.variance()
    return start, total


def gains_of_lost(
    problem: Problem, log: DecisionLog, policy: Policy, ending: tuple[float, float]
) -> tuple[float, float]:
    """Returns the gain under two assumptions about the steps without a known outcome.

    First: all went as badly as possible. Second: for π_I they did, and for π_b they went as well
    as possible. `ending` is the range of rewards of a step that ends its episode.
    """
    model = problem.estimate()
    lost = log.next_state == UNKNOWN
    pair, reward = log.pair[lost], log.reward[lost]
    visits = problem.counts.visits
    lost_steps = np.bincount(pair, minlength=visits.size)
    steps = np.maximum(visits + lost_steps, 1)
    owner = run_owners(model.offsets)
    known = np.where(lost_steps > 0, visits / steps, 1.0)
    situations = problem.counts.pairs.state[visits > 0]

    def supposed(chosen: Policy, *, best: bool) -> float:
        value = evaluate(model, chosen)[situations]
        pick = np.maximum if best else np.minimum
        worth = pick(ending[best], reward + problem.single_discount * pick.reduce(value))
        added = np.bincount(pair, weights=worth, minlength=visits.size) / steps
        filled = replace(
            model,
            reward=known[owner] * model.reward + added[owner],
            discount=known * model.discount,
            ending_reward=np.where(visits == 0, known * model.ending_reward + added, 0.0),
        )
        return performance(filled, chosen)

    worst = supposed(policy, best=False)
    today = problem.behavior
    return worst - supposed(today, best=False), worst - supposed(today, best=True)


def step_means(problem: Problem, value: FloatArray) -> Ends:
    """Returns the mean worth m of a step of each pair [K], and v/n, the variance of that mean."""
    counts = problem.counts
    pair = run_owners(counts.offsets)
    times = counts.times.astype(np.float64)
    reward, least, greatest = reward_moments(counts)
    after = problem.single_discount * value[counts.successor]
    worth = reward + after
    spread = np.maximum((greatest - reward) * (reward - least), 0.0)
    lowest, highest = ends_by_state(problem, least + after, greatest + after)
    low, high = lowest[counts.pairs.state], highest[counts.pairs.state]
    number = run_sums(times, counts.offsets) + 2
    mean = (run_sums(times * worth, counts.offsets) + low + high) / number
    squares = run_sums(times * ((worth - mean[pair]) ** 2 + spread), counts.offsets)
    variance = (squares + (low - mean) ** 2 + (high - mean) ** 2) / number
    return mean, variance / number


def around(mean: FloatArray, variance: FloatArray, delta: float) -> Ends:
    """Returns the ends of 1 − δ normal intervals around means with these variances."""
    half = -float(ndtri(max(delta / 2, SMALLEST_TAIL))) * np.sqrt(np.maximum(variance, 0.0))
    return freeze(mean - half), freeze(mean + half)


def reward_moments(counts: Counts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns the mean reward of each transition [T], and the least and the greatest one.

    Rewards between a and b with mean m have a variance of at most (b − m)(m − a). If the counts
    have no range of single rewards, all three are the mean.
    """
    pair = run_owners(counts.offsets)
    place = pair if counts.rewards.per == "pair" else np.arange(pair.size)
    least, greatest = counts.observed_rewards()
    return counts.means()[place], least[place], greatest[place]


def ends_by_state(
    problem: Problem, least: FloatArray, greatest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns the least and the greatest worth of steps seen in each state [S].

    If they are equal or the state has no steps, returns those of all steps; the bounds of all
    values if these are equal, too.
    """
    counts = problem.counts
    seen = counts.times > 0
    state = counts.pairs.state[run_owners(counts.offsets)][seen]
    low, _ = least_and_greatest(least[seen], state, counts.pairs.num_states)
    _, high = least_and_greatest(greatest[seen], state, counts.pairs.num_states)
    alike = low >= high
    everywhere = (least[seen].min(), greatest[seen].max()) if seen.any() else (0.0, 0.0)
    if everywhere[0] == everywhere[1]:
        everywhere = problem.value_bounds
    return np.where(alike, everywhere[0], low), np.where(alike, everywhere[1], high)
