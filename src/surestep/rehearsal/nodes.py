"""Runs the stress test beside a structure: the whole method, in worlds drawn from a posterior.

World k has a law of every node, drawn from its Dirichlet posterior with the prior ½ of each value
(Jeffreys), given the whole log. There the current policy makes a log of as many episodes, which
start as those of the log did, and are recorded for as long at most. An episode that is over in the
log may take as long as the longest one. The method sees only that log. The true gain of its policy
is the mean of `TRUTH` rollouts of both policies, with a standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

import surestep._arrays as arrays
from surestep.certificates.node_law import (
    PRIOR,
    drawn_laws,
    possible_values,
    rolled_out,
    sampled_log,
    seen_draws,
)
from surestep.certificates.nodes import node_stacks
from surestep.model.factored import MISSING, ColumnRules, FactoredLog, FactoredProblem
from surestep.rehearsal.result import Rate

TRUTH = 1_000  # rollouts behind a true gain


class Tried(NamedTuple):
    """What a method makes of a log: a policy, its claim, and its belief; None where refused."""

    policy: ColumnRules
    claim: float | None
    belief: float | None


class NodeRehearsal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The outcomes of a stress test beside a structure, a number for each world.

    Parameters
    ----------
    gains : list of float
        The true gains of the policies.
    errors : list of float
        Their standard errors.
    claims, beliefs : list of float or None
        The claims about them; None where there is none.

    Examples
    --------
    >>> from surestep.rehearsal import NodeRehearsal
    >>> found = NodeRehearsal(
    ...     gains=[2.0, 1.0], errors=[0.1, 0.1], claims=[0.5, 1.4], beliefs=[1.0, None])
    >>> found.wrong("claims").happened, found.shown("claims").share
    (1, 1.0)
    """

    gains: list[float]
    errors: list[float]
    claims: list[float | None]
    beliefs: list[float | None]

    def wrong(self, kind: str) -> Rate:
        """Returns how often a claim, or a belief, was above the gain that was simulated.

        Parameters
        ----------
        kind : str
            "claims" or "beliefs".

        Returns
        -------
        Rate
            The share of the worlds.
        """
        pairs = zip(getattr(self, kind), self.gains, strict=True)
        return Rate.of(np.array([x is not None and x > gain for x, gain in pairs]))

    def shown(self, kind: str) -> Rate:
        """Returns how often a gain was claimed, or believed.

        Parameters
        ----------
        kind : str
            "claims" or "beliefs".

        Returns
        -------
        Rate
            The share of the worlds.
        """
        return Rate.of(np.array([(x or 0.0) > 0 for x in getattr(self, kind)]))

    @property
    def mean_gain(self) -> float:
        """Returns the mean of the true gains."""
        return float(np.mean(self.gains))

    @property
    def harmed(self) -> Rate:
        """Returns how often the new policy was worse than the current one."""
        return Rate.of(np.array(self.gains) < 0)


def rehearse_nodes(
    problem: FactoredProblem,
    method: Callable[[FactoredProblem], Tried],
    *,
    worlds: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NodeRehearsal:
    """Runs a method in worlds drawn from the posterior of a problem, whose π_b has to be known.

    The outcome of a world depends on the seed and on its number alone.
    """
    behavior, structure = problem.behavior, problem.structure
    assert isinstance(behavior, ColumnRules)
    counts = seen_draws(structure, node_stacks(problem.log))
    weights = counts + PRIOR * possible_values(structure)
    lengths = arrays.run_lengths(problem.log.offsets)
    ended = problem.log.ended[problem.log.offsets[1:] - 1]
    steps = np.where(ended, lengths.max(), lengths)
    rows: list[tuple[float, float, float | None, float | None]] = []
    for world in range(worlds):
        progress(world, worlds)
        rng = np.random.default_rng([seed, world])
        law = drawn_laws(weights, 1, rng)
        chosen = rng.integers(lengths.size, size=lengths.size)
        starts = np.maximum(problem.log.starts[chosen], 0)
        log = sampled_log(structure, law[0], behavior, starts, steps=steps, rng=rng)
        tried = method(replace(problem, log=seen_like(problem.log, log)))
        first = starts if problem.start is None else np.array([problem.start])
        first = first[np.arange(TRUTH) % len(first)]
        made = rolled_out(problem, law, [tried.policy, behavior], first, rng)
        gain = made.returns[0] - made.returns[1]
        rows.append((float(gain.mean()), float(gain.std() / TRUTH**0.5), *tried[1:]))
    gains, errors, claims, beliefs = map(list, zip(*rows, strict=True))
    return NodeRehearsal(gains=gains, errors=errors, claims=claims, beliefs=beliefs)


def seen_like(log: FactoredLog, made: FactoredLog) -> FactoredLog:
    """Returns a log that was made, without columns after ends if a log never has them."""
    if (log.next_state[log.ended] != MISSING).any():
        return made
    shown = np.where(made.ended[:, np.newaxis], MISSING, made.next_state)
    return arrays.altered(made, next_state=shown)
