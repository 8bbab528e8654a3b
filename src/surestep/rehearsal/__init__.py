"""Runs stress tests of certificates: the whole pipeline in worlds where the truth is known."""

from surestep.rehearsal.nodes import rehearse_nodes
from surestep.rehearsal.rehearse import calibrate, rehearse
from surestep.rehearsal.result import (
    Calibration,
    Rate,
    Rehearsal,
    SizeSummary,
    rehearsal_from_json,
)
from surestep.rehearsal.worlds import (
    ActionsAlike,
    Completed,
    DrawnFromPosterior,
    EpisodeBootstrap,
    default_family,
)

__all__ = [
    "ActionsAlike",
    "Calibration",
    "Completed",
    "DrawnFromPosterior",
    "EpisodeBootstrap",
    "Rate",
    "Rehearsal",
    "SizeSummary",
    "calibrate",
    "default_family",
    "rehearsal_from_json",
    "rehearse",
    "rehearse_nodes",
]
