"""SPIBB with the N∧ that a certifier chooses, and the claim that the choice leaves fresh."""

from typing import NamedTuple

from surestep import Certificate, Policy, certify
from surestep.algorithms import SPIBB
from surestep.candidates import n_wedge_of
from surestep.certificates.episodes import training_for
from surestep.choosing_n_wedge import AutoNWedge
from surestep.errors import CertificateRefused


class Chosen(NamedTuple):
    """The N∧ that was chosen, what the choice went by, and what is claimed in the end."""

    n_wedge: int
    policy: Policy
    certificate: Certificate
    lower: tuple[float | None, ...]  # None where a candidate is refused


def chosen_spibb(problem, certifier, grid=None):
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=certifier, grid=grid)
    choice = auto.choose(training_for(problem, certifier))
    policy = choice.best.improvement.policy
    lower = [each.lower for each in choice.candidates]
    return Chosen(
        n_wedge_of(choice.best.tried.algorithm),
        policy,
        certify(problem, policy, certifier),
        tuple(None if isinstance(each, CertificateRefused) else each for each in lower),
    )
