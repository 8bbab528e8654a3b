"""Transforms MDPs and counts into forms with at most two successors a pair."""

from surestep.transforms.two_successor import SplitCounts, SplitMDP, two_successor

__all__ = ["SplitCounts", "SplitMDP", "two_successor"]
