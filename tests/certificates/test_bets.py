"""Bets against a mean: capitals by going through their series, and where enough of them are won.

What a plan expects of a bet, which plan is taken, and what a claim tells of it, by hand.
"""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from support.bets import lower_limit, lower_limit_in_turn
from support.problems import uniform_problem
from surestep import Counts
from surestep._arrays import offsets_of
from surestep.certificates import Posterior, Stitched, bets, stitched
from surestep.certificates.bets import (
    ONE_OF,
    READ_AT_LAST,
    Bet,
    BetPlan,
    Fold,
    Levels,
    bets_alone,
    bets_in_turn,
    case_of,
    kinds_of,
    least_of,
    limits_of,
    log_goal,
    on_one_mean,
    plans_at,
    span_of,
    stake_for,
)
from surestep.certificates.stacks import Tallied, Tallies, Way
from surestep.certificates.stitched import (
    Planning,
    check_rounds,
    course_for,
    figures_of,
    first_part,
    grown,
    may_have_tails,
    plans_of,
    robust_tails,
)
from surestep.errors import RefutedBounds
from surestep.kernels.stitched import BOTH, OURS, THEIRS, Course, Stacks, Turns, along_cell
from surestep.model.known import Known

DELTA, LEAST = 0.2, -1.0
COURSE = Course(*[None] * 8)._replace(
    limits=(0.0, 2.0), discount=0.5, start_chances=np.empty((0, 2))
)
STACKS = SimpleNamespace(sizes=np.array([3, 0, 1]), starts=np.zeros(7, int))


def is_refuted(series, complete, stake, mean):
    """Whether, betting on more, one in q of the first t series reach q/δ, t from half of all on."""
    capped, won = min(stake, 0.99 / (mean - LEAST)), 0
    for t, (values, number) in enumerate(zip(series, complete, strict=True), 1):
        capitals = np.cumprod(1 + capped * (values[:number] - mean))
        won += bool((capitals >= ONE_OF / DELTA * (1 + 1e-9)).any())
        if 2 * t >= len(series) and won >= t / ONE_OF:
            return True
    return False


@pytest.mark.parametrize("runs", [1, 4, 5, 8])
@pytest.mark.parametrize("stake", [0.2, 5.0])
def test_the_limit_is_where_one_in_some_first_series_reaches_its_goal(runs, stake):
    rng = np.random.default_rng(runs)
    series = rng.normal(1.0, 0.5, (runs, 80)).clip(LEAST)
    complete = rng.integers(40, 81, runs)
    series[:, 60:] += 50.0 * (np.arange(60, 80) >= complete[:, np.newaxis])  # of no account
    found = lower_limit(series, complete, stake, LEAST, DELTA)
    assert LEAST < found < 1.5
    assert is_refuted(series, complete, stake, found - 1e-9)
    assert not is_refuted(series, complete, stake, found + 1e-9)


def test_nothing_is_shown_by_nothing():
    series = np.full((3, 5), 7.0)
    assert lower_limit(series, np.zeros(3, int), 0.5, LEAST, DELTA) == LEAST
    assert lower_limit(series, np.array([5, 0, 0]), 0.5, LEAST, DELTA) > LEAST


def test_bets_of_two_halves_on_each_other_are_fair_but_not_their_product():
    # Two fair arms, tossed once in either half; each half bets on the arm that won in it.
    means = [Fraction(0)] * 3
    for outcome in itertools.product((0, 1), repeat=4):
        halves = (outcome[:2], outcome[2:])
        arms = [int(half[1] > half[0]) for half in halves]
        capital = [1 + Fraction(2 * halves[1 - i][arms[i]] - 1, 2) for i in (0, 1)]
        for i, value in enumerate((*capital, capital[0] * capital[1])):
            means[i] += value / 16
    assert means == [1, 1, Fraction(17, 16)]


LIMITS = (-1.0, 2.0)
TURNS = Turns(3, 0.8, 0.5, 0.2, 0.9, 0.4, 0.99, LIMITS)


def capital_of(values, turns, ours, theirs, number=float):
    """The largest capital that ever was against the two means, from its definition."""
    least, most = turns.limits
    caps = [number(turns.largest_share) / each for each in (ours - least, most - theirs)]
    stakes = [min(number(turns.ours), caps[0]), min(number(turns.theirs), caps[1])]
    alone = [min(number(turns.ours_alone), caps[0]), min(number(turns.theirs_alone), caps[1])]
    rest = (1 - number(turns.together)) / 2
    capitals, course = [number(turns.together), rest, rest], []
    for i, value in enumerate(values):
        side = int(i % turns.cycle > 0)
        won = value + theirs if side else value - ours
        capitals[0] *= 1 + stakes[side] * won
        capitals[1 + side] *= 1 + alone[side] * won
        course.append(sum(capitals))
    return course


def all_splits_refuted(series, complete, gain):
    """Whether for every mean of π_b of a grid one in q of some first series reach q/δ."""
    for theirs in np.linspace(*LIMITS, 400)[:-1]:
        won = 0
        if theirs + gain <= LIMITS[0]:
            continue
        for t, (values, number) in enumerate(zip(series, complete, strict=True), 1):
            course = capital_of(values[:number], TURNS, theirs + gain, theirs)
            won += max(course, default=0.0) >= ONE_OF / DELTA * (1 + 1e-9)
            if 2 * t >= len(series) and won >= t / ONE_OF:
                break
        else:
            return False
    return True


def values_in_turn(rng, runs, rounds):
    """Values of π_I around 1.2, and of π_b, counted with a minus, around 0.2."""
    ours, theirs = rng.uniform(0.9, 1.5, (runs, rounds)), -rng.uniform(-0.1, 0.5, (runs, rounds))
    return np.where(np.arange(rounds) % 3 == 0, ours, theirs)


def test_the_limit_in_turn_is_where_every_split_is_refuted():
    series, complete = values_in_turn(np.random.default_rng(1), 3, 60), np.array([60, 45, 50])
    found = lower_limit_in_turn(series, complete, TURNS, DELTA)
    assert 0.4 < found < 1.0
    assert all_splits_refuted(series, complete, found - 1e-6)
    # Cells are no smaller than 2⁻¹² of the range, and the grid of the oracle has gaps.
    assert not all_splits_refuted(series, complete, found + 2 * 3.0 / 2**12)


@given(
    stake=st.floats(0, 5),
    distance=st.floats(0.01, 4),
    width=st.floats(0, 4),
    place=st.floats(0, 1),
    value=st.floats(0, 8),
)
def test_the_factors_of_a_cell_lie_above_a_line(stake, distance, width, place, value):
    # A value and a mean so far above the least, the worst mean of the cell at its upper end.
    def factor(mean):
        return 1 + min(stake, 0.99 / mean if mean > 0 else np.inf) * (value - mean)

    worst, there = factor(distance), distance - place * width
    slope, shift = along_cell.py_func(stake, 0.99, distance, width)
    line = (1 - place) * np.log(worst) + place * np.log(slope * worst + shift)
    assume(there > 0 or stake * distance <= 0.99)  # a mean below the least needs no refuting
    assert np.log(factor(there)) >= line - 1e-12 * (1 + abs(line))


def test_the_line_of_a_constant_stake_is_none_for_a_stake_at_its_cap():
    # A value of 0, and means of 2 to 1 above it: a bet at its cap keeps 0.01 anywhere.
    slope, shift = along_cell.py_func(5.0, 0.99, 2.0, 1.0)
    assert slope * 0.01 + shift == pytest.approx(0.01)
    slope, shift = along_cell.py_func(0.4, 0.99, 2.0, 1.0)
    assert (slope, shift) == (1.0, 0.4)  # λw more, which would be too much there


@pytest.mark.parametrize("turns", [on_one_mean(0.3, -3.0), TURNS])
@pytest.mark.parametrize("delta", [DELTA, DELTA / 3])
def test_whether_a_gain_is_refuted_is_asked_without_a_search(turns, delta):
    series, complete = values_in_turn(np.random.default_rng(1), 3, 60), np.array([60, 45, 50])
    bet = Bet(series, complete, delta, turns)
    (found,) = limits_of([bet])
    asked = [found - 0.1, found - 0.01, found + 0.01, found + 0.1]
    answers = limits_of([bet._replace(at_least=gain) for gain in asked])
    assert answers == [*asked[:2], -3.0, -3.0]
    assert limits_of([bet._replace(at_least=-3.1), bet._replace(at_least=3.1)]) == [-3.0, -3.0]


def test_returns_at_their_greatest_leave_no_mean_to_try_first():
    values = np.tile([2.0, -2.0], (3, 20))  # both policies always get the most
    (found,) = limits_of([Bet(values, np.full(3, 40), DELTA, TURNS._replace(cycle=2))])
    assert -1.0 < found < 0.0


def test_nothing_is_shown_in_turn_by_nothing_or_by_one_policy_alone():
    series = values_in_turn(np.random.default_rng(1), 3, 60)
    assert lower_limit_in_turn(series, np.zeros(3, int), TURNS, DELTA) == pytest.approx(-3.0)
    of_theirs = np.where(np.arange(60) % 3 == 0, LIMITS[0], series)
    assert lower_limit_in_turn(of_theirs, np.full(3, 60), TURNS, DELTA) < -1.0


def test_the_capital_in_turn_has_the_mean_1_against_the_truth_and_falls_with_the_gain():
    # G is 2 with chance 1/3 and −1 else; G′ is 1 or 0: means 0 and 1/2, in rationals.
    outcomes = [(Fraction(2), Fraction(1, 3)), (Fraction(-1), Fraction(2, 3))]
    theirs = [(Fraction(-1), Fraction(1, 2)), (Fraction(0), Fraction(1, 2))]
    ours_mean, their_mean = Fraction(0), Fraction(1, 2)
    mean = [Fraction(0)] * 4
    for path in itertools.product(outcomes, theirs, theirs, outcomes):
        values, chance = [value for value, _ in path], math.prod(p for _, p in path)
        course = capital_of(values, TURNS, ours_mean, their_mean, Fraction)
        mean = [total + chance * each for total, each in zip(mean, course, strict=True)]
        worse = capital_of(values, TURNS, ours_mean + Fraction(1, 5), their_mean, Fraction)
        lower = capital_of(values, TURNS, ours_mean, their_mean - Fraction(1, 5), Fraction)
        assert all(a >= max(b, c) for a, b, c in zip(course, worse, lower, strict=True))
        assert course[-1] > max(worse[-1], lower[-1])
    assert mean == [1, 1, 1, 1]


def test_claims_in_turn_are_seldom_above_the_truth_and_not_never():
    # Two-point values in one series, which has to reach 8/δ = 16: one claim in 16 may be wrong.
    rng, number, wrong = np.random.default_rng(0), 300, 0
    turns = Turns(2, 0.8, 0.4, 0.4, 0.8, 0.8, 0.99, (0.0, 1.0))
    for _ in range(number):
        ours, theirs = rng.random((2, 50)) < np.array([[0.6], [0.4]])
        values = np.stack([ours, -1.0 * theirs], axis=1).reshape(1, 100)
        wrong += lower_limit_in_turn(values, np.array([100]), turns, 0.5) > 0.2
    # More than 42 of 300 at 1/16 have a chance of 10⁻⁶.
    assert 3 < wrong <= 42


def rounds_of(values, complete=None, cuts=None):
    """Rounds [runs, rounds] that are all there, if `complete` does not say otherwise."""
    values = np.array(values)
    runs, rounds = values.shape
    complete = np.full(runs, rounds) if complete is None else np.array(complete)
    return Tallied.empty(runs, 0)._replace(
        complete=complete, differences=values, cuts=np.zeros(runs, int) if cuts is None else cuts
    )


def tallies_of(values, who):
    """Rounds [runs, rounds] that are all there, in numbers: of one way in one case."""
    tallies = Tallies(*np.zeros((3, 1, 1, 2)))
    for kind, each in enumerate(kinds_of(who, rounds_of(values))):
        tallies.number[..., kind] = each.size / len(values)
        if each.size:
            tallies.mean[..., kind], tallies.variance[..., kind] = each.mean(), each.var()
    return tallies


def planned(values, ratio, who=BOTH):
    """The bet that is planned where the rounds of fold 1 give these values [runs, rounds]."""
    fold, tallies = Fold(STACKS, COURSE, ratio, 0.1), tallies_of(values, who)
    levels = Levels.of([fold])
    bets = bets_in_turn(levels, tallies) if who > OURS else bets_alone(levels, who, tallies)
    return bets.plan(fold, Way(who), (0, 0))


def test_the_limit_to_be_expected_is_that_of_the_stake():
    bet = planned([[0.0, 1.0] * 500, [1.0, 0.0] * 500], 1.5)
    number, variance, goal = 1500.0, 0.25, math.log(ONE_OF / 0.1)
    stake = math.sqrt(2 * goal / (number * variance))
    assert bet.turns.ours == pytest.approx(stake)
    assert bet.score == pytest.approx(0.5 - goal / (stake * number) - stake * variance / 2)


def test_a_stake_is_no_larger_than_what_may_be_lost_and_a_spread_no_smaller():
    # Equal values count as spread by 1e-3 of the range.
    bet = planned([[1.0] * 20], 1.0)
    goal, capped = math.log(ONE_OF / 0.1), 0.99 / 3.0
    assert bet.turns.ours == pytest.approx(math.sqrt(2 * goal / (20 * 2e-3**2)))
    assert bet.score == pytest.approx(1.0 - goal / (capped * 20) - capped * 2e-3**2 / 2, rel=1e-8)


def test_without_rounds_the_least_is_expected():
    bet = planned(np.zeros((2, 0)), 1.0)
    assert (bet.turns.ours, bet.score) == (0.0, pytest.approx(-2.0 - 2e-9, abs=1e-12))


@pytest.mark.parametrize(("who", "least"), [(BOTH, -5.0), (OURS, -3.0), (THEIRS, -2.0)])
def test_the_least_of_a_round_is_a_little_less_for_rounding(who, least):
    course = SimpleNamespace(limits=(-3.0, 2.0))
    assert least_of(who, course) == pytest.approx(least - 3e-9, abs=1e-12)
    assert span_of(course) == pytest.approx(5.0 + 3e-9, abs=1e-12)


def test_the_limit_to_be_expected_in_turn_is_that_of_both_stakes():
    # Of three rounds the first is of π_I, and gives 0.5 or 1.5; the others are of π_b.
    plan = planned([[0.5, -0.4, -0.6, 1.5, -0.6, -0.4] * 100], 2.0, who=3)
    lengths, variances = (400.0, 800.0), (0.25, 0.01)
    both = math.sqrt(2 * math.log(ONE_OF / 0.1) / (0.25 / 400 + 0.01 / 800))
    stakes = (both / 400, both / 800)  # which weigh both means alike
    turns = plan.turns
    assert (turns.cycle, turns.together) == (3, 0.8)
    assert (turns.ours, turns.theirs) == pytest.approx(stakes)
    alone = [stake_for(log_goal(0.1), n * v) for n, v in zip(lengths, variances, strict=True)]
    assert (turns.ours_alone, turns.theirs_alone) == pytest.approx(alone)
    assert turns.limits == (pytest.approx(-2e-9), pytest.approx(2.0 + 2e-9))
    factor, spread = stakes[0] * 400, 0.25 / 400 + 0.01 / 800
    goal = math.log(ONE_OF / 0.1 / 0.8)
    assert plan.score == pytest.approx(1.0 - 0.5 - goal / factor - factor * spread / 2)


def test_without_rounds_of_both_policies_do_not_take_turns():
    for values in (np.zeros((2, 0)), np.zeros((2, 1))):
        plan = planned(values, 1.0, who=2)
        assert plan.score == -math.inf


def test_rounds_in_turn_are_of_two_kinds():
    rounds = rounds_of(np.arange(10.0).reshape(2, 5), [5, 2])
    assert [kind.tolist() for kind in kinds_of(3, rounds)] == [
        [0.0, 3.0, 5.0],
        [1.0, 2.0, 4.0, 6.0],
    ]
    for who in (BOTH, OURS, THEIRS):
        (every,) = kinds_of(who, rounds)
        assert every.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(("gain", "robust"), [(-0.1, False), (0.0, False), (0.1, True)])
def test_robust_tails_are_taken_where_they_promise_more_at_their_smaller_level(
    gain, robust, monkeypatch
):
    asked = []

    def plans_at(folds, runs, *_):
        asked.extend((fold.course.tails, fold.delta) for fold in folds)
        return [
            BetPlan(Way(BOTH), fold, TURNS, 1.0 + gain * (fold.course.tails == "robust"))
            for fold in folds
        ]

    class Tailed(SimpleNamespace):
        def _replace(self, tails):
            return Tailed(tails=tails)

    monkeypatch.setattr(bets, "plans_at", plans_at)
    certifier, course = Stitched(delta=0.1, tails=0.2), Tailed(tails="plain")
    plans = plans_of(
        [Planning(certifier, STACKS, course, 1.0, tails) for tails in (None, "robust", None)]
    )
    assert [plan.fold.robust for plan in plans] == [False, robust, False]
    plain = ("plain", 0.1)
    assert asked == [plain, plain, ("robust", pytest.approx(0.08)), plain]


def test_robust_sets_are_for_small_models_with_a_discount():
    def may(num_pairs=5_000, discount=0.5, known=True, log=None, **settings):
        counts = SimpleNamespace(
            pairs=SimpleNamespace(num_pairs=num_pairs), rewards=SimpleNamespace(known=known)
        )
        problem = SimpleNamespace(counts=counts, single_discount=discount)
        return may_have_tails(Stitched(**settings), problem, log)

    assert may()
    assert may(known=False, reward_low=0.0, reward_high=0.0)
    assert not any([may(num_pairs=5_001), may(discount=1.0), may(tails=0.0), may(known=False)])
    led, unknown = (SimpleNamespace(next_state=np.array([1, s])) for s in (0, -1))
    assert may(log=led)
    assert not may(log=unknown)


def test_a_robust_set_has_its_share_of_the_level_and_the_rewards_that_are_given(monkeypatch):
    terms = []
    monkeypatch.setattr(stitched, "uncertainty_of", lambda _, given: terms.append(given))
    monkeypatch.setattr(stitched, "may_have_tails", lambda *_: True)
    for ends in ((0.0, 0.0), (-2.0, 3.0), (None, None)):
        certifier = Stitched(delta=0.1, tails=0.25, reward_low=ends[0], reward_high=ends[1])
        with pytest.raises(AttributeError):
            robust_tails(certifier, SimpleNamespace(log=None), [None])
    ranges = [(given.reward_low, given.reward_high) for given in terms]
    assert ranges == [(0.0, 0.0), (-2.0, 3.0), (None, None)]
    assert {given.delta for given in terms} == {0.025}


@pytest.mark.parametrize(("steps", "starts", "most"), [(9, 5, 5), (200_000, 150_000, 100_000)])
def test_a_run_has_as_many_rounds_as_starts_or_as_steps(steps, starts, most):
    stacks = SimpleNamespace(sizes=np.array([steps - 1, 1]), starts=np.zeros(starts, int))
    assert case_of(stacks, COURSE, stacks, 0).rounds == most
    known = SimpleNamespace(start_chances=np.ones(1))
    assert case_of(stacks, known, stacks, 0).rounds == min(steps, 100_000)


def test_rounds_may_not_go_beyond_what_returns_allow():
    def refused(way, values, words):
        with pytest.raises(RefutedBounds, match=words):
            check_rounds(way, rounds_of([values]), COURSE)

    check_rounds(Way(BOTH), rounds_of([[-2.0]]), COURSE)
    refused(Way(BOTH), [-2.1], r"come to -2.1, but returns between 0.0 and 2.0 allow -2\.0")
    check_rounds(Way(2), rounds_of([[0.0, -2.0]]), COURSE)
    refused(Way(2), [-0.1, -2.0], r"come to -0.1, but returns between 0.0 and 2.0 allow -2e-09")
    refused(Way(2), [0.0, -2.1], r"come to -2.1, but returns between 0.0 and 2.0 allow -2\.0")


def test_a_known_start_is_that_of_the_counts():
    counts = Counts.from_dense(np.ones((2, 2, 2), int), rewards=np.zeros((2, 2)), starts=[3, 1])
    problem = uniform_problem(counts, 0.5, (-1.0, 3.0))

    def cumulated(**settings):
        course = course_for(Stitched(**settings), problem, problem.behavior)
        return course.start_chances.tolist()

    assert cumulated(known_start=True) == [0.75, 1.0]
    assert cumulated() == []


@pytest.mark.parametrize("per", ["pair", "transition"])
@pytest.mark.parametrize("known", [True, False])
def test_a_set_is_foreseen_from_as_many_times_as_much(per, known):
    times = np.array([[[3, 1], [0, 0]], [[0, 5], [2, 2]]])
    shape = times.shape[:2] if per == "pair" else times.shape
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    sums = np.where(times.sum(axis=2) > 0 if per == "pair" else times > 0, values, 0.0)
    given = {"rewards": values} if known else {"reward_sums": sums}
    counts = Counts.from_dense(times, starts=np.array([3, 1]), **given)
    problem = uniform_problem(counts, 0.5, (-9.0, 99.0))
    more = grown(problem, 2.5)
    assert more.counts.visits.tolist() == [10, 0, 12, 10]  # 7.5 is 8, 2.5 is 2, 12.5 is 12
    np.testing.assert_allclose(
        more.counts.mean_reward(), problem.counts.mean_reward(), rtol=1e-12, equal_nan=True
    )
    assert more.counts.starts.tolist() == [3, 1]
    assert more.log is None


@pytest.mark.parametrize(
    ("who", "complete", "cuts", "figures"),
    [  # rounds of π_I and of π_b a run, the share of rollouts that were cut, and the estimate
        (BOTH, [3, 1], [2, 1], (2.0, 2.0, 3 / 8, 0.25)),  # two rollouts a round
        (2, [3, 1], [2, 1], (1.5, 0.5, 3 / 4, 0.5)),
        (BOTH, [0, 0], [0, 0], (0.0, 0.0, 0.0, None)),
        (2, [1, 1], [0, 0], (1.0, 0.0, 0.0, None)),
    ],
)
def test_a_claim_tells_how_its_rounds_went(who, complete, cuts, figures):
    rounds = rounds_of(np.full((2, 5), 0.25), complete, np.array(cuts))
    found = figures_of(Way(who, 4, None), rounds)
    names = ("rounds", "behavior_rounds", "cut_share", "estimate")
    assert tuple(found[name] for name in names) == figures
    assert (found["paired"], found["horizon"], found["behavior_horizon"]) == (who == BOTH, 4, None)


def test_of_a_long_stack_the_first_part_plans():
    sizes = np.array([350_000, 0, 1, 43_215])  # three parts of 2¹⁷
    number = int(sizes.sum())
    entries = np.arange(number)
    whole = Stacks(offsets_of(sizes), entries / 1.0, entries, entries % 2 == 0, entries[:100])
    stacks, parts = first_part(whole)
    assert parts == 3
    assert stacks.sizes.tolist() == [116_667, 0, 1, 14_405]
    begins = [0, 350_000, 350_001]
    kept = np.concatenate(
        [np.arange(a, a + n) for a, n in zip(begins, (116_667, 1, 14_405), strict=True)]
    )
    assert (stacks.reward == kept).all()
    assert (stacks.successor == kept).all()
    assert (stacks.ended == (kept % 2 == 0)).all()
    assert stacks.starts.tolist() == list(range(34))
    few = Stacks(offsets_of(sizes[1:3]), np.zeros(1), np.zeros(1, int), np.ones(1, bool), sizes)
    assert first_part(few) == (few, 1)


@pytest.mark.parametrize(("variance", "calls"), [(1e-6, 1), (9.0, 4)])
def test_a_bet_in_turn_is_planned_only_where_it_can_be_better(variance, calls):
    rolled = []
    tallies = {BOTH: (1e4, 1.0), OURS: (2e4, 2.0), THEIRS: (2e4, -1.0)}

    def tally(folds, ways, runs):
        rolled.append((len(folds), *sorted({way.who for several in ways for way in several})))
        figures = np.zeros((3, len(folds), len(ways[0]), 2))
        for w, way in enumerate(ways[0]):
            number, mean = tallies.get(way.who, (1e4, 2.0))
            spread = variance / 100 if way.who > 1 else variance
            figures[:, :, w, 0] = np.array([number, mean, spread])[:, np.newaxis]
            if way.who > 1:
                figures[:, :, w, 1] = np.array([[1e4], [-1.0], [spread]])
        return Tallies(*figures)

    fold = Fold(STACKS, COURSE, 1.0, 0.1)
    plans = plans_at([fold, fold, fold._replace(robust=True)], 1, tally)
    assert len(rolled) == calls
    # Of π_b by itself, folds of one log are rolled out once.
    assert rolled == [(3, BOTH), (2, THEIRS), (3, 2), (3, 3, 4, 6)][:calls]
    assert {plan.way.who == BOTH for plan in plans} == {calls == 1}


def test_of_a_long_log_fewer_series_and_draws_are_made():
    for steps, series, draws in (
        (299_999, None, None),
        (300_000, 300, 300),
        (10**6, 96, 99),
        (10**7, 32, 99),
    ):
        known = Known(delta=0.1, steps=steps)
        assert Stitched.told(known, {}).get("series") == series
        assert Posterior.told(known, {}).get("draws") == draws
    assert "draws" not in Posterior.told(Known(delta=0.001, steps=10**7), {})  # too few for δ
    for steps, delta, draws in ((10**6, 0.1, 19), (10**6, 0.05, 29), (10**6 - 1, 0.1, 29)):
        wide = Known(delta=delta, steps=steps, transitions=200_001)
        assert Posterior.told(wide, {})["draws"] == draws


@pytest.mark.parametrize(
    ("entries", "runs", "last"),
    [(2**15, 8, 64), (2**15 + 1, 3, 63), (300_000, 1, 6), (3_000_000, 1, 1)],
)
def test_long_stacks_are_planned_in_fewer_runs(entries, runs, last, monkeypatch):
    asked = []

    def plans_at(folds, runs, *_):
        asked.append(runs)
        return [BetPlan(Way(BOTH), fold, TURNS, 1.0) for fold in folds]

    monkeypatch.setattr(bets, "plans_at", plans_at)
    stacks = SimpleNamespace(sizes=np.array([entries - 1, 1]))
    one = Planning(Stitched(), stacks, COURSE, 1.0, None)
    few = one._replace(stacks=STACKS)
    plans_of([one])
    plans_of([one], 64, READ_AT_LAST)
    assert asked == [runs, last]
    plans = plans_of([few, one, few])  # each as if alone
    assert [plan.fold.stacks for plan in plans] == [STACKS, stacks, STACKS]
    assert asked[2:] == ([8] if runs == 8 else [8, runs, 8])
