"""Transforms MDPs and counts into forms with at most two, or k, successors a pair."""

from surestep.transforms.two_successor import SplitCounts, SplitMDP, k_successor, two_successor

__all__ = ["SplitCounts", "SplitMDP", "k_successor", "two_successor"]
