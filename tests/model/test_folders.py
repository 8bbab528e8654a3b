"""Models in folders of .npy files: read as they were, mapped, refused where damaged."""

import mmap
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from support.strategies import mdps
from surestep import FiniteMDP, evaluate, optimal
from surestep.errors import FileFailure, InvalidModel, SurestepError

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "large_models.py"


def is_mapped(array):
    """Tells whether an array lies in a file, of which the system keeps in memory what it can."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


@given(mdp=mdps())
@settings(max_examples=15)
def test_a_model_comes_back_as_it_was_and_stays_in_its_files(mdp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    mdp.save(folder)
    again = FiniteMDP.load(folder)
    assert again == mdp
    assert is_mapped(again.probability) or mdp.num_transitions == 0
    assert is_mapped(again.pairs.action)
    assert not again.reward.flags.writeable


def test_labels_marks_and_what_going_on_is_worth_come_back(tmp_path):
    dense = FiniteMDP.from_dense([[[1.0]]], [[1.0]], 0.5, state_labels=["ä"], action_labels=["b"])
    parts = (dense.pairs, dense.offsets, dense.successor, dense.probability, dense.reward)
    for number, endless in enumerate((0.0, np.inf, -np.inf, None)):
        marks = {"goal": np.array([True]), "none": np.array([False])}
        mdp = FiniteMDP(*parts, dense.discount, dense.initial, None, marks, endless)
        mdp.save(tmp_path / str(number))
        assert FiniteMDP.load(tmp_path / str(number)) == mdp


def test_answers_are_those_of_the_model_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.random((400, 3, 400)) * (rng.random((400, 3, 400)) < 0.05) + np.eye(400)[:, None]
    mdp = FiniteMDP.from_dense(rows / rows.sum(axis=2, keepdims=True), rng.random((400, 3)), 0.9)
    mdp.save(tmp_path / "model")
    again = FiniteMDP.load(tmp_path / "model")
    here, there = optimal(mdp, tolerance=1e-6), optimal(again, tolerance=1e-6)
    np.testing.assert_array_equal(there.value, here.value)
    assert there.policy == here.policy
    np.testing.assert_array_equal(evaluate(again, there), evaluate(mdp, here))


def test_a_folder_that_is_damaged_is_refused(tmp_path):
    mdp = FiniteMDP.from_dense(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.5)
    mdp.save(tmp_path / "model")
    with pytest.raises(FileFailure, match="is not empty"):
        mdp.save(tmp_path / "model")
    for path in (tmp_path / "model").iterdir():
        data = path.read_bytes()
        for cut in (0, 10, len(data) - 1):
            path.write_bytes(data[:cut])
            with pytest.raises(InvalidModel, match=f"model holds no model: {path.name}"):
                FiniteMDP.load(tmp_path / "model")
        path.unlink()
        with pytest.raises(FileFailure, match=f"{path.name} cannot be read: No such file"):
            FiniteMDP.load(tmp_path / "model")
        path.write_bytes(data)
    np.save(tmp_path / "model" / "probability.npy", np.full(8, 0.75))
    with pytest.raises(InvalidModel, match="of state 0, action 0 sum to 1"):
        FiniteMDP.load(tmp_path / "model")
    np.save(tmp_path / "model" / "probability.npy", np.array([object()] * 8), allow_pickle=True)
    with pytest.raises(SurestepError, match="is cut short, or no "):
        FiniteMDP.load(tmp_path / "model")


def test_the_page_says_what_a_thing_takes(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "size.md").read_text(encoding="utf-8")
    mdp = FiniteMDP.from_dense(np.full((7, 2, 7), 1 / 7), np.zeros((7, 2)), 0.5)
    pairs = [mdp.pairs.action, mdp.offsets, mdp.discount, mdp.ending_reward, mdp.expected_reward]
    here = {
        "state": [mdp.pairs.offsets, mdp.initial],
        "pair": pairs,
        "transition": [mdp.successor, mdp.probability, mdp.reward],
    }
    rows = re.findall(r"^\| a (state|pair|transition) \| (\d+) \| (\d+)", page, re.M)
    assert [noun for noun, _, _ in rows] == [*here]
    for noun, in_memory, in_files in rows:
        size = sum(array.itemsize for array in here[noun])
        assert int(in_memory) == size
        assert int(in_files) == size - 8 * (noun == "pair")  # the expected reward is no file


@pytest.mark.slow
def test_a_model_is_planned_in_less_memory_than_its_files_take(tmp_path):
    arguments = ["--states", "2500000", "--megabytes", "700", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, BENCHMARK, *arguments], capture_output=True, text=True)
    assert "40,000,000 transitions in 1.12 GB of files" in done.stdout, done.stderr
    assert "within 0.70 GB beside the files" in done.stdout, done.stderr
