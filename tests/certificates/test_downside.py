"""The worst share of returns: against the exact mean of the worst, and by simulation."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from support.failures import allowed_failures
from support.logs import one_step_log
from support.problems import logged_problem
from surestep import Pairs, Policy, certify
from surestep.certificates import Stitched
from surestep.certificates.downside import worst_mean
from surestep.certificates.stitched import judging_of
from surestep.kernels.stitched import OURS, THEIRS

PAIRS = Pairs.full(2, 2)
BEHAVIOR = Policy(PAIRS, [0.5, 0.5, 0.5, 0.5])
SECOND = Policy(PAIRS, [0.0, 1.0, 0.5, 0.5])
TENTH = Stitched(series=1, train_share=0.3, worst_share=0.1)


def one_step(action, reward):
    """Episodes of one decision, each over after it, with rewards from 0 to 1."""
    return logged_problem(one_step_log(PAIRS, action, reward), 1.0, (0.0, 1.0), BEHAVIOR)


def figures(problem, certifier=TENTH):
    """The figures about the worst share."""
    return judging_of(certifier, problem, SECOND).worst_figures()


@given(
    returns=st.lists(st.integers(-8, 8), min_size=1, max_size=12),
    tenths=st.integers(1, 10),
    who=st.sampled_from([OURS, THEIRS]),
)
def test_the_band_is_the_worst_of_all_distributions_in_it(returns, tenths, who):
    """The integral of the quantiles, moved by ε, is added up piece by piece in rationals."""
    rising, share = sorted(returns), Fraction(tenths, 10)
    delta, size = 0.05, len(returns)
    band = Fraction(math.sqrt(math.log(1 / delta) / (2 * size)))
    shift = -band if who == OURS else band
    inner = {Fraction(i, size) - shift for i in range(size + 1)}
    edges = sorted({Fraction(0), share} | {edge for edge in inner if 0 < edge < share})
    total = Fraction(0)
    for low, high in itertools.pairwise(edges):
        place = (low + high) / 2 + shift
        value = -9 if place < 0 else 9 if place > 1 else rising[math.ceil(place * size) - 1]
        total += (high - low) * value
    found = worst_mean(np.array(rising, float), float(share), delta, (-9.0, 9.0), who=who)
    assert found == pytest.approx(float(total / share), abs=1e-12)


@pytest.mark.parametrize(
    "world",
    ["skewed", "rare", *(pytest.param(w, marks=pytest.mark.slow) for w in ("none", "small"))],
)
@pytest.mark.parametrize("logs", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_claims_of_the_worst_tenth_are_wrong_at_most_as_often_as_said(world, logs):
    """A claim that fails with δ exceeds the allowed number once in 10⁶ tests."""
    rng, delta, wrong, said = np.random.default_rng(7), 0.1, 0, 0
    law = {  # of rewards by action: values, and their chances
        "none": ([0, 0.5, 1], [[0.1, 0.4, 0.5]] * 2),
        "small": ([0, 0.5, 1], [[0.1, 0.4, 0.5], [0.08, 0.42, 0.5]]),
        "skewed": ([0, 0.9, 1], [[0.05, 0.0, 0.95], [0.0, 1.0, 0.0]]),
        "rare": ([0, 0.5, 1], [[0.004, 0.996, 0.0], [0.002, 0.0, 0.998]]),
    }
    values, chances = law[world]
    worst = [exact_worst(values, 0.1, each) for each in (np.mean(chances, axis=0), chances[1])]
    for _ in range(logs):
        action = rng.integers(2, size=1500)
        drawn = [rng.choice(values, 1500, p=each) for each in chances]
        lower = figures(one_step(action, np.where(action == 0, *drawn)))["worst_lower"]
        said += lower is not None
        wrong += lower is not None and lower > worst[1] - worst[0]
    assert said > 0.9 * logs
    assert wrong <= allowed_failures(logs, delta)


def exact_worst(values, share, chances):
    """The mean of the worst share of a discrete law."""
    left, total = share, 0.0
    for value, chance in zip(values, chances, strict=True):
        taken = min(left, chance)
        total, left = total + taken * value, left - taken
    return total / share


def test_nothing_is_said_where_the_log_lacks_rounds():
    """All rounds that fold 1 asked for, or none: a log that stops early may not shorten them."""
    rng = np.random.default_rng(0)
    action = np.append(rng.integers(2, size=90), np.zeros(210, int))  # no more second actions
    found = figures(one_step(action, rng.random(300)))
    assert found["worst_lower"] is None
    assert found["worst_rounds"] > 0


def test_a_certificate_has_the_claim_where_it_is_asked_for():
    """Without a worst share, nothing changes; with one, the figures say it, and L is the same."""
    rng = np.random.default_rng(1)
    problem = one_step(rng.integers(2, size=2000), rng.random(2000))
    plain = certify(problem, SECOND, "stitched:series=8")
    asked = certify(problem, SECOND, "stitched:series=8,worst_share=0.2")
    assert not any(name.startswith("worst") for name in plain.figures)
    assert asked.lower == plain.lower
    assert -1 <= asked.figures["worst_lower"] < 0.5


def from_then(early, late, reward_early=0.5, reward_late=0.5):
    """A log whose first three tenths, which plan, have these actions and rewards, and the rest."""
    action = np.append(np.resize(early, 600), np.resize(late, 1400))
    return one_step(action, np.repeat([reward_early, reward_late], (600, 1400)))


def test_what_the_planning_part_never_shows_is_not_read():
    """The rest of the log has the second action in plenty; a round counts with the least return."""
    found = figures(from_then([0], [0, 1], reward_late=1.0))
    assert found["worst_policy"] == 0.0
    assert found["worst_rounds"] > 100
    assert found["worst_behavior"] is not None


def test_what_the_planning_part_shows_once_is_read():
    assert figures(from_then([1, *[0] * 599], [0, 1])) == {"worst_lower": None, "worst_rounds": 0}


def test_returns_are_those_of_the_judging_part():
    """The planning part earns nothing, the rest 1: all but the width of the band."""
    found = figures(from_then([0, 1], [0, 1], 0.0, 1.0))
    assert 0.2 < found["worst_policy"] < found["worst_behavior"] == 1.0
    assert figures(from_then([0, 1], [0, 1], 1.0, 0.0))["worst_policy"] == 0.0


def test_the_seed_draws_the_rounds():
    rng = np.random.default_rng(4)
    problem = one_step(rng.integers(2, size=2000), rng.random(2000))
    drawn = {figures(problem, replace(TENTH, seed=seed))["worst_behavior"] for seed in range(4)}
    assert len(drawn) == 4
