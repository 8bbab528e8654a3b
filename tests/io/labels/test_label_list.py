"""Lists of states and actions: in order, from tables and plain text, and checked against a log."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import write_table
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, ShapeMismatch, SurestepError
from surestep.io.labels.binning import Binning
from surestep.io.labels.label_tables import check_listed, read_label_table


def read_label_list(source, role, columns, binnings=None):
    return tuple(read_label_table(source, {role: columns}, binnings).labels[role])


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\u2028\u2029\x85"),
    min_size=1,
)


@settings(max_examples=15)
@given(
    labels=st.lists(WORDS, min_size=1, max_size=6, unique=True),
    kind=st.sampled_from([".csv", ".jsonl", ".parquet"]),
)
def test_labels_keep_the_order_they_are_written_in(labels, kind, folder):
    path = folder / f"list{kind}"
    write_table(path, [{"ward": label, "beds": 3} for label in labels], ("beds", "ward"))
    assert read_label_list(path, "state", ("ward",)) == tuple((label,) for label in labels)


def test_tables_in_memory_several_columns_and_bins():
    frame = {"age": np.array([12, 55]), "ward": np.array(["b", "a"], object)}
    bins = {"age": Binning(width=10)}
    found = read_label_list(frame, "state", ("ward", "age"), bins)
    assert found == (("b", "10 to < 20"), ("a", "50 to < 60"))
    frame = {"Actions": np.array([2, 1])}
    assert read_label_list(frame, "action", ("drug",)) == (("2",), ("1",))


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("s.csv", b"x\n1\n01\n1\n", InvalidLog, r"s\.csv, row 3: state '1' is there again"),
        ("s.csv", b"y\n1\n", InvalidLog, "no column 'x' for the state"),
        ("s.csv", b"x\n", InvalidLog, "has no row"),
        ("s.csv", b"x,y\n,1\n", InvalidLog, "row 1, column 'x': found nothing"),
        ("s.doc", b"x", InvalidParameter, "no known ending"),
    ],
)
def test_bad_lists_are_explained(name, content, error, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_label_list(path, "state", ("x",))


def test_a_number_that_cannot_be_binned_is_named(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("x\n3\n1e999\n")
    with pytest.raises(InvalidLog, match=r"s\.csv, row 2, column 'x' is '1e999', expected a fin"):
        read_label_list(path, "state", ("x",), {"x": Binning(width=1)})


def test_plain_text_of_several_columns_is_a_table(tmp_path):
    (tmp_path / "t.txt").write_text("b;a\n1;2\n")
    assert read_label_list(tmp_path / "t.txt", "state", ("a", "b")) == (("2", "1"),)
    with pytest.raises(FileFailure, match="is no file"):
        read_label_list(tmp_path / "s.txt", "state", ("a",))
    with pytest.raises(SurestepError):
        read_label_list(None, "state", ("a",))


def test_a_log_shows_only_what_is_listed():
    listed = (("ward", "1"), ("ward", "2"))
    told = {"where": "the list of states", "log": None}
    check_listed("state", ("place", "floor"), listed, listed[:1], **told)
    check_listed("state", ("place", "floor"), listed, (), **told)
    with pytest.raises(ShapeMismatch) as refusal:
        check_listed("state", ("place", "floor"), listed, (("word", "1"), ("ward", "3")), **told)
    assert str(refusal.value) == (
        "the log has the state 'word, 1', which the list of states does not have: no state has "
        "'word' in column 'place'; did you mean 'ward'?"
    )
