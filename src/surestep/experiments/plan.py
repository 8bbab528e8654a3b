"""An experiment as data: environments × algorithms with settings × data sizes × repetitions.

It is read from a TOML file. A setting given as a list stands for one algorithm (or environment) for
each of its values; several lists, for all combinations.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from surestep.algorithms import Algorithm, make_algorithm
from surestep.errors import InvalidParameter, SurestepError

CATALOG = files("surestep.experiments") / "catalog"
PER_REPETITION = "repetition"  # as an environment's seed: another one for each repetition
Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A benchmark by name and parameters."""

    name: str
    parameters: Settings = ()

    @property
    def label(self) -> str:
        """'random-mdp, ratio=0.5': how tables call it."""
        return ", ".join([self.name, *(f"{key}={value}" for key, value in self.parameters)])

    @property
    def changes(self) -> bool:
        """Whether each repetition has an environment of its own."""
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
        """The algorithm."""
        return make_algorithm(self.name, **dict(self.settings))

    @property
    def n_wedge(self) -> int | None:
        """The N∧ that is given: SPIBB's own, or that of SPIBB which is converted."""
        given = dict(self.settings)
        value: int | None = given.get("n_wedge", given.get("spibb_n_wedge"))
        return value

    @property
    def label(self) -> str:
        """'epsilon=0.5, delta=1.0': the settings other than N∧."""
        return ", ".join(
            f"{key}={value}"
            for key, value in self.settings
            if key not in ("n_wedge", "spibb_n_wedge")
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is run, on what, how often; equal experiments give equal tables."""

    name: str
    title: str
    seed: int
    repetitions: int
    environments: tuple[EnvironmentSpec, ...]
    episodes: tuple[int, ...]
    algorithms: tuple[AlgorithmSpec, ...]

    def identity(self) -> str:
        """All that the rows depend on, as text; the number of repetitions is not part of it."""
        return json.dumps(
            {
                "name": self.name,
                "seed": self.seed,
                "environments": [[spec.name, spec.parameters] for spec in self.environments],
                "episodes": self.episodes,
                "algorithms": [[spec.name, spec.settings] for spec in self.algorithms],
            },
            sort_keys=True,
        )


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
        "title", "seed", "repetitions", "environments", "episodes", "algorithms",
    }  # fmt: skip
    if unknown:
        raise InvalidParameter(f"there is no key {sorted(unknown)[0]!r} in an experiment")
    algorithms = tuple(
        AlgorithmSpec(kind, settings) for kind, settings in grid(table, "algorithms")
    )
    for spec in algorithms:
        spec.make()
    episodes = table.get("episodes")
    if not (isinstance(episodes, list) and episodes and all(map(is_positive, episodes))):
        raise InvalidParameter(f"episodes is {episodes!r}, expected whole numbers of at least 1")
    for key in ("seed", "repetitions"):
        if not is_positive(table.get(key)):
            raise InvalidParameter(
                f"{key} is {table.get(key)!r}, expected a whole number of at least 1"
            )
    return Experiment(
        name,
        str(table.get("title", name)),
        table["seed"],
        table["repetitions"],
        tuple(EnvironmentSpec(kind, given) for kind, given in grid(table, "environments")),
        tuple(episodes),
        algorithms,
    )


def grid(table: Mapping[str, Any], key: str) -> Iterator[tuple[str, Settings]]:
    """Every entry of a list of tables, once for each combination of its listed values."""
    entries = table.get(key)
    if not (isinstance(entries, list) and entries):
        raise InvalidParameter(f"{key} is {entries!r}, expected at least one [[{key}]]")
    for entry in entries:
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str)):
            raise InvalidParameter(f"an entry of {key} has no name")
        settings = {name: value for name, value in entry.items() if name != "name"}
        choices = [value if isinstance(value, list) else [value] for value in settings.values()]
        for chosen in itertools.product(*choices):
            yield entry["name"], tuple(zip(settings, chosen, strict=True))


def is_positive(value: object) -> bool:
    """Whether the value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
