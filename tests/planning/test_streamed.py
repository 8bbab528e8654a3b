"""Models in files are planned as in memory, to the bit, within the memory that is given."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import mdps, policies
from surestep import FiniteMDP, Pairs, Policy, evaluate, evaluate_with_bound, value_iteration
from surestep import optimal as best_plan
from surestep.errors import (
    InvalidModel,
    InvalidParameter,
    InvalidPolicy,
    NotConverged,
    ShapeMismatch,
)
from surestep.model import MappedMDP, map_mdp
from surestep.model.mapped import STATE_BYTES
from surestep.planning.chain import policy_chain
from surestep.planning.solving import solve_by_sweeps
from surestep.planning.streamed import StreamedChain, block_policy, streamed_rule

PLENTY = 10**9


def least_memory(folder):
    """The limit under which blocks are as small as they can be."""
    whole = MappedMDP(folder, PLENTY)
    states = range(whole.num_states)
    return STATE_BYTES * len(states) + max(whole.cost(s + 1) - whole.cost(s) for s in states)


def mapped(mdp, place, *, smallest=True, more=0):
    """The model in files, in blocks as small as they can be, or that much larger, or in one."""
    folder = place / "model"
    map_mdp(folder, mdp)
    return MappedMDP(folder, least_memory(folder) + more if smallest else PLENTY)


@given(mdp=mdps(), smallest=st.booleans(), data=st.data())
@settings(max_examples=15)
def test_answers_are_those_of_the_model_in_memory(mdp, smallest, data, tmp_path_factory):
    there = mapped(mdp, tmp_path_factory.mktemp("models"), smallest=smallest)
    expected, plan = (value_iteration(model, tolerance=0.1) for model in (mdp, there))
    np.testing.assert_array_equal(plan.value, expected.value)
    assert Policy.deterministic(mdp, plan.action) == expected.policy
    for name in ("iterations", "residual", "error_bound"):
        assert getattr(plan, name) == getattr(expected, name)
    np.testing.assert_array_equal(there.initial, mdp.initial)
    policy = data.draw(policies(mdp.pairs))
    streamed, exact = (evaluate_with_bound(model, policy, tolerance=0.1) for model in (there, mdp))
    assert np.abs(streamed.value - exact.value).max() <= streamed.error_bound + exact.error_bound


@given(mdp=mdps(), data=st.data())
@settings(max_examples=10)
def test_evaluation_adds_up_as_it_does_in_memory(mdp, data, tmp_path_factory):
    there = mapped(mdp, tmp_path_factory.mktemp("models"))
    policy = data.draw(policies(mdp.pairs))
    streamed, rule = StreamedChain(there, block_policy(there, policy)), streamed_rule(there, None)
    chain, start = policy_chain(mdp, policy.probability), np.ones(mdp.num_states)
    assert streamed.longest_row() == np.diff(chain.offsets).max()

    def solved(rows):
        return solve_by_sweeps(rows, start, 0.01, rule.horizon, lambda _, size: size <= 0.01)

    np.testing.assert_array_equal(solved(streamed), solved(chain))


def fast_model(states=500):
    """More states than are solved by LU, and so well mixed that sweeps are all it takes."""
    rng = np.random.default_rng(3)
    pairs = Pairs.full(states, 2)
    successor = np.sort(rng.integers(0, states - 2, (pairs.num_pairs, 3)), axis=1) + np.arange(3)
    chances = rng.random(successor.shape)
    return FiniteMDP(
        pairs,
        np.arange(pairs.num_pairs + 1) * 3,
        successor.ravel(),
        (chances / chances.sum(axis=1, keepdims=True)).ravel(),
        rng.normal(size=successor.size),
        np.full(pairs.num_pairs, 0.9),
        np.full(states, 1 / states),
    )


def test_larger_models_that_mix_fast_give_the_same_bits(tmp_path):
    mdp = fast_model()
    there = mapped(mdp, tmp_path, more=50_000)
    assert len(there.starts) > 10
    expected, plan = best_plan(mdp, tolerance=1e-6), best_plan(there, tolerance=1e-6)
    np.testing.assert_array_equal(plan.value, expected.value)
    assert plan.error_bound == expected.error_bound <= 1e-6
    policy = Policy.deterministic(mdp, plan.action)
    assert policy == expected.policy
    value = evaluate(mdp, policy, tolerance=1e-6)
    np.testing.assert_array_equal(evaluate(there, policy, tolerance=1e-6), value)
    np.testing.assert_array_equal(evaluate(there, plan.action, tolerance=1e-6), value)


def test_a_model_that_mixes_slowly_is_swept_until_it_is_proven(tmp_path):
    ring = np.roll(np.eye(10), 1, axis=1)[:, None]
    mdp = FiniteMDP.from_dense(ring, np.arange(10.0)[:, None], 0.8)
    there = evaluate_with_bound(mapped(mdp, tmp_path), Policy.uniform(mdp), tolerance=1e-3)
    assert there.method == "iterative"
    exact = evaluate(mdp, Policy.uniform(mdp))
    assert np.abs(there.value - exact).max() <= there.error_bound <= 1e-3


def test_what_needs_the_whole_model_in_memory_is_refused(tmp_path):
    mdp = FiniteMDP.from_dense([[[0.0, 1.0]], [[0.0, 0.0]]], [[1.0], [2.0]], [[1.0], [0.5]])
    undiscounted = mapped(mdp, tmp_path / "undiscounted")
    with pytest.raises(InvalidModel, match="pairs of discount 1, for which a proof"):
        best_plan(undiscounted)
    there = mapped(mdp.with_discount(0.5), tmp_path)
    with pytest.raises(InvalidParameter, match="only maximised; write it with rewards"):
        best_plan(there, minimise=True)
    with pytest.raises(InvalidParameter, match="sweep is 'gauss-seidel', expected jacobi"):
        value_iteration(there, sweep="gauss-seidel")
    with pytest.raises(InvalidParameter, match="method is 'dense', which needs the whole model"):
        evaluate(there, Policy.uniform(mdp), method="dense")
    with pytest.raises(InvalidParameter, match="tolerance is -1"):
        best_plan(there, tolerance=-1)
    with pytest.raises(NotConverged, match="after 1 sweeps, the limit"):
        value_iteration(there, limit=1)
    with pytest.raises(NotConverged, match=r"error\.plan") as told:
        value_iteration(there, tolerance=1e-18)
    assert np.abs(told.value.plan.value - [2.0, 2.0]).max() <= told.value.plan.error_bound < 1e-9


def test_policies_of_other_models_are_refused(tmp_path):
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.5)
    there = mapped(mdp, tmp_path)
    with pytest.raises(InvalidPolicy, match=r"gives action 7 to state 1, expected one of \[0, 1\]"):
        evaluate(there, np.array([0, 7]))
    with pytest.raises(InvalidPolicy, match=r"policy has shape \(3,\), expected \(2,\)"):
        evaluate(there, np.zeros(3, int))
    with pytest.raises(ShapeMismatch, match="2 states and 4 pairs, the policy has 3 and 6"):
        evaluate(there, Policy.uniform(Pairs.full(3, 2)))
    others = Pairs(np.array([0, 2, 4]), np.array([0, 1, 0, 2]), 3)
    with pytest.raises(ShapeMismatch, match="enable different actions in states 1 to 1"):
        evaluate(there, Policy.uniform(others))
    # The same row of actions, which belong to other states.
    shifted = Pairs(np.array([0, 1, 3]), np.array([0, 1, 2]), 3)
    enabled = [[True, True, False], [False, False, True]]
    mdp = FiniteMDP.from_dense(np.full((2, 3, 2), 0.5), np.zeros((2, 3)), 0.5, 0, enabled)
    there = mapped(mdp, tmp_path / "shifted", smallest=False)
    with pytest.raises(ShapeMismatch, match="enable different actions in states 0 to 1"):
        evaluate(there, Policy.uniform(shifted))


SCRIPT = """
import json, resource, sys
import numpy as np
from surestep import device, evaluate, optimal
from surestep.model import MappedMDP, StateBlock, write_mapped

STATES, ACTIONS, WIDTH, BLOCK = 20_000, 2, 40, 1_000

def blocks():
    rng = np.random.default_rng(0)
    for first in range(0, STATES, BLOCK):
        pairs = BLOCK * ACTIONS
        start = rng.integers(0, STATES, (pairs, 1))
        successor = (start + 997 * np.arange(WIDTH)) % STATES
        yield StateBlock(
            np.arange(BLOCK + 1) * ACTIONS,
            np.tile(np.arange(ACTIONS), BLOCK),
            np.arange(pairs + 1) * WIDTH,
            successor.ravel(),
            np.full(successor.size, 1 / WIDTH),
            np.repeat(rng.random(pairs), WIDTH),
            np.full(pairs, 0.9),
        )

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def planned(folder, memory):
    mdp = MappedMDP(folder, memory)
    plan = optimal(mdp, tolerance=1e-6)
    evaluate(mdp, plan.action, tolerance=1e-6)
    return mdp

with device("cpu"):
    small = next(blocks())
    small = small._replace(successor=small.successor % BLOCK)
    rows = small.successor.reshape(-1, WIDTH)
    rows[:] = np.arange(WIDTH)
    write_mapped(sys.argv[1] + "/small", [small], num_states=BLOCK)
    planned(sys.argv[1] + "/small", 10**8)
    before = peak()
    write_mapped(sys.argv[1] + "/large", blocks(), num_states=STATES)
    mdp = planned(sys.argv[1] + "/large", 10_000_000)
print(json.dumps({"before": before, "after": peak(), "transitions": mdp.num_transitions}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory as Linux counts it")
def test_the_process_stays_within_its_limit(tmp_path):
    # 10 MB for a model of 20 MB in files; in memory it would be 33 MB, and twice that to make it.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["transitions"] == 1_600_000
    assert found["after"] - found["before"] <= 15_000_000, found
