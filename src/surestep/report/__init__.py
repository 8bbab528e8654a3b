"""Tables and results to pictures and pages."""

from surestep.report.n_wedge import draw_n_wedge, n_wedge_table

__all__ = ["draw_n_wedge", "n_wedge_table"]
