"""From a log to a result, and from a result back to the log."""

from surestep.pipeline.evidence import open_source
from surestep.pipeline.explaining import ActionReason, Explanation, explain, in_words
from surestep.pipeline.improving import improve
from surestep.pipeline.verifying import Verification, verify_result

__all__ = [
    "ActionReason",
    "Explanation",
    "Verification",
    "explain",
    "improve",
    "in_words",
    "open_source",
    "verify_result",
]
