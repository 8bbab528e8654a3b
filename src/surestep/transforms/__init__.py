"""Model to model: two-successor and k-successor forms of MDPs and counts."""

from surestep.transforms.two_successor import SplitCounts, SplitMDP, k_successor, two_successor

__all__ = ["SplitCounts", "SplitMDP", "k_successor", "two_successor"]
