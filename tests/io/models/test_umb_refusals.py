"""Mistakes in a UMB archive: each is refused by its name."""

import numpy as np
import pytest

from support.model_files import DOUBLE, offsets, write_umb
from support.umb_parts import (
    REWARD,
    SYSTEM,
    doubles,
    entry,
    file,
    good,
    spoiled,
)
from surestep.errors import InvalidModel
from surestep.io import read_mdp

REFUSED = [
    (lambda i, f: i.clear(), "index.json: object missing required field format-version"),
    (entry(2, "format-version"), "index.json.format-version: expected int <= 1, found 2"),
    (entry([], SYSTEM), "index.json.transition-system: expected object, got array"),
    (entry(2.5, SYSTEM, "#states"), "#states: expected int, got float, found 2.5"),
    (entry(0, SYSTEM, "#states"), "#states: expected int >= 1, found 0"),
    (entry(10**400, SYSTEM, "#states"), "#states: expected int <= 2147483647, found 10000"),
    (
        entry(10**18, SYSTEM, "#branches"),
        "branch-to-probability.bin has 32 bytes, expected 8000000000000000000",
    ),
    (entry(2, SYSTEM, "#players"), "2 players and 0 observations, expected discrete time"),
    (
        entry({"type": "double", "size": 32}, SYSTEM, "branch-probability-type"),
        "values are of type 'double', expected double, of 64 bits",
    ),
    (
        file("branch-to-probability.bin", None),
        "branch-to-probability.bin is missing in the archive",
    ),
    (
        file("branch-to-target.bin", bytes(24)),
        "branch-to-target.bin has 24 bytes, expected 32 (4 × 8)",
    ),
    (
        file("choice-to-branches.bin", np.array([0, 3, 2, 4], "<u8").tobytes()),
        "choice-to-branches.bin falls from 3 to 2 at position 2",
    ),
    (
        file("state-to-choices.bin", np.array([0, 2, 2], "<u8").tobytes()),
        "state-to-choices.bin runs from 0 to 2, expected from 0 to 3",
    ),
    (
        file("state-to-choices.bin", None),
        "state-to-choices.bin is missing, but 2 runs over 3 elements need it",
    ),
    (
        file("branch-to-target.bin", np.array([0, 1, 2, 1], "<u8").tobytes()),
        "successor of state 0, choice 1 is 2, expected 0 to 1",
    ),
    (
        file("branch-to-probability.bin", doubles(0.25, 0.65, 1, 1)),
        "probabilities of state 0, choice 0 sum to 0.9, expected 1",
    ),
    (
        file("branch-to-probability.bin", doubles(0.25, 0.75, np.nan, 1)),
        "the probability of branch 2 is nan, expected 0 or more",
    ),
    (file("state-is-initial.bin", None), "no state is marked as 'init', expected one to start in"),
    (
        file("annotations/rewards/r/choices/values.bin", doubles(1, np.nan, 3)),
        "reward of state 0, choice 1 is nan, expected a finite number",
    ),
    (
        file("annotations/rewards/r/choices/values.bin", doubles(1, 2)),
        "annotations/rewards/r/choices/values.bin has 16 bytes, expected 24 (3 × 8)",
    ),
    (
        entry(["players"], *REWARD, "applies-to"),
        "applies to ['players'] and may be random, expected fixed rewards of states, choices, bran",
    ),
    (entry(DOUBLE, *REWARD, "probability-type"), "['choices'] and may be random"),
    (entry(None, *REWARD, "type"), "rewards/r: values are of type ''"),
    (
        file("actions/choices/values.bin", np.array([0, 2, 0], "<u4").tobytes()),
        "the action of choice 1 is 2, expected 0 to 1",
    ),
    (
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([2, 9]),
                "actions/choices/strings.bin": b"goo",
            }
        ),
        "actions/choices/string-mapping.bin runs from 0 to 11, expected from 0 to 3",
    ),
    (
        file("actions/choices/string-mapping.bin", offsets([0, 0])),
        "actions/choices/strings.bin is missing in the archive",
    ),
    (
        lambda i, f: f.update(
            {
                "actions/choices/string-mapping.bin": offsets([1, 1]),
                "actions/choices/strings.bin": b"a\xff",
            }
        ),
        "actions/choices/strings.bin is not valid UTF-8",
    ),
    (
        entry({"tool": "surestep", "parameters": {"state-labels": ["a", "a"]}}, "file-data"),
        "state label 'a' is given twice, the second time at 1",
    ),
    (
        entry({"tool": "surestep", "parameters": {"state-labels": [1, 2]}}, "file-data"),
        "state-labels[0]: expected str, got int, found 1",
    ),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_a_mistake_is_refused_by_name(tmp_path, change, words):
    path = write_umb(tmp_path / "m.umb", *spoiled(change))
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert refusal.value.__cause__ is None


def test_the_archive_that_the_mistakes_are_made_from_is_good(tmp_path):
    assert read_mdp(write_umb(tmp_path / "m.umb", *good()), 0.9).num_pairs == 3


INDEXES = {
    "no JSON": (b"{", "index.json is not valid JSON"),
    "no object": (b"[]", "index.json: expected object, got array"),
    "no text": (b"\xff\xfe", "index.json is not valid JSON"),
    "deep": (b"[" * 100_000, "index.json is not valid JSON"),
    "a long number": (b'{"format-version": ' + b"9" * 5000 + b"}", "index.json is not valid JSON"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_is_none_is_refused(tmp_path, name):
    index, words = INDEXES[name]
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(write_umb(tmp_path / "m.umb", index, {}), 0.9)
    assert words in str(refusal.value)
