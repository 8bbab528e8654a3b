"""Finds and reads runs by the names of their experiments, for figures and comparisons."""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surestep._arrays import AnyArray, BoolArray, FloatArray, first_where
from surestep._names import unknown
from surestep.errors import InvalidParameter, said
from surestep.experiments.experiment import (
    Experiment,
    in_catalog,
    list_experiments,
    read_environment,
    read_experiments,
    read_label,
)
from surestep.experiments.metrics import BOUNDS, Method, RunColumns, float_column, whole_or_none
from surestep.experiments.run import RunManifest, Store
from surestep.model.noun import noun

OF_VALUES = (
    "environment", "episodes", "algorithm", "setting", "n_wedge", "n_wedge_used", "repetition",
    "performance", "behavior_performance", "optimal_performance", *BOUNDS,
)  # fmt: skip
OF_CLAIMS = (
    "family", "environment", "episodes", "algorithm", "setting", "n_wedge", "certifier",
    "certifier_setting", "delta", "gain", "lower", "standing", "behavior_performance",
)  # fmt: skip
BEYOND = 1e-6  # a performance may exceed a bound by this relative rounding error


@noun("name", "title", "num_rows")
@dataclass(frozen=True, slots=True)
class Run:
    """The table of a run, with its experiment and manifest.

    Parameters
    ----------
    directory : Path
        The folder of the run.
    name : str
        The name of the experiment.
    title : str
        The title in figures.
    holds_claims : bool
        True if certifiers were part of it.
    manifest : Manifest
        The experiment, the code and versions, and the time of the run.
    columns : dict of array
        The table, column by column.

    Examples
    --------
    See `read_run`, which returns them.

    >>> from surestep.experiments import Run
    >>> Run.__slots__[:2]
    ('directory', 'name')
    """

    directory: Path
    name: str
    title: str
    holds_claims: bool  # certifiers were part of it
    manifest: RunManifest
    columns: RunColumns

    @property
    def num_rows(self) -> int:
        """Returns the number of rows of its table."""
        return len(self.columns["episodes"])


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of a run; an empty list means all.

    Parameters
    ----------
    algorithms : sequence of str, optional
        Names such as 'spibb', or 'spibb:n_wedge=100' with some of the settings.
    environments : sequence of str, optional
        Names, or labels of the table.
    episodes : sequence of int, optional
        Data sizes.

    Examples
    --------
    >>> from surestep.experiments import Selection
    >>> Selection(algorithms=["spibb"]).episodes
    ()
    """

    algorithms: Sequence[str] = ()
    environments: Sequence[str] = ()
    episodes: Sequence[int] = ()


# ---- finding runs ------------------------------------------------------------------------------


def find_runs(name: str, directory: Path | None = None) -> list[Path]:
    """Finds the folders of the runs of a name.

    Parameters
    ----------
    name : str
        An experiment of the catalog, a folder of it, a .toml file, or the folder of a run.
    directory : Path, optional
        The folder of the run; by default `runs/NAME`, as `surestep run` writes it.

    Returns
    -------
    list of Path
        The folders.

    Raises
    ------
    InvalidParameter
        There is no such run.

    Examples
    --------
    >>> from surestep.experiments import find_runs
    >>> find_runs("paper/gridworld")
    Traceback (most recent call last):
    surestep.errors.InvalidParameter: runs/paper/gridworld holds no run; make one with: ...
    """
    if directory is None and Store(Path(name)).manifest.exists():
        return [Path(name)]
    if not in_catalog(name) and not name.endswith(".toml"):
        if directory is None:
            directories = said("directory", "--from")
            more = f", a folder of them, a .toml file, the folder of a run, or {directories}"
            raise unknown(f"there is no run {name!r}", name, list_experiments(), more)
        return [existing(directory, name)]
    several = read_experiments(name)
    root = directory or Path("runs")
    if len(several) == 1:
        return [checked(directory or root / several[0].name, several[0], name)]
    return [checked(root / one.name, one, one.name) for one in several]


def existing(directory: Path, name: str) -> Path:
    """Returns the directory; refuses a directory without a run."""
    if not Store(directory).manifest.exists():
        raise InvalidParameter(
            f"{directory} holds no run; make one with: surestep run {name} -o {directory}"
        )
    return directory


def checked(directory: Path, experiment: Experiment, name: str) -> Path:
    """Returns the directory; refuses a directory without a run of the experiment."""
    held = Store(existing(directory, name)).read_manifest()
    if held.name != experiment.name:
        raise InvalidParameter(
            f"{directory} holds the run {held.name!r}, expected {experiment.name!r}"
        )
    if name.endswith(".toml") and held.identity != experiment.identity():
        raise InvalidParameter(
            f"{directory} was run with other settings than {name} has now; run it again, or name "
            f"the folder itself: {directory}"
        )
    return directory


# ---- reading the table -------------------------------------------------------------------------


def read_run(directory: str | Path) -> Run:
    """Reads a run, and checks that its table is whole.

    Parameters
    ----------
    directory : str or Path
        The folder of the run.

    Returns
    -------
    Run
        The table, with its experiment and manifest.

    Raises
    ------
    FileFailure
        A file cannot be read.
    InvalidParameter
        The run is not complete, or its table lacks rows or columns.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import make_experiment, read_run, run_experiment
    >>> plan = make_experiment("small", environments=["bandit"], algorithms=["basic-rl"],
    ...                        episodes=[20], repetitions=10, seed=1)
    >>> read_run(run_experiment(plan, tempfile.mkdtemp()).parent)
    Run(name='small', title='small', num_rows=10)
    """
    store = Store(Path(directory))
    manifest = store.read_manifest()
    columns = store.read_table()
    run = Run(
        store.directory,
        manifest.name,
        manifest.title,
        "certifier" in columns,
        manifest,
        columns,
    )
    check_table(run)
    return run


def check_table(run: Run) -> None:
    """Refuses a table without rows, without a needed column, or with wrong bounds."""
    table = Store(run.directory).table
    needed = OF_CLAIMS if run.holds_claims else OF_VALUES
    missing = [name for name in needed if name not in run.columns]
    if missing or not run.num_rows:
        what = "rows" if not missing else f"column {missing[0]!r}, expected {', '.join(needed)}"
        raise InvalidParameter(f"{table} has no {what}; delete it, and run again")
    if run.holds_claims:
        return
    low, reached, high = (
        float_column(run.columns, name) for name in (BOUNDS[0], "performance", BOUNDS[1])
    )
    wrong = clearly_above(low, reached) | clearly_above(reached, high)
    for i, others in first_where(wrong, "row"):  # intervals that rest on wrong bounds do not hold
        raise InvalidParameter(
            f"{table}: performance is {reached[i]:.10g} in row {i + 1}, expected {low[i]:.10g} to "
            f"{high[i]:.10g} by the value bounds of {run.columns['environment'][i]}{others}"
        )


def clearly_above(one: FloatArray, other: FloatArray) -> BoolArray:
    """Tells for each entry whether one number is above the other by more than rounding."""
    return one - other > BEYOND * np.maximum(np.abs(one), np.abs(other))


# ---- selecting rows ----------------------------------------------------------------------------


def selected(run: Run, selection: Selection) -> RunColumns:
    """Returns the rows of a selection; refuses names that the run does not have."""
    columns = run.columns
    names = [str(name) for name in columns["environment"]]
    kept = among("environment", selection.environments, names, environment_is)
    n_wedges = float_column(columns, "n_wedge")
    parts = zip(columns["algorithm"], columns["setting"], n_wedges, strict=True)
    methods = [
        Method(str(name), str(setting), whole_or_none(n_wedge)) for name, setting, n_wedge in parts
    ]
    kept &= among("algorithm", selection.algorithms, methods, method_is)
    kept &= among("data size", selection.episodes, list(map(int, columns["episodes"])), operator.eq)
    if not kept.any():
        raise InvalidParameter(f"{run.directory} has no rows of this selection together")
    return {name: column[kept] for name, column in columns.items()}


def among(what: str, wanted: Sequence[Any], present: Sequence[Any], fits: Any) -> AnyArray:
    """Marks the entries that fit a wanted one [n]; all entries if none is wanted."""
    if not wanted:
        return np.ones(len(present), bool)
    different = list(dict.fromkeys(present))
    fitting = set()
    for entry in wanted:
        mine = [one for one in different if fits(one, entry)]
        if not mine:
            raise InvalidParameter(
                f"there is no {what} {entry!r} in this run, expected "
                f"{', '.join(map(method_text, different))}"
            )
        fitting.update(mine)
    return np.array([one in fitting for one in present])


def environment_is(label: str, name: str) -> bool:
    """Tells whether `name` is the label of an environment, or its name without parameters."""
    return name in (label, read_environment(label)[0])


def method_is(method: Method, name: str) -> bool:
    """Tells whether `name` names the method, as 'spibb' or 'spibb:n_wedge=100' do."""
    algorithm, _, settings = name.partition(":")
    own = settings_by_name(method)
    parts = re.split(r",\s*(?=\w+=)", settings) if settings else []
    asked = [part.partition("=") for part in parts]
    return method.algorithm == algorithm and all(
        key.strip() in own and same_value(own[key.strip()], value.strip())
        for key, _, value in asked
    )


def same_value(one: str, other: str) -> bool:
    """Tells whether two texts are the same number, or the same word."""
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def settings_by_name(method: Method) -> dict[str, str]:
    """Returns all settings of a method by name, N∧ included, as text."""
    own = {} if method.n_wedge is None else {"n_wedge": str(method.n_wedge)}
    return own | read_label(method.setting)


def method_text(thing: object) -> str:
    """Returns the name of a method in options: 'spibb:n_wedge=100'; other values as text."""
    if not isinstance(thing, Method):
        return str(thing)
    settings = ",".join(f"{name}={value}" for name, value in settings_by_name(thing).items())
    return f"{thing.algorithm}:{settings}" if settings else thing.algorithm
