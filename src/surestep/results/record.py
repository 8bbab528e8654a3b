"""Record: with what a result was made, so that it can be made again."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surestep._version import __version__
from surestep.errors import FileFailure, InvalidResult

FORMAT = "surestep run"
VERSION = 1
COMPUTES_WITH = ("numpy", "scipy", "numba", "llvmlite", "duckdb")


@dataclass(frozen=True, slots=True)
class InputFile:
    """The fingerprint of a file that went into a result."""

    role: str  # "log", "behavior", "states" or "actions"
    name: str  # without its folder
    size: int  # bytes
    sha256: str

    @classmethod
    def of(cls, role: str, path: Path) -> InputFile:
        """Reads the file once, piece by piece."""
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                return cls(role, path.name, file.tell(), digest)
        except OSError as problem:
            raise FileFailure(f"{path} cannot be read: {problem.strerror}") from None


@dataclass(frozen=True, slots=True)
class Record:
    """What run.json holds, but for the digests of the other files."""

    versions: Mapping[str, str]  # of surestep and what it computes with
    machine: Mapping[str, str]
    inputs: tuple[InputFile, ...]  # none for a table in memory
    counts_sha256: str  # of the counts file that `surestep count` would write
    parameters: Mapping[str, Any]  # all that changes the answer, also where nobody gave it
    defaults: tuple[str, ...]  # the parameters that nobody gave
    vocabulary: Mapping[str, Any]  # columns, binnings and end states
    data: Mapping[str, Any]  # what the log holds: rows, episodes, states, …
    estimates: Mapping[str, float]  # ρ of "behavior" and of the new "policy" in the estimated MDP
    command: str  # what makes it again

    def to_json(self, outputs: Mapping[str, str]) -> str:
        """The record as JSON, with the digests of the other files of the result."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self), "outputs": dict(outputs)}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> tuple[Record, Mapping[str, str]]:
        """The record that `to_json` wrote, and the digests."""
        try:
            content = json.loads(text)
            if content.pop("format") != FORMAT or content.pop("version") != VERSION:
                raise ValueError(f"expected format {FORMAT!r} of version {VERSION}")
            outputs = {str(name): str(digest) for name, digest in content.pop("outputs").items()}
            content["inputs"] = tuple(InputFile(**each) for each in content["inputs"])
            content["defaults"] = tuple(content["defaults"])
            return cls(**content), outputs
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise InvalidResult(
                f"run.json is not what `surestep improve` writes: {problem}"
            ) from None


def current_versions() -> dict[str, str]:
    """Of surestep, of Python, and of what numbers come from."""
    return {
        "surestep": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in COMPUTES_WITH},
    }


def current_machine() -> dict[str, str]:
    """What decides the last bits of a result: the system and the processor it compiles for."""
    from llvmlite.binding import get_host_cpu_name

    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": get_host_cpu_name(),
    }
