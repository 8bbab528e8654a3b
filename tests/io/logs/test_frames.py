"""Tables in memory count as the CSV of the same table, whatever library holds them."""

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from support.log_tables import COLUMNS, digest_of, write_table
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_log

ROWS = [
    dict(zip(COLUMNS, cells, strict=True))
    for cells in (
        (7, 0, "ward 3", 1, 0.5, "ward, é", False, False),
        (7, 1, "ward, é", 2, -0.25, "10", True, False),
        (12, 0, "10", 1, 1e-05, "ward 3", False, False),
        (12, 1, "ward 3", 2, 0.5, "ward 3", False, True),
        (-1, 0, "ward 3", 1, 0.1, "ward, é", False, True),
    )
]


def plain():
    return {name: [row[name] for row in ROWS] for name in COLUMNS}


def pandas_frame(**types):
    return pandas.DataFrame(plain()).astype(types)


FRAMES = {
    "pandas": pandas_frame,
    "pandas with nullable strings": lambda: pandas_frame(state="string", next_state="string"),
    "pandas with categories": lambda: pandas_frame(
        state="category", next_state="category", action="category", episode="category"
    ),
    "pandas with nullable numbers": lambda: pandas_frame(
        action="Int64", step="Int32", episode="Int64", reward="Float64", terminated="boolean"
    ),
    "pandas of Arrow": lambda: pandas.DataFrame(plain()).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: polars.DataFrame(plain()),
    "polars, lazy": lambda: polars.LazyFrame(plain()),
    "polars with categories": lambda: polars.DataFrame(plain()).with_columns(
        polars.col("state", "next_state").cast(polars.Categorical)
    ),
    "Arrow": lambda: pyarrow.table(plain()),
    "arrays": lambda: {
        name: np.array(values, object if isinstance(values[0], str) else None)
        for name, values in plain().items()
    },
    "lists": plain,
    "arrays of fixed width": lambda: {name: np.array(values) for name, values in plain().items()},
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    found = read_log(write_table(folder / "log.csv", ROWS)).counts()
    assert found.rows_read == len(ROWS)
    assert found.states == (("10",), ("ward 3",), ("ward, é",))
    return found


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_in_memory_counts_as_its_csv(kind, expected):
    assert digest_of(read_log(FRAMES[kind]()).counts()) == digest_of(expected)


MISSING = {
    "pandas": pandas.DataFrame,
    "pandas with NaN": lambda table: pandas.DataFrame(
        {**table, "next_state": pandas.Series(table["next_state"], dtype=object).fillna(np.nan)}
    ),
    "polars": polars.DataFrame,
    "Arrow": pyarrow.table,
    "lists": dict,
    "lists with NaN": lambda table: {
        **table,
        "next_state": [float("nan") if name is None else name for name in table["next_state"]],
    },
    "arrays": lambda table: (
        {name: np.array(values, object) for name, values in table.items()}
        | {"reward": np.array(table["reward"])}
    ),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", MISSING)
def test_nothing_in_memory_is_nothing_in_a_file(kind, tmp_path):
    rows = [{**row, "next_state": None if row["truncated"] else row["next_state"]} for row in ROWS]
    table = {name: [row[name] for row in rows] for name in COLUMNS}
    found = read_log(MISSING[kind](table)).counts()
    assert digest_of(found) == digest_of(read_log(write_table(tmp_path / "log.csv", rows)).counts())
    assert sum(found.dropped.values()) == 2


@pytest.mark.parametrize("odd", [[1.0], [1j] * len(ROWS)])
def test_columns_that_no_database_has_are_refused_in_one_line(odd):
    with pytest.raises(InvalidParameter, match=r"^a log of type dict cannot be read .* of one len"):
        read_log({**plain(), "reward": odd})


def test_a_relation_of_another_database_is_refused():
    with duckdb.connect() as other:
        relation = other.from_arrow(pyarrow.table(plain()))
        with pytest.raises(InvalidParameter, match="a log of type DuckDBPyRelation cannot be read"):
            read_log(relation)


def test_whole_numbers_keep_their_labels_beside_a_missing_next_state():
    # pandas makes doubles of whole numbers as soon as one is missing: 2 becomes 2.0.
    table = {"state": [1, 2], "action": [0, 1], "reward": [1.0, 2.0], "done": [False, True]}
    nullable = pandas.DataFrame({**table, "next_state": pandas.array([2, None], "Int64")})
    doubles = pandas.DataFrame({**table, "next_state": [2, None]})
    assert doubles["next_state"].dtype == np.float64
    assert digest_of(read_log(doubles).counts()) == digest_of(read_log(nullable).counts())


@pytest.mark.parametrize("build", [polars.DataFrame, pyarrow.table])
def test_a_number_that_is_none_is_no_label(build):
    table = {"state": [1.5, float("nan")], "action": [0, 0], "reward": [1.0, 1.0]}
    with pytest.raises(InvalidLog, match="row 2, column 'state': found 'nan', expected a number"):
        read_log(build({**table, "next_state": [1.5, 1.5]})).counts()
