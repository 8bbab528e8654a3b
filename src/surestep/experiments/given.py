"""Objects in experiments: each as a name and settings, by which a record tells it from others.

An algorithm or a certifier is its class and those of its fields that are not the defaults. A
benchmark is its content, and a function that makes benchmarks that of the first one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from surestep._blocks import digest_of
from surestep.environments import Benchmark
from surestep.errors import InvalidParameter

Settings = tuple[tuple[str, Any], ...]
Source = Benchmark | Callable[..., Benchmark]  # of benchmarks; a function may ask which repetition
DIGITS = 12  # of a digest


def settings_of(thing: Any) -> Settings:
    """Returns the fields of a frozen dataclass that are not what its class has by default."""
    kind = type(thing)
    if not (dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise InvalidParameter(
            f"{kind.__name__} is no frozen dataclass, and its settings are not known; expected "
            "one, so that a record can tell which settings made its rows"
        )
    settings = []
    for field in dataclasses.fields(kind):
        value = getattr(thing, field.name)
        if not field.init or value is field.default:
            continue
        value = value.item() if isinstance(value, np.generic) else value
        check_setting(f"{field.name} of {kind.__name__}", value)
        if value != field.default:
            settings.append((field.name, value))
    return tuple(settings)


def check_setting(name: str, value: object) -> None:
    """Refuses a setting that a record cannot tell from others."""
    if isinstance(value, tuple):
        for part in value:
            check_setting(name, part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        settings_of(value)
    elif not isinstance(value, str | int | float | None):
        raise InvalidParameter(
            f"{name} is a {type(value).__name__}, expected a number, a text, or a tuple or frozen "
            "dataclass of these: a record could not tell it from others"
        )


def plain(value: Any) -> object:
    """Returns an object among settings as JSON knows it: its class and its own settings."""
    return [home_of(type(value)), settings_of(value)]


def home_of(thing: Any) -> str:
    """Returns where a class or a function stands, and under which name."""
    return f"{module_of(thing)}.{thing.__qualname__}"


def module_of(thing: Any) -> str:
    """Returns the module of a class or a function, under the name that it has in all processes."""
    module = str(thing.__module__)
    return "__main__" if module == "__mp_main__" else module  # a worker's name for the script


def code_behind(own: object, settings: Settings) -> Iterator[Any]:
    """Yields the classes and functions that an object brought, and those of its settings."""
    if isinstance(own, Benchmark):
        if own.simulator is not None:
            yield type(own.simulator)
    elif own is not None:
        yield function_of(own)
    for _, value in settings:
        if dataclasses.is_dataclass(value):
            yield from code_behind(type(value), settings_of(value))


def function_of(source: Any) -> Any:
    """Returns the function itself, where some arguments were given to it beforehand."""
    return function_of(source.func) if isinstance(source, functools.partial) else source


def content_of(benchmark: Benchmark) -> str:
    """Returns a digest of all that is in a benchmark."""
    try:
        return digest_of(benchmark)[:DIGITS]
    except TypeError as problem:
        raise InvalidParameter(
            f"the environment {benchmark.name!r} holds what a record cannot tell from others: "
            f"{problem}; expected arrays, numbers, texts and dataclasses of these"
        ) from None


def asks_for_repetition(source: Source) -> bool:
    """Tells whether a function needs an argument: then each repetition has its own benchmark."""
    if isinstance(source, Benchmark):
        return False
    parameters = inspect.signature(source).parameters.values()
    return any(
        parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in parameters
    )


def made_by(source: Source, repetition: int) -> Benchmark:
    """Returns the benchmark of a repetition."""
    if isinstance(source, Benchmark):
        return source
    made: object = source(repetition) if asks_for_repetition(source) else source()
    if not isinstance(made, Benchmark):
        name = function_of(source).__qualname__
        raise InvalidParameter(f"{name} returns a {type(made).__name__}, expected a Benchmark")
    return made
