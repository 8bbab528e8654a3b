"""Mistakes in a UMB archive: each is refused by its name."""

import numpy as np
import pytest

from support.model_files import DOUBLE, offsets, write_umb
from support.umb_parts import REWARD, SYSTEM, doubles, entry, file, good, spoiled
from surestep.errors import InvalidModel
from surestep.io import read_mdp

PROBABILITIES, TARGETS = "branch-to-probability.bin", "branch-to-target.bin"
EARNED, TAKEN = "annotations/rewards/r/choices/values.bin", "actions/choices/values.bin"
MAPPING, STRINGS = "actions/choices/string-mapping.bin", "actions/choices/strings.bin"
NO_JSON = "index.json is not valid JSON"


def words(*numbers, kind="<u8"):
    return np.array(numbers, kind).tobytes()


def strings(lengths, text):
    return lambda i, f: f.update({MAPPING: offsets(lengths), STRINGS: text})


def state_labels(*labels):
    return entry({"tool": "surestep", "parameters": {"state-labels": [*labels]}}, "file-data")


REFUSED = [  # another index, or a change of a good archive
    (b"{", NO_JSON),
    (b"[]", "index.json: expected object, got array"),
    (b"\xff\xfe", NO_JSON),
    (b"[" * 100_000, NO_JSON),
    (b'{"format-version": ' + b"9" * 5000 + b"}", NO_JSON),
    (lambda i, f: i.clear(), "index.json: object missing required field format-version"),
    (entry(2, "format-version"), "index.json.format-version: expected int <= 1, found 2"),
    (entry([], SYSTEM), "index.json.transition-system: expected object, got array"),
    (entry(2.5, SYSTEM, "#states"), "#states: expected int, got float, found 2.5"),
    (entry(0, SYSTEM, "#states"), "#states: expected int >= 1, found 0"),
    (entry(10**400, SYSTEM, "#states"), "#states: expected int <= 2147483647, found 10000"),
    (entry(10**18, SYSTEM, "#branches"), "has 32 bytes, expected 8000000000000000000"),
    (entry(2, SYSTEM, "#players"), "2 players and 0 observations, expected discrete time"),
    (
        entry({"type": "double", "size": 32}, SYSTEM, "branch-probability-type"),
        "values are of type 'double', expected double, of 64 bits",
    ),
    (file(PROBABILITIES, None), "branch-to-probability.bin is missing in the archive"),
    (file(TARGETS, bytes(24)), "branch-to-target.bin has 24 bytes, expected 32 (4 × 8)"),
    (file("choice-to-branches.bin", words(0, 3, 2, 4)), "branches.bin falls from 3 to 2 at posit"),
    (file("state-to-choices.bin", words(0, 2, 2)), "runs from 0 to 2, expected from 0 to 3"),
    (file("state-to-choices.bin", None), "choices.bin is missing, but 2 runs over 3 ele"),
    (file(TARGETS, words(0, 1, 2, 1)), "successor of state 0, choice 1 is 2, expected 0 to 1"),
    (file(PROBABILITIES, doubles(0.25, 0.65, 1, 1)), "of state 0, choice 0 sum to 0.9, expected 1"),
    (file(PROBABILITIES, doubles(0.25, 0.75, np.nan, 1)), "the probability of branch 2 is nan, ex"),
    (file("state-is-initial.bin", None), "no state is marked as 'init', expected one to start in"),
    (file(EARNED, doubles(1, np.nan, 3)), "reward of state 0, choice 1 is nan, expected a finite"),
    (file(EARNED, doubles(1, 2)), f"{EARNED} has 16 bytes, expected 24 (3 × 8)"),
    (
        entry(["players"], *REWARD, "applies-to"),
        "applies to ['players'] and may be random, expected fixed rewards of states, choices, bran",
    ),
    (entry(DOUBLE, *REWARD, "probability-type"), "['choices'] and may be random"),
    (entry(None, *REWARD, "type"), "rewards/r: values are of type ''"),
    (file(TAKEN, words(0, 2, 0, kind="<u4")), "the action of choice 1 is 2, expected 0 to 1"),
    (strings([2, 9], b"goo"), f"{MAPPING} runs from 0 to 11, expected from 0 to 3"),
    (file(MAPPING, offsets([0, 0])), f"{STRINGS} is missing in the archive"),
    (strings([1, 1], b"a\xff"), f"{STRINGS} is not valid UTF-8"),
    (state_labels("a", "a"), "state label 'a' is given twice, the second time at 1"),
    (state_labels(1, 2), "state-labels[0]: expected str, got int, found 1"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
def test_a_mistake_is_refused_by_name(tmp_path, wrong, message):
    archive = (wrong, {}) if isinstance(wrong, bytes) else spoiled(wrong)
    path = write_umb(tmp_path / "m.umb", *archive)
    with pytest.raises(InvalidModel) as refusal:
        read_mdp(path, 0.9)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert refusal.value.__cause__ is None


def test_the_archive_that_the_mistakes_are_made_from_is_good(tmp_path):
    assert read_mdp(write_umb(tmp_path / "m.umb", *good()), 0.9).num_pairs == 3
