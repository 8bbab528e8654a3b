"""Figures by name: which run is drawn by what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from surestep._arrays import did_you_mean
from surestep.errors import InvalidParameter, said
from surestep.experiments import Store, catalog
from surestep.figures.coverage import draw_coverage
from surestep.figures.evaluation import draw_evaluation
from surestep.figures.heat_maps import draw_heat_maps
from surestep.figures.n_wedge import draw_n_wedge

N_WEDGE = "n-wedge"
Drawer = Callable[[Path, Path], tuple[Path, Path]]  # a run, where to draw; picture and table
OF_THE_CATALOG: dict[str, Drawer] = {  # by the folder of the experiment
    "paper": draw_evaluation,
    "comparison": draw_heat_maps,
    "coverage": draw_coverage,
}


def draw(name: str, directory: Path | None, output: Path) -> tuple[Path, Path]:
    """Draws the figure of that name to `output` with its table beside it; says where both are.

    All but "n-wedge" are drawn from the run in `directory`, by default `runs/NAME`.
    """
    if name == N_WEDGE:
        if directory is not None:
            raise InvalidParameter("n-wedge is drawn from formulas, expected no run to draw from")
        return draw_n_wedge(output)
    known = catalog()
    if name not in known and directory is None:
        hint = did_you_mean(name, [N_WEDGE, *known])
        raise InvalidParameter(
            f"there is no figure {name!r}; {hint}expected {N_WEDGE}, one of {', '.join(known)}, or "
            f"any run given by {said('directory', '--from')}"
        )
    source = directory if directory is not None else Path("runs") / name
    if not Store(source).manifest.exists():
        raise InvalidParameter(
            f"{source} holds no run; make one with: surestep run {name} -o {source}"
        )
    held = str(Store(source).read_manifest().get("name"))
    if name in known and held != name:
        raise InvalidParameter(f"{source} holds the run {held!r}, expected {name!r}")
    return drawer_of(source, held)(source, output)


def drawer_of(source: Path, held: str) -> Drawer:
    """Returns what draws the run of that name: by its folder of the catalog, or by its content."""
    folder, _, inside = held.partition("/")
    if inside and folder in OF_THE_CATALOG:
        return OF_THE_CATALOG[folder]
    return draw_coverage if Store(source).holds_claims() else draw_evaluation
