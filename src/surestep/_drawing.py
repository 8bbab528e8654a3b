"""Draws and saves pictures in one style: one palette, one font, the same bytes each time."""

import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surestep.errors import InvalidParameter, optional_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
# Okabe and Ito's colours, which people with colour blindness tell apart.
COLOURS = {
    "blue": "#0072b2", "orange": "#e69f00", "green": "#009e73", "vermilion": "#d55e00",
    "purple": "#cc79a7", "grey": "#6b7280",
}  # fmt: skip
BLUE, ORANGE, GREEN, VERMILION, PURPLE, GREY = COLOURS.values()
SKY = "#56b4e9"
OF_METHODS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY)
# Algorithms and kinds of certificates have one colour each, in all pictures.
METHODS = {
    "basic-rl": PURPLE,
    "spibb": VERMILION,
    "lower-spibb": VERMILION,
    "spibb-2s": BLUE,
    "spibb-beta": GREEN,
    "ramdp": SKY,
    "rmin": SKY,
    "pessimistic-mbie": GREY,
    "robust-mdp": GREY,
    "vi-lcb": GREY,
    "duipi": SKY,
    "hcpi": PURPLE,
    "provable": BLUE,
    "constrained": GREEN,
    "stitched": BLUE,
    "posterior": ORANGE,
    "robust": GREEN,
    "trajectory": PURPLE,
    "a-priori": GREY,
}
LEVEL: Any = {"color": "black", "linewidth": 0.8, "zorder": 1}  # a line to compare with
DASHES: Any = {"π_b": "-", "no": "-", "π*": "--", "L": "--"}  # by first words; others are dotted
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "mathtext.fontset": "dejavusans",
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


@contextmanager
def drawing(width: float, height: float) -> "Iterator[Figure]":
    """Yields an empty figure of a size in inches; the package's style applies inside only."""
    matplotlib = optional_module("matplotlib", "pictures need Matplotlib", "plots")
    with matplotlib.rc_context(STYLE):
        yield picture_class()(figsize=(width, height), layout="constrained")


@cache
def picture_class() -> "type[Figure]":
    """Returns a class of Matplotlib figures that notebooks show without pyplot."""
    import matplotlib
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure in the package's style."""

        def _repr_png_(self) -> bytes:
            """Returns the picture, for notebooks."""
            with matplotlib.rc_context(STYLE):
                return rendered(self, "png")

    return Picture


def colour_of(method: str) -> str:
    """Returns the colour of an algorithm or a kind of certificate: the same in every picture."""
    if "soft-spibb" in method:
        return ORANGE
    return METHODS.get(method, OF_METHODS[zlib.crc32(method.encode()) % len(OF_METHODS)])


def draw_levels(axes: "Axes", levels: Mapping[str, float]) -> None:
    """Draws reference lines across a panel, each in the style of its name."""
    for name, value in levels.items():
        look = LEVEL | {"linestyle": DASHES.get(name.split(" ")[0], ":"), "label": typeset(name)}
        axes.axhline(value, **look)


def picture_format(path: Path) -> str:
    """Returns the format that the file's suffix names."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InvalidParameter(
            f"{path} has the suffix {path.suffix!r}, expected .png, .svg or .pdf"
        )
    return suffix


def rendered(figure: "Figure", kind: str) -> bytes:
    """Returns the figure as bytes of a file, without a date, so that they never differ."""
    dated = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[kind]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=200, metadata={dated: None})
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
