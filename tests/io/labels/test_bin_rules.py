"""Rules of binning: as users write them, and the quantiles of a column, counted by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.description import described
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.labels.bin_rules import (
    Quantiles,
    quantile_edges,
    resolve_binnings,
    rules_of,
)
from surestep.io.labels.binning import Binning
from surestep.io.logs.checks import first_where
from surestep.io.logs.source import given_as
from surestep.io.logs.tables import connected, find_table

COLUMNS = st.lists(
    st.integers(-20, 20).map(lambda tenths: tenths / 10), min_size=2, max_size=60
).filter(lambda column: len(set(column)) > 1)


def resolved(source, rules, following=None):
    table = find_table(*given_as(source))
    with connected(table) as database:

        def found(condition, column):
            place = first_where(table, database, condition, column)
            return f"{place.where}: found {place.value}", ""

        return resolve_binnings(database, rules, following or {}, found)


def edges_of(column, number):
    values, times = np.unique(column, return_counts=True)
    return quantile_edges(values, times, number)


def test_rules_are_those_of_a_description():
    bins = {"age": {"quantiles": 10}, "b: c": {"edges": [-1, 0, 2.5]}, "x": {"width": 0.5}}
    learnt = {"tree": 3, "columns": ["age"]}
    assert rules_of(described({"bins": bins | {"ward": learnt}}).bins) == {
        "age": Quantiles(10),
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
        rules_of(described({"bins": {"age": rule}}).bins)


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
    frame = {
        "age": given_column if as_text else np.array(column),
        "next_age": np.arange(len(column)),
    }
    found = resolved(frame, {"age": Quantiles(number)}, {"age": "next_age"})
    assert found == {"age": Binning(edges=edges_of(column, number))}


def test_edges_and_widths_are_taken_as_they_are():
    rules = {"age": Binning(width=5), "ward": Binning(edges=[1, 2])}
    frame = {"age": np.array([1, 2]), "ward": np.array([0.5, 1.5])}
    assert resolved(frame, rules) == rules


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,1", "x,1"], r"log\.csv, row 2, column 'age': found 'x', expected a finite number"),
        (["nan,1"], "row 1, column 'age': found 'nan'"),
        (["1e999,1"], "found '1e999'"),
        (["1_000,1", ",1"], "found '1_000', .*; 2 rows are affected"),
        ([",1"], "found nothing, expected a finite number, since the column is binned"),
        (["1,", "1,far"], "row 2, column 'next_age': found 'far'"),
    ],
)
def test_a_value_that_is_no_number_is_named(lines, message, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["age,next_age", *lines, ""]))
    with pytest.raises(InvalidLog, match=message):
        resolved(path, {"age": Binning(width=1)}, {"age": "next_age"})


def test_a_column_that_cannot_be_cut_is_named():
    with pytest.raises(InvalidParameter, match="column 'age' cannot be cut into 3 quantiles: the"):
        resolved({"age": np.array([7, 7])}, {"age": Quantiles(3)})
    with pytest.raises(InvalidLog, match="no column 'agee' to bin; did you mean 'age'"):
        resolved({"age": np.array([7, 7])}, {"agee": Quantiles(3)})
