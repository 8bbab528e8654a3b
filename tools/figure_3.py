"""Draws the paper's Figure 3: visits for a loss of ζ = 0.1, as the number of states grows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import surestep._drawing as pen
import surestep.experiments.tables as tables
from surestep.bounds import ProblemSize, n_wedge
from surestep.figures.figure import Files

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The hypothetical MDP of the paper's section 6.1.
SETTING = ProblemSize(states=1, actions=4, delta=0.1, value_bound=1.0, discount=0.95)
ZETA = 0.1
METHODS = {  # the label, the algorithm, and where the label stands beside the end of the curve
    "spibb": ("SPIBB", "spibb", "center"),
    "2s": ("two-successor", "spibb-2s", "bottom"),
    "beta": ("β", "spibb-beta", "top"),
}
POINTS_PER_DECADE = 12
LARGEST_POWER = 7  # |S| up to 10⁷


def n_wedge_table() -> list[dict[str, int]]:
    """Returns |S| from 2 to 10⁷, and the N∧ of each method."""
    steps = range(LARGEST_POWER * POINTS_PER_DECADE + 1)
    sizes = sorted({max(2, round(10 ** (step / POINTS_PER_DECADE))) for step in steps})
    return [
        {"states": states}
        | {method: n_wedge(method, ZETA, replace(SETTING, states=states)) for method in METHODS}
        for states in sizes
    ]


def draw_n_wedge(path: Path) -> Files:
    """Draws both panels for `path`, and the table beside it."""
    kind = pen.picture_format(path)
    rows = n_wedge_table()
    with pen.drawing(10, 4.0) as figure:
        whole, excerpt = figure.subplots(1, 2)
        draw_curves(whole, rows, list(METHODS))
        whole.set_yscale("log")
        whole.set_title("All three")
        draw_curves(excerpt, rows, ["2s", "beta"])
        excerpt.set_ylim(bottom=0)
        excerpt.yaxis.set_major_formatter(lambda visits, _: f"{visits / 1e6:g} M")
        excerpt.set_title("Excerpt")
        return {
            path: pen.rendered(figure, kind),
            path.with_suffix(".csv"): tables.as_csv(rows).encode(),
        }


def draw_curves(axes: "Axes", rows: list[dict[str, int]], methods: list[str]) -> None:
    """Draws the curves of the methods over the number of states, each named at its end."""
    sizes = [row["states"] for row in rows]
    for method in methods:
        label, algorithm, side = METHODS[method]
        colour = pen.colour_of(algorithm)
        visits = [row[method] for row in rows]
        axes.plot(sizes, visits, color=colour)
        axes.annotate(
            pen.typeset(label),
            (sizes[-1], visits[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va=side,
            weight="bold",
        )
    axes.set_xscale("log")
    axes.set_xlabel(pen.typeset("number of states |S|"))
    axes.set_ylabel(pen.typeset("visits N∧ of each pair"))
