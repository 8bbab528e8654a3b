"""Draws the figures of a run by its name, and writes the table of each beside the picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import surestep._drawing as pen
import surestep.experiments as experiments
import surestep.experiments.comparison as comparison
import surestep.experiments.tables as tables
from surestep._files import write_together
from surestep._names import refuse_unknown
from surestep.errors import FileFailure, InvalidParameter, said
from surestep.experiments.metrics import SHARES, USUAL
from surestep.experiments.runs import selected
from surestep.figures.curves import Point, draw_layout, layout_of

SCALES = {
    "performance": "performance ρ",
    "gain": "gain ρ − ρ(π_b)",
    "normalised": "normalised performance",
}
SHARE = "share of repetitions"
Files = dict[Path, bytes]  # a picture, and the table beside it


@dataclass(frozen=True, slots=True)
class Request:
    """The content of a figure; empty fields and None get defaults that suit the run."""

    selection: experiments.Selection = field(default_factory=experiments.Selection)
    metrics: Sequence[str] = ()
    value: str | None = None  # performance, gain or normalised
    columns: str | None = None  # the part by which columns of panels differ: metric, n-wedge, …
    rows: str | None = None
    bands: bool = True  # draw 95 % intervals


USUAL_REQUEST = Request()


def draw(
    name: str, directory: Path | None, output: Path, request: Request = USUAL_REQUEST
) -> list[Path]:
    """Writes the figures of a name to `output`, with tables beside them, all or none.

    Returns the paths of the pictures and tables. The name is an experiment of the catalog, a folder
    of it, a .toml file, or the folder of a run. With several runs, each picture gets the name of
    its run: figure-gridworld.png.
    """
    if not output.parent.is_dir():  # checked first, as drawing takes time
        raise FileFailure(f"{output} cannot be written: {output.parent} is no folder")
    runs = [experiments.read_run(path) for path in experiments.find_runs(name, directory)]
    own = [output.with_stem(f"{output.stem}-{Path(run.name).name}") for run in runs]
    places = [output] if len(runs) == 1 else own
    return write_files(draw_run(run, path, request) for run, path in zip(runs, places, strict=True))


def write_files(figures: Iterable[Files]) -> list[Path]:
    """Writes pictures and tables, once all of them are drawn; returns their paths."""
    files = {path: content for figure in figures for path, content in figure.items()}
    write_together({path: [content] for path, content in files.items()})
    return list(files)


def draw_run(run: experiments.Run, path: Path, request: Request = USUAL_REQUEST) -> Files:
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
            experiments.valued(rows, value), [*dict.fromkeys([*comparison.USUAL, *metrics])]
        )
        points = value_points(reached, metrics, SCALES[value])
        table = [*map(tables.row_of, reached)]
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


def claim_points(
    cells: Sequence[experiments.CellSummary], request: Request = USUAL_REQUEST
) -> list[Point]:
    """Returns points for claims: the rate of wrong ones, of certified gains, and the tightness.

    The MDPs of a family are pooled.
    """
    if request.value is not None:
        raise InvalidParameter(
            f"{said('value', '--value')} is {request.value!r}, but the run holds claims of "
            "certifiers, expected none"
        )
    metrics = request.metrics or tuple(tables.OF_CLAIMS)
    for metric in metrics:
        refuse_unknown(f"there is no metric {metric!r} of claims", metric, list(tables.OF_CLAIMS))
    return [
        Point(
            one.cell.episodes,
            {"task": tables.task_name(one), "claim": name, "metric": metric},
            experiments.Interval(one.tightness) if metric == "tightness" else getattr(one, metric),
            "mean max(L, 0) / mean Δ" if metric == "tightness" else SHARE,
            {f"δ = {one.delta:g}": one.delta} if metric == "violation" else {},
            one.cell.family,
        )
        for metric in metrics
        for one, name in zip(cells, tables.claim_names(cells), strict=True)
    ]
