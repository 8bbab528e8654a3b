"""The posterior certificate on nodes: a quantile of the gain over laws of nodes that are drawn.

**Draws.** The law of every node that is not known has a Dirichlet prior over the node's values.
Given the draws that a log shows, it is Dirichlet again. World k has one draw of every node, for all
rows of the world that share it, and weights of the episodes, uniform over all that add up to 1 (a
Bayesian bootstrap; Rubin 1981). These weights say how often episodes start as that one did. Where
not all of π_b is known, they also weigh what episodes returned, with the most that may follow a
cut. Nothing is enumerated: m/4 rollouts of each policy are made in each world, both by the same
random numbers.

**Four priors.** One has the same weight for each value. It fears what a node seldom tried may still
show, but it fears that of π_b's rare nodes as well: a reward of −50 that comes in one of 1,000
steps makes whatever was seldom tried look bad. So the second one leans towards *siblings*, the
nodes of the same column and parents with another part of the action: its weight is spread as their
draws together (and the first prior) are, which is an empirical Bayes prior (Robbins 1956), as the
pooled one of `certificates.posterior`. Both are taken in full and with half their weight. A gain is
believed if it is one under all four, so that none owes its sign to the weight of a prior.

**The gain in a world.** All rollouts serve all worlds of all priors. If p_k(τ) is the chance of
the draws of rollout τ in world k, then its return counts with the weight p_k(τ) / (Σ_j p_j(τ) / 4n)
in world k, and the mean over all n·m rollouts is unbiased (the balance heuristic; Veach and Guibas
1995). Where the log tells the laws well, this is as good as n·m rollouts in each world; where it
does not, hardly worse than m/4 of its own. D̂_k is the mean gain, and s_k its standard error.

**The claim.** Under each prior take the r-th smallest D_k = D̂_k − z s_k, r = ⌊0.9 δ (n + 1)⌋; L is
the least of the four. Given the data, the true world is one more draw. Roll it out in thought: its
D is exchangeable with D_1 … D_n (but for its part in the others' rollouts), so that P(D < L) ≤
r/(n + 1) ≤ 0.9 δ. And P(D > Δ) ≤ 0.1 δ for a normal mean with z = Φ⁻¹(1 − 0.1 δ). So P(Δ < L) ≤ δ
under each prior. ∎ (The second one was read off the data, which leaves no exact posterior.)

Noise makes the D̂_k vary more than the Δ_k do, and lowers L. The figures have `standard_error`, the
noise of one draw, beside `spread`, by how much all draws vary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta
from scipy.special import ndtri, softmax

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._settings import Delta
from surestep.certificates.episodes import split_of
from surestep.certificates.node_law import (
    drawn_laws,
    node_stacks,
    rolled_out,
    seen_draws,
    structure_statements,
)
from surestep.certificates.nodes import NodeStitched, paid_node_returns
from surestep.certificates.posterior import DEFAULT_WEIGHT
from surestep.errors import InvalidParameter
from surestep.model import (
    Certificate,
    ColumnRules,
    FactoredLog,
    FactoredProblem,
    Policy,
    Statement,
)
from surestep.model.known import Logger

PRIORS = 4
OF_NOISE = 0.1  # the share of δ that the noise of rollouts takes
MEMORY = 2**31  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePosterior(common.WithRanges):
    """The claim of a Bayesian who drew laws of nodes from their posterior.

    Parameters
    ----------
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    prior_weight : float, default 5.0
        The total weight of a node's prior; the claim has to hold with half of it, too.
    draws : int, default 200
        The number n of worlds under each of four priors.
    rollouts : int, default 30
        The number m of rollouts of both policies in four worlds, one of each prior.
    seed : int, default 0
        Of the draws, and of the split where the logger is fixed.
    train_share : float, default 0.3
        The share of the episodes that may have chosen the policy, and is not looked at.
    logger : {"adaptive", "fixed"}
        "fixed": the share is drawn by `seed`. "adaptive": it is the first part of the log.

    Notes
    -----
    `surestep.certificates.node_posterior` has the proof.

    Examples
    --------
    >>> from surestep.certificates import NodePosterior
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(4)
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 100, rng=1))
    >>> claim = NodePosterior(draws=30).certify(problem, world.fewest_failed_neighbours())
    >>> str(claim.standing), claim.lower > 0
    ('posterior', True)
    """

    delta: Delta = 0.1
    prior_weight: Annotated[float, Meta(ge=1e-3, le=1e9)] = DEFAULT_WEIGHT
    draws: Annotated[int, Meta(ge=1, le=1_000_000)] = 200
    rollouts: Annotated[int, Meta(ge=2, le=1_000_000)] = 30
    seed: common.Seed = 0
    train_share: common.Share = 0.3
    logger: Logger = "adaptive"

    name: ClassVar = "posterior-nodes"

    def __post_init__(self) -> None:
        super(NodePosterior, self).__post_init__()
        least = arrays.least_draws((1 - OF_NOISE) * self.delta)
        common.refuse_settings(
            {
                f"draws is {self.draws}, expected at least {arrays.in_digits(least)}: fewer do not "
                f"show what happens with the chance delta = {self.delta:g}": self.draws < least
            }
        )

    @property
    def rank(self) -> int:
        """Returns r: the claim is the r-th smallest of the draws."""
        return max(1, math.floor((1 - OF_NOISE) * self.delta * (self.draws + 1)))

    def gains(
        self, problem: FactoredProblem, policy: ColumnRules | Policy
    ) -> tuple[arrays.FloatArray, arrays.FloatArray]:
        """Returns D̂_k and s_k under each prior, by the whole log of a problem.

        Parameters
        ----------
        problem : FactoredProblem
            The log that was not looked at for choosing.
        policy : ColumnRules
            The new policy.

        Returns
        -------
        tuple of arrays of float [4, draws]
            The mean gains of rollouts, and their standard errors.
        """
        behavior, log = problem.rolled_behavior, problem.log
        if isinstance(policy, Policy) or isinstance(problem.behavior, Policy):
            raise InvalidParameter(
                "a policy is a table over all states, expected rules; NodeRobust takes tables"
            )
        both = [policy] if behavior is None else [policy, behavior]
        rng = np.random.default_rng(self.seed)
        weights = posterior_weights(log, self.prior_weight)
        worlds, each = PRIORS * self.draws, math.ceil(self.rollouts / PRIORS)
        takes = max(weights[0].nbytes, 64 * self.draws * self.rollouts)
        if takes * worlds > MEMORY:
            raise common.refused(
                "too-little-memory", takes=takes / 2**20, most=MEMORY / worlds / 2**20
            )
        laws = np.concatenate([drawn_laws(one, self.draws, rng) for one in weights])
        whole = (log.starts >= 0).all(axis=1)
        if not whole.any():
            raise InvalidParameter("no episode begins with a value in every column, expected one")
        share = rng.dirichlet(np.ones(whole.sum()), self.draws)
        paid = share @ paid_node_returns(problem)[whole] if len(both) == 1 else 0.0
        begun = np.broadcast_to(problem.starts, log.starts[whole].shape)  # all alike if it is known
        starts, of_start = np.unique(begun, axis=0, return_inverse=True)
        chances = np.tile([np.bincount(of_start.ravel(), own) for own in share], (PRIORS, 1))
        begin = np.concatenate([rng.choice(len(starts), each, p=own) for own in chances])
        seed = int(rng.integers(2**63))
        made = [
            rolled_out(problem, laws, one, starts[begin], seed=seed, rest=rest)
            for one, rest in zip(both, problem.rest_bounds, strict=False)
        ]
        gains, errors = (x.reshape(PRIORS, -1) for x in weighed(made, laws, chances[:, begin]))
        return gains - paid, errors

    def certify(self, problem: FactoredProblem, policy: ColumnRules | Policy) -> Certificate:
        """Returns L, by the part of the log that did not choose the policy.

        Parameters
        ----------
        problem : FactoredProblem
            The whole log.
        policy : ColumnRules
            The new policy.

        Returns
        -------
        Certificate
            The claim.

        Raises
        ------
        CertificateRefused
            A part has too few episodes.
        InvalidParameter
            A policy is a table.
        """
        _, judging = NodeStitched(
            train_share=self.train_share, logger=self.logger, seed=self.seed
        ).parts(problem)
        gains, errors = self.gains(judging, policy)
        low, high = problem.return_bounds
        lower = np.sort(gains - ndtri(1 - OF_NOISE * self.delta) * errors)[:, self.rank - 1]
        place = lower.argmin()
        gains, errors = gains[place], errors[place]
        stacks = node_stacks(judging.log)
        practice = problem.about_behavior
        if problem.rolled_behavior is None:
            practice = (Statement("practice-as-recorded"),)
        return Certificate(
            kind=self.name,
            standing="posterior",
            lower=max(float(lower[place]), low - high),
            delta=self.delta,
            span=high - low,
            assumptions=(
                Statement("nodes-prior", {"weight": float(self.prior_weight)}),
                *structure_statements(problem.structure),
                *problem.premises,
                Statement("no-hidden-causes"),
                *practice,
                Statement("nothing-left-out"),
                *common.statement_if(bool((stacks.entry < 0).any()), "unseen-draws-alike"),
                Statement("starts-weighted" if problem.start is None else "start-known"),
                Statement("rollouts-normal"),
                Statement(
                    "chosen-from-part", dict(zip(("share", "seed"), split_of(self), strict=True))
                ),
            ),
            parameters={name: getattr(self, name) for name in self.__dataclass_fields__},
            figures={
                "episodes": judging.log.num_episodes,
                "steps": judging.log.num_steps,
                "nodes": int((problem.structure.known < 0).sum()),
                "nodes_seen": int((arrays.run_lengths(stacks.offsets) > 0).sum()),
                "rank": self.rank,
                "mean_gain": float(gains.mean()),
                "median_gain": float(np.median(gains)),
                "spread": float(gains.std()),
                "standard_error": float(np.sqrt((errors**2).mean())),
                "draws_with_a_loss": int(np.count_nonzero(gains < 0)),
            },
        )


def posterior_weights(log: FactoredLog, weight: float) -> list[arrays.FloatArray]:
    """Returns the weights [K, V] of the Dirichlet posteriors of all nodes, under each prior."""
    structure, counts = log.structure, seen_draws(log, 0.0)
    number, sibling = np.arange(len(counts)), np.arange(len(counts))
    parts = structure.nodes.part.reshape(structure.target.size, -1).max(axis=1) + 1
    for d in np.argsort(structure.nodes.first, kind="stable"):
        first = structure.nodes.first[d]  # the part of the action has stride 1
        sibling[first:] = number[first:] - (number[first:] - first) % parts[d]
    together = np.zeros(counts.shape)
    np.add.at(together, sibling, counts)
    sizes = structure.node_sizes[:, np.newaxis]
    alike = weight / sizes * (np.arange(counts.shape[1]) < sizes)
    pooled = together[sibling] + alike
    pooled *= weight / pooled.sum(axis=1, keepdims=True)
    return [counts + share * prior for prior in (alike, pooled) for share in (1.0, 0.5)]


def weighed(
    made: Sequence[tuple[arrays.FloatArray, Any]], laws: arrays.FloatArray, began: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns D̂_k and s_k by all rollouts; `began` [n, N] has the chances of their starts."""
    with np.errstate(divide="ignore"):
        chance, start = np.log(np.diff(laws, axis=2, prepend=0.0)), np.log(began).T
    level, gain = 0.0, np.zeros(start.shape)
    for sign, (returns, draws) in zip((1, -1), made, strict=False):
        weight = len(laws) * softmax(draws @ chance.reshape(len(laws), -1).T + start, axis=1)
        middle = returns.mean()
        level += sign * middle
        gain += sign * weight * (returns - middle)[:, np.newaxis]
    return level + gain.mean(axis=0), gain.std(axis=0) / math.sqrt(len(gain))
