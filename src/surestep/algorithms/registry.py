"""Finds algorithms by name, and converts their settings to JSON and back."""

import dataclasses
from typing import Any, NamedTuple

import surestep._arrays as arrays
from surestep._names import refuse_unknown
from surestep.algorithms.constrained import Constrained
from surestep.algorithms.contract import Algorithm, Improver, Promise
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.hcpi import HCPI
from surestep.algorithms.pessimistic import VILCB, PessimisticMBIE, RobustMDP
from surestep.algorithms.provable import Provable
from surestep.algorithms.soft import SoftSPIBB
from surestep.algorithms.spibb import (
    SPIBB,
    BasicRL,
    BetaSPIBB,
    LowerSPIBB,
    RaMDP,
    RMin,
    TwoSuccessorSPIBB,
)
from surestep.certificates.registry import read_settings
from surestep.errors import InvalidParameter
from surestep.extensions import Shelf

FORMS: dict[str, dict[str, Any]] = {  # names, and the settings that they stand for
    "exact-soft-spibb": {"step": "exact"},
    "approx-soft-spibb": {"step": "approx"},
    "lower-soft-spibb": {"step": "lower"},
    "advantage-soft-spibb": {"step": "advantage"},
    "one-step-exact-soft-spibb": {"step": "exact", "iterate": False},
    "one-step-approx-soft-spibb": {"step": "approx", "iterate": False},
}
ALGORITHMS: dict[str, type[Any]] = {
    "basic-rl": BasicRL,
    "spibb": SPIBB,
    "lower-spibb": LowerSPIBB,
    "spibb-2s": TwoSuccessorSPIBB,
    "spibb-beta": BetaSPIBB,
    **dict.fromkeys(FORMS, SoftSPIBB),
    "ramdp": RaMDP,
    "rmin": RMin,
    "pessimistic-mbie": PessimisticMBIE,
    "duipi": DUIPI,
    "robust-mdp": RobustMDP,
    "vi-lcb": VILCB,
    "hcpi": HCPI,
    "provable": Provable,
    "constrained": Constrained,
}
MEMBERS = ("improve", *Algorithm.__annotations__, "promises")


SHELF: Shelf[type[Any]] = Shelf("algorithms", ALGORITHMS, MEMBERS)


class AlgorithmDescription(NamedTuple):
    """The description of an algorithm for a person who chooses one."""

    name: str
    summary: str
    settings: tuple[str, ...]  # 'n_wedge', or with its default 'delta=0.1'
    promises: tuple[str, ...]
    constraint: str
    source: str


def describe_algorithms(name: str | None = None) -> tuple[AlgorithmDescription, ...]:
    """Describes all algorithms, or the one of that name, with their default settings."""
    return tuple(map(description_of, SHELF.everything() if name is None else [name]))


def description_of(name: str) -> AlgorithmDescription:
    """Returns the description of one algorithm, from its own words and settings."""
    kind = kind_of(name)
    usual = {field.name: field.default for field in dataclasses.fields(kind)} | FORMS.get(name, {})
    required = [setting for setting, default in usual.items() if default is dataclasses.MISSING]
    # Required settings may have any value: nothing in a description depends on it.
    example = make_algorithm(name, **dict.fromkeys(required, 1))
    return AlgorithmDescription(
        name,
        getattr(example, "summary", str(kind.__doc__).split("\n\n")[0].strip()),
        tuple(x if x in required else f"{x}={default!r}" for x, default in usual.items()),
        tuple(promise.value for promise in Promise if promise in example.promises),
        example.constraint,
        example.source,
    )


kind_of = SHELF.get  # the class of a name


def is_algorithm(value: object) -> bool:
    """Tells whether a value is one of the algorithms that are known by name, with settings."""
    return SHELF.find(getattr(value, "name", None)) is type(value)


def make_algorithm(name: str, /, **settings: Any) -> Algorithm:
    """Makes the algorithm of a name, with settings.

    Parameters
    ----------
    name : str
        A name in `ALGORITHMS` or of a plug-in, such as 'spibb', or with settings
        'spibb:n_wedge=50'.
    **settings : object
        Further settings of the algorithm, by name.

    Returns
    -------
    Algorithm
        The algorithm.

    Raises
    ------
    InvalidParameter
        The name or a setting is unknown, a setting is missing, or its value is refused.

    Examples
    --------
    >>> from surestep.algorithms import make_algorithm
    >>> make_algorithm("spibb", n_wedge=20)
    SPIBB(n_wedge=20)
    >>> make_algorithm("spibb:n_wedge=20")
    SPIBB(n_wedge=20)
    """
    name, own = read_settings(str(name))
    settings = own | settings
    kind = kind_of(name)
    given = FORMS.get(name, {}) | settings
    known = {field.name: field for field in dataclasses.fields(kind)}
    for setting in settings:
        refuse_unknown(f"{name} has no setting {setting!r}", setting, known)
    needed = [x for x, field in known.items() if field.default is dataclasses.MISSING]
    if missing := [x for x in needed if x not in given]:
        raise InvalidParameter(f"{name} needs the setting {' and '.join(missing)}")
    algorithm: Algorithm = kind(**given)
    return algorithm


def needs_log(algorithm: Improver) -> bool:
    """Tells whether the algorithm needs whole episodes, not counts alone."""
    own = getattr(algorithm, "algorithm", algorithm)  # of one with a floor, or with N∧ to choose
    return bool(getattr(own, "looks_at_log", False))


def settings_of(algorithm: Algorithm) -> dict[str, Any]:
    """Returns the name and the settings of an algorithm, as JSON can hold them."""
    settings: dict[str, Any] = {"algorithm": algorithm.name}
    for field in dataclasses.fields(algorithm):  # type: ignore[arg-type]
        value = arrays.as_python(getattr(algorithm, field.name))
        if not isinstance(value, str | int | float):
            raise InvalidParameter(
                f"{field.name} of {algorithm.name} is {value!r}, expected a number or a name: "
                "nothing else can be read back"
            )
        settings[field.name] = value
    return settings


def algorithm_of(settings: dict[str, Any]) -> Algorithm:
    """Returns the algorithm that `settings_of` describes."""
    match settings:
        case {"algorithm": name, **own}:
            return make_algorithm(name, **own)
    raise InvalidParameter('the settings have no name, expected {"algorithm": …, …}')
