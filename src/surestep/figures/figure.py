"""Figures by name: the numbers of a run as points in panels, and their table beside the picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import surestep._drawing as pen
import surestep.experiments as experiments
import surestep.experiments.tables as tables
from surestep._files import write_together
from surestep._names import unknown
from surestep.bounds import ProblemSize, n_wedge
from surestep.errors import FileFailure, InvalidParameter, said
from surestep.experiments.metrics import SHARES, USUAL
from surestep.experiments.runs import selected
from surestep.figures.curves import Point, draw_layout, layout_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FROM_FORMULAS = "n-wedge"
ALWAYS_TOLD = ("mean", "cvar10", "cvar1", "better", "worse")  # in the table beside the picture
SCALES = {
    "performance": "performance ρ",
    "gain": "gain ρ − ρ(π_b)",
    "normalised": "normalised performance",
}
SHARE = "share of repetitions"
Files = dict[Path, bytes]  # a picture, and the table beside it


@dataclass(frozen=True, slots=True)
class Request:
    """The content of a figure; for an empty field or None, the run decides."""

    selection: experiments.Selection = field(default_factory=experiments.Selection)
    metrics: Sequence[str] = ()
    value: str | None = None  # performance, gain or normalised
    columns: str | None = None  # the part that tells columns of panels apart: metric, n-wedge, …
    rows: str | None = None
    bands: bool = True  # 95 % intervals


def draw(
    name: str, directory: Path | None, output: Path, request: Request | None = None
) -> list[Path]:
    """Draws the figures of that name to `output`, tables beside them: all of them, or nothing.

    Says where they are: each picture, and its table.

    All but "n-wedge" are drawn from runs: that of the name in the catalog, all of a folder there,
    that of a .toml file, or that in a folder. Of several, each has its own name after that of the
    output: figure-gridworld.png.
    """
    asked = request or Request()
    if not output.parent.is_dir():  # before anything is drawn, which takes its time
        raise FileFailure(f"{output} cannot be written: {output.parent} is no folder")
    if name == FROM_FORMULAS:
        if directory is not None or asked != Request():
            raise InvalidParameter("n-wedge is drawn from formulas, expected no run and no choice")
        files = draw_n_wedge(output)
    else:
        runs = [experiments.read_run(path) for path in experiments.find_runs(name, directory)]
        files = {}
        for run in runs:
            own = output.with_stem(f"{output.stem}-{Path(run.name).name}")
            files |= draw_run(run, output if len(runs) == 1 else own, asked)
    return write_files([files])


def write_files(figures: Iterable[Files]) -> list[Path]:
    """Writes pictures and tables, once all of them are drawn; returns their paths."""
    files = {path: content for figure in figures for path, content in figure.items()}
    write_together({path: [content] for path, content in files.items()})
    return list(files)


def draw_run(run: experiments.Run, path: Path, request: Request) -> Files:
    """Draws the metrics, or the claims, of a run for `path`, and the table beside it."""
    kind = pen.picture_format(path)
    rows = selected(run, request.selection)
    if run.holds_claims:
        points = claim_points(experiments.family_summaries(rows), request)
        table = tables.claim_rows(experiments.cell_summaries(rows))
    else:
        metrics = request.metrics or USUAL
        value = request.value or "performance"
        reached = experiments.summaries(
            experiments.valued(rows, value), [*dict.fromkeys([*ALWAYS_TOLD, *metrics])]
        )
        points = value_points(reached, metrics, SCALES[value])
        table = tables.value_rows(reached)
    picture = draw_layout(
        layout_of(points, request.columns, request.rows),
        kind,
        intervals=request.bands,
        bars=run.holds_claims,
    )
    return {path: picture, path.with_suffix(".csv"): tables.as_csv(table).encode()}


def value_points(
    reached: Sequence[experiments.Summary], metrics: Sequence[str], scale: str
) -> list[Point]:
    """Returns the metrics of all methods as points."""
    return [
        Point(
            one.episodes,
            {
                "environment": one.environment,
                "algorithm": one.method.algorithm,
                "setting": one.method.setting,
                "n-wedge": one.method.n_wedge,
                "metric": metric,
            },
            one.metrics[metric],
            SHARE if share else scale,
            {} if share else {"π_b": one.behavior_performance, "π*": one.optimal_performance},
            one.environment,
            one.n_wedge_used,
        )
        for metric in metrics
        for share in [metric in SHARES]
        for one in reached
    ]


def claim_points(cells: Sequence[experiments.CellSummary], request: Request) -> list[Point]:
    """Returns how often claims are wrong, how often they certify a gain, and how much of it.

    The MDPs of a family are pooled.
    """
    if request.value is not None:
        raise InvalidParameter(
            f"{said('value', '--value')} is {request.value!r}, but the run holds claims of "
            "certifiers, expected none"
        )
    metrics = request.metrics or tuple(tables.OF_CLAIMS)
    for metric in metrics:
        if metric not in tables.OF_CLAIMS:
            raise unknown(
                f"there is no metric {metric!r} of claims", metric, list(tables.OF_CLAIMS)
            )
    nothing = float("nan")
    return [
        Point(
            one.cell.episodes,
            {"task": tables.task_name(one), "claim": name, "metric": metric},
            experiments.Interval(one.tightness, nothing, nothing)
            if metric == "tightness"
            else getattr(one, metric),
            "mean max(L, 0) / mean Δ" if metric == "tightness" else SHARE,
            {f"δ = {one.delta:g}": one.delta} if metric == "violation" else {},
            one.cell.family,
        )
        for metric in metrics
        for one, name in zip(cells, tables.claim_names(cells), strict=True)
    ]


# ---- the paper's Figure 3: visits for a loss of ζ = 0.1, as the number of states grows ----------

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


def draw_curves(axes: Axes, rows: list[dict[str, int]], methods: list[str]) -> None:
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
