"""Vocabulary: the users' own words for states and actions, one text a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surestep.io.labelled_counts import Label


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What states and actions are called, in the order of the model."""

    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    binnings: Mapping[str, object] = field(default_factory=dict)
