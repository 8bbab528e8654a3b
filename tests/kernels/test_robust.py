"""Worst cases over L1 balls, against linear programs over all states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import worst_row
from surestep.kernels.robust import worst_pair_values

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50, allow_subnormal=False))
RADII = st.one_of(st.sampled_from([0.0, 0.2, 1.0, 1.9, 2.0]), st.floats(0, 2))


@st.composite
def rows(draw, max_states=5):
    """One estimated row over some of the states, rewards of its successors, and values."""
    states = draw(st.integers(1, max_states))
    support = draw(st.permutations(range(states)))[: draw(st.integers(1, states))]
    # A weight of 0 is a transition whose reward is known although it was never seen.
    weight = draw(
        st.lists(st.integers(0, 6), min_size=len(support), max_size=len(support)).filter(any)
    )
    reward = draw(st.lists(NUMBERS, min_size=len(support), max_size=len(support)))
    value = draw(st.lists(NUMBERS, min_size=states, max_size=states))
    chance = np.array(weight) / np.sum(weight)
    return np.array(support, np.int32), chance, np.array(reward), np.array(value)


@given(
    row=rows(), discount=st.sampled_from([0.0, 0.5, 0.9, 1.0]), radius=RADII, outside_reward=NUMBERS
)
def test_the_worst_case_of_a_row_is_that_of_the_linear_program(
    row, discount, radius, outside_reward
):
    successor, chance, reward, value = row
    q = np.empty(1)
    worst_pair_values(
        np.array([0, successor.size]),
        successor,
        chance,
        reward,
        np.array([discount]),
        np.array([radius]),
        np.array([outside_reward]),
        np.array([np.nan]),
        value,
        np.argsort(value, kind="stable"),
        q,
    )
    center, worth = np.zeros(value.size), outside_reward + discount * value
    center[successor] = chance
    worth[successor] = reward + discount * value[successor]
    expected = worth @ worst_row(center, worth, radius)
    assert q[0] == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(1.0, np.abs(worth).max()))


def test_a_pair_without_successors_is_worth_its_end():
    q, ending = np.empty(2), np.array([7.0, -3.0])
    nothing, pairs = np.zeros(0), np.zeros(2)
    worst_pair_values(
        np.zeros(3, np.int64),
        np.zeros(0, np.int32),
        nothing,
        nothing,
        pairs,
        pairs + 2,
        pairs,
        ending,
        np.array([-100.0]),
        np.array([0]),
        q,
    )
    assert np.array_equal(q, ending)
