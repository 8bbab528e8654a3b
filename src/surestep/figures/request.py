"""The request for a figure: its content and its look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from surestep._drawing import USUAL_LOOK, Look
from surestep.experiments import Selection
from surestep.experiments.panels import Panels

Files = dict[Path, bytes]  # a picture, and the table beside it


@dataclass(frozen=True, slots=True)
class Request:
    """The content and look of a figure; an empty part or None is left to the kind of figure."""

    kind: str | None = None  # None: the one that suits the run
    selection: Selection = field(default_factory=Selection)
    metrics: Sequence[str] = ()
    value: str | None = None  # performance, gain or normalised
    panels: Panels = field(default_factory=Panels)
    look: Look = USUAL_LOOK
    bands: bool = True  # 95 % intervals, as light lines

    def given(self) -> list[str]:
        """Returns the names of what was asked for, of that which not every kind of figure has."""
        asked = {
            "metrics": bool(self.metrics),
            "value": self.value is not None,
            "columns": self.panels.columns is not None,
            "rows": self.panels.rows is not None,
            "bands": not self.bands,
        }
        return [name for name, is_given in asked.items() if is_given]
