"""What algorithms share: settings, names, values of pairs, ties, and policies from elsewhere."""

import json
import math

import numpy as np
import pytest

import surestep
from support.problems import uniform_problem
from surestep import Counts, Pairs, Policy
from surestep.algorithms import (
    DUIPI,
    HCPI,
    SPIBB,
    VILCB,
    BasicRL,
    BetaSPIBB,
    LowerSPIBB,
    PessimisticMBIE,
    Provable,
    RaMDP,
    RMin,
    RobustMDP,
    SoftSPIBB,
    TwoSuccessorSPIBB,
    make_algorithm,
)
from surestep.algorithms.contract import improvement_of, tie_of
from surestep.algorithms.registry import algorithm_of, describe_algorithms, settings_of
from surestep.bounds.loss import SPIBBBound
from surestep.errors import InvalidParameter, ShapeMismatch

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
            (VILCB, {}),
            (HCPI, {}),
        )
    ),
    (SoftSPIBB, "delta", {"epsilon": 1}, "a number above 0 and of at most 1"),
    (SoftSPIBB, "epsilon", {}, "a number of at least 0"),
    (SoftSPIBB, "step", {"epsilon": 1}, "one of exact, lower, approx, advantage"),
    (RaMDP, "kappa", {}, "a number of at least 0"),
    (DUIPI, "xi", {}, "a number of at least 0"),
    (VILCB, "scale", {}, "a number of at least 0"),
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
    def soft(step, iterate=True):
        return (
            "epsilon",
            "delta=1.0",
            "error='hoeffding'",
            f"step={step!r}",
            f"iterate={iterate}",
        )

    assert {each.name: each.settings for each in describe_algorithms()} == {
        "basic-rl": (),
        "spibb": ("n_wedge",),
        "lower-spibb": ("n_wedge",),
        "spibb-2s": ("spibb_n_wedge", "delta=0.1"),
        "spibb-beta": ("spibb_n_wedge", "delta=0.1"),
        "exact-soft-spibb": soft("exact"),
        "approx-soft-spibb": soft("approx"),
        "lower-soft-spibb": soft("lower"),
        "advantage-soft-spibb": soft("advantage"),
        "one-step-exact-soft-spibb": soft("exact", iterate=False),
        "one-step-approx-soft-spibb": soft("approx", iterate=False),
        "ramdp": ("kappa",),
        "rmin": ("n_wedge",),
        "pessimistic-mbie": ("delta=0.1",),
        "duipi": ("xi", "estimator='bayesian'"),
        "robust-mdp": ("delta=0.1",),
        "vi-lcb": ("delta=0.1", "scale=1.0"),
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
    (found,) = describe_algorithms("lower-spibb")
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


def problem_of(counts):
    return uniform_problem(counts, 0.5, (-7.0, 9.0))


@pytest.mark.parametrize(
    "algorithm", [SPIBB(0), SoftSPIBB(epsilon=1.0, step="approx"), RaMDP(kappa=0.1), BasicRL()]
)
def test_what_an_algorithm_finds_has_the_values_of_pairs_in_the_estimated_mdp(algorithm):
    counts = Counts.from_dense([[[3, 1], [0, 9]], [[0, 2], [5, 5]]], rewards=[[1.0, 0], [0, 2.0]])
    problem = problem_of(counts)
    plan, tables = algorithm.improve(problem).plan, problem.estimate().dense()
    q = tables.R + 0.5 * tables.P @ plan.value
    np.testing.assert_allclose(counts.pairs.dense(plan.q), q, rtol=1e-12)


def test_a_policy_from_elsewhere_is_an_improvement_as_it_is():
    problem = problem_of(Counts.from_dense([[[4, 0]], [[3, 0]]], rewards=[[1.0], [3.0]]))
    found = surestep.improvement_of(problem, problem.behavior)
    assert found.policy is problem.behavior
    assert found.plan.value == pytest.approx([2.0, 4.0])  # 1/(1 − ½), and 3 + ½ · 2
    assert (found.plan.iterations, found.n_wedge) == (0, None)
    made = improvement_of(problem, problem.behavior, 5, 2)
    assert (made.plan.iterations, made.n_wedge) == (5, 2)
    with pytest.raises(ShapeMismatch, match=r"the problem .* the policy"):
        surestep.improvement_of(problem, Policy.uniform(Pairs.full(3, 3)))
    for wrong in ([[1.0]], found):
        with pytest.raises(InvalidParameter, match=r"policy is of type \w+, expected Policy"):
            surestep.improvement_of(problem, wrong)


def test_ties_are_a_share_of_the_largest_value_and_twice_as_much_is_none():
    q = np.array([0.0, 0.0, -8.0])
    tie = tie_of(q)
    assert tie_of(q / 2) == tie / 2 > 0
    counts = Counts.from_dense([[[5], [5], [5]]], rewards=[[0.0, 0.0, 0.0]])
    step = SoftSPIBB(epsilon=1e3).step_in(problem_of(counts))
    q[1] = 2 * tie
    assert step(q).tolist() == [0.0, 1.0, 0.0]
    q[1] = tie / 8  # so near, the lowest action that π_b takes keeps what it has
    assert step(q)[0] > 0
