"""The legacy of an improvement, to be deployed, judged, read and made again."""

from surestep.results.acting import Decision, Default, Nearest
from surestep.results.record import Record
from surestep.results.result import Result, load
from surestep.results.table import PolicyTable

__all__ = ["Decision", "Default", "Nearest", "PolicyTable", "Record", "Result", "load"]
