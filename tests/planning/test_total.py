"""Total rewards without a discount: what ends, what it is worth, and how far that can be off."""

import itertools
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.oracles import exact_pairs, exact_value, solve_exactly
from support.storm_oracle import storm_total_optimum, storm_total_value
from surestep import (
    FiniteMDP,
    MDPBatch,
    Plan,
    Policy,
    evaluate,
    evaluate_batch,
    occupancy,
    optimal,
    optimal_batch,
    performance,
    policy_iteration,
    value_iteration,
)
from surestep.errors import NeverEnds, NotConverged, SurestepError
from surestep.planning import batch as batch_module
from surestep.planning import evaluate_with_bound, q_values
from surestep.planning.batch import plan_elimination, steps_under
from surestep.planning.ends import end_components, lasting
from surestep.planning.horizons import longest
from surestep.planning.total import most_left

COSTS = (0.0, 0.0, 1.0, 3.0)
NAMES = ("ward", "home", "icu", "lab")


def model(P, R, discount=1.0, endless=0.0, **more):
    """A model from tables."""
    known = FiniteMDP.from_dense(np.array(P, float), np.array(R, float), discount, **more)
    return replace(known, endless=endless)


@st.composite
def undiscounted(draw, rewards=(-1.0, 0.0, 0.0, 1.0, 2.0), max_states=4):
    """Models with cycles, ends and self-loops at discount 1, all numbers exact in binary."""
    states, actions = draw(st.integers(1, max_states)), draw(st.integers(1, 2))
    P = np.zeros((states, actions, states))
    for s, a in itertools.product(range(states), range(actions)):
        targets = draw(st.sampled_from([0, 1, 1, 2, 4]))  # 0: an end
        for _ in range(targets):
            P[s, a, draw(st.integers(0, states - 1))] += 1 / targets
    size = states * actions
    R = draw(st.lists(st.sampled_from(rewards), min_size=size, max_size=size))
    discount = np.ones((states, actions))
    discount[0, 0] = draw(st.sampled_from([1.0, 1.0, 0.5]))
    start = np.full(states, 1 / states)
    endless = draw(st.sampled_from([None, 0.0, np.inf]))
    return model(P, np.reshape(R, (states, actions)), discount, endless, initial=start)


def ends_from(mdp, policy):
    """The states from which the policy can reach an end, by paths of every length."""
    owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
    reach = np.zeros((mdp.num_states, mdp.num_states), bool)
    ends = np.zeros(mdp.num_states, bool)
    for k in np.flatnonzero(policy):
        s = mdp.pairs.state[k]
        ends[s] |= mdp.discount[k] < 1 or not (owner == k).any()
        reach[s, mdp.successor[(owner == k) & (mdp.probability > 0)]] = True
    for _ in range(mdp.num_states):
        ends |= (reach & ends).any(axis=1)
    return ends


def without_rests(mdp, policy):
    """The policy, without what it does in sets that it never leaves and in which it earns nothing.

    By the sets of states that can be reached, found by paths of every length.
    """
    if mdp.endless != 0:
        return policy
    owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
    reach, state = np.eye(mdp.num_states, dtype=bool), mdp.pairs.state
    for k in np.flatnonzero(policy):
        reach[state[k], mdp.successor[(owner == k) & (mdp.probability > 0)]] = True
    for _ in range(mdp.num_states):
        reach = reach @ reach
    acting, stuck = policy.copy(), ~ends_from(mdp, policy)
    for s in range(mdp.num_states):
        taken = (policy > 0) & reach[s][state]
        if stuck[s] and not mdp.reward[taken[owner] & (mdp.probability > 0)].any():
            acting[state == s] = 0.0
    return acting


def deterministic(mdp):
    """All deterministic policies."""
    runs = [range(*mdp.pairs.offsets[s : s + 2]) for s in range(mdp.num_states)]
    for choice in itertools.product(*runs):
        yield np.isin(np.arange(mdp.num_pairs), choice).astype(float)


def has_value(mdp, acting):
    """Tells whether a policy ends for certain, or rests, where it does nothing any more."""
    resting = np.bincount(mdp.pairs.state, acting) == 0
    ended = replace(mdp, discount=np.where(resting[mdp.pairs.state], 0.0, mdp.discount))
    return bool(ends_from(ended, acting + resting[mdp.pairs.state]).all())


def rounds(mdp, policy):
    """Mean reward and rewards of each set of states that a policy never leaves."""
    owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
    stuck = np.flatnonzero(~ends_from(mdp, policy))
    edges = {}
    for s in stuck:
        k = next(k for k in np.flatnonzero(policy) if mdp.pairs.state[k] == s)
        run = owner == k
        edges[s] = (k, dict(zip(mdp.successor[run], mdp.probability[run], strict=True)))
    seen = set()
    for s in stuck:
        reach = closure(s, edges)
        closed = all(s in closure(t, edges) for t in reach)
        if closed and frozenset(reach) not in seen:
            seen.add(frozenset(reach))
            yield stationary_mean(mdp, sorted(reach), edges)


def closure(start, edges):
    """All states that can be reached."""
    reach, waiting = {start}, [start]
    while waiting:
        for t in edges[waiting.pop()][1]:
            if t not in reach:
                reach.add(t)
                waiting.append(t)
    return reach


def stationary_mean(mdp, states, edges):
    """Σ μ r in rationals, and whether any reward is not 0."""
    place = {s: i for i, s in enumerate(states)}
    size = len(states)
    matrix = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    for s in states:
        for t, p in edges[s][1].items():
            matrix[place[t]][place[s]] -= Fraction(float(p))
    matrix[0] = [Fraction(1)] * size
    weights = solve_exactly(matrix, [Fraction(1)] + [Fraction(0)] * (size - 1))
    earned = [exact_pairs(mdp)[edges[s][0]][0] for s in states]
    return sum(w * r for w, r in zip(weights, earned, strict=True)), any(earned)


# ---- policies -----------------------------------------------------------------------------------


@settings(max_examples=3 * settings.default.max_examples)
@given(data=st.data())
def test_values_are_the_exact_ones_or_the_policy_never_ends(data):
    mdp = data.draw(undiscounted())
    weight = data.draw(
        st.lists(st.sampled_from([0, 1, 1, 3]), min_size=mdp.num_pairs, max_size=mdp.num_pairs)
    )
    weight = np.array(weight, float)
    total = np.bincount(mdp.pairs.state, weight)[mdp.pairs.state]
    assume((total > 0).all())
    policy = Policy(mdp.pairs, weight / total)
    acting = without_rests(mdp, policy.probability)
    rests = np.bincount(mdp.pairs.state, acting) == 0
    ends = ends_from(mdp, policy.probability)
    if not ends.all():
        with pytest.raises(NeverEnds, match="under the policy"):
            occupancy(mdp, policy)
    if not has_value(mdp, acting):
        with pytest.raises(NeverEnds, match="under the policy") as refusal:
            evaluate(mdp, policy)
        stuck = np.flatnonzero(~ends & ~rests)
        assert any(str(refusal.value).startswith(f"state {s} ") for s in stuck)
        return
    expected = np.array([float(v) for v in exact_value(mdp, acting)])
    for method in ("dense", "sparse", "iterative", "components"):
        found = evaluate_with_bound(mdp, policy, method=method)
        assert np.abs(found.value - expected).max() <= found.error_bound + 1e-15
        assert found.error_bound < 1e-6 * (3 + np.abs(expected).max())
    if not ends.all():
        return
    visits = occupancy(mdp, policy)
    assert visits @ mdp.expected_reward == pytest.approx(performance(mdp, policy), abs=1e-7)


def test_a_circle_without_an_end_is_named_and_not_who_leads_to_it():
    P = np.zeros((4, 1, 4))
    P[0, 0, [1, 3]] = 0.5
    P[1, 0, 2] = P[2, 0, 1] = 1.0
    mdp = model(P, np.zeros((4, 1)), endless=None, state_labels=NAMES)
    with pytest.raises(NeverEnds) as refusal:
        evaluate(mdp, Policy.uniform(mdp))
    assert str(refusal.value) == (
        "state 'home' (with 1 other state) never ends under the policy, which may come there and "
        "only goes round, at discount 1; expected a policy that ends for certain, or a discount "
        "below 1"
    )


def test_an_action_that_is_not_taken_does_not_make_a_policy_endless():
    mdp = model([[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [[-1, 0], [5, 5]])
    assert evaluate(mdp, Policy(mdp.pairs, [0, 1, 1, 0])).tolist() == [5.0, 5.0]
    mdp = replace(mdp, reward=[0.0, 0.0], endless=None)
    assert evaluate(mdp, Policy(mdp.pairs, [0.75, 0.25, 1, 0])).tolist() == [5.0, 5.0]
    with pytest.raises(NeverEnds, match="state 0 never ends under the policy"):
        evaluate(mdp, Policy(mdp.pairs, [1, 0, 1, 0]))


def test_a_successor_of_probability_zero_is_no_way_out():
    mdp = model([[[1, 0]], [[0, 0]]], [[0.0], [1.0]])
    mdp = FiniteMDP(mdp.pairs, [0, 2, 2], [0, 1], [1.0, 0.0], [0, 7], [1, 1], [1, 0], [0, 1.0])
    assert evaluate(mdp, Policy.uniform(mdp)).tolist() == [0.0, 1.0]
    mdp = replace(mdp, endless=None)
    with pytest.raises(NeverEnds, match="state 0 never ends"):
        evaluate(mdp, Policy.uniform(mdp))


def test_many_parallel_actions_are_a_way_like_one():
    P = np.zeros((2, 256, 2))
    P[0, :, 1] = P[1, :, 0] = 1.0
    mdp = model(P, np.eye(2)[:, [0] * 256])
    with pytest.raises(NeverEnds, match=r"state 0 \(with 1 other state\) never ends"):
        evaluate(mdp, Policy.uniform(mdp))


@pytest.mark.parametrize("power", [1, 10, 20, 30, 33])
def test_long_waits_have_the_exact_value_within_the_bound(power):
    leaves = 2.0**-power  # exact, and so is 1 − leaves
    P = [[[1 - leaves, leaves, 0]], [[leaves, 1 - leaves - leaves, leaves]], [[0, 0, 0]]]
    mdp = model(P, [[0.0], [0.0], [1.0]])
    found = evaluate_with_bound(mdp, Policy.uniform(mdp))
    assert np.abs(found.value - 1).max() <= found.error_bound < 1e-2
    waits = mdp.with_rewards([[1.0], [1.0], [0.0]])
    steps = evaluate_with_bound(waits, Policy.uniform(mdp))
    exact = np.array([3, 2, 0]) / leaves
    assert np.abs(steps.value - exact).max() <= steps.error_bound


def test_a_tolerance_that_cannot_be_proved_leaves_the_plan_and_its_bound():
    """At γ = 1: to and fro for nothing, or on to an end that takes a thousand steps."""
    leaves = 2.0**-10
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 0] = 1
    P[0, 1, 0], P[0, 1, 2] = 1 - leaves, leaves
    P[1, 1, 2] = 1
    for sign in (1.0, -1.0):
        mdp = model(P, sign * np.array([[0, 1e6], [0, 1e6], [0, 0]]))
        with pytest.raises(NotConverged, match=r"error\.plan") as told:
            optimal(mdp, minimise=sign < 0, tolerance=1e-9)
        plan = told.value.plan
        exact = [Fraction(int(sign) * 10**6 * 1024), Fraction(int(sign) * 10**6 * 1024), 0]
        gap = max(abs(Fraction(float(v)) - e) for v, e in zip(plan.value, exact, strict=True))
        assert gap <= Fraction(plan.error_bound) < 1000
        np.testing.assert_allclose(plan.q, q_values(mdp, plan.value), rtol=1e-12)


@pytest.mark.parametrize("leaves", [1e-14, 1e-16, 1e-17])
def test_what_doubles_cannot_prove_is_refused(leaves):
    mdp = model([[[1 - leaves, leaves]], [[0, 0]]], [[0.0], [1.0]])
    with pytest.raises(NotConverged):
        evaluate(mdp, Policy.uniform(mdp))
    with pytest.raises(NotConverged):
        optimal(mdp)
    batch = MDPBatch.from_models([mdp])
    if leaves < 1e-15:
        with pytest.raises(NotConverged):
            evaluate_batch(batch, Policy.uniform(mdp))
    else:  # batches tell the error and leave it to others what is too much
        assert evaluate_batch(batch, Policy.uniform(mdp)).error_bound[0] > 0.1


@pytest.mark.parametrize("size", [50, 400])
def test_gamblers_ruin_has_its_closed_form(size):
    P = np.zeros((size + 1, 1, size + 1))
    for s in range(1, size):
        P[s, 0, [s - 1, s + 1]] = 0.5
    R = np.zeros((size + 1, 1))
    R[size] = 1.0
    mdp = model(P, R)
    states = np.arange(size + 1)
    for method in ("auto", "dense", "sparse", "components"):
        found = evaluate_with_bound(mdp, Policy.uniform(mdp), method=method)
        assert np.abs(found.value - states / size).max() <= found.error_bound < 1e-7
    assert optimal(mdp).value == pytest.approx(states / size, abs=1e-7)
    clock = mdp.with_rewards(np.where((states > 0) & (states < size), 1.0, 0.0)[:, None])
    assert evaluate(clock, Policy.uniform(mdp)) == pytest.approx(states * (size - states), rel=1e-6)


# ---- best policies ------------------------------------------------------------------------------


@settings(max_examples=3 * settings.default.max_examples)
@given(data=st.data())
def test_best_values_are_those_of_the_best_policy_that_has_one(data):
    mdp = data.draw(undiscounted())
    least = data.draw(st.booleans())
    sign = -1 if least else 1
    policies = list(deterministic(mdp))
    acting = [without_rests(mdp, policy) for policy in policies]
    ending = [policy for policy in acting if has_value(mdp, policy)]
    means = [each for policy in policies for each in rounds(mdp, policy)]
    try:
        plan = optimal(mdp, minimise=least)
    except NeverEnds as refusal:
        words = str(refusal)
        if len(policies) == 1:
            assert not ending
            assert "never ends under the policy" in words
        elif mdp.endless == np.inf and not least:
            assert means
            assert "never ends under some policy" in words
        elif not ending:
            assert "never ends under any policy" in words
        elif "have no bound" in words:
            assert any(sign * mean > 0 for mean, _ in means)
        else:
            assert "add up to 0, or nearly" in words
            assert any(mean == 0 and earns for mean, earns in means)
        return
    assert ending
    assert not (means and mdp.endless == np.inf and not least)
    assert not any(sign * mean > 0 for mean, _ in means)
    values = np.array([[float(v) for v in exact_value(mdp, policy)] for policy in ending])
    best = (sign * values).max(axis=0) * sign
    assert np.abs(plan.value - best).max() <= plan.error_bound + 1e-15
    assert plan.error_bound < 1e-6 * (3 + np.abs(best).max())
    if mdp.endless is None:
        assert ends_from(mdp, plan.policy.probability).all()
    assert evaluate(mdp, plan.policy) == pytest.approx(best, abs=1e-9)


def test_what_is_left_to_gain_is_the_gain_of_a_step_in_all_steps():
    # The second way out of state 0 earns 1e-7 more and goes on with a chance of 5 %, so that it
    # takes 0.05 of a step more than the plan's way: that is left in the inequality of w.
    discount = np.array([[1.0, 0.05], [1.0, 1.0]])
    mdp = model([[[0, 0], [0, 1]], [[0, 0], [0, 0]]], [[0.05, 1e-7], [1.0, 1.0 - 1e-6]], discount)
    first = Policy.deterministic(mdp.pairs, [0, 0])
    left = most_left(mdp, Plan(first, np.array([0.05, 1.0]), 1, 0.0, 0.0), 10)
    assert left == pytest.approx(np.full(2, 1e-7 / 0.95), rel=1e-6, abs=0)


def test_a_loss_of_a_step_is_taken_off_what_is_left_to_gain():
    # The scale is 1 + 1, so that a loss of 2e-6 outweighs a step, and one of 1e-6 half of it.
    mdp = model(np.zeros((2, 1, 2)), [[0.5], [1.0]])
    plan = Plan(Policy.uniform(mdp), np.array([0.5 + 1e-6, 1.0]), 1, 0.0, 0.0)
    rounding = 10 * 2.0**-52 * 2
    assert most_left(mdp, plan, 10) == pytest.approx([rounding / 2, rounding], rel=1e-6, abs=0)


def test_the_longest_way_takes_what_is_longer_by_half_of_the_excess():
    clock = np.array([[1.0, 1.2], [1.0, 1.06], [1.0, 1.04]])
    mdp = model(np.zeros((3, 2, 3)), clock)
    start = np.array([1.0, 0.0] * 3)
    assert longest(mdp, clock.ravel(), start).tolist() == [1.2, 1.06, 1.0]
    assert longest(mdp, np.minimum(clock.ravel(), 1.08), start).tolist() == [1.0, 1.0, 1.0]


def test_a_component_without_rewards_is_left_where_that_is_best():
    # ward ⇄ home for nothing; out of ward 0.6, out of home 0.7, the last one risky
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[1, 0, 0] = P[0, 1, 2] = 1.0
    P[1, 1, [2, 3]] = 0.7, 0.3
    R = np.array([[0, -0.4], [0, 0], [1, 1], [0, 0]])
    mdp = model(P, R, state_labels=NAMES)
    plan = optimal(mdp)
    assert plan.value == pytest.approx([0.7, 0.7, 1, 0])
    assert plan.policy.probability.tolist() == [1, 0, 0, 1, 1, 0, 1, 0]
    least = optimal(mdp, minimise=True)  # to stay in the ward and at home
    assert least.value == pytest.approx([0, 0, 1, 0])
    assert least.policy.probability.tolist() == [1, 0, 1, 0, 1, 0, 1, 0]
    worst = optimal(replace(mdp, endless=None), minimise=True)
    assert worst.value == pytest.approx([0.6, 0.6, 1, 0])
    assert worst.policy.probability.tolist() == [0, 1, 1, 0, 1, 0, 1, 0]


def test_costs_until_an_end_avoid_a_trap():
    # ward: surely out for 10, or for 1 out or into the trap, alike; from home only into the trap.
    P = np.zeros((4, 2, 4))
    P[0, 0, 3] = P[1, :, 2] = P[2, :, 2] = 1.0
    P[0, 1, [2, 3]] = 0.5
    R = [[10, 1], [1, 0], [0, 0], [0, 0]]
    mdp = model(P, R, endless=np.inf, state_labels=("ward", "home", "trap", "out"))
    plan = optimal(mdp, minimise=True)
    assert plan.value == pytest.approx([10, np.inf, np.inf, 0])
    assert plan.q == pytest.approx([10, *[np.inf] * 5, 0, 0])
    assert plan.policy.probability.tolist() == [1, 0] * 4
    assert plan.error_bound < 1e-9
    gains = replace(mdp, reward=-mdp.reward, endless=-np.inf)
    assert optimal(gains).value == pytest.approx([-10, -np.inf, -np.inf, 0])
    hopeful = replace(mdp, endless=0.0)  # the trap is left alone for nothing
    assert optimal(hopeful, minimise=True).value == pytest.approx([1, 0, 0, 0])
    for start in ([0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]):
        with pytest.raises(NeverEnds, match=r"trap' never ends under any policy"):
            optimal(replace(mdp, initial=start), minimise=True)


@pytest.mark.thorough
@settings(max_examples=2 * settings.default.max_examples)
@given(data=st.data())
def test_least_costs_until_an_end_are_those_of_the_best_policy_from_each_state(data):
    mdp = replace(data.draw(undiscounted(rewards=COSTS)), endless=np.inf)
    assume(mdp.num_pairs > mdp.num_states)
    least = np.full(mdp.num_states, np.inf)
    for policy in deterministic(mdp):
        ends = ends_from(mdp, policy)
        for s in np.flatnonzero(ends):
            met = passed(mdp, policy, s)
            if ends[met].all():  # nothing that the policy meets goes round for ever
                stopped = np.where(np.isin(mdp.pairs.state, met), mdp.discount, 0.0)
                value = exact_value(replace(mdp, discount=stopped), policy)
                least[s] = min(least[s], float(value[s]))
    sure = np.isfinite(least)
    assume(sure.any())
    plan = optimal(replace(mdp, initial=sure / sure.sum()), minimise=True)
    assert np.array_equal(np.isfinite(plan.value), sure)
    assert np.abs(plan.value[sure] - least[sure]).max() <= plan.error_bound + 1e-15
    taken = plan.policy.probability > 0
    assert plan.q[taken] == pytest.approx(plan.value, abs=1e-9)
    if not sure.all():
        with pytest.raises(NeverEnds, match="never ends under any policy"):
            optimal(replace(mdp, initial=np.full(sure.size, 1 / sure.size)), minimise=True)


def passed(mdp, policy, start):
    """The states that the policy may come to from `start`, pair by pair, by a worklist."""
    met, open_states = {start}, [start]
    while open_states:
        s = open_states.pop()
        for k in np.flatnonzero((mdp.pairs.state == s) & (policy > 0)):
            run = slice(*mdp.offsets[k : k + 2])
            new = {int(t) for t in mdp.successor[run][mdp.probability[run] > 0]} - met
            met |= new
            open_states += new
    return sorted(met)


@pytest.mark.parametrize("seed", range(6))
def test_least_costs_until_an_end_are_those_of_storm(seed):
    rng = np.random.default_rng(seed)
    states, actions = 60, 3
    P = np.zeros((states, actions, states))
    for s, a in itertools.product(range(states - 1), range(actions)):
        P[s, a, rng.choice(states, rng.choice([1, 2]), replace=False)] = 1.0
    P[:6, :, 6:] = 0.0  # nobody gets out of the first states
    P[:6, :, 0] += P[:6].sum(2) == 0
    P[:-1] /= P[:-1].sum(2, keepdims=True)
    R = rng.integers(0, 4, (states, actions)) * 1.0
    R[:6] = 1.0
    R[-1] = 0.0
    mdp = model(P, R, endless=np.inf, initial=np.eye(states)[-1])
    plan = optimal(mdp, minimise=True)
    expected = storm_total_optimum(mdp, "min")
    assert 6 <= np.isinf(expected).sum() < states
    assert plan.value == pytest.approx(expected, abs=1e-8)


def test_a_fair_bet_for_ever_is_no_rest():
    # 1 is won and lost alike: nothing on average, but no total either.
    P, R = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    P[:, 0] = 0.5
    R[:, 0] = 1.0, -1.0
    P[0, 1, 1] = 1.0
    R[0, 1, 1] = -1.0
    mdp = model(P, R)
    with pytest.raises(NeverEnds, match=r"state 0 .* never ends under the policy"):
        evaluate(mdp, Policy.deterministic(mdp.pairs, [0, 0]))
    assert optimal(mdp).value.tolist() == [0.0, 0.0]
    paid = mdp.with_rewards(np.array([[0.0, -1.0], [0.0, -2.0]]))
    assert optimal(paid).value.tolist() == [0.0, 0.0]
    paid = replace(mdp, ending_reward=[0.0, 0.0, 0.0, -2.0])
    assert optimal(paid).value == pytest.approx([-2.0, -2.0])


def test_rewards_on_the_way_round_decide_whether_there_is_a_best():
    def best(there, back, endless=0.0):
        mdp = model(
            [[[0, 1], [0, 0]], [[1, 0], [0, 0]]],
            [[there, 1.0], [back, 3.0]],
            endless=endless,
            state_labels=NAMES[:2],
        )
        return optimal(mdp)

    assert best(-1, -1).value == pytest.approx([2, 3])  # going round costs
    assert best(0, 0).value == pytest.approx([3, 3])  # for nothing
    assert best(1, -2).value == pytest.approx([4, 3])  # costs 1, but there and then out is best
    with pytest.raises(NeverEnds, match="have no bound: each way round state 'ward'"):
        best(1, -0.5)
    with pytest.raises(NeverEnds, match=r"way round state 'ward' .* add up to 0, or nearly"):
        best(1, -1)
    assert best(0, 0).error_bound < 1e-11
    assert best(0, 0, endless=None).error_bound < 1e-12


def test_a_model_without_any_end_is_refused_by_name():
    mdp = model(np.eye(3)[[[1], [2], [1]]], np.zeros((3, 1)), state_labels=NAMES[:3], endless=None)
    for plan in (optimal, value_iteration):
        with pytest.raises(NeverEnds, match=r"state 'home' \(with 1 other state\) never ends"):
            plan(mdp)
    assert optimal(mdp.with_discount([[1.0], [0.9], [1.0]])).value.tolist() == [0, 0, 0]
    # A state that may go round, but need not, is not the one to name.
    leaving = model([[[0, 0], [1, 0]], [[0, 1], [0, 1]]], [[0, 0], [1, 1]], state_labels=NAMES[:2])
    with pytest.raises(NeverEnds, match=r"^state 'home' never ends under any policy"):
        optimal(leaving)


def test_sweeps_need_that_all_policies_end():
    mdp = model([[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [[0, 0], [5, 5]])
    with pytest.raises(NeverEnds, match="state 0 never ends under some policy"):
        value_iteration(mdp)
    leaving = model([[[0.5, 0.5], [0, 1]], [[0, 0], [0, 0]]], [[1, 0], [5, 5]])
    for plan in (value_iteration, optimal):
        assert plan(leaving).value == pytest.approx([7, 5])


def test_policy_iteration_keeps_policies_that_end_where_others_are_as_good():
    # Going round is as good as leaving once values stand: the lowest action would never leave.
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[1, 0, 0] = 1.0
    P[0, 1, 2] = P[1, 1, 2] = 1.0
    mdp = model(P, [[0, 0.6], [0, 0.7], [0, 0]])  # to rest would be worth 0

    def lowest_best(q):
        table = q.reshape(3, 2)
        return np.eye(2)[
            np.argmax(table >= table.max(axis=1, keepdims=True) - 1e-12, axis=1)
        ].ravel()

    plan = policy_iteration(mdp, lowest_best, Policy.uniform(mdp))
    assert plan.value == pytest.approx([0.7, 0.7, 0])
    assert evaluate(mdp, plan.policy) == pytest.approx([0.7, 0.7, 0])
    endless = Policy(mdp.pairs, [1, 0, 1, 0, 1, 0])
    with pytest.raises(NeverEnds, match=r"state 0 \(with 1 other state\) never ends under the"):
        policy_iteration(mdp, lowest_best, endless)


def test_end_components_are_the_largest_closed_sets():
    P = np.zeros((5, 2, 5))
    P[0, 0, 1] = P[1, 0, 0] = P[2, 0, 2] = P[0, 1, 2] = 1.0
    P[1, 1, [0, 3]] = 0.5  # may leave
    P[3, :, 4] = 1.0
    mdp = model(P, np.zeros((5, 2)))
    component, inner = end_components(mdp, lasting(mdp))
    assert component[0] == component[1] != component[2]
    assert (component >= 0).tolist() == [True, True, True, False, False]
    assert inner.tolist() == [True, False, True, False, True, False, False, False, False, False]


@pytest.mark.parametrize("tolerance", [1e-30, 0.0, -1.0])
def test_a_tolerance_that_cannot_be_met_is_refused(tolerance):
    mdp = model([[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [[0, 0], [5, 5]])
    with pytest.raises(SurestepError):
        optimal(mdp, tolerance=tolerance)


def test_large_models_with_components_are_solved_too():
    # Rings of four states that cost nothing, in a row; each may be left to the next, which pays.
    rings, size = 120, 480
    ring = np.arange(size) // 4
    P = np.zeros((size, 2, size))
    P[np.arange(size), 0, ring * 4 + (np.arange(size) + 1) % 4] = 1.0
    after = ring[:-4] * 4 + 4
    P[np.arange(size - 4), 1, after] = 0.5
    P[np.arange(size - 4), 1, np.arange(size - 4)] = 0.5
    R = np.zeros((size, 2))
    R[np.arange(size), 1] = np.where(np.arange(size) % 4 == 2, 1.0, 0.5)
    mdp = model(P, R)
    found = optimal(mdp)
    expected = 2.0 * (rings - 1 - ring) + 1  # the last ring ends by its second action
    assert np.abs(found.value - expected).max() <= found.error_bound < 1e-6


# ---- batches ------------------------------------------------------------------------------------


@settings(max_examples=3 * settings.default.max_examples)
@given(data=st.data())
def test_batches_have_the_values_of_their_models(data):
    first = data.draw(undiscounted())
    models = [first, *(replace(first, reward=first.reward * x) for x in (0.5, -1.0))]
    batch, policy = MDPBatch.from_models(models), Policy.uniform(first)
    if not ends_from(first, policy.probability).all():
        with pytest.raises(NeverEnds, match=r"^model 0: state"):
            evaluate_batch(batch, policy)
        return
    found = evaluate_batch(batch, policy)
    for b, each in enumerate(models):
        expected = np.array([float(v) for v in exact_value(batch.model(b), policy.probability)])
        assert np.abs(found.value[b] - expected).max() <= found.error_bound[b] + 1e-15
        assert found.error_bound[b] < 1e-6 * (3 + np.abs(expected).max())
        assert each.num_states == batch.num_states


def test_a_row_of_zeros_is_an_end_of_its_model():
    # Models of a batch store the same transitions, also those that only others may take.
    R = [[1.0], [3.0]]
    waits = model([[[0.5, 0.5]], [[0, 0]]], R)
    batch = MDPBatch.from_models([waits, model(np.zeros((2, 1, 2)), R)])
    found = evaluate_batch(batch, Policy.uniform(waits))
    assert found.value == pytest.approx(np.array([[5.0, 3.0], [1.0, 3.0]]))


def test_one_bad_model_of_a_batch_is_named():
    good = model([[[0.5, 0.5]], [[0, 0]]], [[1.0], [0.0]], state_labels=NAMES[:2])
    bad = model([[[1.0, 0.0]], [[0, 0]]], [[1.0], [0.0]], state_labels=NAMES[:2])
    batch = MDPBatch.from_models([good, good, bad, good])
    with pytest.raises(NeverEnds, match=r"^model 2: state 'ward' never ends under the policy"):
        evaluate_batch(batch, Policy.uniform(good))
    slow = model([[[1 - 1e-16, 1e-16]], [[0, 0]]], [[1.0], [0.0]], state_labels=NAMES[:2])
    with pytest.raises(NotConverged, match=r"^model 1: without discounting"):
        evaluate_batch(MDPBatch.from_models([good, slow]), Policy.uniform(good))
    assert optimal_batch(MDPBatch.from_models([good, good])).value.tolist() == [[2, 0], [2, 0]]
    with pytest.raises(NeverEnds):
        optimal_batch(batch)


@pytest.mark.parametrize(
    ("steps", "residual", "bound"),
    [
        ([4.0, 2.0], 0.2, 4 / 0.8),
        ([2.0**40, 1.0], 0.0, 2.0**40 / (1 - 11 * 2.0**-12)),  # 2 successors, 1 pair, 8 to spare
        ([4.0, 2.0], 1.0, None),
        ([4.0, 0.0], 0.2, None),
    ],
)
def test_a_residual_makes_the_steps_of_a_batch_more(steps, residual, bound, monkeypatch):
    def evaluate_each(size, *given):
        given[-2][:], given[-1][:] = steps, residual

    monkeypatch.setattr(batch_module, "evaluate_each", SimpleNamespace(all=evaluate_each))
    mdp = model([[[0.5, 0.5]], [[0, 0]]], [[1.0], [0.0]])
    batch, policy = MDPBatch.from_models([mdp]), Policy.uniform(mdp)
    plan = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    given = (batch, policy.probability[np.newaxis], plan)
    if bound is None:
        with pytest.raises(NotConverged, match=r"^model 0: without discounting"):
            steps_under(*given)
    else:
        assert steps_under(*given) == pytest.approx([bound], rel=1e-12)


def test_one_bad_policy_of_a_batch_is_named():
    mdp = model([[[1, 0], [0, 1]], [[0, 0], [0, 0]]], [[0, 0], [5, 5]])
    policies = np.array([[0.5, 0.5, 1, 0], [1, 0, 1, 0]])
    with pytest.raises(NeverEnds, match=r"^model 0 with policy 1: state 0 never ends"):
        evaluate_batch(MDPBatch.from_models([mdp]), policies)
    assert evaluate_batch(MDPBatch.from_models([mdp]), policies[:1]).value.tolist() == [[5, 5]]


# ---- Storm --------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(data=st.data())
def test_values_are_storms(data):
    mdp = data.draw(undiscounted(rewards=COSTS, max_states=6)).with_discount(1.0)
    mdp = replace(mdp, endless=None)
    policy = Policy.uniform(mdp)
    assume(ends_from(mdp, policy.probability).all())
    expected = storm_total_value(mdp, policy.probability)
    np.testing.assert_allclose(evaluate(mdp, policy), expected, atol=1e-7)


@settings(max_examples=30)
@given(data=st.data())
def test_totals_of_known_models_are_storms(data):
    mdp = data.draw(undiscounted(rewards=COSTS, max_states=6)).with_discount(1.0)
    mdp, policy = replace(mdp, endless=0.0), Policy.uniform(mdp)
    asked = {
        "": lambda: evaluate(mdp, policy),
        "min": lambda: optimal(mdp, minimise=True).value,
        "max": lambda: optimal(mdp).value,
    }
    for direction, value in asked.items():
        if direction:
            expected = storm_total_optimum(mdp, direction, until="C")
        else:
            expected = storm_total_value(mdp, policy.probability, until="C")
        if np.isinf(expected).any():
            with pytest.raises(NeverEnds):
                value()
        else:
            np.testing.assert_allclose(value(), expected, atol=1e-7)


@settings(max_examples=20)
@given(data=st.data())
def test_least_costs_with_free_ways_round_are_storms(data):
    mdp = data.draw(undiscounted(rewards=COSTS, max_states=6)).with_discount(1.0)
    mdp = replace(mdp, endless=None)
    assume(ends_from(mdp, np.ones(mdp.num_pairs)).all())
    expected = storm_total_optimum(mdp, "min")
    np.testing.assert_allclose(optimal(mdp, minimise=True).value, expected, atol=1e-7)


@settings(max_examples=40)
@given(data=st.data())
def test_best_totals_of_models_that_end_are_storms(data):
    mdp = data.draw(undiscounted(rewards=COSTS, max_states=6)).with_discount(1.0)
    P, R, _, initial, _ = mdp.dense()
    P = 0.75 * P  # the rest ends
    ends = np.zeros((1, P.shape[1], P.shape[2] + 1))
    P = np.concatenate([np.dstack([P, 1 - P.sum(axis=2)]), ends])
    mdp = model(P, np.vstack([R, np.zeros((1, R.shape[1]))]), initial=np.append(initial, 0))
    np.testing.assert_allclose(optimal(mdp).value, storm_total_optimum(mdp), atol=1e-7)
