"""Settings, names and numbers of draws are checked in one wording."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from surestep._arrays import expect_count, in_digits, least_draws
from surestep._names import unknown
from surestep._settings import Delta, check_settings
from surestep.algorithms.registry import SHELF as ALGORITHMS
from surestep.certificates import Posterior
from surestep.certificates.registry import SHELF as CERTIFICATES
from surestep.environments.registry import SHELF as ENVIRONMENTS
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


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("aple", ["apple", "fig"], "no aple; did you mean apple? expected one of apple, fig"),
        ("aple", {"apple": 1, "maple": 2}, "no aple; did you mean maple or apple? expected one"),
        ("aa", ["aab", "aac", "aad", "aae"], "did you mean aae or aad or aac? expected one of aab"),
        ("zzz", ["apple"], "no zzz; expected one of apple"),
        (None, iter(["apple"]), "no None; expected one of apple"),
        ("aple", [], "no aple; there are none"),
    ],
)
def test_a_name_is_refused_with_those_that_come_closest(name, known, words):
    assert words in str(unknown(f"no {name}", name, known))


@pytest.mark.parametrize("shelf", [ALGORITHMS, CERTIFICATES, ENVIRONMENTS], ids=lambda s: s.sort)
def test_every_registry_refuses_alike(shelf):
    first = next(iter(shelf.everything()))
    assert shelf.get(first) is shelf.find(first)
    with pytest.raises(InvalidParameter) as refusal:
        shelf.get(f"{first}x")
    words = str(refusal.value)
    assert words.startswith("there is no ")
    assert f" '{first}x'; did you mean {first}" in words
    assert words.endswith(f"expected one of {', '.join(shelf.everything())}")


DELTAS = st.floats(0, 1, exclude_min=True, exclude_max=True)


@given(DELTAS)
def test_so_many_draws_are_enough_and_fewer_are_not(delta):
    least = least_draws(delta)
    slack = Fraction(1, 10**9)
    assert Fraction(delta) * (least + 1 + slack) >= 1
    assert least == 0 or Fraction(delta) * (least + slack) < 1 + Fraction(1, 10**8)


@pytest.mark.parametrize(("delta", "least"), [(0.1, 9), (0.05, 19), (1 / 3, 2), (0.5, 1), (0.9, 1)])
def test_usual_levels(delta, least):
    assert least_draws(delta) == least
    assert Posterior(delta=math.nextafter(1, 0), draws=99).rank == 99


@given(DELTAS)
def test_the_rank_is_that_of_a_draw(delta):
    draws = max(least_draws(delta), 1)
    if draws > 10**7:
        with pytest.raises(InvalidParameter, match="draws is"):
            Posterior(delta=delta, draws=draws)
        return
    assert 1 <= Posterior(delta=delta, draws=draws).rank <= draws


def test_long_numbers_are_short_in_messages():
    assert in_digits(999) == "999"
    assert in_digits(2**1074) == "2.02402e+323"
    with pytest.raises(InvalidParameter, match="draws is 0, expected a whole number of 1 or more"):
        expect_count("draws", 0)
    expect_count("draws", 1)
