"""Chooses the most promising policy if further signals have limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.constrained import Bounded, Constrained
from surestep.algorithms.contract import improvement_of
from surestep.algorithms.trees import ends
from surestep.candidates import (
    NEARLY,
    ONE_ACTION,
    Candidate,
    Choice,
    Choosing,
    Tried,
    in_numbers,
    new_trees,
    with_one_action,
)
from surestep.certificates.common import Certifier, unless_refused, usable
from surestep.certificates.registry import certifier_for
from surestep.errors import NeverEnds, NotConverged
from surestep.model import Problem


class Outlook(NamedTuple):
    """The bounds expected for a candidate: its distances from the limits, and its gain."""

    kept: float  # minus how far the worst further signal is from its limit; 0 where all keep theirs
    first: float  # the bound of the first signal
    spare: float = 0.0  # how far the worst further signal is within its limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainedChoice(Choosing):
    """Chooses among constrained policies the one with the best bounds on all signals, or π_b.

    A limit that is just kept in the estimate can hardly be proved to be kept. So there are
    candidates that keep it with something to spare: `caution` times the distance from the estimate
    to the lower bound that is expected for the policy without caution. Candidates whose further
    signals are all expected within their limits come first, then those that miss them by the least,
    as a share of the range of values; of equal ones, the one with the largest lower bound of the
    first signal, or one nearly as good that has more to spare. Where for none all is expected, with
    a gain, the bounds of `otherwise` choose, if it is given.

    Of candidates that keep their limits and have at least half the largest bound, the policies with
    one action in every state that they change are candidates too, and trees over the `columns` of
    the state with up to so many `rules`. Of those nearly as good, the smallest comes first.
    """

    algorithm: Constrained
    rounds: tuple[float, ...] = (5, 20, 80)
    caution: tuple[float, ...] = (0.5, 1.25, 2.0)  # beside none: 1 would often just miss

    name: ClassVar = Constrained.name

    def choose(self, problem: Problem) -> Choice:
        """Tries all candidates; refuses if the first signal has no bound for any.

        All of the problem chooses. Where a part of the log is held out, give the training part.
        """
        arrays.expect("problem", problem, Problem)
        inside = problem.within(self.limits.closed(problem.counts))
        bounded = self.algorithm.bounded(inside)
        judge = self.certifier
        plain = [
            made
            for rounds in self.rounds
            for made in candidate(bounded, replace(self.algorithm, rounds=rounds), {})
        ]
        tried = [Tried(self.algorithm, problem.behavior), *(one for one, _ in plain)]
        lower = bounds_of(judge, inside, tried[1:]).T if plain else ()
        for (one, algorithm), bounds in zip(plain, lower, strict=True):
            for caution in self.caution if problem.signals else ():
                spare = {
                    limit.name: caution * max(limit.found(one.policy)[0] - limit.origin - bound, 0)
                    for limit, bound in zip(bounded.limits[1:], bounds[1:], strict=True)
                    if np.isfinite(bound)
                }
                tried += [made for made, _ in candidate(bounded, algorithm, spare)]
        promised = [promise(bounded, lower) for lower in bounds_of(judge, inside, tried).T]
        if self.otherwise is not None and max(promised)[:2] <= (0.0, 0.0):
            judge = self.otherwise
            promised = [promise(bounded, lower) for lower in bounds_of(judge, inside, tried).T]
        if simple := self.simpler(inside, tried, promised):
            tried += simple
            promised += [promise(bounded, lower) for lower in bounds_of(judge, inside, simple).T]
        taken = best_promise(promised, [one.size for one in tried])
        made = [
            improvement_of(problem, one.policy, n_wedge=self.algorithm.n_wedge) for one in tried
        ]
        made[taken] = self.algorithm.explained(bounded, tried[taken].policy, tried[taken].spare)
        return Choice(
            tuple(map(Candidate, tried, made, [outlook.first for outlook in promised])),
            taken,
            judge,
        )

    def simpler(
        self, problem: Problem, tried: Sequence[Tried], promised: Sequence[Outlook]
    ) -> list[Tried]:
        """Returns policies that people can follow, for candidates that promise enough."""
        best = max(promised)
        if not self.one_action or best.kept < 0 or best.first <= 0:
            return []
        simple: list[Tried] = []
        for one, outlook in zip(tried, promised, strict=True):
            if outlook.kept == 0 and outlook.first >= best.first / 2:
                policy = with_one_action(one.policy, problem.behavior)
                alone = one._replace(policy=policy, size=ONE_ACTION)
                simple += [alone] if ends(problem, policy) else []
                if self.rules:
                    # Other actions than those of the candidate may break the limits.
                    inside = problem.within(policy.probability < 1)
                    simple += new_trees(simple, alone, inside, self.columns, self.rules)
        return simple


def candidate(
    bounded: Bounded, algorithm: Constrained, spare: Mapping[str, float]
) -> list[tuple[Tried, Constrained]]:
    """Returns the best policy that keeps its limits by the `spare` distances, if there is one."""
    try:
        policy = bounded.best(algorithm.rounds, spare)
    except (NeverEnds, NotConverged):
        return []
    return [] if policy is None else [(Tried(algorithm, policy, spare=spare), algorithm)]


def bounds_of(certifier: Certifier, problem: Problem, tried: Sequence[Tried]) -> arrays.FloatArray:
    """Returns the bound of each signal for each policy [J, P], to choose by; −∞: none.

    Refused where the first signal has no bound for any policy.
    """
    policies = [one.policy for one in tried]
    judges = [
        (certifier, problem),
        *((certifier_for(certifier, signal), signal.problem) for signal in problem.signals),
    ]
    bounds = [
        judge.choosing_bounds([part], [policies], lambda _: policies)[0] for judge, part in judges
    ]
    if not usable(bounds[0]):
        unless_refused(bounds[0][0])
    return np.array([*map(in_numbers, bounds)])


def promise(bounded: Bounded, lower: arrays.FloatArray) -> Outlook:
    """Returns the outlook that bounds [J] give; distances are shares of the range of values."""
    within = [
        bound - x.least + x.origin for bound, x in zip(lower[1:], bounded.limits[1:], strict=True)
    ]
    ranges = [np.ptp(signal.problem.value_bounds) for signal in bounded.problem.signals]
    # Values may all be the same.
    shares = np.divide(within, np.maximum(ranges, np.finfo(float).tiny))
    spare = float(shares.min(initial=np.inf))
    return Outlook(min(spare, 0.0), float(lower[0]), spare)


def best_promise(promised: Sequence[Outlook], sizes: Sequence[float]) -> int:
    """Returns the place of the best candidate; of nearly equal ones, the smallest.

    Nearly as good are candidates that keep all limits and have nine tenths of the largest bound. Of
    those with the same size, the one that is the most within its limits is the best.
    """
    best = max(promised)
    if best.kept < 0 or best.first <= 0:
        return promised.index(best)
    near = [
        i
        for i, outlook in enumerate(promised)
        if outlook.kept == 0 and outlook.first >= NEARLY * best.first
    ]
    return min(near, key=lambda i: (sizes[i], -promised[i].spare))
