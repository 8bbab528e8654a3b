"""What a rehearsal reports, from tables whose answers are known."""

import json
import pickle
from dataclasses import replace
from math import comb

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.certificates import Posterior
from surestep.errors import CertificateRefused, InvalidParameter, InvalidResult
from surestep.rehearsal import Calibration, Rate, Rehearsal, rehearsal_from_json
from surestep.rehearsal.result import LIMITS, calibrated_rank, draws_below


def rehearsal(claim, gain=None, calibrated=None, sizes=(0.5, 1.0, 2.0, 5.0)):
    claim = np.asarray(claim, float)
    sizes = sizes[: claim.shape[1]]
    return Rehearsal(
        kind="posterior",
        delta=0.1,
        family=("one", "other"),
        member=np.arange(len(claim)) % 2,
        sizes=sizes,
        episodes=tuple(round(200 * size) for size in sizes),
        horizon=(10,) * len(sizes),
        own_episodes=200,
        gain=np.zeros(claim.shape) if gain is None else np.asarray(gain, float),
        claim=claim,
        calibrated_claim=None if calibrated is None else np.asarray(calibrated, float),
        calibration=Calibration(99, 10, (10, 3), ("one", "other")),
        tolerance=1e-9,
        outside=np.zeros(claim.shape, bool),
        limits=LIMITS,
    )


@settings(max_examples=60)
@given(total=st.integers(1, 30), data=st.data())
def test_intervals_of_rates_are_clopper_and_pearsons(total, data):
    count = data.draw(st.integers(0, total))
    rate = Rate.of(np.arange(total) < count)
    assert (rate.happened, rate.total) == (count, total)

    def at_most(k, p):
        return sum(comb(total, i) * p**i * (1 - p) ** (total - i) for i in range(k + 1))

    if count > 0:
        assert 1 - at_most(count - 1, rate.low) == pytest.approx(0.025, abs=1e-9)
    if count < total:
        assert at_most(count, rate.high) == pytest.approx(0.025, abs=1e-9)
    assert 0 <= rate.low <= rate.share <= rate.high <= 1


def test_rates_of_a_table_counted_by_hand():
    nan = float("nan")
    found = rehearsal(
        claim=[[0.1, 0.2], [-0.1, 0.2], [0.3, nan], [0.0, 0.5]],
        gain=[[0.1, 0.1], [-0.2, 0.3], [0.2, 0.4], [-1e-12, 0.5]],
        calibrated=[[0.0, 0.1], [-0.3, 0.2], [0.2, nan], [0.0, 0.4]],
    )
    first, second = found.summary(0.5), found.summary(1.0)
    assert first.violated.happened == 2  # worlds 1 and 2; world 0 is exactly right
    assert first.calibrated_violated.happened == 0
    assert first.harmed.happened == 1  # −1e-12 is no harm
    assert (first.certified.happened, first.calibrated_certified.happened) == (2, 1)
    assert (first.refused.happened, second.refused.happened) == (0, 1)
    assert second.violated.happened == 1
    assert second.median_claim == 0.2
    assert second.mean_gain == pytest.approx(0.325)
    # The gains are 0.1, 0.3, 0.4 and 0.5, three gaps apart.
    assert second.gain_quantiles == pytest.approx((0.13, 0.25, 0.35, 0.425, 0.485))
    one = found.summary(0.5, "one")
    assert (one.violated.happened, one.violated.total) == (1, 2)
    np.testing.assert_allclose(found.power(), [0.25, 0.75])


def certified(shares):
    """A table in which these shares of 20 worlds certify a gain."""
    return np.stack([np.where(np.arange(20) < 20 * share, 1.0, -1.0) for share in shares], axis=1)


@pytest.mark.parametrize(
    ("shares", "chance", "expected"),
    [
        ((0.1, 0.6, 0.9, 1.0), 0.5, 0),  # enough already
        ((0.6, 0.2, 0.2, 0.2), 0.5, 0),
        ((0.0, 0.0, 0.5, 1.0), 0.5, 200),  # at twice the data, exactly
        ((0.0, 0.2, 0.8, 1.0), 0.5, 83),  # (√2 − 1) · 200 = 82.8…
        ((0.0, 0.0, 0.0, 0.9), 0.9, 800),
        ((0.0, 0.1, 0.2, 0.4), 0.5, None),
        ((0.0, 0.5, 0.5, 1.0), 1.0, 800),
        ((0.0, 1.0, 1.0, 1.0), 0.5, 0),  # √½ of the data would do
    ],
)
def test_additional_episodes_are_read_off_the_power(shares, chance, expected):
    assert rehearsal(certified(shares)).more_episodes(chance) == expected
    # Calibrated claims decide, where there are any.
    calibrated = rehearsal(certified((1.0,) * 4), calibrated=certified(shares))
    assert calibrated.more_episodes(chance) == expected


@pytest.mark.parametrize(
    ("luck", "delta", "expected"),
    [
        (range(9), 0.1, 8.0),  # ⌈0.9 · 10⌉ = 9
        (range(8), 0.1, None),
        (range(19), 0.1, 17.0),
        (range(20), 0.1, 18.0),  # ⌈18.9⌉
        ((5.0, np.nan, 7.0), 0.5, 5.0),  # no claim is less than any
        ((), 0.1, None),
    ],
)
def test_what_luck_claims_at_most_in_all_but_a_share_of_the_worlds(luck, delta, expected):
    shuffled = np.random.default_rng(1).permutation(np.array(luck, float))
    found = replace(rehearsal([[0.1]]), luck=shuffled, delta=delta)
    assert found.luck_bound == expected


def test_json_holds_everything_that_a_report_needs():
    nan = float("nan")
    found = rehearsal([[0.1, nan], [0.2, 0.3]], calibrated=[[0.0, nan], [0.1, 0.2]])
    content = json.loads(found.to_json())
    assert content["claim"] == [[0.1, None], [0.2, 0.3]]
    assert content["gain"] == [[0.0, 0.0], [0.0, 0.0]]
    assert content["family"] == ["one", "other"]
    assert content["calibration"]["ranks"] == [10, 3]
    assert set(content["summary"]) == {"all", "one", "other"}
    assert content["summary"]["all"][0]["violated"]["happened"] == 2
    text = " ".join(content["limits"])
    for word in ("stress test", "not a confidence level", "true world", "no world contains"):
        assert word in text
    assert "not Markov" in text
    again = rehearsal_from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert (again.summary(), again.calibration) == (found.summary(), found.calibration)


def test_a_rehearsal_is_frozen_and_survives_pickling():
    found = rehearsal([[0.1, 0.2], [0.3, 0.4]])
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.to_json() == found.to_json()
    for value in (found, again):
        with pytest.raises(ValueError, match="read-only"):
            value.claim[0, 0] = 1.0


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda found: found.summary(3.0), "size is 3.0, expected one of 0.5, 1"),
        (lambda found: found.summary(1.0, "third"), "no kind of world 'third'; "),
        (lambda found: found.more_episodes(0.0), "chance is 0.0, expected more than 0"),
        (lambda found: found.more_episodes(1.1), "chance is 1.1, expected more than 0 and at most"),
    ],
)
def test_questions_without_an_answer_are_refused(ask, words):
    with pytest.raises(InvalidParameter, match=words):
        ask(rehearsal([[0.1, 0.2]]))


@pytest.mark.parametrize(
    "change",
    [
        {"gain": [[1.0]]},
        {"sizes": []},
        {"member": None},
        {"family": ["one"]},
        {"outside": [[True]]},
        {"calibration": {}},
        {"summary": {}},
        {"claim": "none"},
    ],
)
def test_what_is_no_rehearsal_is_refused(change):
    text = rehearsal([[0.1, 0.2], [0.2, 0.3]]).to_json()
    content = json.loads(text)
    assert rehearsal_from_json(msgspec.json.encode(content).decode()).to_json() == text
    with pytest.raises(InvalidResult, match="no rehearsal that surestep wrote"):
        rehearsal_from_json(msgspec.json.encode(content | change).decode())
    with pytest.raises(InvalidResult, match="no rehearsal that surestep wrote"):
        rehearsal_from_json("{")


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
    ranks = tuple(calibrated_rank(np.array(each), 99, 0.1) for each in lists)
    found = Calibration(99, 10, ranks, names)
    # δ(W+1) = 2.1, so the second smallest u_w of each kind; δ(K+1) = 10.
    second = [sorted(each)[1] for each in lists]
    assert found.rank == min([10, *second])
    if min(second) < 10:
        assert found.strictest == names[second.index(min(second))]


def test_what_is_left_is_applied_as_a_stricter_delta():
    calibration = Calibration(99, 10, (7, 4), ("one", "two"))
    assert calibration.rank == 4
    assert calibration.strictest == "two"
    stricter = calibration.applied_to(Posterior(delta=0.1, draws=999, seed=5))
    assert stricter == Posterior(delta=0.04, draws=999, seed=5)
    assert stricter.rank == 40
    unchanged = Calibration(99, 10, (55,), ("one",)).applied_to(Posterior())
    assert unchanged.delta == 0.1
    with pytest.raises(CertificateRefused, match="worlds of the kind 'bad' even the least of 99"):
        Calibration(99, 10, (7, 0), ("good", "bad")).applied_to(Posterior())


def test_ranks_at_the_borders():
    """⌊δ(K+1)⌋, though binary fractions may fall short of it: 0.1 · 30 and 0.7 · 10 are whole."""
    found = [calibrated_rank(np.full(9, 99), draws, 0.1) for draws in (18, 19, 28, 29, 98, 99)]
    assert found == [1, 2, 2, 3, 9, 10]
    assert calibrated_rank(np.full(9, 99), 9, 0.7) == 7
    assert calibrated_rank(np.arange(9) + 3, 99, 0.1) == 3
    with pytest.raises(InvalidParameter, match="worlds is 8 for each kind, expected at least"):
        calibrated_rank(np.arange(8), 99, 0.1)
    # A refused certificate claims nothing, and a near miss is none.
    table = np.array([[np.nan] * 3, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])
    assert draws_below(table, np.array([0.0, 0.2, 0.2 - 1e-12]), 1e-9).tolist() == [3, 2, 2]
