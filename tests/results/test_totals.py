"""Undiscounted totals and shares: closed forms, brute force, and how often intervals hold."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from support.clinic import STATES, TODAY, clinic
from support.problems import logged_problem, uniform_problem
from support.strategies import policies, problems
from surestep import Counts, DecisionLog, FiniteMDP, Pairs, Policy, performance
from surestep._arrays import altered
from surestep.description import SignalRule, Stakes
from surestep.model import Reach, Signal, estimate_behavior, reaching
from surestep.model.counts import LoggedRewards
from surestep.planning.ends import endless_circle
from surestep.results.totals import is_share, total_course, totals_of
from surestep.sampling import sample_log

LOGS = 30
NOTHING = Stakes()


def ward(cost=True, discount=0.9):
    """Of ten patients a day 3 die under one action and 1 under the other; 6 stay either way."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0], times[0, 1] = [600, 300, 100], [600, 100, 300]
    rewards = np.zeros((3, 2, 3))
    rewards[0, :, 1] = -1.0 if cost else 1.0
    counts = Counts.from_dense(
        times, rewards=rewards, starts=[400, 0, 0], terminal=[False, True, True]
    )
    return uniform_problem(counts, discount, (-1, 1), name="deaths", cost=cost)


def better(problem):
    return Policy.deterministic(problem.counts.pairs, [1, 0, 0])


def found(problem, policy, stakes=NOTHING, **more):
    return totals_of(problem, problem, policy, stakes, more.pop("rules", {}), delta=0.1, **more)


def test_shares_that_die_in_closed_form():
    """Those who leave for good die in 3 or 1 of 4 cases; a discount would say less."""
    problem = ward()
    (total,) = found(problem, better(problem))
    assert (total.name, total.share, total.cost, total.per) == ("deaths", True, True, None)
    assert total.before.value == pytest.approx(0.5)
    assert total.after.value == pytest.approx(0.25)
    assert total.change.value == pytest.approx(-0.25)
    assert total.before.low < 0.5 < total.before.high
    assert total.change.high < 0
    assert performance(problem.estimate(), problem.behavior) == pytest.approx(-0.2 / 0.46)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_shares_within_a_horizon_in_closed_form(steps):
    problem = ward()
    (total,) = found(problem, better(problem), Stakes(horizon=steps, per=100))
    assert (total.within, total.per) == (steps, 100)
    assert total.before.value == pytest.approx(100 * 0.5 * (1 - 0.6**steps))
    assert total.after.value == pytest.approx(100 * 0.25 * (1 - 0.6**steps))


def test_a_signal_may_have_its_own_per():
    problem = ward(cost=False)
    rules = {"deaths": SignalRule(column="died", per=1000)}
    (total,) = found(problem, better(problem), Stakes(per=100), rules=rules)
    assert (total.per, total.cost) == (1000, False)
    assert total.before.value == pytest.approx(500)


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_nothing_is_said_twice(discount):
    problem = ward(discount=discount)
    assert found(problem, better(problem)) == ()
    assert len(found(problem, better(problem), Stakes(per=100))) == 1


def test_without_an_end_there_is_a_total_only_within_a_horizon():
    """A patient who stays for ever: 1 a day, 30 within a month."""
    counts = Counts.from_dense([[[5]]], rewards=[[1.0]])
    problem = uniform_problem(counts, 0.9, (0, 10))
    assert found(problem, problem.behavior) == ()
    (total,) = found(problem, problem.behavior, Stakes(horizon=30))
    assert total.before.value == pytest.approx(30)
    assert not total.share


def test_episodes_longer_than_any_that_was_seen_have_no_total():
    """A clock stops the recording after 3 weeks, and one of ten patients goes in a week."""
    P, R = np.zeros((2, 1, 2)), np.ones((2, 1))
    P[0, 0], R[1] = [0.9, 0.1], 0.0
    world = FiniteMDP.from_dense(P, R, 0.9, initial=[1.0, 0.0])
    log = sample_log(world, Policy.uniform(world), 400, 3, np.random.default_rng(0))
    problem = logged_problem(log, 0.9, (0, 10))
    assert found(problem, problem.behavior) == ()
    (total,) = found(problem, problem.behavior, Stakes(horizon=3))
    assert total.before.value == pytest.approx(1 + 0.9 + 0.81, abs=0.1)
    longer = sample_log(world, Policy.uniform(world), 400, 300, np.random.default_rng(0))
    assert found(logged_problem(longer, 0.9, (0, 10)), problem.behavior)[0].before.value > 9


def test_the_chance_to_reach_unsafe_states_is_a_share():
    problem = ward()
    unsafe = np.array([False, True, False])
    signals = tuple(
        Signal(name=f"{n}", problem=reaching(problem, Reach(unsafe, n)), cost=True)
        for n in (1, None)
    )
    _, once, ever = found(altered(problem, signals=signals), better(problem))
    assert (once.within, ever.within, ever.share, ever.chance) == (1, None, True, True)
    assert (once.before.value, ever.before.value) == pytest.approx((0.2, 0.5))
    assert (once.after.value, ever.after.value) == pytest.approx((0.1, 0.25))


def test_an_action_that_nobody_took_leaves_doubt_and_no_bias():
    """Half of the current policy was never seen in this part of the log."""
    problem = ward()
    times = problem.counts.times.copy()
    times[:3] = 0  # of the first action
    counts = replace(problem.counts, times=times)
    (total,) = found(replace(problem, counts=counts), better(problem))
    assert total.before.value == pytest.approx(0.25)
    assert total.before.high - total.before.low > 0.5
    assert total.after.high - total.after.low < 0.1


@pytest.mark.parametrize(
    ("rewards", "share"),
    [([[0, 1], [0, 0]], True), ([[1, 1], [0, 0]], False), ([[0, 2]], False), ([[0, 0.5]], False)],
)
def test_a_share_pays_one_at_most_once_an_episode(rewards, share):
    earned = np.array(rewards, float)
    size = earned.size
    log = DecisionLog(
        Pairs.full(2, 1),
        np.zeros(size, int),
        np.zeros(size, int),
        earned.ravel(),
        np.tile([0, 1], len(rewards)),
        np.tile([False, True], len(rewards)),
        np.zeros(size, np.bool_),
        np.arange(0, size + 1, 2),
    )
    assert is_share(Signal(name="x", problem=logged_problem(log, 0.9, (0, 10)))) == share


def test_without_episodes_a_share_is_paid_at_ends():
    problem = ward()
    assert is_share(Signal(name="x", problem=problem, cost=True))
    assert not is_share(Signal(name="x", problem=problem))
    paid = replace(problem.counts, rewards=LoggedRewards(np.full(6, -1.0), "pair", known=True))
    assert not is_share(Signal(name="x", problem=replace(problem, counts=paid), cost=True))


# ---- against values, brute force and differences ------------------------------------------------


@given(problems(all_visited=True), st.data())
def test_with_discount_1_totals_are_values(problem, data):
    problem = replace(problem, discount=1.0, signals=())
    policy = data.draw(policies(problem.counts.pairs))
    model = problem.estimate()
    for chosen in (policy, problem.behavior):
        assume(endless_circle(model, chosen.probability).size == 0)
    (total,) = found(problem, policy, Stakes(per=1))
    expected = [performance(model, chosen) for chosen in (problem.behavior, policy)]
    scale = 1e-9 * max(1.0, *np.abs(expected))
    assert total.before.value == pytest.approx(expected[0], abs=scale)
    assert total.after.value == pytest.approx(expected[1], abs=scale)
    assert total.change.value == pytest.approx(expected[1] - expected[0], abs=2 * scale)
    assert total.change.low <= total.change.value <= total.change.high


@given(problems(all_visited=True), st.integers(1, 6), st.data())
def test_within_a_horizon_it_is_the_sum_over_steps(problem, steps, data):
    """By dense matrices: Σ_t p Pᵗ r."""
    problem = replace(problem, signals=())
    policy = data.draw(policies(problem.counts.pairs))
    (total,) = found(problem, policy, Stakes(horizon=steps, per=1))
    dense = altered(problem, discount=1.0, unseen="terminal").estimate()
    chance = policy.dense()
    step = np.einsum("sa,sat->st", chance, dense.dense().P)
    earned = np.zeros(dense.num_states)
    np.add.at(earned, dense.pairs.state, policy.probability * dense.expected_reward)
    here, expected = dense.initial, 0.0
    for _ in range(steps):
        expected += here @ earned
        here = here @ step
    ends = np.zeros(dense.num_states)
    np.add.at(ends, dense.pairs.state, policy.probability * dense.ending_reward)
    expected += here @ ends
    assert total.after.value == pytest.approx(expected, abs=1e-9 * max(1, abs(expected)))


@pytest.mark.parametrize("steps", [None, 1, 4])
def test_the_worth_of_pairs_is_how_the_total_moves_with_the_policy(steps):
    """Σ_t d_t(s) Q(s,a) is the derivative of the total, up to a constant a state."""
    problem = altered(ward(), discount=1.0, unseen="terminal")
    base = problem.behavior.probability
    _, worth = total_course(problem, problem.behavior, steps)
    small = 1e-6
    moved = base + np.array([small, -small, 0, 0, 0, 0])
    start = problem.estimate().initial
    policies = [Policy(problem.counts.pairs, chances) for chances in (base, moved)]
    total = [start @ total_course(problem, chosen, steps)[0].value for chosen in policies]
    assert (total[1] - total[0]) / small == pytest.approx(worth[0] - worth[1], rel=1e-4)


# ---- coverage -----------------------------------------------------------------------------------


def true_share(world, chances, steps):
    """The share of the clinic's patients who die within so many weeks, or ever."""
    onwards = np.einsum("sa,sat->st", chances, world.dense().P)
    onwards[STATES.index("recovered") :] = 0.0
    here, died = np.array([0.3, 0.5, 0.2, 0.0, 0.0]), 0.0
    for _ in range(5000 if steps is None else steps):
        here = here @ onwards
        died += here[STATES.index("died")]
    return died


# Any two of the settings are here together; the other half is for `make test-all`.
TOGETHER = (
    *((None, False, 400, True), (5, True, 400, True)),
    *((None, True, 400, False), (5, False, 400, False)),
    *((None, False, 60, True), (5, True, 60, True)),
)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("steps", "known", "episodes", "changes"),
    [
        pytest.param(*case, marks=[] if case in TOGETHER else [pytest.mark.slow])
        for case in (
            (steps, known, *size)
            for steps, known in product((None, 5), (True, False))
            for size in ((400, True), (400, False), (60, True))
        )
    ],
)
def test_intervals_hold_the_true_share_as_often_as_they_say(steps, known, episodes, changes):
    """Nominal 90 %; also with few patients, without any change, and where π_b is estimated.

    So many of the logs would be wrong with a chance of 1e-3 for each of the 36 rates.
    """
    world = clinic()
    pairs = world.pairs
    new = np.tile([0.0, 1.0], (5, 1)) if changes else TODAY
    behavior, policy = Policy(pairs, TODAY.ravel()), Policy(pairs, new.ravel())
    truth = [true_share(world, chances, steps) for chances in (TODAY, new)]
    wrong = np.zeros(3, int)
    for seed in range(LOGS):
        rng = np.random.default_rng((seed, episodes))
        logs = [sample_log(world, behavior, episodes, 400, rng) for _ in range(2)]
        logs = [replace(log, reward=-1.0 * (log.next_state == 4)) for log in logs]
        judged = logged_problem(logs[1], 0.95, (-1, 0), behavior, name="deaths", cost=True)
        behind = None
        after = policy
        if not known:
            behind = logs[0].counts()
            judged = judged.with_behavior(estimate_behavior(behind))
            after = policy if changes else judged.behavior
        (total,) = found(judged, after, Stakes(horizon=steps), estimated_from=behind)
        spans = (total.before, total.after, total.change)
        expected = (*truth, truth[1] - truth[0])
        for place, (span, true) in enumerate(zip(spans, expected, strict=True)):
            if changes or known or place == 0:
                wrong[place] += not span.low - 1e-12 <= true <= span.high + 1e-12
    assert (wrong <= scipy.stats.binom(LOGS, 0.1).ppf(1 - 1e-3)).all()


def one_step(died, seen):
    """A ward in which every patient is treated once; so many died of those seen, by action."""
    times = np.zeros((3, 2, 3), int)
    times[0, :, 1] = died
    times[0, :, 2] = np.subtract(seen, died)
    rewards = np.zeros((3, 2, 3))
    rewards[0, :, 1] = -1.0
    counts = Counts.from_dense(
        times, rewards=rewards, starts=[sum(seen), 0, 0], terminal=[False, True, True]
    )
    problem = uniform_problem(counts, 0.9, (-1, 0), name="deaths", cost=True)
    (total,) = found(problem, better(problem), Stakes(per=1))
    return total


def test_what_never_happened_in_60_cases_is_not_shown_as_impossible():
    """In truth one of 100 dies, and 60 such cases show no death in more than half of all logs."""
    total = one_step([0, 0], [30, 30])
    assert (total.before.value, total.after.value, total.change.value) == (0, 0, 0)
    assert total.before.high == pytest.approx(1 - 0.05 ** (1 / 60))  # exact: 0.95 see one or more
    assert total.after.high == pytest.approx(1 - 0.05 ** (1 / 30))  # only 30 tell of the new policy
    assert total.before.low == total.after.low == 0
    assert total.change.low < 0 < total.change.high


@pytest.mark.thorough
def test_a_share_of_two_actions_is_covered_in_exact_binomial_sums():
    """Every pair of counts of 40 and 40 cases, weighted with its chance in truth."""
    seen = np.arange(41)
    truths = [(0.01, 0.01), (0.05, 0.02), (0.02, 0.2)]
    laws = [[scipy.stats.binom(40, one).pmf(seen) for one in truth] for truth in truths]
    missed = np.zeros((3, 3))
    for first, second in product(range(14), range(20)):
        total = one_step([first, second], [40, 40])
        for case, (a, b) in enumerate(truths):
            spans = (total.before, total.after, total.change)
            for place, true in enumerate(((a + b) / 2, b, (b - a) / 2)):
                wrong = not spans[place].low <= true <= spans[place].high
                missed[case, place] += laws[case][0][first] * laws[case][1][second] * wrong
    assert (missed[:, :2] <= 0.1).all()
    assert (missed[:, 2] <= 0.13).all()  # of the change, a normal interval


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("episodes", [60, 140, 200, 1000])
def test_intervals_of_rare_shares_hold_in_many_logs(rate, episodes):
    rng = np.random.default_rng((episodes, round(1000 * rate)))
    truth = (rate, rate / 2, -rate / 2)  # of every two, 1.5 died under one action
    wrong = np.zeros(3, int)
    for _ in range(300):
        first = int(rng.binomial(episodes, 0.5))
        seen = [first, episodes - first]
        total = one_step(rng.binomial(seen, [1.5 * rate, 0.5 * rate]), seen)
        for place, span in enumerate((total.before, total.after, total.change)):
            wrong[place] += not span.low <= truth[place] <= span.high
    assert (wrong <= scipy.stats.binom(300, 0.1).ppf(1 - 1e-4)).all()
