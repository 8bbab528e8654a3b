"""Learnt states: the same state in Python and in SQL for any double, its words, and its file."""

import json
import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surestep._json import converted
from surestep.errors import InvalidParameter
from surestep.io.labels.learnt_states import MOST_STATES, LearntStates
from surestep.io.sql import in_memory

COLUMNS = ("lactate", "a 'ge\"")
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.floats(-50, 50).map(lambda value: round(value, 1) + 0.0)
ANY = (None, None)
MOST = 1.7976931348623157e308


@st.composite
def leaves(draw, depth=4, limits=((None, None),) * 2):
    """The leaves of a tree whose thresholds lie within the limits of those above."""
    place, threshold = draw(st.integers(0, 1)), draw(NUMBERS)
    low, high = limits[place]
    if depth == 0 or (low is not None and threshold <= low):
        return (limits,)
    if (high is not None and threshold >= high) or (depth < 4 and draw(st.booleans())):
        return (limits,)
    found = ()
    for side in ((low, threshold), (threshold, high)):
        inside = (side, limits[1]) if place == 0 else (limits[0], side)
        found += draw(leaves(depth - 1, inside))
    return found


TREES = st.builds(LearntStates, st.just("condition"), st.just(COLUMNS), leaves())
CENTRES = st.builds(
    LearntStates,
    st.just("condition"),
    st.just(COLUMNS),
    st.just(()),
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=9, unique=True).map(tuple),
    st.tuples(*[st.floats(1e-3, 1e3)] * 2),
)
ROWS = st.lists(st.tuples(NUMBERS | DOUBLES, NUMBERS | DOUBLES), min_size=1, max_size=20)
FAR_OUT = [(MOST, -MOST), (-MOST, 0.0), (5e-324, -0.0)]


def in_duckdb(states, rows, kind="DOUBLE"):
    with in_memory() as database:
        first, second = ('"' + name.replace('"', '""') + '"' for name in COLUMNS)
        database.execute(f"CREATE TEMP TABLE t (i BIGINT, {first} {kind}, {second} {kind})")
        database.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(rows)]
        )
        asked = f"SELECT {states.sql()} FROM t ORDER BY i"
        return [label for (label,) in database.execute(asked).fetchall()]


@given(TREES | CENTRES, ROWS)
@example(
    LearntStates("c", COLUMNS, (), ((0.0, 1.0), (1.0, 0.0), (1e99, -1e99)), (1e-50, 3.0)), FAR_OUT
)
@example(LearntStates("c", COLUMNS, (((None, 0.0), ANY), ((0.0, None), ANY))), FAR_OUT)
def test_sql_and_python_find_the_same_state_for_every_finite_number(states, rows):
    found = [states.label(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    assert in_duckdb(states, rows) == found
    assert [states.labels[place] for place in states.indices(rows)] == found


@given(TREES | CENTRES)
def test_where_a_measurement_is_missing_there_is_no_state(states):
    bad = [(None, 1.0), (1.0, None), (math.nan, 1.0), (1.0, math.inf), (-math.inf, 1.0)]
    assert in_duckdb(states, bad) == [None] * len(bad)
    for row in bad:
        with pytest.raises(InvalidParameter, match="expected"):
            states.label(dict(zip(COLUMNS, row, strict=True)))
    assert in_duckdb(states, [("a few", "1"), ("", "1")], "VARCHAR") == [None, None]


def holds(label, row):
    """Whether what a leaf says is true of a row."""
    for place, column in enumerate(COLUMNS):
        for part in label.split(", "):
            if not part.startswith(column):
                continue
            words = part.removeprefix(f"{column} ")
            low, _, high = words.rpartition("< ")
            low = words if words.startswith(">=") else low
            least = float(low.removeprefix(">= ").removesuffix(" to ") or -math.inf)
            below = math.inf if words.startswith(">=") else float(high)
            if not least <= row[place] < below:
                return False
    return True


@given(TREES, ROWS)
def test_what_a_leaf_says_is_true_of_its_rows_and_of_no_others(states, rows):
    for row, place in zip(rows, states.indices(rows), strict=True):
        assert [holds(label, row) for label in states.labels].index(True) == place
        assert sum(holds(label, row) for label in states.labels) == 1


@given(CENTRES, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1))
def test_no_centre_is_nearer_than_that_of_the_state(states, rows):
    """But for rounding; measured by distances themselves."""
    for row, place in zip(rows, states.indices(rows), strict=True):
        away = [math.dist(np.divide(row, states.spreads), z) for z in states.numbers[..., 0]]
        assert away[place] <= min(away) * (1 + 1e-9) + 1e-9


@given(CENTRES)
def test_labels_of_centres_differ_and_are_near_them(states):
    assert len(set(states.labels)) == len(states.centres)
    for label, centre in zip(states.labels, states.centres, strict=True):
        said = [float(part.split(" about ")[1]) for part in label.split(", ")]
        np.testing.assert_allclose(said, centre, rtol=0.05)


def test_labels_as_people_read_them():
    tree = (
        ((None, 40), (None, 2.1), ANY),
        ((None, 40), (2.1, None), ANY),
        ((40, 60.5), ANY, ANY),
        ((60.5, None), ANY, ANY),
    )
    assert LearntStates("c", ("age", "lactate", "never"), tree).labels == (
        "age < 40, lactate < 2.1",
        "age < 40, lactate >= 2.1",
        "age 40 to < 60.5",
        "age >= 60.5",
    )
    centres = ((63.21, 2.11), (121.8, 0.5), (122.4, 0.5), (-0.0, 1e-7))
    assert LearntStates("c", ("age", "lactate"), (), centres, (1.0, 1.0)).labels == (
        "age about 63.21, lactate about 2.11",
        "age about 121.8, lactate about 0.5",
        "age about 122.4, lactate about 0.5",
        "age about 0, lactate about 1e-07",
    )


@given(TREES | CENTRES)
def test_a_file_keeps_them(states):
    read = converted(json.loads(json.dumps(msgspec.to_builtins(states))), LearntStates)
    assert read == states
    assert read.sql() == states.sql()


LEAVES = [[[None, 0.0]], [[0.0, None]]]
TREE = {"name": "c", "columns": ["x"], "leaves": LEAVES, "centres": [], "spreads": []}
CLUSTERS = TREE | {"leaves": [], "centres": [[1.0], [2.0]], "spreads": [1.0]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "expected object"),
        ({}, "required field"),
        ("[" * 50, "expected object"),
        (TREE | {"more": 1}, "unknown field more"),
        (TREE | {"name": ""}, "name: expected str of length >= 1"),
        (TREE | {"columns": []}, "length >= 1"),
        (TREE | {"columns": ["x", "y"]}, "reshape"),
        (TREE | {"columns": ["x", "x"], "leaves": [leaf * 2 for leaf in LEAVES]}, "no name twice"),
        (TREE | {"columns": [1]}, "expected str, got int, found 1"),
        (TREE | {"leaves": []}, "reshape"),
        (TREE | {"leaves": LEAVES[:1]}, "at least two"),
        (TREE | {"leaves": LEAVES * 2}, "no name twice"),
        (TREE | {"leaves": [[[0.0]], [[0.0, None]]]}, "length 2"),
        (CLUSTERS | {"leaves": LEAVES}, "at least two"),
        (CLUSTERS | {"centres": [[1.0]]}, "at least two"),
        (CLUSTERS | {"centres": [[float(i)] for i in range(MOST_STATES + 1)]}, "length <= 1000"),
        (CLUSTERS | {"centres": [[1.0], [1.0]]}, "no name twice"),
        (CLUSTERS | {"centres": [[1.0], [2.0, 2.0]]}, "inhomogeneous"),
        (CLUSTERS | {"centres": [[1.0, 2.0], [2.0, 3.0]]}, "reshape"),
        (CLUSTERS | {"centres": [[1.0], [math.nan]]}, "finite"),
        (CLUSTERS | {"spreads": []}, "reshape"),
        (CLUSTERS | {"spreads": [0.0]}, "spreads.*> 0"),
        (CLUSTERS | {"spreads": [5e-324]}, "finite"),
        (CLUSTERS | {"spreads": [math.inf]}, "<= 1e[+]?100"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(content, says):
    with pytest.raises(InvalidParameter, match=says):
        converted(content, LearntStates, "learnt states", InvalidParameter)


@pytest.mark.thorough
def test_the_largest_rules_run_in_the_database():
    rng = np.random.default_rng(0)
    rows = [*rng.normal(size=(5, 2)).tolist()]
    centres = tuple(map(tuple, rng.normal(size=(MOST_STATES, 2)).tolist()))
    cuts = [None, *np.linspace(-2, 2, MOST_STATES - 1).tolist(), None]
    tree = tuple((ends, ANY) for ends in pairwise(cuts))
    for rule in ((tree,), ((), centres, (1.0, 1.0))):
        states = LearntStates("c", COLUMNS, *rule)
        assert in_duckdb(states, rows) == [states.labels[i] for i in states.indices(rows)]
