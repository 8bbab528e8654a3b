"""Runs whole analyses: makes a result from a log, explains it, verifies it and follows it up."""

from surestep.followup.pilot import MeasureAnswer, Pilot, PilotAnswer
from surestep.followup.watching import Watch
from surestep.pipeline.certify import Judged, certify_policy, certify_result
from surestep.pipeline.explain import Explanation, explain, in_words
from surestep.pipeline.followup import pilot, verify_pilot, watch
from surestep.pipeline.improve import improve
from surestep.pipeline.rehearse import RehearsedLog, rehearse_log
from surestep.pipeline.stress_test import Effort
from surestep.pipeline.structured import improve_structured
from surestep.pipeline.verify import Verification, verify_result

__all__ = [
    "Effort",
    "Explanation",
    "Judged",
    "MeasureAnswer",
    "Pilot",
    "PilotAnswer",
    "RehearsedLog",
    "Verification",
    "Watch",
    "certify_policy",
    "certify_result",
    "explain",
    "improve",
    "improve_structured",
    "in_words",
    "pilot",
    "rehearse_log",
    "verify_pilot",
    "verify_result",
    "watch",
]
