"""What a plan expects of a bet, which plan is taken, and what a claim tells of it, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.certificates import Stitched, stitched, stitched_plans
from surestep.certificates.stacks import Draw, Rounds
from surestep.certificates.stitched import Folds
from surestep.certificates.stitched_plans import (
    Bet,
    Plan,
    bet_on,
    least_of,
    most_rounds,
    plan_at,
    span_of,
)
from surestep.errors import RefutedBounds
from surestep.kernels.stitched import BOTH, OURS, THEIRS

COURSE = SimpleNamespace(limits=(0.0, 2.0), discount=0.5, start_chances=np.empty(0))
STACKS = SimpleNamespace(sizes=np.array([3, 0, 1]), starts=np.zeros(7, int))
UNPLANNED = Bet(BOTH, 0.1, None, 0.0, 0.0)


def planned(values, ratio):
    """The bet that is planned where the rounds of fold 1 give these values [runs, rounds]."""
    values = np.array(values)
    complete = np.full(values.shape[0], values.shape[1])
    return bet_on(Rounds(values, complete, np.zeros_like(complete)), COURSE, ratio, UNPLANNED)


def test_the_limit_to_be_expected_is_that_of_the_stake():
    bet = planned([[0.0, 1.0] * 500, [1.0, 0.0] * 500], 1.5)
    number, variance, goal = 1500.0, 0.25, math.log(30.0)
    stake = math.sqrt(2 * goal / (number * variance))
    assert bet.stake == pytest.approx(stake)
    assert bet.score == pytest.approx(0.5 - goal / (stake * number) - stake * variance / 2)


def test_a_stake_is_no_larger_than_what_may_be_lost_and_a_spread_no_smaller():
    # Equal values count as spread by 1e-3 of the range.
    bet = planned([[1.0] * 20], 1.0)
    goal, capped = math.log(30.0), 0.99 / 3.0
    assert bet.stake == pytest.approx(math.sqrt(2 * goal / (20 * 2e-3**2)))
    assert bet.score == pytest.approx(1.0 - goal / (capped * 20) - capped * 2e-3**2 / 2, rel=1e-8)


def test_without_rounds_the_least_is_expected():
    bet = planned(np.zeros((2, 0)), 1.0)
    assert (bet.stake, bet.score) == (0.0, pytest.approx(-2.0 - 2e-9, abs=1e-12))


@pytest.mark.parametrize(("who", "least"), [(BOTH, -5.0), (OURS, -3.0), (THEIRS, -2.0)])
def test_the_least_of_a_round_is_a_little_less_for_rounding(who, least):
    course = SimpleNamespace(limits=(-3.0, 2.0))
    assert least_of(who, course) == pytest.approx(least - 3e-9, abs=1e-12)
    assert span_of(course) == pytest.approx(5.0 + 3e-9, abs=1e-12)


def planned_at(monkeypatch, score):
    """The bets of a plan where fold 1 expects `score(bet)`, and all that it looked at."""
    asked, looked_at = [], []

    def roll_out_each(stacks, course, readable, ways, draw):
        asked.append((readable.tolist(), draw))
        return [*ways]

    def bet_on(way, course, ratio, bet):
        looked_at.append(bet)
        assert (way, ratio) == ((bet.who, bet.horizon), 1.5)
        return bet._replace(score=score(bet))

    monkeypatch.setattr(stitched_plans, "roll_out_each", roll_out_each)
    monkeypatch.setattr(stitched_plans, "bet_on", bet_on)
    bets = plan_at(STACKS, COURSE, 1.5, 0.1, 5).bets
    assert asked == [([True, False, True], Draw(5, 1, BOTH, 4, 7))]
    return bets, looked_at


def scored(monkeypatch, scores):
    """The bets of a plan where fold 1 expects so much of BOTH, OURS and THEIRS."""
    return planned_at(monkeypatch, lambda bet: scores[bet.who])[0]


def test_policies_are_rolled_out_apart_where_that_promises_clearly_more(monkeypatch):
    # 3 % of a range of 2, and a little.
    (both,) = scored(monkeypatch, [1.0, 0.53, 0.53])
    assert (both.who, both.delta) == (BOTH, 0.1)
    apart = scored(monkeypatch, [1.0, 0.53, 0.531])
    assert [bet.who for bet in apart] == [OURS, THEIRS]
    assert [bet.delta for bet in apart] == pytest.approx([0.075, 0.025])
    equal = 0.03 * span_of(COURSE)
    assert len(scored(monkeypatch, [0.0, equal, 0.0])) == 1


def test_the_best_horizon_of_each_is_taken(monkeypatch):
    best = {BOTH: 6.0, OURS: 7.0, THEIRS: 99.0}

    def score(bet):
        return (bet.who != BOTH) - abs((bet.horizon or 99) - best[bet.who])

    (ours, theirs), asked = planned_at(monkeypatch, score)
    assert (ours.horizon, theirs.horizon) == (7, None)
    assert asked == [
        Bet(who, pytest.approx(delta), horizon, 0.0, 0.0)
        for who, delta in ((BOTH, 0.1), (OURS, 0.075), (THEIRS, 0.025))
        for horizon in (2, 4, 6, 7, 10, None)
    ]


@pytest.mark.parametrize(("gain", "robust"), [(-0.1, False), (0.0, False), (0.1, True)])
def test_robust_tails_are_taken_where_they_promise_more_at_their_smaller_level(
    gain, robust, monkeypatch
):
    asked = []

    def plan_at(stacks, course, ratio, delta, seed):
        asked.append((course.tails, delta))
        return Plan((UNPLANNED._replace(score=1.0 + gain * (course.tails == "robust")),))

    class Tailed(SimpleNamespace):
        def _replace(self, tails):
            return Tailed(tails=tails)

    monkeypatch.setattr(stitched, "plan_at", plan_at)
    certifier, course = Stitched(delta=0.1, tails=0.2), Tailed(tails="plain")
    assert not certifier.plan(STACKS, course, 1.0, None).robust
    assert certifier.plan(STACKS, course, 1.0, "robust").robust is robust
    assert asked == [("plain", 0.1), ("plain", 0.1), ("robust", pytest.approx(0.08))]


def test_robust_sets_are_for_small_models_with_a_discount():
    def may(num_pairs=5_000, discount=0.5, tails=0.2):
        pairs = SimpleNamespace(num_pairs=num_pairs)
        problem = SimpleNamespace(counts=SimpleNamespace(pairs=pairs), single_discount=discount)
        return Stitched(tails=tails).may_have_tails(problem)

    assert may()
    assert not any([may(num_pairs=5_001), may(discount=1.0), may(tails=0.0)])


def test_a_robust_set_has_its_share_of_the_level_and_the_rewards_that_are_given(monkeypatch):
    terms = []
    monkeypatch.setattr(stitched, "uncertainty_of", lambda _, given: terms.append(given))
    monkeypatch.setattr(Stitched, "may_have_tails", lambda *_: True)
    for ends in ((0.0, 0.0), (-2.0, 3.0), (None, None)):
        certifier = Stitched(delta=0.1, tails=0.25, reward_low=ends[0], reward_high=ends[1])
        with pytest.raises(AttributeError):
            certifier.robust_tails(None, None)
    assert [given.reward_range for given in terms] == [(0.0, 0.0), (-2.0, 3.0), None]
    assert {given.delta for given in terms} == {0.025}


@pytest.mark.parametrize(("steps", "starts", "most"), [(9, 5, 5), (200_000, 150_000, 100_000)])
def test_a_run_has_as_many_rounds_as_starts_or_as_steps(steps, starts, most):
    stacks = SimpleNamespace(sizes=np.array([steps - 1, 1]), starts=np.zeros(starts, int))
    assert most_rounds(stacks, COURSE) == most
    known = SimpleNamespace(start_chances=np.ones(1))
    assert most_rounds(stacks, known) == min(steps, 100_000)


def test_24_runs_certify_with_numbers_of_their_own(monkeypatch):
    draws, given = [], [np.array([[-2.0]])]

    def roll_out(stacks, course, readable, horizon, draw):
        draws.append(draw)
        return Rounds(given[-1], np.ones(1, int), np.zeros(1, int))

    monkeypatch.setattr(stitched, "roll_out", roll_out)
    Stitched(seed=5).rounds(STACKS, COURSE, np.ones(3, bool), UNPLANNED)
    assert draws == [Draw(5, 2, BOTH, 24, 7)]
    given.append(np.array([[-2.1]]))
    with pytest.raises(RefutedBounds, match=r"come to -2.1, but returns between 0.0 and 2.0 allow"):
        Stitched(seed=5).rounds(STACKS, COURSE, np.ones(3, bool), UNPLANNED)


def small_problem():
    """Two states and actions; three of four episodes start in state 0."""
    counts = Counts.from_dense(
        np.ones((2, 2, 2), int), rewards=np.zeros((2, 2)), starts=np.array([3, 1])
    )
    return Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.5, value_bounds=(-1.0, 3.0)
    )


def test_a_known_start_is_that_of_the_counts():
    assert Stitched(known_start=True).initial(small_problem()).tolist() == [0.75, 0.25]
    assert Stitched().initial(small_problem()) is None


@pytest.mark.parametrize(
    ("number", "complete", "cuts", "figures"),
    [
        # 2 rollouts in each of 4 rounds of the two runs, of which 3 were cut.
        (1, [3, 1], [2, 1], {"paired": True, "cut_share": 3 / 8, "estimate": 0.25}),
        # One rollout in each of 4 rounds of either policy.
        (2, [3, 1], [2, 1], {"paired": False, "cut_share": 6 / 8, "estimate": 0.5}),
        (1, [0, 0], [0, 0], {"paired": True, "cut_share": 0.0, "estimate": None}),
    ],
)
def test_a_claim_tells_how_its_rounds_went(number, complete, cuts, figures, monkeypatch):
    bets = (Bet(BOTH, 0.1, 4, 0.5, 0.0), Bet(THEIRS, 0.1, None, 0.5, 0.5))[:number]
    rounds = Rounds(np.full((2, 5), 0.25), np.array(complete), np.array(cuts))
    seen = []

    def judged(self, stacks, course, readable, bet):
        seen.append(readable.tolist())
        return rounds

    monkeypatch.setattr(stitched, "stacks_of", lambda _: STACKS)
    monkeypatch.setattr(stitched, "known_ends", lambda *_: np.zeros(2, bool))
    monkeypatch.setattr(Stitched, "plan", lambda *_: Plan(bets))
    monkeypatch.setattr(Stitched, "rounds", judged)
    problem, first = small_problem(), Policy.deterministic(small_problem().counts.pairs, [0, 0])
    lower, found = Stitched(tails=0.0).claim(problem, first, Folds(None, None, 1.0))
    assert seen == [[True, False, True]] * number
    assert -4.0 <= lower < 0.25 * number
    assert found == figures | {
        "robust_tails": False,
        "rounds": np.mean(complete),
        "behavior_rounds": np.mean(complete),
        "horizon": 4,
        "behavior_horizon": 4 if number == 1 else None,
        "expected": 0.0 if number == 1 else 0.5,
    }
