"""The paper's Figure 3: how many visits a loss of ζ = 0.1 takes as the number of states grows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import surestep._drawing as pen
from surestep.bounds import ProblemSize, n_wedge
from surestep.experiments.tables import as_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The hypothetical MDP of the paper's section 6.1.
SETTING = ProblemSize(states=1, actions=4, delta=0.1, value_bound=1.0, discount=0.95)
ZETA = 0.1
METHODS = {  # label, colour, and where the label stands beside the end of the curve
    "spibb": ("SPIBB", pen.VERMILION, "center"),
    "2s": ("two-successor", pen.BLUE, "bottom"),
    "beta": ("β", pen.GREEN, "top"),
}
POINTS_PER_DECADE = 12
LARGEST_POWER = 7  # |S| up to 10⁷


def n_wedge_table() -> list[tuple[int, ...]]:
    """Returns the rows (|S|, N∧^SPIBB, N∧^2s, N∧^β), for |S| from 2 to 10⁷."""
    steps = range(LARGEST_POWER * POINTS_PER_DECADE + 1)
    sizes = sorted({max(2, round(10 ** (step / POINTS_PER_DECADE))) for step in steps})
    return [
        (states, *(n_wedge(method, ZETA, replace(SETTING, states=states)) for method in METHODS))
        for states in sizes
    ]


def draw_n_wedge(path: Path, look: pen.Look = pen.USUAL_LOOK) -> dict[Path, bytes]:
    """Draws both panels for `path`, and the table beside it."""
    kind = pen.picture_format(path)
    table = n_wedge_table()
    rows = [dict(zip(("states", *METHODS), row, strict=True)) for row in table]
    with pen.drawing(10, 4.0, look) as figure:
        whole, excerpt = figure.subplots(1, 2)
        draw_curves(whole, table, list(METHODS))
        whole.set_yscale("log")
        whole.set_title("All three")
        draw_curves(excerpt, table, ["2s", "beta"])
        excerpt.set_ylim(bottom=0)
        excerpt.yaxis.set_major_formatter(lambda visits, _: f"{visits / 1e6:g} M")
        excerpt.set_title("Excerpt")
        return {path: pen.rendered(figure, kind), path.with_suffix(".csv"): as_csv(rows).encode()}


def draw_curves(axes: Axes, table: list[tuple[int, ...]], methods: list[str]) -> None:
    """Draws the curves of the methods over the number of states, each named at its end."""
    names = list(METHODS)
    sizes = [row[0] for row in table]
    for method in methods:
        label, colour, side = METHODS[method]
        visits = [row[1 + names.index(method)] for row in table]
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
