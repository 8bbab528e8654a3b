"""Rules of states: the same state in Python, in SQL and from the file, and its words."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.errors import InvalidParameter
from surestep.io.labels.state_rules import CentreRule, Split, TreeRule, rule_from_json
from surestep.io.sql import in_memory

COLUMNS = ("lactate", "age")
NUMBERS = st.floats(-50, 50).map(lambda value: round(value, 1))


def splits(depth: int) -> st.SearchStrategy[Split]:
    below = st.none() if depth == 1 else st.none() | splits(depth - 1)
    return st.builds(Split, st.sampled_from(COLUMNS), NUMBERS, below, below)


TREES = st.builds(TreeRule, st.just(COLUMNS), splits(4))
CENTRES = st.builds(
    CentreRule,
    st.just(COLUMNS),
    st.tuples(*[st.floats(0.1, 10)] * 2),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=6).map(tuple),
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20).map(np.array)


@given(TREES | CENTRES, ROWS)
def test_sql_python_and_the_file_find_the_same_state(rule: TreeRule | CentreRule, rows: np.ndarray):
    states = rule.indices(rows)
    with in_memory() as database:
        database.register("t", {"a": rows[:, 0].copy(), "b": rows[:, 1].copy()})
        asked = rule.sql({"lactate": "a", "age": "b"})
        answer = database.execute(f"SELECT {asked} AS state FROM t").fetchnumpy()["state"]
    np.testing.assert_array_equal(states, answer)
    again = rule_from_json(json.loads(json.dumps(rule.to_json())))
    assert again == rule
    assert len(rule.labels()) == rule.num_states > states.max()


@given(TREES, ROWS)
def test_a_leaf_says_in_words_what_its_rows_are(rule: TreeRule, rows: np.ndarray):
    labels = rule.labels()
    for row, state in zip(rows, rule.indices(rows), strict=True):
        for part in labels[state].split(", "):
            column, words = part.split(" ", 1)
            value = row[COLUMNS.index(column)]
            if words.startswith("< "):
                assert value < float(words[2:])
            elif words.startswith("≥ "):
                assert value >= float(words[2:])
            else:
                low, high = words.split(" to < ")
                assert float(low) <= value < float(high)


@given(CENTRES, ROWS)
def test_the_nearest_centre_is_taken(rule: CentreRule, rows: np.ndarray):
    """No centre is nearer, by more than rounding, measured by distances themselves."""
    away = [
        [math.dist(row / np.array(rule.units), np.array(c) / rule.units) for c in rule.centres]
        for row in rows
    ]
    taken = [distances[k] for distances, k in zip(away, rule.indices(rows), strict=True)]
    for distances, distance in zip(away, taken, strict=True):
        assert distance**2 <= min(distances) ** 2 + 1e-9 * (1 + max(distances) ** 2)


def test_a_tree_as_a_person_reads_it():
    rule = TreeRule(COLUMNS, Split("lactate", 2.1, None, Split("age", 60, None, None)))
    assert rule.labels() == ("lactate < 2.1", "lactate ≥ 2.1, age < 60", "lactate ≥ 2.1, age ≥ 60")
    assert rule.indices([[2.0, 99], [2.1, 59.9], [2.1, 60]]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "cannot be read"),
        ([], "cannot be read"),
        ({"kind": "tree", "columns": ["x"], "tree": {"state": "all"}}, "no split"),
        ({"kind": "forest", "columns": ["x"]}, "forest"),
        (
            {"kind": "centres", "columns": ["x"], "units": [0], "centres": [{"centre": [1]}] * 2},
            "above 0",
        ),
        (TreeRule(("x",), Split("x", 1, None, None)).to_json() | {"more": 1}, "or more"),
    ],
)
def test_a_file_that_is_no_rule_is_refused(content: object, says: str):
    with pytest.raises(InvalidParameter, match=says):
        rule_from_json(content)


def test_rules_that_make_no_sense_are_refused():
    with pytest.raises(InvalidParameter, match="expected one of age"):
        TreeRule(("age",), Split("lactate", 1, None, None))
    with pytest.raises(InvalidParameter, match="finite"):
        TreeRule(("age",), Split("age", math.nan, None, None))
    with pytest.raises(InvalidParameter, match="2 numbers a row"):
        TreeRule(COLUMNS, Split("age", 1, None, None)).indices([[1.0]])
