"""Several signals at once: better in the first, and no worse in the rest.

**Whether all hold.** The limits are fixed before the data: the gain of the first signal is above 0,
that of signal k is at least minus its margin, and the chance to reach unsafe states is at most a
number, or at most so much more than before. Each is tested at the *whole* δ: a lower bound L_k at
level δ passes its limit. All are said to hold only if every one of them passes. If signal k does
not keep its limit in truth, then it passes only if L_k is above its true gain, which has a chance
of at most δ, and all pass with no larger chance. So whatever signals are wrong, and however their
bounds depend on each other, P(all pass although not all hold) ≤ δ (an intersection–union test:
Berger 1982). ∎ Nothing is shared, since nobody acts on a part of it alone. Of further signals only
whether they pass is asked for: a stitched claim tries their limits, and no other gains.

**Bounds that hold at once** are shown beside it, at levels δ_k that add up to δ and were fixed
beforehand: P(some L_k is too high) ≤ Σ δ_k = δ. ∎ Stitched ones are made of the rounds and stakes
that were planned for δ. All of m signals have δ/m, with two exceptions:

- robust: *one* event, that the rows of the true model lie in their sets, serves all signals; only
  rewards that are not known have to lie in their sets for each signal. With n things that are not
  known in all, each row, start and reward of each signal has δ/n. A signal for itself has n_k of
  them, and its bound at δ n_k/n has exactly these sets.
- posterior: the gains of all signals are computed in the same draws. All hold if fewer than r draws
  break any limit, r as in `posterior`; the bounds are the q-th smallest gains of each signal, with
  the largest q at which fewer than r draws are below any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.common import Bound, Claim, Question, bound_of, claims_of
from surestep.certificates.drawn import Gains
from surestep.certificates.posterior import Posterior, drawn_each
from surestep.certificates.registry import certifier_for
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.uncertainty import unknown_parts
from surestep.errors import CertificateRefused, NeverEnds, NotConverged
from surestep.model.certificate import Certificate, SignalClaim
from surestep.model.policy import Policy
from surestep.model.problem import Problem, Signal
from surestep.model.signals import stopped
from surestep.model.statements import Statement
from surestep.planning.evaluation import performance
from surestep.planning.reaching import reachability

OF_CHANCES = (Stitched, Robust, Posterior)  # the kinds that claim something of them


class Part(NamedTuple):
    """A signal with what is tested of it, and what is shown."""

    signal: Signal
    limit: float
    tested: Problem
    shown: Problem

    @classmethod
    def of(cls, signal: Signal) -> Part:
        """Returns the part; of a chance, a number is a limit of its own, and itself is shown."""
        problem, reach = signal.problem, signal.problem.reach
        if reach is None:
            return cls(signal, -signal.margin, problem, problem)
        alone = arrays.altered(problem, reach=reach._replace(alone=True))
        if signal.at_most is None:
            return cls(signal, -signal.margin, problem, alone)
        return cls(signal, -signal.at_most, alone, alone)

    def claim(
        self, policy: Policy, tested: Bound, lower: Bound, *, first: bool, together: bool
    ) -> SignalClaim:
        """Returns the claim of the bounds at δ and at a share of it, or why there is none.

        Where all do not hold `together`, none is said to.
        """
        signal, (at_whole, at_share) = self.signal, map(number_of, (tested, lower))
        refused = (each for each in (tested, lower) if isinstance(each, CertificateRefused))
        refusal = next(map(str, refused), None)
        passes = at_whole is not None and (at_whole > 0 if first else at_whole >= self.limit)
        before, after = values_of(signal, (signal.problem.behavior, policy))
        return SignalClaim(
            name=signal.name,
            cost=signal.cost,
            chance=signal.is_chance,
            alone=signal.at_most is not None,
            limit=self.limit,
            tested=at_whole,
            holds=passes and together,
            lower=at_share,
            before=before,
            after=after,
            refusal=refusal,
        )


def certify_jointly(certifier: Any, problem: Problem, policy: Policy) -> Certificate:
    """Returns the claim about the first signal, with what is claimed of every signal at once.

    Refused where nothing is claimed of the first.
    """
    whole = arrays.altered(problem, signals=())
    parts = [Part(Signal(name=problem.name, problem=whole, cost=problem.cost), 0.0, whole, whole)]
    parts += map(Part.of, problem.signals)
    judges = [certifier, *(certifier_for(certifier, signal) for signal in problem.signals)]
    if isinstance(certifier, Stitched):  # the worst returns are those of the first
        judges[1:] = [replace(judge, worst_share=0.0) for judge in judges[1:]]
        judges = [replace(judge, practice=0.0) for judge in judges]  # all have one baseline
    jointly = by_draws if isinstance(certifier, Posterior) else at_levels
    first, tested, lower, together = jointly(judges, parts, policy)
    if isinstance(first, CertificateRefused):
        raise first
    signals = (
        part.claim(policy, *each, first=place == 0, together=together)
        for place, (part, *each) in enumerate(zip(parts, tested, lower, strict=True))
    )
    return replace(first, signals=tuple(signals))


def at_levels(
    judges: Sequence[Any], parts: Sequence[Part], policy: Policy
) -> tuple[Claim, list[Bound], list[Bound], bool]:
    """Returns the first claim, bounds of what is tested, at δ, and of what is shown, at shares."""
    number = len(parts)
    shares = [1 / number] * number
    if isinstance(judges[0], Robust):
        shares = shares_of_one_event([part.shown for part in parts], judges[0].known_start)
    smaller = [
        replace(judge, delta=share * judge.delta)
        for judge, share in zip(judges, shares, strict=True)
    ]
    asked = [
        Question(judges[0], parts[0].tested, policy),
        *(
            Question(judge, part.tested, policy, at_least=part.limit)
            for judge, part in zip(judges[1:], parts[1:], strict=True)
        ),
        *(
            Question(less, part.shown, policy, planned_for=judge.delta)
            for judge, less, part in zip(judges, smaller, parts, strict=True)
        ),
    ]
    claimed = isinstance(judges[0], OF_CHANCES)
    chances = [not claimed and question.problem.reach is not None for question in asked]
    answers = iter(claims_of([q for q, left in zip(asked, chances, strict=True) if not left]))
    silent = CertificateRefused(Statement("no-claim", {"kind": judges[0].name}))
    claims = [silent if left else next(answers) for left in chances]
    bounds = [*map(bound_of, claims)]
    return claims[0], bounds[:number], bounds[number:], True


def shares_of_one_event(problems: Sequence[Problem], known_start: bool) -> list[float]:
    """Returns the share of δ with which the robust bound of each problem has the sets of all."""
    parts = [unknown_parts(stopped(each), known_start=known_start) for each in problems]
    rows, rewards = zip(*parts, strict=True)
    return [sum(each) / max(max(rows) + sum(rewards), 1) for each in parts]


def by_draws(
    judges: Sequence[Posterior], parts: Sequence[Part], policy: Policy
) -> tuple[Claim, list[Bound], list[Bound], bool]:
    """Returns the first claim, the r-th smallest gains, such as hold at once, and if all do."""
    asked = {  # what is tested is mostly what is shown
        id(problem): (judge, problem)
        for judge, part in zip(judges, parts, strict=True)
        for problem in (part.tested, part.shown)
    }
    every, problems = zip(*asked.values(), strict=True)
    drawn = dict(zip(asked, drawn_each(every, problems, [[policy]] * len(asked)), strict=True))
    first: Claim | Gains = drawn[id(parts[0].tested)]
    if isinstance(first, Gains):
        first = judges[0].claim(parts[0].tested, policy, first)
    for refusal in drawn.values():
        if isinstance(refusal, CertificateRefused):
            return first, [refusal] * len(parts), [refusal] * len(parts), False
    tested, shown = (
        np.concatenate([drawn[id(getattr(part, name))].lower for part in parts])  # type: ignore[union-attr]
        for name in ("tested", "shown")
    )
    rank, rising = judges[0].rank, np.sort(shown, axis=1)
    kept = [gain > 0 if k == 0 else gain >= parts[k].limit for k, gain in enumerate(tested)]
    together = int(np.count_nonzero(~np.all(kept, axis=0))) < rank
    place = max(
        (q for q in range(rank) if np.count_nonzero((shown < rising[:, [q]]).any(axis=0)) < rank),
        default=0,
    )
    alone = np.sort(tested, axis=1)[:, rank - 1].tolist()
    return first, alone, rising[:, place].tolist(), together


def number_of(bound: Bound) -> float | None:
    """Returns a bound as a number; None where there is none."""
    return None if isinstance(bound, CertificateRefused) else float(bound)


def values_of(signal: Signal, policies: Sequence[Policy]) -> list[float | None]:
    """Returns the estimate of a signal under policies, as people see it; None where it has none."""
    problem = stopped(signal.problem)
    model, reach = problem.estimate(), problem.reach

    def value(policy: Policy) -> float | None:
        try:
            if reach is None:
                worth = performance(model, policy)
                return 0.0 - worth if signal.cost else worth
            found = reachability(model, reach.states, policy, within=reach.within)
        except (NeverEnds, NotConverged):
            return None
        return float(model.initial @ (found.lower + found.upper) / 2)

    return [*map(value, policies)]
