"""The range of a difference, on one thread and on all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.kernels.extremes import difference_range

LENGTHS = (1, 5000, 300_000)  # one entry, some blocks, and enough for all threads


@pytest.mark.parametrize("length", LENGTHS)
@given(data=st.data())
def test_it_is_the_range_of_the_difference(length, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    first, second = rng.normal(size=(2, length))
    difference = first - second
    assert difference_range(first, second) == (difference.min(), difference.max())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("length", LENGTHS)
def test_one_entry_that_is_not_finite_spoils_it(length, wrong):
    for position in {0, length // 2, length - 1}:
        first = np.ones(length)
        first[position] = wrong
        assert np.isnan(difference_range(first, np.zeros(length))).all()
