"""Keeps results: the policy, its certificates, its report, and the record that repeats the run."""

from surestep.results.episode import Episode
from surestep.results.findings import PolicyTable
from surestep.results.groups import GroupGain
from surestep.results.record import Record
from surestep.results.result import Decision, Default, Result, load
from surestep.results.structured import StructuredResult

__all__ = [
    "Decision",
    "Default",
    "Episode",
    "GroupGain",
    "PolicyTable",
    "Record",
    "Result",
    "StructuredResult",
    "load",
]
