"""Bins: everything is in one, on its own side of N∧ or of 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surestep.results.chart_bins import Bin, gain_bins, gain_range, round_width, visit_bins

VISITS = st.lists(st.integers(0, 3000), min_size=1, max_size=16)
GAINS = st.one_of(
    st.floats(-1e9, 1e9, allow_nan=False), st.sampled_from([0.0, 1e-12, -1e-12, 1e30, -1e30])
)


@given(VISITS, st.one_of(st.none(), st.integers(0, 5000)))
def test_bins_of_visits_hold_every_pair_once(visits, n_wedge):
    bins = visit_bins(np.array(visits), n_wedge)
    assert bins[0] == Bin(0, 0, visits.count(0))
    assert [bin.low for bin in bins[1:]] == [bin.high + 1 for bin in bins[:-1]]
    assert bins[-1].high >= max(visits)
    for bin in bins:
        assert bin.times == sum(bin.low <= number <= bin.high for number in visits)


@given(VISITS, st.integers(0, 5000))
def test_no_bin_holds_trusted_pairs_beside_others(visits, n_wedge):
    bins = visit_bins(np.array(visits), n_wedge)
    trusted = sum(bin.times for bin in bins if bin.low > n_wedge)
    assert trusted == sum(number > n_wedge for number in visits)


@pytest.mark.parametrize(
    ("largest", "n_wedge", "ends"),
    [
        (3000, None, [0, 10, 100, 1000, 10000]),
        (3000, 20, [0, 10, 20, 100, 1000, 10000]),
        (3000, 15, [0, 15, 100, 1000, 10000]),  # 10 is too near
        (3000, 0, [0, 10, 100, 1000, 10000]),
        (3000, 4000, [0, 10, 100, 1000, 4000]),
        (3000, 10**6, [0, 10, 100, 1000, 10000]),
        (0, 20, [0, 10]),
    ],
)
def test_bins_of_visits_end_at_powers_of_ten_and_at_n_wedge(largest, n_wedge, ends):
    assert [bin.high for bin in visit_bins(np.array([0, largest]), n_wedge)] == ends


@given(arrays(float, st.integers(1, 40), elements=GAINS), st.sampled_from([0.0, 1e-9, 0.5]), GAINS)
def test_bins_hold_every_gain_on_its_own_side_of_0(gain, tolerance, also):
    bins = gain_bins(gain, tolerance, also)
    assert 2 <= len(bins.edges) <= 31
    assert min(abs(edge) for edge in bins.edges) == 0
    assert bins.edges == sorted(set(bins.edges))
    worse, same = gain < -tolerance, np.abs(gain) <= tolerance
    assert [sum(part) for part in bins[1:]] == [worse.sum(), same.sum(), (~worse & ~same).sum()]
    slack = 1e-9 * (bins.edges[-1] - bins.edges[0])
    assert bins.edges[0] - slack <= min(also, gain.min())
    assert max(also, gain.max()) <= bins.edges[-1] + slack
    for low, high, *_, many in zip(bins.edges[:-1], bins.edges[1:], *bins[1:], strict=True):
        inside = (gain > tolerance) & (gain >= low - slack) & (gain <= high + slack)
        assert many <= inside.sum()


def test_gains_reach_from_the_least_to_the_most():
    assert gain_range(np.array([3.0, -2.0, 0.5, 1.5])) == (-2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("least", "width"), [(0.0, 1.0), (0.11, 0.2), (0.2, 0.2), (3.0, 5.0), (7.0, 10.0), (1e30, 1e30)]
)
def test_widths_are_round(least, width):
    assert round_width(least) == pytest.approx(width, rel=1e-12)
