"""What terms say of the split and of the floor, where nobody said anything and where one did."""

from dataclasses import replace

import pytest

from surestep.algorithms import SPIBB, BasicRL
from surestep.certificates import Posterior, Robust, Stitched
from surestep.description import DEFAULTS
from surestep.errors import InvalidParameter
from surestep.model.known import Known, Ranges
from surestep.pipeline.terms import SEED, Terms

EXACT = Known(single=Ranges((0.0, 1.0), (0.0, 0.0)), transitions=10)


def terms(*certificates, **said):
    return Terms.of(discount=0.9, certificates=certificates or None, **said)


@pytest.mark.parametrize(
    ("certificates", "splits"),
    [
        ((), True),
        (("robust",), False),
        (("robust", "a-priori"), False),
        (("robust", "posterior"), True),
        (("robust", "posterior:train_share=0"), False),
        (("posterior:train_share=0", "trajectory"), True),
        ((Posterior(),), False),
        ((Posterior(train_share=0.2),), True),
        ((Robust(), Stitched(train_share=0.5)), True),
    ],
)
def test_the_log_is_split_where_a_kind_holds_out(certificates, splits):
    given = terms(*certificates)
    assert given.splits is splits
    for name in ("train_share", "logger"):
        assert (name in given.defaults()) is splits
    assert not replace(given, has_episodes=False).splits


@pytest.mark.parametrize(
    ("certificates", "said", "share", "logger"),
    [
        ((), {}, 0.3, "adaptive"),
        ((), {"train_share": 0.6, "logger": "fixed"}, 0.6, "fixed"),
        (("stitched:train_share=0.4", "posterior"), {}, 0.4, "adaptive"),
        (("stitched", "posterior:train_share=0.4"), {}, 0.4, "adaptive"),
        (("stitched:logger=fixed", "posterior"), {}, 0.3, "fixed"),
        # Of a kind that looks at all nothing follows for the others.
        (("stitched", "posterior:train_share=0,logger=fixed"), {}, 0.3, "adaptive"),
    ],
)
def test_what_is_said_of_one_kind_holds_for_all(certificates, said, share, logger):
    given = terms(*certificates, **said)
    told = given.certifier_settings(EXACT)
    assert tuple(told.split) == (share, logger)
    held_out = [
        made
        for made in (asked.make_with(told) for asked in given.asked)
        if getattr(made, "train_share", 0) > 0
    ]
    assert {(made.train_share, made.logger) for made in held_out} == {(share, logger)}


def test_what_the_data_are_settles_the_rest():
    given = terms()
    assert [asked.kind for asked in given.asked] == ["stitched", "posterior", "robust"]
    told = given.certifier_settings(EXACT)
    assert [asked.make_with(told).seed for asked in given.asked[:2]] == [SEED, SEED]
    counted = replace(terms(), has_episodes=False)
    assert [asked.kind for asked in counted.asked] == ["robust"]
    assert counted.certifier_settings(EXACT).split is None
    for name, value in (("train_share", 0.5), ("logger", "fixed")):
        with pytest.raises(InvalidParameter, match=f"{name} is given, but the data are no episode"):
            replace(terms(**{name: value}), has_episodes=False)


@pytest.mark.parametrize(
    ("said", "floor"),
    [
        ({}, DEFAULTS["least_visits"]),
        ({"least_visits": 3}, 3),
        ({"n_wedge": "auto", "least_visits": 3}, 3),
        ({"zeta": 0.5, "least_visits": 3}, 3),
        ({"algorithm": "basic-rl"}, DEFAULTS["least_visits"]),
        ({"algorithm": BasicRL(), "least_visits": 4}, 4),
        # An N∧ that is given wins.
        ({"n_wedge": 7}, None),
        ({"n_wedge": 7, "least_visits": 30}, None),
        ({"algorithm": "spibb:n_wedge=7"}, None),
        ({"algorithm": SPIBB(n_wedge=7)}, None),
    ],
)
def test_the_floor(said, floor):
    given = terms(**said)
    assert given.floor == floor
    usual = "least_visits" not in said and floor is not None
    assert ("least_visits" in given.defaults()) is usual


@pytest.mark.parametrize(
    ("kind", "transitions", "draws"),
    [
        ("posterior", 20_000, 1000),
        ("posterior", 20_001, 300),
        ("posterior", 100_001, 99),
        ("posterior", 200_001, 29),
        ("posterior:delta=0.03", 200_001, 99),
        ("posterior:delta=0.01", 100_001, 300),
        ("posterior:draws=50", 20_001, 50),
        ("posterior:delta=0.0034", 20_001, 300),
        ("posterior:delta=0.0033", 20_001, 1000),  # 300 would not show what happens so rarely
    ],
)
def test_a_wide_problem_draws_fewer_models_unless_told_otherwise(kind, transitions, draws):
    given = terms(kind)
    told = given.certifier_settings(EXACT._replace(transitions=transitions))
    assert given.asked[0].make_with(told).draws == draws
