"""Permutation tests, against all permutations and plain formulas."""

from itertools import permutations

import numpy as np
import pytest

from support.remembering_worlds import remembering_log
from surestep import DecisionLog, Pairs
from surestep.checks import shuffling
from surestep.checks.check import GivenLog
from surestep.checks.markov import next_state_by_past as next_state_check
from surestep.checks.shuffling import (
    arranged,
    drawn_visits,
    least_noticed,
    shuffle_test,
)
from surestep.kernels.shuffles import room_to_shuffle, shuffled_information, shuffled_spread

GROUP = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
PAST = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1])
LABEL = np.array([0, 0, 2, 2, 2, 1, 0, 0, 1, 1, 1, 1, 1])
NUMBER = np.array([1.0, 2, 2, 7, 7, 7, 0, 0, 1, 2, 4, 4, 4])


ALWAYS = 10**9  # shuffles as large as the log, before which none of these tests stops


def information(group, past, outcome):
    """Σ n ln n over (group, past, outcome) − over (group, outcome), counted one by one."""

    def part(*columns):
        _, times = np.unique(np.stack(columns), axis=1, return_counts=True)
        return float(np.sum(times * np.log(times)))

    return part(group, past, outcome) - part(group, outcome)


def between(group, past, outcome):
    """The share of squares between the means of pasts, times rows, over groups."""
    total = 0.0
    for g in np.unique(group):
        own, before = outcome[group == g], past[group == g]
        means = [(own[before == x].mean(), np.sum(before == x)) for x in np.unique(before)]
        squares = sum(many * (mean - own.mean()) ** 2 for mean, many in means)
        total += own.size * squares / np.sum((own - own.mean()) ** 2)
    return total


def all_orders(rows):
    """All permutations of the outcomes of the first group, each with one of the second."""
    first, second = rows[:6], rows[6:10]
    for order in set(permutations(first.tolist())):
        for other in set(permutations(second.tolist())):
            yield np.array([*order, *other])


@pytest.mark.parametrize(("outcome", "statistic"), [(LABEL, information), (NUMBER, between)])
def test_p_values_are_those_of_all_permutations(outcome, statistic, monkeypatch):
    monkeypatch.setattr(shuffling, "ENOUGH", ALWAYS)
    # The third group has a run of one row and says nothing.
    kept = slice(0, 10)
    group, past, own = GROUP[kept], PAST[kept], outcome[kept]
    observed = statistic(group, past, own)
    counted = [statistic(group, past, order) for order in all_orders(own)]
    exact = np.mean(np.array(counted) >= observed - 1e-9)
    found = shuffle_test(GROUP, PAST, outcome, seed=5, level=0.05)
    assert found.rows == 10
    # 999 shuffles: five standard errors, a chance below 1e-6
    assert abs(found.p_value - exact) < 5 * np.sqrt(exact / 999) + 0.001


def p_value_in(order, level=0.5):
    """The p-value of the first number, where the others are the statistics of shuffles."""
    drawn = np.array(order, float)

    def draws(number, effect, batch):
        shuffled = np.zeros(number) if effect else drawn[batch : batch + number]
        return np.append(drawn[0], shuffled)

    return shuffling.tested(arranged(GROUP, PAST, LABEL), draws, level).p_value


@pytest.mark.parametrize("values", ["012345", "001233", "011112", "000011", "111111"])
@pytest.mark.parametrize("enough", [1, 2, 6])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_test_that_stops_is_exact_for_every_level(values, enough, batch, monkeypatch):
    """All orders of six numbers: log and shuffles, as likely as each other if nothing matters."""
    monkeypatch.setattr(shuffling, "ENOUGH", enough)
    monkeypatch.setattr(shuffling, "BATCH", batch)
    monkeypatch.setattr(shuffling, "MANY", 5)
    monkeypatch.setattr(shuffling, "TRIES", 1)
    monkeypatch.setattr(shuffling, "EFFECTS", (0.1,))
    orders = sorted(set(permutations(values)))  # equally likely
    found = np.sort([p_value_in(order) for order in orders])
    chance = np.searchsorted(found, found, side="right") / found.size
    assert (chance <= found + 1e-12).all()
    if len(set(values)) == len(values):  # no ties: every level that can be reached is used up
        np.testing.assert_allclose(chance, found, atol=1e-12)


def test_the_tenth_shuffle_as_large_as_the_log_settles_the_verdict(monkeypatch):
    """What fails with all shuffles fails, and nothing else: the shuffles begin alike."""
    logs = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group, past, own = rng.integers(0, 3, (3, 300))
        logs.append((group, past, np.where(rng.random(300) < seed / 150, past, own)))
    few = [shuffle_test(*log, seed=i, level=0.005) for i, log in enumerate(logs)]
    monkeypatch.setattr(shuffling, "ENOUGH", ALWAYS)
    every = [shuffle_test(*log, seed=i, level=0.005) for i, log in enumerate(logs)]
    assert [x.p_value <= 0.005 for x in few] == [x.p_value <= 0.005 for x in every]
    assert {len(x.shuffles) for x in every} == {999}
    assert min(len(x.shuffles) for x in few) == shuffling.BATCH
    assert 0 < sum(x.p_value <= 0.005 for x in few) < 60


def test_kernels_have_the_statistics_of_plain_formulas():
    rng = np.random.default_rng(0)
    group, past = np.sort(rng.integers(0, 4, 200)), rng.integers(0, 5, 200)
    label, number = rng.integers(0, 6, 200), rng.normal(size=200)
    placed = arranged(group, past, label)
    own = placed.order
    local, times = label[own].astype(np.int32), np.arange(201.0)
    found = np.empty(1)
    n_log_n = times * np.log(np.maximum(times, 1))
    runs = placed.groups, placed.runs
    room = room_to_shuffle(*runs)
    shuffled_information.all(1, room, 0, 0.0, *runs, local, n_log_n, found)
    assert found[0] == pytest.approx(information(group[own], past[own], label[own]))
    shuffled_spread.all(1, room, 0, 0.0, *runs, number[own], found)
    assert found[0] == pytest.approx(between(group[own], past[own], number[own]))


def test_what_cannot_be_compared_is_left_out():
    assert shuffle_test(np.zeros(4, int), np.arange(4), np.arange(4), seed=0, level=0.1) is None
    assert shuffle_test(np.arange(4), np.zeros(4, int), np.arange(4), seed=0, level=0.1) is None
    same = np.zeros(4, int), np.array([0, 0, 1, 1]), np.ones(4, int)
    assert shuffle_test(*same, seed=0, level=0.1) is None
    rounded = np.array([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2])
    assert shuffle_test(*same[:2], rounded, seed=0, level=0.1) is None


def test_made_up_shifts_that_undo_all_differences_divide_by_nothing():
    """Two pasts of two rows that pay ±1: shifted by a standard deviation, all may pay the same."""
    group, past = np.repeat(np.arange(6), 4), np.tile([0, 0, 1, 1], 6)
    found = shuffle_test(group, past, np.tile([-1.0, -1.0, 1.0, 1.0], 6), seed=0, level=0.5)
    assert found.p_value < 0.05
    shifted = np.empty(301)
    placed = arranged(group, past, np.tile([-1.0, 1.0], 12))
    runs = placed.groups, placed.runs
    shuffled_spread.all(
        301, room_to_shuffle(*runs), 0, 1.0, *runs, np.tile([-1.0, 1.0], 12), shifted
    )
    assert np.isfinite(shifted).all()


def test_drawn_visits_are_one_an_episode_and_place_and_mostly_early_ones():
    log = remembering_log(0, episodes=200)
    state = log.state.astype(np.int64)
    rows = drawn_visits(log, state, 4)
    assert rows.tolist() == drawn_visits(log, state, 4).tolist()
    episode = np.repeat(np.arange(200), 8)
    assert len({*zip(episode[rows], state[rows], strict=True)}) == rows.size
    number = np.array(
        [np.sum((state[:row] == state[row]) & (episode[:row] == episode[row])) for row in rows]
    )
    places = len({*zip(episode, state, strict=True)})
    # Two of three draws are first visits; 6 standard errors.
    assert abs((number == 0).sum() / places - 2 / 3) < 6 * np.sqrt(2 / 9 / places)
    assert number.max() > 1


def test_what_changes_while_one_stays_is_seen():
    """A counter of months that is shown in bins of four: one leaves after four visits."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(4, size=300)[:, None] + np.arange(9)
    state = hidden // 4
    last = np.tile(np.arange(8) == 7, 300)
    log = DecisionLog(
        Pairs.full(4, 1), state[:, :-1].ravel(), np.zeros(2400, int), np.zeros(2400),
        state[:, 1:].ravel(), np.zeros(2400, bool), last, 8 * np.arange(301),
    )  # fmt: skip
    assert next_state_check(GivenLog(log, 1, 0.01)).outcome == "failed"


def test_what_would_be_noticed_is_the_smallest_effect_that_most_made_up_logs_show():
    def draws(number, effect, batch):
        return np.full(number + 1, effect)

    assert least_noticed(draws, 0.06) == 0.07
    assert least_noticed(draws, 2.0) is None


def test_a_larger_log_notices_less():
    rng = np.random.default_rng(1)

    def noticed(rows):
        columns = (rng.integers(0, 3, rows) for _ in range(3))
        return shuffle_test(*columns, seed=1, level=0.01).noticed

    assert noticed(3000) < noticed(300)


def test_seeds_and_threads_decide_nothing_else(monkeypatch):
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 3, 400) for _ in range(3)]
    first = shuffle_test(*columns, seed=9, level=0.01)
    assert first == shuffle_test(*columns, seed=9, level=0.01)
    monkeypatch.setattr(shuffling, "BATCH", 99)
    assert set(shuffle_test(*columns, seed=9, level=0.01).shuffles) != set(first.shuffles)


@pytest.mark.gpu
@pytest.mark.parametrize("outcome", [LABEL, pytest.param(NUMBER, marks=pytest.mark.slow)])
def test_shuffles_on_a_gpu_are_the_same(outcome, both):
    expected, found = both(lambda: shuffle_test(GROUP, PAST, outcome, seed=1, level=0.1))
    assert found.p_value == expected.p_value
