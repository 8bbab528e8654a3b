"""Tables in memory count as the CSV of the same table, whatever library holds them."""

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from support.log_tables import COLUMNS, write_table
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_log
from surestep.io.counts.labelled import counts_digest

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
    "pandas with objects": lambda: pandas_frame(state=object, next_state=object),
    "pandas with strings": lambda: pandas_frame(state="str", next_state="str"),
    "pandas with nullable strings": lambda: pandas_frame(state="string", next_state="string"),
    "pandas with categories": lambda: pandas_frame(
        state="category", next_state="category", action="category", episode="category"
    ),
    "pandas with nullable numbers": lambda: pandas_frame(
        action="Int64", step="Int32", episode="Int64", reward="Float64", terminated="boolean"
    ),
    "pandas with small numbers": lambda: pandas_frame(action="int8", step="uint16"),
    "pandas of Arrow": lambda: pandas.DataFrame(plain()).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with another index": lambda: pandas_frame().set_index(pandas.Index([5, 3, 3, 1, 0])),
    "polars": lambda: polars.DataFrame(plain()),
    "polars, lazy": lambda: polars.LazyFrame(plain()),
    "polars with categories": lambda: polars.DataFrame(plain()).with_columns(
        polars.col("state", "next_state").cast(polars.Categorical)
    ),
    "Arrow": lambda: pyarrow.table(plain()),
    "Arrow with a dictionary": lambda: pyarrow.table(
        {
            name: pyarrow.array(values).dictionary_encode() if name == "state" else values
            for name, values in plain().items()
        }
    ),
    "Arrow in batches": lambda: pyarrow.Table.from_batches(
        pyarrow.table(plain()).to_batches(max_chunksize=2)
    ),
    "arrays": lambda: {
        name: np.array(values, object if isinstance(values[0], str) else None)
        for name, values in plain().items()
    },
    "lists": plain,
    "tuples": lambda: {name: tuple(values) for name, values in plain().items()},
    "arrays of fixed width": lambda: {name: np.array(values) for name, values in plain().items()},
}


def same(found, expected):
    """Equal in everything that counts are."""
    for name in ("state_columns", "action_columns", "states", "actions", "scale", "rows_read"):
        assert getattr(found, name) == getattr(expected, name)
    assert dict(found.dropped) == dict(expected.dropped)
    np.testing.assert_array_equal(found.starts, expected.starts)
    for ours, theirs in zip(found.transitions, expected.transitions, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    found = read_log(write_table(folder / "log.csv", ROWS)).counts()
    assert found.rows_read == len(ROWS)
    assert found.states == (("10",), ("ward 3",), ("ward, é",))
    return found


@pytest.mark.parametrize("kind", FRAMES)
def test_a_table_in_memory_counts_as_its_csv(kind, expected):
    same(read_log(FRAMES[kind]()).counts(), expected)


MISSING = {
    "pandas": pandas.DataFrame,
    "pandas with objects": lambda table: pandas.DataFrame(table).astype({"next_state": object}),
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


@pytest.mark.parametrize("kind", MISSING)
def test_nothing_in_memory_is_nothing_in_a_file(kind, tmp_path):
    rows = [{**row, "next_state": None if row["truncated"] else row["next_state"]} for row in ROWS]
    table = {name: [row[name] for row in rows] for name in COLUMNS}
    found = read_log(MISSING[kind](table)).counts()
    same(found, read_log(write_table(tmp_path / "log.csv", rows)).counts())
    assert sum(found.dropped.values()) == 2


def test_lists_of_different_lengths_are_refused_in_one_line():
    table = {**plain(), "reward": [1.0]}
    with pytest.raises(InvalidParameter, match=r"^the log .* 'reward' has 1 values and 'episode' "):
        read_log(table)


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
    same(read_log(doubles).counts(), read_log(nullable).counts())


@pytest.mark.parametrize("build", [polars.DataFrame, pyarrow.table])
def test_a_number_that_is_none_is_no_label(build):
    table = {"state": [1.5, float("nan")], "action": [0, 0], "reward": [1.0, 1.0]}
    with pytest.raises(InvalidLog, match="row 2, column 'state': found 'nan', expected a number"):
        read_log(build({**table, "next_state": [1.5, 1.5]})).counts()


def odd(frame):
    """The table with a column that DuckDB has no type for."""
    if isinstance(frame, pandas.DataFrame):
        return frame.assign(odd=[1j] * len(frame), **{"3": 0}).rename(columns={"3": 3})
    if isinstance(frame, polars.DataFrame):
        things = polars.Series("odd", [object()] * len(frame), dtype=polars.Object)
        return frame.with_columns(things)
    if isinstance(frame, dict):
        return {**frame, "odd": np.array([1j] * len(ROWS))}
    return frame.append_column("odd", pyarrow.array(np.zeros(len(frame), np.float16)))


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow", "arrays"])
def test_a_column_that_nobody_uses_may_hold_anything(kind, expected):
    frame = odd(FRAMES[kind]())
    same(read_log(frame).counts(), expected)
    with pytest.raises(InvalidLog, match=r"column 'odd', chosen for state, is of a type that"):
        read_log(frame, columns={"state": ["odd"]})


def test_a_column_of_several_types_is_named():
    mixed = pandas.Series([1] * 1667 + ["late"] + [1] * 3332, dtype=object)  # a sample misses it
    frame = pandas.DataFrame({"state": mixed, "action": "a", "reward": 1, "next_state": "b"})
    with pytest.raises(InvalidLog, match=r"DataFrame: column 'state' begins with values of type"):
        read_log(frame).counts()
    other = {"state": "action", "action": "next_state"}
    assert read_log(frame, columns=other).counts().rows_read == 5000


def stays():
    """The same table, with a column of episodes of another name."""
    return {("stay" if name == "episode" else name): column for name, column in plain().items()}


@pytest.mark.parametrize(
    "grouped",
    [
        lambda: pandas.DataFrame(stays()).groupby("stay"),
        lambda: pandas.DataFrame(stays()).groupby(["stay"]),
        lambda: polars.DataFrame(stays()).group_by("stay"),
    ],
)
def test_groups_by_a_column_are_the_episodes(grouped):
    log, named = (
        read_log(grouped()),
        read_log(pandas.DataFrame(stays()), columns={"episode": "stay"}),
    )
    assert log.columns == named.columns
    assert counts_digest(log.counts()) == counts_digest(named.counts())
    # Whoever says what the episodes are is believed.
    other = pandas.DataFrame(plain()).groupby("state")
    assert read_log(other, columns={"episode": "episode"}).columns.episode == "episode"


@pytest.mark.parametrize(
    "grouped",
    [
        lambda: pandas_frame().groupby(["episode", "state"]),
        lambda: pandas_frame().groupby("episode")["state"],
        lambda: pandas_frame().groupby(lambda row: row % 2),
        lambda: polars.DataFrame(plain()).group_by("episode", "state"),
        lambda: polars.DataFrame(plain()).lazy().group_by("episode"),
    ],
)
def test_other_groups_are_refused_with_what_to_give(grouped):
    with pytest.raises(InvalidParameter, match=r"expected the table itself, .*'episode': "):
        read_log(grouped())
