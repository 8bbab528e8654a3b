"""What the terminal and the page say about an inspection in the same words."""

from __future__ import annotations

from surestep.io.log_look import Suspicion
from surestep.report.numbers import counted, listed
from surestep.results.inspection import Bin, Inspection


def visits_words(bin: Bin) -> str:
    """'never', '1 visit' or '2–4 visits'."""
    if bin.high == 0:
        return "never"
    return counted(bin.low, "visit") if bin.low == bin.high else f"{bin.low:,}–{bin.high:,} visits"


def suspicion_words(suspicion: Suspicion) -> str:
    """'3 rows without a label in column 'ward''."""
    return f"{counted(suspicion.times, suspicion.of)} {suspicion.says}"


def ends_words(inspection: Inspection) -> str:
    """How episodes end."""
    episodes = inspection.episodes
    if episodes is None:
        return "loose transitions"
    ends = (
        (episodes.terminated, "terminated"),
        (episodes.truncated, "truncated"),
        (episodes.without_end, "without an end"),
    )
    found = [f"{many:,} {how}" for many, how in ends if many]
    return listed(found) if found else "none"


def fit(inspection: Inspection) -> str:
    """Whether the given policy can have made the log."""
    overlap = inspection.overlap
    if overlap is None:
        return "not given"
    if overlap.states_unknown or overlap.impossible:
        return "cannot have made this log"
    if overlap.unlikely:
        return "unlikely to have made this log"
    return "fits the log"
