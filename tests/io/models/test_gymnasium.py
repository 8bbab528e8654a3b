"""Gymnasium's tabular environments against value iteration over their own tables."""

import types
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from surestep import Policy, evaluate, optimal
from surestep.errors import InvalidModel
from surestep.io import from_dict, from_gymnasium

ENVIRONMENTS = {
    "FrozenLake 4x4": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": False}),
    "FrozenLake 4x4, slippery": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": True}),
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}),
    "FrozenLake 8x8, slippery": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True}),
    "CliffWalking": ("CliffWalking-v1", {}),
    "CliffWalking, slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "Taxi": ("Taxi-v4", {}),
}


class Table:
    """The least that counts as a tabular environment."""

    def __init__(self, P, initial_state_distrib=None):
        self.P = P
        if initial_state_distrib is not None:
            self.initial_state_distrib = initial_state_distrib


def flag_based(P, discount, policy=None, sweeps=3000):
    """V(s) = max_a (or Σ_a π) Σ p (r + γ (1 − terminated) V(s')), from the rows and their flags."""
    rows = [
        (s, a, p, t, r, flag)
        for s in range(len(P))
        for a in range(len(P[s]))
        for p, t, r, flag in P[s][a]
    ]
    s, a, p, t, r, flag = (np.array(column) for column in zip(*rows, strict=True))
    value = np.zeros(len(P))
    for _ in range(sweeps):
        q = np.zeros((len(P), int(a.max()) + 1))
        np.add.at(q, (s, a), p * (r + discount * ~flag.astype(bool) * value[t]))
        after = q.max(axis=1) if policy is None else (policy * q).sum(axis=1)
        change = np.abs(after - value).max()
        value = after
        if change < 1e-13:
            break
    return value


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_values_are_those_of_the_table_and_its_flags(name):
    env_id, settings = ENVIRONMENTS[name]
    env = gymnasium.make(env_id, **settings)
    P, size = env.unwrapped.P, len(env.unwrapped.P)
    mdp = from_gymnasium(env, 0.9)
    assert mdp.num_states in (size, size + 1)
    assert_allclose(optimal(mdp).value[:size], flag_based(P, 0.9), atol=1e-8)
    uniform = np.full((size, len(P[0])), 1 / len(P[0]))
    values = evaluate(mdp, Policy.uniform(mdp))
    assert_allclose(values[:size], flag_based(P, 0.9, uniform), atol=1e-8)
    start = np.zeros(mdp.num_states)
    start[:size] = env.unwrapped.initial_state_distrib
    assert_allclose(mdp.initial, start, rtol=1e-12)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1"])
def test_a_name_and_the_table_itself_make_the_same_model(name):
    env = gymnasium.make(name)
    made = from_gymnasium(env, 0.9)
    assert from_gymnasium(name, 0.9) == made
    start = env.unwrapped.initial_state_distrib
    assert from_dict(env.unwrapped.P, 0.9, initial=start) == made
    first = from_dict(env.unwrapped.P, 0.9)
    assert np.flatnonzero(first.initial).tolist() == [0]
    assert replace(first, initial=made.initial) == made


def test_what_is_no_environment_and_no_table_is_refused_by_name():
    with pytest.raises(InvalidModel, match="no environment 'FrozenPond-v1'"):
        from_gymnasium("FrozenPond-v1", 0.9)
    with pytest.raises(InvalidModel, match="the dictionary is malformed at state 0"):
        from_dict({0: {0: [(1.0, 0)]}}, 0.9)
    with pytest.raises(InvalidModel, match="the dictionary has no table P"):
        from_dict({}, 0.9)


def test_terminating_into_a_dead_end_needs_no_further_state():
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    mdp = from_gymnasium(env, 0.99)
    assert mdp.num_states == 16
    holes_and_goal = [s for s, tile in enumerate(env.unwrapped.desc.ravel()) if tile in b"HG"]
    ends = np.diff(mdp.offsets) == 0
    assert set(mdp.pairs.state[ends]) == set(holes_and_goal)


def test_terminating_elsewhere_leads_to_one_further_state_that_is_the_end():
    mdp = from_gymnasium(gymnasium.make("Taxi-v4"), 0.9)
    assert mdp.num_states == 501
    last = mdp.pairs.state == 500
    assert last.sum() == 1
    assert np.diff(mdp.offsets)[last].tolist() == [0]
    assert mdp.initial[500] == 0.0


@st.composite
def random_tables(draw):
    """Tables in which rows repeat successors and flags contradict each other."""
    states, actions = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    P = {}
    for s in range(states):
        P[s] = {}
        for a in range(actions):
            rows = draw(
                st.lists(
                    st.tuples(
                        st.integers(1, 4),
                        st.integers(0, states - 1).map(draw(st.sampled_from([int, np.int64]))),
                        st.integers(-2, 2).map(float),
                        st.booleans(),
                    ),
                    min_size=1,
                    max_size=4,
                )
            )
            total = sum(weight for weight, *_ in rows)
            P[s][a] = [(weight / total, *rest) for weight, *rest in rows]
    return P


@given(P=random_tables(), discount=st.sampled_from([0.0, 0.5, 0.9]))
def test_any_table_has_the_values_that_its_flags_say(P, discount):
    mdp = from_gymnasium(Table(P, np.eye(len(P))[0]), discount)
    size = len(P)
    assert_allclose(optimal(mdp).value[:size], flag_based(P, discount), atol=1e-9)
    uniform = np.full((size, len(P[0])), 1 / len(P[0]))
    values = evaluate(mdp, Policy.uniform(mdp))
    assert_allclose(values[:size], flag_based(P, discount, uniform), atol=1e-9)


def test_states_may_have_actions_of_their_own():
    P = {0: {2: [(1.0, 1, 1.0, False)], 0: [(1.0, 0, 0.0, False)]}, 1: {1: [(1.0, 1, 0.0, True)]}}
    mdp = from_gymnasium(Table(P, 0), 0.5)
    assert mdp.pairs.enabled().tolist() == [[True, False, True], [False, True, False]]


def test_the_start_can_be_chosen():
    P = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 0, 0.0, True)]}}
    assert from_gymnasium(Table(P, [1.0, 0.0]), 0.5, initial=1).initial.tolist() == [0, 1, 0]
    mdp = from_gymnasium(Table(P), 0.5, initial=[0.25, 0.75])
    assert mdp.initial.tolist() == [0.25, 0.75, 0.0]


GOOD = (1.0, 0, 1.0, False)
REFUSED = [
    (Table(None), "Table has no table P of transitions, expected a tabular"),
    (Table({1: {0: [GOOD]}}, 0), "P of Table is malformed at state 0"),
    (Table({0: {0: [GOOD]}, 1: {0: [(1.0, 0, 1.0)]}}, 0), "P of Table is malformed at state 1"),
    (Table({0: {"up": [GOOD]}}, 0), "malformed at state 0"),
    (Table({0: {-1: [GOOD]}}, 0), "malformed at state 0: action -1 is not"),
    (
        Table({0: {0: [GOOD], 1: [(1.0, 7, 1.0, False)]}}, 0),
        "the table P of Table leads from state 0, action 1 to state 7, expected 0 to 0",
    ),
    (Table({0: {0: [(1.0, 2**80, 1.0, False)]}}, 0), f"to state {2**80}, expected 0 to 0"),
    (  # which would be left out
        Table({0: {0: [GOOD, (-0.3, 0, 0.0, False)]}}, 0),
        "a probability of state 0, action 0 in the table P of Table is -0.3, expected 0 or more",
    ),
    (
        Table({0: {0: [GOOD, (0.0, 0, np.inf, False)]}}, 0),
        "a reward of state 0, action 0 in the table P of Table is inf, expected a finite number",
    ),
    (Table({0: {0: [GOOD], 3: [(0.5, 0, 1.0, False)]}}, 0), "of state 0, action 3 sum to 0.5, exp"),
    (Table({0: {0: [GOOD]}}), "Table does not say where episodes start; give a state"),
    (Table({0: {}}, 0), "state 0 has no action"),
    (Table({0: {0: [GOOD]}}, 3), "initial state is 3, expected 0 to 0"),
]


@pytest.mark.parametrize(("env", "words"), REFUSED)
def test_what_is_no_table_is_refused_by_name(env, words):
    with pytest.raises(InvalidModel) as refusal:
        from_gymnasium(env, 0.9)
    assert words in str(refusal.value)


def test_environments_are_named_as_gymnasium_names_them():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(InvalidModel, match="CartPole-v1 has no table P of transitions"):
        from_gymnasium(env, 0.9)
    env = Table({0: {0: [GOOD]}})
    env.spec = types.SimpleNamespace(id="Corridor-v0")
    with pytest.raises(InvalidModel, match="Corridor-v0 does not say where episodes start"):
        from_gymnasium(env, 0.9)


def test_a_start_in_the_extra_end_state_is_refused():
    flagged = Table({0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 0, 1.0, False)]}})
    assert from_gymnasium(flagged, 0.9, initial=1).num_states == 3
    with pytest.raises(InvalidModel, match="initial state is 2, expected 0 to 1"):
        from_gymnasium(flagged, 0.9, initial=2)
