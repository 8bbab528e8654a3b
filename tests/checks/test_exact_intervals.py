"""Exact intervals of checks: how often they miss, first of all where that could be too often.

Means of rollouts and the law of a bound are held against exact numbers; the whole against worlds
that are known.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from surestep import DecisionLog, FiniteMDP, Pairs, Policy, optimal, performance, sample_log
from surestep.certificates.bets import lower_share
from surestep.certificates.stacks import stacks_of
from surestep.certificates.stitched import Folds, Stitched
from surestep.checks import held_out
from surestep.checks.cuts import Cut, Terms, cut_check, gain_bounds
from surestep.checks.held_out import beginning, folds_by
from surestep.checks.time_in_states import (
    Clock,
    Rolling,
    TimeInStates,
    clocks_for,
    longest,
    share_bounds,
)
from surestep.model import estimate_mdp

LEVEL = 0.1  # for all ends of intervals together
RARE = 1e-4  # the chance that a test of rates fails although all is right
NOISES = {
    "none": lambda rng, size: np.zeros(size),
    "uniform": lambda rng, size: rng.uniform(-1, 1, size),
    "skewed": lambda rng, size: np.where(rng.random(size) < 0.05, 0.95, -0.05),
}
JUDGE = Stitched(train_share=0.4)
BOUNDS = (-10.0, 20.0)  # of rewards between −1 and 2, discounted by 0.9


def world(seed, states, ends=False, discount=0.9):
    """Returns a process and the policy that makes logs; its last state may end it."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), size=(states, 2))
    deciding = np.arange(states) < states - ends
    rows[~deciding] = 0
    rewards = rng.random((states, 2, states))
    mdp = FiniteMDP.from_dense(rows, rewards, discount, deciding / deciding.sum())
    return mdp, Policy.from_dense(mdp, rng.dirichlet([1, 1], size=states))


def learning_log(mdp, behavior, episodes, steps, rng):
    """A log of somebody who repeats what paid most, from the second episode on."""
    log = sample_log(mdp, behavior, 1, steps, rng)
    for _ in range(episodes - 1):
        greedy = optimal(estimate_mdp(log.counts(), 0.9)).policy
        log = joined(log, sample_log(mdp, greedy.mix(behavior, 0.3), 1, steps, rng))
    return log


def joined(first, second):
    columns = ("state", "action", "reward", "next_state", "terminated", "truncated")
    offsets = second.episode_offsets[1:] + first.num_steps
    return DecisionLog(
        first.pairs,
        *(np.concatenate([getattr(first, one), getattr(second, one)]) for one in columns),
        np.concatenate([first.episode_offsets, offsets]),
    )


def intervals(mdp, behavior, log):
    """Bounds of the gain and of time in two sets, and the truth, of what luck on fold 1 chose."""
    folds = folds_by(JUDGE, log)
    model = estimate_mdp(folds.first.counts(), 0.9)
    policy = optimal(model).policy
    time = TimeInStates(mdp, log.counts(), policy, ~log.counts().terminal)
    likely = TimeInStates(model, log.counts(), policy, ~log.counts().terminal).shares
    size = mdp.num_states
    sets = np.stack([np.arange(size) == np.argmax(likely), np.arange(size) < size // 2])
    shares = share_bounds(policy, folds, sets, discount=0.9, delta=LEVEL / 4)
    terms = Terms(0.9, BOUNDS, JUDGE)
    (gain,) = gain_bounds([Cut.of(log, log, (policy, behavior), terms)], terms, LEVEL)
    truth = performance(mdp, policy) - performance(mdp, behavior)
    return shares, sets @ time.shares, gain, truth


def misses(logs, episodes, steps, noise, states=5, learns=False):
    """Counts the worlds in which the interval of a gain, or one of time in states, misses it.

    Every other world comes to an end by itself.
    """
    gains = times = 0
    for seed in range(logs):
        mdp, behavior = world(seed, states, ends=bool(seed % 2))
        rng = np.random.default_rng(10**6 + seed)
        made = learning_log if learns else sample_log
        log = made(mdp, behavior, episodes, steps, rng)
        log = replace(log, reward=log.reward + NOISES[noise](rng, log.num_steps))
        shares, time, gain, truth = intervals(mdp, behavior, log)
        gains += not gain[0] <= truth <= gain[1]
        times += not bool(((shares[:, 0] <= time) & (time <= shares[:, 1])).all())
    return gains, times


SMALL = [
    (30, 8, "none", 5, False),
    (6, 8, "uniform", 5, False),  # few visits
    (30, 8, "skewed", 5, False),
    (100, 1, "none", 5, False),  # nothing but starts
    (30, 8, "uniform", 20, False),  # most pairs seen once or never
    (25, 8, "uniform", 4, True),
]


@pytest.mark.parametrize(("episodes", "steps", "noise", "states", "learns"), SMALL)
def test_intervals_miss_no_more_often_than_they_say(episodes, steps, noise, states, learns):
    assert max(misses(8, episodes, steps, noise, states, learns)) <= binom.ppf(1 - RARE, 8, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize(("episodes", "steps", "noise", "states", "learns"), SMALL)
def test_intervals_of_many_logs(episodes, steps, noise, states, learns):
    logs = 100
    most = binom.ppf(1 - RARE, logs, LEVEL)
    assert max(misses(logs, episodes, steps, noise, states, learns)) <= most


# ---- the law of one bound, in exact numbers ------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "delta"), [(Fraction(1, 10), 0.1), (Fraction(1, 2), 0.5), (Fraction(4, 5), 0.5)]
)
def test_a_share_is_missed_with_at_most_its_chance_over_all_series(share, delta):
    """Every series of nine parts of 0 or 1, of wholes that are 1, is gone through."""
    missed, most = Fraction(0), 0.0
    for series in itertools.product((0, 1), repeat=9):
        chance = Fraction(1)
        for part in series:
            chance *= share if part else 1 - share
        values = np.array([series], float)
        low = lower_share(values, np.ones((1, 9)), np.array([9]), 4.0, 1.0, delta)
        missed += chance * (low > share)
        most = max(most, low)
    assert missed <= Fraction(delta)
    assert most > share  # some series do show too much


def test_shares_by_hand():
    parts, wholes = np.array([[1.0, 0.0, 1.0, 1.0]]), np.array([[2.0, 1.0, 1.0, 2.0]])
    low = lower_share(parts, wholes, np.array([4]), 2.0, 2.0, 0.9)
    tried = np.linspace(1e-4, 1, 10_000)[:, np.newaxis]
    factors = 1 + np.minimum(2.0, 0.99 / (2 * tried)) * (parts - tried * wholes)
    reached = np.cumprod(factors, axis=1).max(axis=1) >= 3 / 0.9
    assert low == pytest.approx(tried[reached].max(), abs=1e-3)
    assert lower_share(parts, wholes, np.array([0]), 2.0, 2.0, 0.9) == 0.0


ROW = {0: ((0, Fraction(1, 2)), (1, Fraction(1, 3)), (2, Fraction(1, 6))), 1: ((0, 1),)}


def tiny_worlds():
    """All logs with two visits of state 0, one of state 1 and one start, with their chances.

    State 2 ends episodes; from state 1 all go back to state 0.
    """
    for start, outcomes in itertools.product((0, 1), itertools.product(ROW[0], repeat=2)):
        chance = Fraction(1, 4) if start else Fraction(3, 4)
        for _, share in outcomes:
            chance *= share
        yield chance, start, [successor for successor, _ in outcomes]


def stacks_with(start, successors):
    """The stacks of a log that begins there and shows these successors of state 0."""
    state, follows = np.array([0, 0, 1]), np.array([*successors, 0])
    log = DecisionLog(
        Pairs.full(3, 1), state, state * 0, state * 0.0, follows, follows == 2,
        follows != 2, np.arange(4),
    )  # fmt: skip
    return stacks_of(log)._replace(starts=np.array([start]))


def exact_means():
    """The mean time of two steps in state 0 and anywhere, and the chance to be left after them."""
    chances, here, anywhere = {0: Fraction(3, 4), 1: Fraction(1, 4)}, Fraction(0), Fraction(0)
    for step in range(2):
        here += Fraction(1, 2) ** step * chances.get(0, 0)
        anywhere += Fraction(1, 2) ** step * sum(chances.values())
        after = {0: Fraction(0), 1: Fraction(0)}
        for state, chance in chances.items():
            for successor, share in ROW[state]:
                if successor < 2:
                    after[successor] += chance * share
        chances = after
    return here, anywhere, sum(chances.values())


COUNTING = Clock(stop=0.0, discount=0.5, most=2.0, left=2.0, horizon=2)
STOPPING = Clock(stop=0.5, discount=1.0, most=1.0, left=1.0, horizon=2)


@pytest.mark.parametrize(("clock", "runs"), [(COUNTING, 1), (STOPPING, 4000)])
def test_rollouts_have_the_mean_that_is_asked_for_over_all_logs(clock, runs):
    """Two steps of a tiny process, γ = ½, with the chances of all logs in exact numbers.

    By counting, means are exact; by stopping, over what some thousands of runs draw.
    """
    policy = Policy.from_dense(Pairs.full(3, 1), np.ones((3, 1)))
    sets, over = np.array([[True, False, False]]), np.array([False, False, True])
    rolling = Rolling(policy, sets, over, np.array([True, True, False]), seed=0)
    part, whole = Fraction(0), Fraction(0)
    for chance, start, successors in tiny_worlds():
        time = rolling.rolled(stacks_with(start, successors), clock, 1, runs)
        assert (time.complete == 1).all()
        part += chance * Fraction(float(time.there[0].mean()))
        whole += chance * Fraction(float(time.most.mean()))
    here, anywhere, left = exact_means()
    if clock.stop == 0:
        assert (part, whole) == (here, anywhere + left * Fraction(1, 4) * 2)  # γ² w
    else:  # stops with γ^t (1 − γ) after t steps; what is left after two is cut
        assert float(part) == pytest.approx(float(here) / 2, abs=0.02)
        assert float(whole) == pytest.approx(float(anywhere / 2 + left / 4), abs=0.02)


# ---- what else they must keep --------------------------------------------------------------------


def shares_within(mdp, policy, steps):
    """The share of the first steps of an episode that each state has, in a world that is known."""
    size = mdp.num_states
    moves = np.zeros((size, size))
    pair = np.repeat(np.arange(mdp.pairs.num_pairs), np.diff(mdp.offsets))
    chances = policy.probability[pair] * mdp.probability
    np.add.at(moves, (mdp.pairs.state[pair], mdp.successor), chances)
    lives = moves.sum(axis=1) > 0
    now, total = mdp.initial, np.zeros(size)
    for _ in range(steps):
        total += now * lives
        now = now @ moves
    return total / total.sum()


def test_without_a_discount_time_is_that_of_the_longest_training_episode():
    assert clocks_for(1.0, 7) == [Clock(0.0, 1.0, 7.0, 0.0, 7)]
    missed, widths, sets = 0, [], np.arange(5) == np.array([[0], [3]])
    for seed in range(12):
        mdp, behavior = world(seed, 5, ends=True, discount=1.0)
        log = sample_log(mdp, behavior, 300, 6, np.random.default_rng(seed))
        folds = folds_by(JUDGE, log)
        policy = optimal(estimate_mdp(folds.first.counts(), 0.9)).policy
        bounds = share_bounds(policy, folds, sets, discount=1.0, delta=LEVEL / 4)
        truth = sets @ shares_within(mdp, policy, longest(folds))
        missed += bool(((truth < bounds[:, 0]) | (truth > bounds[:, 1])).any())
        widths.append(np.diff(bounds).mean())
    assert missed <= binom.ppf(1 - RARE, 12, LEVEL)
    assert np.mean(widths) < 0.5


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_a_set_and_the_rest_have_shares_that_add_up(discount):
    mdp, behavior = world(1, 4, ends=True, discount=discount)
    log = sample_log(mdp, behavior, 300, 20, np.random.default_rng(1))
    there = np.array([True, False, True, False])
    sets = np.stack([there, ~there, np.ones(4, bool)])
    bounds = share_bounds(behavior, folds_by(JUDGE, log), sets, discount=discount, delta=0.01)
    truth = TimeInStates(mdp, log.counts(), behavior, np.arange(4) < 3).shares[there].sum()
    assert bounds[0, 0] < truth < bounds[0, 1]
    assert (bounds[:, 0] <= bounds[:, 1]).all()
    assert bounds[0] == pytest.approx(1 - bounds[1, ::-1], abs=1e-6)
    assert bounds[2, 1] == 1


def test_intervals_know_nothing_of_rows_that_are_left_out():
    mdp, behavior = world(0, 5)
    log = sample_log(mdp, behavior, 60, 8, np.random.default_rng(0))
    assert folds_by(None, log) == "nothing-held-out"
    assert folds_by(JUDGE, None) == "nothing-held-out"
    assert folds_by(JUDGE, log.episodes(slice(1))) == "too-few-episodes"
    terms = Terms(0.9, BOUNDS, None)
    found = cut_check(log, (log, log), (behavior, behavior), terms, claim=None, level=0.05)
    assert (found.unjudged, found.rows) == ("nothing-held-out", 0)
    assert (found.figures["own_low"], found.figures["own_high"]) == (-30.0, 30.0)


def test_of_a_large_log_the_first_episodes_of_each_part_are_taken(monkeypatch):
    mdp, behavior = world(0, 5)
    log = sample_log(mdp, behavior, 60, 8, np.random.default_rng(0))
    monkeypatch.setattr(held_out, "MOST_TO_PLAN", 45)
    monkeypatch.setattr(held_out, "MOST_TO_JUDGE", 80)
    folds = folds_by(JUDGE, log)
    assert (folds.first, folds.second) == (log.episodes(slice(5)), log.episodes(slice(24, 34)))
    assert folds.ratio == 2
    assert beginning(log, 3).num_episodes == 1


def test_how_long_episodes_that_judge_are_decides_no_bet(monkeypatch):
    """Bets go by the ratio of both parts, of which the rows that judge must not know."""
    monkeypatch.setattr(held_out, "MOST_TO_JUDGE", 80)
    mdp, behavior = world(0, 5)
    first = sample_log(mdp, behavior, 24, 8, np.random.default_rng(0))
    folds = [
        folds_by(
            JUDGE, joined(first, sample_log(mdp, behavior, 36, steps, np.random.default_rng(1)))
        )
        for steps in (1, 8, 40)
    ]
    assert [fold.second.num_episodes for fold in folds] == [36, 10, 2]
    assert {fold.ratio for fold in folds} == {10 / 24}


def test_rows_that_judge_do_not_say_what_is_done_in_coarser_states():
    """A coarse state has the mean of the policy over rows that chose it, and over no others."""
    mdp, behavior = world(0, 5)
    log = sample_log(mdp, behavior, 60, 8, np.random.default_rng(0))
    folds = folds_by(JUDGE, log)
    again = joined(folds.first, sample_log(mdp, behavior, 36, 8, np.random.default_rng(9)))
    policy = optimal(estimate_mdp(folds.first.counts(), 0.9)).policy

    def coarser(rows):
        pairs = Pairs.full(2, 2)
        half = (rows.state > 2, rows.action, rows.reward, rows.next_state > 2)
        return DecisionLog(pairs, *half, rows.terminated, rows.truncated, rows.episode_offsets)

    terms = Terms(0.9, BOUNDS, JUDGE)
    cuts = [Cut.of(rows, coarser(rows), (policy, behavior), terms) for rows in (log, again)]
    assert cuts[0].folds.first == cuts[1].folds.first
    assert cuts[0].new == cuts[1].new
    assert cuts[0].current == cuts[1].current
    assert isinstance(cuts[0].folds, Folds)


def test_cuts_that_mean_nothing_give_no_false_alarm():
    """Policies are chosen by luck, and whatever it has made of them is claimed."""
    failed = 0
    for seed in range(20):
        mdp, current = world(seed, 5)
        rng = np.random.default_rng(10**6 + seed)
        log = sample_log(mdp, current, 30, 8, rng)
        coin = rng.integers(2, size=log.num_steps + 1)
        fine = DecisionLog(
            Pairs.full(10, 2), 2 * log.state + coin[:-1], log.action, log.reward,
            2 * log.next_state + coin[1:], log.terminated, log.truncated, log.episode_offsets,
        )  # fmt: skip
        new = optimal(estimate_mdp(log.counts(), 0.9)).policy
        terms = Terms(0.9, BOUNDS, None)
        found = cut_check(log, (log, fine), (new, current), terms, claim=0.1, level=0.05)
        failed += found.outcome == "failed"
    assert failed <= binom.ppf(1 - RARE, 20, 0.05)
