"""What every policy of an algorithm obeys, checked from the counts and the log alone."""

from __future__ import annotations

import math

import numpy as np

from surestep import Improvement, Problem
from surestep.algorithms.pessimistic import ball_around
from surestep.planning.robust import best_value, worst_value


def errors_of(algorithm, problem: Problem) -> np.ndarray:
    """e(s,a) by the published formulas, one pair at a time."""
    states, delta = problem.num_states, algorithm.delta
    actions = max(np.diff(problem.counts.pairs.offsets))
    inside = 2 * states * actions / delta
    log_term = math.log(inside * 2**states if algorithm.error == "spibb" else inside)
    return np.array([math.sqrt(2 * log_term / n) if n else math.inf for n in problem.counts.visits])


def spent(problem: Problem, change: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Σ_a e · change in every state [S], where nothing times ∞ is nothing."""
    cost = np.where(change > 0, np.where(change > 0, error, 0.0) * change, 0.0)
    return np.add.reduceat(cost, problem.counts.pairs.offsets[:-1])


def equals_behavior_where_scarce(algorithm, problem: Problem, found: Improvement) -> None:
    """π = π_b bit for bit on U."""
    scarce = problem.counts.visits <= found.n_wedge
    assert np.array_equal(found.policy.probability[scarce], problem.behavior.probability[scarce])


def at_most_behavior_where_scarce(algorithm, problem: Problem, found: Improvement) -> None:
    """π ≤ π_b on U."""
    scarce = problem.counts.visits <= found.n_wedge
    assert (found.policy.probability <= problem.behavior.probability)[scarce].all()


def keeps_to_budget(algorithm, problem: Problem, found: Improvement) -> None:
    """Σ_a e |π − π_b| ≤ ε."""
    change = np.abs(found.policy.probability - problem.behavior.probability)
    cost = spent(problem, change, errors_of(algorithm, problem))
    assert cost.max() <= algorithm.epsilon + 1e-12


def keeps_increases_to_budget(algorithm, problem: Problem, found: Improvement) -> None:
    """Σ_a e (π − π_b)⁺ ≤ ε."""
    change = np.maximum(found.policy.probability - problem.behavior.probability, 0)
    cost = spent(problem, change, errors_of(algorithm, problem))
    assert cost.max() <= algorithm.epsilon + 1e-12


def beats_behavior_at_worst(algorithm, problem: Problem, found: Improvement) -> None:
    """π_b, unless the worst case of π beats the best case of π_b."""
    if found.policy == problem.behavior:
        return
    ball = ball_around(problem, algorithm.delta, problem.num_states * math.log(2), factor=1)
    initial = problem.estimate().initial
    worst, best = worst_value(ball, found.policy), best_value(ball, problem.behavior)
    assert initial @ worst.value > initial @ best.value


def changes_where_it_was_trained(algorithm, problem, improvement):
    """HCPI: π_b where the training episodes never decide; no action that π_b never takes there."""
    changed = improvement.policy.probability != problem.behavior.probability
    if problem.log is None or not changed.any():
        return
    episodes = problem.log.num_episodes
    cut = round(algorithm.train_share * episodes)
    assert min(cut, episodes - cut) >= 2
    decided = np.zeros(problem.num_states, bool)
    decided[problem.log.episodes(slice(0, cut)).state] = True
    assert decided[problem.counts.pairs.state[changed]].all()
    assert (problem.behavior.probability[improvement.policy.probability > 0] > 0).all()


def at_most_behavior_where_unseen(algorithm, problem: Problem, found: Improvement) -> None:
    """π ≤ π_b on pairs never seen."""
    unseen = problem.counts.visits == 0
    assert (found.policy.probability <= problem.behavior.probability)[unseen].all()


CONSTRAINTS = {
    "spibb": equals_behavior_where_scarce,
    "spibb-2s": equals_behavior_where_scarce,
    "spibb-beta": equals_behavior_where_scarce,
    "lower-spibb": at_most_behavior_where_scarce,
    "exact-soft-spibb": keeps_to_budget,
    "approx-soft-spibb": keeps_to_budget,
    "advantage-soft-spibb": keeps_to_budget,
    "one-step-exact-soft-spibb": keeps_to_budget,
    "one-step-approx-soft-spibb": keeps_to_budget,
    "lower-soft-spibb": keeps_increases_to_budget,
    "robust-mdp": beats_behavior_at_worst,
    "hcpi": changes_where_it_was_trained,
    "provable": at_most_behavior_where_unseen,
    "constrained": equals_behavior_where_scarce,
}
