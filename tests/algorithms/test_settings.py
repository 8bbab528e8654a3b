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
    AdvantageSoftSPIBB,
    ApproxSoftSPIBB,
    BetaSPIBB,
    ExactSoftSPIBB,
    LowerSoftSPIBB,
    LowerSPIBB,
    OneStepApproxSoftSPIBB,
    OneStepExactSoftSPIBB,
    PessimisticMBIE,
    RaMDP,
    RMin,
    RobustMDP,
    TwoSuccessorSPIBB,
    described,
    make_algorithm,
    settings_from_json,
    settings_to_json,
)
from surestep.algorithms.contract import Promise
from surestep.algorithms.registry import needs_log
from surestep.bounds import SPIBBBound
from surestep.errors import InvalidParameter

NO_NUMBERS = (None, "1", True, math.nan, math.inf, -math.inf, [1], 1j, 10**400)
SOFT = (
    ExactSoftSPIBB,
    LowerSoftSPIBB,
    ApproxSoftSPIBB,
    AdvantageSoftSPIBB,
    OneStepExactSoftSPIBB,
    OneStepApproxSoftSPIBB,
)


def test_n_wedge_alone_needs_no_name():
    for kind in (SPIBB, LowerSPIBB, RMin):
        assert kind(10) == kind(n_wedge=10)
    for kind in (TwoSuccessorSPIBB, BetaSPIBB, RaMDP, ExactSoftSPIBB):
        with pytest.raises(TypeError, match="positional"):
            kind(10)


def refused(name, kind, values, expected, **others):
    """Test cases: the setting `name` of `kind` must be `expected`, and none of the values is."""
    return [
        pytest.param(
            kind,
            {name: value, **others},
            f"{name} is .*, {expected}: ",
            id=f"{kind.name}, {name}={value!r:.9}",
        )
        for value in values
    ]


WHOLE = "expected a whole number of at least "
BAD = [
    *(
        case
        for kind in (SPIBB, LowerSPIBB, RMin)
        for case in refused("n_wedge", kind, (-1, 2.0, *NO_NUMBERS[:-1]), f"{WHOLE}0")
    ),
    *(
        case
        for kind in (TwoSuccessorSPIBB, BetaSPIBB)
        for case in (
            *refused("spibb_n_wedge", kind, (0, 2.0, *NO_NUMBERS[:-1]), f"{WHOLE}1"),
            *refused(
                "delta",
                kind,
                (0, 1, -1, *NO_NUMBERS),
                "expected more than 0 and less than 1",
                spibb_n_wedge=5,
            ),
        )
    ),
    *(
        case
        for kind in SOFT
        for case in refused("epsilon", kind, (-0.1, *NO_NUMBERS), "expected a number of at least 0")
    ),
    *refused("kappa", RaMDP, (-0.1, *NO_NUMBERS), "expected a number of at least 0"),
    *refused("xi", DUIPI, (-0.1, *NO_NUMBERS), "expected a number of at least 0"),
    *(
        case
        for kind in (PessimisticMBIE, RobustMDP, HCPI)
        for case in refused(
            "delta", kind, (0, 1, -1, *NO_NUMBERS), "expected more than 0 and less than 1"
        )
    ),
    *refused("train_share", HCPI, (-0.1, 1.1, *NO_NUMBERS), "expected a number from 0 to 1"),
    *refused("seed", HCPI, (-1, 2.0, *NO_NUMBERS[:-1]), f"{WHOLE}0"),
    *refused("estimator", HCPI, ("", None, 3), "?.*expected one of is, pdis, wis, wpdis, dr"),
    *refused("interval", HCPI, ("t", None, 3), "?.*expected one of student-t, bca"),
    *refused(
        "estimator",
        DUIPI,
        ("bayes", "", None, 3),
        "?.*expected one of bayesian, frequentist",
        xi=1.0,
    ),
    *(
        case
        for kind in (AdvantageSoftSPIBB, OneStepExactSoftSPIBB, OneStepApproxSoftSPIBB)
        for case in refused(
            "behavior_q",
            kind,
            ("montecarlo", "", None, 3),
            "?.*expected one of model, monte-carlo",
            epsilon=1.0,
        )
    ),
]


@pytest.mark.parametrize(("kind", "settings", "message"), BAD)
def test_a_setting_out_of_range_is_refused_with_the_range_and_the_reason(kind, settings, message):
    with pytest.raises(InvalidParameter, match=message.replace(", ?", "; ?")) as refusal:
        kind(**settings)
    reason = str(refusal.value).rpartition(": ")[2]
    assert len(reason.split()) >= 5, reason


def test_defaults_are_those_of_the_papers():
    soft = ("epsilon", "delta=1.0", "error='hoeffding'")
    assert {each.name: each.settings for each in described()} == {
        "basic-rl": (),
        "spibb": ("n_wedge",),
        "lower-spibb": ("n_wedge",),
        "spibb-2s": ("spibb_n_wedge", "delta=0.1"),
        "spibb-beta": ("spibb_n_wedge", "delta=0.1"),
        "exact-soft-spibb": soft,
        "approx-soft-spibb": soft,
        "lower-soft-spibb": soft,
        "advantage-soft-spibb": (*soft, "behavior_q='monte-carlo'"),
        "one-step-exact-soft-spibb": (*soft, "behavior_q='model'"),
        "one-step-approx-soft-spibb": (*soft, "behavior_q='model'"),
        "ramdp": ("kappa",),
        "rmin": ("n_wedge",),
        "pessimistic-mbie": ("delta=0.1",),
        "duipi": ("xi", "estimator='bayesian'"),
        "robust-mdp": ("delta=0.1",),
        "provable": ("rounds=20", "price=1"),
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


def test_a_log_is_needed_where_whole_episodes_are_looked_at():
    one_step = {"epsilon": 1.0, "behavior_q": "model"}
    for algorithm in (
        HCPI(),
        AdvantageSoftSPIBB(epsilon=1.0),
        ExactSoftSPIBB(epsilon=1.0, error="bernstein"),
    ):
        assert needs_log(algorithm)
    for algorithm in (
        SPIBB(n_wedge=3),
        AdvantageSoftSPIBB(**one_step),
        ExactSoftSPIBB(epsilon=1.0),
    ):
        assert not needs_log(algorithm)


@pytest.mark.parametrize("kind", [OneStepExactSoftSPIBB, OneStepApproxSoftSPIBB])
def test_one_step_on_the_q_of_the_log_may_be_worse_in_the_estimate(kind):
    assert Promise.NEVER_WORSE in kind(epsilon=1.0, behavior_q="model").promises
    assert kind(epsilon=1.0, behavior_q="monte-carlo").promises == {
        Promise.KEEPS_BEHAVIOR,
        Promise.RENUMBERING,
    }


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_made_by_name_as_by_its_class(name):
    for algorithm in SETTINGS[name]:
        settings = json.loads(settings_to_json(algorithm))
        assert settings.pop("algorithm") == name
        assert make_algorithm(name, **settings) == algorithm


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("spib", "spibb or spibb-2s or spibb-beta"),  # three at most
        ("SPIBB", None),
        ("lower-spib", "lower-spibb or lower-soft-spibb or spibb"),
        ("rmn", "rmin or ramdp"),
    ],
)
def test_unknown_names_offer_the_closest_ones(name, guess):
    with pytest.raises(InvalidParameter, match=f"there is no algorithm '{name}'; ") as refusal:
        make_algorithm(name)
    if guess:
        assert f"; did you mean {guess}? expected" in str(refusal.value)
    assert str(refusal.value).endswith(f"expected one of {', '.join(ALGORITHMS)}")


@pytest.mark.parametrize("name", [None, 3, ["spibb"], ""])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidParameter, match=r"there is no algorithm .*expected one of basic-rl"):
        make_algorithm(name)


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
    ("text", "message"),
    [
        ("spibb", "the settings are no JSON"),
        (None, "the settings are no JSON"),
        ("[1, 2]", "the settings have no name"),
        ('{"n_wedge": 5}', "the settings have no name"),
        ('{"algorithm": 5}', "there is no algorithm 5"),
        ('{"algorithm": ["spibb"]}', "there is no algorithm"),
        ('{"algorithm": "spibb"}', "spibb needs the setting n_wedge"),
        ('{"algorithm": "spibb", "n_wedge": "5"}', "n_wedge is '5', expected a whole number"),
        ('{"algorithm": "ramdp", "kappa": NaN}', "kappa is nan, expected a number"),
        ('{"algorithm": "spibb", "n_wedge": 5, "name": "x"}', "spibb has no setting 'name'"),
    ],
)
def test_text_that_is_no_algorithm_is_refused(text, message):
    with pytest.raises(InvalidParameter, match=message):
        settings_from_json(text)


def test_numpy_numbers_are_written_as_numbers():
    given = (SPIBB(n_wedge=np.int32(7)), RaMDP(kappa=np.float32(0.5)), DUIPI(xi=np.float64(0.1)))
    for algorithm in given:
        assert settings_from_json(settings_to_json(algorithm)) == algorithm


def test_a_bound_without_a_name_cannot_be_written():
    algorithm = ExactSoftSPIBB(epsilon=1.0, delta=0.1, error=SPIBBBound())
    with pytest.raises(InvalidParameter, match=r"error of exact-soft-spibb is SPIBBBound\(\), exp"):
        settings_to_json(algorithm)


@pytest.mark.parametrize("kind", [kind for kind in ALGORITHMS.values() if SETTINGS.get(kind.name)])
def test_settings_are_frozen_values(kind):
    algorithm = SETTINGS[kind.name][0]
    assert hash(algorithm) == hash(eval(repr(algorithm), {kind.__name__: kind}))  # noqa: S307
    for name in (*algorithm.__slots__, "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(algorithm, name, 1)
