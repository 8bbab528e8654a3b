"""An experiment as data: environments × algorithms with settings × data sizes × repetitions.

It is read from a TOML file. A setting given as a list stands for one algorithm (or environment) for
each of its values; several lists, for all combinations. {first = 1, last = 200} stands for the list
of all whole numbers between. With certifiers, what the algorithms find is also certified.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from surestep.algorithms import Algorithm, make_algorithm
from surestep.certificates import Certifier, certifier_kind
from surestep.certificates.protocol import believes
from surestep.errors import InvalidParameter, SurestepError

CATALOG = files("surestep.experiments") / "catalog"
PER_REPETITION = "repetition"  # as an environment's seed: another one for each repetition
AUTO = "auto"  # as an N∧: the certificate chooses it
Settings = tuple[tuple[str, Any], ...]


def label_of(settings: Iterable[tuple[str, Any]]) -> str:
    """Returns 'bound=beta, delta=0.1': settings as tables have them."""
    return ", ".join(f"{name}={value}" for name, value in settings)


def read_label(label: str) -> dict[str, str]:
    """Returns the settings that `label_of` wrote, with their values as text."""
    parts = re.split(r", (?=\w+=)", label) if label else []
    return dict(part.split("=", 1) for part in parts)


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A benchmark by name and parameters."""

    name: str
    parameters: Settings = ()

    @property
    def label(self) -> str:
        """'random-mdp, ratio=0.5': how tables call it."""
        return ", ".join(filter(None, [self.name, label_of(self.parameters)]))

    @property
    def family(self) -> str:
        """The label without the seed: environments that differ only in it are of one family."""
        others = tuple((key, value) for key, value in self.parameters if key != "seed")
        return EnvironmentSpec(self.name, others).label

    @property
    def changes(self) -> bool:
        """Tells whether each repetition has an environment of its own."""
        return dict(self.parameters).get("seed") == PER_REPETITION

    def parameters_of(self, repetition: int) -> dict[str, Any]:
        """The parameters for that repetition."""
        given = dict(self.parameters)
        return {**given, "seed": repetition} if self.changes else given


@dataclass(frozen=True, slots=True)
class AlgorithmSpec:
    """An algorithm by name and settings."""

    name: str
    settings: Settings = ()

    def make(self) -> Algorithm:
        """The algorithm; where N∧ is to be chosen, with any."""
        chosen = {key: 1 for key, value in self.settings if value == AUTO}
        return make_algorithm(self.name, **dict(self.settings) | chosen)

    @property
    def chooses(self) -> bool:
        """Tells whether the data choose N∧, by the certificate that judges."""
        return AUTO in dict(self.settings).values()

    @property
    def n_wedge(self) -> int | None:
        """The N∧ that is given: SPIBB's own, or that of SPIBB which is converted."""
        given = dict(self.settings)
        value: int | None = given.get("n_wedge", given.get("spibb_n_wedge"))
        return None if self.chooses else value

    @property
    def label(self) -> str:
        """'epsilon=0.5, delta=1.0': the settings other than a given N∧."""
        given = ("n_wedge", "spibb_n_wedge")
        return label_of([(key, x) for key, x in self.settings if key not in given or x == AUTO])


@dataclass(frozen=True, slots=True)
class CertifierSpec:
    """A certifier by name and settings; data sizes may be its own.

    With `worlds`, each claim is calibrated in so many worlds of each kind before it is made.
    """

    name: str
    settings: Settings = ()
    episodes: tuple[int, ...] | None = None  # None: those of the experiment
    worlds: int | None = None  # None: not calibrated

    def make(self, **more: Any) -> Certifier:
        """The certifier, with settings that are not given in the experiment."""
        kind = certifier_kind(self.name)
        known = [field.name for field in dataclasses.fields(kind)]
        for given, _ in self.settings:
            if given not in known:
                raise InvalidParameter(
                    f"{self.name} has no setting {given!r}; expected {', '.join(known)}"
                )
        certifier: Certifier = kind(**dict(self.settings), **more)
        return certifier

    @property
    def takes_seed(self) -> bool:
        """Tells whether its claims depend on random numbers that the experiment leaves open."""
        fields = [field.name for field in dataclasses.fields(certifier_kind(self.name))]
        return "seed" in fields and "seed" not in dict(self.settings)

    @property
    def label(self) -> str:
        """'bound=beta, delta=0.1': the settings."""
        return label_of(self.settings + (() if self.worlds is None else (("worlds", self.worlds),)))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A plan of what is run, on what, how often; equal experiments give equal tables."""

    name: str
    title: str
    seed: int
    repetitions: int
    environments: tuple[EnvironmentSpec, ...]
    episodes: tuple[int, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    certifiers: tuple[CertifierSpec, ...] = ()

    def identity(self) -> str:
        """All that the rows depend on, as text; the number of repetitions is not part of it."""
        content: dict[str, object] = {
            "name": self.name,
            "seed": self.seed,
            "environments": [[spec.name, spec.parameters] for spec in self.environments],
            "episodes": self.episodes,
            "algorithms": [[spec.name, spec.settings] for spec in self.algorithms],
        }
        if self.certifiers:
            content["certifiers"] = [
                [spec.name, spec.settings, spec.episodes]
                + ([] if spec.worlds is None else [spec.worlds])
                for spec in self.certifiers
            ]
        return json.dumps(content, sort_keys=True)


def catalog() -> list[str]:
    """The names of the experiments that come with the package."""
    root = Path(str(CATALOG))
    return sorted(str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.toml"))


def read_experiments(name: str) -> list[Experiment]:
    """The experiment of that name in the catalog, all of a folder there, or one in a TOML file."""
    known = catalog()
    if name in known:
        return [read_experiment(Path(str(CATALOG)) / f"{name}.toml", name)]
    inside = [entry for entry in known if entry.startswith(f"{name}/")]
    if inside:
        return [read_experiment(Path(str(CATALOG)) / f"{entry}.toml", entry) for entry in inside]
    if name.endswith(".toml"):
        return [read_experiment(Path(name), Path(name).stem)]
    raise InvalidParameter(
        f"there is no experiment {name!r} in the catalog, expected one of {', '.join(known)}, a "
        "folder of them, or the path of a .toml file"
    )


def read_experiment(path: Path, name: str) -> Experiment:
    """The experiment that a TOML file describes."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise InvalidParameter(f"cannot read the experiment {path}: {problem}") from None
    try:
        return experiment_of(table, name)
    except SurestepError as problem:
        raise InvalidParameter(f"{path}: {problem}") from None


def experiment_of(table: Mapping[str, Any], name: str) -> Experiment:
    """The experiment of a table, every part checked."""
    unknown = set(table) - {
        "title", "seed", "repetitions", "environments", "episodes", "algorithms", "certifiers",
    }  # fmt: skip
    if unknown:
        raise InvalidParameter(f"there is no key {sorted(unknown)[0]!r} in an experiment")
    certified = "certifiers" in table
    algorithms = tuple(
        AlgorithmSpec(kind, settings) for kind, settings in grid(table, "algorithms")
    )
    certifiers = tuple(certifiers_of(table)) if certified else ()
    for algorithm in algorithms:
        algorithm.make()
        if algorithm.chooses and not certified:
            raise InvalidParameter(
                f"{algorithm.name} has an N∧ of {AUTO!r}, which a certificate chooses; expected "
                "[[certifiers]], or a number"
            )
    for certifier in certifiers:
        made = certifier.make()
        if certifier.worlds is not None and not believes(made):
            raise InvalidParameter(
                f"{certifier.name} has worlds, but only a posterior is calibrated in them"
            )
    for key in ("seed", "repetitions"):
        if not is_positive(table.get(key)):
            raise InvalidParameter(
                f"{key} is {table.get(key)!r}, expected a whole number of at least 1"
            )
    environments = tuple(
        EnvironmentSpec(kind, given) for kind, given in grid(table, "environments")
    )
    if certified and any(spec.changes for spec in environments):
        raise InvalidParameter(
            "an environment has the seed 'repetition', but claims are counted for each MDP; "
            "expected seeds such as {first = 1, last = 200}"
        )
    return Experiment(
        name,
        str(table.get("title", name)),
        table["seed"],
        table["repetitions"],
        environments,
        read_sizes(table.get("episodes")),
        algorithms,
        certifiers,
    )


def certifiers_of(table: Mapping[str, Any]) -> Iterator[CertifierSpec]:
    """The certifiers of a table; `episodes` and `worlds` are no settings of theirs."""
    for entry in entries_of(table, "certifiers"):
        own, worlds = entry.get("episodes"), entry.get("worlds")
        sizes = None if own is None else read_sizes(own)
        if worlds is not None and not is_positive(worlds):
            raise InvalidParameter(f"worlds is {worlds!r}, expected a whole number of at least 1")
        given = {key: value for key, value in entry.items() if key not in ("episodes", "worlds")}
        for kind, settings in combinations(given):
            yield CertifierSpec(kind, settings, sizes, worlds)


def read_sizes(value: object) -> tuple[int, ...]:
    """Data sizes, at least one."""
    if not (isinstance(value, list) and value and all(map(is_positive, value))):
        raise InvalidParameter(f"episodes is {value!r}, expected whole numbers of at least 1")
    return tuple(value)


def grid(table: Mapping[str, Any], key: str) -> Iterator[tuple[str, Settings]]:
    """Every entry of a list of tables, once for each combination of its listed values."""
    for entry in entries_of(table, key):
        yield from combinations(entry)


def entries_of(table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of tables with names."""
    entries = table.get(key)
    if not (isinstance(entries, list) and entries):
        raise InvalidParameter(f"{key} is {entries!r}, expected at least one [[{key}]]")
    for entry in entries:
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str)):
            raise InvalidParameter(f"an entry of {key} has no name")
    return entries


def combinations(entry: Mapping[str, Any]) -> Iterator[tuple[str, Settings]]:
    """The name with each combination of the listed values."""
    settings = {name: value for name, value in entry.items() if name != "name"}
    choices = [choices_of(name, value) for name, value in settings.items()]
    for chosen in itertools.product(*choices):
        yield entry["name"], tuple(zip(settings, chosen, strict=True))


def choices_of(name: str, value: object) -> list[Any]:
    """The values that a setting stands for."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    first, last = value.get("first"), value.get("last")
    if set(value) != {"first", "last"} or not (is_positive(first) and is_positive(last)):
        raise InvalidParameter(
            f"{name} is {value!r}, expected {{first = …, last = …}}, whole numbers of at least 1"
        )
    return list(range(first, last + 1))  # type: ignore[arg-type, operator]


def is_positive(value: object) -> bool:
    """Tells whether the value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
