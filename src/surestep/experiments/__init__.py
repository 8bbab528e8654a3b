"""Experiments: blocks of cells that become one table, resumable, and what is reported of it."""

from surestep.experiments.coverage import (
    Cell,
    CellSummary,
    cell_summaries,
    family_summaries,
    first_certified,
    refuted,
    without_size,
)
from surestep.experiments.experiment import Experiment, catalog, make_experiment, read_experiments
from surestep.experiments.metrics import Summary, first_better, method_of, normalised, summaries
from surestep.experiments.run import run_experiment
from surestep.experiments.store import Store
from surestep.experiments.tails import Interval, cvar, cvar_interval

__all__ = [
    "Cell",
    "CellSummary",
    "Experiment",
    "Interval",
    "Store",
    "Summary",
    "catalog",
    "cell_summaries",
    "cvar",
    "cvar_interval",
    "family_summaries",
    "first_better",
    "first_certified",
    "make_experiment",
    "method_of",
    "normalised",
    "read_experiments",
    "refuted",
    "run_experiment",
    "summaries",
    "without_size",
]
