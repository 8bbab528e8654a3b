"""Files that we write, as Storm reads them: the same model, and the same values."""

import numpy as np
import stormpy
from hypothesis import given
from numpy.testing import assert_allclose

from support.model_files import storable_mdps, storm_values
from surestep import FiniteMDP, optimal
from surestep.io import write_mdp

DISCOUNTS = (0.3, 0.9)


def build(mdp, path):
    """Writes a model, and lets Storm read it."""
    write_mdp(mdp, path)
    options = stormpy.io.UmbImportOptions()
    options.build_state_valuations = False  # there are none, and Storm would print a warning
    return stormpy.build_model_from_umb(path, options=options)


def check(mdp, storm):
    """Values of all states are ours, and at a start in several states Storm sees one step more."""
    discount = float(mdp.discount[0])
    found, value = storm_values(storm, discount, "reward"), optimal(mdp).value
    assert_allclose(found[: mdp.num_states], value, atol=1e-7)
    (start,) = storm.initial_states
    certain = mdp.initial.max() == 1.0
    expected = mdp.initial @ value if certain else discount * (mdp.initial @ value)
    assert_allclose(found[start], expected, atol=1e-7)
    ends = bool((np.diff(mdp.offsets) == 0).any())
    assert storm.nr_states == mdp.num_states + ends + (not certain)
    assert storm.labeling.contains_label("end") == ends
    assert storm.labeling.contains_label("start") == (not certain)
    if ends:
        assert list(storm.labeling.get_states("end")) == [mdp.num_states]


@given(mdp=storable_mdps(discounts=DISCOUNTS))
def test_storm_finds_the_same_values_in_our_archives(folder, mdp):
    check(mdp, build(mdp, folder / "m.umb"))


@given(mdp=storable_mdps(labels=False))
def test_total_rewards_until_the_end_are_storms(folder, mdp):
    mdp = rising(mdp)
    storm = build(mdp, folder / "rising.umb")
    formula = stormpy.parse_property('R{"reward"}max=? [ F "end" ]')
    found = stormpy.model_checking(storm, formula).get_value_vector()
    assert_allclose(found[: mdp.num_states], optimal(mdp).value, atol=1e-6)


def rising(mdp):
    """The model without discount and without transitions to the same or a lower state."""
    owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
    kept = mdp.successor > mdp.pairs.state[owner]
    weight = np.bincount(owner[kept], mdp.probability[kept], mdp.num_pairs)
    lengths = np.bincount(owner[kept], minlength=mdp.num_pairs)
    return FiniteMDP(
        mdp.pairs,
        np.concatenate([[0], np.cumsum(lengths)]),
        mdp.successor[kept],
        mdp.probability[kept] / weight[owner[kept]],
        mdp.reward[kept],
        np.ones(mdp.num_pairs),
        mdp.initial,
        np.where(lengths == 0, 1.5, 0.0),
    )


def test_storm_sees_the_names_of_our_actions(tmp_path):
    mdp = FiniteMDP.from_dense(
        np.ones((1, 2, 1)), [[1.0, 2.0]], 0.9, action_labels=("wait", "go left")
    )
    choices = build(mdp, tmp_path / "m.umb").choice_labeling
    assert [choices.get_labels_of_choice(c) for c in range(2)] == [{"wait"}, {"go left"}]
    mdp = FiniteMDP.from_dense(np.ones((1, 2, 1)), [[1.0, 2.0]], 0.9)
    choices = build(mdp, tmp_path / "m.umb").choice_labeling
    assert [choices.get_labels_of_choice(c) for c in range(2)] == [{"a0"}, {"a1"}]


def test_a_larger_model_is_storms_to_the_last_transition(tmp_path):
    rng = np.random.default_rng(3)
    states, width = 2000, 3
    successor = np.sort(rng.integers(0, states - width, (states * 2, width))) + np.arange(width)
    weight = rng.dirichlet(np.ones(width), states * 2)
    P = np.zeros((states, 2, states))
    P[np.repeat(np.arange(states), 2)[:, None], np.tile([0, 1], states)[:, None], successor] = (
        weight
    )
    mdp = FiniteMDP.from_dense(P, rng.random((states, 2)), 0.95)
    storm = build(mdp, tmp_path / "m.umb")
    assert storm.nr_transitions == mdp.num_transitions
    assert_allclose(storm_values(storm, 0.95, "reward"), optimal(mdp).value, atol=1e-7)
