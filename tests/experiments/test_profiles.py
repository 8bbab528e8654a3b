"""Profiles: the shares themselves, and bands that hold at all levels at once."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surestep.experiments import profile


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=20),
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.3, 1.0, 2.0]), min_size=1, max_size=6),
)
def test_a_share_counts_what_is_at_least_the_level(values, levels):
    made = profile(np.array(values), np.array(levels))
    assert made.share.tolist() == [
        1 - sum(value < level for value in values) / len(values) for level in levels
    ]
    assert (made.low <= made.share).all()
    assert (made.share <= made.high).all()
    assert made.low.min() >= 0
    assert made.high.max() <= 1


def test_a_band_is_as_wide_as_the_inequality_says():
    made = profile(np.linspace(0, 1, 2000), np.array([0.5]))
    room = math.sqrt(math.log(40) / 4000)
    assert made.high - made.low == pytest.approx(2 * room)
    assert made.share - made.low == pytest.approx(room)


def test_a_band_holds_at_all_levels_at_once():
    """With ties and a long tail; if it does, this fails for some seed in a million."""
    atoms, chances = np.array([-3.0, 0.0, 0.5, 0.9, 1.0]), np.array([0.02, 0.4, 0.28, 0.2, 0.1])
    truth = np.cumsum(chances[::-1])[::-1]
    rng, tries, wrong = np.random.default_rng(7), 400, 0
    for size in (5, 60):
        for _ in range(tries):
            made = profile(rng.choice(atoms, size, p=chances), atoms)
            wrong += bool(((made.low > truth + 1e-12) | (made.high < truth - 1e-12)).any())
    assert wrong <= binom.isf(1e-6, 2 * tries, 0.05)
