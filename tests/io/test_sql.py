"""Databases in memory: each is new, ends with its folder, and keeps nothing of a file's past."""

import gc
import os
import weakref

import duckdb
import numpy as np
import pytest

from surestep.errors import FileFailure, InvalidParameter
from surestep.io import read_log
from surestep.io.sql import in_memory


def setting(database, name):
    return database.execute(f"SELECT current_setting('{name}')").fetchone()[0]


def test_two_uses_at_once_are_of_two_databases():
    with in_memory() as outer:
        outer.execute("SET preserve_insertion_order = false")
        with in_memory(threads=1) as inner:
            assert setting(inner, "preserve_insertion_order")
            assert setting(inner, "threads") == 1
        assert not setting(outer, "preserve_insertion_order")


def test_a_limit_of_memory_is_shared():
    with in_memory("64MB", share=0.5) as database:
        assert setting(database, "memory_limit") == "30.5 MiB"


def test_the_folder_of_a_database_that_spilled_goes():
    with in_memory() as database:
        spill = setting(database, "temp_directory")
        database.execute("SET memory_limit = '20MB'")
        database.execute("CREATE TEMP TABLE big AS SELECT hash(range) FROM range(4_000_000)")
        assert os.listdir(spill)
    assert not os.path.exists(spill)


def test_an_error_of_the_database_becomes_ours():
    fails = "SELECT * FROM nothing_of_that_name"
    with pytest.raises(FileFailure, match="the database failed: Catalog Error"), in_memory() as one:
        one.execute(fails)


BIG = "CREATE TEMP TABLE big AS SELECT hash(range) FROM range(4_000_000)"
LISTS = "SELECT max(len(x)) FROM (SELECT list(range) AS x FROM range(4_000_000))"


@pytest.mark.parametrize(
    ("limit", "setting", "query", "error", "words"),
    [
        ("20MB", "threads = 1", LISTS, InvalidParameter, "memory_limit is '20MB', which is too"),
        (None, "memory_limit = '20MB'", LISTS, InvalidParameter, "the memory here is too little"),
        ("20MB", "max_temp_directory_size = '1MB'", BIG, FileFailure, "set TMPDIR to a folder"),
    ],
)
def test_too_little_memory_or_room_is_told_in_one_line(limit, setting, query, error, words):
    with pytest.raises(error, match=words) as caught, in_memory(limit) as database:
        database.execute(f"SET {setting}; {query}")
    assert "\n" not in str(caught.value)


def test_a_table_in_memory_is_let_go():
    class Column(np.ndarray):
        pass

    column = np.arange(1000).view(Column)
    gone = weakref.ref(column)
    with in_memory() as database:
        database.register("frame", {"x": column})
        assert database.execute("SELECT sum(x) FROM frame").fetchone() == (499500,)
    del column
    gc.collect()
    assert gone() is None


ROWS = "episode,step,state,action,reward\n1,0,a,x,{}\n1,1,b,y,0\n2,0,{},x,1\n"


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_log_that_changes_between_two_reads_is_read_anew(tmp_path, ending):
    path, told = tmp_path / f"log.{ending}", []
    for reward, state in (("1", "a"), ("2", "c")):  # as many bytes, at nearly the same time
        (tmp_path / "text.txt").write_text(ROWS.format(reward, state))
        form = {"csv": "csv, header", "parquet": "parquet", "jsonl": "json"}[ending]
        with duckdb.connect() as database:
            database.execute(
                f"COPY (FROM read_csv('{tmp_path}/text.txt')) TO '{path}' (FORMAT {form})"
            )
        os.utime(path, (1e9, 1e9))
        counts = read_log(path, ends="clock").counts()
        told.append((counts.states, counts.transitions.reward_sum.tolist()))
    assert [states for states, _ in told] == [(("a",), ("b",)), (("a",), ("b",), ("c",))]
    assert told[0][1] != told[1][1]
