"""The ladder of words: in which of five ways a result may be spoken of.

Only the kind of certificate that the result stands by, which was named before the data, can prove.
Where nobody declared what steps may earn, it proves within the rewards seen, which is less: a rare
disaster that the log happens not to show would refute it.
A belief is weaker, and never looks like a proof: it is what a posterior says that saw nothing of
the data by which the policy was chosen, unless the stress test undoes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from surestep.certificates.registry import BY_EXTENSION, may_be_believed, standing_of
from surestep.checks import Check
from surestep.checks.words import forbids_proof
from surestep.model import Certificate
from surestep.model.certificate import Rung
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rehearsal


def rung_of(
    certificates: Sequence[Certificate],
    *,
    changed: bool,
    rehearsal: Rehearsal | None,
    awaited: bool = False,
    fresh: bool = False,
    checks: Sequence[Check] = (),
) -> Rung:
    """Returns how a result may be spoken of; the first certificate is the one to stand by.

    `changed` says whether the policy is another one than π_b, `awaited` that a stress test is still
    to come, which may undo a belief, and `fresh` that the policy was made without the data of the
    certificates. What a failed check forbids is not proved.
    """
    if not changed:
        return "nothing changed"
    if is_proved(certificates[0]) and not forbids_proof(checks, certificates[0]):
        seen = certificates[0].assumes(WITHIN_SEEN)
        return "proved within the rewards seen" if seen else "proved better"
    belief = belief_in(certificates, fresh=fresh)
    if awaited or belief is None or (belief.lower or 0.0) <= 0 or undone(belief, rehearsal):
        return "not shown to be better"
    return "believed better"


def is_proved(certificate: Certificate) -> bool:
    """Tells whether a certificate proves a gain in whole episodes, not in their first steps.

    A claim above its own estimate is none: it says that something it assumes is not so. Kinds that
    are not built in prove nothing here, whatever they say, and none does that leaves out rows of
    which nobody knows where they led.
    """
    if certificate.assumes(STOPPING.code):
        return False
    whole = certificate.parameters.get("claim", "performance") == "performance"
    lower, estimate = certificate.lower or 0.0, certificate.figures.get("estimate")
    credible = not isinstance(estimate, float) or lower <= estimate
    return whole and standing_of(certificate) == "proved" and lower > 0 and credible


def belief_in(certificates: Sequence[Certificate], *, fresh: bool = False) -> Certificate | None:
    """Returns the belief by data that had no part in choosing the policy, if any is held.

    It is the one that the stress test measures, so that none is shown with the errors of another.
    None is held that leaves out rows of which nobody knows where they led.
    """
    for place, certificate in enumerate(certificates):
        share = certificate.parameters.get("train_share")  # that chose the policy, and is left out
        held_out = isinstance(share, float | int) and share > 0
        if may_be_believed(place, certificate.kind, apart=fresh or held_out):
            belief = standing_of(certificate) in ("posterior", BY_EXTENSION)
            return certificate if belief and not certificate.assumes(STOPPING.code) else None
    return None


def undone(belief: Certificate, rehearsal: Rehearsal | None) -> bool:
    """Tells whether luck alone claims as much in the stress test, or calibration leaves nothing."""
    if rehearsal is None or belief.lower is None:
        return False
    luck = rehearsal.luck_bound_of_beliefs(belief.delta)
    if luck is not None and belief.lower <= luck:
        return True
    calibration = rehearsal.calibration if rehearsal.believes_its_claim else None
    return calibration is not None and calibration.rank == 0
