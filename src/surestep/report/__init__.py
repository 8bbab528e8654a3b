"""Tables and results to pictures and pages."""

from surestep.report.figures import draw

__all__ = ["draw"]
