"""The terms of an improvement: what a user said, and what was taken where nothing was said."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from surestep._arrays import expect, is_number
from surestep.algorithms import (
    ALGORITHMS,
    SPIBB,
    Algorithm,
    make_algorithm,
    settings_from_json,
)
from surestep.errors import InvalidParameter
from surestep.model import Counts, Problem
from surestep.model.problem import UnseenRule
from surestep.pipeline.sensitivity import n_wedge_setting
from surestep.results.record import Record

DEFAULT_ALGORITHM = "spibb"
DEFAULT_N_WEDGE = 20
DEFAULT_DELTA = 0.1
DEFAULT_UNSEEN: UnseenRule = "pessimistic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a user may say about an improvement; None where nothing was said."""

    discount: float
    algorithm: str | Algorithm | None = None  # a name, or settings
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of a named algorithm
    n_wedge: int | None = None
    zeta: float | None = None
    delta: float | None = None
    value_bounds: tuple[float, float] | None = None
    unseen: UnseenRule | None = None

    def __post_init__(self) -> None:
        """Refuses what contradicts itself, before anything is read."""
        if not (is_number(self.discount) and 0 <= self.discount <= 1):
            raise InvalidParameter(f"discount is {self.discount!r}, expected 0 to 1")
        if self.delta is not None and not (is_number(self.delta) and 0 < self.delta < 1):
            raise InvalidParameter(f"delta is {self.delta!r}, expected more than 0 and less than 1")
        if self.n_wedge is not None and self.zeta is not None:
            raise InvalidParameter("both n_wedge and zeta are given, expected at most one of them")
        if isinstance(self.algorithm, str) and self.algorithm not in ALGORITHMS:
            make_algorithm(self.algorithm)  # which names the closest ones
        if type(self.algorithm) not in (str, type(None), *ALGORITHMS.values()):
            raise InvalidParameter(
                f"algorithm is of type {type(self.algorithm).__name__}, expected a name or one of "
                "surestep.algorithms with its settings"
            )
        expect("settings", self.settings, Mapping)
        self.check_settings()

    def check_settings(self) -> None:
        """Refuses what is said twice, once as a term and once as a setting of the algorithm."""
        if not isinstance(self.algorithm, str | None):
            for name in ("n_wedge", "zeta", "settings"):
                if getattr(self, name) not in (None, {}):
                    raise InvalidParameter(
                        f"{name} is given beside an algorithm that has its settings already"
                    )
            return
        wedge = n_wedge_setting(ALGORITHMS[self.name])
        for name in ("n_wedge", "zeta"):
            if getattr(self, name) is not None and wedge in self.settings:
                raise InvalidParameter(
                    f"both {name} and the setting {wedge} are given, expected one"
                )
        if self.delta is not None and self.settings.get("delta", self.delta) != self.delta:
            raise InvalidParameter(
                f"delta is {self.delta!r}, but the setting delta is {self.settings['delta']!r}; "
                "expected one δ for the algorithm and the certificate"
            )

    @property
    def level(self) -> float:
        """δ."""
        return DEFAULT_DELTA if self.delta is None else float(self.delta)

    @property
    def unseen_rule(self) -> UnseenRule:
        """What a pair is worth that was never tried."""
        return DEFAULT_UNSEEN if self.unseen is None else self.unseen

    def defaults(self) -> tuple[str, ...]:
        """The parameters that nobody gave."""
        names = ["algorithm", "delta", "value_bounds", "unseen"]
        taken = [name for name in names if getattr(self, name) is None]
        wedge = n_wedge_setting(ALGORITHMS[self.name])
        said = self.n_wedge is not None or self.zeta is not None or wedge in self.settings
        if isinstance(self.algorithm, str | None) and wedge is not None and not said:
            taken.insert(1, "n_wedge")
        return tuple(taken)

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        if self.algorithm is None:
            return DEFAULT_ALGORITHM
        return self.algorithm if isinstance(self.algorithm, str) else self.algorithm.name

    def algorithm_for(self, problem: Problem) -> Algorithm:
        """The algorithm with its settings; N∧ from ζ by the bound of SPIBB where ζ is given."""
        if not isinstance(self.algorithm, str | None):
            return self.algorithm
        settings, wedge = dict(self.settings), n_wedge_setting(ALGORITHMS[self.name])
        fields = {field.name for field in dataclasses.fields(ALGORITHMS[self.name])}
        if "delta" in fields:
            settings.setdefault("delta", self.level)
        if wedge is None:
            for name in ("n_wedge", "zeta"):
                if getattr(self, name) is not None:
                    raise InvalidParameter(f"{name} is given, but {self.name} has no N∧")
        elif wedge not in settings:
            settings[wedge] = self.n_wedge_for(problem)
        return make_algorithm(self.name, **settings)

    def n_wedge_for(self, problem: Problem) -> int:
        """N∧ as given, from ζ, or the default."""
        if self.zeta is None:
            return DEFAULT_N_WEDGE if self.n_wedge is None else self.n_wedge
        return SPIBB.for_zeta(self.zeta, problem, "spibb", self.level).n_wedge

    def value_bounds_for(self, counts: Counts) -> tuple[float, float]:
        """Value bounds as given, or those of the mean rewards observed: nothing earns more."""
        if self.value_bounds is not None:
            return self.value_bounds
        if not self.discount < 1:
            raise InvalidParameter(
                "discount is 1, so that values have no bounds that rewards could tell; give "
                "value_bounds (--value-bounds LOW HIGH)"
            )
        low, high = (Fraction(repr(each)) for each in reward_range(counts))
        steps = 1 / (1 - Fraction(repr(float(self.discount))))  # 20 for 0.95, not 20 − 2·10⁻¹⁴
        return float(low * steps), float(high * steps)


def reward_range(counts: Counts) -> tuple[float, float]:
    """The smallest and the largest mean reward of a transition, and 0, which an end earns."""
    seen = counts.times > 0
    means = counts.rewards.values[seen] / counts.times[seen]
    return min(0.0, float(means.min(initial=0.0))), max(0.0, float(means.max(initial=0.0)))


def terms_of(record: Record) -> Terms:
    """The terms under which a result was made: what nobody gave is left open again."""
    given, defaults = record.parameters, record.defaults
    settings = dict(given["algorithm"])
    algorithm = settings_from_json(json.dumps(settings))
    name = settings.pop("algorithm")
    if "n_wedge" in defaults or given["zeta"] is not None:
        settings.pop(str(n_wedge_setting(algorithm)), None)
    low, high = given["value_bounds"]
    return Terms(
        discount=given["discount"],
        algorithm=None if "algorithm" in defaults else name,
        settings=settings,
        zeta=given["zeta"],
        delta=None if "delta" in defaults else given["delta"],
        value_bounds=None if "value_bounds" in defaults else (low, high),
        unseen=None if "unseen" in defaults else given["unseen"],
    )
