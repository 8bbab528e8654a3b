"""Other methods for several signals, and the mazes with pits that some were published with.

The methods are our own versions of what was published, for comparison only:

S-OPT     Satija, Thomas, Pineau and Laroche (NeurIPS 2021): policy iteration in M̂; in every state
          a program that lets no signal lose by its advantage over π_b, within Soft-SPIBB's budget
H-OPT     of the same: the best policy of the sum of all signals on 70 % of the log, taken if the
          rest says of each signal that it is better (per-decision weights, Student's t)
shielded  "Robust Probabilistic Shielding for Safe Offline RL" (2026): π_b without actions that may
          lead into pits, by intervals around smoothed estimates, then SPIBB; what may follow a pair
          is known

The intervals of the last one are as published: they hold for no row of a model (δ is not shared by
successors, and visits that nobody made are counted).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from surestep import DecisionLog, FiniteMDP, Policy, Problem, policy_iteration
from surestep.algorithms import SPIBB
from surestep.algorithms.soft import HOEFFDING, errors_of
from surestep.offpolicy import importance_weights, split_episodes, student_t
from surestep.offpolicy.estimators import per_decision
from surestep.planning import evaluate, q_values

SIDE, DENSITY, GOAL_REWARD, DISCOUNT, COST_LIMIT, SLIP = 5, 0.3, 1000.0, 0.99, 2.0, 0.1
EPSILON, DELTA, ITERATIONS = 0.1, 0.1, 10  # of S-OPT and H-OPT
PHANTOM, THRESHOLD, BUFFER, EXTRA, N_WEDGE = 2, 0.2, 0.05, 0.01, 7  # of the shield
SWEEPS = 300


class Maze(NamedTuple):
    """A model a signal: what is earned, and minus the pits that are entered."""

    models: tuple[FiniteMDP, FiniteMDP]
    behavior: Policy
    pits: np.ndarray  # [S]


def maze(seed: int, ratio: float) -> Maze:
    """Returns a maze in which π_b is the best policy within the limit of pits in this ratio."""
    rng, size = np.random.default_rng(seed), SIDE * SIDE
    start, goal = 0, size - 1
    pits = rng.random(size) < DENSITY
    pits[[start, goal]] = False
    x, y = np.arange(size) % SIDE, np.arange(size) // SIDE
    rows = np.zeros((size, 4, size))
    for action, (dx, dy) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        there = np.clip(x + dx, 0, SIDE - 1) + SIDE * np.clip(y + dy, 0, SIDE - 1)
        for taken in range(4):
            share = SLIP / 4 + (1 - SLIP) * (taken == action)
            rows[np.arange(size), taken, there] += share
    rows[goal] = 0.0
    earned = np.broadcast_to(np.where(np.arange(size) == goal, GOAL_REWARD, -1.0), rows.shape)
    entered = np.broadcast_to(np.where(pits, -1.0, 0.0), rows.shape)
    models = tuple(
        FiniteMDP.from_dense(rows, np.where(rows > 0, table, 0.0), DISCOUNT, start)
        for table in (earned, entered)
    )
    best = best_within(*models)
    return Maze(models, best.mix(Policy.uniform(models[0]), 1 - ratio), pits)


def best_within(model: FiniteMDP, cost: FiniteMDP) -> Policy:
    """Returns the best policy with so many pits at the most (Altman 1999, chapter 3)."""
    P = model.dense().P.reshape(model.num_pairs, -1)
    flow = (np.arange(model.num_states) == model.pairs.state[:, np.newaxis]) - DISCOUNT * P
    found = linprog(
        -model.expected_reward,
        A_ub=-cost.expected_reward[np.newaxis],
        b_ub=[COST_LIMIT],
        A_eq=flow.T,
        b_eq=model.initial,
    )
    if found.x is None:  # no policy keeps to the limit: the fewest pits
        return policy_iteration(cost).policy
    visits = found.x.reshape(model.num_states, -1)
    total = visits.sum(axis=1, keepdims=True)
    table = np.where(total > 1e-12, visits / np.maximum(total, 1e-12), 0.25)
    return Policy.from_dense(model, table / table.sum(axis=1, keepdims=True))


def action_values(model: FiniteMDP, policy: Policy) -> np.ndarray:
    """Returns Q of a policy [S, A]."""
    q: np.ndarray = model.pairs.dense(q_values(model, evaluate(model, policy)))
    return q


def s_opt(problems: list[Problem], epsilon: float = EPSILON) -> Policy:
    """Returns the policy of S-OPT, with all weights 1."""
    behavior, models = problems[0].behavior, [problem.estimate() for problem in problems]
    before, errors = (
        behavior.dense(),
        problems[0].counts.pairs.dense(errors_of(HOEFFDING, problems[0], DELTA)),
    )
    value = [action_values(model, behavior) for model in models]
    advantage = [q - (before * q).sum(axis=1, keepdims=True) for q in value]
    policy, actions = behavior, before.shape[1]
    same = np.eye(actions)
    for _ in range(ITERATIONS):
        table, total = before.copy(), sum(action_values(model, policy) for model in models)
        for s, seen in enumerate(np.isfinite(errors)):
            if not seen.any():
                continue
            cost = np.where(seen, errors[s], 0.0)
            limits = [(0.0, 1.0) if ok else (p, p) for p, ok in zip(before[s], seen, strict=True)]
            # Variables: π, and what it differs by.
            found = linprog(
                np.concatenate([-total[s], np.zeros(actions)]),
                A_ub=np.vstack(
                    [
                        *(np.concatenate([-gain[s], np.zeros(actions)]) for gain in advantage),
                        np.concatenate([np.zeros(actions), cost]),
                        np.hstack([same, -same]),
                        np.hstack([-same, -same]),
                    ]
                ),
                b_ub=np.concatenate([[0.0] * len(models), [epsilon], before[s], -before[s]]),
                A_eq=[[1.0] * actions + [0.0] * actions],
                b_eq=[1.0],
                bounds=[*limits, *[(0.0, 1.0)] * actions],
            )
            if found.x is not None:
                table[s] = np.clip(found.x[:actions], 0.0, 1.0)
        new = Policy.from_dense(policy.pairs, table / table.sum(axis=1, keepdims=True))
        if np.allclose(new.probability, policy.probability, atol=1e-9):
            break
        policy = new
    return policy


def h_opt(logs: list[DecisionLog], behavior: Policy, seed: int) -> Policy:
    """Returns the candidate of H-OPT, or π_b where it is not shown to be better."""
    parts = [split_episodes(log, 0.7, seed) for log in logs]
    whole = replace(parts[0][0], reward=sum(train.reward for train, _ in parts))
    problem = Problem(
        counts=whole.counts(), behavior=behavior, discount=DISCOUNT, value_bounds=(-1e5, 1e5)
    )
    policy = SPIBB(n_wedge=0).improve(problem).policy  # the best of what was seen
    for _, test in parts:
        if test is None or test.num_episodes < 2:
            return behavior
        values = [
            per_decision(importance_weights(test, each, behavior), DISCOUNT).values
            for each in (policy, behavior)
        ]
        if not student_t(values[0], DELTA) > values[1].mean():
            return behavior
    return policy


def shielded(
    problem: Problem, model: FiniteMDP, pits: np.ndarray, n_wedge: int = N_WEDGE
) -> Policy:
    """Returns the policy of SPIBB behind a shield; of the model, only the graph is looked at."""
    size, actions = model.num_states, model.pairs.num_actions
    graph = model.dense().P.reshape(-1, size) > 0
    times = problem.estimate().dense().P.reshape(-1, size) * problem.counts.visits[:, np.newaxis]
    width = np.maximum(graph.sum(axis=1), 1)[:, np.newaxis]
    visits = problem.counts.visits[:, np.newaxis]
    mode = (times + (PHANTOM - 1) * graph) / (visits + (PHANTOM - 1) * width)
    level = DELTA / (size * actions * actions)
    reach = np.sqrt(np.log(2 / level) / (2 * (visits + PHANTOM * actions)))
    low, high = (np.where(graph, np.clip(mode + sign * reach, 0, 1), 0) for sign in (-1, 1))
    arrived = np.arange(size) == size - 1
    value = arrived.astype(float)
    for _ in range(SWEEPS):
        q = worst_case(low, high, value).reshape(size, actions)
        value = np.where(arrived, 1.0, np.where(pits, 0.0, q.max(axis=1)))
    missed = 1 - q
    allowed = (missed <= THRESHOLD) | (missed <= missed.min(axis=1, keepdims=True) + BUFFER)
    table = np.where(allowed, problem.behavior.dense() + EXTRA, 0.0)
    behavior = Policy.from_dense(model, table / table.sum(axis=1, keepdims=True))
    inside = problem.with_behavior(behavior).within(~allowed.ravel())
    return SPIBB(n_wedge=n_wedge).improve(inside).policy


def worst_case(low: np.ndarray, high: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Returns the least mean of the values over rows within intervals [K]."""
    order = np.argsort(value)
    room = np.cumsum((high - low)[:, order], axis=1)
    left = np.maximum(1 - low.sum(axis=1, keepdims=True), 0.0)
    added = np.diff(np.minimum(room, left), axis=1, prepend=0.0)
    worst: np.ndarray = low @ value + added @ value[order]
    return worst
