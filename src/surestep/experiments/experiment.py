"""Describes experiments: environments × algorithms with settings × data sizes × repetitions.

An experiment is read from a TOML file, or made in Python from similar tables, where an entry may
also be an object. A setting given as a list stands for one algorithm (or environment) for each of
its values; several lists stand for all combinations. {first = 1, last = 200} stands for the list of
all whole numbers from 1 to 200. With certifiers, the policies of the algorithms are also certified.

A record identifies an object by a name and settings. For an algorithm or a certifier, these are its
class and the fields that differ from their defaults. For a benchmark, it is a digest of its
content; for a function that makes benchmarks, the digest of the first one.
"""

import functools
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta, Struct

from surestep._blocks import digest_of
from surestep._json import converted
from surestep._names import refuse_unknown, twice, unknown
from surestep.algorithms import make_algorithm
from surestep.algorithms.registry import is_algorithm
from surestep.certificates import Certifier
from surestep.certificates.registry import SHELF, Asked, check_certifier, read_settings
from surestep.choosing_n_wedge import AutoNWedge
from surestep.description import read_toml
from surestep.environments import Benchmark, make
from surestep.environments.registry import builder, checked_benchmark
from surestep.errors import InvalidParameter, SurestepError

GivenSettings = tuple[tuple[str, Any], ...]
DIGITS = 12  # the length of a digest


def given_settings(thing: Any, what: str = "") -> GivenSettings:
    """Returns the fields of a frozen dataclass that differ from their defaults."""
    kind = type(thing)
    if not (is_dataclass(kind) and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise InvalidParameter(
            f"{what}{kind.__name__}, which is no frozen dataclass; expected one, so that a record "
            "can tell which settings made its rows"
        )
    settings = []
    for part in fields(kind):
        value = getattr(thing, part.name)
        if not part.init or value is part.default:
            continue
        value = value.item() if isinstance(value, np.generic) else value
        check_recordable(f"{part.name} of {kind.__name__}", value)
        if value != part.default:
            settings.append((part.name, value))
    return tuple(settings)


def check_recordable(name: str, value: object) -> None:
    """Refuses a setting that a record cannot identify."""
    if isinstance(value, tuple):
        for part in value:
            check_recordable(name, part)
    elif not isinstance(value, str | int | float | None):
        given_settings(value, f"{name} is of type ")


def home_of(thing: Any) -> str:
    """Returns the module and the qualified name of a class or a function."""
    return f"{module_of(thing)}.{thing.__qualname__}"


def module_of(thing: Any) -> str:
    """Returns the module name of a class or a function, the same in all processes."""
    module = str(thing.__module__)
    return "__main__" if module == "__mp_main__" else module  # the name in workers


def code_behind(own: object, settings: GivenSettings) -> Iterator[Any]:
    """Yields the classes and functions behind an object, and behind its settings."""
    if isinstance(own, Benchmark):
        if own.simulator is not None:
            yield type(own.simulator)
    elif own is not None:
        yield function_of(own)
    for _, value in settings:
        if is_dataclass(value):
            yield from code_behind(type(value), given_settings(value))


def function_of(source: Any) -> Any:
    """Returns the function behind a `functools.partial`, or the function itself."""
    return function_of(source.func) if isinstance(source, functools.partial) else source


def asks_for_repetition(source: Callable[..., Benchmark]) -> bool:
    """Tells whether a function needs an argument: then each repetition has its own benchmark."""
    parameters = inspect.signature(source).parameters.values()
    return any(
        parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in parameters
    )


CATALOG = Path(str(files("surestep.experiments") / "catalog"))
PER_REPETITION = "repetition"  # as the seed of an environment: each repetition has another seed
AUTO = "auto"  # as N∧: the certificate chooses it
CONTENT = "content"  # the parameter of an environment that holds the digest of a given object
STREAM = "stream"  # the parameter of an environment whose data are one stream of steps


BETWEEN = re.compile(r", (?=\w+=)")  # separates the settings of a label


def label_of(settings: Iterable[tuple[str, Any]]) -> str:
    """Returns the label of settings in tables: 'bound=beta, delta=0.1'."""
    return ", ".join(f"{name}={value}" for name, value in settings)


def read_label(label: str) -> dict[str, str]:
    """Returns the settings that `label_of` wrote, with their values as text."""
    parts = re.split(BETWEEN, label) if label else []
    return dict(part.split("=", 1) for part in parts)


def read_environment(label: str) -> tuple[str, dict[str, str]]:
    """Returns the name of an environment by its label, and its parameters as text.

    >>> read_environment("my, own, size=3")
    ('my, own', {'size': '3'})
    """
    name, *parameters = re.split(BETWEEN, label, maxsplit=1)
    return name, read_label(parameters[0] if parameters else "")


@dataclass(frozen=True, slots=True)
class Spec:
    """A part of an experiment by name and settings, or as an object given in Python."""

    name: str
    settings: GivenSettings = ()
    own: Any = field(default=None, repr=False, compare=False)  # the object; None: by its name

    @property
    def code(self) -> Iterator[Any]:
        """Yields the classes and functions that were given in Python."""
        return code_behind(self.own, self.settings)


@dataclass(frozen=True, slots=True)
class EnvironmentSpec(Spec):
    """A benchmark by name and parameters, or a given benchmark, or a function that makes one."""

    @classmethod
    def of(cls, source: Any) -> Self:
        """Returns the spec of a benchmark, or of a function that makes one for each repetition."""
        given = isinstance(source, Benchmark)
        if not given and (not callable(source) or isinstance(source, type)):
            raise InvalidParameter(
                f"an entry of environments is {source!r:.80}, expected a name, a Benchmark, or a "
                "function that returns one, of no argument or of the number of the repetition"
            )
        name = source.name if given else str(function_of(source).__name__)
        changes = () if given or not asks_for_repetition(source) else (("seed", PER_REPETITION),)
        spec = cls(name, changes, source)
        first = spec.make(0)
        try:
            content = digest_of(first)[:DIGITS]
        except TypeError as problem:
            raise InvalidParameter(
                f"the environment {first.name!r} holds what a record cannot tell from others: "
                f"{problem}; expected arrays, numbers, texts and dataclasses of these"
            ) from None
        stream = [(STREAM, True)] if first.horizon is None else []
        return replace(spec, settings=((CONTENT, content), *stream, *changes))

    def make(self, repetition: int) -> Benchmark:
        """Returns the benchmark of a repetition."""
        if self.own is None:
            return make(self.name, **self.parameters(repetition))
        if isinstance(self.own, Benchmark):
            return self.own
        made = self.own(repetition) if self.changes else self.own()
        return checked_benchmark(function_of(self.own).__qualname__, made)

    def parameters(self, repetition: int) -> dict[str, Any]:
        """Returns the parameters of the benchmark of a repetition."""
        return dict(self.settings) | ({"seed": repetition} if self.changes else {})

    @property
    def label(self) -> str:
        """Returns the label of the environment in tables: 'random-mdp, ratio=0.5'."""
        return ", ".join(filter(None, [self.name, label_of(self.settings)]))

    @property
    def family(self) -> str:
        """Returns the label without seed and content; all environments of a family share it."""
        others = tuple((key, value) for key, value in self.settings if key not in ("seed", CONTENT))
        return EnvironmentSpec(self.name, others).label

    @property
    def changes(self) -> bool:
        """Tells whether each repetition has its own environment."""
        return dict(self.settings).get("seed") == PER_REPETITION


@dataclass(frozen=True, slots=True)
class AlgorithmSpec(Spec):
    """An algorithm by name and settings, or by the class of a given object and settings."""

    @classmethod
    def of(cls, thing: Any) -> Self:
        """Returns the spec of an object that can improve; a known kind is given by its name."""
        if not hasattr(thing, "improve") or isinstance(thing, type):
            raise InvalidParameter(
                f"an entry of algorithms is {thing!r:.80}, expected a name, or an object that can "
                "improve"
            )
        return cls(
            str(getattr(thing, "name", type(thing).__name__)),
            given_settings(thing),
            None if is_algorithm(thing) else type(thing),
        )

    def make(self) -> Any:
        """Returns the algorithm; if N∧ is to be chosen, with an N∧ of 1."""
        if self.own is not None:
            return self.own(**dict(self.settings))
        chosen = {key: 1 for key, value in self.settings if value == AUTO}
        return make_algorithm(self.name, **dict(self.settings) | chosen)

    @property
    def chooses(self) -> bool:
        """Tells whether a certificate chooses N∧ from the data."""
        return AUTO in dict(self.settings).values()

    @property
    def n_wedge(self) -> int | None:
        """Returns the given N∧: of SPIBB itself, or of the SPIBB that is converted."""
        given = dict(self.settings)
        return None if self.chooses else given.get("n_wedge", given.get("spibb_n_wedge"))

    @property
    def label(self) -> str:
        """Returns the settings other than a given N∧: 'epsilon=0.5, delta=1.0'."""
        given = ("n_wedge", "spibb_n_wedge")
        return label_of(
            [(key, value) for key, value in self.settings if key not in given or value == AUTO]
        )


@dataclass(frozen=True, slots=True)
class CertifierSpec(Spec):
    """A certifier by name and settings, or by the class of an object; it may have its own sizes.

    With `worlds`, each claim is calibrated beforehand in this number of worlds of each kind.
    """

    episodes: tuple[int, ...] | None = None  # None: the sizes of the experiment
    worlds: int | None = None  # None: not calibrated

    @classmethod
    def of(cls, thing: Any) -> Self:
        """Returns the spec of a certifier; a known kind is given by its name.

        If its seed is the default, the experiment chooses the seed, as for names.
        """
        check_certifier(thing)
        return cls(
            thing.name,
            given_settings(thing),
            None if SHELF.find(thing.name) is type(thing) else type(thing),
        )

    @property
    def asked(self) -> Asked:
        """Returns the kind and the settings as they were asked for."""
        return Asked(self.name, dict(self.settings), self.own)

    def make(self, **more: Any) -> Certifier:
        """Returns the certifier, with more settings; settings of the experiment come first."""
        for given, _ in self.settings:
            refuse_unknown(f"{self.name} has no setting {given!r}", given, self.asked.takes)
        return self.asked.make(**more)

    @property
    def takes_seed(self) -> bool:
        """Tells whether its claims depend on random numbers that the experiment leaves open."""
        return "seed" in self.asked.takes and "seed" not in self.asked.settings

    @property
    def label(self) -> str:
        """Returns the settings: 'bound=beta, delta=0.1'."""
        return label_of(self.settings + (() if self.worlds is None else (("worlds", self.worlds),)))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A plan of algorithms, environments and repetitions; equal experiments give equal tables.

    Parameters
    ----------
    name : str
        The name.
    title : str
        The title in figures and progress.
    seed : int
        The seed of all data.
    repetitions : int
        The number of data sets of each size.
    environments : tuple of EnvironmentSpec
        The environments.
    episodes : tuple of int
        The data sizes.
    algorithms : tuple of AlgorithmSpec
        The algorithms, with settings.
    certifiers : tuple of CertifierSpec, optional
        The certifiers that judge the policies of the algorithms.

    Examples
    --------
    >>> from surestep.experiments import read_experiments
    >>> (experiment,) = read_experiments("paper/gridworld")
    >>> experiment.repetitions, experiment.episodes[:2]
    (1000, (1, 2))
    """

    name: str
    title: str
    seed: int
    repetitions: int
    environments: tuple[EnvironmentSpec, ...]
    episodes: tuple[int, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    certifiers: tuple[CertifierSpec, ...] = ()

    def given(self) -> Iterator[tuple[str, Any]]:
        """Yields the classes and functions given as objects, with their names for errors.

        Yields
        ------
        tuple of str and object
            The name, and the class or function.
        """
        for spec in (*self.environments, *self.algorithms, *self.certifiers):
            for thing in spec.code:
                yield f"{type(spec).__name__.removesuffix('Spec').lower()} {spec.name!r}", thing

    def identity(self) -> str:
        """Returns a text of all settings that rows depend on, except the number of repetitions.

        Returns
        -------
        str
            The content as JSON.
        """
        content: dict[str, object] = {
            "name": self.name,
            "seed": self.seed,
            "environments": [[spec.name, spec.settings] for spec in self.environments],
            "episodes": self.episodes,
            "algorithms": [
                [spec.name, spec.settings, *map(home_of, spec.code)] for spec in self.algorithms
            ],
        }
        if self.certifiers:
            content["certifiers"] = [
                [spec.name, spec.settings, spec.episodes]
                + ([] if spec.worlds is None else [spec.worlds])
                + [*map(home_of, spec.code)]
                for spec in self.certifiers
            ]
        return json.dumps(
            content,
            sort_keys=True,
            default=lambda own: [home_of(type(own)), given_settings(own)],  # an object of a setting
        )


def list_experiments() -> list[str]:
    """Lists the experiments that come with the package.

    Returns
    -------
    list of str
        Their names, which `surestep run` takes.

    Examples
    --------
    >>> from surestep.experiments import list_experiments
    >>> "paper/gridworld" in list_experiments()
    True
    """
    return sorted(
        str(path.relative_to(CATALOG).with_suffix("")) for path in CATALOG.rglob("*.toml")
    )


def read_experiments(name: str) -> list[Experiment]:
    """Reads an experiment of the catalog, all of a folder there, or an experiment in a TOML file.

    Parameters
    ----------
    name : str
        The name of an experiment or a folder in the catalog, or the path of a .toml file.

    Returns
    -------
    list of Experiment
        The experiments.

    Raises
    ------
    InvalidParameter
        There is no experiment of that name, or the file is refused.

    Examples
    --------
    >>> from surestep.experiments import read_experiments
    >>> [experiment.name for experiment in read_experiments("comparison")]
    ['comparison/random-mdps', 'comparison/wet-chicken']
    """
    if inside := in_catalog(name):
        return [read_experiment(CATALOG / f"{entry}.toml", entry) for entry in inside]
    if name.endswith(".toml"):
        return [read_experiment(Path(name), Path(name).stem)]
    more = ", a folder of them, or the path of a .toml file"
    raise unknown(f"there is no experiment {name!r} in the catalog", name, list_experiments(), more)


def in_catalog(name: str) -> list[str]:
    """Returns the experiment of that name in the catalog, or all of a folder there."""
    return [entry for entry in list_experiments() if entry == name or entry.startswith(f"{name}/")]


def read_experiment(path: Path, name: str) -> Experiment:
    """Returns the experiment that a TOML file describes."""
    content = read_toml(path)
    try:
        return experiment_of(content, name)
    except SurestepError as problem:
        raise InvalidParameter(f"{path}: {problem}") from None


def make_experiment(
    name: str,
    *,
    environments: Sequence[object],
    algorithms: Sequence[object],
    certifiers: Sequence[object] = (),
    episodes: Sequence[int],
    repetitions: int,
    seed: int,
    title: str | None = None,
) -> Experiment:
    """Makes an experiment from names, tables as in a TOML file, and objects.

    Parameters
    ----------
    name : str
        The name of the experiment.
    environments : sequence of str, dict, Benchmark or callable
        The environments. A function returns a Benchmark; if it needs an argument, that is the
        number of the repetition.
    algorithms : sequence of str, dict or object
        The algorithms; an object is a frozen dataclass that can improve. A list as a setting stands
        for one algorithm for each of its values.
    certifiers : sequence of str, dict or object, optional
        The certifiers that judge the policies of the algorithms.
    episodes : sequence of int
        The data sizes.
    repetitions : int
        The number of data sets of each size.
    seed : int
        The seed of all data.
    title : str, optional
        The title in figures and progress; by default the name.

    Returns
    -------
    Experiment
        The plan; every part is checked.

    Raises
    ------
    InvalidParameter
        A part is unknown or refused, or two entries would have the same rows.

    Examples
    --------
    >>> from surestep.experiments import make_experiment
    >>> plan = make_experiment(
    ...     "mine",
    ...     environments=["bandit"],
    ...     algorithms=[{"name": "spibb", "n_wedge": [5, 10]}],
    ...     episodes=[20],
    ...     repetitions=3,
    ...     seed=1,
    ... )
    >>> len(plan.algorithms)
    2
    """
    return experiment_of(
        {
            "title": title,
            "seed": seed,
            "repetitions": repetitions,
            "episodes": episodes,
            "environments": environments,
            "algorithms": algorithms,
            "certifiers": list(certifiers) or None,
        },
        name,
    )


Positive = Annotated[int, Meta(ge=1)]
Sizes = Annotated[tuple[Positive, ...], Meta(min_length=1)]
BESIDE_SETTINGS: dict[str, Any] = {"episodes": Sizes | None, "worlds": Positive | None}
Entries = Annotated[list[Any], Meta(min_length=1)]  # names, tables with names, or objects


class ExperimentTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the TOML file of an experiment."""

    seed: Positive
    repetitions: Positive
    episodes: Sizes
    environments: Entries
    algorithms: Entries
    certifiers: Entries | None = None
    title: str | None = None


class WholeNumbers(Struct, frozen=True, forbid_unknown_fields=True):
    """The value of a setting that stands for all whole numbers from `first` to `last`."""

    first: Positive
    last: Positive


def experiment_of(content: Mapping[str, Any], name: str) -> Experiment:
    """Returns the experiment of a table, and checks every part."""
    table: ExperimentTable = converted(content, ExperimentTable, "experiment", InvalidParameter)
    algorithms = tuple(specs_of("algorithms", table.algorithms, AlgorithmSpec))
    certifiers = tuple(specs_of("certifiers", table.certifiers or (), CertifierSpec))
    for algorithm in algorithms:
        if not certifiers and (algorithm.chooses or isinstance(algorithm.make(), AutoNWedge)):
            raise InvalidParameter(
                f"{algorithm.name} has an N∧ of {AUTO!r}, which a certificate chooses; expected "
                "[[certifiers]], or a number"
            )
    for certifier in certifiers:
        if not certifier.make().calibrates and certifier.worlds is not None:
            raise InvalidParameter(
                f"{certifier.name} has worlds, but only a posterior is calibrated in them"
            )
    environments = tuple(specs_of("environments", table.environments, EnvironmentSpec))
    for environment in environments:
        if environment.own is None:
            builder(environment.name, environment.parameters(1))
    if certifiers and any(spec.changes for spec in environments):
        raise InvalidParameter(
            "an environment has the seed 'repetition', but claims are counted for each MDP; "
            "expected seeds such as {first = 1, last = 200}"
        )
    rows = [
        (type(spec), spec.name, spec.label, getattr(spec, "n_wedge", None))
        for spec in (*environments, *algorithms, *certifiers)
    ]
    for _, again in twice(rows):
        words = ", ".join(filter(None, dict.fromkeys(rows[again][1:3])))
        raise InvalidParameter(f"{words} is there twice, and rows could not be told apart")
    return Experiment(
        name,
        name if table.title is None else table.title,
        table.seed,
        table.repetitions,
        environments,
        table.episodes,
        algorithms,
        certifiers,
    )


def specs_of(key: str, entries: Sequence[Any], kind: type[Any]) -> Iterator[Any]:
    """Yields the spec of every entry; a table gives one for each combination of listed values."""
    for entry in entries:
        table = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(table, Mapping):
            yield table if isinstance(table, kind) else kind.of(table)
            continue
        if not isinstance(table.get("name"), str):
            raise InvalidParameter(f"an entry of {key} has no name")
        aside = BESIDE_SETTINGS if kind is CertifierSpec else {}
        beside = {
            name: converted(table.get(name), type_of, name, InvalidParameter)
            for name, type_of in aside.items()
        }
        plain = kind is EnvironmentSpec  # names of other kinds may have settings: spibb:n_wedge=50
        name, own = (table["name"], {}) if plain else read_settings(table["name"])
        settings = own | {
            setting: value for setting, value in table.items() if setting not in ("name", *aside)
        }
        choices = [choices_of(name, value) for name, value in settings.items()]
        for chosen in itertools.product(*choices):
            yield kind(name, tuple(zip(settings, chosen, strict=True)), **beside)


def choices_of(name: str, value: object) -> list[Any]:
    """Returns the values that a setting stands for."""
    if isinstance(value, dict):
        numbers = converted(value, WholeNumbers, name, InvalidParameter)
        return list(range(numbers.first, numbers.last + 1))
    return value if isinstance(value, list) else [value]
