"""A stress test of a certificate: the whole pipeline in worlds where the truth is known."""

from surestep.rehearsal.completion import completed
from surestep.rehearsal.rehearse import calibrate, rehearse
from surestep.rehearsal.result import (
    Calibration,
    Rate,
    Rehearsal,
    SizeSummary,
    calibrated_rank,
    rehearsal_from_json,
)
from surestep.rehearsal.sources import World
from surestep.rehearsal.worlds import (
    ActionsAlike,
    Completed,
    DrawnFromPosterior,
    EpisodeBootstrap,
    WorldKind,
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
    "World",
    "WorldKind",
    "calibrate",
    "calibrated_rank",
    "completed",
    "default_family",
    "rehearsal_from_json",
    "rehearse",
]
