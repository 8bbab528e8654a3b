"""From a log to a result, and from a result back to the log."""

from surestep.pipeline.certify import Judged, certify_result, check_certificates
from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.explain import ActionReason, Explanation, explain, in_words
from surestep.pipeline.improve import Draft, draft, improve
from surestep.pipeline.rehearse import RehearsedLog, rehearse_log
from surestep.pipeline.stress_test import Effort
from surestep.pipeline.terms import Terms
from surestep.pipeline.verify import Verification, verify_result

__all__ = [
    "ActionReason",
    "Effort",
    "Explanation",
    "Judged",
    "RehearsedLog",
    "Terms",
    "Verification",
    "certify_result",
    "check_certificates",
    "explain",
    "improve",
    "in_words",
    "open_source",
    "rehearse_log",
    "verify_result",
]
