"""Databases that are used again: nothing of one use is there in the next, nor of a file's past."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import duckdb
import numpy as np
import pytest

from surestep.errors import FileFailure, InvalidParameter
from surestep.io import read_log, sql
from surestep.io.sql import in_memory


@pytest.fixture(autouse=True)
def no_idle():
    """Begins with no database that waits, so that each test sees what became of its own."""
    sql.close_idle()


def setting(database, name):
    return database.execute(f"SELECT current_setting('{name}')").fetchone()[0]


def test_a_database_that_was_used_is_used_again_and_nothing_is_left_in_it():
    with in_memory(threads=1) as database:
        before = setting(database, "preserve_insertion_order")
        database.execute("SET preserve_insertion_order = false")
        database.execute("CREATE TEMP TABLE log AS SELECT 1")
        database.execute("CREATE TEMP VIEW seen AS SELECT 1")
        database.execute("SET VARIABLE first = 1")
        database.register("frame", {"x": np.arange(3)})
        spill = setting(database, "temp_directory")
        assert setting(database, "threads") == 1
    (idle,) = sql.IDLE
    assert not os.path.exists(spill)
    with duckdb.connect() as new, in_memory() as database:
        assert not sql.IDLE, "the one that waited is in use"
        for name in ("threads", "memory_limit", "preserve_insertion_order"):
            assert setting(database, name) == setting(new, name)
        assert before == setting(database, "preserve_insertion_order")
        assert setting(database, "temp_directory") != spill
        assert database.execute("SELECT getvariable('first')").fetchone() == (None,)
        for name in ("log", "seen", "frame"):
            with pytest.raises(duckdb.CatalogException):
                database.execute(f"SELECT * FROM {name}")
    assert [idle] == sql.IDLE


def test_two_uses_at_once_are_of_two_databases():
    with in_memory() as outer:
        outer.execute("SET preserve_insertion_order = false")
        with in_memory(threads=1) as inner:
            assert setting(inner, "preserve_insertion_order")
        assert not setting(outer, "preserve_insertion_order")
    assert len(sql.IDLE) == 2


def test_threads_do_not_meet_in_one_database():
    together, wrong = threading.Barrier(4), []

    def use(number):
        for _ in range(5):
            with in_memory() as database:
                together.wait()
                database.execute(f"CREATE TABLE one AS SELECT {number} AS x")
                if database.execute("SELECT x FROM one").fetchall() != [(number,)]:
                    wrong.append(number)
                database.execute("DROP TABLE one")

    users = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong
    assert 1 <= len(sql.IDLE) <= 4


def test_one_with_a_limit_of_memory_is_not_kept():
    with in_memory("64MB", share=0.5) as database:
        assert setting(database, "memory_limit") == "30.5 MiB"
    assert not sql.IDLE


def test_one_that_spilled_is_not_kept_and_its_folder_goes():
    with in_memory() as database:
        spill = setting(database, "temp_directory")
        database.execute("SET memory_limit = '20MB'")
        database.execute("CREATE TEMP TABLE big AS SELECT hash(range) FROM range(4_000_000)")
        assert os.listdir(spill)
    assert not sql.IDLE
    assert not os.path.exists(spill)


def test_a_use_that_fails_leaves_a_database_that_works():
    fails = "CREATE TEMP TABLE log AS SELECT 1; SELECT * FROM nothing_of_that_name"
    with pytest.raises(FileFailure, match="the database failed: Catalog Error"), in_memory() as one:
        one.execute(fails)
    assert len(sql.IDLE) == 1
    with in_memory() as database:
        assert database.execute("CREATE TEMP TABLE log AS SELECT 2").fetchone()


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
    sql.close_idle()  # its settings are not those of others
    assert "\n" not in str(caught.value)


def test_a_table_in_memory_is_let_go():
    class Column(np.ndarray):
        pass

    column = np.arange(1000).view(Column)
    gone = weakref.ref(column)
    with in_memory() as database:
        database.register("frame", {"x": column})
        assert database.execute("SELECT sum(x) FROM frame").fetchone() == (499500,)
    assert sql.IDLE
    del column
    gc.collect()
    assert gone() is None


ROWS = "episode,step,state,action,reward\n1,0,a,x,{}\n1,1,b,y,0\n2,0,{},x,1\n"


@pytest.mark.one_quick
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
    assert len(sql.IDLE) == 1, "both reads were of one database"
    assert [states for states, _ in told] == [(("a",), ("b",)), (("a",), ("b",), ("c",))]
    assert told[0][1] != told[1][1]


FORKED = """
import os
from surestep.io import sql

def summed():
    with sql.in_memory() as database:
        return database.execute("SELECT sum(hash(range) % 7) FROM range(1_000_000)").fetchone()

before = summed()
child = os.fork()
if child == 0:
    assert not sql.IDLE and summed() == before
    raise SystemExit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert summed() == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_uses_a_database_of_its_own(tmp_path):
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
