"""Record: with what a result was made, so that it can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class InputFile:
    """The fingerprint of a file that went into a result."""

    role: str  # "log", "behavior", "states" or "actions"
    name: str  # without its folder
    size: int  # bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class Record:
    """The content of run.json."""

    versions: Mapping[str, str]  # of surestep and what it computes with
    machine: Mapping[str, str]
    inputs: tuple[InputFile, ...]
    counts_sha256: str
    parameters: Mapping[str, Any]  # all that changes the answer, also where nobody gave it
    defaults: tuple[str, ...]  # the parameters that nobody gave
    command: str  # what makes it again
