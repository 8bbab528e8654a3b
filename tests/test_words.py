"""Numbers that stand together: as people write them, and never off by more than half a digit."""

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from surestep._words import THIN_SPACE, Scale, number, signed

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290)
PLAIN = re.compile(r"[+−]?[0-9,]+(\.[0-9]+)?( × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|±0")
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")


def meant(text):
    """The number that a text says."""
    mantissa, _, power = text.translate(SUPERSCRIPTS).replace(",", "").partition(" × 10")
    return float(mantissa) * 10.0 ** int(power or 0)


@given(FINITE)
def test_a_number_alone_has_four_digits_and_no_e(value):
    text = number(value)
    assert PLAIN.fullmatch(text)
    assert math.isclose(meant(text), value, rel_tol=6e-4, abs_tol=1e-295)
    assert PLAIN.fullmatch(signed(value))


@given(st.lists(FINITE, min_size=1, max_size=6), st.integers(2, 5))
def test_numbers_together_share_their_last_digit(values, digits):
    scale = Scale.of(values, digits)
    last = 10.0 ** (scale.power - scale.decimals)
    largest = max(map(abs, values))
    assert largest < 1e-290 or last <= largest  # the largest is never too small to be seen
    for value in values:
        text = scale.number(value)
        if text.startswith("<"):
            assert 0 < value < last
        elif text.startswith(">"):
            assert -last < value < 0
        else:
            assert PLAIN.fullmatch(text)
            assert abs(meant(text) * 10.0**scale.power - value) <= 0.501 * last + 1e-12 * abs(value)
        assert "e" not in scale.signed(value)
    decimals = {len(text.partition(".")[2]) for text in map(scale.number, values)}
    assert len(decimals) == 1


def test_what_is_too_small_is_less_than_the_last_digit():
    scale = Scale.of([1.0, 8.55e-05])
    assert [scale.signed(value) for value in (1.0, 8.55e-05, 0.0, -1e-9, math.inf)] == [
        "+1.00",
        f"<{THIN_SPACE}0.01",
        "±0",
        f">{THIN_SPACE}−0.01",
        "∞",
    ]
