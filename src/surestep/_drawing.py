"""The look of pictures and their files: one palette, one font, the same bytes each time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surestep.errors import InvalidParameter, MissingExtra

if TYPE_CHECKING:
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
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
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
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Gives an empty figure, in inches; the house style holds inside, and nowhere else."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra(
            "pictures need Matplotlib, which is not installed; install it with: "
            "pip install 'surestep[plots]'"
        ) from None
    with matplotlib.rc_context(STYLE):
        yield picture_class()(figsize=(width, height), layout="constrained")


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


def picture_format(path: Path) -> str:
    """Returns the format that the file's suffix names."""
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise InvalidParameter(
            f"{path} has the suffix {path.suffix!r}, expected .png, .svg or .pdf"
        )
    return suffix


def rendered(figure: Figure, kind: str) -> bytes:
    """Returns the figure as bytes of a file; without the date, so that they are always the same."""
    dated = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[kind]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=200, metadata={dated: None})
    return buffer.getvalue()
