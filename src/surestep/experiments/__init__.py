"""Experiments: blocks of cells that become one table, resumable, and what is reported of it."""

from surestep.experiments.comparison import Compared, Comparison, Difference, compare_run
from surestep.experiments.experiment import Experiment, catalog, make_experiment, read_experiments
from surestep.experiments.intervals import Interval, cvar, cvar_interval, mean_interval
from surestep.experiments.metrics import (
    Cell,
    CellSummary,
    Method,
    Summary,
    cell_summaries,
    family_summaries,
    first_better,
    first_certified,
    refuted,
    summaries,
    valued,
    without_size,
)
from surestep.experiments.run import Store, run_experiment
from surestep.experiments.runs import Run, Selection, find_runs, read_run, selected

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
    "Store",
    "Summary",
    "catalog",
    "cell_summaries",
    "compare_run",
    "cvar",
    "cvar_interval",
    "family_summaries",
    "find_runs",
    "first_better",
    "first_certified",
    "make_experiment",
    "mean_interval",
    "read_experiments",
    "read_run",
    "refuted",
    "run_experiment",
    "selected",
    "summaries",
    "valued",
    "without_size",
]
