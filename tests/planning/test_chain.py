"""Chains of one policy: each way to solve them, and how much would fill in, by hand."""

import numpy as np
import pytest

from surestep.planning.chain import (
    Chain,
    change_range,
    frontier_exceeds,
    half_range,
    largest,
    predicted_fill,
    solve_dense,
    solve_fast_sweeps,
    solve_krylov,
    solve_sparse,
    solve_sweeps,
)
from surestep.planning.proof import Horizon


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
    assert half_range((-6.0, 1.0)) == 3.5
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
        solve_sweeps(chain, start, 1e-12, 1000)[0],
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
    assert solve_sweeps(chain, np.zeros(1), 0.0, 3) == ([1.75], 0.25)
    assert solve_sweeps(chain, np.zeros(1), 0.25, 100) == ([1.75], 0.25)


def test_what_is_the_same_for_all_states_is_added_up_at_once():
    # Both states earn 1 and stay within: 1/(1 − ½) = 2 after one sweep.
    chain = chain_of([[0.25, 0.25], [0.0, 0.5]], [1.0, 1.0])
    value, size = solve_fast_sweeps(chain, np.zeros(2), 0.0, Horizon(2.0, 2.0, uniform=True))
    assert (value.tolist(), size) == ([2.0, 2.0], 0.0)
    # 1/(1 − ¾) = 4, from a first sweep to 1 that is 3 short.
    value, _ = solve_fast_sweeps(
        chain_of([[0.75]], [1.0]), np.zeros(1), 0.0, Horizon(4.0, 4.0, True)
    )
    assert value.tolist() == [4.0]
    # Where the horizon is not the same everywhere, sweeps go on while they are fast.
    value, size = solve_fast_sweeps(chain, np.zeros(2), 2.0**-20, Horizon(1.0, 2.0, uniform=False))
    assert size == 2.0**-20
    assert value.tolist() == [2.0 - 2.0**-20] * 2


def test_slow_sweeps_are_given_up_early():
    chain = chain_of([[0.99]], [1.0])
    value, size = solve_fast_sweeps(chain, np.zeros(1), 1e-9, Horizon(1.0, 100.0, uniform=False))
    assert (value[0], size) == pytest.approx((1.99, 0.99))  # the second was no faster than γ


def test_fill_is_twice_the_envelope_and_the_diagonal():
    corridor = edges(50, *((s, s + 1) for s in range(49)))
    assert predicted_fill(corridor, 10_000) == 2 * 49 + 50
    everything = edges(8, *((s, t) for s in range(8) for t in range(8)))
    assert predicted_fill(everything, 10_000) == 2 * 28 + 8
    assert predicted_fill(everything, 20) == 21  # a level wider than 20 / 8: more than the limit


def test_wide_levels_are_noticed():
    # From states 0, 4 and 8 at once: state 0 leads to five others.
    star = edges(9, *((0, t) for t in (1, 2, 3, 5, 6)))
    assert frontier_exceeds(star, 4, levels=1)
    assert not frontier_exceeds(star, 5, levels=9)
    for middle in (4, 8):
        assert frontier_exceeds(edges(9, *((middle, t) for t in (1, 2, 3, 5, 6))), 4, levels=1)
    later = edges(9, (0, 1), *((1, t) for t in (2, 3, 5)))
    assert frontier_exceeds(later, 2, levels=2)
    assert not frontier_exceeds(later, 2, levels=1)
