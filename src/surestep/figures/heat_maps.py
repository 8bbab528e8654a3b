"""Algorithms over their settings: a heat map each, setting × data size, coloured by performance."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surestep._arrays import FloatArray
from surestep._drawing import drawing, picture_format, rendered
from surestep.errors import InvalidParameter
from surestep.experiments import Method, Run, Summary, normalised, selected, summaries
from surestep.experiments.experiment import read_label
from surestep.experiments.metrics import metric_of
from surestep.experiments.naming import (
    LETTERS,
    algorithm_name,
    environment_name,
    metric_name,
    typeset,
)
from surestep.experiments.panels import check_number
from surestep.figures.curves import ALWAYS_TOLD, as_csv, short
from surestep.figures.request import Files, Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
USUAL = ("mean", "cvar10")


def draw_heat_maps(run: Run, path: Path, request: Request) -> Files:
    """Draws the maps of a run for `path`, and the table beside it.

    Colour is (ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b)) of every repetition, cut off at −1: white is π_b, blue
    the optimum, red a loss. For every environment and algorithm a metric stands above the next.
    """
    kind, metrics = picture_format(path), request.metrics or USUAL
    for metric in metrics:
        if metric_of(metric).is_share:
            raise InvalidParameter(
                f"heat maps show no {metric}, which is a share of repetitions; expected mean or "
                "cvarP"
            )
    rows = normalised(selected(run, request.selection))
    reached = summaries(rows, list(dict.fromkeys([*ALWAYS_TOLD, *metrics])))
    maps = list(dict.fromkeys((one.environment, one.method.algorithm) for one in reached))
    columns = min(COLUMNS, len(maps))
    height = math.ceil(len(maps) / columns) * len(metrics)
    check_number(height, columns)
    several = len({environment for environment, _ in maps}) > 1
    with drawing(3.6 * columns + 0.8, 2.1 * height + 0.6, request.look) as figure:
        grid = figure.subplots(height, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        image = None
        for place, (environment, algorithm) in enumerate(maps):
            mine = [
                one
                for one in reached
                if (one.environment, one.method.algorithm) == (environment, algorithm)
            ]
            where = f"{environment_name(environment)}, " if several else ""
            row, column = divmod(place, columns)
            for offset, metric in enumerate(metrics):
                axes = grid[row * len(metrics) + offset, column]
                image = draw_map(axes, mine, metric)
                words = f"{where}{algorithm_name(algorithm)}: {metric_name(metric)}"
                axes.set_title(typeset(words), fontsize="small", fontweight="normal")
        bar = figure.colorbar(image, ax=grid, shrink=min(1.0, 2 / height), aspect=30)  # type: ignore[arg-type]
        bar.set_label(typeset("normalised: 0 is π_b, 1 is π*"))
        return {path: rendered(figure, kind), path.with_suffix(".csv"): as_csv(reached)}


def draw_map(axes: Axes, reached: list[Summary], metric: str) -> object:
    """Draws one map, a row for each setting, a column for each data size; returns the image."""
    sizes = sorted({summary.episodes for summary in reached})
    names = row_names({summary.method for summary in reached})
    methods = list(names)
    table: FloatArray = np.full((len(methods), len(sizes)), np.nan)
    for summary in reached:
        place = methods.index(summary.method), sizes.index(summary.episodes)
        table[place] = summary.metrics[metric].value
    axes.set_axis_on()
    axes.grid(visible=False)
    image = axes.imshow(table, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(sizes)), [short(size) for size in sizes], fontsize="x-small")
    axes.set_yticks(range(len(methods)), [*map(typeset, names.values())], fontsize="x-small")
    return image


def row_names(methods: Collection[Method]) -> dict[Method, str]:
    """Returns the methods of a map in the order of their settings, each with its name.

    That is the setting which comes first, or all of them where it does not tell methods apart.
    """
    rising = sorted(methods, key=lambda method: (setting_of(method), method.setting))
    names = {method: setting_of(method)[1] for method in rising}
    if len(set(names.values())) == len(names):
        return names
    return {method: ", ".join(map(words_of, settings_in(method))) for method in rising}


def setting_of(method: Method) -> tuple[float, str]:
    """Returns N∧, or the first other setting: its number, 0 for a word, and a few characters."""
    settings = settings_in(method)
    return (number_in(settings[0][1]), words_of(settings[0])) if settings else (0.0, "")


def settings_in(method: Method) -> list[tuple[str, str]]:
    """Returns the settings of a method by name, N∧ first."""
    given = [] if method.n_wedge is None else [("n_wedge", str(method.n_wedge))]
    return [*given, *read_label(method.setting).items()]


def words_of(setting: tuple[str, str]) -> str:
    """Returns a setting in a few characters: 'δ = 0.1'."""
    name, value = setting
    return f"{LETTERS.get(name, name)} = {value}"


def number_in(text: str) -> float:
    """Returns the number that is the value of a setting; 0 where it is a word."""
    try:
        return float(text)
    except ValueError:
        return 0.0
