"""The set of models that a robust claim is about: its levels, and how often it misses the truth."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaincinv

from support.problems import uniform_problem
from support.robust_examples import EVERY, STRICT, set_of, small_counts, small_problem
from surestep import Counts, FiniteMDP, Policy, Problem, certify, performance, sample_counts
from surestep.algorithms import SPIBB
from surestep.certificates import Robust
from surestep.certificates.uncertainty import Observed, set_rows
from surestep.model.counts import LoggedRewards


def test_levels_are_shared_among_all_pairs_and_states_and_fixed_before_the_data():
    models = set_of(small_problem(), Robust(strict=False, delta=0.1))
    # Four pairs do not end the episode, and the start distribution is not known.
    assert models.parts == 5
    level = 0.1 / 5 / 3
    rows = models.models.rows
    seen = {(0, 0): (6, 10), (0, 2): (1, 10), (1, 1): (5, 10), (2, 0): (2, 10)}
    for (pair, state), (k, n) in seen.items():
        run = range(*rows.offsets[pair : pair + 2])
        t = next(t for t in run if rows.successor[t] == state)
        assert rows.low[t] == pytest.approx(betaincinv(k, n - k + 1, level / 2))
        assert rows.high[t] == pytest.approx(betaincinv(k + 1, n - k, 1 - level / 2))
    # Where a state was not seen: P(no visit of ten) = (1 − u)^10 = level/2.
    assert rows.elsewhere[:4] == pytest.approx([1 - (level / 2) ** 0.1] * 3 + [1.0])
    assert np.diff(rows.room).tolist()[4:] == [0, 0]  # nothing is unknown about ends
    known = set_of(small_problem(), Robust(strict=False, known_start=True))
    assert (known.parts, known.starts) == (4, None)
    table = small_counts(reward_sums=[[5.0, 9.0], [1.0, 0.0], [0.0, 0.0]])
    observed = set_of(
        small_problem(counts=table), Robust(strict=False, reward_low=0.0, reward_high=2.0)
    )
    assert observed.parts == 9


def test_a_tree_has_a_node_for_every_state_but_one_with_a_count_of_its_own():
    rows = set_of(small_problem(), Robust(strict=False, set="two-successor", delta=0.1)).models.rows
    level = 0.1 / 5 / 2
    # States 0 | 1 2, then 1 | 2: pair 0 went left 6 of 10 times, then 3 of 4 times.
    for node, (k, n) in enumerate([(6, 10), (3, 4), (0, 10), (5, 10)]):
        low = betaincinv(k, n - k + 1, level / 2) if k else 0.0
        assert rows.low[node] == pytest.approx(low)
        assert rows.high[node] == pytest.approx(betaincinv(k + 1, n - k, 1 - level / 2))


def test_the_one_split_between_two_states_has_the_whole_level_of_its_row():
    counts = Counts.from_dense([[[7, 3]], [[0, 0]]], rewards=np.zeros((2, 1)), starts=[1, 0],
                               terminal=[False, True])  # fmt: skip
    problem = small_problem(counts=counts)
    rows = set_of(
        problem, Robust(strict=False, set="two-successor", delta=0.1, known_start=True)
    ).models.rows
    assert rows.low.tolist() == pytest.approx([betaincinv(7, 4, 0.05)])
    assert rows.high.tolist() == pytest.approx([betaincinv(8, 3, 0.95)])


def test_balls_lie_around_frequencies_and_are_everything_without_a_visit():
    times, sizes = np.array([1, 0, 3, 1, 0, 0]), np.array([2, 2, 2, 0])
    observed = Observed(np.array([0, 2, 4, 6, 6]), np.array([0, 1, 0, 1, 0, 1]), times,
                        np.array([False, False, False, True]), sizes, closed=True)  # fmt: skip
    rows = set_rows(observed, 2, 0.6, Robust(strict=False, set="l1").terms())
    assert rows.center.tolist() == [1.0, 0.0, 0.75, 0.25, 0.5, 0.5]
    by_weissman = np.sqrt(2 * np.log(2 / 0.6) / np.array([1, 4]))
    assert rows.radius[:2] == pytest.approx(by_weissman)
    assert rows.radius[2] == 2.0


def in_set(models, P):
    """Whether all rows [K, S] lie in the set."""
    rows, size = models.models.rows, models.initial.size
    owner = np.repeat(np.arange(P.shape[0]), np.diff(rows.offsets))
    if hasattr(rows, "radius"):
        center = np.zeros(P.shape)
        center[owner, rows.successor] = rows.center
        return bool((np.abs(center - P).sum(axis=1) <= rows.radius).all())
    if hasattr(rows, "elsewhere"):
        low, high = np.zeros(P.shape), np.repeat(rows.elsewhere[:, np.newaxis], size, axis=1)
        low[owner, rows.successor], high[owner, rows.successor] = rows.low, rows.high
        return bool(((low <= P) & (high >= P)).all())
    inside, trees = True, rows.trees
    for k in range(P.shape[0]):
        node, stack = trees.node_offsets[k], [(0, size)]
        while stack and node < trees.node_offsets[k + 1]:
            first, last = stack.pop()
            stored = trees.successor[slice(*trees.offsets[k : k + 2])]
            if last - first < 2 or not ((stored >= first) & (stored < last)).any():
                continue
            middle = (first + last) // 2
            mass = P[k, first:last].sum()
            share = P[k, first:middle].sum() / mass if mass > 0 else rows.low[node]
            inside &= bool(rows.low[node] - 1e-12 <= share <= rows.high[node] + 1e-12)
            stack += [(middle, last), (first, middle)]
            node += 1
    return inside


def too_often(failures, trials, delta, alarm=1e-6):
    """Whether so many failures are impossible at a rate of δ, but for a false alarm of 1e-6."""
    return failures > 0 and betaincinv(failures, trials - failures + 1, alarm) > delta


@EVERY
@STRICT
@pytest.mark.parametrize("trials", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_set_and_claim_fail_at_most_as_often_as_they_may(kind, strict, trials):
    delta = 0.4
    rng = np.random.default_rng(11)
    missed = wrong = 0
    for trial in range(trials):
        size = 2 + trial % 3
        P = rng.dirichlet(np.full(size, 0.7), (size, 2))
        mdp = FiniteMDP.from_dense(P, rng.random((size, 2)), 0.8)
        behavior = Policy.uniform(mdp)
        counts = sample_counts(mdp, behavior, 1, 40, rng)
        counts = replace(counts, rewards=LoggedRewards(mdp.expected_reward, "pair", True))
        problem = Problem(counts=counts, behavior=behavior, discount=0.8, value_bounds=(0.0, 5.0))
        certifier = Robust(set=kind, strict=strict, delta=delta, known_start=True)
        missed += not in_set(set_of(problem, certifier), P.reshape(-1, size))
        policy = SPIBB(n_wedge=2).improve(problem).policy
        truth = performance(mdp, policy) - performance(mdp, behavior)
        wrong += certify(problem, policy, certifier).lower > truth
    assert not too_often(missed, trials, delta)
    assert not too_often(wrong, trials, delta)
    assert wrong <= missed  # a claim can be wrong only where the set is


@pytest.mark.parametrize("kind", ["interval", "two-successor"])
def test_the_event_is_not_empty_talk(kind):
    # With two states there is hardly any slack: a set of half the confidence fails in a good part
    # of the trials, so that the test above could fail.
    rng, missed = np.random.default_rng(3), 0
    for _ in range(200):
        P = np.array([[[0.3, 0.7]], [[0.5, 0.5]]])
        table = np.array([[rng.multinomial(50, P[s, 0])] for s in range(2)])
        counts = Counts.from_dense(table, rewards=np.zeros((2, 1)))
        problem = uniform_problem(counts, 0.5, (0.0, 1.0))
        models = set_of(problem, Robust(strict=False, set=kind, delta=0.9, known_start=True))
        missed += not in_set(models, P[:, 0])
    assert missed > 30
