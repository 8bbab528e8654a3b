"""Keeps finished blocks of long work in a folder, so that interrupted work can go on.

A block is a file of arrays with a digest of its makers, written whole or not at all. A block that
cannot be read is computed again, like a missing one.
"""

import hashlib
import io
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import AnyArray
from surestep._files import failing_to_write, write_together
from surestep._version import __version__, installed_version

COMPUTING = ("numpy", "scipy", "numba", "llvmlite", "duckdb")  # their versions may change numbers
ABOVE = ("cli", "figures", "pipeline", "report")  # folders of the package that no block depends on
MADE_BY = "made by"  # a name in a file besides the names of the arrays
SMALL = 2**26  # every file may unpack to this number of bytes
RATIO = 100  # each byte of a larger file may unpack to this number of bytes


class KeptBlock(NamedTuple):
    """The arrays of a block, and the digest of the versions and settings that made them."""

    made_by: str
    arrays: dict[str, AnyArray]


@dataclass(frozen=True, slots=True)
class BlockFolder:
    """A folder of finished blocks, one file for each key."""

    folder: Path

    def path_of(self, key: str) -> Path:
        """Returns the path of the file of a block."""
        return self.folder / f"{key}.npz"

    def read(self, key: str) -> KeptBlock | None:
        """Returns a block; None if it is missing or damaged."""
        path = self.path_of(key)
        if not path.is_file():
            return None
        try:
            packed = path.read_bytes()
            with np.load(io.BytesIO(packed), allow_pickle=False) as file:
                declared = sum(member.file_size for member in file.zip.infolist())
                if declared > max(SMALL, RATIO * len(packed)):
                    raise ValueError("it unpacks to more than anything that was packed here")
                content = {name: file[name] for name in file.files}
            if any(values.size > declared for values in content.values()):  # entries of 0 bytes
                raise ValueError("its arrays are larger than the file")
            made_by, *names = map(str, content.pop(MADE_BY))
            if names != list(content):
                raise ValueError("the names of its arrays are damaged")
        except Exception:  # a damaged file may raise anything
            return None
        texts = {x: y.astype(object) for x, y in content.items() if y.dtype.kind == "U"}
        return KeptBlock(made_by, content | texts)

    def write(self, key: str, made_by: str, arrays: Mapping[str, AnyArray]) -> None:
        """Writes a block; its columns of objects are texts."""
        texts = {x: y.astype(str) for x, y in arrays.items() if y.dtype == object}
        content: dict[str, Any] = {**arrays, **texts}
        file = io.BytesIO()
        content[MADE_BY] = np.array([made_by, *content])
        np.savez_compressed(file, **content)
        with failing_to_write(self.folder, "made"):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_together({self.path_of(key): [file.getvalue()]})


@cache
def versions_here() -> dict[str, str]:
    """Returns the versions of Python, surestep and all packages in `COMPUTING`."""
    packages = {name: installed_version(name) for name in COMPUTING}
    return {"surestep": __version__, "python": platform.python_version()} | packages


@cache
def code_here() -> str:
    """Returns a digest of the package's sources and of `versions_here`."""
    package = Path(__file__).parent
    names = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    counted = [
        (name.as_posix(), (package / name).read_bytes())
        for name in names
        if name.parts[0] not in ABOVE
    ]
    return digest_of((counted, versions_here()))


def digest_of(value: object) -> str:
    """Returns a digest of a value; equal values have equal digests, even of different objects."""
    digest = hashlib.sha256()
    feed(digest, value)
    return digest.hexdigest()


def feed(digest: Any, value: object) -> None:
    """Adds a value to a digest, with its type, and its size if it has parts."""
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        digest.update(f"{type(value).__qualname__};".encode())
        feed(digest, parts)
    elif isinstance(value, Mapping | list | tuple):
        keyed = isinstance(value, Mapping)
        digest.update(f"{'dict' if keyed else 'list'} {len(value)};".encode())
        for item in value.items() if isinstance(value, Mapping) else value:
            feed(digest, item)
    elif isinstance(value, str | bytes | int | float | np.generic | None):
        text = repr(value)
        digest.update(f"{type(value).__name__} {len(text)} {text};".encode())
    else:
        raise TypeError(f"{type(value).__name__} has no digest")
