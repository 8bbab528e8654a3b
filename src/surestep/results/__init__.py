"""Saved results: the policy, its certificates, its page, and the record that makes it again."""

from surestep.results.acting import Decision, Default
from surestep.results.record import Record
from surestep.results.result import Result, load
from surestep.results.table import PolicyTable

__all__ = ["Decision", "Default", "PolicyTable", "Record", "Result", "load"]
