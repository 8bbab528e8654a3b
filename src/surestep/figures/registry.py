"""Figures by name: which run is drawn by what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from surestep._files import write_together
from surestep.errors import FileFailure, InvalidParameter, said
from surestep.experiments import Run, find_runs, read_run
from surestep.experiments.runs import output_for
from surestep.figures.coverage import draw_coverage
from surestep.figures.curves import draw_curves
from surestep.figures.heat_maps import draw_heat_maps
from surestep.figures.n_wedge import draw_n_wedge
from surestep.figures.profiles import draw_profiles
from surestep.figures.request import Files, Request

N_WEDGE = "n-wedge"


class Kind(NamedTuple):
    """A kind of figure: what draws it, what may be asked of it, and whether it is of claims."""

    draw: Callable[[Run, Path, Request], Files]
    takes: tuple[str, ...]
    of_claims: bool = False


KINDS = {
    "curves": Kind(draw_curves, ("metrics", "value", "columns", "rows", "bands")),
    "heat-maps": Kind(draw_heat_maps, ("metrics",)),
    "profiles": Kind(draw_profiles, ("value", "bands")),
    "claims": Kind(draw_coverage, ("metrics",), of_claims=True),
}


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
    if name == N_WEDGE:
        if directory is not None:
            raise InvalidParameter("n-wedge is drawn from formulas, expected no run to draw from")
        if asked.kind is not None or asked.given() or asked.selection.is_given:
            raise InvalidParameter("n-wedge is drawn from formulas, expected no choice of content")
        return write_files([draw_n_wedge(output, asked.look)])
    runs = [read_run(path) for path in find_runs(name, directory)]
    kinds = [kind_of(run, asked) for run in runs]
    return write_files(
        kind.draw(run, output_for(output, run, runs), asked)
        for run, kind in zip(runs, kinds, strict=True)
    )


def write_files(figures: Iterable[Files]) -> list[Path]:
    """Writes pictures and tables, once all of them are drawn; says where they are."""
    files = {path: content for figure in figures for path, content in figure.items()}
    write_together({path: [content] for path, content in files.items()})
    return list(files)


def kind_of(run: Run, request: Request) -> Kind:
    """Returns the kind of figure that was asked for, or that suits the run; checks that it can be.

    Comparisons of the catalog are heat maps, claims are figures of claims, others are curves.
    """
    usual = "heat-maps" if run.name.startswith("comparison/") else "curves"
    name = request.kind or ("claims" if run.holds_claims else usual)
    if name not in KINDS:
        raise InvalidParameter(f"the kind is {name!r}, expected {', '.join(KINDS)}")
    kind = KINDS[name]
    if kind.of_claims != run.holds_claims:
        holds = "claims of certifiers" if run.holds_claims else "no claims of certifiers"
        fitting = [known for known in KINDS if KINDS[known].of_claims == run.holds_claims]
        raise InvalidParameter(
            f"{run.directory} holds {holds}, which {name} do not show; expected "
            f"{' or '.join(fitting)}"
        )
    for given in request.given():
        if given not in kind.takes:
            raise InvalidParameter(
                f"{name} take no {asked_by(given)}; expected {', '.join(map(asked_by, kind.takes))}"
            )
    return kind


def asked_by(name: str) -> str:
    """Returns how something is asked for: by an argument, or by an option."""
    return said(name, f"--{name.removesuffix('s') if name == 'metrics' else name}")
