"""The calibrated rank, against a search through all ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.certificates import Posterior
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.rehearsal import Calibration, calibrated_rank
from surestep.rehearsal.result import calibration_of, draws_below


@given(
    worlds=st.integers(9, 60),
    draws=st.integers(9, 40),
    tenths=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_the_rank_is_the_largest_that_is_seldom_wrong(worlds, draws, tenths, seed):
    rng, delta = np.random.default_rng(seed), tenths / 10
    table = np.round(rng.normal(size=(worlds, draws)), 1)  # with ties
    truth = np.round(rng.normal(-0.5, 1.0, worlds), 1)
    found = calibrated_rank(draws_below(table, truth, 0.0), draws, delta)
    in_order = np.sort(table, axis=1)
    most = (tenths * (draws + 1)) // 10  # ⌊δ(K+1)⌋ in whole numbers
    place = (tenths * (worlds + 1)) // 10
    wrong = [np.count_nonzero(in_order[:, r - 1] > truth) for r in range(1, most + 1)]
    allowed = [r for r in range(1, most + 1) if wrong[r - 1] < place]
    assert found == max(allowed, default=0)


@given(
    lists=st.lists(st.lists(st.integers(0, 99), min_size=20, max_size=20), min_size=1, max_size=4)
)
def test_of_several_kinds_of_worlds_the_strictest_decides(lists):
    names = tuple(f"kind {i}" for i in range(len(lists)))
    found = calibration_of([np.array(each) for each in lists], names, Posterior(draws=99))
    # δ(W+1) = 2.1, so the second smallest u_w of each kind; δ(K+1) = 10.
    second = [sorted(each)[1] for each in lists]
    assert found.rank == min([10, *second])
    if min(second) < 10:
        assert found.strictest == names[second.index(min(second))]


def test_a_refused_certificate_claims_nothing_and_a_near_miss_is_none():
    table = np.array([[np.nan] * 3, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])
    assert draws_below(table, np.array([0.0, 0.2, 0.2 - 1e-12]), 1e-9).tolist() == [3, 2, 2]


def test_what_is_left_is_applied_as_a_stricter_delta():
    calibration = Calibration(99, 10, (7, 4), ("one", "two"))
    assert calibration.rank == 4
    assert calibration.strictest == "two"
    stricter = calibration.applied_to(Posterior(delta=0.1, draws=999, seed=5))
    assert stricter == Posterior(delta=0.04, draws=999, seed=5)
    assert stricter.rank == 40
    unchanged = Calibration(99, 10, (55,), ("one",)).applied_to(Posterior())
    assert unchanged.delta == 0.1


def test_a_certificate_of_which_nothing_is_left_is_refused():
    with pytest.raises(CertificateRefused, match="worlds of the kind 'bad' even the least of 99"):
        Calibration(99, 10, (7, 0), ("good", "bad")).applied_to(Posterior())


def test_too_few_worlds_do_not_calibrate():
    with pytest.raises(InvalidParameter, match="worlds is 8 for each kind, expected at least"):
        calibrated_rank(np.arange(8), 99, 0.1)
    assert calibrated_rank(np.arange(9) + 3, 99, 0.1) == 3


def test_worlds_that_allow_everything_leave_the_rank_of_the_prior():
    """⌊δ(K+1)⌋, though binary fractions may fall short of it: 0.1 · 30 and 0.7 · 10 are whole."""
    found = [calibrated_rank(np.full(9, 99), draws, 0.1) for draws in (18, 19, 28, 29, 98, 99)]
    assert found == [1, 2, 2, 3, 9, 10]
    assert calibrated_rank(np.full(9, 99), 9, 0.7) == 7
