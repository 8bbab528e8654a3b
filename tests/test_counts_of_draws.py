"""How many draws show what happens with chance δ, for every δ that is a double."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep._arrays import expect_count, in_digits, least_draws
from surestep.certificates import Posterior
from surestep.errors import InvalidParameter

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


@given(DELTAS)
def test_the_rank_is_that_of_a_draw(delta):
    draws = max(least_draws(delta), 1)
    if draws > 10**7:
        with pytest.raises(InvalidParameter, match="draws is"):
            Posterior(delta=delta, draws=draws)
        return
    assert 1 <= Posterior(delta=delta, draws=draws).rank <= draws


def test_the_largest_level_claims_the_largest_draw():
    assert Posterior(delta=math.nextafter(1, 0), draws=99).rank == 99


def test_long_numbers_are_short_in_messages():
    assert in_digits(999) == "999"
    assert in_digits(2**1074) == "2.02402e+323"
    with pytest.raises(InvalidParameter, match="draws is 11, expected 10 at most: more take too"):
        expect_count("draws", 11, 10)
    expect_count("draws", 10, 10)
