"""The look of pictures and their files: one palette, one font, the same bytes each time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from surestep._settings import Settings
from surestep.errors import InvalidParameter, MissingExtra, install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
# Okabe and Ito's colours, which people with colour blindness tell apart.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, GREY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#6b7280",
)
SKY = "#56b4e9"
COLOURS = {
    "blue": BLUE, "orange": ORANGE, "green": GREEN, "vermilion": VERMILION, "purple": PURPLE,
    "grey": GREY,
}  # fmt: skip
LEVEL: Any = {"color": "black", "linewidth": 0.8, "zorder": 1}  # a line to compare with
DASHES: Any = {"π_b": "-", "no": "-", "π*": "--", "L": "--"}  # by first words; others are dotted
FONTS = {  # by the word that asks for it: families, the last with all letters, and maths
    "sans": (["DejaVu Sans"], "dejavusans"),
    "serif": (["STIXGeneral", "DejaVu Sans"], "stix"),
}
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "mathtext.fontset": "dejavusans",
    "figure.titlesize": "medium",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
    "svg.hashsalt": "surestep",  # ids in the file do not change from run to run
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # fonts as they are, which journals ask for, and not as drawings (Type 3)
}
MATHEMATICS = {  # as LaTeX writes it, which Matplotlib understands
    "N∧": r"$N_\wedge$",
    "π_b": r"$\pi_b$",
    "π_I": r"$\pi_I$",
    "π*": r"$\pi^{*}$",
    "V_max": r"$V_{\max}$",
    "V_min": r"$V_{\min}$",
    "Δ": r"$\Delta$",
    "β": r"$\beta$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "ζ": r"$\zeta$",
    "κ": r"$\kappa$",
    "ξ": r"$\xi$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "γ": r"$\gamma$",
    "|S|": r"$|S|$",
    "|A|": r"$|A|$",
}
Inches = Annotated[float, Meta(ge=1, le=60, description="the inches of a side")]
Points = Annotated[float, Meta(ge=4, le=40, description="the points of a font")]


@dataclass(frozen=True, slots=True)
class Look(Settings):
    """The look that a picture is asked to have."""

    size: tuple[Inches, Inches] | None = None  # width and height; None: as fits the content
    font: str = "sans"  # sans, serif, or a family that is installed
    font_size: Points = 10.0
    title: str | None = None  # inside the picture; None: captions are for the text around it


USUAL_LOOK = Look()


@contextmanager
def drawing(width: float, height: float, look: Look = USUAL_LOOK) -> Iterator[Figure]:
    """Gives an empty figure, in inches; the house style holds inside, and nowhere else."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra(
            f"pictures need Matplotlib, which is not installed; {install('plots')}"
        ) from None
    size = (width, height) if look.size is None else look.size
    with matplotlib.rc_context(STYLE | font_style(look)):
        figure = picture_class()(figsize=size, layout="constrained")
        if look.title is not None:
            try:
                figure.suptitle(look.title).get_window_extent()
            except ValueError:  # of a formula
                raise InvalidParameter(
                    f"the title is {look.title!r}, expected formulas between dollar signs that "
                    r"LaTeX can read, and \$ for a dollar sign"
                ) from None
        yield figure


def font_style(look: Look) -> dict[str, Any]:
    """Returns the settings of Matplotlib for a font, which must be installed."""
    from matplotlib import font_manager

    families, maths = FONTS.get(look.font, ([look.font, "DejaVu Sans"], "stix"))
    if look.font not in FONTS:
        try:
            font_manager.findfont(look.font, fallback_to_default=False)
        except ValueError:
            raise InvalidParameter(
                f"there is no font {look.font!r} on this machine, expected {', '.join(FONTS)}, or "
                "the name of a family that is installed"
            ) from None
    return {"font.family": families, "font.size": look.font_size, "mathtext.fontset": maths}


@cache
def picture_class() -> type[Figure]:
    """Returns a figure of Matplotlib that notebooks show, also where nobody imported pyplot."""
    import matplotlib
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure in the style of the house."""

        def _repr_png_(self) -> bytes:
            """Returns the picture, for notebooks."""
            with matplotlib.rc_context(STYLE):
                return rendered(self, "png")

    return Picture


def draw_levels(axes: Axes, levels: Mapping[str, float], *, upright: bool = False) -> None:
    """Draws lines to compare with, through all of a panel, by their names."""
    for name, value in levels.items():
        look = LEVEL | {"linestyle": DASHES.get(name.split(" ")[0], ":"), "label": typeset(name)}
        axes.axvline(value, **look) if upright else axes.axhline(value, **look)


def picture_format(path: Path) -> str:
    """Returns the format that the file's suffix names."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InvalidParameter(
            f"{path} has the suffix {path.suffix!r}, expected .png, .svg or .pdf"
        )
    return suffix


def rendered(figure: Figure, kind: str) -> bytes:
    """Returns the figure as bytes of a file; without the date, so that they are always the same.

    One that has no room for its panels is refused: they would lie on top of each other.
    """
    dated = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[kind]
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            figure.savefig(buffer, format=kind, dpi=200, metadata={dated: None})
        except UserWarning:
            width, height = figure.get_size_inches()
            raise InvalidParameter(
                f"a picture of {width:g} × {height:g} inches has no room for its panels, expected "
                "a larger one, a smaller font or fewer panels"
            ) from None
    return buffer.getvalue()


def typeset(text: str) -> str:
    r"""Returns a text with signs of mathematics as LaTeX has them; a `$` of its own stays one.

    >>> print(typeset("N∧ = 5 for $9, ρ(π_b)"))
    $N_\wedge$ = 5 for \$9, $\rho$($\pi_b$)
    """
    result = text.replace("$", "\\$")
    for sign, written in MATHEMATICS.items():
        result = result.replace(sign, written)
    return result
