"""Settings are checked by the types of their fields, in one wording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest
from msgspec import Meta

from surestep._settings import Delta, check_settings
from surestep.errors import InvalidParameter, SurestepError


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    visits: Annotated[int, Meta(ge=0, description="pairs seen less often keep π_b")] = 3
    delta: Delta = 0.1
    word: Literal["mean", "median"] = "mean"
    share: Annotated[float | None, Meta(ge=0, le=1)] = None
    exact: bool = False
    error: Literal["hoeffding"] | SurestepError | None = "hoeffding"
    name: ClassVar = "example"

    __post_init__ = check_settings


@pytest.mark.parametrize(
    "given",
    [
        {"visits": np.int64(7), "delta": np.float32(0.5), "exact": np.bool_(True)},
        {"share": 0, "word": "median", "error": None},
        {"share": 1.0, "error": SurestepError("its own")},
        {"visits": 2**63 - 1},
    ],
)
def test_what_the_types_allow_is_taken_and_numbers_become_plain(given: dict[str, object]) -> None:
    settings = Example(**given)  # type: ignore[arg-type]
    for name, value in given.items():
        kept = getattr(settings, name)
        assert kept == value
        assert not isinstance(kept, np.generic)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"visits": -1},
            "visits is -1, expected a whole number of at least 0: pairs seen less often keep π_b",
        ),
        ({"visits": 1.0}, "visits is 1.0, expected a whole number of at least 0: pairs seen"),
        ({"visits": True}, "visits is True, expected a whole number"),
        ({"visits": 2**63}, "visits is 9223372036854775808, expected a whole number"),
        ({"delta": 1}, "delta is 1, expected a number above 0 and below 1: it is the probability"),
        ({"delta": float("nan")}, "delta is nan, expected a number above 0 and below 1"),
        ({"word": "middle"}, "word is 'middle'; expected one of mean, median"),
        ({"share": 2}, "share is 2, expected a number from 0 to 1 or None"),
        ({"share": float("inf")}, "share is inf, expected a number from 0 to 1 or None"),
        ({"exact": 1}, "exact is 1, expected True or False"),
        (
            {"error": "hofding"},
            "did you mean hoeffding? expected one of hoeffding or SurestepError or None",
        ),
    ],
)
def test_what_they_do_not_allow_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Example(**given)  # type: ignore[arg-type]
    assert message in str(refused.value)
