"""Axes: places are in order, ticks are round and on the axis."""

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from surestep.report.charts.svg import Axis

POSITIVE = st.floats(1e-9, 1e12)
ANY = st.floats(-1e12, 1e12, allow_subnormal=False)


@given(st.lists(ANY, min_size=1, max_size=6))
def test_everything_fits_between_the_ends(values):
    axis = Axis.around("x", values)
    assert all(0 <= axis.share(value) <= 1 for value in values)


@given(st.lists(POSITIVE, min_size=1, max_size=6))
def test_everything_fits_between_the_ends_of_a_log_axis(values):
    axis = Axis.around("x", values, log=True)
    assert all(0 <= axis.share(value) <= 1 for value in values)
    assert axis.share(0.0) < 0  # below all that can be shown


@given(ANY, ANY)
def test_even_ticks_are_evenly_spaced(low, high):
    assume(high - low > 1e-6 * max(abs(low), abs(high), 1e-6))
    ticks = [value for value, _ in Axis("x", low, high).ticks()]
    assert 2 <= len(ticks) <= 7
    slack = 1e-9 * max(abs(low), abs(high))
    assert low - slack <= ticks[0] <= ticks[-1] <= high + slack
    steps = [after - before for before, after in itertools.pairwise(ticks)]
    assert max(steps) - min(steps) <= 1e-6 * max(steps) + slack


@given(POSITIVE, st.floats(1.3, 1e12))
def test_log_ticks_are_round_and_rising(low, factor):
    axis = Axis("x", low, low * factor, log=True)
    ticks = [value for value, _ in axis.ticks()]
    assert 1 <= len(ticks) <= 7
    assert all(-1e-9 <= axis.share(tick) <= 1 + 1e-9 for tick in ticks)
    assert ticks == sorted(set(ticks))
    if factor > 1000:
        assert all(math.log10(tick) % 1 in (0, 1) or f"{tick:e}"[0] in "125" for tick in ticks)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1)])
def test_an_axis_has_a_length(ends):
    with pytest.raises(ValueError, match="the axis 'x' goes from"):
        Axis("x", *ends)


def test_a_log_axis_starts_above_0():
    with pytest.raises(ValueError, match="goes from 0"):
        Axis("x", 0, 1, log=True)


def test_an_axis_of_nothing():
    assert Axis.around("x", [math.inf, math.nan]) == Axis("x", 1.0, 10.0)
