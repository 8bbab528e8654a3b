"""Counting tables: against the log they were written from, in every kind of file."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import DERIVED, KINDS, found_in, frame_of, rows_of, write_table
from support.strategies import decision_logs
from surestep.errors import InvalidLog, ShapeMismatch
from surestep.io import read_log

CENTS = st.integers(-500, 500).map(lambda cents: cents / 100)


def labelled(pairs):
    return dataclasses.replace(
        pairs,
        state_labels=tuple(f"s{i}" for i in range(pairs.num_states)),
        action_labels=tuple(f"a{i}" for i in range(pairs.num_actions)),
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(
    log=decision_logs(rewards=st.one_of(CENTS, st.sampled_from([1.2345678901234567e-05, -1e12]))),
    kind=st.sampled_from(KINDS),
    rng=st.randoms(),
)
def test_a_table_counts_as_the_log_it_came_from(log, kind, rng, folder):
    rows = rows_of(log)
    rng.shuffle(rows)
    found = read_log(write_table(folder / f"log{kind}", rows)).counts()
    expected = dataclasses.replace(log, pairs=labelled(log.pairs)).counts()
    counts = found.to_counts(expected.pairs)
    assert counts.pairs == expected.pairs
    for name in ("offsets", "successor", "times", "starts", "terminal"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(expected, name))
    scale = 1e-12 * np.abs(log.reward).sum()
    np.testing.assert_allclose(counts.rewards.values, expected.rewards.values, 1e-12, scale)
    assert found.rows_read == len(rows)
    assert not found.dropped


def test_loose_transitions_need_no_episodes_and_every_row_is_a_start(tmp_path):
    rows = [
        {"state": "a", "action": "x", "reward": 1, "next_state": "b"},
        {"state": "b", "action": "x", "reward": 2, "next_state": "b"},
        {"state": "a", "action": "y", "reward": 3, "next_state": "b"},
    ]
    found = read_log(write_table(tmp_path / "loose.csv", rows, tuple(rows[0]))).counts()
    assert found_in(found)[2] == {"a": 2, "b": 1}
    assert found.to_counts().times.tolist() == [1, 1, 1]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(max_examples=settings.default.max_examples // 2)
@given(labels=st.lists(TEXTS, min_size=1, max_size=5, unique=True), kind=st.sampled_from(KINDS))
def test_labels_are_the_text_that_is_written(labels, kind, folder):
    rows = [
        {"state": label, "action": label, "reward": 0, "next_state": labels[0]} for label in labels
    ]
    found = read_log(write_table(folder / f"text{kind}", rows, tuple(rows[0]))).counts()
    assert found.states == found.actions == tuple(sorted((label,) for label in labels))


def test_labels_that_look_like_equal_numbers_stay_apart(tmp_path):
    labels = ["1.10", "1.1", "01", "1", "1e0", "true", "NULL", "nan", " 1"]
    rows = [{"state": x, "action": x, "reward": 0, "next_state": x} for x in labels]
    for kind in KINDS:
        found = read_log(write_table(tmp_path / f"log{kind}", rows, tuple(rows[0]))).counts()
        assert found.states == tuple(sorted((label,) for label in labels))


def test_a_state_of_several_columns_stays_several_columns(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "patient,day,ward,severity,decision,gain,next_ward,next_severity,done\n"
        '7,0,"a, b",c,wait,1,a,"b, c",0\n7,1,a,"b, c",go,2,,,1\n'
    )
    chosen = {"episode": "patient", "step": "day", "action": "decision", "reward": "gain"}
    source = read_log(path, columns={**chosen, "state": ["ward", "severity"]})
    assert source.columns.next_state == ("next_ward", "next_severity")
    found = source.counts()
    assert found.states == (("a", "b, c"), ("a, b", "c"))
    labels = found.to_counts().pairs.state_labels
    assert labels == ("a, b\\, c", "a\\, b, c", "(end), (end)")


def test_many_files_are_one_log_by_pattern_folder_and_list(tmp_path):
    rows = [
        {"state": str(i), "action": "x", "reward": i, "next_state": str(i + 1)} for i in range(6)
    ]
    files = [write_table(tmp_path / f"part[{i}].csv", rows[i::3], tuple(rows[0])) for i in range(3)]
    whole = found_in(read_log(frame_of(rows, tuple(rows[0]))).counts())
    assert found_in(read_log(tmp_path).counts()) == whole
    assert found_in(read_log(str(tmp_path / "part*.csv")).counts()) == whole
    assert found_in(read_log(files[::-1]).counts()) == whole


def test_a_terminated_step_into_a_state_of_decisions_has_an_end_of_its_own():
    rows = [
        {"state": "a", "action": "x", "reward": 1, "next_state": "b", "terminated": True},
        {"state": "b", "action": "x", "reward": 1, "next_state": "(end)", "terminated": True},
        {"state": "a", "action": "x", "reward": 1, "next_state": "b", "terminated": False},
    ]
    counts = read_log(frame_of(rows, tuple(rows[0]))).counts().to_counts()
    assert counts.pairs.state_labels == ("(end)", "a", "b", "((end))")
    assert counts.terminal.tolist() == [True, False, False, True]
    assert counts.successor.tolist() == [2, 3, 0]


def test_labels_unknown_to_the_pairs_are_refused():
    rows = [{"state": "a", "action": "x", "reward": 1, "next_state": "b"}]
    found = read_log(frame_of(rows, tuple(rows[0]))).counts()
    pairs = found.to_counts().pairs
    other = dataclasses.replace(pairs, state_labels=("a", "c"))
    with pytest.raises(ShapeMismatch, match="the log has the state 'b', which the pairs do not"):
        found.to_counts(other)
    with pytest.raises(ShapeMismatch, match="no labels"):
        found.to_counts(dataclasses.replace(pairs, state_labels=None))


@pytest.mark.thorough
@settings(max_examples=5)
@given(log=decision_logs(rewards=CENTS))
def test_a_memory_limit_changes_nothing(log):
    frame = frame_of(rows_of(log), DERIVED)
    limited = read_log(frame, memory_limit="100MB").counts()
    assert found_in(limited) == found_in(read_log(frame).counts())


def test_json_may_leave_out_what_is_unknown(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [
        {"state": "a", "action": 1, "reward": 0.5, "next_state": "b", "terminated": False},
        {"state": "b", "action": 2, "reward": 1e-3, "terminated": True},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert found_in(read_log(path).counts())[0] == {
        ("a", "1", "b", False): 1,
        ("b", "2", None, True): 1,
    }


def test_every_bad_memory_limit_is_refused():
    with pytest.raises(Exception, match="expected a size such as '2GB'"):
        read_log({"state": np.array([1])}, memory_limit="much")
    with pytest.raises(InvalidLog, match="no column says what the action and the reward are"):
        read_log({"state": np.array([1])})
