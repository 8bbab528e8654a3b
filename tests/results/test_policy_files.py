"""A policy comes back from its files, and no cell of them is a formula."""

import csv
import io
import re
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given

from support.policy_tables import policy_tables
from surestep.errors import InvalidResult
from surestep.results.policy_files import (
    NUMBERS,
    columns_of,
    escaped_cell,
    policy_csv,
    policy_parquet,
    read_policy_csv,
)


def read_back(table, text):
    words = table.vocabulary
    ends = [words.states[s] for s in np.flatnonzero(table.quiet)]
    return read_policy_csv(text, words.state_columns, words.action_columns, words.binnings, ends)


@given(table=policy_tables())
def test_a_table_comes_back_from_its_csv(table):
    found = read_back(table, policy_csv(table).decode())
    assert found == table
    assert policy_csv(found) == policy_csv(table)


@given(table=policy_tables())
def test_what_limits_keep_comes_back_too(table):
    names = np.array(["=a; b", "", "dialysis"])[np.arange(table.pairs.num_pairs) % 3]
    kept = replace(table, kept_by=np.where(table.decided, names, ""))
    found = read_back(kept, policy_csv(kept).decode())
    assert found == kept
    assert columns_of(kept).keys() - columns_of(table).keys() == {"kept_by"}


@given(table=policy_tables())
def test_no_cell_is_taken_for_a_formula(table):
    rows = list(csv.reader(io.StringIO(policy_csv(table).decode(), newline="")))
    for cell in (cell for row in rows for cell in row):
        assert not re.match(r"[=+@\t\r\n]|-(?![0-9.])", cell) or re.fullmatch(
            r"[+-][0-9.eE+-]+", cell
        )


@given(table=policy_tables())
def test_parquet_says_the_same_with_types(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "policy.parquet"
    content = policy_parquet(table)
    path.write_bytes(content)
    assert policy_parquet(table) == content
    rows = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    columns = columns_of(table)
    assert rows == list(zip(*(values.tolist() for values in columns.values()), strict=True))


def test_a_name_that_is_taken_gets_its_role():
    from surestep.results.policy_files import file_columns

    assert file_columns(["visits", "ward"], ["Ward", "drug"]) == (
        ("state.visits", "state.ward"),
        ("action.Ward", "drug"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "policy.csv is not what `surestep improve` writes"),
        (lambda text: text.replace("q,advantage", "advantage,q"), "expected columns"),
        (lambda text: text.replace("a,x,0.25", "x,0.25"), "expected columns"),
        (lambda text: text.replace(",3,", ",3.5,"), "'3.5'"),
        (lambda text: text.replace(",9,", ",8,", 1), "too many values"),
        (lambda text: text.replace(",9,false", ",9,no"), "'no'"),
        (lambda text: text.replace("1.5", "nan"), "column advantage_low holds what is no number"),
        (lambda text: text.replace("0.25,0.5", "0.25,0.625"), "sum to 1.125"),
        (lambda text: text + text.splitlines()[-1] + "\n", "twice"),
        (lambda text: text + '"open', "end of data"),
    ],
)
def test_a_damaged_csv_is_refused(change, message):
    header = ",".join(["ward", "drug", *NUMBERS])
    text = f"{header}\na,x,0.25,0.5,3,true,1.0,2.0,6,1.5,2.5,9,true\n"
    text += "a,y,0.75,0.5,4,true,1.0,2.0,6,1.5,2.5,9,false\n"
    read_policy_csv(text, ("ward",), ("drug",), {}, [])
    with pytest.raises(InvalidResult, match=message):
        read_policy_csv(change(text), ("ward",), ("drug",), {}, [])


def test_ends_decide_nothing():
    header = ",".join(["ward", "drug", *NUMBERS])
    text = f"{header}\na,x,0.25,0.5,3,,1.0,2.0,5,1.5,2.5,,\n"
    text += "a,y,0.75,0.5,0,,1.0,2.0,0,1.5,2.5,,\n"
    table = read_policy_csv(text, ("ward",), ("drug",), {}, [("out",), ("home",)])
    assert table.quiet.tolist() == [False, True, True]
    assert table.vocabulary.states == (("a",), ("out",), ("home",))
    assert table.probability.tolist() == [0.25, 0.75, 1.0, 1.0]
    assert table.behavior.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert table.visits.tolist() == [3, 0, 0, 0]
    assert (table.q.tolist(), table.advantage.tolist()) == ([1, 1, 0, 0], [2, 2, 0, 0])
    assert table.trusted is None
    assert (table.held_out_visits.tolist(), table.n_wedge) == ([5, 0, 0, 0], None)
    assert table.advantage_low.tolist() == [1.5, 1.5, 0.0, 0.0]
    assert table.advantage_high.tolist() == [2.5, 2.5, 0.0, 0.0]


def test_numbers_are_no_formulas():
    assert [escaped_cell(x) for x in ("-3", "+4.5", "-1e-3", "-a")] == [
        "-3",
        "+4.5",
        "-1e-3",
        "'-a",
    ]
