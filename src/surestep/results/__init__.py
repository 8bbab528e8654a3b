"""Saved results: the policy, its certificates, its page, and the record that makes it again."""

from surestep.results.acting import Decision, Default, Nearest
from surestep.results.record import Record
from surestep.results.result import Result, load
from surestep.results.table import PolicyTable

__all__ = ["Decision", "Default", "Nearest", "PolicyTable", "Record", "Result", "load"]
