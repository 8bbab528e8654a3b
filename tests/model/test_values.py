"""What holds for every noun: it is frozen, equal by value, and apart from the caller's arrays."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.frozen import assert_frozen, assert_independent
from support.problems import uniform_problem
from support.strategies import all_pairs, counts, decision_logs, mdps, policies
from surestep import Counts, DecisionLog, FiniteMDP, MDPBatch, Pairs, Policy

TWO_BY_TWO = Pairs.full(2, 2)
NOUNS = {
    "pairs": all_pairs(max_states=3),
    "policy": all_pairs(max_states=3).flatmap(policies),
    "model": mdps(max_states=3),
    "batch": mdps(max_states=3).map(lambda mdp: MDPBatch.from_models([mdp] * 2)),
    "counts": counts(max_states=2),
    "log": decision_logs(),
}


@pytest.mark.parametrize("kind", NOUNS)
@given(data=st.data())
def test_a_noun_is_frozen_and_its_arrays_are_its_own(kind, data):
    noun = data.draw(NOUNS[kind])
    assert_frozen(noun)
    given_arrays = {
        field.name: np.array(getattr(noun, field.name))
        for field in dataclasses.fields(noun)
        if field.init and isinstance(getattr(noun, field.name), np.ndarray)
    }

    def build(*arrays):
        return dataclasses.replace(noun, **dict(zip(given_arrays, arrays, strict=True)))

    if kind != "batch":
        copies = (copy.deepcopy(noun), pickle.loads(pickle.dumps(noun)))  # noqa: S301
        assert all(again == noun for again in (*copies, build(*given_arrays.values())))
    assert_independent(build, *given_arrays.values())


@pytest.mark.parametrize(
    ("build", "arrays"),
    [
        (Pairs.from_enabled, [np.array([[1, 1], [0, 1]])]),
        (
            lambda table: Policy.from_dense(TWO_BY_TWO, table),
            [np.array([[0.25, 0.75], [1.0, 0.0]])],
        ),
        (lambda q: Policy.softmax(TWO_BY_TWO, q), [np.array([[0.25, 3.0], [1.0, 0.0]])]),
        (
            FiniteMDP.from_dense,
            [
                np.array([[[0.25, 0.75]], [[0.0, 0.0]]]),
                np.array([[1.0], [3.0]]),
                np.array([[0.9], [0.5]]),
                np.array([0.5, 0.5]),
                np.array([[True], [True]]).view(np.int8),
            ],
        ),
        (
            lambda C, rewards, starts: Counts.from_dense(C, rewards=rewards, starts=starts),
            [np.array([[[1, 0]], [[0, 1]]]), np.array([[1.0], [0.5]]), np.array([1, 0])],
        ),
    ],
)
def test_the_tables_of_the_caller_stay_the_callers(build, arrays):
    assert_independent(build, *arrays)


def log(**changes):
    columns = {
        "pairs": TWO_BY_TWO,
        "state": [0, 1],
        "action": [1, 0],
        "reward": [-1.0, 0.5],
        "next_state": [1, 0],
        "terminated": [False, False],
        "truncated": [False, True],
        "episode_offsets": [0, 2],
    }
    return DecisionLog(**{**columns, **changes})


def model(R=1.0, **more):
    return FiniteMDP.from_dense([[[1.0]]], [[R]], 0.9, **more)


def counted(times=2, **more):
    return Counts.from_dense([[[times]]], **{"rewards": [[1.0]], **more})


DIFFERENT = {  # nouns of which no two are equal
    "pairs": lambda: [TWO_BY_TWO, Pairs.full(2, 1), Pairs.full(2, 2, state_labels=("a", "b")), ""],
    "policies": lambda: [
        Policy.uniform(TWO_BY_TWO),
        Policy.deterministic(TWO_BY_TWO, [0, 1]),
        "a policy",
    ],
    "models": lambda: [model(), model(1.5), model(state_labels=("only",)), "a model"],
    "counts": lambda: [
        counted(),
        counted(3),
        counted(starts=[2]),
        counted(rewards=None, reward_sums=[[1.0]]),
        "counts",
    ],
    "logs": lambda: [
        log(),
        log(pairs=Pairs.full(2, 3)),
        log(state=[1, 1]),
        log(action=[0, 0]),
        log(reward=[-1.0, 0.25]),
        log(next_state=[1, 1]),
        log(terminated=[False, True]),
        log(terminated=[False, True], truncated=[False, False]),
        log(truncated=[True, True], episode_offsets=[0, 1, 2]),
        "a log",
    ],
    "problems": lambda: [
        uniform_problem(counted(), 0.9, (0, 1)),
        uniform_problem(counted(3), 0.9, (0, 1)),
        uniform_problem(counted(), 0.9, (0, 1), unseen="pessimistic"),
    ],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_nouns_compare_by_value(kind):
    ours, again = DIFFERENT[kind](), DIFFERENT[kind]()
    for i, one in enumerate(ours):
        assert [one == other for other in again] == [i == j for j in range(len(again))]
    if kind != "problems":
        with pytest.raises(TypeError, match="unhashable"):
            hash(ours[0])
