"""Checks of a result: each fails where it should, and not at the border."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from support.claims import failing
from surestep import Certificate, FiniteMDP, Pairs
from surestep._json import typed
from surestep.checks import Check, failed
from surestep.checks.check import GivenResult
from surestep.checks.running import check_result
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model.statements import Statement
from surestep.pipeline.checks import compared_gain, given_policy, in_open_bins
from surestep.results.findings import PolicyTable
from surestep.results.record import Baseline

HOURS = Binning(edges=(1.0, 2.0))
BELOW, BETWEEN, ABOVE = (HOURS.label(i) for i in range(3))


def table_of(states=((BETWEEN,),), probability=(0.9, 0.1), behavior=(0.5, 0.5), **changes):
    """States of a binned column with two actions, of which π_I prefers the first."""
    number = len(states)
    vocabulary = Vocabulary(("hours",), ("act",), states, (("a",), ("b",)), {"hours": HOURS})
    pairs = Pairs.full(number, 2)
    nothing = np.zeros(pairs.num_pairs)
    usual = PolicyTable(
        vocabulary,
        pairs,
        np.tile(probability, number),
        np.tile(behavior, number),
        np.full(pairs.num_pairs, 50),
        None,
        nothing,
        nothing,
        np.zeros(number, np.bool_),
        np.full(pairs.num_pairs, 50),
        nothing,
        nothing,
        None,
    )
    return replace(usual, **changes)


def claim(lower=0.5, standing="proved", kind="stitched", assumptions=("One.",)):
    return Certificate(
        kind=kind, standing=standing, lower=lower, delta=0.1, span=10.0, assumptions=assumptions,
        parameters={}, figures={},
    )  # fmt: skip


BASELINE = Baseline(
    mean=2.0, low=1.5, high=2.5, episodes=100, cut_off=0, least=0.0, greatest=3.0, model=2.0,
    model_episodes=100,
)  # fmt: skip


def gaining(gain, of_all=None):
    whole = {} if of_all is None else {"gain_of_all": of_all}
    return {"behavior": 0.0, "policy": gain, **whole}


def model_of(table):
    """A model whose episodes of one step spend as much time in every state."""
    shares = np.full(table.pairs.num_states, 1 / table.pairs.num_states)
    nothing = np.zeros((shares.size, table.pairs.num_actions))
    return FiniteMDP.from_dense(nothing[..., None] * shares, nothing, 0.9, shares)


def failures(table=None, certificates=None, *, baseline=BASELINE, estimates=None, vary=False):
    """The checks that fail, for a result in which all is well but for the changes."""
    table = table_of() if table is None else table
    certificates = (claim(),) if certificates is None else certificates
    result = GivenResult(
        certificates=certificates,
        gain=compared_gain(estimates or gaining(1.0)),
        returns=baseline and (baseline.least, baseline.greatest),
        gap=baseline and baseline.gap(0.0),
        rewards_vary=vary,
        policy=given_policy(table, model_of(table)),
        practice="behavior-given",
        causes="no-claim",
    )
    found = failed(check_result(result))
    for each in found:
        assert typed(json.loads(json.dumps(asdict(each))), Check) == each
    return found


def test_where_all_is_well_nothing_is_said():
    assert failures() == []
    assert failures(baseline=None) == []
    nothing = claim(None, "none", "no-claim")
    assert failures(certificates=(nothing,)) == []
    assert failures(certificates=(nothing, claim(-3.0))) == []
    unchanged = table_of(probability=(0.5, 0.5))
    assert given_policy(unchanged, model_of(unchanged)) is None  # nor is anything asked of it


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_claim_above_the_estimate(number):
    """Whichever certificate claims it."""
    claims = [claim(0.1), claim(-2.0, "posterior", "posterior"), claim(None, "none", "no-claim")]
    claims[number] = claim(0.75)
    (found,) = failures(certificates=claims, estimates=gaining(0.5))
    assert found == failing("claim-above-estimate", claim=0.75, estimate=0.5)


@pytest.mark.parametrize(
    ("lower", "gains", "above"),
    [
        (0.75, (0.75,), None),
        (0.75, (0.75 * (1 - 1e-12),), None),
        (0.75, (0.5, 0.8), None),  # the larger of both estimates counts
        (0.75, (0.8, 0.5), None),
        (0.75, (0.5, 0.6), 0.6),
        (-0.1, (-0.5,), None),  # who claims no gain is not above an estimated loss
        (0.0, (-0.5,), None),
        (0.1, (-0.5,), -0.5),
    ],
)
def test_where_a_claim_is_above_the_estimate(lower, gains, above):
    found = failures(certificates=(claim(lower),), estimates=gaining(*gains))
    assert [each.figures for each in found] == [
        {"claim": lower, "estimate": above} for _ in range(above is not None)
    ]


@pytest.mark.parametrize(
    ("least", "greatest", "most"),
    [(0.0, 3.0, 3.0), (1.0, 3.0, 3.0), (-2.0, 3.0, 5.0), (-4.0, -1.0, 4.0), (0.0, 0.0, 0.0)],
)
def test_a_claim_above_what_any_episode_earned(least, greatest, most):
    """Who only pays can gain all of it, and no more."""
    seen = replace(BASELINE, least=least, greatest=greatest)
    (found,) = failures(certificates=(claim(most + 1e-6),), estimates=gaining(9.0), baseline=seen)
    figures = {"claim": most + 1e-6, "low": least, "high": greatest}
    assert found == failing("claim-above-returns", **figures)
    assert failures(certificates=(claim(most),), estimates=gaining(9.0), baseline=seen) == []


def test_only_columns_with_edges_have_open_bins():
    states = ((BELOW,), (BETWEEN,), (ABOVE,))
    assert in_open_bins(table_of(states).vocabulary).tolist() == [True, False, True]
    words = Vocabulary(
        ("hours", "kind"), ("act",), ((ABOVE, "x"), (BETWEEN, ABOVE)), (("a",),),
        {"hours": HOURS},
    )  # fmt: skip
    assert in_open_bins(words).tolist() == [True, False]
    widths = replace(words, binnings={"hours": Binning(width=1.0)}, states=(("[2, 3)", "x"),))
    assert in_open_bins(widths).tolist() == [False]


def test_a_gap_between_the_model_and_the_episodes():
    far = replace(BASELINE, model=4.0)
    assert failures(baseline=far) == [failing("baseline-gap", model=4.0, low=1.5, high=2.5)]
    assert failures(baseline=replace(BASELINE, model=2.5)) == []


def test_a_gain_that_is_claimed_for_states_where_whoever_acted_saw_more():
    hidden, seen = Statement("no-hidden-causes"), Statement("acted-on-more")
    for first, second, fires in (
        (claim(assumptions=(hidden, seen)), claim(-1.0), True),
        (claim(-1.0), claim(0.1, "posterior", "posterior", (seen, hidden)), True),
        (claim(assumptions=(hidden,)), claim(-1.0, assumptions=(seen, hidden)), False),
        (claim(kind="trajectory", assumptions=(seen,)), claim(-1.0), False),  # allows for them
    ):
        assert failures(certificates=(first, second)) == [failing("acted-on-more")] * fires


def test_rewards_that_vary_where_a_claim_takes_them_for_exact():
    claims = (claim(-1.0), claim(0.1, "as-published", "a-priori"))
    assert failures(certificates=claims, vary=True) == [failing("rewards-vary")]
    assert failures(certificates=claims) == []
    silent = (claim(), claim(0.0, "as-published", "a-priori"))
    assert failures(certificates=silent, vary=True) == []


@pytest.mark.parametrize(
    ("visits", "behavior", "probability", "fires"),
    [
        ((9, 50), 0.1, 1.0, True),
        ((10, 50), 0.1, 1.0, False),
        ((49, 951), 0.1, 1.0, True),  # 4.9 of 100
        ((50, 950), 0.1, 1.0, False),
        ((9, 50), 0.1, 0.5, True),
        ((9, 50), 0.1, 0.49, False),  # no first place
        ((9, 50), 0.75, 1.0, False),  # nor a new one
        ((9, 50), 0.74, 1.0, True),
    ],
)
def test_a_first_place_on_few_decisions(visits, behavior, probability, fires):
    found = failures(
        table_of(
            probability=(probability, 1 - probability),
            behavior=(behavior, 1 - behavior),
            visits=np.array(visits),
        )
    )
    figures = {"situations": 1, "visits": visits[0], "decisions": sum(visits)}
    assert found == [failing("first-on-few", **figures)] * fires


def test_first_places_on_few_decisions_are_counted_by_situation():
    """Two new first places of one state are one situation; the worst of all is told."""
    states = ((BELOW,), (BETWEEN,), (ABOVE,))
    visits = np.array([8, 70, 3, 60, 0, 90])
    some = table_of(states, (0.9, 0.1), (0.1, 0.9), visits=visits)
    quiet = replace(some, quiet=np.array([False, False, True]))
    (found,) = failures(quiet)
    assert found.figures == {"situations": 2, "visits": 3, "decisions": 63}
    vocabulary = replace(some.vocabulary, actions=(("a",), ("b",), ("c",)), states=((BETWEEN,),))
    both = replace(
        some,
        vocabulary=vocabulary,
        pairs=Pairs.full(1, 3),
        probability=np.array([0.5, 0.5, 0.0]),
        behavior=np.array([0.1, 0.1, 0.8]),
        visits=np.array([4, 5, 91]),
        held_out_visits=np.array([4, 5, 91]),
        quiet=np.array([False]),
    )
    (found,) = failures(both)
    assert found.figures == {"situations": 1, "visits": 4, "decisions": 100}
