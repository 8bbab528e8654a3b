"""Finds plug-ins by name: algorithms, kinds of certificates and environments of others.

Code that runs registers them (`surestep.register`), or an installed package has them as entry
points, in the groups `surestep.algorithms`, `surestep.certificates` and `surestep.environments`. An
entry point is imported when somebody asks for its name, or for all of them. A name that stands in a
file is looked up here, and nothing is imported that no installed package declares.
"""

import dataclasses
import hashlib
import inspect
import pickle
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from surestep._names import unknown
from surestep.errors import InvalidParameter, SurestepError

Sort = Literal["algorithms", "certificates", "environments"]
Thing = TypeVar("Thing")

SINGULAR = {
    "algorithms": "algorithm",
    "certificates": "kind of certificate",
    "environments": "environment",
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
NO_VERSION = "without a version"


class Extension(NamedTuple):
    """An algorithm, a kind of certificate or an environment that is not built in."""

    sort: Sort
    name: str
    thing: Any
    by: str  # the distribution, or the module where it was registered by code
    version: str


_registered: dict[tuple[Sort, str], Extension] = {}  # by code, in this process


@dataclasses.dataclass(frozen=True, eq=False)
class Shelf(Generic[Thing]):
    """All algorithms, kinds of certificates or environments by name: built-in ones and plug-ins."""

    sort: Sort
    built_in: Mapping[str, Thing]
    members: Sequence[str] = ()  # of a frozen dataclass; without any, such a thing is a function

    def find(self, name: object) -> Thing | None:
        """Returns the thing of that name; None where there is none: then nothing is imported."""
        if not isinstance(name, str):
            return None
        if name in self.built_in:
            return self.built_in[name]
        extension = self.extension(name)
        return None if extension is None else extension.thing

    def get(self, name: object) -> Thing:
        """Returns the thing of that name; refuses an unknown name."""
        thing = self.find(name)
        if thing is None:
            raise unknown(f"there is no {SINGULAR[self.sort]} {name!r}", name, self.everything())
        return thing

    def everything(self) -> dict[str, Thing]:
        """Maps names to things, the built-in ones first; leaves out broken plug-ins."""
        working = [outcome for outcome in self.outcomes() if isinstance(outcome, Extension)]
        return {**self.built_in, **{extension.name: extension.thing for extension in working}}

    def broken(self) -> list[str]:
        """Returns a sentence for each extension that cannot be used."""
        return [str(problem) for problem in self.outcomes() if isinstance(problem, SurestepError)]

    def outcomes(self) -> list[Extension | SurestepError]:
        """Returns each extension of this sort, or the error that says why it cannot be used."""
        own = [extension for (sort, _), extension in _registered.items() if sort == self.sort]
        return [*own, *(loaded(self, name) for name in sorted(installed(self.sort).names))]

    def extension(self, name: str) -> Extension | None:
        """Returns the extension of that name, if any; refuses one that cannot be used."""
        if (self.sort, name) in _registered:
            return _registered[self.sort, name]
        outcome = loaded(self, name) if name in installed(self.sort).names else None
        if isinstance(outcome, SurestepError):
            raise outcome
        return outcome

    def source_of(self, name: str) -> str:
        """Returns the distribution that brings a name, without importing it; empty: none."""
        if (self.sort, name) in _registered:
            return _registered[self.sort, name].by
        return " and ".join(sorted(map(distribution, installed(self.sort).select(name=name))))

    def add(self, name: str, thing: Thing) -> None:
        """Registers a thing in this process; refuses names that are built in or installed."""
        what = f"{SINGULAR[self.sort]} {name!r}"
        self.check_fits(name, what, thing)
        if name in installed(self.sort).names:
            raise InvalidParameter(
                f"the {what} is there already, of the extension {self.source_of(name)}; expected "
                "another name"
            )
        _registered[self.sort, name] = Extension(
            self.sort, name, thing, str(getattr(thing, "__module__", "unknown")), version_of(thing)
        )

    def check_fits(self, name: str, what: str, thing: Any) -> None:
        """Refuses a built-in name, a thing that lacks members, and one that has another name."""
        if name in self.built_in or NAME.fullmatch(name) is None:
            raise InvalidParameter(
                f"the {what} needs a name that is not built in, of letters, digits and _ . / -"
            )
        if lacks := missing_in(thing, self.members):
            raise InvalidParameter(f"the {what} is {thing!r:.80}, expected {lacks}")
        if isinstance(thing, type) and (own := getattr(thing, "name", None)) != name:
            raise InvalidParameter(f"the {what} calls itself {own!r}, expected one name")


def missing_in(thing: Any, members: Sequence[str]) -> str | None:
    """Returns words for the members that a thing lacks; None where it has all."""
    if not members:
        is_function = callable(thing) and not isinstance(thing, type)
        return None if is_function else "a function that returns a Benchmark"
    expected = f"a frozen dataclass with {', '.join(members)}"
    if not (isinstance(thing, type) and dataclasses.is_dataclass(thing)):
        return expected
    has = {*dir(thing), *(field.name for field in dataclasses.fields(thing))}
    has |= {"certify"} if "certify_many" in has else set()
    return next((f"{expected}; {name} is missing" for name in members if name not in has), None)


def versions_of(names: Iterable[tuple[Shelf[Any], str]]) -> dict[str, str]:
    """Maps each plug-in distribution that brings one of these names to its version."""
    brought = (shelf.extension(name) for shelf, name in names if name not in shelf.built_in)
    return {extension.by: extension.version for extension in brought if extension is not None}


def version_of(thing: Any) -> str:
    """Returns a digest of its source file, as the version of code without a distribution."""
    try:
        content = Path(str(inspect.getsourcefile(thing))).read_bytes()
    except (OSError, TypeError):
        return NO_VERSION
    return f"of sources {hashlib.sha256(content).hexdigest()[:16]}"


@cache
def installed(sort: Sort) -> EntryPoints:
    """Returns the entry points of a sort, none of them imported."""
    return entry_points(group=f"surestep.{sort}")


def distribution(entry: EntryPoint) -> str:
    """Returns the name of the installed package that declares an entry point."""
    return entry.value if entry.dist is None else str(entry.dist.name)


@cache
def loaded(shelf: Shelf[Any], name: str) -> Extension | SurestepError:
    """Imports the extension of an entry point once; returns it, or the error if it is unusable."""
    entry, *others = installed(shelf.sort).select(name=name)
    by = distribution(entry)
    what = f"{SINGULAR[shelf.sort]} {name!r}"
    if others:
        return InvalidParameter(
            f"the {what} is there twice, of the extensions {shelf.source_of(name)}; expected one "
            "of them to be uninstalled"
        )
    try:
        thing = entry.load()
        shelf.check_fits(name, what, thing)
    except (Exception, SystemExit) as problem:  # whatever others' code does when it is imported
        kind = "" if isinstance(problem, SurestepError) else f"{type(problem).__name__}: "
        reason = " ".join(f"{kind}{problem}".split())
        return InvalidParameter(f"the extension {by} cannot be used, for its {what}: {reason}")
    version = NO_VERSION if entry.dist is None else entry.dist.version
    return Extension(shelf.sort, name, thing, by, version)


# ---- other processes -----------------------------------------------------------------------------


def registered() -> tuple[Extension, ...]:
    """Returns the plug-ins that code registered in this process, to pass on to its workers."""
    return tuple(_registered.values())


def know(extensions: Iterable[Extension]) -> None:
    """Registers the plug-ins of the process for which this worker works."""
    _registered.update({(extension.sort, extension.name): extension for extension in extensions})


def check_importable(things: Iterable[tuple[str, Any]], *, elsewhere: bool = False) -> None:
    """Refuses things that a newly started process, also on a cluster, could not import."""
    for what, thing in things:
        home = str(getattr(thing, "__module__", None))
        try:
            pickle.dumps(thing)
            script = elsewhere or not hasattr(sys.modules["__main__"], "__file__")
            by_hand = home in ("__main__", "__mp_main__") and script
        except Exception:
            by_hand = True
        if by_hand:
            raise InvalidParameter(
                f"the {what} is known here, but worker processes cannot import it from {home}; "
                "define it at the top of a module that they have"
            )
