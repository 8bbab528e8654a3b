"""Finished blocks of a rehearsal in a folder, so that one that was interrupted can go on.

A block is a file that is there whole or not at all, and knows what made it: the problem, the
settings, the versions and the sources. One that something else made, or that is damaged, is made
again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from surestep._files import write_together
from surestep.algorithms import Improver
from surestep.certificates import Certifier
from surestep.errors import FileFailure
from surestep.model.problem import Problem
from surestep.rehearsal.block import Block, Outcomes

NAMES = ("gain", "claim", "belief", "outside", "draws")
OWN = ("kind", "sizes", "whole_episodes", "seed", "stage", "member", "first", "last")  # of a block
ABOVE = ("cli", "experiments", "figures", "io", "pipeline", "report", "results")  # of a rehearsal


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """A folder of finished blocks; `made_with` says what all of them were made with."""

    folder: Path
    made_with: str = ""  # by default nothing is told; `about` adds what a rehearsal knows

    def about(
        self, problem: Problem, algorithm: Improver, certifiers: tuple[Certifier | None, ...]
    ) -> KeptBlocks:
        """Returns the blocks of one rehearsal, which know the sources too."""
        known = (self.made_with, digest_of_sources(), problem, algorithm, certifiers)
        return KeptBlocks(self.folder, digest_of(known))

    def path_of(self, block: Block) -> Path:
        """Returns the file that a block is kept in."""
        return self.folder / f"{block.stage}-{block.member}-{block.first}.npz"

    def read(self, block: Block) -> Outcomes | None:
        """Returns the outcomes of a block; None where they have to be found out."""
        try:
            stored = io.BytesIO(self.path_of(block).read_bytes())
            with np.load(stored, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None
        fits = str(content.pop("made_by", "")) == self.made_by(block)
        if not fits or not set(NAMES[:4]) <= set(content) <= set(NAMES):
            return None
        return Outcomes(**{name: content.get(name) for name in Outcomes._fields})  # type: ignore[arg-type]

    def write(self, block: Block, outcomes: Outcomes) -> None:
        """Keeps what came out of a block."""
        arrays = {name: values for name, values in outcomes._asdict().items() if values is not None}
        file = io.BytesIO()
        np.savez(file, made_by=np.array(self.made_by(block)), **arrays)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise FileFailure(f"{self.folder} cannot be made: {problem.strerror}") from None
        write_together({self.path_of(block): [file.getvalue()]})

    def made_by(self, block: Block) -> str:
        """Returns a digest of all that decides what comes out of a block."""
        return digest_of((self.made_with, *(getattr(block, name) for name in OWN)))


@cache
def digest_of_sources() -> str:
    """Returns a digest of the package's sources, but for what stands above a rehearsal."""
    package = Path(__file__).parents[1]
    files = sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).parts)
    inside = [file for file in files if file.relative_to(package).parts[0] not in ABOVE]
    return digest_of([(file.relative_to(package).as_posix(), file.read_bytes()) for file in inside])


def digest_of(value: object) -> str:
    """Returns a digest of a value: equal for equal values, whatever objects they consist of."""
    digest = hashlib.sha256()
    feed(digest, value)
    return digest.hexdigest()


def feed(digest: Any, value: object) -> None:
    """Adds a value to a digest, with its type, and its size where it has parts."""
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        digest.update(f"{type(value).__qualname__};".encode())
        feed(digest, parts)
    elif isinstance(value, Mapping):
        digest.update(f"dict {len(value)};".encode())
        for item in value.items():
            feed(digest, item)
    elif isinstance(value, list | tuple):
        digest.update(f"list {len(value)};".encode())
        for item in value:
            feed(digest, item)
    elif isinstance(value, bytes):
        digest.update(f"bytes {len(value)};".encode())
        digest.update(value)
    elif isinstance(value, str | int | float | np.generic | None):
        text = repr(value)
        digest.update(f"{type(value).__name__} {len(text)} {text};".encode())
    else:
        raise TypeError(f"{type(value).__name__} has no digest")
