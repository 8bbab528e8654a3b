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
from typing import Any

import surestep._arrays as arrays
from surestep.certificates.certifier import JointBounds, SignalPart
from surestep.certificates.common import Bound
from surestep.certificates.registry import certifier_for
from surestep.errors import CertificateRefused, NeverEnds, NotConverged
from surestep.model.certificate import Certificate, SignalClaim
from surestep.model.policy import Policy
from surestep.model.problem import Problem, Signal, stopped
from surestep.planning.evaluation import performance
from surestep.planning.reaching import reachability


def certify_jointly(certifier: Any, problem: Problem, policy: Policy) -> Certificate:
    """Returns the claim about the first signal, with the claims about every signal at once.

    Refused where nothing is claimed of the first. Where not all signals may be said to hold
    together, none is said to.
    """
    whole = arrays.altered(problem, signals=())
    first = Signal(name=problem.name, problem=whole, cost=problem.cost)
    parts = [SignalPart(first, 0.0, whole, whole), *map(SignalPart.of, problem.signals)]
    others = [certifier_for(certifier, signal) for signal in problem.signals]
    judges = [certifier.for_signal(first=True), *(one.for_signal(first=False) for one in others)]
    bounds: JointBounds = certifier.joint_bounds(judges, parts, policy)
    if isinstance(bounds.first, CertificateRefused):
        raise bounds.first
    signals = []
    for place, part in enumerate(parts):
        tested = bounds.tested[place]
        lower = number_of(tested)
        passes = lower is not None and (lower >= part.limit if place > 0 else lower > 0)
        holds = passes and bounds.together
        signals.append(signal_claim(part, policy, tested, bounds.shown[place], holds=holds))
    return replace(bounds.first, signals=tuple(signals))


def signal_claim(
    part: SignalPart, policy: Policy, tested: Bound, shown: Bound, *, holds: bool
) -> SignalClaim:
    """Returns the claim about a signal, by the bounds at δ and at a share of it, or refusals."""
    signal = part.signal
    refused = [bound for bound in (tested, shown) if isinstance(bound, CertificateRefused)]
    before, after = values_of(signal, (signal.problem.behavior, policy))
    return SignalClaim(
        name=signal.name,
        cost=signal.cost,
        chance=signal.is_chance,
        alone=signal.at_most is not None,
        limit=part.limit,
        tested=number_of(tested),
        holds=holds,
        lower=number_of(shown),
        before=before,
        after=after,
        refusal=str(refused[0]) if refused else None,
    )


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
