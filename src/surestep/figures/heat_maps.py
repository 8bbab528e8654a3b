"""Algorithms over their settings: a heat map each, setting × data size, coloured by performance."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surestep._arrays import FloatArray
from surestep._drawing import drawing, picture_format, rendered
from surestep._files import write_together
from surestep.experiments import Store, Summary, normalised, summaries
from surestep.experiments.experiment import read_label
from surestep.figures.evaluation import SEED, as_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
LETTERS = {"epsilon": "ε", "kappa": "κ", "delta": "δ", "xi": "ξ"}
STATISTICS = {"mean": "mean", "cvar10": "10 % CVaR"}


def draw_heat_maps(directory: Path, path: Path) -> tuple[Path, Path]:
    """Draws the run in `directory` to `path`, its table beside it; says where both are.

    Colour is (ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b)) of every repetition, cut off at −1: white is π_b, blue
    the optimum, red a loss. For every algorithm the mean stands above the 10 % CVaR.
    """
    kind = picture_format(path)
    store = Store(directory)
    title = str(store.read_manifest().get("title", ""))
    reached = summaries(normalised(store.read_table()), np.random.default_rng(SEED))
    algorithms = list(dict.fromkeys(summary.algorithm for summary in reached))
    rows = math.ceil(len(algorithms) / COLUMNS) * len(STATISTICS)
    beside = path.with_suffix(".csv")
    with drawing(3.6 * COLUMNS, 2.1 * rows + 0.8) as figure:
        grid = figure.subplots(rows, COLUMNS, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        image = None
        for number, algorithm in enumerate(algorithms):
            mine = [summary for summary in reached if summary.algorithm == algorithm]
            row, column = divmod(number, COLUMNS)
            for offset, (statistic, label) in enumerate(STATISTICS.items()):
                axes = grid[row * len(STATISTICS) + offset, column]
                image = draw_map(axes, mine, statistic)
                axes.set_title(f"{algorithm}: {label}", fontsize=9)
        bar = figure.colorbar(image, ax=grid, shrink=0.5, aspect=40)  # type: ignore[arg-type]
        bar.set_label("(ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b)):  0 is π_b, 1 the optimum")
        figure.suptitle(f"{title} ({reached[0].repetitions} repetitions)", fontsize=12)
        write_together({path: [rendered(figure, kind)], beside: [as_csv(reached)]})
    return path, beside


def draw_map(axes: Axes, reached: list[Summary], statistic: str) -> object:
    """Draws one map, a row for each setting, a column for each data size; returns the image."""
    sizes = sorted({summary.episodes for summary in reached})
    shown = {setting_of(summary) for summary in reached}
    settings = [words for _, words in sorted(shown)]
    table: FloatArray = np.full((len(settings), len(sizes)), np.nan)
    for summary in reached:
        place = settings.index(setting_of(summary)[1]), sizes.index(summary.episodes)
        table[place] = getattr(summary, statistic).value
    axes.set_axis_on()
    axes.grid(visible=False)
    image = axes.imshow(table, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(sizes)), [short(size) for size in sizes], fontsize=7)
    axes.set_yticks(range(len(settings)), settings, fontsize=7)
    return image


def setting_of(summary: Summary) -> tuple[float, str]:
    """Returns N∧, or the first other setting: its number, 0 for a word, and a few characters."""
    if not math.isnan(summary.n_wedge):
        return summary.n_wedge, f"N∧ = {summary.n_wedge:g}"
    settings = read_label(summary.setting)
    if not settings:
        return 0.0, ""
    name, value = next(iter(settings.items()))
    words = f"{LETTERS[name]} = {value}" if name in LETTERS else f"{name}={value}"
    return number_in(value), words


def number_in(text: str) -> float:
    """Returns the number that is the value of a setting; 0 where it is a word."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def short(size: int) -> str:
    """Returns 2000 as 2k."""
    return f"{size // 1000}k" if size >= 1000 else str(size)
