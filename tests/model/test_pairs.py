"""Pairs: numbering, masks, labels, and what makes two of them equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import all_pairs
from surestep import FiniteMDP, Pairs, Policy
from surestep.errors import InvalidPolicy, ShapeMismatch, SurestepError
from surestep.model.pairs import check_same_pairs, pairs_of

LABELLED = Pairs([0, 2, 3], [0, 2, 1], 3, ("ward", "home"), ("wait", "treat", "send"))


@given(pairs=all_pairs())
def test_the_mask_of_enabled_actions_gives_the_pairs_back(pairs):
    assert Pairs.from_enabled(pairs.enabled()) == pairs
    assert pairs.enabled().sum() == pairs.num_pairs


@given(pairs=all_pairs())
def test_pairs_are_numbered_state_by_state_and_action_by_action(pairs):
    listed = [(int(s), int(a)) for s, a in zip(pairs.state, pairs.action, strict=True)]
    assert listed == [(int(s), int(a)) for s, a in np.argwhere(pairs.enabled())]
    for k, (state, action) in enumerate(listed):
        assert pairs.offsets[state] <= k < pairs.offsets[state + 1]
        assert pairs.pair_name(k) == f"state {state}, action {action}"


@given(states=st.integers(1, 5), actions=st.integers(1, 4))
def test_full_pairs_are_those_of_a_mask_of_ones(states, actions):
    assert Pairs.full(states, actions) == Pairs.from_enabled(np.ones((states, actions), bool))


@given(pairs=all_pairs(), data=st.data())
def test_a_table_and_its_flat_array_say_the_same(pairs, data):
    shape = (pairs.num_states, pairs.num_actions)
    cells = data.draw(
        st.lists(st.integers(-9, 9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    table = np.array(cells, float).reshape(shape)
    flat = pairs.flat("table", table, InvalidPolicy)
    assert np.array_equal(flat, table[pairs.enabled()])
    assert np.array_equal(pairs.flat("table", flat, InvalidPolicy), flat)
    assert np.array_equal(pairs.dense(flat), np.where(pairs.enabled(), table, 0.0))


def test_memory_that_others_can_write_to_is_copied():
    values = np.array([0, 1, 2])
    read_only_view = values.view(np.recarray)
    read_only_view.flags.writeable = False
    buffer = bytearray(np.array([0, 1, 2]).tobytes())
    foreign = np.frombuffer(memoryview(buffer).toreadonly(), np.int64)
    first, second = (Pairs(offsets, [0, 0], 1) for offsets in (np.asarray(read_only_view), foreign))
    values[:] = 7
    buffer[:] = bytes(len(buffer))
    assert first.offsets.tolist() == [0, 1, 2]
    assert second.offsets.tolist() == [0, 1, 2]


def test_labels_are_kept_as_tuples_and_count_for_equality():
    listed = Pairs([0, 2, 3], [0, 2, 1], 3, ["ward", "home"], ["wait", "treat", "send"])
    assert listed == LABELLED
    assert listed.state_labels == ("ward", "home")
    assert Pairs([0, 2, 3], [0, 2, 1], 3) != LABELLED
    assert LABELLED != "pairs"


def test_the_pairs_of_anything_built_on_them_are_found():
    mdp = FiniteMDP.from_dense(np.ones((1, 1, 1)), [[0.0]], 0.5)
    assert pairs_of(mdp) is pairs_of(mdp.pairs) is pairs_of(Policy.uniform(mdp)) is mdp.pairs
    with pytest.raises(SurestepError, match="expected a model or its pairs, found list"):
        pairs_of([])


def test_labels_are_compared_only_where_both_sides_have_them():
    bare = Pairs([0, 2, 3], [0, 2, 1], 3)
    renamed = Pairs([0, 2, 3], [0, 2, 1], 3, ("ward", "hospice"))
    check_same_pairs("one", bare, "the other", LABELLED)
    with pytest.raises(ShapeMismatch, match="state 1 is 'home' in one and 'hospice' in the other"):
        check_same_pairs("one", LABELLED, "the other", renamed)


def test_differing_actions_are_found_where_their_number_is_the_same():
    first, second = Pairs([0, 1, 3], [0, 0, 1], 2), Pairs([0, 2, 3], [0, 1, 1], 2)
    with pytest.raises(ShapeMismatch) as refusal:
        check_same_pairs("one", first, "the other", second)
    assert "enable different actions in state 0; 2 of 2 states are affected" in str(refusal.value)
