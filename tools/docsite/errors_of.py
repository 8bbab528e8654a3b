"""Which errors a function may raise, read off the sources: its own, and those of what it calls.

What a name refers to is followed through imports, classes and their methods; calls of methods of
arguments are not. A class that handles an error does not count as one that raises it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import surestep
from surestep import errors

SOURCES = Path(surestep.__file__).parent
FAMILY = set(errors.__all__)
MANY = 9  # of more kinds than these, only the family is named

Place = tuple[str, str]  # a module, and the function, class or method in it


def names_of(value: object) -> list[str]:
    """Returns the names of the errors that calling something may raise."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", "")
    raised = sorted(reached((module, name)) if module else ())
    if len(raised) > MANY:
        raised = ["SurestepError"]
    return [f"surestep.errors.{error}" for error in raised]


def reached(start: Place) -> set[str]:
    """Returns the errors of a place, and of all places that it leads to."""
    seen, waiting, raised = {start}, [start], set()
    while waiting:
        uses = references(waiting.pop())
        raised |= {name for module, name in uses if module == errors.__name__} & FAMILY
        new = uses - seen
        seen |= new
        waiting += new
    return raised


@cache
def references(place: Place) -> frozenset[Place]:
    """Returns what the code of a function, of a method or of making an object refers to."""
    module, name = place
    node = definitions(module).get(name)
    if isinstance(node, ast.ClassDef):
        makers = (f"{name}.__init__", f"{name}.__post_init__", f"{name}.__new__")
        return frozenset((module, each) for each in makers if each in definitions(module))
    if node is None:
        return frozenset()
    owner = name.rpartition(".")[0]
    handled = {
        id(part)
        for handler in ast.walk(node)
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
        for part in ast.walk(handler.type)
    }
    found = set()
    defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
    for part in ast.walk(ast.Module([*node.body, *defaults], [])):
        if id(part) in handled:
            continue
        if isinstance(part, ast.Name):
            found.add(meaning(module, part.id))
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            own = part.value.id in ("self", "cls")
            base = (module, owner) if own else meaning(module, part.value.id)
            found.add((base[0], f"{base[1]}.{part.attr}" if base[1] else part.attr))
    return frozenset(found)


def meaning(module: str, name: str) -> Place:
    """Returns where a name of a module is defined; a module has no name of its own there."""
    source, original = imports(module).get(name, (module, name))
    if source == module or not is_ours(source):
        return source, original
    if original and is_module(f"{source}.{original}"):
        return f"{source}.{original}", ""
    return meaning(source, original) if original not in definitions(source) else (source, original)


@cache
def imports(module: str) -> dict[str, Place]:
    """Returns name → module and name there, of all that a module imports anywhere."""
    found: dict[str, Place] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):  # of a module under another name
            places = {alias.asname: alias.name.rpartition(".") for alias in node.names}
            found |= {name: (parent, own) for name, (parent, _, own) in places.items() if name}
    return found


@cache
def definitions(module: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Returns the functions, classes and methods of a module, by name."""
    found: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(part, ast.FunctionDef):
                    found[f"{node.name}.{part.name}"] = part
    return found


@cache
def tree(module: str) -> ast.Module:
    path = file_of(module) if is_ours(module) else None
    return ast.parse(path.read_text(encoding="utf-8") if path else "")


def is_module(name: str) -> bool:
    return is_ours(name) and file_of(name) is not None


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == surestep.__name__


def file_of(module: str) -> Path | None:
    place = SOURCES.joinpath(*module.split(".")[1:])
    return next(
        (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None
    )
