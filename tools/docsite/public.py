"""What is public: the names in `__all__` of these modules, each with the page that explains it."""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module

# The reference has a page for each. Where a name is listed by several, the first explains it.
MODULES = (
    "surestep.pipeline",
    "surestep.results",
    "surestep.io",
    "surestep.checks",
    "surestep.model",
    "surestep.planning",
    "surestep.transforms",
    "surestep.bounds",
    "surestep.algorithms",
    "surestep.certificates",
    "surestep.offpolicy",
    "surestep.rehearsal",
    "surestep.environments",
    "surestep.experiments",
    "surestep.errors",
    "surestep",
)
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@cache
def names() -> dict[str, object]:
    """Returns every public name, written out, and what it stands for; each thing has one name."""
    made: dict[str, object] = {}
    seen: set[int] = set()
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in seen:
                seen.add(id(value))
                made[f"{module.__name__}.{name}"] = value
    return made


@cache
def by_identity() -> dict[int, str]:
    """Returns the public name of each thing."""
    return {id(value): name for name, value in names().items()}


@cache
def by_last_part() -> dict[str, list[str]]:
    """Returns the public names that end alike."""
    ending: dict[str, list[str]] = {}
    for name in names():
        ending.setdefault(name.rpartition(".")[2], []).append(name)
    return ending


@cache
def parameters() -> set[str]:
    """Returns what arguments and fields of public things are called: such a word is no link."""
    found: set[str] = set()
    for value in names().values():
        try:
            found.update(inspect.signature(value).parameters)
        except (TypeError, ValueError):  # a constant, or a protocol
            continue
    return found


def find(text: str, module: str = "") -> str | None:
    """Returns the public name that is meant by a text in a docstring of the module, or None."""
    text = text.removesuffix("()").removeprefix("~")
    if not DOTTED.fullmatch(text):
        return None
    first, _, rest = text.partition(".")
    if "." not in text and text in parameters():
        return None
    for path in (text, f"surestep.{text}", f"{module}.{text}"):
        name = walk(path)
        if name is not None:
            return name
    meant = by_last_part().get(first, [])
    if len(meant) == 1:
        return member(meant[0], names()[meant[0]], rest)
    return None


def walk(path: str) -> str | None:
    """Returns the public name of what a path of modules and attributes leads to."""
    parts = path.split(".")
    if parts[0] != "surestep":
        return None
    for length in range(len(parts) - 1, 0, -1):
        try:
            owner = import_module(".".join(parts[:length]))
            value = getattr(owner, parts[length])
        except (ImportError, AttributeError):
            continue
        name = by_identity().get(id(value))
        return name and member(name, value, ".".join(parts[length + 1 :]))
    return None


def member(name: str, value: object, rest: str) -> str | None:
    """Returns the name of a method or property of something public; None where it has none."""
    if not rest:
        return name
    documented = inspect.isclass(value) and inspect.getdoc(getattr(value, rest, None))
    return f"{name}.{rest}" if documented and rest in vars(value) else name
