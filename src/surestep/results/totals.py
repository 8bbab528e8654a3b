"""Estimates undiscounted totals and shares of episodes, under the current and the new policy.

A discounted sum is no number of deaths. So this module computes undiscounted totals in the model of
the data: the total reward of an episode until it ends, or within the first N steps (`horizon`),

    ρ = Σ_s p(s) V_N(s),  V_n(s) = Σ_a π(a|s) (r(s,a) + Σ_s' P(s'|s,a) V_{n−1}(s')),

with V_0 = 0 except in ends that pay, such as unsafe states. Without N, a policy has no total if its
episodes may never end in the model, or would last longer on average than any recorded episode.

**Intervals** are computed like those of the gain (`advantage_intervals`). An error of the model at
pair k moves ρ, to the first order, by that of the mean of Σ_t d_t(k) (r + V_{N−t−1}(s')), with
d_t(k) the chance of k in step t; one of an estimated π_b in state s by that of Σ_a π_b(a|s) Σ_t
d_t(s) Q_{N−t}(s,a).

**A share** has the interval of Clopper and Pearson, which is right near 0 and 1, where a variance
says nothing: no deaths in 60 cases do not show that nobody dies. With the estimate p and its
variance v, the number of cases is min(p (1 − p) / v, Σ_k d(k) / Σ_k (d(k)² / n_k)), over pairs with
n_k steps: the first is as Korn and Graubard (1998) have it, the second (Kish 1965) is that of a sum
in which a step of k weighs d(k) / n_k, and is the number of episodes for the policy that made them.
It is an approximation; of a policy that decides as the log did, in one step, it is exact.

**Pairs that nobody took** have no known total: the policy is evaluated as if it chose among the
other pairs of the state. The interval includes the uncertainty of the pairs that nobody took.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np

from surestep._arrays import FloatArray, altered, own, run_lengths, run_owners, run_sums
from surestep.certificates.practice import BehaviorDoubt
from surestep.description import SignalRule, Stakes
from surestep.errors import NeverEnds, NotConverged
from surestep.model import Counts, Policy, Problem, Signal
from surestep.model.problem import NEVER_TO_ALWAYS, stopped
from surestep.offpolicy.intervals import share_interval
from surestep.planning import q_values
from surestep.planning.backups import averaged
from surestep.results.advantage_intervals import (
    Course,
    course_of,
    difference,
    difference_interval,
    reward_moments,
)
from surestep.results.record import Estimated, Total


def totals_of(
    whole: Problem,
    part: Problem,
    policy: Policy,
    stakes: Stakes,
    rules: Mapping[str, SignalRule],
    *,
    delta: float,
    estimated_from: Counts | None = None,
) -> tuple[Total, ...]:
    """Returns the total of every signal, estimated from `part`, with intervals of about 1 − δ.

    There are none if the values of the policies say the same, unless a description asks for them.
    A signal without a total in the model is left out. `estimated_from` has the counts from which
    π_b was estimated.
    """
    every = signals_of(part)
    asked = stakes.per or stakes.horizon or any(rule.per for rule in rules.values())
    if not asked and all(one.problem.single_discount in (0, 1) for one in every):
        return ()
    totals = list[Total]()
    for all_data, signal in zip(signals_of(whole), every, strict=True):
        rule = rules.get(signal.name)
        per = (rule and rule.per) or stakes.per
        within = signal.problem.horizon or stakes.horizon
        share = is_share(all_data)
        unit = (per or 1) * (-1 if signal.cost else 1)
        with suppress(NeverEnds, NotConverged):
            before, after, change = (
                Estimated(unit * value + 0.0, *sorted((unit * low + 0.0, unit * high + 0.0)))
                for value, low, high in intervals(
                    signal, policy, within, delta, estimated_from, share=share
                )
            )
            totals.append(
                Total(
                    name=signal.name,
                    share=share,
                    cost=signal.cost,
                    chance=signal.is_chance,
                    per=per,
                    within=within,
                    before=before,
                    after=after,
                    change=change,
                )
            )
    return tuple(totals)


def signals_of(problem: Problem) -> tuple[Signal, ...]:
    """Returns all signals of a problem, the improved one first."""
    return (
        Signal(name=problem.name, problem=altered(problem, signals=()), cost=problem.cost),
        *problem.signals,
    )


def is_share(signal: Signal) -> bool:
    """Tells whether a signal pays 1 at most once in each episode, and 0 otherwise."""
    log = signal.problem.episodes
    counts = signal.problem.counts
    if signal.is_chance:
        return True
    if log is not None:
        rewards = log.reward
        returns = np.add.reduceat(rewards, log.episode_offsets[:-1])
    else:  # then 1 may be paid at ends only
        seen = counts.times > 0
        rewards = np.stack(reward_moments(counts))[:, seen]
        returns = 2 * rewards[:, ~counts.terminal[counts.successor[seen]]]
    paid = np.isin(rewards, (0.0, -1.0 if signal.cost else 1.0))
    return bool(paid.all() and (np.abs(returns) <= 1).all())


def intervals(
    signal: Signal,
    policy: Policy,
    steps: int | None,
    delta: float,
    estimated_from: Counts | None,
    *,
    share: bool,
) -> list[tuple[float, float, float]]:
    """Returns the total rewards of π_b and of a policy, and their difference, with intervals."""
    problem = altered(stopped(signal.problem), discount=1.0, unseen="terminal")
    if share:
        problem = altered(problem, value_bounds=NEVER_TO_ALWAYS if signal.cost else (0.0, 1.0))
    of_one: Callable[..., tuple[float, float, float]] = (
        interval_of_share if share else difference_interval
    )
    theirs, worth = total_course(problem, problem.behavior, steps)
    ours, _ = total_course(problem, policy, steps)
    nothing = Course(*(np.zeros_like(part) for part in ours))
    doubt = None if estimated_from is None else BehaviorDoubt.about(worth, estimated_from)
    of_change = doubt if (policy.probability != problem.behavior.probability).any() else None
    return [
        of_one(problem, theirs, nothing, delta, doubt),
        of_one(problem, ours, nothing, delta, None),
        difference_interval(problem, ours, theirs, delta, of_change),
    ]


def interval_of_share(
    problem: Problem, course: Course, nothing: Course, delta: float, doubt: BehaviorDoubt | None
) -> tuple[float, float, float]:
    """Returns the share of episodes that a course is paid in, or minus that, with its interval."""
    value, variance = difference(problem, course, nothing, doubt)
    sign = -1.0 if problem.value_bounds[0] < 0 else 1.0
    share = min(max(sign * value, 0.0), 1.0)
    steps = problem.counts.visits
    seen = steps > 0
    visits = course.visits[seen]
    cases = float(visits.sum() / max((visits**2 / steps[seen]).sum(), np.finfo(float).tiny))
    if variance > 0 < share < 1:
        cases = min(cases, share * (1 - share) / variance)
    low, high = share_interval(share, cases, delta)
    decided = ~problem.counts.terminal[problem.counts.pairs.state]
    high = min(high + float(course.visits[decided & ~seen].sum()), 1.0)
    return (value, low, high) if sign > 0 else (value, -high, -low)


def total_course(problem: Problem, policy: Policy, steps: int | None) -> tuple[Course, FloatArray]:
    """Returns the course of a policy over `steps` steps, and Σ_t d_t(s) Q(s,a) of pairs [K]."""
    counts = problem.counts
    offsets, state = counts.pairs.offsets, counts.pairs.state
    taken = np.where(counts.visits > 0, policy.probability, 0.0)
    mass = run_sums(taken, offsets)[state]
    chosen = np.divide(taken, mass, out=policy.probability.copy(), where=mass > 0)
    pair = run_owners(counts.offsets)
    value, often, follows = (
        until_ends(problem, chosen) if steps is None else within_steps(problem, chosen, steps)
    )
    times = counts.times / np.maximum(counts.visits[pair], 1)
    worth = run_sums(times * (often[state][pair] * counts.mean_reward() + follows), counts.offsets)
    unseen = (counts.visits == 0) & (mass > 0)
    course = Course(
        value=value,
        visits=often[state] * np.where(unseen, policy.probability, chosen),
        after=chosen[pair] * follows,
    )
    return course, np.where(unseen, run_sums(chosen * worth, offsets)[state], worth)


def until_ends(problem: Problem, chosen: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns values [S], visits of states [S], and Σ_t d_t(s) V(s') of transitions [T]."""
    counts = problem.counts
    course = course_of(problem, problem.estimate(), Policy(counts.pairs, own(chosen)))
    often = run_sums(course.visits, counts.pairs.offsets)
    log = problem.episodes
    longest = np.inf if log is None else run_lengths(log.episode_offsets).max()
    if often[~counts.terminal].sum() > longest:
        raise NeverEnds("episodes last longer on average than any of the log")
    source = counts.pairs.state[run_owners(counts.offsets)]
    return course.value, often, often[source] * course.value[counts.successor]


def within_steps(
    problem: Problem, chosen: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns the same as `until_ends`, for the first `steps` steps only."""
    counts = problem.counts
    model = problem.estimate()
    pairs = model.pairs
    values = [averaged(pairs, chosen, model.ending_reward)]
    for _ in range(steps):
        values.append(averaged(pairs, chosen, q_values(model, values[-1])))
    source = pairs.state[run_owners(counts.offsets)]
    pair = run_owners(model.offsets)
    moves = chosen[pair] * model.probability
    follows = np.zeros(source.size)
    often = np.zeros(pairs.num_states)
    here: FloatArray = model.initial
    for left in reversed(values[:-1]):
        often += here
        follows += here[source] * left[counts.successor]
        here = np.bincount(
            model.successor, here[pairs.state[pair]] * moves, pairs.num_states
        ).astype(np.float64)
    return values[-1], often, follows
