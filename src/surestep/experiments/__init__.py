"""Runs experiments block by block into one table, resumes them, and summarises the table."""

from surestep.experiments.comparison import Compared, Comparison, Difference, compare_run
from surestep.experiments.experiment import (
    Experiment,
    list_experiments,
    make_experiment,
    read_experiments,
)
from surestep.experiments.intervals import (
    Interval,
    cvar_interval,
    mean_interval,
    student_interval,
)
from surestep.experiments.metrics import (
    Cell,
    CellSummary,
    Method,
    Summary,
    cell_summaries,
    family_summaries,
    refuted,
    summaries,
    valued,
)
from surestep.experiments.run import run_experiment
from surestep.experiments.runs import Run, Selection, find_runs, read_run

__all__ = [
    "Cell",
    "CellSummary",
    "Compared",
    "Comparison",
    "Difference",
    "Experiment",
    "Interval",
    "Method",
    "Run",
    "Selection",
    "Summary",
    "cell_summaries",
    "compare_run",
    "cvar_interval",
    "family_summaries",
    "find_runs",
    "list_experiments",
    "make_experiment",
    "mean_interval",
    "read_experiments",
    "read_run",
    "refuted",
    "run_experiment",
    "student_interval",
    "summaries",
    "valued",
]
