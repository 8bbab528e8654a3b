"""Rules of binning: as users write them, and the quantiles of a column, counted by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.description import described
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import Binning, binnings_of, quantile_edges
from surestep.io.logs.source import given_as
from surestep.io.logs.tables import connected, find_table
from surestep.io.sql import columns_of

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


def test_quantiles_of_different_values_are_equally_full():
    assert edges_of(np.arange(1, 101), 10) == tuple(range(11, 101, 10))


def test_few_values_have_few_edges():
    assert edges_of([0] * 99 + [1], 10) == (1.0,)
    assert edges_of([1, 2, 3], 1000) == (2.0, 3.0)


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
