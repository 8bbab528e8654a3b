"""Experiments: blocks of cells that become one table, resumable, and what is reported of it."""

from surestep.experiments.metrics import (
    Interval,
    Summary,
    cvar,
    first_better,
    method_of,
    normalised,
    summaries,
)
from surestep.experiments.plan import Experiment, catalog, read_experiments
from surestep.experiments.run import run_experiment
from surestep.experiments.store import Store

__all__ = [
    "Experiment",
    "Interval",
    "Store",
    "Summary",
    "catalog",
    "cvar",
    "first_better",
    "method_of",
    "normalised",
    "read_experiments",
    "run_experiment",
    "summaries",
]
