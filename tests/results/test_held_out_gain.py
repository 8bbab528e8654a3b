"""Intervals of gains and advantages: against single steps, and how often they hold the truth."""

from statistics import NormalDist, fmean, pvariance

import numpy as np
import pytest
import scipy.stats

from support.log_tables import table_of
from support.problems import uniform_problem
from surestep import Counts, DecisionLog, Pairs, Policy, Problem, improve, performance, read_log
from surestep.algorithms import SPIBB
from surestep.environments import make
from surestep.model.counts import LoggedRewards
from surestep.report.answer import estimate_key
from surestep.results.advantage_intervals import (
    advantage_intervals,
    change_intervals,
    ends_by_state,
    gain_interval,
)

LOGS = [25, pytest.param(200, marks=pytest.mark.slow)]


def judged(name, episodes, seed):
    """A policy of one log, the problem that another log poses, and the true gain."""
    benchmark = make(name)
    rng = np.random.default_rng(seed)
    chose, judges = (benchmark.problem(benchmark.sample(episodes, rng)) for _ in range(2))
    policy = SPIBB(n_wedge=5).improve(chose).policy
    truth = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
    return policy, judges, truth, benchmark


def test_steps_are_worth_what_their_state_or_all_show_and_without_any_what_is_possible():
    # State 0 shows 1 and 3, state 1 only 2, state 2 nothing.
    times = np.zeros((3, 2, 3), int)
    times[0, :, 1] = times[1, 0, 2] = 1
    problem = uniform_problem(Counts.from_dense(times, rewards=np.zeros((3, 2))), 0.9, (-5, 7))
    worth = np.array([1.0, 3.0, 2.0])
    low, high = ends_by_state(problem, worth, worth)
    assert (low.tolist(), high.tolist()) == ([1.0, 1.0, 1.0], [3.0, 3.0, 3.0])
    for alike in (worth[:0], np.full(3, 2.0)):
        counts = Counts.from_dense(
            times * (alike.size > 0), rewards=np.zeros((3, 2)), starts=[1, 0, 0]
        )
        low, high = ends_by_state(uniform_problem(counts, 0.9, (-5, 7)), alike, alike)
        assert (low.tolist(), high.tolist()) == ([-5.0] * 3, [7.0] * 3)


@pytest.mark.parametrize("logs", LOGS)
@pytest.mark.parametrize("name", ["gridworld", "alike"])
def test_the_interval_of_the_gain_holds_the_truth_as_often_as_it_says(name, logs):
    """At a rate of 10 %, the test errs once in 1,000 times; also where nothing is gained."""
    outside = 0
    for seed in range(logs):
        policy, judges, truth, _ = judged(name, 300, seed)
        gain, low, high = gain_interval(judges, policy, 0.1)
        assert low <= gain <= high
        outside += not low - 1e-12 <= truth <= high + 1e-12
    assert outside <= scipy.stats.binom(logs, 0.1).ppf(1 - 1e-3)


def test_the_estimate_is_the_gain_in_the_model_of_the_data():
    policy, judges, _, _ = judged("gridworld", 200, 0)
    model = judges.estimate()
    expected = performance(model, policy) - performance(model, judges.behavior)
    assert gain_interval(judges, policy, 0.1)[0] == pytest.approx(expected, abs=1e-9)
    same = gain_interval(judges, judges.behavior, 0.1)
    assert same == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)


def test_that_nothing_comes_after_an_end_is_no_doubt():
    """Nobody decides at an end, so that it has no visits and yet is known."""
    times = [[[0, 10**6], [0, 10**6]], [[0, 0]] * 2]
    counts = Counts.from_dense(times, rewards=[[0, 1], [0, 0]], terminal=[False, True])
    problem = uniform_problem(counts, 0.9, (0, 1))
    found = gain_interval(problem, Policy.from_dense(counts, [[0, 1], [0.9, 0.1]]), 0.1)
    assert found == pytest.approx((0.5, 0.5, 0.5), abs=1e-4)


@pytest.mark.parametrize("logs", LOGS)
def test_changes_that_do_nothing_are_seldom_confirmed_or_contradicted(logs):
    """All intervals together are wrong in at most δ of logs: here no action does anything."""
    wrong = 0
    for seed in range(logs):
        policy, judges, _, benchmark = judged("alike", 300, seed)
        value = np.asarray(SPIBB(n_wedge=5).improve(judges).plan.value)
        low, high = change_intervals(judges, value, policy, 0.1)
        moved = np.zeros(benchmark.num_states, bool)
        np.logical_or.at(
            moved, policy.pairs.state, policy.probability != judges.behavior.probability
        )
        assert ((low == 0) & (high == 0))[~moved].all()
        wrong += bool(((low > 0) | (high < 0)).any())
    assert wrong <= scipy.stats.binom(logs, 0.1).ppf(1 - 1e-3)


def clicks(seed, rows=4000, arms=30):
    """A log of randomised clicks that nothing decides."""
    rng = np.random.default_rng(seed)
    table = {
        "state": np.full(rows, "s", object),
        "action": np.array([f"a{i:02}" for i in rng.integers(arms, size=rows)], object),
        "reward": (rng.random(rows) < 0.05).astype(float),
    }
    return read_log(table)


@pytest.mark.thorough
def test_the_gain_is_that_of_rows_that_did_not_choose():
    """The best of 30 arms looks good in the part that chose it, and on average not in the rest."""
    terms = {"n_wedge": 5, "worlds": 0, "certificates": ["stitched:series=6"], "ending": (0, 1)}
    results = [improve(clicks(seed), discount=0, **terms) for seed in range(4)]
    estimates = [result.record.estimates for result in results]
    assert np.mean([found["policy"] - found["behavior"] for found in estimates]) > 0.05
    # The mean of four estimates, each with a standard deviation of about 0.023: outside of four
    # of its own once in 16,000 tests, and always if the rows that chose had judged.
    assert abs(np.mean([result.estimated_gain for result in results])) < 4 * 0.023 / 4**0.5
    assert [result.estimated_gain for result in results] == [f["held_out_gain"] for f in estimates]
    assert "by rows set aside for checking; do not promise it" in results[0].report


def test_what_changes_nothing_is_what_was_done_in_all_of_the_log():
    benchmark = make("gridworld")
    log = benchmark.sample(12, np.random.default_rng(1))
    names = [f"s{s:02}" for s in range(benchmark.num_states)]
    table = table_of(log, names, [f"a{a}" for a in range(log.pairs.num_actions)])
    result = improve(read_log(table), discount=0.95, worlds=0, ending=(0, 1))
    assert result.verdict == "nothing changed"
    seen = {}
    for state, action in zip(table["state"], table["action"], strict=True):
        seen.setdefault(state, []).append(action)
    words, pairs = result.table.vocabulary, result.table.pairs
    for s, a, chance in zip(pairs.state, pairs.action, result.policy.probability, strict=True):
        done = seen.get(words.states[s][0])
        if done and not result.table.quiet[s]:
            assert chance == pytest.approx(done.count(words.actions[a][0]) / len(done))
    assert result.certificate.lower == 0.0


def of_two_halves(later_ends):
    """A log in whose first half action x pays and ends; in the second it may only lead back."""
    rows = []
    for episode in range(80):
        steps = [("x" if episode % 2 else "y", float(episode % 2), True)]
        if episode >= 40 and episode % 2 and not later_ends:
            steps = [("x", 0.0, False), ("y", 0.0, True)]
        rows += [(episode, step, "s", *taken) for step, taken in enumerate(steps)]
    names = ("episode", "step", "state", "action", "reward", "terminated")
    return read_log(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("later_ends", [True, False])
def test_without_a_discount_the_rest_of_the_log_estimates_the_gain_where_it_ends(later_ends):
    terms = {"discount": 1, "ending": (0, 1), "n_wedge": 5, "train_share": 0.5}
    result = improve(of_two_halves(later_ends), **terms, worlds=0)
    assert result.table.probability.max() == 1  # x alone
    words = estimate_key(result.record, 0.0).meaning
    assert ("held_out_gain" in result.record.estimates) == later_ends
    assert ("by rows set aside" in words) == later_ends
    assert ("the rows that chose the policy flatter it" in words) != later_ends
    if not later_ends:
        assert words in result.report
        # In worlds that are drawn as the log is, an episode may not end either.
        assert result.certificates[1].notes[0].values["refusal"].startswith("in a drawn model")


GAMMA, DELTA = 0.9, 0.1
QUANTILE = NormalDist().inv_cdf(1 - DELTA / 2)


def by_hand(steps, behavior, ends):
    """The intervals of one state, from the worths of the steps of each of its actions."""
    worths = [[*each, *ends] for each in steps]
    means = [fmean(each) for each in worths]
    doubts = [pvariance(each) / len(each) for each in worths]
    found = []
    for a in range(len(steps)):
        weights = [float(a == b) - behavior[b] for b in range(len(steps))]
        middle = sum(w * m for w, m in zip(weights, means, strict=True))
        half = QUANTILE * sum(w * w * d for w, d in zip(weights, doubts, strict=True)) ** 0.5
        found.append((middle - half, middle + half))
    return found


def intervals(problem, value):
    """The intervals [K, 2]."""
    return np.stack(advantage_intervals(problem, value, DELTA), axis=1)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_intervals_are_those_of_single_steps():
    """Rewards of a transition that are at their ends have the variance that is taken for theirs."""
    pairs = Pairs.full(3, 3)
    # Of state 0 only; action 2 is never tried, and state 2 is never seen.
    taken = [(0, 1, 1.0), (0, 1, 3.0), (0, 2, 2.0), (0, 1, 3.0), (1, 2, -1.0), (1, 2, -1.0)]
    size = len(taken)
    log = DecisionLog(
        pairs,
        np.zeros(size, int),
        np.array([action for action, _, _ in taken]),
        np.array([reward for _, _, reward in taken]),
        np.array([successor for _, successor, _ in taken]),
        np.zeros(size, np.bool_),
        np.ones(size, np.bool_),
        np.arange(size + 1),
    )
    usual = [0.5, 0.3, 0.2]
    problem = Problem(
        counts=log.counts(), behavior=Policy(pairs, usual * 3), discount=GAMMA,
        value_bounds=(-9.0, 9.0),
    )  # fmt: skip
    value = np.array([7.0, 1.0, -2.0])
    worth = [[], [], []]
    for action, successor, reward in taken:
        worth[action].append(reward + GAMMA * value[successor])
    everything = [each for row in worth for each in row]
    ends = (min(everything), max(everything))
    found = intervals(problem, value)
    assert_close(found[:3], by_hand(worth, usual, ends))
    # A state that shows nothing has the ends of the log, and so has one that shows only one worth.
    assert_close(found[3:6], by_hand([[], [], []], usual, ends))
    low, high = found[2]
    assert high - low > 0.9 * (ends[1] - ends[0])  # never tried
    assert (high - low > found[:2, 1] - found[:2, 0]).all()


def bandit(steps, behavior):
    """States of one decision each, of which the rewards [S, A, n] are known one by one."""
    states, actions, number = steps.shape
    size = states * actions
    flat = steps.reshape(size, number)
    pairs = Pairs.full(states + 1, actions)
    filler = np.zeros(actions, int)
    counts = Counts(
        pairs,
        np.concatenate([np.arange(size + 1), size + filler]),
        np.full(size, states),
        np.full(size, number),
        LoggedRewards(flat.sum(axis=1), "transition", False, flat.min(axis=1), flat.max(axis=1)),
        np.append(np.full(states, actions * number), 0),
        np.arange(states + 1) == states,
    )
    return Problem(
        counts=counts, behavior=Policy(pairs, np.tile(behavior, states + 1)), discount=GAMMA,
        value_bounds=(-1e3, 1e3),
    )  # fmt: skip


def test_steps_that_are_all_alike_leave_doubt():
    """Where every worth of a state is the same, others of the log are possible all the same."""
    rewards = np.ones((2, 2, 2))
    rewards[1, 1] = [0.0, 3.0]
    found = intervals(bandit(rewards, [0.5, 0.5]), np.zeros(3))
    assert_close(found[:2], by_hand([[1.0] * 2] * 2, [0.5, 0.5], (0.0, 3.0)))
    assert found[0][0] < 0 < found[0][1]


def test_more_steps_make_intervals_narrower_and_a_smaller_delta_wider():
    rewards = np.random.default_rng(0).random((1, 3, 400))
    behavior, value = [0.6, 0.3, 0.1], np.zeros(2)

    def width(steps, delta):
        low, high = advantage_intervals(bandit(rewards[:, :, :steps], behavior), value, delta)
        return (high - low)[:3]

    assert (width(400, 0.1) < width(100, 0.1) / 1.5).all()
    assert (width(100, 0.01) > width(100, 0.1)).all()
    assert np.isfinite(width(100, 5e-324)).all()


def rare(chance):
    return lambda rng, shape: (rng.random(shape) < chance) * 1.0, chance


LAWS = {
    "even": rare(0.5),
    "rare": rare(0.05),
    "usual": rare(0.95),
    "skewed": (lambda rng, shape: rng.exponential(1.0, shape), 1.0),
    "heavy": (lambda rng, shape: rng.lognormal(0.0, 1.0, shape), np.exp(0.5)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("visits", [10, 20, 50])
def test_intervals_hold_the_truth_as_often_as_they_say(name, visits):
    """Nominal 90 %; V is known, and every state is a log of its own.

    Of 800 states with a chance of 85 % each, fewer than 79 % hold with a chance of 4e-6 (the
    normal approximation), so that all 45 rates together fail by chance less than once in 5,000
    times.
    """
    draw, mean = LAWS[name]
    rng, behavior = np.random.default_rng(visits), np.array([0.6, 0.3, 0.1])
    scale = np.array([1.0, 1.0, 1.5])[:, np.newaxis]
    rewards = scale * draw(rng, (800, 3, visits))
    low, high = advantage_intervals(bandit(rewards, behavior), np.zeros(801), DELTA)
    true = scale[:, 0] * mean
    advantage = np.append(np.tile(true - behavior @ true, 800), np.zeros(3))
    held = ((low <= advantage) & (advantage <= high))[:-3].reshape(800, 3).mean(axis=0)
    assert (held >= 0.79).all()
