"""Settings out of range, unknown names, and settings as text."""

import json
import math

import numpy as np
import pytest

from contract.settings import SETTINGS
from surestep.algorithms import (
    ALGORITHMS,
    DUIPI,
    HCPI,
    SPIBB,
    BetaSPIBB,
    LowerSPIBB,
    PessimisticMBIE,
    Provable,
    RaMDP,
    RMin,
    RobustMDP,
    SoftSPIBB,
    TwoSuccessorSPIBB,
    described,
    make_algorithm,
)
from surestep.algorithms.registry import algorithm_of, settings_of
from surestep.bounds import SPIBBBound
from surestep.errors import InvalidParameter

NO_NUMBERS = (None, "1", True, math.nan, -1, [1], 1j)


def test_n_wedge_alone_needs_no_name():
    for kind in (SPIBB, LowerSPIBB, RMin):
        assert kind(10) == kind(n_wedge=10)
    for kind in (TwoSuccessorSPIBB, BetaSPIBB, RaMDP, SoftSPIBB):
        with pytest.raises(TypeError, match="positional"):
            kind(10)


BAD = [
    *((kind, "n_wedge", {}, "a whole number of at least 0") for kind in (SPIBB, LowerSPIBB, RMin)),
    *(
        (kind, "spibb_n_wedge", {}, "a whole number of at least 1")
        for kind in (TwoSuccessorSPIBB, BetaSPIBB)
    ),
    *(
        (kind, "delta", others, "a number above 0 and below 1")
        for kind, others in (
            (TwoSuccessorSPIBB, {"spibb_n_wedge": 5}),
            (BetaSPIBB, {"spibb_n_wedge": 5}),
            (PessimisticMBIE, {}),
            (RobustMDP, {}),
            (HCPI, {}),
        )
    ),
    (SoftSPIBB, "delta", {"epsilon": 1}, "a number above 0 and of at most 1"),
    (SoftSPIBB, "epsilon", {}, "a number of at least 0"),
    (SoftSPIBB, "step", {"epsilon": 1}, "one of exact, lower, approx, advantage"),
    (SoftSPIBB, "behavior_q", {"epsilon": 1}, "one of model, monte-carlo"),
    (RaMDP, "kappa", {}, "a number of at least 0"),
    (DUIPI, "xi", {}, "a number of at least 0"),
    (DUIPI, "estimator", {"xi": 1}, "one of bayesian, frequentist"),
    (Provable, "rounds", {}, "a number from 1e-09 to "),
    (Provable, "price", {}, "a number from 0 to "),
    (HCPI, "train_share", {}, "a number from 0 to 1"),
    (HCPI, "seed", {}, "a whole number of at least 0"),
    (HCPI, "estimator", {}, "one of is, pdis, wis, wpdis, dr"),
    (HCPI, "interval", {}, "one of student-t, bca"),
]


@pytest.mark.parametrize(("kind", "setting", "others", "expected"), BAD)
def test_a_setting_out_of_range_is_refused_with_the_range_and_the_reason(
    kind, setting, others, expected
):
    for value in NO_NUMBERS:
        with pytest.raises(
            InvalidParameter, match=f"{setting} is .*expected {expected}"
        ) as refusal:
            kind(**others, **{setting: value})
        reason = str(refusal.value).rpartition(": ")[2]
        assert len(reason.split()) >= 5, reason


def test_defaults_are_those_of_the_papers():
    def soft(step, iterate=True, behavior_q="model"):
        form = (f"step={step!r}", f"iterate={iterate}", f"behavior_q={behavior_q!r}")
        return ("epsilon", "delta=1.0", "error='hoeffding'", *form)

    assert {each.name: each.settings for each in described()} == {
        "basic-rl": (),
        "spibb": ("n_wedge",),
        "lower-spibb": ("n_wedge",),
        "spibb-2s": ("spibb_n_wedge", "delta=0.1"),
        "spibb-beta": ("spibb_n_wedge", "delta=0.1"),
        "exact-soft-spibb": soft("exact"),
        "approx-soft-spibb": soft("approx"),
        "lower-soft-spibb": soft("lower"),
        "advantage-soft-spibb": soft("advantage", behavior_q="monte-carlo"),
        "one-step-exact-soft-spibb": soft("exact", iterate=False),
        "one-step-approx-soft-spibb": soft("approx", iterate=False),
        "ramdp": ("kappa",),
        "rmin": ("n_wedge",),
        "pessimistic-mbie": ("delta=0.1",),
        "duipi": ("xi", "estimator='bayesian'"),
        "robust-mdp": ("delta=0.1",),
        "provable": ("rounds=20", "price=1"),
        "constrained": ("rounds=20", "price=1", "n_wedge"),
        "hcpi": (
            "delta=0.1",
            "estimator='dr'",
            "interval='student-t'",
            "train_share=0.2",
            "seed=0",
        ),
    }


def test_an_algorithm_is_described_in_its_own_words():
    (found,) = described("lower-spibb")
    assert found.summary.startswith("Π_≤b-SPIBB: at most π_b on every pair")
    assert "\n\n" not in found.summary
    assert found.promises[0] == "keeps π_b without data"
    assert (found.constraint, found.source) == (LowerSPIBB.constraint, LowerSPIBB.source)


def test_unknown_and_missing_settings_are_named():
    with pytest.raises(
        InvalidParameter,
        match=r"spibb has no setting 'nwedge'; did you mean n_wedge\? expected one of n_wedge",
    ):
        make_algorithm("spibb", nwedge=5)
    with pytest.raises(InvalidParameter, match="basic-rl has no setting 'epsilon'; there are none"):
        make_algorithm("basic-rl", epsilon=5)
    with pytest.raises(InvalidParameter, match="spibb needs the setting n_wedge"):
        make_algorithm("spibb")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([1, 2], "the settings have no name"),
        ({"n_wedge": 5}, "the settings have no name"),
        ({"algorithm": ["spibb"]}, "there is no algorithm"),
        ({"algorithm": "spibb", "n_wedge": "5"}, "n_wedge is '5', expected a whole number"),
    ],
)
def test_what_describes_no_algorithm_is_refused(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        algorithm_of(settings)


def test_numpy_numbers_are_written_as_numbers():
    given = (SPIBB(n_wedge=np.int32(7)), RaMDP(kappa=np.float32(0.5)), DUIPI(xi=np.float64(0.1)))
    for algorithm in given:
        assert algorithm_of(json.loads(json.dumps(settings_of(algorithm)))) == algorithm


def test_a_bound_without_a_name_cannot_be_written():
    algorithm = SoftSPIBB(epsilon=1.0, delta=0.1, error=SPIBBBound())
    with pytest.raises(InvalidParameter, match=r"error of exact-soft-spibb is SPIBBBound\(\), exp"):
        settings_of(algorithm)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_frozen_values(name):
    algorithm, kind = SETTINGS[name][0], ALGORITHMS[name]
    assert hash(algorithm) == hash(eval(repr(algorithm), {kind.__name__: kind}))  # noqa: S307
    for setting in (*algorithm.__slots__, "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(algorithm, setting, 1)
