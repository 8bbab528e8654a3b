"""Chains of one policy: each way to solve them, and how much would fill in, by hand.

Components against SciPy's, and all methods against each other on models of many textures.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from support.oracles import brute_force_optimum, exact_value, largest_gap
from support.strategies import mdps, policies
from surestep import (
    FiniteMDP,
    Pairs,
    Policy,
    evaluate_with_bound,
    optimal,
    policy_iteration,
    value_iteration,
)
from surestep.kernels.components import settle_components
from surestep.planning import chain, iteration
from surestep.planning.backups import Backup
from surestep.planning.chain import (
    Chain,
    change_range,
    largest,
    order_by_component,
    predicted_fill,
    settle,
    solve_by_sweeps,
    solve_dense,
    solve_krylov,
    solve_sparse,
)
from surestep.planning.iteration import best_actions
from surestep.planning.proof import Horizon

LONG = Horizon(1.0, 100.0, uniform=False)
METHODS = ("dense", "sparse", "iterative", "components", "auto")
PLANNERS = {
    "optimal": optimal,
    "policy iteration": lambda mdp, **settings: policy_iteration(
        mdp, best_actions(mdp), Policy.uniform(mdp), **settings
    ),
    "value iteration": value_iteration,
}


def chain_of(weights, reward):
    """The chain with this table of weights [S, S]."""
    weights = np.asarray(weights, float)
    offsets = np.concatenate([[0], np.cumsum((weights != 0).sum(axis=1))])
    successor = np.nonzero(weights)[1].astype(np.int32)
    return Chain(offsets, successor, weights[weights != 0], np.asarray(reward, float))


def random_chain(size=30, discount=0.9, seed=0):
    rng = np.random.default_rng(seed)
    weights = discount * rng.dirichlet(np.full(size, 0.3), size)
    return chain_of(weights, rng.normal(size=size)), weights


def edges(size, *pairs):
    """A chain that only has a pattern."""
    weights = np.zeros((size, size))
    for s, t in pairs:
        weights[s, t] = 0.1
    return chain_of(weights, np.zeros(size))


def test_a_step_and_its_change():
    chain = chain_of([[0.5, 0.25], [0.0, 0.5]], [1.0, -2.0])
    assert chain.step(np.array([4.0, 8.0])).tolist() == [5.0, 2.0]
    assert change_range(chain, np.array([4.0, 8.0])) == (-6.0, 1.0)
    assert largest((-6.0, 1.0)) == largest((-1.0, 6.0)) == 6.0
    assert Horizon(2.0, 2.0, uniform=True).size((-6.0, 1.0)) == 3.5
    assert LONG.size((-6.0, 1.0)) == LONG.size((-1.0, 6.0)) == 6.0
    assert chain.matrix().toarray().tolist() == [[0.5, 0.25], [0.0, 0.5]]
    turned = chain.transposed(np.array([1.0, 1.0]))
    assert turned.step(np.array([4.0, 8.0])).tolist() == [3.0, 6.0]


def test_every_way_solves_the_same_equations():
    chain, weights = random_chain()
    exact = np.linalg.solve(np.eye(30) - weights, chain.reward)
    start = np.zeros(30)
    for value in (
        solve_dense(chain),
        solve_sparse(chain),
        solve_krylov(chain, start, 1e-12, 200)[0],
        solve_by_sweeps(chain, start, 1e-12, LONG, limit=1000, slowest=np.inf)[0],
    ):
        assert value == pytest.approx(exact, abs=1e-9)


def test_krylov_stops_at_its_target_and_its_limit():
    chain, _ = random_chain()
    start = np.zeros(30)
    first = largest(change_range(chain, start))
    value, reached = solve_krylov(chain, start, 2 * first, 100)
    assert value is start
    assert reached == pytest.approx(first)
    value, reached = solve_krylov(chain, start, 1e-3, 200)
    assert reached == pytest.approx(largest(change_range(chain, value)), rel=1e-9)
    assert 1e-9 < reached <= 1e-3
    assert solve_krylov(chain, start, 1e-12, 0)[0] is start
    nothing = np.zeros(1)
    assert solve_krylov(chain_of([[0.5]], [1.0]), nothing, 1.0, 9)[0] is nothing


def test_sweeps_stop_at_their_target_and_their_limit():
    chain = chain_of([[0.5]], [1.0])
    assert solve_by_sweeps(chain, np.zeros(1), 0.0, LONG, limit=3) == ([1.75], 0.25)
    assert solve_by_sweeps(chain, np.zeros(1), 0.25, LONG) == ([1.75], 0.25)


def test_what_is_the_same_for_all_states_is_added_up_at_once():
    # Both states earn 1 and stay within: 1/(1 − ½) = 2 after one sweep.
    chain = chain_of([[0.25, 0.25], [0.0, 0.5]], [1.0, 1.0])
    value, size = solve_by_sweeps(chain, np.zeros(2), 0.0, Horizon(2.0, 2.0, uniform=True))
    assert (value.tolist(), size) == ([2.0, 2.0], 0.0)
    # 1/(1 − ¾) = 4, from a first sweep to 1 that is 3 short.
    value, _ = solve_by_sweeps(chain_of([[0.75]], [1.0]), np.zeros(1), 0.0, Horizon(4.0, 4.0, True))
    assert value.tolist() == [4.0]
    # Where the horizon is not the same everywhere, sweeps go on while they are fast.
    value, size = solve_by_sweeps(chain, np.zeros(2), 2.0**-20, Horizon(1.0, 2.0, uniform=False))
    assert size == 2.0**-20
    assert value.tolist() == [2.0 - 2.0**-20] * 2


def test_slow_sweeps_are_given_up_early():
    chain = chain_of([[0.99]], [1.0])
    value, size = solve_by_sweeps(chain, np.zeros(1), 1e-9, LONG)
    assert (value[0], size) == pytest.approx((1.99, 0.99))  # the second was no faster than γ


def test_fill_is_twice_the_envelope_and_the_diagonal():
    corridor = edges(50, *((s, s + 1) for s in range(49)))
    assert predicted_fill(corridor) == 2 * 49 + 50
    everything = edges(8, *((s, t) for s in range(8) for t in range(8)))
    assert predicted_fill(everything) == 2 * 28 + 8


@pytest.fixture
def every_size(monkeypatch):
    """Small models go the way of large ones."""
    monkeypatch.setattr(chain, "DENSE_STATES", 0)
    monkeypatch.setattr(iteration, "DENSE_STATES", 0)


# ---- textures ---------------------------------------------------------------------------------


def acyclic(rng, size):
    """Each state leads to later ones only."""
    return [rng.integers(s + 1, size, 3) if s < size - 1 else [] for s in range(size)]


def chained(rng, size):
    """Groups of four states that lead to each other, and now and then to a later group."""
    groups = np.arange(size) // 4
    near = [np.flatnonzero(groups == groups[s]) for s in range(size)]
    return [
        [*rng.choice(near[s], 2), *([rng.integers(s, size)] if rng.random() < 0.3 else [])]
        for s in range(size)
    ]


def tangled(rng, size):
    """One component: a ring with shortcuts."""
    return [[(s + 1) % size, *rng.integers(0, size, 2)] for s in range(size)]


def ring(rng, size):
    """One long cycle, with a chance to stay."""
    return [[(s + 1) % size, s] for s in range(size)]


def ragged(rng, size):
    """States that nothing leads to, and pairs that lead nowhere."""
    return [rng.integers(size // 2, size, rng.integers(0, 3)) for _ in range(size)]


TEXTURES = {texture.__name__: texture for texture in (acyclic, chained, tangled, ring, ragged)}


def textured(texture, size, seed, discount, renumbered=True):
    """A model with two pairs a state; `discount` is one for all, or None for many."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(size) if renumbered else np.arange(size)
    rows = [[np.unique(row).astype(int) for row in TEXTURES[texture](rng, size)] for _ in "ab"]
    successor, probability, offsets = [], [], [0]
    for s in np.argsort(number):
        for row in (rows[0][s], rows[1][s]):
            successor += number[row].tolist()
            probability += rng.dirichlet(np.ones(row.size)).tolist() if row.size else []
            offsets.append(len(successor))
    pairs, ends = 2 * size, np.diff(offsets) == 0
    start = np.full(size, 1 / size)
    return FiniteMDP(
        Pairs.full(size, 2),
        np.array(offsets),
        np.array(successor, int),
        np.array(probability),
        rng.normal(size=len(successor)),
        rng.choice([0.0, 0.5, 0.9, 0.97], pairs) if discount is None else np.full(pairs, discount),
        start,
        np.where(ends, rng.normal(size=pairs), 0.0),
    )


@st.composite
def textures(draw, size):
    """Models of all textures and discounts: 1 only where every episode ends."""
    texture = draw(st.sampled_from(sorted(TEXTURES)))
    discounts = [0.0, 0.9, 0.97, None] + ([1.0] if texture == "acyclic" else [])
    seed, discount = draw(st.integers(0, 10**6)), draw(st.sampled_from(discounts))
    return textured(texture, size, seed, discount, renumbered=draw(st.booleans()))


@settings(max_examples=40)
@given(data=st.data())
def test_components_are_scipys_and_stand_behind_all_they_lead_to(data):
    mdp = data.draw(textures(data.draw(st.sampled_from([1, 2, 5, 40]))))
    found = order_by_component(mdp.pairs.offsets, mdp.offsets, mdp.successor)
    size, starts = mdp.num_states, mdp.offsets[mdp.pairs.offsets]
    rows = (np.ones(mdp.num_transitions), mdp.successor, starts)
    matrix = csr_array(rows, shape=(size, size), copy=True)
    matrix.sum_duplicates()  # SciPy never ends where an entry stands twice
    number, label = connected_components(matrix, connection="strong")
    own = np.empty(size, int)
    own[found.order] = np.repeat(np.arange(number), np.diff(found.starts))
    assert (
        found.starts.size - 1 == number == len(set(zip(own.tolist(), label.tolist(), strict=True)))
    )
    assert (own[mdp.successor] <= np.repeat(own, np.diff(starts))).all()
    assert (found.order[found.place] == np.arange(size)).all()


@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_all_methods_hold_the_exact_value_within_their_errors(data):
    mdp = data.draw(mdps(max_states=5, undiscounted=data.draw(st.booleans())))
    policy = data.draw(policies(mdp.pairs))
    exact = exact_value(mdp, policy.probability)
    found = evaluate_with_bound(mdp, policy, method="components")
    assert found.method == "components"
    assert largest_gap(found.value, exact) <= Fraction(found.error_bound)


@pytest.mark.thorough
def test_small_models_of_all_textures_reach_the_brute_force_optimum(every_size):
    for seed in range(2):
        for texture in TEXTURES:
            for discount in (0.0, 0.9, 0.9999, None):
                mdp = textured(texture, 5, seed, discount)
                plan = optimal(mdp)
                assert largest_gap(plan.value, brute_force_optimum(mdp)) <= plan.error_bound
                achieved = exact_value(mdp, plan.policy.probability)
                assert largest_gap(plan.value, achieved) <= plan.error_bound


# The fixture is the same for all examples.
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_all_planners_and_all_methods_agree_on_every_texture(every_size, data):
    mdp = data.draw(textures(30))
    plans = [planner(mdp) for planner in PLANNERS.values()]
    policy = data.draw(st.sampled_from([Policy.uniform(mdp), plans[0].policy]))
    values = [evaluate_with_bound(mdp, policy, method=method) for method in METHODS]
    for found in (plans, values):
        for one in found[1:]:
            gap = np.abs(one.value - found[0].value).max()
            assert gap <= one.error_bound + found[0].error_bound


@pytest.mark.parametrize("discount", [0.9, 1 - 1e-4, 1 - 1e-7])
@pytest.mark.parametrize("size", [150, 350])
def test_slow_components_small_and_large_are_left_to_other_ways(discount, size, every_size):
    # A walk to and fro: sweeps in place carry news one way only.
    rng, rooms = np.random.default_rng(0), np.arange(size)
    rows = np.stack([np.maximum(rooms - 1, 0), np.minimum(rooms + 1, size - 1)], axis=1)
    mdp = FiniteMDP(
        Pairs.full(size, 2),
        np.arange(2 * size + 1) * 2,
        np.repeat(rows, 2, axis=0).ravel(),
        np.tile([0.3, 0.7, 0.7, 0.3], size),
        np.repeat(rng.random(2 * size), 2),
        np.full(2 * size, discount),
        np.full(size, 1 / size),
    )
    plan, best = (
        optimal(mdp),
        policy_iteration(mdp, best_actions(mdp), Policy.uniform(mdp), method="dense"),
    )
    assert np.abs(plan.value - best.value).max() <= plan.error_bound + best.error_bound
    found = [evaluate_with_bound(mdp, plan.policy, method=m) for m in ("components", "dense")]
    gap = np.abs(found[0].value - found[1].value).max()
    assert gap <= found[0].error_bound + found[1].error_bound


def test_values_along_a_way_without_return_need_one_pass():
    mdp = textured("acyclic", 2000, 1, 1.0)
    backup, value = Backup.of(mdp), np.zeros(mdp.num_states)
    order = order_by_component(backup.pair_offsets, backup.offsets, backup.successor)
    assert order.starts.size - 1 == mdp.num_states
    assert settle_components(backup, order, 0, 0.0, 1, value) == mdp.num_states
    q = Backup.of(mdp).q(value).reshape(-1, 2).max(axis=1)
    assert np.abs(q - value).max() <= 1e-12 * np.abs(value).max()


def test_a_looser_tolerance_takes_fewer_sweeps_and_a_tighter_one_is_reached():
    mdp = textured("tangled", 1000, 2, 0.99)
    slow = []
    residuals = []
    for target in (1e-2, 1e-6, 1e-10):
        value = np.zeros(mdp.num_states)
        settle(Backup.of(mdp), target, value, solve_slow=slow.append)
        assert not slow
        after = Backup.of(mdp).q(value).reshape(-1, 2).max(axis=1)
        residuals.append(np.abs(after - value).max())
        assert residuals[-1] <= target
    assert residuals[0] > 1e-5  # no more was done than was asked for
    assert residuals[1] > 1e-9


# ---- minimising -------------------------------------------------------------------------------


@settings(max_examples=30)
@given(mdp=mdps(max_states=4))
def test_minimising_is_maximising_the_negated_rewards(mdp):
    plan = optimal(mdp, minimise=True)
    mirrored = FiniteMDP(
        mdp.pairs,
        mdp.offsets,
        mdp.successor,
        mdp.probability,
        -mdp.reward,
        mdp.discount,
        mdp.initial,
        -mdp.ending_reward,
    )
    least = [-value for value in brute_force_optimum(mirrored)]
    assert largest_gap(plan.value, least) <= Fraction(plan.error_bound)
    achieved = exact_value(mdp, plan.policy.probability)
    assert largest_gap(plan.value, achieved) <= Fraction(plan.error_bound)
