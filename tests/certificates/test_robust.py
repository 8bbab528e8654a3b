"""Robust claims: sound for all models in the set, better with more data, and seldom wrong."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv

from support.problems import uniform_problem
from support.robust_examples import EVERY, RANGE, SETS, STRICT, set_of, small_counts, small_problem
from support.strategies import policies, problems
from surestep import (
    Counts,
    FiniteMDP,
    Pairs,
    Policy,
    Problem,
    certify,
    estimate_behavior,
    estimate_mdp,
    performance,
    sample_counts,
)
from surestep.algorithms import SPIBB
from surestep.certificates import Robust, robust
from surestep.certificates.robust import BothPolicies, check_value_bounds, compare, with_lower
from surestep.certificates.uncertainty import Observed, earnings, mean_interval, set_rows
from surestep.environments import make
from surestep.errors import CertificateRefused, RefutedBounds
from surestep.model import Statement
from surestep.model.counts import LoggedRewards
from surestep.planning.rectangular import Earnings, worst_rows


def true_difference(problem, P, R, ends, initial, policy):
    """ρ(π_I) − ρ(π_b) by solving linear systems over dense tables [K, S]."""
    pairs, counts = problem.counts.pairs, problem.counts
    reward = np.where(ends, counts.unseen_reward(), (P * R).sum(axis=1))
    rows = np.where(ends[:, np.newaxis], 0.0, P)
    values = []
    for each in (policy, problem.behavior):
        chooses = np.zeros((pairs.num_states, pairs.num_pairs))
        chooses[pairs.state, np.arange(pairs.num_pairs)] = each.probability
        system = np.eye(pairs.num_states) - problem.discount * (chooses @ rows)
        values.append(np.linalg.solve(system, chooses @ reward))
    return initial @ (values[0] - values[1]), values


def some_start(models, rng):
    """A start distribution of the set."""
    if models.starts is None:
        return models.initial
    size, one = models.initial.size, np.ones(1)
    stored = np.zeros(np.count_nonzero(models.initial))
    earnings = Earnings(stored, 0 * one, 0 * one)
    found = worst_rows(models.starts, earnings, one, rng.normal(size=size))
    return np.bincount(found.successor, found.probability, minlength=size)


def rewards_at(problem, models, rng):
    """Rewards [K, S] of the set: between the ends of each pair or transition."""
    low, high, rows = models.models.low, models.models.high, models.models.rows
    counts = problem.counts
    weight = rng.random(counts.visits.size)
    table = np.repeat(
        (low.outside + weight * (high.outside - low.outside))[:, np.newaxis],
        models.initial.size,
        axis=1,
    )
    owner = np.repeat(np.arange(weight.size), np.diff(rows.offsets))
    between = low.stored + weight[owner] * (high.stored - low.stored)
    # Counts of dense tables are sorted, so that their transitions are those of the rows.
    table[owner, counts.successor] = between
    return table


def rows_at(models, rng):
    """Rows [K, S] of the set, each the worst one for some values; and which pairs end."""
    worlds = models.models
    size = worlds.pairs.num_states
    chosen = [worlds.worst(rng.normal(size=size)) for _ in "abc"]
    room = worlds.rows.room
    P = np.zeros((worlds.pairs.num_pairs, size))
    for k in range(P.shape[0]):
        found, run = chosen[rng.integers(3)], slice(*room[k : k + 2])
        P[k] = np.bincount(found.successor[run], found.probability[run], minlength=size)
    return P, np.diff(room) == 0


@EVERY
@STRICT
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=problems(), data=st.data())
def test_the_claim_holds_for_members_of_the_set(kind, strict, problem, data):
    policy = data.draw(policies(problem.counts.pairs))
    delta = data.draw(st.sampled_from([0.01, 0.5]))
    known_start = data.draw(st.booleans())
    certifier = Robust(set=kind, strict=strict, delta=delta, known_start=known_start, **RANGE)
    models = set_of(problem, certifier)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    found = certify(problem, policy, certifier)
    for _ in range(5):
        P, ends = rows_at(models, rng)
        R, initial = rewards_at(problem, models, rng), some_start(models, rng)
        truth, values = true_difference(problem, P, R, ends, initial, policy)
        low, high = problem.value_bounds
        if min(map(np.min, values)) >= low and max(map(np.max, values)) <= high:
            assert found.lower <= truth + 1e-9 * found.span
            assert found.figures["lowest_performance"] <= initial @ values[0] + 1e-9 * found.span
            assert found.figures["highest_behavior"] >= initial @ values[1] - 1e-9 * found.span


def plain_iteration(step, size, discount):
    """The fixed point of a contraction, by as many sweeps as doubles have use for."""
    value = np.zeros(size)
    for _ in range(1 if discount == 0 else int(40 / (1 - discount))):
        value = step(value)
    return step(value)


@pytest.mark.one_quick
@EVERY
@settings(max_examples=settings.default.max_examples // 2)
@given(problem=problems(max_states=3), data=st.data())
def test_the_claim_is_at_least_either_bound_and_their_common_fixed_point(kind, problem, data):
    assume(problem.discount <= 0.95)
    policy = data.draw(policies(problem.counts.pairs))
    certifier = Robust(set=kind, **RANGE)
    models = set_of(problem, certifier)
    worlds, (low, high) = models.models, problem.value_bounds
    opposite = worlds.mirrored()
    pairs = problem.counts.pairs

    def expected(policy, q):
        return np.add.reduceat(policy.probability * q, pairs.offsets[:-1])

    def fixed(step):
        return plain_iteration(step, pairs.num_states, problem.discount)

    behavior = problem.behavior
    ours = fixed(lambda v: np.maximum(expected(policy, worlds.worst(v).q), low))
    theirs = fixed(lambda v: np.maximum(expected(behavior, worlds.worst(v).q), low))
    best = -fixed(lambda v: np.maximum(expected(behavior, opposite.worst(v).q), -high))
    least, most = worlds.worst(theirs).q, -opposite.worst(-best).q
    change = policy.probability - behavior.probability
    gain = np.add.reduceat(np.where(change > 0, change * least, change * most), pairs.offsets[:-1])
    earnings = Earnings.of_pairs(gain[pairs.state], worlds.rows.offsets)
    step = replace(worlds, low=earnings, high=earnings)
    first = models.least_start(ours) + models.least_start(-best)
    second = models.least_start(fixed(lambda v: expected(policy, step.worst(v).q)))
    both = fixed(lambda v: np.maximum(expected(policy, step.worst(v).q), ours - best))
    found = certify(problem, policy, certifier)
    slack = 1e-8 * max(found.span, 1.0)
    assert found.lower >= max(first, second) - slack
    assert found.lower == pytest.approx(models.least_start(both), abs=slack)
    assert found.figures["difference"] == pytest.approx(models.least_start(ours - best), abs=slack)
    assert found.lower <= models.least_start(both)  # errors are taken off


@EVERY
@STRICT
def test_more_data_of_the_same_kind_claims_more(kind, strict):
    counts = small_counts()
    policy = Policy.from_dense(counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    claims = [
        certify(small_problem(scale), policy, Robust(set=kind, strict=strict)).lower
        for scale in (1, 10, 100, 1000, 10**6)
    ]
    assert (np.diff(claims) > 0).all()


@EVERY
def test_strict_claims_are_weaker_and_knowing_the_start_helps(kind):
    problem = small_problem(100)
    policy = Policy.from_dense(problem.counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    strict = certify(problem, policy, Robust(set=kind))
    assert certify(problem, policy, Robust(set=kind, strict=False)).lower > strict.lower
    assert certify(problem, policy, Robust(set=kind, known_start=True)).lower > strict.lower
    assert certify(problem, policy, Robust(set=kind, delta=0.01)).lower < strict.lower


def test_a_small_change_can_cost_little_only():
    # By values alone, all that is unknown about either policy counts, changed or not.
    problem = small_problem(100)
    changed = Policy.from_dense(problem.counts, [[0.499, 0.501], [0.5, 0.5], [0.5, 0.5]])
    found = certify(problem, changed, Robust())
    assert found.figures["difference"] < -0.5
    assert -0.05 < found.lower < 0


@pytest.mark.parametrize(("kind", "least"), [("interval", 14), ("two-successor", 14), ("l1", 9)])
def test_wet_chicken_is_certified_from_the_data_of_many_trajectories(kind, least):
    benchmark = make("wet-chicken")
    claims = []
    for episodes in (10**3, 10**5):
        counts = sample_counts(
            benchmark.mdp, benchmark.collector, episodes, 10, np.random.default_rng(episodes)
        )
        known = LoggedRewards(benchmark.mdp.expected_reward, "pair", True)
        terms = {"discount": benchmark.discount, "value_bounds": benchmark.value_bounds}
        counts = replace(counts, rewards=known)
        problem = Problem(counts=counts, behavior=benchmark.behavior, **terms)
        policy = SPIBB(n_wedge=10).improve(problem).policy
        found = certify(problem, policy, Robust(strict=False, set=kind))
        truth = performance(benchmark.mdp, policy) - performance(benchmark.mdp, benchmark.behavior)
        assert found.lower < truth
        claims.append(found.lower)
    assert claims[0] < 0 < least < claims[1]


def test_observed_rewards_claim_less_than_known_ones():
    known = small_problem(100)
    policy = Policy.from_dense(known.counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    visits = known.counts.pairs.dense(known.counts.visits)
    sums = visits * np.array([[0.5, 1.0], [0.0, 2.0], [0.0, 0.0]])
    observed = small_problem(counts=small_counts(100, reward_sums=sums))
    wide = certify(observed, policy, Robust(reward_low=0.0, reward_high=2.0))
    assert wide.lower < certify(known, policy, Robust()).lower
    wider = certify(observed, policy, Robust(reward_low=-1.0, reward_high=2.0))
    assert wider.lower < wide.lower


@pytest.mark.parametrize("rows", [(0, 1, 2), (2,)])  # of which successors are turned round
@pytest.mark.parametrize("kind", SETS)
def test_the_order_in_which_successors_are_stored_does_not_matter(kind, rows):
    counts = small_counts()
    order = np.arange(counts.times.size)
    for row in rows:
        run = slice(*counts.offsets[row : row + 2])
        order[run] = order[run][::-1]
    turned = replace(counts, successor=counts.successor[order], times=counts.times[order])
    policy = Policy.from_dense(counts, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]])
    first, second = (
        certify(small_problem(counts=each), policy, Robust(set=kind)).lower
        for each in (counts, turned)
    )
    assert first == pytest.approx(second, abs=1e-12)


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
    rows = set_rows(observed, 2, 0.6, Robust(strict=False, set="l1"))
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
    inside = True
    for k in range(P.shape[0]):
        node, stack = rows.node_offsets[k], [(0, size)]
        while stack and node < rows.node_offsets[k + 1]:
            first, last = stack.pop()
            stored = rows.successor[slice(*rows.offsets[k : k + 2])]
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


@pytest.mark.one_quick
@EVERY
@STRICT
@pytest.mark.parametrize("trials", [30, pytest.param(1500, marks=pytest.mark.slow)])
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


@EVERY
@pytest.mark.parametrize("discount", [1 - 1e-5, 1 - 1e-8])
def test_discounts_near_1_are_certified_without_sweeping_the_whole_horizon(kind, discount):
    # Two rows s0 → s0 that earn 1 and 2: the bounds on values are halfway to the worst case.
    counts = Counts.from_dense([[[2]]], reward_sums=[[3.0]])
    horizon = 1 / (1 - discount)
    problem = uniform_problem(counts, discount, (0.5 * horizon, 3 * horizon))
    claim = certify(problem, problem.behavior, Robust(set=kind, reward_low=0.0, reward_high=2.0))
    assert claim.lower == 0
    assert claim.figures["lowest_performance"] == pytest.approx(0.5 * horizon, rel=1e-3)


@EVERY
def test_claims_without_a_discount_are_those_of_discounts_near_1(kind):
    # An end pays 1 or nothing, and the new policy takes the action that leads to more of the first.
    table = np.zeros((4, 2, 4), int)
    table[0, 0] = 1000, 2000, 1000, 3000
    table[0, 1] = 1000, 2000, 5000, 0
    table[1, 0] = 1000, 1000, 1000, 4000
    table[1, 1] = 1000, 0, 4000, 2000
    rewards = np.zeros((4, 2, 4))
    rewards[:, :, 2] = 1.0
    ends = [False, False, True, True]
    counts = Counts.from_dense(table, rewards=rewards, starts=[500, 0, 0, 0], terminal=ends)
    policy = Policy(counts.pairs, [0, 1, 0, 1, 0.5, 0.5, 0.5, 0.5])
    settings = Robust(set=kind, reward_low=0.0, reward_high=1.0, known_start=True)

    def claim(discount):
        return certify(uniform_problem(counts, discount, (0.0, 1.0)), policy, settings)

    whole, near = claim(1.0), claim(1 - 1e-7)
    assert whole.lower == pytest.approx(near.lower, abs=1e-5)
    for name in ("lowest_performance", "highest_behavior", "difference"):
        assert whole.figures[name] == pytest.approx(near.figures[name], abs=1e-5)
    truth = estimate_mdp(counts, 1.0)
    gain = performance(truth, policy) - performance(truth, Policy.uniform(truth))
    assert 0.1 < whole.lower < gain


def test_rewards_that_are_not_known_need_a_range_that_holds_them():
    sums = [[5.0, 9.0], [1.0, 0.0], [0.0, 0.0]]
    problem = small_problem(counts=small_counts(reward_sums=sums))
    with pytest.raises(CertificateRefused, match=r"rewards are not known.*expected reward_low"):
        certify(problem, problem.behavior, Robust())
    with pytest.raises(CertificateRefused, match=r"reward of state 0, action 1 is 0\.9, expected"):
        certify(problem, problem.behavior, Robust(reward_low=0.0, reward_high=0.8))
    certify(problem, problem.behavior, Robust(reward_low=0.0, reward_high=0.9))


def test_known_rewards_of_some_transitions_only_need_a_range_too():
    pairs = Pairs.full(2, 1)
    counts = Counts(
        pairs, [0, 1, 3], [1, 0, 1], [9, 5, 5], LoggedRewards(np.ones(3), "transition", True),
        [1, 0],
    )  # fmt: skip
    problem = small_problem(counts=counts)
    text = "known rewards of state 0, action 0 are given for 1 of 2 states only"
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, problem.behavior, Robust())
    everywhere = replace(
        counts, offsets=[0, 2, 4], successor=[0, 1, 0, 1], times=[0, 9, 5, 5],
        rewards=LoggedRewards(np.ones(4), "transition", True),
    )  # fmt: skip
    given = set_of(small_problem(counts=everywhere), Robust()).models
    assert given.low.stored.tolist() == given.high.stored.tolist() == [1.0] * 4
    models = set_of(problem, Robust(reward_low=-1.0, reward_high=2.0)).models
    low, high = models.low, models.high
    assert (low.outside.tolist(), high.outside.tolist()) == ([-1.0] * 2, [2.0] * 2)
    assert low.stored.tolist() == high.stored.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("bounds", "text"), [((0.0, 0.1), "is at least"), ((5.0, 20.0), r"state 0 is at most 2\.1")]
)
def test_value_bounds_that_the_data_contradicts_are_refused(bounds, text):
    problem = small_problem(10**4, value_bounds=bounds)
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, problem.behavior, Robust())


def test_a_value_may_be_as_large_as_its_bounds():
    problem = small_problem(value_bounds=(1.0, 2.0))
    check_value_bounds(problem, np.full(3, 2.0), np.full(3, 1.0))
    for least, most in ((np.nextafter(2.0, 3.0), 1.0), (2.0, np.nextafter(1.0, 0.0))):
        with pytest.raises(RefutedBounds, match=r"value_bounds is \(1\.0, 2\.0\), but by the data"):
            check_value_bounds(problem, np.full(3, least), np.full(3, most))


def alone(visits=3, starts=1):
    """One state, one action: nothing is unknown, and nothing shares the level."""
    counts = Counts.from_dense([[[visits]]], rewards=[[0.0]], starts=[starts])
    return small_problem(counts=counts)


def test_counts_up_to_a_limit_are_accurate():
    most, certifier = 10**15, Robust(known_start=True)
    assert set_of(alone(most, most), certifier).parts == 0
    for wrong in ((most + 1, 1), (1, most + 1)):
        with pytest.raises(CertificateRefused, match=r"add up to more than 1e\+15"):
            set_of(alone(*wrong), certifier)


def test_levels_down_to_a_limit_are_accurate():
    assert set_of(alone(), Robust(known_start=True, delta=1e-100)).parts == 0
    with pytest.raises(CertificateRefused, match="for the 0 parts that share it"):
        set_of(alone(), Robust(known_start=True, delta=0.9e-100))
    # Five parts, and three states in each of them.
    rows = set_of(small_problem(), Robust(delta=1.6e-99)).models.rows
    assert ((rows.low >= 0) & (rows.low < rows.high) & (rows.high <= 1)).all()
    with pytest.raises(CertificateRefused, match="for the 5 parts that share it"):
        set_of(small_problem(), Robust(delta=1.4e-99))


def test_what_doubles_cannot_hold_is_refused():
    problem = small_problem(value_bounds=(-1e308, 1e308))
    with pytest.raises(CertificateRefused, match="value_bounds is"):
        certify(problem, problem.behavior, Robust())


def test_the_assumptions_say_what_is_known_and_what_is_not():
    problem = small_problem()

    def assumed(problem=problem, **settings):
        return certify(problem, problem.behavior, Robust(**settings)).assumptions

    for code in ("behavior-known", "rewards-known", "starts-afresh", "ends-as-marked"):
        assert Statement(code) in assumed()
    assert Statement("starts-as-logged") in assumed(known_start=True)
    assert Statement("visits-fixed") in assumed(strict=False)
    assert Statement("visits-fixed") not in assumed()
    assert Statement("values-bounded", {"low": 0.0, "high": 20.0}) in assumed()
    guessed = replace(problem, behavior=estimate_behavior(problem.counts))
    assert Statement("behavior-estimated") in assumed(guessed)
    sums = small_counts(reward_sums=[[5.0, 9.0], [1.0, 0.0], [0.0, 0.0]])
    told = assumed(small_problem(counts=sums), reward_low=0.0, reward_high=2.0)
    assert Statement("rewards-bounded", {"low": 0.0, "high": 2.0}) in told
    assert certify(problem, problem.behavior, Robust()).standing == "proved"
    fixed = certify(problem, problem.behavior, Robust(strict=False))
    assert fixed.standing == "asymptotic"  # see test_support for who makes it wrong


WITHIN = {"reward_low": -1.0, "reward_high": 2.0}


@pytest.mark.parametrize("per", ["pair", "transition"])
@pytest.mark.parametrize(
    ("known", "bounds"), [(True, {}), (True, WITHIN), (False, WITHIN)], ids=str
)
def test_rewards_that_are_not_given_are_assumed_to_lie_in_the_range(per, known, bounds):
    table = np.ones((1, 1, 1) if per == "transition" else (1, 1))
    rewards = {"rewards" if known else "reward_sums": table}
    problem = small_problem(counts=Counts.from_dense([[[1]]], **rewards))
    within = Statement("rewards-not-given-bounded", {"low": -1.0, "high": 2.0})
    expected = known and per == "transition" and bool(bounds)
    assumed = robust.assumptions_of(Robust(**bounds), problem)
    assert (within in assumed) == (within.code in [each.code for each in assumed]) == expected


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 0.0), (1.0, 3.0), (-5.0, -1.0), (-1.0, 3.0)])
def test_mean_rewards_move_with_their_range(bounds):
    """A pair with 8 visits, one with 2, and one without; rewards ¼ and ½ of the way up."""
    low, high = bounds
    times = np.array([[[8, 0], [0, 2]], [[0, 0], [0, 0]]])
    means = low + (high - low) * np.array([[0.25, 0.5], [0.0, 0.0]])
    counts = Counts.from_dense(times, reward_sums=means * times.sum(axis=2))
    terms = Robust(strict=False, reward_low=low, reward_high=high)
    least, most = mean_interval(np.array([2.0, 1.0]), np.array([8, 2]), 0.05, strict=False)
    below, above = earnings(counts, np.zeros(4, bool), 0.05, terms)
    width, slack = high - low, 1e-9 * (abs(low) + abs(high))  # on the safe side by so much
    lowest = np.maximum(low + width * least - slack, low)
    highest = np.minimum(low + width * most + slack, high)
    assert below.outside == pytest.approx([*lowest, low, low], abs=1e-12)
    assert above.outside == pytest.approx([*highest, high, high], abs=1e-12)
    assert below.outside.min() == low
    assert above.outside.max() == high


def test_a_range_of_one_reward_is_that_reward():
    counts = Counts.from_dense([[[4]]], reward_sums=[[8.0]])
    terms = Robust(reward_low=2.0, reward_high=2.0)
    below, above = earnings(counts, np.zeros(1, bool), 0.05, terms)
    assert (below.outside.tolist(), above.outside.tolist()) == ([2.0], [2.0])


def plan_with(value, error_bound):
    return SimpleNamespace(value=np.array(value), error_bound=error_bound)


def test_a_comparison_is_less_all_that_its_values_may_be_off():
    first = SimpleNamespace(least_start=lambda value: float(value[0]))  # is known to be the start
    floor = np.array([0.6, 3.0])
    plain = SimpleNamespace(alone=False, reach=None)
    case = SimpleNamespace(models=first, problem=plain)
    both = BothPolicies(case, None, None, floor, None, 0.125)
    found = with_lower(both, plan_with([1.0, 4.0], 0.5))
    assert found.lower == pytest.approx(0.6)  # more than 1 − ½
    assert found.error == pytest.approx(0.625)
    found = with_lower(both, plan_with([2.0, 4.0], 0.5))
    assert found.lower == pytest.approx(1.5)
    # Ten terms of up to 2⁵², each of which is rounded.
    found = with_lower(both, plan_with([1.0, 2.0**52], 0.0))
    assert found.lower == 1.0 - 10.0
    assert found.error == 10.125


def test_a_floor_is_rounded_down(monkeypatch):
    monkeypatch.setattr(robust, "advantage", lambda models, change, low, high: (low, high))
    monkeypatch.setattr(robust, "difference_models", lambda models, gain: gain)
    policy = SimpleNamespace(probability=np.array([0.5, 0.5]))
    problem = SimpleNamespace(value_bounds=(-(2.0**52), 2.0**53), behavior=policy)
    case = SimpleNamespace(problem=problem, models=SimpleNamespace(models=None), policy=policy)
    ours, theirs = plan_with([2.0**52, 7.0], 1.0), plan_with([-9.0, 2.0], 2.0)
    best = plan_with([-(2.0**52) + 4, 16.0], 3.0)
    found = compare(case, ours, theirs, best)
    assert found.our_low.tolist() == [2.0**52 - 1, 6.0]
    assert found.their_high.tolist() == [-(2.0**52) + 7, 19.0]
    # 2⁵³ − 8, less a last bit of both: 2.
    assert found.floor[0] == 2.0**53 - 10
    assert found.floor[1] == pytest.approx(-13.0)
    assert found.difference[0].tolist() == [-11.0, 0.0]
    assert found.error == 6.0


def test_an_advantage_is_rounded_down(monkeypatch):
    rule = SimpleNamespace(reward_scale=2.0**51, terms=2)
    monkeypatch.setattr(robust, "rule_of", lambda models, *others: rule)
    low, high = np.array([-(2.0**50)]), np.array([2.0**51])

    def worst(value):
        assert (value == low).all()
        return SimpleNamespace(q=np.array([10.0, 20.0]))

    def worst_mirrored(value):
        assert (value == -high).all()
        return SimpleNamespace(q=np.array([-30.0, -40.0]))

    mirrored = SimpleNamespace(worst=worst_mirrored)
    models = SimpleNamespace(pairs=Pairs.full(1, 2), worst=worst, mirrored=lambda: mirrored)
    # Two roundings of 2⁵¹ + 2⁵¹ are 2: what is done more often earns 10 − 2 at least, and what is
    # done less often 40 + 2 at most.
    found = robust.advantage(models, np.array([0.5, -0.5]), low, high)
    assert found.tolist() == [0.5 * 8 - 0.5 * 42]
