"""The policy pair by pair, by hand; its files come back, and no cell of them is a formula."""

import csv
import io
import re
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given

from support.policy_tables import policy_tables
from surestep import Counts, Policy, Problem
from surestep.algorithms import SPIBB, BasicRL
from surestep.errors import InvalidResult
from surestep.io.labels.vocabulary import Vocabulary
from surestep.pipeline.findings import policy_table
from surestep.results import policy_files
from surestep.results.policy_files import NUMBERS, policy_csv, read_policy_csv

HEADER = ",".join(["ward", "drug", *NUMBERS])
WORDS = Vocabulary(("ward",), ("drug",), (("a",), ("b",), ("end",)), (("x",), ("y",)))


def read_back(table, text):
    words = table.vocabulary
    ends = [words.states[s] for s in np.flatnonzero(table.quiet)]
    return read_policy_csv(text, words.state_columns, words.action_columns, words.binnings, ends)


@given(table=policy_tables())
def test_a_table_comes_back_from_its_csv(table):
    found = read_back(table, policy_csv(table).decode())
    assert found == table
    assert policy_csv(found) == policy_csv(table)
    assert ("kept_by" in policy_files.columns_of(table)) == (table.kept_by is not None)
    # No cell is taken for a formula.
    for row in csv.reader(io.StringIO(policy_csv(table).decode(), newline="")):
        for cell in row:
            formula = re.match(r"[=+@\t\r\n]|-(?![0-9.])", cell)
            assert not formula or re.fullmatch(r"[+-][0-9.eE+-]+", cell)


@given(table=policy_tables())
def test_parquet_says_the_same_with_types(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "policy.parquet"
    content = policy_files.policy_parquet(table)
    path.write_bytes(content)
    assert policy_files.policy_parquet(table) == content
    rows = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    columns = policy_files.columns_of(table)
    assert rows == list(zip(*(values.tolist() for values in columns.values()), strict=True))


def test_a_name_that_is_taken_gets_its_role():
    states, actions = policy_files.file_columns(["visits", "ward"], ["Ward", "drug"])
    assert states == ("state.visits", "state.ward")
    assert actions == ("action.Ward", "drug")


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
    text = f"{HEADER}\na,x,0.25,0.5,3,true,1.0,2.0,6,1.5,2.5,9,true\n"
    text += "a,y,0.75,0.5,4,true,1.0,2.0,6,1.5,2.5,9,false\n"
    read_policy_csv(text, ("ward",), ("drug",), {}, [])
    with pytest.raises(InvalidResult, match=message):
        read_policy_csv(change(text), ("ward",), ("drug",), {}, [])


def test_ends_decide_nothing():
    text = f"{HEADER}\na,x,0.25,0.5,3,,1.0,2.0,5,1.5,2.5,,\n"
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
    cells = {"-3": "-3", "+4.5": "+4.5", "-1e-3": "-1e-3", "-a": "'-a"}
    assert {cell: policy_files.escaped_cell(cell) for cell in cells} == cells


def improved(algorithm):
    """State a is left for b (x) or for the end (y); b only for the end; γ is ½."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0, 1], times[0, 1, 2], times[1, 0, 2], times[1, 1, 2] = 10, 30, 20, 5
    rewards = [[1.0, 2.0], [4.0, 8.0], [0.0, 0.0]]
    counts = Counts.from_dense(times, rewards=rewards, terminal=[False, False, True])
    behavior = Policy.from_dense(counts, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    problem = Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0.0, 9.0))
    quiet = np.array([False, False, True])
    found = algorithm.improve(problem)
    model = problem.estimate()
    return policy_table(WORDS, problem, model, found, quiet, judging=None, delta=0.1)


def test_q_and_advantage_are_those_of_the_new_policy():
    table = improved(BasicRL())
    # b is worth 8, so x is worth 1 + ½ · 8 in a, and y 2; π_b gets ¼ · 5 + ¾ · 2 there.
    assert table.q.tolist() == [5.0, 2.0, 4.0, 8.0, 0.0, 0.0]
    assert table.advantage.tolist() == [2.25, -0.75, -2.0, 2.0, 0.0, 0.0]
    assert table.probability[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert table.behavior[:4].tolist() == [0.25, 0.75, 0.5, 0.5]
    assert table.trusted is None


def test_pairs_with_more_visits_than_n_wedge_are_trusted():
    assert improved(SPIBB(n_wedge=10)).trusted[:4].tolist() == [False, True, True, False]
    assert improved(SPIBB(n_wedge=9)).trusted[:4].tolist() == [True, True, True, False]


def test_states_change_where_probability_moves_and_something_is_decided():
    table = improved(BasicRL())
    assert table.changed.tolist() == [True, True, False]
    assert table.decided.tolist() == [True] * 4 + [False] * 2
    assert table.num_deciding == 2
    moved = table.behavior.copy()
    assert replace(table, probability=moved).changed.tolist() == [False] * 3
    moved[:2] += [1e-13, -1e-13]  # no more than rounding
    moved[2:4] += [1e-11, -1e-11]
    assert replace(table, probability=moved).changed.tolist() == [False, True, False]
    nothing, little = np.zeros(6), np.array([1e-12, 0.0, 2e-12, 0.0, 1.0, 0.0])
    table = replace(table, behavior=nothing, probability=little)
    assert table.changed.tolist() == [False, True, False]


def test_tables_are_equal_by_value():
    assert improved(BasicRL()) == improved(BasicRL())
    assert improved(BasicRL()) != improved(SPIBB(n_wedge=10))
    assert improved(BasicRL()).policy == Policy(improved(BasicRL()).pairs, [1, 0, 0, 1, 1, 0])
    with pytest.raises(TypeError, match="unhashable"):
        hash(improved(BasicRL()))
