"""Two leads to sharper proofs that were measured and not built, on the same logs as what there is.

    python benchmarks/leads.py [--data-sets 3] [--cases 11]

SPIBB with a fixed N∧ chooses by the first 0.3 of the log; δ = 0.1, rewards and starts are known.

robust     L of the robust certificate, from all of the log
moments    intervals from all of the log at δ/2, and at δ/2 what is left of the log bounds a mean of
           each pair: of r + γU from below and of r + γW from above, with functions U and W that the
           first part fixed. By Ville's inequality for bets at fixed stakes these hold for all
           numbers of visits at once. If ℓ ≤ p·(r + γU) then, for every η from 0 to 1,
           min p·(r + γV) ≥ η ℓ + min p·((1−η) r + γ(V − ηU)); so V_low is the fixed point of the
           largest of these for η = 0, ½ and 1, and V_high likewise with W. L is V_low of π_I less
           V_high of π_b.
lead       ρ = ιv̂ + d·δ̂ + d·(δ − δ̂): v̂ from the first part, δ̂ = T̂v̂ − v̂ with means from a third of
           the log, and d·δ̂ by rollouts on another third, at δ/2 each. *At its best*: the true d and
           the true transitions say how much the last term varies and how low a rollout can be, what
           was never seen is free, and variances count as known. A valid form proves less.
stitched   L of the stitched certificate, with the same policy
"""

import argparse
import math
import time

import numpy as np

from surestep import Policy, Problem, certify, evaluate, occupancy, performance
from surestep._arrays import BoolArray, FloatArray, run_owners, run_sums
from surestep.algorithms import SPIBB
from surestep.certificates import Robust, Stitched
from surestep.certificates.bets import (
    Bet,
    case_of,
    kinds_of,
    limits_of,
    log_goal,
    on_one_mean,
    stake_for,
)
from surestep.certificates.episodes import parts_of_log, split_of, training_for, training_part
from surestep.certificates.robust import difference_models
from surestep.certificates.stacks import Way, course_of, horizons, roll_out_each, stacks_of
from surestep.certificates.uncertainty import SetTerms, uncertainty_of
from surestep.environments import Benchmark, make
from surestep.kernels.stitched import OURS, THEIRS, Case, Tails
from surestep.model import Counts, DecisionLog
from surestep.planning.rectangular import RectangularSet

SMALLEST = ("--data-sets", "1", "--cases", "1")
DELTA, SHARE = 0.1, 0.3
CASES = (
    ("gridworld", 300, 20),
    ("gridworld", 1_000, 20),
    ("gridworld", 10_000, 27),
    ("gridworld", 30_000, 27),
    ("random-mdp", 300, 10),
    ("random-mdp", 1_000, 10),
    ("random-mdp", 10_000, 10),
    ("random-mdp", 30_000, 10),
    ("wet-chicken", 10_000, 50),
    ("wet-chicken", 30_000, 50),
    ("resource-gathering", 1_000, 10),
)
STAKES = 2.0 ** -np.arange(8)  # of a bet on a mean, as shares of the largest one; all weigh alike
HALVINGS, SWEEPS = 40, 2000
NEGLIGIBLE = 1e-9  # of the range of values: when sweeps end


# ---- interval and moments -----------------------------------------------------------------------


def lower_means(values: FloatArray, counts: Counts, ends: tuple[float, float]) -> FloatArray:
    """Lower bounds [K] of means of values [T] between the ends, at δ/4 for all pairs together."""
    low, high = ends
    owner, share = run_owners(counts.offsets), (values - low) / (high - low)
    goal = math.log(4 * counts.pairs.num_pairs * STAKES.size / DELTA)
    below, above = np.zeros(counts.visits.size), np.ones(counts.visits.size)
    for _ in range(HALVINGS):
        mean = (below + above) / 2
        won = (share - mean[owner]) / mean[owner]  # at least −1
        logs = [run_sums(counts.times * np.log1p(0.99 * s * won), counts.offsets) for s in STAKES]
        refuted = np.logaddexp.reduce(logs, axis=0) >= goal
        below, above = np.where(refuted, mean, below), np.where(refuted, above, mean)
    return low + (high - low) * below


def foreseen_values(part: Problem, policy: Policy, ratio: float, sign: int) -> FloatArray:
    """U, or W for the sign −1: values on the first part, less what bounds of means will cost."""
    counts, gamma, (low, high) = part.counts, part.single_discount, part.value_bounds
    ends, ending = counts.terminal[counts.pairs.state], counts.unseen_reward()
    owner, seen = run_owners(counts.offsets), counts.visits > 0
    chance = counts.times / np.maximum(counts.visits, 1)[owner]
    goal = math.log(4 * counts.pairs.num_pairs * STAKES.size / DELTA)
    visits = np.maximum(ratio * counts.visits, 1e-9)
    worst = low if sign > 0 else high
    value = np.full(part.num_states, worst)
    for _ in range(SWEEPS):
        worth = counts.mean_reward() + gamma * value[counts.successor]
        mean = run_sums(chance * worth, counts.offsets)
        variance = np.maximum(run_sums(chance * worth**2, counts.offsets) - mean**2, 0.0)
        cost = np.sqrt(2 * goal * variance / visits) + np.abs(mean - worst) * goal / visits
        q = np.where(ends, ending, np.where(seen, np.clip(mean - sign * cost, low, high), worst))
        before, value = value, run_sums(policy.probability * q, counts.pairs.offsets)
        if np.abs(value - before).max() < NEGLIGIBLE * (high - low):
            break
    return value


def bounded_value(
    models: RectangularSet,
    policy: Policy,
    worst: float,
    moment: tuple[FloatArray, FloatArray],
    ends: BoolArray,
) -> FloatArray:
    """V_low [S] over a set with a bound of one moment: function [S], and its least means [K]."""
    function, least = moment
    nothing = difference_models(models, np.zeros(function.size))
    value = np.full(function.size, worst)
    for _ in range(SWEEPS):
        q = models.worst(value).q
        half = (least + models.worst(2 * value - function).q) / 2
        whole = least + nothing.worst(value - function).q
        q = np.maximum(np.where(ends, q, np.maximum(q, np.maximum(half, whole))), worst)
        before, value = value, run_sums(policy.probability * q, models.pairs.offsets)
        if np.abs(value - before).max() < NEGLIGIBLE * max(abs(worst), 1.0):
            break
    return value


def by_moments(
    benchmark: Benchmark, problem: Problem, policy: Policy, rest: DecisionLog, seed: int
) -> float:
    """V_low of π_I less V_high of π_b."""
    rewards = benchmark.mdp.reward
    terms = SetTerms(
        delta=DELTA / 2,
        reward_low=float(rewards.min()),
        reward_high=float(rewards.max()),
        known_start=True,
    )
    models, counts = uncertainty_of(problem, terms).models, rest.counts()
    ends, gamma = problem.counts.terminal[counts.pairs.state], problem.single_discount
    part, (low, high) = training_part(problem, SHARE, seed), problem.value_bounds
    total = 0.0
    for sign, who, rows, worst in (
        (1, policy, models, low),
        (-1, problem.behavior, models.mirrored(), -high),
    ):
        function = sign * foreseen_values(part, who, (1 - SHARE) / SHARE, sign)
        signed = sign * counts.mean_reward()
        reach = sign * rewards
        limits = (
            float(reach.min() + gamma * function.min()),
            float(reach.max() + gamma * function.max()),
        )
        least = lower_means(signed + gamma * function[counts.successor], counts, limits)
        value = bounded_value(rows, who, worst, (function, least), ends)
        total += float(problem.counts.starts @ value) / float(problem.counts.starts.sum())
    return total


# ---- the lead -----------------------------------------------------------------------------------


def by_lead(
    benchmark: Benchmark, problem: Problem, policy: Policy, rest: DecisionLog, seed: int
) -> float:
    """What a one-step correction with rollouts would prove at its best."""
    mdp, gamma = benchmark.mdp, problem.single_discount
    part = training_part(problem, SHARE, seed)
    second, third = parts_of_log(rest, 0.5, seed)
    assert second is not None
    assert third is not None
    counts, owner = third.counts(), run_owners(third.counts().offsets)
    visits = np.maximum(counts.visits, 1)
    course = course_of(problem, policy, problem.value_bounds, None)
    no_tails = Tails(np.zeros_like(course.tails.at_pair), np.zeros_like(course.tails.at_state))
    stacks, seen = stacks_of(second), part.counts.visits > 0
    starts = problem.counts.starts / problem.counts.starts.sum()
    lower, noise = 0.0, np.zeros(counts.successor.size)
    for sign, side, who in ((1, OURS, policy), (-1, THEIRS, problem.behavior)):
        value = evaluate(part.estimate(), who)
        worth = counts.mean_reward() + gamma * value[counts.successor]
        mean = run_sums(counts.times * worth, counts.offsets) / visits
        step = np.where(counts.visits > 0, mean - value[counts.pairs.state], 0.0)
        in_steps = stacks._replace(reward=np.repeat(step, stacks.sizes))
        wide = course._replace(tails=no_tails, limits=(-math.inf, math.inf))
        wide = wide._replace(at_end=np.zeros_like(course.at_end))
        steps = horizons(gamma)[3]  # what is left then, a hundredth, is free
        rounds = case_of(stacks, course, stacks, seed).rounds
        case = Case(in_steps, wide, seen, seed, rounds)
        (found,) = roll_out_each([case], [Way(side, steps, steps)], 2, 24)
        least = least_path(benchmark, who, sign * step)
        (outcomes,) = kinds_of(side, found)
        spread = max(float(outcomes.var()) if outcomes.size else 0.0, 1e-12)
        stake = stake_for(log_goal(DELTA / 4), max(float(found.complete.mean()), 1.0) * spread)
        bet = Bet(found.differences, found.complete, DELTA / 4, on_one_mean(stake, least - 1e-9))
        lower += limits_of([bet])[0]
        lower += sign * float(starts @ value)
        noise += sign * occupancy(mdp, who)[owner] * worth
    mean = run_sums(counts.times * noise, counts.offsets) / visits
    variance = run_sums(counts.times * noise**2, counts.offsets) / visits - mean**2
    varies = float((np.maximum(variance, 0.0) / visits)[counts.visits > 0].sum())
    return lower - math.sqrt(2 * math.log(2 / DELTA) * varies)


def least_path(benchmark: Benchmark, policy: Policy, step: FloatArray) -> float:
    """The least discounted sum of steps [K] on any way that the policy may take in the model."""
    mdp = benchmark.mdp
    gamma = float(np.max(mdp.discount))
    taken, owner = policy.probability > 0, run_owners(mdp.offsets)
    value = np.zeros(mdp.num_states)
    going = np.diff(mdp.offsets) > 0
    for _ in range(SWEEPS):
        following = np.full(step.size, np.inf)
        np.minimum.at(following, owner, value[mdp.successor])
        q = np.where(going, step + gamma * np.where(going, following, 0.0), 0.0)
        new = np.full(mdp.num_states, np.inf)
        np.minimum.at(new, mdp.pairs.state[taken], q[taken])
        if np.abs(new - value).max() < NEGLIGIBLE:
            break
        value = new
    return float(value[mdp.initial > 0].min())


def report(name: str, episodes: int, n_wedge: int, data_sets: int) -> None:
    """Prints the mean claims of all ways, and the gain."""
    rows = []
    start = time.perf_counter()
    for i in range(data_sets):
        benchmark = make(name, seed=1 + i % 8) if name == "random-mdp" else make(name)
        problem = benchmark.problem(benchmark.sample(episodes, np.random.default_rng(i)))
        assert problem.log is not None
        judge = Stitched(logger="fixed", seed=i, train_share=SHARE)
        policy = SPIBB(n_wedge=n_wedge).improve(training_for(problem, judge)).policy
        _, rest = parts_of_log(problem.log, *split_of(judge))
        assert rest is not None
        rewards = benchmark.mdp.reward
        robust = Robust(
            reward_low=float(rewards.min()), reward_high=float(rewards.max()), known_start=True
        )
        rows.append(
            (
                performance(benchmark.mdp, policy) - benchmark.performance_of_behavior(),
                certify(problem, policy, robust).lower,
                by_moments(benchmark, problem, policy, rest, i),
                by_lead(benchmark, problem, policy, rest, i),
                certify(problem, policy, judge).lower,
            )
        )
    gain, robust_lower, moments, lead, stitched = np.mean(rows, axis=0)
    print(
        f"{name}, {episodes:,} trajectories, N∧ = {n_wedge}: gain {gain:.3g}, robust "
        f"{robust_lower:.3g}, moments {moments:.3g}, lead at its best {lead:.3g}, stitched "
        f"{stitched:.3g}; {(time.perf_counter() - start) / data_sets:.1f} s each"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=3, help="of each case")
    parser.add_argument("--cases", type=int, default=len(CASES), help="the first so many")
    given = parser.parse_args()
    for name, episodes, n_wedge in CASES[: given.cases]:
        report(name, episodes, n_wedge, given.data_sets)


if __name__ == "__main__":
    main()
