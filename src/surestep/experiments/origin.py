"""The origin of a block: its settings, the versions, and the sources that its rows depend on.

Sources are found by following imports, as they are written, from the module that runs blocks and
from those of the algorithms, environments and certifiers in it. Modules that know all others by
name are not followed, so that another algorithm, or a page of the report, changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from surestep._json import read_json, typed
from surestep._version import __version__, installed_version
from surestep.algorithms import registry as algorithms
from surestep.certificates import registry as certificates
from surestep.environments import registry as environments
from surestep.errors import FileFailure
from surestep.experiments.cell import Block
from surestep.experiments.claims import ClaimBlock
from surestep.experiments.given import module_of
from surestep.extensions import Shelf, versions_of

PACKAGE = "surestep"
ROOT = Path(__file__).parents[1]
COMPUTING = ("numpy", "scipy", "numba")  # packages whose versions may change a number
NOT_FOLLOWED = frozenset(
    {
        "surestep.algorithms.registry",
        "surestep.certificates.registry",
        "surestep.environments.registry",
        "surestep.experiments.given",  # what these two read is in the settings
        "surestep.experiments.experiment",
        "surestep.errors",  # no number depends on these three
        "surestep.extensions",
        "surestep.parallel",
    }
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a block; the versions are there to be read, the digests to be compared."""

    settings: str  # of what was asked for
    code: str  # of the sources and of the versions that may change a number
    versions: dict[str, str]

    def agrees(self, other: Origin) -> bool:
        """Tells whether the other would make the same rows."""
        return (self.settings, self.code) == (other.settings, other.code)

    def to_json(self) -> str:
        """The origin as text."""
        return json.dumps(asdict(self), sort_keys=True)


def origin_from_json(text: str) -> Origin | None:
    """The origin that `to_json` wrote; None for anything else."""
    try:
        return typed(read_json(text), Origin)
    except (ValueError, RecursionError):
        return None


def origin_of(block: Block | ClaimBlock) -> Origin:
    """The origin that the block has if it is run here and now."""
    brought = versions_of(names_of(block))
    code = code_of(modules_of(block), tuple(sorted(brought.items())))
    return Origin(digest([repr(block)]), code, versions() | brought)


def names_of(block: Block | ClaimBlock) -> list[tuple[Shelf[Any], str]]:
    """Returns the names in a block, and where to look them up."""
    return [(shelf, spec.name) for shelf, spec in specs_of(block) if spec.own is None]


def specs_of(block: Block | ClaimBlock) -> Iterator[tuple[Shelf[Any], Any]]:
    """Yields all that is asked for in a block, and where its name is looked up."""
    yield environments.SHELF, block.environment
    for spec in block.algorithms:
        yield algorithms.SHELF, spec
    for judge in block.certifiers if isinstance(block, ClaimBlock) else ():
        yield certificates.SHELF, judge


def modules_of(block: Block | ClaimBlock) -> frozenset[str]:
    """Returns the modules in which the sources of a block begin."""
    kinds: list[Any] = [type(block), *(shelf.find(name) for shelf, name in names_of(block))]
    kinds += [thing for _, spec in specs_of(block) for thing in spec.code]
    # What is not known, is refused when it is made.
    return frozenset(module_of(kind) for kind in kinds if kind is not None)


@cache
def versions() -> dict[str, str]:
    """Returns the versions that are installed here."""
    return {
        PACKAGE: __version__,
        "python": platform.python_version(),
        **{package: installed_version(package) for package in (*COMPUTING, "duckdb")},
    }


@cache
def code_of(modules: frozenset[str], brought: tuple[tuple[str, str], ...]) -> str:
    """A digest of the package's version, of those that compute, and of all sources used.

    `brought` are the extensions and their versions.
    """
    parts = [f"{name} {versions()[name]}" for name in (PACKAGE, *COMPUTING)]
    parts += [f"{name} {text}" for name, text in brought]
    for module in sorted(sources_of(modules)):
        parts += [module, hashlib.sha256(source(module)).hexdigest()]
    return digest(parts)


def digest(parts: list[str]) -> str:
    """Sixteen hexadecimal digits that stand for the texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def sources_of(modules: frozenset[str]) -> set[str]:
    """Returns the modules, and all modules of the package that they import, directly or not."""
    reached: set[str] = set()
    waiting = set(modules)
    while waiting:
        module = waiting.pop()
        reached.add(module)
        waiting |= imports_of(module) - reached - NOT_FOLLOWED
    return reached


@cache
def imports_of(module: str) -> frozenset[str]:
    """Returns the modules of the package that a module imports, anywhere in it."""
    modules: set[str] = set()
    for node in statements(ast.parse(source(module))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}.")}
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module):
            modules |= {home(str(node.module), alias.name) for alias in node.names}
    return frozenset(modules)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All parts of a syntax tree but those that only type checkers read."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from statements(node)


def is_ours(module: str | None) -> bool:
    """Tells whether a module is the package or a part of it."""
    return module is not None and f"{module}.".startswith(f"{PACKAGE}.")


def home(module: str, name: str) -> str:
    """The module that `from module import name` means: a package only passes names on."""
    if not (folder(module) / "__init__.py").exists():
        return module
    if folder(f"{module}.{name}").with_suffix(".py").exists():
        return f"{module}.{name}"
    for node in ast.parse(source(module)).body:
        if isinstance(node, ast.ImportFrom) and is_ours(node.module):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return home(str(node.module), alias.name)
    return module


def folder(module: str) -> Path:
    """Returns the folder that a package of this name would have."""
    return ROOT.joinpath(*module.split(".")[1:])


@cache
def source(module: str) -> bytes:
    """The source of a module; nothing for one from elsewhere that has none."""
    path = folder(module) / "__init__.py"
    path = path if path.exists() else folder(module).with_suffix(".py")
    if not is_ours(module):  # somebody's own algorithm
        path = Path(getattr(sys.modules.get(module), "__file__", None) or "")
        if path.suffix != ".py":
            return b""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise FileFailure(
            f"{path} cannot be read: {problem.strerror}; without its source nobody can tell what "
            "made a run"
        ) from None
