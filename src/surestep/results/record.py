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

from surestep._reprs import short_repr
from surestep._version import __version__
from surestep.declaring import Bounds, Texts
from surestep.errors import FileFailure, InvalidResult
from surestep.results.alarms import Alarm
from surestep.results.baseline import Baseline
from surestep.terms import SOURCES, TERMS

# After which term a run has more to say than a user may, and of which type it is.
BESIDE: dict[str, dict[str, Any]] = {
    "n_wedge": {"n_wedge_chosen_by": str | None},
    "unseen": dict.fromkeys(SOURCES, str) | {"columns": dict, "bins": list, "seeds": dict},
    "worlds": {"sizes": list, "time_limit": float | int | None},
}
PARAMETERS: dict[str, Any] = {
    name: kind
    for own, term in TERMS.items()
    for name, kind in ({own: term.recorded} | BESIDE.get(own, {})).items()
    if kind is not None
}
FORMAT = "surestep run"
VERSION = 4
ESTIMATES = ["behavior", "policy"]
COUNTED = ("episodes", "cut_off", "model_episodes")  # of a baseline
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
    """The content of run.json, but for the digests of the other files."""

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
    baseline: Baseline | None = None  # what the episodes earned; None without whole episodes
    alarms: tuple[Alarm, ...] = ()  # what a reader must see first

    __repr__ = short_repr("command", "counts_sha256")

    def to_json(self, outputs: Mapping[str, str]) -> str:
        """The record as JSON, with the digests of the other files of the result."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self), "outputs": dict(outputs)}
        content["baseline"] = None if self.baseline is None else self.baseline._asdict()
        content["alarms"] = [alarm._asdict() for alarm in self.alarms]
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def check(self) -> None:
        """Refuses what nobody could have recorded; what is said is judged where it is used."""
        for name in ("versions", "machine", "parameters", "vocabulary", "data", "estimates"):
            must_be(name, getattr(self, name), dict)
        must_be("command", self.command, str)
        must_be("counts_sha256", self.counts_sha256, str)
        for text in (*self.versions.values(), *self.machine.values()):
            must_be("a version, or a part of the machine,", text, str)
        for file in self.inputs:
            must_be("size", file.size, int)
            for text in (file.role, file.name, file.sha256):
                must_be("an input", text, str)
        if sorted(self.parameters) != sorted(PARAMETERS):
            raise ValueError(f"its parameters are {', '.join(self.parameters)}")
        for name, kind in PARAMETERS.items():
            must_be(name, self.parameters[name], kind)
        for seed in self.parameters["seeds"].values():
            must_be("a seed", seed, int)
        for size in self.parameters["sizes"]:
            must_be("a size", size, float | int)
        given = [self.parameters[name] for name in TERMS if isinstance(TERMS[name].shape, Texts)]
        lists = (self.parameters["bins"], *given, *self.parameters["columns"].values())
        for texts in (self.defaults, *(each for each in lists if each is not None)):
            must_be("a list", texts, list | tuple)
            for text in texts:
                must_be("an item", text, str)
        for name, term in TERMS.items():
            bounds = self.parameters[name] if isinstance(term.shape, Bounds) else None
            if bounds is None:
                continue
            if len(bounds) != 2:
                raise ValueError(f"there are {len(bounds)} bounds, expected two")
            for bound in bounds:
                must_be("a bound", bound, float | int)
        if sorted(self.estimates) != ESTIMATES:
            raise ValueError("expected estimates of behavior and policy")
        for number in self.estimates.values():
            must_be("an estimate", number, float | int)

    @classmethod
    def from_json(cls, text: str) -> tuple[Record, Mapping[str, str]]:
        """The record that `to_json` wrote, and the digests."""
        try:
            content = json.loads(text)
            json.dumps(content, ensure_ascii=False).encode()  # no half characters
            if content.pop("format") != FORMAT or content.pop("version") != VERSION:
                raise ValueError(f"expected format {FORMAT!r} of version {VERSION}")
            outputs = {str(name): str(digest) for name, digest in content.pop("outputs").items()}
            content["inputs"] = tuple(InputFile(**file) for file in content["inputs"])
            content["defaults"] = tuple(content["defaults"])
            content["baseline"] = read_baseline(content["baseline"])
            content["alarms"] = tuple(map(Alarm.read, content["alarms"]))
            record = cls(**content)
            record.check()
            return record, outputs
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            raise InvalidResult(
                f"run.json is not what `surestep improve` writes: {problem}"
            ) from None


def read_baseline(content: object) -> Baseline | None:
    """Reads the baseline of a record; ValueError where that is none."""
    if content is None:
        return None
    if not isinstance(content, dict) or tuple(content) != Baseline._fields:
        raise ValueError(f"the baseline is {content!r}")
    for name, value in content.items():
        must_be(name, value, int if name in COUNTED else float | int)
    return Baseline(**content)


def must_be(name: str, value: object, kind: Any) -> None:
    """Refuses what is of another type; true and false are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}")


def current_versions() -> dict[str, str]:
    """Returns the versions of surestep, of Python, and of what numbers come from."""
    return {
        "surestep": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in COMPUTES_WITH},
    }


def current_machine() -> dict[str, str]:
    """Returns what decides the last bits of a result: the system and the processor's kind."""
    from llvmlite.binding import get_host_cpu_name

    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": get_host_cpu_name(),
    }
