"""What the UMB format allows: rewards, labels, actions and numbers of all kinds."""

import numpy as np
import pytest
import stormpy
from numpy.testing import assert_allclose

from support.model_files import BIT, COMPRESSIONS, DOUBLE, bits, storm_values, umb, write_umb
from support.umb_parts import BRANCHES, CHOICES, actions, annotation, doubles, read, values
from surestep import optimal
from surestep.errors import InvalidModel
from surestep.io import read_mdp


@pytest.mark.parametrize("form", COMPRESSIONS)
def test_rewards_of_states_choices_and_branches_add_up(tmp_path, form):
    earned = {"states": doubles(1, 10), "choices": doubles(100, 200, 300)}
    earned["branches"] = doubles(0.5, 0.25, 0.125, 0)
    more = {
        "index": annotation("rewards", "r1", ["states", "choices", "branches"], alias="cost"),
        "files": values("rewards", "r1", **earned),
    }
    path = tmp_path / "m.umb"
    mdp = read_mdp(write_umb(path, *umb(CHOICES, BRANCHES, more=more), COMPRESSIONS[form]), 0.5)
    assert mdp.reward.tolist() == [101.5, 101.25, 201.125, 310.0]
    assert mdp.pairs.action.tolist() == [0, 1, 0]
    assert mdp.pairs.action_labels is None
    storm = stormpy.build_model_from_umb(path)
    assert_allclose(optimal(mdp).value, storm_values(storm, 0.5, "cost"), atol=1e-7)


def test_the_reward_structure_called_reward_counts(tmp_path):
    def structures(*names):
        entries, files = {}, {}
        for i, name in enumerate(names):
            entries[f"r{i}"] = {"alias": name, "applies-to": ["states"], "type": DOUBLE}
            files |= values("rewards", f"r{i}", states=doubles(i + 1, 0))
        return {"index": {"annotations": {"rewards": entries}}, "files": files}

    assert read(tmp_path, CHOICES, BRANCHES, more=structures("cost")).reward.tolist()[0] == 1.0
    both = structures("cost", "reward")
    assert read(tmp_path, CHOICES, BRANCHES, more=both).reward.tolist()[0] == 2.0
    two = structures("cost", "time")
    with pytest.raises(
        InvalidModel, match=r"reward is None, expected one of the reward structures: 'cost', 'time'"
    ):
        read(tmp_path, CHOICES, BRANCHES, more=two)
    for number, name in enumerate(("cost", "time"), start=1):
        path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, more=two))
        assert read_mdp(path, 0.5, reward=name).reward.tolist()[0] == number
    with pytest.raises(InvalidModel, match=r"reward is 'tine', expected one of .*: 'cost', 'time'"):
        read_mdp(path, 0.5, reward="tine")
    write_umb(path, *umb(CHOICES, BRANCHES))
    with pytest.raises(InvalidModel, match=r"reward is 'cost', expected one .*: there are none"):
        read_mdp(path, 0.5, reward="cost")


def test_labels_of_states_stay_with_the_model(tmp_path):
    labels = {
        "l1": {"alias": "goal", "applies-to": ["states"], "type": BIT},
        "l2": {"alias": "none", "applies-to": ["states"], "type": BIT},
        "l3": {"alias": "risky", "applies-to": ["choices"], "type": BIT},
    }
    more = {
        "index": {"annotations": {"aps": labels}},
        "files": values("aps", "l1", states=bits([False, True])),
    }
    mdp = read(tmp_path, CHOICES, BRANCHES, more=more)
    assert {name: each.tolist() for name, each in mdp.marks.items()} == {"goal": [False, True]}


def test_several_initial_states_become_a_distribution_when_asked_for(tmp_path):
    path = write_umb(tmp_path / "m.umb", *umb(CHOICES, BRANCHES, initial=(0, 1)))
    with pytest.raises(InvalidModel, match="2 states"):
        read_mdp(path, 0.5)
    assert read_mdp(path, 0.5, initial="uniform").initial.tolist() == [0.5, 0.5]


def test_branches_to_the_same_state_are_put_together(tmp_path):
    branches = [[(1, 0.25), (0, 0.5), (1, 0.25)], [(0, 1.0)]]
    more = {
        "index": annotation("rewards", "r", ["branches"]),
        "files": values("rewards", "r", branches=doubles(4, 1, 0, 7)),
    }
    mdp = read(tmp_path, [1, 1], branches, more=more)
    assert mdp.successor.tolist() == [0, 1, 0]
    assert mdp.probability.tolist() == [0.5, 0.5, 1.0]
    assert mdp.reward.tolist() == [1.0, 2.0, 7.0]


def test_files_that_may_be_missing_are_not_missed(tmp_path):
    index, files = umb([1, 1], [[(0, 1.0)], [(0, 1.0)]], actions=1)
    for name in ("state-to-choices.bin", "choice-to-branches.bin", "branch-to-target.bin"):
        del files[name]
    index.update(annotation("rewards", "r", ["states"]))
    mdp = read_mdp(write_umb(tmp_path / "m.umb", index, files), 0.5)
    assert mdp.successor.tolist() == [0, 0]
    assert mdp.pairs.action.tolist() == [0, 0]
    assert mdp.reward.tolist() == [0.0, 0.0]


def test_a_state_without_choices_and_a_choice_without_branches_are_ends(tmp_path):
    more = {
        "index": annotation("rewards", "r", ["choices"]),
        "files": values("rewards", "r", choices=doubles(3, 4)),
    }
    mdp = read(tmp_path, [2, 0], [[(1, 1.0)], []], more=more)
    assert np.diff(mdp.offsets).tolist() == [1, 0, 0]
    assert mdp.ending_reward.tolist() == [0.0, 4.0, 0.0]


ACTIONS = {
    "numbers": (actions(0, 2, 1), 3, [0, 2, 1], None),
    "numbers that fall": (actions(2, 0, 1), 3, [0, 2, 1], None),
    "numbers that repeat": (actions(1, 1, 0), 3, [0, 1, 2], ("a1", "a1 (2)", "a0")),
    "names that are numbers": (actions(0, 1, 0, strings=("a1", "a0")), 2, [0, 1, 0], ("a1", "a0")),
    "a choice without a name": (actions(0, 1, 1, strings=("", "go")), 2, [0, 1, 1], ("0", "go")),
    "no names at all": (actions(0, 0, 0, strings=("",)), 1, [0, 1, 0], None),
    "one name twice": (actions(0, 1, 0, strings=("go", "go")), 2, [0, 1, 0], ("go", "go (2)")),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_are_numbered(tmp_path, name):
    more, count, numbers, labels = ACTIONS[name]
    mdp = read(tmp_path, CHOICES, BRANCHES, actions=count, more=more)
    assert mdp.pairs.action.tolist() == numbers
    assert mdp.pairs.action_labels == labels


def test_files_that_nobody_needs_are_not_read(tmp_path):
    junk = {"annotations/aps/other/choices/values.bin": b"?", "notes.txt": b"\xff" * 700}
    index, files = umb(
        CHOICES, BRANCHES, more={"index": annotation("aps", "other", ["choices"], BIT)}
    )
    assert read_mdp(write_umb(tmp_path / "m.umb", index, {**junk, **files}), 0.5).num_pairs == 3
