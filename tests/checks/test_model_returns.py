"""The whole: values of the model against mean returns, and trails against all there are."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from support.remembering_worlds import remembering_log
from surestep import DecisionLog, Pairs
from surestep.checks import shuffling
from surestep.checks.check import GivenLog
from surestep.checks.model_returns import SAME, trail_of, walked
from surestep.checks.model_returns import check as model_check
from surestep.kernels.shuffles import room_to_walk, walk_trails
from surestep.model.estimates import estimate_behavior, estimate_mdp
from surestep.planning.evaluation import evaluate

RARE = 1e-4  # the chance that a test of rates fails although all is right
DISCOUNT = 0.8
NAMES = [f"state {s}" for s in range(20)]


def log_of(*episodes, states=4):
    """A log of one action: lists of (state, reward, next state), the last with how it ended."""
    rows = [row for episode in episodes for row in episode]
    state, reward, following = (np.array([row[i] for row in rows]) for i in range(3))
    ends = [row[3] if len(row) > 3 else "" for row in rows]
    return DecisionLog(
        Pairs.full(states, 1), state, np.zeros(len(rows), int), reward.astype(float), following,
        np.array([end == "over" for end in ends]), np.array([end == "stopped" for end in ends]),
        np.cumsum([0, *map(len, episodes)]),
    )  # fmt: skip


# States 0 and 1, loops, and two ways to end; no two exits pay the same.
TINY = log_of(
    [(0, 1.0, 1), (1, 2.2, 0), (0, 4.1, 3, "over")],
    [(1, 8.7, 1), (1, 16.3, 0, "stopped")],
    [(0, 32.9, 0), (0, 64.4, 1), (1, 128.8, 3, "over")],
)


def value_of(log):
    counts = log.counts()
    return evaluate(estimate_mdp(counts, DISCOUNT), estimate_behavior(counts))


def walks(log, shuffles):
    """Means less values, and standard deviations, of the states 0 and 1."""
    trail = trail_of(log, DISCOUNT, value_of(log), np.arange(2))
    return walked(trail, DISCOUNT, 2, shuffles, seed=0)


def plain_excess(log, value, episodes):
    """Mean returns of first visits less values, of episodes that are lists of rows."""
    found = {0: [], 1: []}
    for episode in episodes:
        last, first = episode[-1], {}
        total = value[log.next_state[last]] if log.truncated[last] else 0.0
        for row in reversed(episode):
            total = log.reward[row] + DISCOUNT * total
            first[int(log.state[row])] = total  # the earliest is what remains
        for state, earned in first.items():
            found[state].append(earned - value[state])
    return tuple(round(float(np.mean(found[state])), 9) for state in (0, 1))


def episodes_of(log):
    return [list(range(*ends)) for ends in pairwise(log.episode_offsets.tolist())]


def all_trails(log):
    """All ways to use up all starts and rows, as episodes, found one by one."""
    starts = [int(log.state[first]) for first in log.episode_offsets[:-1]]
    over = log.terminated | log.truncated

    def follow(starts, left, episodes):
        if not starts and not left:
            yield episodes
        for i, start in enumerate(starts):
            yield from step(start, starts[:i] + starts[i + 1 :], left, episodes, [])

    def step(state, starts, left, episodes, episode):
        for row in left:
            if log.state[row] == state:
                rest, longer = left - {row}, [*episode, row]
                if over[row]:
                    yield from follow(starts, rest, [*episodes, longer])
                else:
                    following = int(log.next_state[row])
                    yield from step(following, starts, rest, episodes, longer)

    yield from follow(starts, frozenset(range(log.num_steps)), [])


def last_exits(log, episodes):
    return {int(log.state[row]): row for episode in episodes for row in episode}


def test_shuffles_draw_evenly_from_all_trails_with_these_last_exits():
    own, value = episodes_of(TINY), value_of(TINY)
    every = list(all_trails(TINY))
    same = [trail for trail in every if last_exits(TINY, trail) == last_exits(TINY, own)]
    assert len(same) == 6 * 6 * 6 < len(every)  # 3! orders of starts, and of the exits of either
    exact = Counter(plain_excess(TINY, value, trail) for trail in same)
    shuffles = 20_000
    excess, _ = walks(TINY, shuffles)
    assert excess[0] == pytest.approx(plain_excess(TINY, value, own), abs=1e-9)
    found = Counter(map(tuple, np.round(excess[1:], 6).tolist()))
    exact = {tuple(np.round(outcome, 6)): many for outcome, many in exact.items()}
    assert found.keys() == exact.keys()
    assert len(exact) > 20
    for outcome, many in exact.items():
        share = many / len(same)
        # five standard errors: a chance below 1e-4 over all of them
        assert abs(found[outcome] / shuffles - share) < 5 * np.sqrt(share / shuffles)


def test_standard_deviations_are_those_of_plain_sums():
    log = remembering_log(4, episodes=35)
    excess, deviation = walks(log, 0)
    value = value_of(log)
    step = log.reward + DISCOUNT * value[log.next_state] - value[log.state]
    for looked_at in (0, 1):
        weight, visits = np.zeros(log.num_steps), 0
        for episode in episodes_of(log):
            at = [row for row in episode if log.state[row] == looked_at]
            if at:
                visits += 1
                rows = np.arange(at[0], episode[-1] + 1)
                weight[rows] = DISCOUNT ** (rows - at[0])
        own = [log.state == s for s in range(3)]
        spread = sum(np.mean(step[s] ** 2) * weight[s].var() * np.sum(s) for s in own)
        assert excess[0, looked_at] == pytest.approx(np.sum(weight * step) / visits)
        assert deviation[0, looked_at] == pytest.approx(np.sqrt(spread) / visits)


def test_how_draws_are_shared_out_decides_nothing():
    trail = trail_of(TINY, DISCOUNT, value_of(TINY), np.arange(2))
    whole = walked(trail, DISCOUNT, 2, 9, 5)
    parts = np.empty((10, 2)), np.empty((10, 2))
    for first, last in ((7, 10), (0, 3), (3, 7)):
        walk_trails(first, last, room_to_walk(trail, 2).room(), 5, DISCOUNT, trail, *parts)
    assert np.array_equal(whole, parts)
    assert not np.array_equal(whole[0], walked(trail, DISCOUNT, 2, 9, 6)[0])


RING = np.array([[0.1, 0.9, 0.0], [0.0, 0.2, 0.8], [0.7, 0.0, 0.3]])
CYCLE = np.roll(np.eye(3), 1, axis=1)
LOOP = np.ones((1, 1))


def noise(rng, following):
    return rng.normal(following, 1.0)


def jackpot(rng, following):
    return 50.0 * (rng.random(following.size) < 0.02)


def skewed(rng, following):
    return rng.exponential(size=following.size) ** 2


def none(rng, following):
    return following.astype(float)


def markov_log(rng, rows, pay, *, episodes, clock=None, ends=0.0):
    """A Markov log from state 0 on; recording stops after `clock(rng)` steps, or in the end."""
    states, columns = len(rows), []
    state, left = np.zeros(episodes, int), np.full(episodes, np.inf)
    if clock is not None:
        left = clock(rng, episodes)
    number = np.arange(episodes)
    while number.size:
        place = rng.random(number.size)[:, None]
        following = (place > rows[state].cumsum(axis=1)).sum(axis=1).clip(max=states - 1)
        reward, over = pay(rng, following), rng.random(number.size) < ends
        left = left - 1
        stopped = ~over & (left <= 0)
        columns.append((number, state, reward, np.where(over, states, following), over, stopped))
        goes_on = ~(over | stopped)
        number, state, left = number[goes_on], following[goes_on], left[goes_on]
    episode, *parts = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(episode, kind="stable")
    state, *rest = (part[order] for part in parts)
    offsets = np.concatenate([[0], np.bincount(episode).cumsum()])
    return DecisionLog(Pairs.full(states + 1, 1), state, np.zeros_like(state), *rest, offsets)


def eight(rng, episodes):
    return np.full(episodes, 8)


def one_or_sixty(rng, episodes):
    """Nine of ten recordings stop at once: shuffled episodes are of quite other lengths."""
    return np.where(rng.random(episodes) < 0.9, 1, 60)


WORLDS = {
    "ends, no noise": (RING, none, {"episodes": 30, "ends": 0.2}),
    "ends, skewed": (RING, skewed, {"episodes": 30, "ends": 0.2}),
    "one state that loops": (LOOP, noise, {"episodes": 30, "ends": 0.3}),
    "a deterministic cycle": (CYCLE, skewed, {"episodes": 30, "ends": 0.1}),
    "eight steps": (RING, noise, {"episodes": 40, "clock": eight}),
    "eight steps, one state, a jackpot": (LOOP, jackpot, {"episodes": 40, "clock": eight}),
    "one step or sixty": (RING, noise, {"episodes": 100, "clock": one_or_sixty}),
}


LONG_TAIL = (RING, skewed, {"episodes": 100, "clock": one_or_sixty})


def false_alarms(world, number, monkeypatch, discount=0.95):
    """How many of so many Markov logs fail at a level of 0.05, with few shuffles."""
    monkeypatch.setattr(shuffling, "MANY", 39)
    rows, pay, terms = world
    logs = (markov_log(np.random.default_rng(i), rows, pay, **terms) for i in range(number))
    found = [
        model_check(GivenLog(log, i, 0.05, NAMES, discount)).outcome for i, log in enumerate(logs)
    ]
    assert found.count("unchecked") < number / 10  # a jackpot that nobody hits
    return found.count("failed")


@pytest.mark.one_quick
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_markov_logs_give_false_alarms_at_most_as_stated(monkeypatch, world):
    """Not divided by its own standard deviation, "one step or sixty" fails far too often."""
    assert false_alarms(world, 80, monkeypatch) <= binom.ppf(1 - RARE, 80, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_rates_of_false_alarms_in_many_logs(monkeypatch, world):
    assert false_alarms(world, 2000, monkeypatch) <= binom.ppf(1 - RARE, 2000, 0.05)


@pytest.mark.slow
def test_a_clock_and_a_long_tail_need_more_episodes(monkeypatch):
    """What docs/checks.md says of them: fewer than one of ten at a level of one in twenty."""
    failed = false_alarms(LONG_TAIL, 1000, monkeypatch, discount=0.5)
    assert failed <= 100


def test_what_the_step_before_pays_is_seen_in_means():
    log = remembering_log(1, episodes=400, paid_lag=2.0)
    assert model_check(GivenLog(log, 1, 0.01, NAMES, 0.9)).outcome == "failed"


@pytest.mark.parametrize("seed", range(6))
def test_it_fails_where_a_mean_lies_outside_its_range(seed):
    log = remembering_log(seed, episodes=100, paid_lag=1.5)
    check = model_check(GivenLog(log, seed, 0.1, NAMES, 0.9))
    outside = [not mark.low <= mark.value <= mark.high for mark in check.picture]
    assert any(outside) == (check.outcome == "failed")
    assert check.noticed == pytest.approx(max(mark.high - mark.beside for mark in check.picture))
    assert [mark.name for mark in check.picture] == [
        NAMES[s] for s in np.argsort(-np.bincount(log.state), kind="stable")
    ]


def test_where_no_order_differs_there_is_nothing_to_compare():
    rng = np.random.default_rng(0)
    single = log_of(*([(0, x, 3, "over")] for x in rng.normal(size=50)))
    # Every state has its own time, so that all orders have the same means.
    chain = log_of(*([(0, x, 1), (1, y, 2, "over")] for x, y in rng.normal(size=(50, 2))))
    few = log_of(*([(0, x, 0), (0, y, 3, "over")] for x, y in rng.normal(size=(29, 2))))
    for log in (single, chain, few):
        check = model_check(GivenLog(log, 0, 0.01, NAMES, 0.9))
        assert check.why == "nothing-to-compare"
    same = log_of(*([(0, 0.1, 0), (0, 0.1, 0, "stopped")] for _ in range(50)))
    assert model_check(GivenLog(same, 0, 0.01, NAMES, 0.9)).why == "nothing-varies"


def test_only_roundings_of_what_steps_earned_count_as_nothing():
    """Roundings of the largest reward and the largest value together: here of 1,000 each."""
    unit, most = SAME * 1_000.0, 2.0  # of units
    excess = np.array([0.5, 1.9, -1.9, 2.1, -2.1, -900.0])
    log = log_of(*([(0, -1_000.0 - part * unit, 3, "over")] for part in excess[:-1]),
                 [(0, -100.0, 3, "over")], [(1, 0.0, 3, "over")])  # fmt: skip
    found = trail_of(log, DISCOUNT, np.array([-1_000.0, 0.0, 0.0, 0.0]), np.arange(2)).excess
    expected = [0.0 if abs(part) <= most else -part * unit for part in excess[:-1]]
    assert found.tolist() == pytest.approx([*expected, 900.0, 0.0], rel=1e-3, abs=0.0)
