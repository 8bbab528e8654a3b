"""The range of a difference, on one thread and on all.

The greedy step against a plain search, state by state.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.kernels.backup import difference_range, greedy

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


def chosen(q, tie=0.0):
    """The probabilities of one state with the values `q`."""
    probability = np.full(len(q), np.nan)
    greedy(np.array([0, len(q)]), np.array(q, dtype=float), tie, probability)
    return probability.tolist()


@given(st.data())
def test_the_first_pair_near_enough_to_the_best_takes_all(data):
    number = st.integers(0, 6).map(float)
    rows = data.draw(st.lists(st.lists(number, min_size=1, max_size=5), min_size=1, max_size=20))
    tie = data.draw(st.sampled_from([0.0, 1.0, 2.5]))
    offsets = np.cumsum([0, *map(len, rows)])
    probability = np.full(offsets[-1], np.nan)
    greedy(offsets, np.concatenate(rows), tie, probability)
    for row, first, last in zip(rows, offsets[:-1], offsets[1:], strict=True):
        expected = [0.0] * len(row)
        expected[next(i for i, q in enumerate(row) if q >= max(row) - tie)] = 1.0
        assert probability[first:last].tolist() == expected


@pytest.mark.parametrize("q", [[-np.inf, -np.inf], [np.inf, np.inf], [np.nan, np.nan]])
def test_values_beyond_doubles_still_give_one_action(q):
    assert chosen(q) == [1.0, 0.0]


def test_a_value_of_minus_infinity_is_never_best():
    assert chosen([-np.inf, -1e300, -1e308]) == [0.0, 1.0, 0.0]
