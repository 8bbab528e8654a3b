"""Returns of practice as the baseline: the theorem, what is paid, worlds made to break it.

A claim that may fail with probability δ is allowed as many failures as one that fails exactly that
often would exceed once in 10⁶ tests. A form that is not valid must fail far more often than δ.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support.failures import allowed_failures
from support.logs import log_of, one_step_log
from support.problems import logged_problem
from surestep import (
    FiniteMDP,
    Pairs,
    Policy,
    certify,
    estimate_behavior,
    performance,
    sample_log,
)
from surestep.algorithms import SPIBB
from surestep.certificates import Posterior, Stitched, stitched
from surestep.certificates.bets import ExpectedBets, ReturnsBet
from surestep.certificates.certifying import verify
from surestep.certificates.episodes import held_out_part, training_for, training_part
from surestep.certificates.practice import BehaviorDoubt, paid_returns
from surestep.certificates.stitched import planned_returns
from surestep.environments import make
from surestep.errors import CertificateRefused
from surestep.model import Statement
from surestep.model.counts import Counts
from surestep.model.problem import Signal
from surestep.results.advantage_intervals import gain_interval

LEARNS = Stitched(series=96)
SAID = Statement("practice-as-recorded")


def without_practice(claim):
    """A claim as it was written before there was such a setting."""
    rest = {name: value for name, value in claim.parameters.items() if name != "practice"}
    return replace(claim, parameters=rest)


class Limits:
    """Bounds of returns, all that a plan of returns needs of a course."""

    def __init__(self, low, high):
        self.limits = low, high


# ---- the theorem --------------------------------------------------------------------------------


def test_the_capital_over_its_mean_is_fair_whatever_the_logger_learns():
    """All outcomes of four episodes, each with a chance that depends on those before it."""
    stake, centre = Fraction(3, 5), Fraction(1, 2)
    mean, above = Fraction(0), Fraction(0)
    for returns in itertools.product((Fraction(0), Fraction(2)), repeat=4):
        chance, fair, means = Fraction(1), Fraction(1), []
        for e, value in enumerate(returns):
            well = Fraction(1 + 2 * sum(x > 0 for x in returns[:e]), 8)
            chance *= well if value else 1 - well
            means.append(2 * well)
            fair *= (1 + stake * (centre - value)) / (1 + stake * (centre - means[-1]))
        mean += chance * fair
        bet = ReturnsBet(float(centre), float(stake), 0.0)
        upper = bet.upper(np.array(returns, float), 4, 0.8)
        above += chance * (float(sum(means)) / 4 > upper + 1e-12)
    assert mean == 1
    assert 0 < above <= Fraction(4, 5)


def test_the_upper_bound_is_where_the_capital_against_it_is_one_in_delta():
    returns, delta = np.array([0.2, 0.9, 0.4, 0.0, 0.6]), 0.03
    bet = ReturnsBet(0.45, 0.8, 0.0)
    capital = np.prod(1 + 0.8 * (0.45 - returns))
    upper = bet.upper(returns, 5, delta)
    assert (1 + 0.8 * (0.45 - upper)) ** 5 == pytest.approx(delta * capital)
    # Five times as many of them: the same as if each came five times.
    assert bet.upper(returns, 25, delta) == pytest.approx(bet.upper(np.tile(returns, 5), 25, delta))


def test_a_plan_bets_by_the_spread_of_returns_and_no_more_than_may_be_lost():
    returns = np.tile([0.0, 1.0], 100)
    bet = ReturnsBet.of(returns, 2.0, 0.03, Limits(0.0, 4.0))
    assert bet.centre == 0.5
    assert bet.stake == pytest.approx(math.sqrt(2 * math.log(1 / 0.03) / (400 * 0.25)))
    assert bet.expected == pytest.approx(0.5 + math.sqrt(2 * 0.25 * math.log(1 / 0.03) / 400), 0.03)
    alike = ReturnsBet.of(np.full(3, 4.0), 1.0, 0.03, Limits(0.0, 4.0))
    assert alike.stake == pytest.approx(0.99 / 4e-3)
    few = ReturnsBet.of(np.array([1.0, 1.1]), 1.0, 0.03, Limits(0.0, 4.0))
    assert few.stake * (4.0 - few.centre) == pytest.approx(0.99)


def skewed(rng, shape, rare, high):
    """Returns that are 0, and seldom all there is."""
    return np.where(rng.random(shape) < rare, high, 0.0), rare * high


def even(rng, shape):
    """Fair coins."""
    return np.where(rng.random(shape) < 0.5, 1.0, 0.0), 0.5


def narrow(rng, shape):
    """Returns that hardly vary within their range."""
    return 0.5 + 0.01 * rng.random(shape), 0.505


def learning(rng, shape):
    """Of a logger who does better after bad luck, and worse after good luck."""
    logs, episodes = shape
    returns, means = np.zeros(shape), np.zeros(shape)
    for e in range(episodes):
        means[:, e] = np.where(returns[:, :e].sum(axis=1) > 0.5 * e, 0.1, 0.9)
        returns[:, e] = rng.random(logs) < means[:, e]
    return returns, means.mean(axis=1)


def rising(rng, shape):
    """Of practice that gets better all the time."""
    means = np.linspace(0.1, 0.9, shape[1])
    return (rng.random(shape) < means).astype(float), 0.5


RETURNS = {
    "rare 0.5": lambda rng, shape: skewed(rng, shape, 0.5 / shape[1], 1.0),
    "rare 2": lambda rng, shape: skewed(rng, shape, 2 / shape[1], 1.0),
    "seldom bad": lambda rng, shape: tuple(1 - x for x in skewed(rng, shape, 0.05, 1.0)),
    "coins": even,
    "narrow": narrow,
    "learning": learning,
    "rising": rising,
}


@pytest.mark.one_quick
@pytest.mark.parametrize("episodes", [8, 60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RETURNS)
def test_means_of_what_was_done_are_seldom_above_their_bound(name, episodes):
    """The plan is by as many returns, of the same world."""
    rng, number, delta = np.random.default_rng(0), 1000, 0.1
    returns, mean = RETURNS[name](rng, (number, episodes))
    first, _ = RETURNS[name](rng, (number, episodes))
    wrong = 0
    for own, fold, truth in zip(returns, first, np.broadcast_to(mean, number), strict=True):
        bet = ReturnsBet.of(fold, 1.0, delta, Limits(0.0, 1.0))
        wrong += truth > bet.upper(own, episodes, delta)
    assert wrong <= allowed_failures(number, delta)


def test_the_largest_capital_on_the_way_is_about_the_first_episodes_only():
    """Practice that gets better: its first episodes are no bound of all."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(50):
        returns, mean = rising(rng, (400,) * 2)
        bet = ReturnsBet.of(returns[1], 1.0, 0.1, Limits(0.0, 1.0))
        on_the_way = min(bet.upper(returns[0, :n], n, 0.1) for n in range(100, 401, 50))
        wrong += mean > on_the_way
    assert wrong >= 45


# ---- what is paid -------------------------------------------------------------------------------


def test_every_episode_that_begins_is_paid_and_what_is_not_known_at_the_most():
    pairs = Pairs.full(4, 1)
    log = log_of(
        pairs,
        [(0, 0, 1.0, 1), (1, 0, 2.0, 3)],  # over: 1 + 2/2
        [(0, 0, 1.0, 1), (1, 0, 1.0, 2)],  # cut: 1 + 1/2 + 6/4
        [(1, 0, 5.0, 2), (2, 0, 4.0, 0)],  # cut, and as much as there may be
        [(0, 0, 1.0, 1), (1, 0, -9.0, 0)],  # lost
        [(2, 0, 1.0, 0), (0, 0, 0.0, 3)],  # began before
        cut=(1, 2, 3),
    )
    following, truncated = log.next_state.copy(), log.truncated.copy()
    following[7], truncated[7] = -1, False
    began = np.array([False] * 4 + [True])
    log = replace(log, next_state=following, truncated=truncated, continued=began)
    problem = logged_problem(replace(log, continued=None), 0.5, (-20.0, 6.0))
    paid = paid_returns(problem, log, 7.0)
    assert paid.tolist() == [2.0, 3.0, 7.0, 7.0]


def test_what_an_end_is_known_to_pay_is_paid():
    pairs = Pairs.full(2, 2)
    log = one_step_log(pairs, [0, 1, 0, 1], [1.0, 1.0, 1.0, 1.0])
    counts = log.counts([[1.0, 1.0], [2.0, 3.0]])
    problem = logged_problem(log, 0.5, (-9.0, 9.0), counts=counts)
    assert isinstance(counts, Counts)
    assert paid_returns(problem, log, 9.0).tolist() == [2.5] * 4  # the most that it may be


# ---- certificates -------------------------------------------------------------------------------


@pytest.fixture
def always(monkeypatch):
    """Returns are compared with wherever they may be."""
    usual = ExpectedBets.plan

    def plan(bets, fold, way, place):
        found = usual(bets, fold, way, place)
        return found._replace(score=found.score + 1e6 * (fold.baseline is not None))

    monkeypatch.setattr(ExpectedBets, "plan", plan)


def estimated(problem, certifier):
    """The problem with π_b as the part estimates it that chooses."""
    return problem.with_behavior(estimate_behavior(training_for(problem, certifier).counts))


TWO = Pairs.full(2, 2)


def same_arms(rng, number=300):
    """Nothing is to be gained: all arms are alike, and π_I is the luckiest of 20."""
    pairs = Pairs.full(2, 20)
    log = one_step_log(pairs, rng.integers(20, size=number), rng.random(number) < 0.5)
    problem = estimated(logged_problem(log, 0.9, (0.0, 1.0)), LEARNS)
    train = training_for(problem, LEARNS).log
    tried = np.maximum(np.bincount(train.action, minlength=20), 1)
    best = int((np.bincount(train.action, train.reward, 20) / tried).argmax())
    return problem, Policy.deterministic(pairs, [best, 0]), 0.0


def few(rng):
    """The same with a dozen episodes."""
    return same_arms(rng, 12)


def worse(rng):
    """π_I takes the arm that is worse, and practice mostly the other; good luck is rare."""
    action = (rng.random(400) < 0.3).astype(int)
    reward = np.where(rng.random(400) < np.where(action == 0, 0.02, 0.015), 1.0, 0.0)
    problem = estimated(logged_problem(one_step_log(TWO, action, reward), 0.9, (0.0, 1.0)), LEARNS)
    return problem, Policy.deterministic(TWO, [1, 0]), 0.015 - (0.7 * 0.02 + 0.3 * 0.015)


def getting_better(rng):
    """A logger who takes the good arm ever more often; π_I is in the middle."""
    share = np.linspace(0.2, 0.8, 600)
    action = (rng.random(600) < share).astype(int)
    reward = (rng.random(600) < np.where(action == 1, 0.8, 0.2)).astype(float)
    problem = estimated(logged_problem(one_step_log(TWO, action, reward), 0.9, (0.0, 1.0)), LEARNS)
    done = share[round(0.3 * 600) :].mean()
    return problem, Policy.from_dense(TWO, [[0.5, 0.5], [1.0, 0.0]]), 0.6 * (0.5 - done)


def contrary(rng):
    """A logger who changes the arm with what it gave, so that no two episodes have one mean."""
    action, reward = np.zeros(400, int), np.zeros(400)
    for e in range(400):
        action[e] = e > 0 and reward[e - 1] == 1
        reward[e] = rng.random() < (0.7, 0.3)[action[e]]
    problem = estimated(logged_problem(one_step_log(TWO, action, reward), 0.9, (0.0, 1.0)), LEARNS)
    done = np.where(action == 1, 0.3, 0.7)[120:].mean()
    return problem, Policy.deterministic(TWO, [0, 0]), 0.7 - done


def long_and_good():
    """What lasts is good; action 1 ends at once, and pays what action 0 does on average."""
    P = np.zeros((3, 2, 3))
    P[0, 0, [1, 2]] = 0.5
    P[0, 1, 2] = 1.0
    P[1, :, 1], P[1, :, 2] = 0.98, 0.02
    R = np.zeros((3, 2, 3))
    R[1] = 0.1
    R[0, 1, 2] = 0.5 * 0.9 * 0.1 / (1 - 0.9 * 0.98)
    return FiniteMDP.from_dense(P, R, 0.9, initial=[1.0, 0.0, 0.0])


def cut_short(rng):
    """A clock stops after 15 steps what lasts, which are the good ones; nothing is to be gained."""
    mdp = long_and_good()
    practice = Policy.uniform(mdp)
    log = sample_log(mdp, practice, 300, 15, rng)
    problem = estimated(logged_problem(log, 0.9, (0.0, 1.0)), LEARNS)
    ours = Policy.deterministic(mdp.pairs, [1, 0, 0])
    return problem, ours, performance(mdp, ours) - performance(mdp, practice)


def lost(rng):
    """Nobody knows what became of those who did well with arm 0; arm 1 pays as much for sure."""
    action, good = (rng.random(300) < 0.2).astype(int), rng.random(300) < 0.5
    gone = (action == 0) & good
    log = one_step_log(TWO, action, np.where(action == 0, 0.0, 0.5))
    unknown = np.where(gone, -1, log.next_state)
    problem = logged_problem(replace(log, next_state=unknown, terminated=~gone), 0.9, (0.0, 1.0))
    return estimated(problem, LEARNS), Policy.deterministic(TWO, [1, 0]), 0.0


WORLDS = {
    "luckiest of 20": same_arms,
    "few": few,
    "worse": worse,
    "getting better": getting_better,
    "contrary": contrary,
    "cut short": cut_short,
    "lost": lost,
}


def failures(number, world, certifier=LEARNS):
    """How often L is above the truth; every claim is by returns."""
    wrong = 0
    for seed in range(number):
        problem, policy, truth = world(np.random.default_rng(seed))
        claim = certify(problem, policy, replace(certifier, seed=seed))
        assert "practice_upper" in claim.figures
        wrong += claim.lower > truth + 1e-12
    return wrong


@pytest.mark.one_quick
@pytest.mark.parametrize("name", ["luckiest of 20", "contrary", "cut short", "lost"])
def test_it_keeps_its_promise_in_worlds_made_to_break_it(name, always):
    assert failures(12, WORLDS[name]) <= allowed_failures(12)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.1, 0.4])
@pytest.mark.parametrize("name", WORLDS)
def test_it_keeps_its_promise_in_many_logs(name, delta, always):
    assert failures(400, WORLDS[name], replace(LEARNS, delta=delta)) <= allowed_failures(400, delta)


def whole_ones(problem, log, high):
    """What is paid if only episodes count that were recorded until they were over."""
    last = log.episode_offsets[1:] - 1
    return paid_returns(problem, log.episodes(log.terminated[last]), high)


@pytest.mark.parametrize("name", ["cut short", "lost"])
def test_to_take_whole_episodes_alone_is_wrong(name, always, monkeypatch):
    monkeypatch.setattr(stitched, "paid_returns", whole_ones)
    assert failures(12, WORLDS[name]) >= 9


def test_a_certificate_says_what_it_compares_with_and_can_be_verified():
    problem, policy = grid_of(0)
    claim = certify(problem, policy, LEARNS)
    figures = claim.figures
    assert SAID in claim.assumptions
    assert Statement("behavior-estimated-apart") not in claim.assumptions
    assert claim.lower == pytest.approx(figures["policy_lower"] - figures["practice_upper"])
    judging = held_out_part(problem, 0.3, None)
    returns = paid_returns(problem, judging.log, 1.0)
    assert figures["practice_upper"] > returns.mean()
    assert claim.lower < figures["estimate"] < 1.0
    assert verify(claim, problem, policy) == claim
    rolled = certify(problem, policy, replace(LEARNS, practice=0.0))
    assert "practice_upper" not in rolled.figures
    assert Statement("behavior-estimated-apart") in rolled.assumptions
    assert SAID not in rolled.assumptions
    # Claims from before there was the setting are judged by what was done then.
    former = without_practice(rolled)
    assert verify(former, problem, policy) == rolled
    with pytest.raises(CertificateRefused, match="lower"):
        verify(without_practice(claim), problem, policy)


def grid_of(seed, episodes=300, known=False):
    """A log of Gridworld, and the policy that its training part chooses."""
    benchmark = make("gridworld")
    problem = benchmark.problem(benchmark.sample(episodes, np.random.default_rng(seed)))
    if not known:
        problem = estimated(problem, LEARNS)
    return problem, SPIBB(n_wedge=10).improve(training_for(problem, LEARNS)).policy


@pytest.mark.parametrize(
    ("offered", "settings", "known"),
    [
        (True, {}, False),
        (False, {}, True),  # it is compared with itself, which proves more
        (False, {"logger": "fixed"}, True),
        (True, {"known_start": True}, False),  # all episodes begin in one state
        (False, {"practice": 0.0}, False),
        (False, {"worst_share": 0.1}, False),
    ],
)
def test_where_returns_may_be_compared_with(offered, settings, known, always):
    certifier = replace(LEARNS, **settings)
    benchmark = make("gridworld")
    problem = benchmark.problem(benchmark.sample(60, np.random.default_rng(0)))
    if not known:
        problem = estimated(problem, certifier)
    policy = Policy.uniform(problem.counts)
    claim = certify(problem, policy, certifier)
    assert ("practice_upper" in claim.figures) == offered
    assert (SAID in claim.assumptions) == offered
    assert (Statement("behavior-known") in claim.assumptions) == known


def test_a_known_start_is_not_that_of_returns_unless_all_begin_there(always):
    problem, policy, _ = cut_short(np.random.default_rng(0))
    starts = np.array([200, 100, 0])
    log = problem.log
    elsewhere = log.episodes(np.arange(300))
    claim = certify(problem, policy, replace(LEARNS, known_start=True))
    assert "practice_upper" in claim.figures
    moved = replace(problem, counts=replace(problem.counts, starts=starts), log=None)
    certifier = replace(LEARNS, known_start=True)
    assert planned_returns(certifier, moved, elsewhere) is None
    assert planned_returns(LEARNS, moved, elsewhere) is not None
    assert planned_returns(LEARNS, problem, log.episodes([0])) is None  # as of a stream


# ---- what is done now, estimated from too little ------------------------------------------------


def two_arms(rng, episodes=3_000):
    """Practice tosses a coin between an arm that pays 1 and one that pays nothing."""
    action = rng.integers(2, size=episodes)
    problem = logged_problem(one_step_log(TWO, action, action.astype(float)), 0.9, (0.0, 1.0))
    return problem, Policy.deterministic(TWO, [1, 0]), 0.5


def against_practice(number, certifier):
    """How often L is above the gain over what was done, which a part of the log estimates."""
    wrong = 0
    for seed in range(number):
        problem, policy, truth = two_arms(np.random.default_rng(seed))
        claim = certify(estimated(problem, certifier), policy, replace(certifier, seed=seed))
        wrong += claim.lower > truth
    return wrong


@pytest.mark.slow
def test_an_estimate_from_thirty_episodes_is_not_what_is_done(always):
    few = replace(LEARNS, train_share=0.01)
    assert against_practice(30, replace(few, practice=0.0)) >= 6
    assert against_practice(30, few) <= allowed_failures(30, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("episodes", [300, 1000])
def test_claims_of_gridworld_hold_against_what_was_really_done(episodes):
    benchmark, number = make("gridworld"), 40
    wrong = 0
    for seed in range(number):
        problem, policy = grid_of(seed, episodes)
        truth = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
        wrong += certify(problem, policy, LEARNS).lower > truth
    assert wrong <= allowed_failures(number)


def test_what_an_estimate_may_be_off_has_the_variance_of_its_draws():
    """And it is that of ρ over policies drawn from Dirichlet distributions, where it is linear."""
    pairs = Pairs.full(3, 2)
    log = log_of(pairs, *([[(0, a, 2.0 * a, 1), (1, 0, 1.0, 2)] for a in (0, 0, 1, 0)] * 3))
    problem = logged_problem(log, 0.5, (0.0, 4.0), estimate_behavior(log.counts()))
    doubt = BehaviorDoubt.of(problem, problem.counts)
    drawn = doubt.draws(20_000, 1)
    assert drawn.mean() == pytest.approx(0.0, abs=5 * math.sqrt(doubt.variance() / drawn.size))
    assert drawn.var() == pytest.approx(doubt.variance(), rel=0.05)
    # State 0: action 1 pays 2 more; of state 1 nobody knows what the other action is worth.
    first = 2.0**2 * (9.5 / 13) * (3.5 / 13) / 14
    second = (0.5 * 1.0) ** 2 * (12.5 / 13) * (0.5 / 13) / 14
    assert doubt.variance() == pytest.approx(first + second)
    assert np.array_equal(doubt.draws(7, 1), drawn[:7])


def test_a_belief_counts_what_an_estimate_may_be_off():
    problem, policy, _ = two_arms(np.random.default_rng(0), 200)
    known = certify(problem, policy, Posterior())
    guessed = problem.with_behavior(estimate_behavior(problem.counts))
    believed = certify(guessed, policy, Posterior())
    told = guessed.with_behavior(Policy(TWO, guessed.behavior.probability))
    assert Statement("behavior-drawn") in believed.assumptions
    assert Statement("behavior-known") in known.assumptions
    assert believed.lower < certify(told, policy, Posterior()).lower - 0.02
    same = certify(guessed, guessed.behavior, Posterior())
    assert same.lower == 0.0


@pytest.mark.thorough
def test_the_interval_of_the_best_guess_holds_what_was_really_done():
    """Sixty episodes estimate what is done, and three times as many judge."""
    number, missed = 75, {"as exact": 0, "as estimated": 0}
    for seed in range(number):
        problem, policy, truth = two_arms(np.random.default_rng(seed), 240)
        counts = training_part(problem, 0.25, None).counts
        judging = held_out_part(problem.with_behavior(estimate_behavior(counts)), 0.25, None)
        for name, behind in (("as exact", None), ("as estimated", counts)):
            _, low, high = gain_interval(judging, policy, 0.1, behind)
            missed[name] += not low <= truth <= high
    assert missed["as estimated"] <= allowed_failures(number)
    assert missed["as exact"] >= 2 * allowed_failures(number)


def test_several_signals_have_one_baseline(always):
    problem, policy, _ = same_arms(np.random.default_rng(0))
    again = Signal(name="again", problem=problem, margin=0.5)
    claim = certify(replace(problem, signals=(again,)), policy, LEARNS)
    assert "practice_upper" not in claim.figures
    assert Statement("behavior-estimated-apart") in claim.assumptions
    assert len(claim.signals) == 2
