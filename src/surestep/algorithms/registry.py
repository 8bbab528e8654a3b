"""All algorithms by name, and their settings as text."""

from __future__ import annotations

import dataclasses
import difflib
import json
from typing import Any

from surestep.algorithms.basic import BasicRL, RaMDP, RMin
from surestep.algorithms.contract import Algorithm
from surestep.algorithms.duipi import DUIPI
from surestep.algorithms.pessimistic import PessimisticMBIE, RobustMDP
from surestep.algorithms.soft import (
    AdvantageSoftSPIBB,
    ApproxSoftSPIBB,
    ExactSoftSPIBB,
    LowerSoftSPIBB,
    OneStepApproxSoftSPIBB,
    OneStepExactSoftSPIBB,
)
from surestep.algorithms.spibb import SPIBB, BetaSPIBB, LowerSPIBB, TwoSuccessorSPIBB
from surestep.errors import InvalidParameter

ALGORITHMS: dict[str, type[Any]] = {
    "basic-rl": BasicRL,
    "spibb": SPIBB,
    "lower-spibb": LowerSPIBB,
    "spibb-2s": TwoSuccessorSPIBB,
    "spibb-beta": BetaSPIBB,
    "exact-soft-spibb": ExactSoftSPIBB,
    "approx-soft-spibb": ApproxSoftSPIBB,
    "lower-soft-spibb": LowerSoftSPIBB,
    "advantage-soft-spibb": AdvantageSoftSPIBB,
    "one-step-exact-soft-spibb": OneStepExactSoftSPIBB,
    "one-step-approx-soft-spibb": OneStepApproxSoftSPIBB,
    "ramdp": RaMDP,
    "rmin": RMin,
    "pessimistic-mbie": PessimisticMBIE,
    "duipi": DUIPI,
    "robust-mdp": RobustMDP,
}


def make_algorithm(name: str, **settings: Any) -> Algorithm:
    """The algorithm of that name with these settings."""
    if not isinstance(name, str) or name not in ALGORITHMS:
        close = difflib.get_close_matches(str(name), ALGORITHMS, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InvalidParameter(
            f"there is no algorithm {name!r}; {hint}expected one of {', '.join(ALGORITHMS)}"
        )
    kind = ALGORITHMS[name]
    known = {field.name: field for field in dataclasses.fields(kind)}
    for given in settings:
        if given not in known:
            close = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}? " if close else ""
            takes = f"expected {', '.join(known)}" if known else "it has none"
            raise InvalidParameter(f"{name} has no setting {given!r}; {hint}{takes}")
    missing = [
        field.name
        for field in known.values()
        if field.default is dataclasses.MISSING and field.name not in settings
    ]
    if missing:
        raise InvalidParameter(f"{name} needs the setting {' and '.join(missing)}")
    algorithm: Algorithm = kind(**settings)
    return algorithm


def settings_to_json(algorithm: Algorithm) -> str:
    """The algorithm as JSON: its name and its settings."""
    settings = dataclasses.asdict(algorithm)  # type: ignore[call-overload]
    for name, value in settings.items():
        if not isinstance(value, str | int | float):
            raise InvalidParameter(
                f"{name} of {algorithm.name} is {value!r}, which has no name to be written by"
            )
    return json.dumps({"algorithm": algorithm.name, **settings})


def settings_from_json(text: str) -> Algorithm:
    """The algorithm that `settings_to_json` wrote."""
    try:
        settings = json.loads(text)
    except (TypeError, ValueError) as problem:
        raise InvalidParameter(f"the settings are no JSON: {problem}") from None
    if not isinstance(settings, dict) or "algorithm" not in settings:
        raise InvalidParameter('the settings have no name, expected {"algorithm": …, …}')
    return make_algorithm(settings.pop("algorithm"), **settings)
