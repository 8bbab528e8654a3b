"""Defines benchmarks: a known MDP, and the policies that act in it.

The module also has the types by which `make` checks the parameters of benchmarks, and a function
that makes models from tables of rows.
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Protocol, runtime_checkable

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_settings
from surestep.errors import InvalidParameter
from surestep.model import DecisionLog, Policy, Problem
from surestep.model.mdp import FiniteMDP, spread_initial
from surestep.model.noun import noun
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.planning import evaluate_batch, performance, policy_iteration
from surestep.planning.iteration import best_actions
from surestep.sampling import sample_log

MOST_STATES = 2_000_000  # a Wet Chicken of that size takes some 7 GB while it is built

Portion = Annotated[float, Meta(ge=0, le=1)]
LegacySeed = Annotated[int, Meta(ge=0, le=2**32 - 1)]  # a seed of NumPy's legacy generator
Length = Annotated[int, Meta(ge=1, le=MOST_STATES)]


def check_size(parameters: str, states: int) -> None:
    """Refuses parameters that make more states than a model should have."""
    if states > MOST_STATES:
        raise InvalidParameter(f"{parameters} make {states} states, expected at most {MOST_STATES}")


def mdp_from_rows(
    pairs: Pairs,
    successor: arrays.AnyArray,
    probability: arrays.FloatArray,
    reward: arrays.AnyArray,
    discount: float,
) -> FiniteMDP:
    """Returns the MDP of one row of successors a pair, starting in state 0.

    All tables are [K, W]; entries of probability 0 are ignored, and a row of zeros is a pair that
    ends the episode.
    """
    kept = probability > 0
    return FiniteMDP(
        pairs,
        arrays.own(arrays.offsets_of(np.count_nonzero(kept, axis=1))),
        np.broadcast_to(successor, kept.shape)[kept],
        arrays.own(probability[kept]),
        arrays.own(np.broadcast_to(reward, kept.shape)[kept].astype(np.float64)),
        arrays.own(np.full(pairs.num_pairs, discount)),
        spread_initial(pairs, 0),
    )


@noun("mdp.num_states", "mdp.num_pairs")
@dataclass(frozen=True, slots=True, eq=False)
class Truth(arrays.ByValue, arrays.Frozen):
    """The model in which policies are judged, and the map from its pairs to pairs of the log.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    pair : array of int [K of mdp]
        The pair of the log whose probability each pair of the model takes. If the log merges states
        of the model, several pairs of the model are one pair of the log.

    Examples
    --------
    >>> from surestep.environments import make
    >>> coarse = make("coarse")  # the log shows groups of states
    >>> coarse.num_states, coarse.truth.mdp.num_states
    (20, 96)
    """

    mdp: FiniteMDP
    pair: arrays.IntArray  # [K of mdp]

    def acting(self, policy: Policy) -> Policy:
        """Returns the policy as it acts in the model.

        Parameters
        ----------
        policy : Policy
            A policy of the log.

        Returns
        -------
        Policy
            The same policy, over the pairs of the model.
        """
        return Policy(self.mdp.pairs, policy.probability[self.pair])

    def worth(self, policies: arrays.FloatArray) -> arrays.FloatArray:
        """Returns ρ of policies in the model.

        Parameters
        ----------
        policies : array of float [B, K]
            Probabilities of the pairs of the log, one row for each policy.

        Returns
        -------
        array of float [B]
            The expected discounted return of each policy.
        """
        return arrays.weighted_rows(
            evaluate_batch(self.mdp, policies[:, self.pair]).value, self.mdp.initial
        )


@runtime_checkable
class Simulator(Protocol):
    """Makes the data of a benchmark in place of its finite model.

    Examples
    --------
    >>> from surestep.environments import Simulator, make
    >>> isinstance(make("coarse").simulator, Simulator)
    True
    """

    @property
    def truth(self) -> Truth | None:
        """Returns the finite model that makes the data; None if there is none."""

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of episodes of a policy.

        Parameters
        ----------
        policy : Policy
            The policy that acts, over the pairs of the log.
        episodes : int
            The number of episodes.
        horizon : int
            The number of steps after which episodes are truncated.
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        DecisionLog
            The log.
        """


@noun("name", "num_states", "num_actions", "discount", "horizon")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Benchmark(arrays.ByValue):
    """A known MDP with the policies, rewards and bounds of an experiment in it.

    Parameters
    ----------
    name : str
        Its name in the registry.
    mdp : FiniteMDP
        The model, with one discount. If a simulator makes the data, it is the model that a very
        large log would show.
    behavior : Policy
        The behavior policy π_b.
    collector : Policy, optional
        The policy that makes the data; by default π_b.
    horizon : int or None
        The steps of an episode; None if the data is one stream of steps.
    rewards : {"known", "observed"}
        "known" is a table of expected rewards that holds at unvisited pairs too; "observed", the
        default, goes through P̂, so that an unvisited pair earns 0.
    value_bounds : tuple of float
        Bounds of every V^π(s), for the problem.
    return_bounds : tuple of float, optional
        Bounds of the return of every single episode; by default the value bounds.
    ranges : tuple of tuple of float, optional
        Bounds of single rewards of running and of ending steps, as a user would declare them.
    declared : bool
        False if no bounds are declared, so that claims rest on the rewards of the log; True by
        default.
    simulator : Simulator, optional
        The simulator that makes the data; by default the model does.

    Examples
    --------
    >>> from surestep.environments import make
    >>> make("gridworld")
    Benchmark(name='gridworld', num_states=25, num_actions=4, discount=0.95, horizon=50)
    """

    name: str  # in the registry
    mdp: FiniteMDP
    behavior: Policy  # π_b
    # the policy that makes the data; None means the behavior policy
    collector: Policy = field(default=None)  # type: ignore[assignment]
    # steps of an episode; None: the data is one stream of steps
    horizon: Annotated[int | None, Meta(ge=1)]
    rewards: Literal["known", "observed"] = "observed"
    value_bounds: tuple[float, float]
    # of the return of every single episode; None means the value bounds
    return_bounds: tuple[float, float] | None = None
    # of single rewards of running and of ending steps, as a user would declare them
    ranges: tuple[tuple[float, float], tuple[float, float]] | None = None
    declared: bool = True  # if False, claims rest on the rewards of the log
    simulator: Simulator | None = None  # makes the data; None: the model does

    def __post_init__(self) -> None:
        object.__setattr__(self, "collector", self.collector or self.behavior)
        check_settings(self)
        for who, policy in (("behavior", self.behavior), ("collector", self.collector)):
            check_same_pairs("the model", self.mdp.pairs, f"the {who} policy", policy.pairs)
        if (self.mdp.discount != self.mdp.discount[0]).any():
            raise InvalidParameter("the model of a benchmark has one discount for all pairs")

    @property
    def num_states(self) -> int:
        """Returns |S|, ends of episodes included."""
        return self.mdp.num_states

    @property
    def num_actions(self) -> int:
        """Returns |A|."""
        return self.mdp.pairs.num_actions

    @property
    def discount(self) -> float:
        """Returns γ."""
        return float(self.mdp.discount[0])

    @property
    def known_rewards(self) -> arrays.FloatArray | None:
        """Returns the known rewards [K] of the experiment, or None if it observes rewards."""
        return self.mdp.expected_reward if self.rewards == "known" else None

    @property
    def truth(self) -> Truth:
        """Returns the model in which policies are judged; raises an error if there is none."""
        if self.simulator is not None and self.simulator.truth is None:
            raise InvalidParameter(
                f"{self.name} is simulated, so no true gain is known that a claim could be held "
                "against; expected an environment with a finite model"
            )
        return self.best_model

    @property
    def best_model(self) -> Truth:
        """Returns the simulator's truth, or the benchmark's own model if there is none."""
        known = None if self.simulator is None else self.simulator.truth
        return known or Truth(self.mdp, np.arange(self.mdp.num_pairs))

    def performance_of_behavior(self) -> float:
        """Returns ρ(π_b) in the true MDP.

        Returns
        -------
        float
            The expected discounted return of π_b.
        """
        model = self.best_model
        return performance(model.mdp, model.acting(self.behavior))

    def optimal_performance(self) -> float:
        """Returns ρ(π*) in the true MDP.

        If the log merges states of this MDP, policies of the log may fall short of it.

        Returns
        -------
        float
            The largest expected discounted return of all policies.
        """
        model = self.best_model
        plan = policy_iteration(model.mdp, best_actions(model.mdp), model.acting(self.behavior))
        return performance(model.mdp, plan.policy)

    def worst_performance(self) -> float:
        """Returns the least ρ(π) of all policies in the true MDP.

        Returns
        -------
        float
            The smallest expected discounted return of all policies.
        """
        model = self.best_model
        turned = replace(
            model.mdp, reward=-model.mdp.reward, ending_reward=-model.mdp.ending_reward
        )
        plan = policy_iteration(turned, best_actions(turned), model.acting(self.behavior))
        return performance(model.mdp, plan.policy)

    def sample(self, size: int, rng: np.random.Generator | int) -> DecisionLog:
        """Draws data of the collector.

        Parameters
        ----------
        size : int
            The number of episodes, or of steps if the data is one stream.
        rng : numpy.random.Generator or int
            The source of randomness, or a seed.

        Returns
        -------
        DecisionLog
            The log.
        """
        arrays.expect_count("size", size)
        rng = arrays.generator(rng)
        episodes, horizon = (1, size) if self.horizon is None else (size, self.horizon)
        if self.simulator is not None:
            return self.simulator.rollout(self.collector, episodes, horizon, rng)
        return sample_log(self.mdp, self.collector, episodes, horizon, rng)

    def problem(self, log: DecisionLog) -> Problem:
        """Returns the problem of a log, with the policy, discount and bounds of the benchmark.

        Parameters
        ----------
        log : DecisionLog
            A log over the pairs of the benchmark.

        Returns
        -------
        Problem
            The counts and the log, π_b, the discount and the value bounds.
        """
        arrays.expect("log", log, DecisionLog)
        return Problem(
            counts=log.counts(self.known_rewards),
            behavior=self.behavior,
            discount=self.discount,
            value_bounds=self.value_bounds,
            log=log,
        )
