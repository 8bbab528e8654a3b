"""Models in folders of .npy files: written by blocks, read as they were, refused where damaged."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.strategies import mdps
from surestep import FiniteMDP, Pairs
from surestep.errors import FileFailure, InvalidModel, InvalidParameter
from surestep.model import MappedMDP, StateBlock, blocks, map_mdp, write_mapped
from surestep.model.mapped import STATE_BYTES

PLENTY = 10**8


def loaded(folder, name):
    return np.load(folder / f"{name}.npy")


def block(*, successor=(0, 1, 2), probability=(0.5, 0.5, 1.0), **changes):
    """Two states, of three in all: the first has two actions, the second one."""
    given = {
        "pair_offsets": [0, 2, 3],
        "action": [0, 2, 1],
        "offsets": [0, 2, 3, 3],
        "successor": list(successor),
        "probability": list(probability),
        "reward": [1.0, 3.0, 0.0],
        "discount": [0.5, 0.5, 0.5],
        "ending_reward": [0.0, 0.0, -7.0],
    }
    return StateBlock(**{name: np.array(value) for name, value in (given | changes).items()})


def last(reward=4.0):
    """The third state, which leads back."""
    arrays = ([0, 1], [0], [0, 1], [0], [1.0], [reward], [0.25])
    return StateBlock(*map(np.array, arrays))


@pytest.fixture
def folder(tmp_path):
    write_mapped(tmp_path / "model", [block(), last()], num_states=3, initial=1)
    return tmp_path / "model"


def test_blocks_come_one_behind_the_other(folder):
    mdp = MappedMDP(folder, PLENTY)
    assert (mdp.num_states, mdp.num_pairs, mdp.num_transitions) == (3, 4, 4)
    assert repr(mdp) == f"MappedMDP(num_states=3, num_pairs=4, num_transitions=4, memory={PLENTY})"
    assert loaded(folder, "pair_offsets").tolist() == [0, 2, 3, 4]
    assert loaded(folder, "action").tolist() == [0, 2, 1, 0]
    assert loaded(folder, "offsets").tolist() == [0, 2, 3, 3, 4]
    assert loaded(folder, "successor").tolist() == [0, 1, 2, 0]
    assert loaded(folder, "reward").tolist() == [2.0, 0.0, -7.0, 4.0]  # means
    assert mdp.initial.tolist() == [0.0, 1.0, 0.0]
    assert mdp.largest_reward == 7.0
    assert (mdp.facts.most_actions, mdp.facts.most_successors) == (2, 2)
    assert (mdp.facts.least_discount, mdp.facts.most_discount) == (0.25, 0.5)
    assert not mdp.facts.endless


@given(mdp=mdps(), states=st.integers(1, 7))
@settings(max_examples=15)
def test_a_model_is_written_as_it_is_however_it_is_cut(mdp, states, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_STATES", states)
        map_mdp(folder, mdp)
    expected = {
        "pair_offsets": mdp.pairs.offsets,
        "action": mdp.pairs.action,
        "offsets": mdp.offsets,
        "successor": mdp.successor,
        "probability": mdp.probability,
        "discount": mdp.discount,
        "reward": mdp.expected_reward,
        "initial": mdp.initial,
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(loaded(folder, name), values)
        assert loaded(folder, name).dtype == values.dtype
    again = MappedMDP(folder, PLENTY)
    assert again.largest_reward == max(np.abs(mdp.reward).max(initial=0), *abs(mdp.ending_reward))
    assert sum(part.successor.size for part in again.blocks()) == mdp.num_transitions


def test_the_page_says_what_a_thing_takes():
    page = (Path(__file__).parents[2] / "docs" / "size.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| a (state|pair|transition) \| (\d+) \| (\d+) \| (\S+)", page, re.M)
    mdp = FiniteMDP.from_dense(np.full((7, 2, 7), 1 / 7), np.zeros((7, 2)), 0.5)
    here = {
        "state": [mdp.pairs.offsets, mdp.initial],
        "pair": [
            mdp.pairs.action,
            mdp.offsets,
            mdp.discount,
            mdp.ending_reward,
            mdp.expected_reward,
        ],
        "transition": [mdp.successor, mdp.probability, mdp.reward],
    }
    there = {
        "state": ["pair_offsets", "initial"],
        "pair": ["action", "offsets", "discount", "reward"],
        "transition": ["successor", "probability"],
    }
    assert {name for names in there.values() for name in names} == set(blocks.TYPES)
    for noun, in_memory, in_files, _ in rows:
        assert int(in_memory) == sum(array.itemsize for array in here[noun])
        assert int(in_files) == sum(blocks.TYPES[name].itemsize for name in there[noun])
    assert [row[3] for row in rows] == [str(STATE_BYTES), "those", "those"]


def test_rows_of_seven_digits_are_rescaled_as_in_memory(tmp_path):
    rough = [0.3333333, 0.6666666]
    mdp = FiniteMDP(Pairs.full(2, 1), [0, 2, 2], [0, 1], rough, [1, 1], [0.5] * 2, [1, 0])
    parts = ([0, 1, 2], [0, 0], [0, 2, 2], [0, 1], rough, [1, 1], [0.5] * 2)
    write_mapped(tmp_path / "model", [StateBlock(*map(np.array, parts))], num_states=2)
    np.testing.assert_array_equal(loaded(tmp_path / "model", "probability"), mdp.probability)
    MappedMDP(tmp_path / "model", PLENTY)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([block()], "blocks have 2 states in all, expected 3"),
        ([block(), last(), last()], "blocks have 4 states or more, expected 3"),
        ([block(), last(np.nan)], "reward of state 2, action 0 → state 0 is nan"),
        ([block(successor=(0, 1, 3))], "of state 0, action 2 is 3, expected 0 to 2"),
        ([block(successor=(1, 1, 2))], "successor 1 of state 0, action 0 is listed twice"),
        ([block(probability=(0.5, 0.4, 1.0))], "of state 0, action 0 sum to 0.9, expected 1"),
        ([last(), block(discount=[0.5, 0.5, 2.0])], "of state 2, action 1 is 2.0, expected 0 to 1"),
        ([block(ending_reward=[1.0, 0.0, 0.0])], "ending reward of state 0, action 0 is 1.0"),
        ([last(), block(action=[2, 0, 1])], "state 0, is state 1 of the model: the actions of"),
        ([block(action=[0.5, 2, 1])], "action[0] is 0.5, expected a whole number"),
        ([block(action=[-1, 2, 1])], "action[0] is -1, expected 0 to"),
        ([block(pair_offsets=[0, 3, 3])], "is state 0 of the model: state 1 has no action"),
    ],
)
def test_a_wrong_block_leaves_no_folder(given, message, tmp_path):
    with pytest.raises(InvalidModel, match=re.escape(message)):
        write_mapped(tmp_path / "deep" / "model", given, num_states=3)
    assert list(tmp_path.iterdir()) == []


def test_what_the_caller_raises_is_the_callers(tmp_path):
    def broken():
        yield block()
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        write_mapped(tmp_path / "model", broken(), num_states=3)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidParameter, match="a block is of type tuple, expected StateBlock"):
        write_mapped(tmp_path / "model", [tuple(block())], num_states=3)


def test_nothing_is_overwritten(folder):
    with pytest.raises(FileFailure, match="is not empty"):
        write_mapped(folder, [block(), last()], num_states=3)


def cut(folder, name, size):
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:size])


def replaced(folder, name, change):
    np.save(folder / f"{name}.npy", change(loaded(folder, name)))


def header(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def other(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: cut(f, "probability", 130), "probability.npy is cut short or no .npy file"),
        (lambda f: cut(f, "action", 20), "action.npy is cut short or no .npy file"),
        (lambda f: cut(f, "action", 0), "action.npy is cut short or no .npy file"),
        (lambda f: (f / "successor.npy").unlink(), "successor.npy is missing; write the folder"),
        (lambda f: (f / "model.json").unlink(), "holds no model: there is no model.json in it"),
        (lambda f: (f / "model.json").write_text("{"), "model.json is no header of a model"),
        (lambda f: header(f, states=0), "model.json is no header of a model"),
        (lambda f: header(f, format="other"), "says format 'other', expected 'surestep mapped"),
        (lambda f: header(f, transitions=5), "successor.npy has shape (4,), expected (5,)"),
        (lambda f: header(f, largest_reward=6.0), "a reward is 7.0, but model.json says that none"),
        (
            lambda f: replaced(f, "successor", lambda a: a.astype(np.int64)),
            "successor.npy holds int64, expected int32",
        ),
        (
            lambda f: replaced(f, "discount", lambda a: a[:-1]),
            "discount.npy has shape (3,), expected (4,)",
        ),
        (lambda f: replaced(f, "offsets", other(-1, 5)), "offsets runs from 0 to 5, expected 0"),
        (
            lambda f: replaced(f, "offsets", other(1, 4)),
            "offsets falls from 4 to 3 at position 2",
        ),
        (
            lambda f: replaced(f, "pair_offsets", other(1, 10**12)),
            "pair_offsets falls from 1000000000000 to 3 at position 2",
        ),
        (
            lambda f: replaced(f, "successor", other(3, -1)),
            "successor of state 2, action 0 is -1, expected 0 to 2",
        ),
        (
            lambda f: replaced(f, "probability", other(0, 0.5 + 1e-9)),
            "of state 0, action 0 sum to 1.000000001, expected 1 within rounding",
        ),
        (
            lambda f: replaced(f, "initial", other(0, 1.0)),
            "probabilities of the initial distribution sum to 2, expected 1",
        ),
        (lambda f: replaced(f, "reward", other(1, np.inf)), "state 0, action 2 is inf, expected"),
        (lambda f: replaced(f, "discount", other(0, -1)), "state 0, action 0 is -1.0, expected 0"),
    ],
)
def test_a_damaged_folder_is_refused_by_name(damage, message, folder):
    damage(folder)
    with pytest.raises(InvalidModel, match=re.escape(message)) as refusal:
        MappedMDP(folder, PLENTY)
    assert str(folder) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_limit_that_is_too_small_says_what_it_takes(folder):
    with pytest.raises(InvalidParameter, match="memory is 100 bytes, expected") as refusal:
        MappedMDP(folder, 100)
    least = int(re.search(r"expected (\d+) or more", str(refusal.value)).group(1))
    assert least > 3 * STATE_BYTES
    assert MappedMDP(folder, least).starts == (0, 1, 3)
    assert MappedMDP(folder, PLENTY).starts == (0, 3)
    with pytest.raises(InvalidParameter, match="memory is 0, expected a whole number"):
        MappedMDP(folder, 0)
    with pytest.raises(InvalidParameter, match="expected"):
        MappedMDP(folder, least - 1)
