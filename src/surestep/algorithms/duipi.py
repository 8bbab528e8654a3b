"""DUIPI: diagonal approximation of uncertainty incorporating policy iteration.

Values and their variances are iterated together, for a stochastic policy that leans towards the
action with the best q − ξ√Var q. Source: Schneegass, Hans and Udluft (2010); actions never tried
are left out, as Scholl, Dietrich, Otte and Udluft (2022) do.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Settings
from surestep.algorithms.contract import (
    Algorithm,
    Promise,
    ends_of_episodes,
    improvement_of,
    kept,
    tie_of,
    with_known_reward,
)
from surestep.kernels.backup import expected_values
from surestep.kernels.spibb import UncertainModel, lean_towards_best, uncertain_backup
from surestep.model import Improvement, Policy, Problem

PRIOR = 0.1  # the Dirichlet weight of every successor state
ROUNDS = 5_000  # the published limit: the policy moves by at most 1/t in round t
TOLERANCE = 1e-9  # of the largest |q|, and of a probability


@dataclass(frozen=True, slots=True, kw_only=True)
class DUIPI(Settings, Algorithm):
    """The policy that leans towards actions whose value is high and certain.

    Parameters
    ----------
    xi : float
        The number ξ of standard deviations that are taken off.
    estimator : {"bayesian", "frequentist"}
        A Dirichlet posterior with weight 0.1 a state, the default; or P̂ and its sampling variance.

    Notes
    -----
    It starts in a full tie, so its policy may depend on how actions are numbered. In a state never
    visited it stays uniform.

    References
    ----------
    Schneegass, D., Hans, A., Udluft, S. (2010). Uncertainty in Reinforcement Learning.

    Examples
    --------
    >>> from surestep.algorithms import DUIPI
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = DUIPI(xi=1.0).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.58
    """

    xi: Annotated[float, Meta(ge=0, description="so many standard deviations are taken off")]  # ξ
    estimator: Annotated[
        Literal["bayesian", "frequentist"], Meta(description="chances and variances come from it")
    ] = "bayesian"

    name: ClassVar = "duipi"
    source: ClassVar = "Schneegass, Hans, Udluft 2010"
    promises: ClassVar = frozenset({Promise.REACHES_OPTIMUM})

    def improve(self, problem: Problem) -> Improvement:
        """Iterates until values and policy stand still, or for the published number of rounds.

        A mixture of actions has a smaller variance than each of them, so two actions may take turns
        in the lead for ever. The policy then nears a mixture of them, by 1/t in round t, and the
        number of rounds ends it: so it is in published code too. That code does not wait for the
        policy, and leaves it half-way in states to which no other leads.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the value bounds.

        Returns
        -------
        Improvement
            The policy, and its value in the estimated MDP.
        """
        uncertain = uncertain_model(problem, self.estimator)
        pairs = problem.counts.pairs
        visited = problem.counts.visits > 0
        ends = ends_of_episodes(problem)
        ending = problem.estimate().ending_reward
        # The prior says what to expect of a pair never visited; without one, `unseen` does.
        settled = ends if self.estimator == "bayesian" else ends | ~visited
        probability = Policy.uniform(pairs).probability.copy()
        q, q_variance = np.zeros(pairs.num_pairs), np.zeros(pairs.num_pairs)
        value, variance = np.zeros(pairs.num_states), np.zeros(pairs.num_states)
        for rounds in range(1, ROUNDS + 1):
            expected_values(pairs.offsets, probability, q, value)
            expected_values(pairs.offsets, probability**2, q_variance, variance)
            before = q.copy()
            leaned = probability.copy()
            uncertain_backup(uncertain, value, variance, q, q_variance)
            q[settled] = ending[settled]
            q_variance[ends] = 0.0
            lean_towards_best(
                pairs.offsets, q, q_variance, visited, self.xi, 1 / rounds, tie_of(q), probability
            )
            still = np.abs(probability - leaned).max() <= TOLERANCE
            if still and np.linalg.norm(q - before) <= TOLERANCE * np.abs(q).max():
                break
        return improvement_of(problem, kept(problem, Policy(pairs, probability)), rounds)


def uncertain_model(problem: Problem, estimator: str) -> UncertainModel:
    """Returns the model that the estimator makes of the counts."""
    arrays.expect("problem", problem, Problem)
    counts = problem.counts
    estimate = problem.estimate()
    visits = counts.visits.astype(np.float64)
    stored = with_known_reward(counts)
    offsets = arrays.offsets_of(arrays.run_sums(stored.astype(np.int64), counts.offsets))
    times = counts.times[stored].astype(np.float64)
    owner = arrays.run_owners(offsets)
    if estimator == "bayesian":
        total = visits + PRIOR * counts.pairs.num_states
        chance, variance = dirichlet_moments(times + PRIOR, total[owner])
        other_chance, other_variance = dirichlet_moments(np.full(visits.size, PRIOR), total)
    else:
        chance = times / np.maximum(visits, 1)[owner]
        several = visits > 1  # one visit says nothing about a variance: it is at most ¼
        sampling = chance * (1 - chance) / np.maximum(visits - 1, 1)[owner]
        variance = np.where(several[owner], sampling, 0.25)
        other_chance = np.zeros(visits.size)
        other_variance = np.where(several, 0.0, 0.25)
    return UncertainModel(
        offsets,
        counts.successor[stored],
        chance,
        variance,
        counts.mean_reward()[stored],
        other_chance,
        other_variance,
        np.where(visits > 0, estimate.expected_reward, counts.unseen_reward()),
        estimate.discount,
    )


def dirichlet_moments(
    weight: arrays.FloatArray, total: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns the mean α/α₀ and the variance α(α₀ − α)/(α₀²(α₀ + 1)) of a Dirichlet component."""
    mean = weight / total
    return mean, mean * (1 - mean) / (total + 1)
