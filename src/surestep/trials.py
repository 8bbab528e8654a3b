"""Runs trials: proposes a policy from data, makes claims about it, and compares with the truth.

Stress tests and experiments share these three acts. A refusal is an answer: where no policy is
proposed π_b stays, and where nothing is claimed there is a code for the reason.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms import improve_batch
from surestep.algorithms.batch import is_compiled
from surestep.algorithms.contract import Improver
from surestep.certificates import Certifier, certify_many, training_for
from surestep.certificates.common import Claim
from surestep.certificates.registry import standing_name
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused, InvalidParameter, NeverEnds
from surestep.model import MDPBatch, Policy, Problem, ProblemBatch
from surestep.model.statements import WITHIN_SEEN
from surestep.planning.batch import endless_members
from surestep.planning.evaluation import evaluate_batch

# ---- proposing ----------------------------------------------------------------------------------


class Proposed(NamedTuple):
    """π_I of each data set, and the N∧ that all had."""

    policy: arrays.FloatArray  # [B, K]
    n_wedge: int | None  # None: there is none, or each data set chose its own


def proposed_together(
    improver: Improver, batch: ProblemBatch, problems: Sequence[Problem]
) -> Proposed:
    """Returns the proposals of a batch of data sets; the choice of N∧ gets them as `problems`."""
    if isinstance(improver, AutoNWedge):
        return Proposed(improver.choose_batch(batch, problems), None)
    improved = improve_batch(improver, batch)
    return Proposed(improved.policy, improved.n_wedge)


def proposed_each(
    improver: Improver, problems: Sequence[Problem], judges: Sequence[Certifier] = ()
) -> Proposed:
    """Returns the policy proposed for each data set; plans data sets of one shape together.

    With `judges`, each policy is made from the training part that its judge allows. π_b stays if
    that part is too small, if every candidate for N∧ is refused, or if π_b never ends in the
    estimate, which may happen if recordings were cut.
    """
    policies = [problem.behavior.probability for problem in problems]
    n_wedge = None
    parts = {} if judges else dict(enumerate(problems))
    for b, judge in enumerate(judges):
        with suppress(InvalidParameter):
            parts[b] = training_for(problems[b], judge)
    # Data sets of one shape are planned at once where that is compiled, which is faster by far.
    algorithm = improver.algorithm if isinstance(improver, AutoNWedge) else improver
    # They have the same ends of episodes, and a discount below 1: all episodes count as over.
    shapes: dict[bytes, list[int]] = {}
    for b, part in parts.items():
        if is_compiled(algorithm) and part.single_discount < 1 and part.closed is None:
            shapes.setdefault(part.counts.terminal.tobytes(), []).append(b)
    for group in [places for places in shapes.values() if len(places) > 1]:
        together = [parts.pop(b) for b in group]
        batch = ProblemBatch.from_problems(together)
        proposed, n_wedge = proposed_together(improver, batch, together)
        for b, policy in zip(group, proposed, strict=True):
            policies[b] = policy
    for b, part in parts.items():
        try:
            improved = improver.improve(part)
        except (CertificateRefused, NeverEnds):
            continue
        policies[b] = improved.policy.probability
        n_wedge = None if isinstance(improver, AutoNWedge) else improved.n_wedge
    return Proposed(np.stack(policies), n_wedge)


# ---- claiming -----------------------------------------------------------------------------------


class Claimed(NamedTuple):
    """The claims about B policies."""

    lower: arrays.FloatArray  # [B] L; NaN where nothing is claimed
    standing: arrays.AnyArray  # [B] empty where nothing is
    refusal: arrays.AnyArray  # [B] the code of why nothing is, else empty


def claimed(
    certifiers: Sequence[Certifier | CertificateRefused],
    problems: Sequence[Problem],
    policies: arrays.FloatArray,
) -> Claimed:
    """Returns the claim of each certifier about its policy [B, K]; some may be refused already."""
    judges = {b: x for b, x in enumerate(certifiers) if not isinstance(x, CertificateRefused)}
    judged = [Policy(problems[b].counts.pairs, policies[b]) for b in judges]
    claims = iter(certify_many([problems[b] for b in judges], judged, [*judges.values()]))
    answers = [answer(x if isinstance(x, CertificateRefused) else next(claims)) for x in certifiers]
    lower, standing, refusal = zip(*answers, strict=True)
    return Claimed(np.array(lower), np.array(standing, object), np.array(refusal, object))


def answer(claim: Claim) -> tuple[float, str, str]:
    """Returns L, its standing, and the code of a refusal; NaN and empty where there is none."""
    if isinstance(claim, CertificateRefused):
        return np.nan, "", claim.code
    if claim.lower is None:
        return np.nan, "", claim.kind
    standing = standing_name(claim)
    if standing == "proved" and claim.assumes(WITHIN_SEEN):
        standing = WITHIN_SEEN
    return claim.lower, standing, ""


# ---- comparing with the truth -------------------------------------------------------------------


class TrueGains(NamedTuple):
    """Δ = ρ(π_I) − ρ(π_b) of B policies, each in its truth."""

    gain: arrays.FloatArray  # [B]
    behavior: arrays.FloatArray  # [B] ρ(π_b)
    outside: (
        arrays.FloatArray
    )  # [B] by how much a true value lies outside of the value bounds, or 0


def true_gains(
    models: MDPBatch,
    policies: arrays.FloatArray,
    behavior: Policy,
    value_bounds: tuple[float, float],
) -> TrueGains:
    """Returns the gains of policies [B, K] over π_b, in as many models.

    Fewer models than policies are used in turn, again from the first. Without a discount, a policy
    that may never end is worth the lower value bound.
    """
    low, high = value_bounds
    endless = np.zeros(len(policies), np.bool_)
    if models.discount.min() == 1:
        endless = endless_members(models, policies)
    ending = np.where(endless[:, np.newaxis], behavior.probability, policies)
    ours = np.where(endless[:, np.newaxis], low, evaluate_batch(models, ending).value)
    theirs = np.resize(evaluate_batch(models, behavior).value, ours.shape)
    performance = arrays.weighted_rows(theirs, models.initial)
    gain = arrays.weighted_rows(ours, models.initial) - performance
    gain[(policies == behavior.probability).all(axis=1)] = 0.0
    beyond = np.maximum(np.maximum(ours, theirs) - high, low - np.minimum(ours, theirs))
    return TrueGains(gain, performance, beyond.max(axis=1, initial=0.0))
