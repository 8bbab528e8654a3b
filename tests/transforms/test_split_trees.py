"""The shape of the trees, grown by the kernels as plain Python, which checks every index."""

import sys

import numpy as np
import pytest

from surestep import Pairs
from surestep.errors import InvalidModel
from surestep.transforms.two_successor import grow_trees

split_trees = sys.modules["surestep.transforms.two_successor"]  # not the function
LEAVES = (0, 1, 2, 3, 4, 5, 9, 14)  # of each pair, one of them a state
PAIRS = Pairs.full(len(LEAVES), 1)
OFFSETS = np.concatenate([[0], np.cumsum(LEAVES)])
SUCCESSOR = np.concatenate([np.arange(m) % len(LEAVES) for m in LEAVES]).astype(np.int32)


@pytest.fixture
def grown(monkeypatch):
    plain = {name: kernel.function for name, kernel in split_trees.STRUCTURES.items()}
    monkeypatch.setattr(split_trees, "STRUCTURES", plain)
    leaves = np.arange(SUCCESSOR.size)
    return lambda k, structure: grow_trees(
        PAIRS, OFFSETS, SUCCESSOR, leaves, k=k, structure=structure
    )


def below(found, row):
    """The transitions at the leaves below a row; auxiliary state S + x has the row K + x."""
    for t in range(found.offsets[row], found.offsets[row + 1]):
        if found.origin[t] >= 0:
            yield int(found.origin[t])
        else:
            yield from below(found, int(found.child[t]))


@pytest.mark.parametrize("structure", ["chain", "balanced"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_node_but_the_last_of_a_tree_is_full(k, structure, grown):
    found = grown(k, structure)
    auxiliary = [max(-(-(m - 1) // (k - 1)), 1) - 1 for m in LEAVES]  # ⌈(m − 1)/(k − 1)⌉ − 1
    assert found.num_auxiliary == sum(auxiliary)
    assert found.pairs.num_states == found.pairs.num_pairs == len(LEAVES) + sum(auxiliary)
    assert found.child.size == found.origin.size == SUCCESSOR.size + sum(auxiliary)
    lengths, first = np.diff(found.offsets), len(LEAVES)
    for pair, (m, more) in enumerate(zip(LEAVES, auxiliary, strict=True)):
        rows = [lengths[pair], *lengths[first : first + more]]
        first += more
        assert rows[:-1] == [k] * more
        assert rows[-1] == m - (k - 1) * more <= k
        assert sorted(below(found, pair)) == list(range(OFFSETS[pair], OFFSETS[pair + 1]))
    leaf = found.origin >= 0
    assert found.child[leaf].tolist() == SUCCESSOR[found.origin[leaf]].tolist()
    nodes = found.child[~leaf]
    assert sorted(nodes.tolist()) == list(range(len(LEAVES), found.pairs.num_states))


def test_auxiliary_states_have_one_action_of_their_own(grown):
    found = grown(2, "chain").pairs
    assert found.num_actions == 2
    assert np.diff(found.offsets).tolist() == [1] * found.num_states
    assert found.action.tolist() == [0] * len(LEAVES) + [1] * (found.num_states - len(LEAVES))


def test_there_are_no_more_states_than_can_be_numbered(grown, monkeypatch):
    states = grown(3, "chain").pairs.num_states
    monkeypatch.setattr(split_trees, "LARGEST_INDEX", states)
    assert grown(3, "chain").pairs.num_states == states
    monkeypatch.setattr(split_trees, "LARGEST_INDEX", states - 1)
    with pytest.raises(InvalidModel, match=f"has {states} states, expected at most {states - 1}"):
        grown(3, "chain")
