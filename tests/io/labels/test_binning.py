"""Bins: against their definition in exact numbers, and SQL against Python for any double."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surestep._json import typed
from surestep.description import described, given_as
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import Binning, binnings_of, quantile_edges
from surestep.io.logs.tables import connected, find_table
from surestep.io.sql import columns_of, in_memory

DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
SOME_DOUBLES = st.lists(DOUBLES, min_size=1, max_size=30)
WIDTHS = st.builds(
    lambda digits, power: float(f"{digits}e{power}"),
    st.one_of(st.integers(1, 50), st.integers(1, 10**9 - 1)),
    st.integers(-13, 13),
)
EDGES = st.lists(DOUBLES, min_size=1, max_size=12, unique=True).map(sorted)
BINNINGS = st.one_of(WIDTHS.map(lambda w: Binning(width=w)), EDGES.map(lambda e: Binning(edges=e)))
AWKWARD = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -1.7976931348623157e308]


def exact_edge(width, i):
    """The double nearest to i times the decimal that the width is written as."""
    return float(i * Fraction(repr(width)))


def around(edges):
    """Doubles at edges and next to them."""
    return [math.nextafter(e, to) for e in edges for to in (-math.inf, e, math.inf)]


def in_duckdb(binning, values):
    with in_memory() as database:
        database.register("numbers", {"i": np.arange(len(values)), "x": np.array(values, float)})
        found = database.execute(f"SELECT {binning.sql('x')} AS bin FROM numbers ORDER BY i")
        assert found.description[0][1] == "BIGINT"
        return [row[0] for row in found.fetchall()]


@given(width=WIDTHS, i=st.integers(-(10**6), 10**6), values=SOME_DOUBLES)
@example(width=0.1, i=3, values=[0.3])
@example(width=1e-22, i=1, values=[5e-324])
def test_a_width_has_bins_between_its_decimal_multiples(width, i, values):
    binning = Binning(width=width)
    first, last = binning.outermost()
    for value in (*around([exact_edge(width, i), exact_edge(width, i + 1)]), *values):
        found = binning.index(value)
        assert found == first or exact_edge(width, found) <= value
        assert found == last or value < exact_edge(width, found + 1)
    if first < i <= last:
        assert binning.index(exact_edge(width, i)) == i


@given(edges=EDGES, values=SOME_DOUBLES)
def test_edges_count_those_that_a_value_has_reached(edges, values):
    tried = [*values, *around(edges)]
    tried = [value for value in tried if math.isfinite(value)]
    found = Binning(edges=edges).indices(tried)
    assert found.tolist() == [sum(edge <= value for edge in edges) for value in tried]


@settings(max_examples=settings.default.max_examples // 2)
@given(binning=BINNINGS, values=SOME_DOUBLES, places=st.lists(st.integers(-(10**9), 10**9)))
@example(binning=Binning(width=0.1), values=[0.3, 0.7, -0.3], places=[3, -3])
@example(binning=Binning(edges=[-0.0]), values=[-0.0, 0.0], places=[])
@example(binning=Binning(edges=np.linspace(0, 1, 999)), values=[0.5], places=[])
@example(binning=Binning(width=1.0), values=[1.0], places=[2**50, -(2**50), 2**50 - 1])
def test_sql_finds_the_same_bin_for_every_double(binning, values, places):
    if binning.width is not None:
        first, last = binning.outermost()
        edges = [binning.edge(place) for place in places if first < place <= last]
        edges += [binning.edge(first + 1), binning.edge(last)]
    else:
        edges = binning.edges
    tried = [*values, *AWKWARD, *around(edges)]
    tried = [value for value in tried if math.isfinite(value)]
    assert in_duckdb(binning, tried) == binning.indices(tried).tolist()


def test_what_is_no_finite_number_has_no_bin():
    for binning in (Binning(width=2), Binning(edges=[1, 2])):
        assert in_duckdb(binning, [np.nan, np.inf, -np.inf]) == [None] * 3
        for value in (np.nan, np.inf, -np.inf, None, "3", True, 10**400):
            with pytest.raises(InvalidParameter, match="value"):
                binning.index(value)


def test_labels_say_where_a_bin_begins_and_ends():
    binning = Binning(edges=[40, 50.5, 1e22])
    assert [binning.label(i) for i in range(4)] == [
        *("< 40", "40 to < 50.5", "50.5 to < 1e+22", ">= 1e+22")
    ]
    assert Binning(width=10).label(-1) == "-10 to < 0"
    assert Binning(width=0.1).label(-3) == "-0.3 to < -0.2"
    for index in (-1, 4):
        with pytest.raises(InvalidParameter, match="expected 0 to 3"):
            binning.label(index)


def bounds_of(label):
    """What a label says, read back."""
    if label.startswith("< "):
        return -math.inf, float(label[2:])
    if label.startswith(">= "):
        return float(label[3:]), math.inf
    low, high = label.split(" to < ")
    return float(low), float(high)


@given(binning=BINNINGS, values=SOME_DOUBLES)
def test_a_value_lies_where_its_label_says_which_leads_back_to_its_bin(binning, values):
    for value in (*values, *AWKWARD):
        place = binning.index(value)
        low, high = bounds_of(binning.label(place))
        assert low <= value < high
        assert binning.place(binning.label(place)) == place


@pytest.mark.parametrize(
    "label", ["", "ward", "3", "< 3", "40 to < 55", "40.0 to < 50", "1e999 to < 2", ">= 40", "--1"]
)
def test_other_texts_are_labels_of_no_bin(label):
    assert Binning(edges=(40, 50)).place(label) is None
    assert Binning(width=10).place(label) is None


@given(binning=BINNINGS)
def test_json_and_back(binning):
    assert typed(json.loads(json.dumps(binning.to_json())), Binning) == binning


@pytest.mark.parametrize(
    "content", [None, [], {}, "edges", {"edges": [1], "width": 1}, {"edge": [1]}, {"width": "1"}]
)
def test_other_json_is_refused(content):
    with pytest.raises((InvalidParameter, ValueError)):
        typed(content, Binning)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "either edges or a width"),
        ({"edges": [1], "width": 1}, "either edges or a width"),
        ({"edges": []}, "at least one number"),
        ({"edges": [1, 1]}, "not rising: 1 is followed by 1"),
        ({"edges": [0.0, -0.0]}, "not rising"),
        ({"edges": [1, np.inf]}, "finite"),
        ({"edges": ["a"]}, "expected numbers"),
        ({"width": 0}, "above 0"),
        ({"width": np.nan}, "above 0"),
        ({"width": True}, "above 0"),
        ({"width": "1"}, "above 0"),
        ({"width": 1 / 3}, "at most 9 digits"),
        ({"width": 1e-23}, "at most 22 of them"),
        ({"width": 1e300}, "at most 9 digits"),
    ],
)
def test_bad_bins_are_refused(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        Binning(**settings)


COLUMNS = st.lists(
    st.integers(-20, 20).map(lambda tenths: tenths / 10), min_size=2, max_size=60
).filter(lambda column: len(set(column)) > 1)


def resolved(source, bins):
    table = find_table(*given_as(source))
    with connected(table) as database:
        return binnings_of(database, described({"bins": bins}).bins, columns_of(database, "log"))


def edges_of(column, number):
    values, times = np.unique(column, return_counts=True)
    return quantile_edges(values, times, number)


def test_edges_and_widths_are_taken_as_they_are_and_states_are_learnt_elsewhere():
    bins = {"b: c": {"edges": [-1, 0, 2.5]}, "x": {"width": 0.5}}
    learnt = {"tree": 3, "columns": ["age"]}
    assert resolved({"age": np.array([1, 2])}, bins | {"ward": learnt}) == {
        "b: c": Binning(edges=(-1, 0, 2.5)),
        "x": Binning(width=0.5),
    }


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"edges": [2, 1]}, "bins of 'age': edges are not rising: 2 is followed by 1"),
        ({"edges": [1, float("inf")]}, r"bins.age.edges\[1\] is inf, expected a number"),
        ({"width": 1e-30}, "bins of 'age': width is"),
    ],
)
def test_bins_that_are_none_are_refused_by_their_column(rule, message):
    with pytest.raises(InvalidParameter, match=message):
        resolved({"age": np.array([1, 2])}, {"age": rule})


@given(column=COLUMNS, number=st.integers(2, 12))
def test_quantiles_cut_where_the_share_below_is_closest(column, number):
    found = edges_of(column, number)
    candidates = sorted(set(column))[1:]
    share = {edge: Fraction(sum(x < edge for x in column), len(column)) for edge in candidates}
    best = [
        min(candidates, key=lambda edge: (abs(share[edge] - Fraction(j, number)), edge))
        for j in range(1, number)
    ]
    assert list(found) == sorted(set(best))
    bins = Binning(edges=found).indices(column)
    assert set(bins.tolist()) == set(range(len(found) + 1))  # none is empty


def test_many_rows_are_counted_exactly():
    times = np.array([2**52, 1, 2**52])
    assert quantile_edges(np.arange(3.0), times, 2) == (1.0,)


@settings(max_examples=settings.default.max_examples // 2)
@given(column=COLUMNS, number=st.integers(2, 12), as_text=st.booleans())
def test_the_quantiles_of_a_column_are_those_of_its_rows(column, number, as_text):
    given_column = np.array(list(map(str, column)) if as_text else column, object)
    frame = {"age": given_column if as_text else np.array(column)}
    found = resolved(frame, {"age": {"quantiles": number}})
    assert found == {"age": Binning(edges=edges_of(column, number))}


@pytest.mark.parametrize("given_column", [["x", "1", "2", ""], [np.nan, 1, np.inf, 2]])
def test_quantiles_are_those_of_the_finite_numbers(given_column):
    found = resolved({"age": given_column}, {"age": {"quantiles": 2}})
    assert found == {"age": Binning(edges=(2,))}


@pytest.mark.parametrize(("only", "found"), [([7, 7], "only the number 7"), (["x"], "no number")])
def test_a_column_that_cannot_be_cut_is_named(only, found):
    with pytest.raises(InvalidParameter, match=f"bins of 'age': found {found}, expected at least"):
        resolved({"age": only}, {"age": {"quantiles": 3}})
