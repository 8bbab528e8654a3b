"""Independent truth: exact rational arithmetic and brute force.

The doubles that a model stores are taken as exact rationals, so an oracle's answer is the value of
that very model, with no rounding at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from support.logs import log_of
from surestep import DecisionLog, FiniteMDP, Policy


def exact_pairs(mdp: FiniteMDP) -> list[tuple[Fraction, dict[int, Fraction]]]:
    """For each pair its expected reward and its discounted successor weights Γ(s,a) P(s'|s,a)."""
    result = []
    for k in range(mdp.num_pairs):
        run = range(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
        chances = [Fraction(float(mdp.probability[t])) for t in run]
        reward = Fraction(float(mdp.ending_reward[k])) + sum(
            (p * Fraction(float(mdp.reward[t])) for p, t in zip(chances, run, strict=True)),
            Fraction(0),
        )
        discount = Fraction(float(mdp.discount[k]))
        weights = {int(mdp.successor[t]): discount * p for p, t in zip(chances, run, strict=True)}
        result.append((reward, weights))
    return result


def solve_exactly(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gaussian elimination with pivoting, in rationals."""
    n = len(right)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for i in range(n):
        pivot = next(j for j in range(i, n) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(n):
            if j != i and rows[j][i] != 0:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def exact_value(mdp: FiniteMDP, policy: np.ndarray) -> list[Fraction]:
    """V^π in rationals, for a policy given by its probabilities [K]."""
    n, pairs = mdp.num_states, exact_pairs(mdp)
    matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    right = [Fraction(0)] * n
    for k, (reward, weights) in enumerate(pairs):
        s, share = int(mdp.pairs.state[k]), Fraction(float(policy[k]))
        right[s] += share * reward
        for target, weight in weights.items():
            matrix[s][target] -= share * weight
    return solve_exactly(matrix, right)


def deterministic_policies(mdp: FiniteMDP):
    """Every deterministic policy, as probabilities [K]."""
    runs = [
        range(int(mdp.pairs.offsets[s]), int(mdp.pairs.offsets[s + 1]))
        for s in range(mdp.num_states)
    ]
    for choice in itertools.product(*runs):
        probability = np.zeros(mdp.num_pairs)
        probability[list(choice)] = 1.0
        yield probability


def brute_force_optimum(mdp: FiniteMDP) -> list[Fraction]:
    """V* in rationals: the best deterministic policy is best in every state at once."""
    values = [exact_value(mdp, policy) for policy in deterministic_policies(mdp)]
    return [max(column) for column in zip(*values, strict=True)]


def largest_gap(value: np.ndarray, exact: list[Fraction]) -> Fraction:
    """max_s |value(s) − exact(s)|, without rounding."""
    return max(abs(Fraction(float(v)) - e) for v, e in zip(value, exact, strict=True))


# ---- linear programs --------------------------------------------------------------------------


def solved(gain: np.ndarray, **terms: object) -> np.ndarray:
    """The x ≥ 0 of the largest `gain` @ x."""
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(-gain, method="highs", options=tight, **terms)
    assert answer.status == 0, answer.message
    return answer.x


def best_row(
    q: np.ndarray, behavior: np.ndarray, leave: np.ndarray, enter: np.ndarray, budget: float
) -> np.ndarray:
    """The π of the largest Σ π q with Σ leave (π_b − π)⁺ + enter (π − π_b)⁺ ≤ budget.

    An infinite price forbids the move.
    """
    prices = np.concatenate([leave, enter])
    most = np.concatenate([behavior, np.ones(q.size)])
    moves = solved(
        np.concatenate([-q, q]),
        A_ub=[np.where(np.isinf(prices), 0.0, prices)],
        b_ub=[budget],
        A_eq=[np.repeat([-1.0, 1.0], q.size)],
        b_eq=[0.0],
        bounds=[(0.0, 0.0 if np.isinf(p) else m) for p, m in zip(prices, most, strict=True)],
    )
    return behavior - moves[: q.size] + moves[q.size :]


def best_bounded_row(q: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The π of the largest Σ π q with least ≤ π ≤ most."""
    return solved(q, A_eq=[np.ones(q.size)], b_eq=[1.0], bounds=list(zip(least, most, strict=True)))


def worst_row(center: np.ndarray, worth: np.ndarray, radius: float) -> np.ndarray:
    """The distribution p of the smallest Σ p · worth with ‖p − center‖₁ ≤ radius."""
    states = center.size
    moves = solved(
        np.concatenate([worth, -worth]),  # what leaves a state, then what comes to it
        A_ub=[np.ones(2 * states)],
        b_ub=[radius],
        A_eq=[np.repeat([-1.0, 1.0], states)],
        b_eq=[0.0],
        bounds=[(0.0, most) for most in np.concatenate([center, np.ones(states)])],
    )
    return center - moves[:states] + moves[states:]


def class_optimum(mdp: FiniteMDP, start: np.ndarray, best: Callable) -> np.ndarray:
    """The value of the best policy of a class, by policy iteration over dense tables.

    `best(run, q)` is the best row of the class for the q of the pairs `run` of one state.
    """
    P, R, discount = np.zeros((mdp.num_pairs, mdp.num_states)), mdp.expected_reward, mdp.discount
    for k in range(mdp.num_pairs):
        run = slice(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
        P[k, mdp.successor[run]] = mdp.probability[run]
    runs = [slice(a, b) for a, b in itertools.pairwise(mdp.pairs.offsets.tolist())]
    policy, improved = start.copy(), True
    while improved:
        chooses = np.zeros((mdp.num_states, mdp.num_pairs))
        chooses[mdp.pairs.state, np.arange(mdp.num_pairs)] = policy
        weights = chooses @ (discount[:, np.newaxis] * P)
        value = np.linalg.solve(np.eye(mdp.num_states) - weights, chooses @ R)
        q = R + discount * (P @ value)
        improved = False
        for run in runs:
            row = best(run, q[run])
            if q[run] @ (row - policy[run]) > 1e-9 * max(1.0, np.abs(q).max()):
                policy[run], improved = row, True
    return value


# ---- trajectories -----------------------------------------------------------------------------


class Step(NamedTuple):
    state: int
    action: int
    pair: int
    reward: Fraction
    next_state: int


class Trajectory(NamedTuple):
    steps: tuple[Step, ...]
    probability: Fraction
    terminated: bool  # otherwise cut off at the horizon


def trajectories(mdp: FiniteMDP, policy: Policy, horizon: int) -> list[Trajectory]:
    """Every trajectory of at most `horizon` steps that the policy can take, with its probability.

    As in a log, a trajectory is over when it enters a state whose pairs all lead nowhere.
    """
    pairs = mdp.pairs

    def over(state: int) -> bool:
        return mdp.offsets[pairs.offsets[state]] == mdp.offsets[pairs.offsets[state + 1]]

    def grow(state: int, steps: tuple[Step, ...], chance: Fraction):
        if over(state) or len(steps) == horizon:
            yield Trajectory(steps, chance, over(state))
            return
        for k in range(int(pairs.offsets[state]), int(pairs.offsets[state + 1])):
            taken = Fraction(float(policy.probability[k]))
            for t in range(int(mdp.offsets[k]), int(mdp.offsets[k + 1])):
                moved = Fraction(float(mdp.probability[t]))
                if taken * moved > 0:
                    reward, target = Fraction(float(mdp.reward[t])), int(mdp.successor[t])
                    step = Step(state, int(pairs.action[k]), k, reward, target)
                    yield from grow(target, (*steps, step), chance * taken * moved)

    return [
        trajectory
        for state in np.flatnonzero(mdp.initial)
        for trajectory in grow(int(state), (), Fraction(float(mdp.initial[state])))
    ]


def value_of_steps(mdp: FiniteMDP, policy: Policy, discount: Fraction, horizon: int) -> Fraction:
    """Σ_{t < horizon} γ^t E[r_t] in rationals, by going backwards from the horizon."""
    value = [Fraction(0)] * mdp.num_states
    for _ in range(horizon):
        value_of_pair = [
            sum(
                (
                    Fraction(float(mdp.probability[t]))
                    * (Fraction(float(mdp.reward[t])) + discount * value[int(mdp.successor[t])])
                    for t in range(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
                ),
                Fraction(0),
            )
            for k in range(mdp.num_pairs)
        ]
        value = [Fraction(0)] * mdp.num_states
        for k, earned in enumerate(value_of_pair):
            value[int(mdp.pairs.state[k])] += Fraction(float(policy.probability[k])) * earned
    return sum(
        (Fraction(float(p)) * v for p, v in zip(mdp.initial, value, strict=True)), Fraction(0)
    )


def log_of_all(mdp: FiniteMDP, episodes: list[Trajectory]) -> DecisionLog:
    """The log that holds each of the trajectories once."""
    steps = (
        [(step.state, step.action, float(step.reward), step.next_state) for step in episode.steps]
        for episode in episodes
    )
    cut = [i for i, episode in enumerate(episodes) if not episode.terminated]
    return log_of(mdp.pairs, *steps, cut=cut)


def gains_in_draws(problem, policy, initial, P, R):
    """Δ of a policy over π_b in models P, R [D, S, A, S] with these starts [D, S], by LAPACK."""
    values = []
    for each in (problem.behavior, policy):
        chances = each.dense()
        matrix = np.eye(P.shape[1]) - problem.discount * np.einsum("sa,dsat->dst", chances, P)
        earned = np.einsum("sa,dsat,dsat->ds", chances, P, R)
        value = np.linalg.solve(matrix, earned[:, :, np.newaxis])[:, :, 0]
        values.append((initial * value).sum(axis=1))
    return values[1] - values[0]
