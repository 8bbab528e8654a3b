"""Algorithms over their settings: a heat map each, setting × data size, coloured by performance."""

from __future__ import annotations

import math
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
from surestep.figures.curves import ALWAYS_TOLD, as_csv
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
    shown = {setting_of(summary.method) for summary in reached}
    settings = [words for _, words in sorted(shown)]
    table: FloatArray = np.full((len(settings), len(sizes)), np.nan)
    for summary in reached:
        place = settings.index(setting_of(summary.method)[1]), sizes.index(summary.episodes)
        table[place] = summary.metrics[metric].value
    axes.set_axis_on()
    axes.grid(visible=False)
    image = axes.imshow(table, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(sizes)), [short(size) for size in sizes], fontsize="x-small")
    axes.set_yticks(range(len(settings)), [*map(typeset, settings)], fontsize="x-small")
    return image


def setting_of(method: Method) -> tuple[float, str]:
    """Returns N∧, or the first other setting: its number, 0 for a word, and a few characters."""
    if method.n_wedge is not None:
        return float(method.n_wedge), f"N∧ = {method.n_wedge}"
    settings = read_label(method.setting)
    if not settings:
        return 0.0, ""
    name, value = next(iter(settings.items()))
    return number_in(value), f"{LETTERS.get(name, name)} = {value}"


def number_in(text: str) -> float:
    """Returns the number that is the value of a setting; 0 where it is a word."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def short(size: int) -> str:
    """Returns 2000 as 2k."""
    return f"{size // 1000}k" if size >= 1000 else str(size)
