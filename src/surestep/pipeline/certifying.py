"""Which certificate a result carries: that of the algorithm's own bound, or none, and why."""

from __future__ import annotations

import dataclasses

from surestep.algorithms import Algorithm
from surestep.certificates import APriori, Certifier, NoClaim, certify
from surestep.errors import CertificateRefused
from surestep.model import Certificate, Problem
from surestep.model.problem import Improvement

BOUND_OF = {"spibb-2s": "2s", "spibb-beta": "beta"}  # all others: SPIBB's


def certifier_for(algorithm: Algorithm, improvement: Improvement, delta: float) -> Certifier:
    """The published bound that goes with the algorithm, at the N∧ that it used."""
    n_wedge = improvement.n_wedge or None  # 0 visits buy nothing: the certifier finds its own
    return APriori(bound=BOUND_OF.get(algorithm.name, "spibb"), delta=delta, n_wedge=n_wedge)


def certified(problem: Problem, improvement: Improvement, certifier: Certifier) -> Certificate:
    """The claim of the certifier, or where it refuses, a certificate that says so."""
    try:
        return certify(problem, improvement.policy, certifier)
    except CertificateRefused as refusal:
        nothing = NoClaim(refusal=str(refusal), delta=certifier.delta)
        return certify(problem, improvement.policy, nothing)


def with_delta(certifier: Certifier, delta: float) -> Certifier:
    """The same claim at another level."""
    return dataclasses.replace(certifier, delta=delta)  # type: ignore[type-var]
