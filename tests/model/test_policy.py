"""Policy: tables in and out, and the ways to make one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.problems import uniform_problem
from support.strategies import REWARDS, all_pairs, mdps, policies
from surestep import (
    Counts,
    Pairs,
    Policy,
    _reprs,
    certify,
    evaluate,
    occupancy,
    optimal,
    performance,
)
from surestep.algorithms import SPIBB
from surestep.errors import InvalidParameter, InvalidPolicy
from surestep.model.policy import policy_of

TWO_BY_TWO = Pairs.full(2, 2)
RAGGED = Pairs.from_enabled([[1, 0, 1], [0, 1, 0]])


@st.composite
def values(draw, pairs, elements=REWARDS):
    """One number a pair."""
    return np.array(draw(st.lists(elements, min_size=pairs.num_pairs, max_size=pairs.num_pairs)))


@given(data=st.data())
def test_the_table_of_a_policy_gives_the_policy_back(data):
    pairs = data.draw(all_pairs())
    policy = data.draw(policies(pairs))
    table = policy.dense()
    assert table.shape == (pairs.num_states, pairs.num_actions)
    assert not table[~pairs.enabled()].any()
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert Policy.from_dense(pairs, table) == policy
    assert Policy.from_dense(pairs, policy.probability) == policy


@given(mdp=mdps(max_states=3))
def test_a_model_its_pairs_a_policy_and_counts_serve_equally_as_source(mdp):
    expected = Policy.uniform(mdp.pairs)
    shape = (mdp.num_states, mdp.pairs.num_actions)
    counts = Counts.from_dense(
        np.zeros((*shape, mdp.num_states), int),
        rewards=np.zeros(shape),
        enabled=mdp.pairs.enabled(),
    )
    for source in (mdp, expected, counts):
        assert Policy.uniform(source) == expected
        assert Policy.from_dense(source, expected.dense()) == expected


@given(pairs=all_pairs())
def test_a_uniform_policy_takes_every_enabled_action_equally_often(pairs):
    enabled = pairs.enabled()
    expected = enabled / enabled.sum(axis=1, keepdims=True)
    assert np.array_equal(Policy.uniform(pairs).dense(), expected)


@given(data=st.data())
def test_a_deterministic_policy_takes_the_action_it_is_told(data):
    pairs = data.draw(all_pairs())
    actions = [int(data.draw(st.sampled_from(np.flatnonzero(row)))) for row in pairs.enabled()]
    table = Policy.deterministic(pairs, actions).dense()
    assert np.array_equal(table, np.eye(pairs.num_actions)[actions])


@given(data=st.data(), labelled=st.booleans())
def test_arrays_dicts_and_functions_make_the_same_deterministic_policy(data, labelled):
    pairs = data.draw(all_pairs())
    states, actions = range(pairs.num_states), range(pairs.num_actions)
    if labelled:
        states, actions = [f"s{s}" for s in states], [f"a{a}" for a in actions]
        pairs = replace(pairs, state_labels=tuple(states), action_labels=tuple(actions))
    numbers = [int(data.draw(st.sampled_from(np.flatnonzero(row)))) for row in pairs.enabled()]
    named = [actions[a] for a in numbers]
    expected = Policy.deterministic(pairs, numbers)
    for chosen in (
        dict(zip(states, named, strict=True)),
        dict(zip(states, numbers, strict=True)),
        dict(enumerate(named)),
        lambda state: named[states.index(state)],
        lambda state: numbers[states.index(state)],
    ):
        assert Policy.deterministic(pairs, chosen) == expected


@pytest.mark.parametrize(
    ("error", "actions", "words"),
    [
        (InvalidPolicy, {0: 1}, "actions gives none to state 1, expected one for every state"),
        (InvalidParameter, {0: 1, 1: 0, 2: 0}, "a state of actions is 2, expected 0 to 1"),
        (InvalidParameter, {0: 1, "ward": 0}, "a state of actions is 'ward', expected 0 to 1"),
        (InvalidParameter, lambda state: None, "an action is None, expected 0 to 1"),
        (InvalidParameter, {0: True, 1: 0}, "an action is True, expected 0 to 1"),
        (InvalidParameter, {0: 0.5, 1: 0}, "an action is 0.5, expected 0 to 1"),
    ],
)
def test_a_dict_or_function_that_gives_no_policy_is_refused(error, actions, words):
    with pytest.raises(error, match=words):
        Policy.deterministic(TWO_BY_TWO, actions)


@given(data=st.data())
def test_a_state_gives_its_row_of_the_table(data):
    policy = data.draw(policies(data.draw(all_pairs())))
    table = policy.dense()
    for s, row in enumerate(table):
        assert np.array_equal(policy[s], row)
    assert np.array_equal(list(policy), table)


def test_a_state_is_given_by_number_or_label():
    labelled = Policy.from_dense(Pairs.full(2, 1, state_labels=("a", "b")), [[1.0], [1.0]])
    assert labelled["b"].tolist() == labelled[1].tolist() == [1.0]
    for state in ("c", 2, -1, 0.5, None):
        with pytest.raises(InvalidParameter, match="expected 0 to 1, or a label"):
            labelled[state]


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_draws_are_enabled_actions_and_depend_on_the_seed_alone(data, seed):
    pairs = data.draw(all_pairs())
    policy = data.draw(policies(pairs))
    state = data.draw(st.integers(0, pairs.num_states - 1))
    action = policy.sample(state, seed)
    assert type(action) is int
    assert policy[state][action] > 0
    assert action == policy.sample(state, np.random.default_rng(seed))


def test_draws_are_as_frequent_as_the_policy_says():
    policy = Policy.from_dense(RAGGED, [[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]])
    rng = np.random.default_rng(5)
    drawn = np.bincount([policy.sample(0, rng) for _ in range(4000)], minlength=3)
    assert drawn[1] == 0
    assert abs(drawn[0] / 4000 - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)


@given(data=st.data())
def test_softmax_is_proportional_to_the_exponential(data):
    pairs = data.draw(all_pairs())
    q, temperature = data.draw(values(pairs)), data.draw(st.floats(0.5, 100))
    found = Policy.softmax(pairs, q, temperature)
    for s in range(pairs.num_states):
        run = slice(pairs.offsets[s], pairs.offsets[s + 1])
        weight = [math.exp(x / temperature) for x in q[run]]
        expected = [w / sum(weight) for w in weight]
        assert_allclose(found.probability[run], expected, rtol=1e-12, atol=1e-300)
    assert Policy.softmax(pairs, pairs.dense(q), temperature) == found


@given(data=st.data(), temperature=st.floats(min_value=0, exclude_min=True, allow_nan=False))
def test_softmax_of_any_finite_numbers_is_a_policy(data, temperature):
    pairs = data.draw(all_pairs(max_states=3))
    q = data.draw(values(pairs, st.floats(allow_nan=False, allow_infinity=False)))
    probability = Policy.softmax(pairs, q, temperature).probability
    assert_allclose(np.add.reduceat(probability, pairs.offsets[:-1]), 1.0, rtol=1e-12)
    for s in range(pairs.num_states):
        run = slice(pairs.offsets[s], pairs.offsets[s + 1])
        assert probability[run][np.argmax(q[run])] == probability[run].max()


def test_softmax_is_right_where_gaps_are_larger_than_any_double():
    q = [[1e308, -1e308], [0.0, 0.0]]
    hot = Policy.softmax(TWO_BY_TWO, q, 1e308)
    assert_allclose(hot.dense()[0], [1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))], rtol=1e-12)
    assert Policy.softmax(TWO_BY_TWO, q, math.inf) == Policy.uniform(TWO_BY_TWO)
    assert Policy.softmax(TWO_BY_TWO, q, 1e-300).dense().tolist() == [[1.0, 0.0], [0.5, 0.5]]


@given(data=st.data(), weight=st.floats(0, 1))
def test_a_mixture_is_the_weighted_mean_of_its_parts(data, weight):
    pairs = data.draw(all_pairs())
    first, second = data.draw(policies(pairs)), data.draw(policies(pairs))
    expected = (1 - weight) * first.dense() + weight * second.dense()
    assert_allclose(first.mix(second, weight).dense(), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(second.mix(first, 1 - weight).dense(), expected, rtol=1e-9, atol=1e-12)
    assert first.mix(second, 0) == first
    assert first.mix(second, 1) == second


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_weights_of_a_mixture_may_have_any_precision(kind):
    first, second = (Policy.deterministic(TWO_BY_TWO, [a, a]) for a in (0, 1))
    weight = kind(0.3)
    share = float(weight)
    assert first.mix(second, weight).dense()[0].tolist() == [1 - share, share]


# ---- what has a policy --------------------------------------------------------------------------


def test_plans_and_improvements_stand_for_their_policies():
    counts = Counts.from_dense([[[3, 1], [0, 9]], [[0, 2], [5, 5]]], rewards=[[1.0, 0], [0, 2.0]])
    problem = uniform_problem(counts, 0.9, (-20.0, 20.0))
    model = problem.estimate()
    for found in (optimal(model), SPIBB(n_wedge=2).improve(problem)):
        assert policy_of(found, model) is found.policy
        assert (evaluate(model, found) == evaluate(model, found.policy)).all()
        assert performance(model, found) == performance(model, found.policy)
        assert certify(problem, found, "robust") == certify(problem, found.policy, "robust")


@given(data=st.data())
def test_a_table_of_probabilities_stands_for_its_policy(data):
    mdp = data.draw(mdps(max_states=3))
    policy = data.draw(policies(mdp.pairs))
    for table in (policy.dense(), policy.dense().tolist(), policy.probability):
        assert (evaluate(mdp, table) == evaluate(mdp, policy)).all()
        assert performance(mdp, table) == performance(mdp, policy)
        assert (occupancy(mdp, table) == occupancy(mdp, policy)).all()


# ---- a policy as a table in memory ---------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_a_pair(library, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(_reprs, "find_spec", lambda name: True if name == library else None)
    table = [[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]]
    labelled = Pairs.from_enabled(
        RAGGED.enabled(), state_labels=("ward", "home"), action_labels=("wait", "call", "treat")
    )
    for pairs, expected in (
        (RAGGED, {"state": [0, 0, 1], "action": [0, 2, 1]}),
        (labelled, {"state": ["ward", "ward", "home"], "action": ["wait", "treat", "call"]}),
    ):
        frame = Policy.from_dense(pairs, table).to_frame()
        assert type(frame).__module__.startswith(library)
        names = frame.column_names if library == "pyarrow" else list(frame.columns)
        values = {
            name: frame[name].to_pylist() if library == "pyarrow" else frame[name].to_list()
            for name in names
        }
        assert values == expected | {"probability": [0.25, 0.75, 1.0]}
        assert names == ["state", "action", "probability"]
