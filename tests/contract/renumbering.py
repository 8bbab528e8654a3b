"""The same problem with other numbers for its states and actions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surestep import Counts, Plan, Policy, Problem, evaluate_with_bound
from surestep.algorithms.contract import valued_at_lowest
from surestep.algorithms.pessimistic import ball_around
from surestep.planning import Evaluation, optimal, q_values
from surestep.planning.robust import worst_value


def renumbered(problem: Problem, states: np.ndarray, actions: np.ndarray) -> Problem:
    """The problem in which state s has the number `states[s]`, and action a `actions[a]`."""
    counts, pairs = problem.counts, problem.counts.pairs

    def moved(table):
        result = np.zeros_like(table)
        result[np.ix_(*(states, actions, states)[: table.ndim])] = table
        return result

    per_pair = counts.rewards.per == "pair"
    rewards = moved((pairs.dense if per_pair else counts.dense_cube)(counts.rewards.values))
    again = Counts.from_dense(
        moved(counts.dense_cube(counts.times)),
        **{"rewards" if counts.rewards.known else "reward_sums": rewards},
        starts=moved(counts.starts),
        enabled=moved(pairs.enabled()),
        terminal=moved(counts.terminal),
    )
    log = problem.log and replace(
        problem.log,
        pairs=again.pairs,
        state=states[problem.log.state],
        action=actions[problem.log.action],
        next_state=states[problem.log.next_state],
    )
    behavior = Policy.from_dense(again, moved(problem.behavior.dense()))
    return replace(problem, counts=again, behavior=behavior, log=log)


def value_in_own_model(algorithm, problem: Problem, policy: Policy) -> Evaluation | Plan:
    """The value of the policy in the model that the algorithm plans in.

    That is where it breaks ties by number: in the estimated MDP, policies that tie may differ.
    """
    visits = problem.counts.visits
    if algorithm.name == "ramdp":
        price = algorithm.kappa / np.sqrt(np.maximum(visits, 1))
        return evaluate_with_bound(valued_at_lowest(problem, visits == 0, price), policy)
    if algorithm.name == "vi-lcb":
        price = algorithm.bonus(problem)
        lowest = np.ones(visits.size, bool)
        for _ in range(visits.size + 2):
            mdp = valued_at_lowest(problem, lowest, price)
            q = q_values(valued_at_lowest(problem, visits == 0, price), optimal(mdp).value)
            lowest = (visits == 0) | (q <= problem.value_bounds[0])
        return evaluate_with_bound(mdp, policy)
    if algorithm.name == "rmin":
        return evaluate_with_bound(valued_at_lowest(problem, visits <= algorithm.n_wedge), policy)
    subsets = 2**problem.num_states
    if algorithm.name == "pessimistic-mbie":
        log_subsets = math.log(subsets - 2) if subsets > 2 else -math.inf
        return worst_value(ball_around(problem, algorithm.delta, log_subsets, factor=2), policy)
    if algorithm.name == "robust-mdp":
        return worst_value(
            ball_around(problem, algorithm.delta, math.log(subsets), factor=1), policy
        )
    return evaluate_with_bound(problem.estimate(), policy)
