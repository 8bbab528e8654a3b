"""Checks: can a claim rest on this log? One file an assumption, each finding a frozen record."""

from surestep.checks.check import Check, CheckCode, Mark
from surestep.checks.of_log import DELTA, check_log

__all__ = ["DELTA", "Check", "CheckCode", "Mark", "check_log"]
