"""Checks: can a claim rest on this log? One file a check: its test, its title and its sentences."""

from importlib import import_module

from surestep.checks.check import CHECKS, Check, Kind, Mark
from surestep.checks.running import DELTA, check_log
from surestep.checks.words import against, aside, failed, says, summary, title

__all__ = [
    "CHECKS", "DELTA", "Check", "Kind", "Mark", "against", "aside", "check_log", "failed", "says",
    "summary", "title",
]  # fmt: skip

FILES = (  # of checks, in the order of the page
    "markov_next_state",
    "markov_reward",
    "model_returns",
    "drift_next_state",
    "drift_reward",
    "behavior_memory",
    "practice_changed",
    "hidden_causes",
    "enough_data",
    "claim_above_estimate",
    "claim_above_returns",
    "baseline_gap",
    "rewards_vary",
    "acted_on_more",
    "first_on_few",
)
for _file in FILES:
    _kind: Kind = import_module(f"surestep.checks.{_file}").KIND
    CHECKS[_kind.code] = _kind
