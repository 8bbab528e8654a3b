"""From a log to a result, and from a result back to the log."""

from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.explaining import ActionReason, Explanation, explain, in_words
from surestep.pipeline.improving import Draft, draft, improve
from surestep.pipeline.judging import Judged, certify_result, check_certificates
from surestep.pipeline.rehearsing import RehearsedLog, rehearse_log
from surestep.pipeline.terms import Terms
from surestep.pipeline.verifying import Verification, verify_result

__all__ = [
    "ActionReason",
    "Draft",
    "Explanation",
    "Judged",
    "RehearsedLog",
    "Terms",
    "Verification",
    "certify_result",
    "check_certificates",
    "draft",
    "explain",
    "gather",
    "improve",
    "in_words",
    "open_source",
    "rehearse_log",
    "verify_result",
]
