"""Defines what an algorithm is: settings, the method `improve`, and the promises it makes.

An algorithm *declares* its promises, and one suite of tests holds every algorithm to exactly those.

The functions that several algorithms share are here too: they make the estimates that algorithms
plan in, and evaluate any policy in the estimated MDP.

*Limits* close pairs for any algorithm: pairs that were hardly tried, or that nobody allows. No
policy takes a closed pair (`Problem.closed`) more often than π_b. An algorithm that looks at closed
pairs does the best it can with the others, each in its own way: for SPIBB and for those that plan
in one model they are as if seen too seldom, for Soft-SPIBB a change of them has no price that could
be paid, and those that test a policy test it after it was held to π_b there. The policy of an
algorithm that does not look is held to π_b afterwards.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_settings
from surestep.certificates.node_tables import NodeTable
from surestep.model import Counts, FactoredProblem, FiniteMDP, Improvement, Policy, Problem
from surestep.model.noun import noun
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
    constraint: ClassVar[str] = ""  # a property of all its policies, in words; empty: none

    @property
    def promises(self) -> frozenset[Promise]:
        """Returns the promises that it makes with these settings."""


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
    return problem.counts.terminal[problem.counts.pairs.state]


def with_known_reward(counts: Counts) -> arrays.BoolArray:
    """Marks the transitions [T] that were seen, or whose reward is known without data."""
    return (counts.times > 0) | (counts.rewards.known and counts.rewards.per == "transition")


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


# ---- limits ------------------------------------------------------------------------------------

ROUNDING = 1e-12  # of a probability


@noun("least_visits", "allowed")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limits(arrays.ByValue):
    """Limits that close pairs seen fewer than `least_visits` times, and pairs not in `allowed`."""

    least_visits: Annotated[int, Meta(ge=0, description="pairs seen less often are left alone")] = 0
    allowed: arrays.BoolArray | None = None  # [K]; None: all

    def __post_init__(self) -> None:
        check_settings(self)
        arrays.keep(self, allowed=self.allowed)

    def follow_from(self, n_wedge: int) -> bool:
        """Tells whether every pair that the limits close has at most N∧ visits."""
        return self.allowed is None and self.least_visits <= n_wedge + 1

    def closed(self, counts: Counts) -> arrays.BoolArray:
        """Returns the pairs [K] that no policy may take more often than π_b."""
        scarce: arrays.BoolArray = counts.visits < self.least_visits
        return scarce if self.allowed is None else scarce | ~self.allowed


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """An algorithm whose proposals keep to the limits."""

    algorithm: Algorithm
    limits: Limits

    @property
    def name(self) -> str:
        """Returns the name of the algorithm."""
        return self.algorithm.name

    def improve(self, problem: Problem) -> Improvement:
        """Returns the algorithm's proposal, in which no closed pair exceeds π_b."""
        within = problem.within(self.limits.closed(problem.counts))
        proposed = self.algorithm.improve(within)
        more = proposed.policy.probability > problem.behavior.probability + ROUNDING
        if not (more & ~within.open_pairs()).any():
            return proposed
        return improvement_of(
            problem, kept(within, proposed.policy), proposed.plan.iterations, proposed.n_wedge
        )


def limited(algorithm: Algorithm, limits: Limits) -> Algorithm | Limited:
    """Returns the algorithm within the limits; the algorithm itself if there are none."""
    return algorithm if limits == NO_LIMITS else Limited(algorithm=algorithm, limits=limits)


def kept(problem: Problem, policy: Policy) -> Policy:
    """Returns the policy with the probabilities of π_b on closed pairs."""
    return kept_where(~problem.open_pairs(), policy, problem.behavior)


def kept_where(kept: arrays.BoolArray, policy: Policy, behavior: Policy) -> Policy:
    """Returns the policy with the probabilities of π_b on the pairs `kept` [K].

    The other pairs of a state share what is left in the proportions of the policy, or of π_b where
    the policy has nothing there.
    """
    offsets = policy.pairs.offsets
    state = policy.pairs.state
    fixed: arrays.FloatArray = np.where(kept, behavior.probability, 0.0)
    free: arrays.FloatArray = np.where(kept, 0.0, policy.probability)
    nothing = arrays.run_sums(free, offsets)[state] <= 0.0
    free = np.where(nothing & ~kept, behavior.probability, free)
    left = 1.0 - arrays.run_sums(fixed, offsets)
    total = arrays.run_sums(free, offsets)
    scale = np.divide(left, total, out=np.ones_like(left), where=total > 0)
    changed = policy.probability != behavior.probability  # equal chances stay equal to the bit
    touched = (arrays.run_sums(kept * 1, offsets) > 0) & (arrays.run_sums(changed * 1, offsets) > 0)
    return Policy(
        policy.pairs,
        np.where(touched[state], fixed + np.maximum(free * scale[state], 0.0), policy.probability),
    )
