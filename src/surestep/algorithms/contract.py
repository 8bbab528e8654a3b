"""Defines what an algorithm is: settings, the method `improve`, and the promises it makes.

An algorithm *declares* its promises, and one suite of tests holds every algorithm to exactly those.

The functions that several algorithms share are here too: they make the estimates that algorithms
plan in, and evaluate any policy in the estimated MDP.
"""

from dataclasses import replace
from enum import Enum
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.certificates.node_tables import NodeTable
from surestep.model import Counts, FactoredProblem, FiniteMDP, Improvement, Policy, Problem
from surestep.model.pairs import check_same_pairs
from surestep.planning.evaluation import evaluate_with_bound, q_values
from surestep.planning.proof import TIE_TOLERANCE

NWedge = Annotated[int, Meta(ge=0, description="pairs with at most that many visits are avoided")]


class Promise(Enum):
    """A property that holds for every problem.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB, Promise
    >>> Promise.NEVER_WORSE in SPIBB(n_wedge=5).promises
    True
    >>> Promise.NEVER_WORSE.value
    'never worse than π_b in the estimated MDP'
    """

    KEEPS_BEHAVIOR = "keeps π_b without data"
    NEVER_WORSE = "never worse than π_b in the estimated MDP"
    REACHES_OPTIMUM = "reaches the optimum as every pair's visits grow"
    OPTIMAL_IN_CLASS = "optimal in its class of policies"
    RENUMBERING = "values do not depend on the numbers of states and actions"


class Improver(Protocol):
    """An object that proposes a policy for a problem."""

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy it proposes."""
        ...


class Algorithm(Improver, Protocol):
    """A frozen dataclass of settings with one verb, `improve`.

    An algorithm that looks at whole episodes (`problem.log`) has `looks_at_log` = True besides.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB, Algorithm
    >>> algorithm: Algorithm = SPIBB(n_wedge=5)
    >>> algorithm.source, algorithm.constraint
    ('Laroche, Trichelair, Tachet des Combes 2019', 'π = π_b on pairs with at most N∧ visits')
    """

    name: ClassVar[str]  # in the registry and on the command line
    source: ClassVar[str]  # the paper it comes from
    constraint: ClassVar[str]  # a property of all its policies, in words; empty: none

    @property
    def promises(self) -> frozenset[Promise]:
        """Returns the promises that it makes with these settings."""
        ...


def improve_on_nodes(algorithm: Improver, problem: FactoredProblem) -> Policy:
    """Improves the policy of a small world with the estimate of its nodes.

    A pair has as many visits as its scarcest node has draws. So `SPIBB(n_wedge=10)` is factored
    SPIBB (Simão and Spaan 2019): it keeps π_b where some node has at most 10 draws.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm; it plans in the estimate, and may look at visits, but not at a log.
    problem : FactoredProblem
        A log with its structure, and the current policy.

    Returns
    -------
    Policy
        The policy over all states, which are numbers whose digits are the columns.

    Raises
    ------
    InvalidParameter
        The world has too many states to enumerate.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB, improve_on_nodes
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 20, rng=1))
    >>> improve_on_nodes(SPIBB(n_wedge=10), problem).pairs.num_states
    16
    """
    table = NodeTable.of(problem)
    return table.lowered(algorithm.improve(table.problem).policy)


def tie_of(q: arrays.FloatArray) -> float:
    """Returns the difference up to which values count as equal: a share of the largest |q|."""
    return TIE_TOLERANCE * float(np.abs(q).max())


def ends_of_episodes(problem: Problem) -> arrays.BoolArray:
    """Marks the pairs [K] of states in which episodes are known to end."""
    ends: arrays.BoolArray = problem.counts.terminal[problem.counts.pairs.state]
    return ends


def with_known_reward(counts: Counts) -> arrays.BoolArray:
    """Marks the transitions [T] that were seen, or whose reward is known without data."""
    known_beforehand = counts.rewards.known and counts.rewards.per == "transition"
    return (counts.times > 0) | known_beforehand


def valued_at_lowest(
    problem: Problem, scarce: arrays.BoolArray, price: arrays.FloatArray | None = None
) -> FiniteMDP:
    """Returns the estimated MDP in which scarce pairs [K] are worth the lower value bound.

    `price` [K] is taken off the rewards of all others.
    """
    lowest = scarce & ~ends_of_episodes(problem)
    return ended(problem.estimate(), lowest, np.full(lowest.size, problem.value_bounds[0]), price)


def ended(
    mdp: FiniteMDP,
    over: arrays.BoolArray,
    worth: arrays.FloatArray,
    price: arrays.FloatArray | None = None,
) -> FiniteMDP:
    """Returns the MDP in which the pairs `over` [K] end the episode and earn `worth` [K].

    `price` [K] is taken off the rewards of all others.
    """
    owner = arrays.run_owners(mdp.offsets)
    kept = ~over[owner]
    reward = mdp.reward if price is None else mdp.reward - price[owner]
    return replace(
        mdp,
        offsets=arrays.offsets_of(np.where(over, 0, arrays.run_lengths(mdp.offsets))),
        successor=mdp.successor[kept],
        probability=mdp.probability[kept],
        reward=reward[kept],
        ending_reward=np.where(over, worth, mdp.ending_reward),
    )


def improvement_of(
    problem: Problem, policy: Policy, iterations: int = 0, n_wedge: int | None = None
) -> Improvement:
    """Returns a policy, wherever it was made, with its value in the estimated MDP.

    A rule that somebody wrote down, or the policy of another program, can then be judged like the
    policy of an algorithm.

    Parameters
    ----------
    problem : Problem
        The data, π_b and the value bounds.
    policy : Policy
        The policy, over the pairs of the problem.
    iterations : int
        The iterations that an algorithm took; 0 by default.
    n_wedge : int, optional
        The N∧ that an algorithm used.

    Returns
    -------
    Improvement
        The policy, and its value in the estimated MDP.

    Raises
    ------
    InvalidModel
        The policy is about other pairs than the problem.

    Examples
    --------
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> north = surestep.Policy.deterministic(world.mdp, [0] * 25)
    >>> surestep.improvement_of(problem, north).policy == north
    True
    """
    arrays.expect("problem", problem, Problem)
    arrays.expect("policy", policy, Policy)
    check_same_pairs("the problem", problem.counts.pairs, "the policy", policy.pairs)
    estimate = problem.estimate()
    evaluation = evaluate_with_bound(estimate, policy)
    return Improvement.of(
        problem, evaluation.plan(policy, iterations, q_values(estimate, evaluation.value)), n_wedge
    )
