"""States that the data suggest, learnt from an earlier part of a log so that the rest can judge."""

from surestep.states.of_log import learn

__all__ = ["learn"]
