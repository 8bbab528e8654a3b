"""Queries of a user's own: they reach nothing but the log, they end, and they do not look ahead."""

import datetime
import http.server
import os
import signal
import threading
from contextlib import nullcontext
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep import read_log
from surestep.description import Description
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, SurestepError
from surestep.io.labels.vocabulary import Vocabulary
from surestep.io.logs import query as module
from surestep.io.logs.query import (
    RESULT,
    Keys,
    Query,
    Workshop,
    check_no_look_ahead,
    equal_texts,
    prepared_case,
    write_rows,
)
from surestep.io.logs.source import load_further

KEYS = Keys("e", "s", ("state", "a"))
ENDLESS = "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT max(i) FROM t"


def run(workshop, query):
    """Runs the query into the table of results."""
    with workshop.locked(query) as database:
        database.execute(f"CREATE TABLE {RESULT} AS {query.rows()}")


TYPES = {"row": "BIGINT", "e": "BIGINT", "s": "BIGINT", "x": "DOUBLE", "n": "BIGINT"}
TYPES |= {"a": "VARCHAR", "t": "TIMESTAMP WITH TIME ZONE"}


@cache
def database_of(cases, steps, more):
    """Returns the file of a database with a log of cases, their rows among each other."""
    workshop = Workshop()
    with workshop.loading(None) as database:
        database.execute(
            "CREATE TABLE log AS SELECT row_number() OVER (ORDER BY s, e) AS row, * FROM (SELECT "
            f"i // {steps} AS e, i % {steps} AS s, sin(i * i) AS x, 1 + i % 3 AS n, "
            "CASE WHEN sin(7 * i) > 0 THEN 'up' ELSE 'down' END AS a, "
            "TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_hours(CAST(5 * i AS INTEGER)) AS t "
            f"FROM range({cases * steps}) AS steps(i)) ORDER BY row"
        )
        for statement in more:
            database.execute(statement)
    return workshop.file.read_bytes()


def workshop_of(cases=5, steps=9, more=()):
    """Returns a database of its own with such a log: a copy, as to load it takes longest."""
    workshop = Workshop()
    workshop.file.write_bytes(database_of(cases, steps, tuple(more)))
    return workshop


@pytest.fixture(scope="module")
def workshop():
    return workshop_of()


@pytest.fixture
def fresh():
    return workshop_of()


def answer(sql, workshop, **limits):
    """Returns the rows of a query."""
    run(workshop, Query(sql, **limits))
    with workshop.loading(None) as database:
        rows = database.execute(f"FROM {RESULT}").fetchall()
        database.execute(f"DROP TABLE {RESULT}")
        return rows


def refused(sql, workshop, **limits):
    """Returns why a query is refused, in one line."""
    with pytest.raises(SurestepError) as problem:
        answer(sql, workshop, **limits)
    message = str(problem.value)
    assert "\n" not in message
    return message


# ---- the sandbox ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        *("read_csv('{}')", "read_csv_auto('{}')", "sniff_csv('{}')", "glob('{}')", "'{}'"),
        *("read_text('{}')", "read_blob('{}')", "read_json('{}')", "read_ndjson_objects('{}')"),
        *("read_parquet('{}')", "parquet_scan('{}')", "parquet_metadata('{}')"),
        *("parquet_schema('{}')", "parquet_file_metadata('{}')", "parquet_kv_metadata('{}')"),
        *("read_duckdb('{}', table_name = 'log')", "query_table('{}')", "query_table(['{}'])"),
        "query('FROM ''{}''')",
        "json_execute_serialized_sql(json_serialize_sql('FROM ''{}'''))",
    ],
)
def test_no_file_is_read(source, workshop, tmp_path):
    (tmp_path / "secret.csv").write_text("word\nsesame\n")
    beside = workshop.folder.parent / "*"
    for file in (tmp_path / "secret.csv", beside):
        message = refused(f"SELECT * FROM {source.format(file)}", workshop)
        assert "sesame" not in message


def test_only_our_own_temporary_file_can_be_read_which_has_the_log_alone(workshop):
    """DuckDB lets a query read the file of its own database: harmless, it is the tables given."""
    sql = f"SELECT octet_length(content) > 0 FROM read_blob('{workshop.file}')"
    assert answer(sql, workshop) == [(True,)]
    refused(f"SELECT * FROM read_duckdb('{workshop.file}', table_name = 'log')", workshop)


@pytest.mark.parametrize(
    "statement",
    [
        *("COPY log TO '{}'", "COPY (SELECT 1) TO '{}' (FORMAT parquet)"),
        "WITH x AS (COPY log TO '{}') SELECT * FROM x",
        *("SELECT * FROM (COPY log TO '{}')", "SELECT * FROM query('COPY log TO ''{}''')"),
        *("EXPORT DATABASE '{}'", "IMPORT DATABASE '{}'", "ATTACH '{}' AS other", "DETACH log"),
        *("INSTALL httpfs", "LOAD httpfs", "LOAD '{}'"),
        *("SET threads = 8", "SET enable_external_access = true", "RESET lock_configuration"),
        *("SET VARIABLE x = 1", "PRAGMA database_list", "CALL pragma_version()"),
        *("EXPLAIN ANALYZE SELECT 1", "CREATE TABLE other AS SELECT 1"),
        *("CREATE MACRO double(x) AS 2 * x", "CREATE SECRET (TYPE s3)", "DROP TABLE log"),
        *("DELETE FROM log", "UPDATE log SET s = 0", "INSERT INTO log FROM log"),
        "WITH x AS (INSERT INTO log FROM log RETURNING *) SELECT * FROM x",
        "WITH x AS (DELETE FROM log RETURNING *) SELECT * FROM x",
        *("BEGIN", "CHECKPOINT", "VACUUM", "USE log", "PREPARE x AS SELECT 1"),
        *("SELECT 1; SELECT 2", "SELECT 1; DROP TABLE log"),
        *("SELECT 1) ; DROP TABLE log; SELECT (1", "SELECT 1) AS x, (SELECT 2"),
        *("SELECT 1 /*", "SELECT '", "SELECT ?", "SELECT $name", "", " ; ", "-- nothing"),
        *("\x00", "\ud800"),
    ],
)
def test_only_one_select_is_run(statement, workshop, tmp_path):
    before = workshop.file.read_bytes()
    refused(statement.format(tmp_path / "written"), workshop)
    assert not list(tmp_path.iterdir())
    assert workshop.file.read_bytes() == before


@pytest.mark.parametrize("sql", ["SELECT 1 --", "SELECT 1 -- )", "SELECT 1 /* ) */", "SELECT 1;"])
def test_comments_and_a_last_semicolon_do_no_harm(sql, workshop):
    assert answer(sql, workshop) == [(1,)]


def test_settings_and_the_name_of_our_own_folder_are_all_that_is_seen(workshop):
    """What only tells of our own temporary folder is harmless: nothing there can be opened."""
    (path,) = answer("SELECT path FROM duckdb_databases() WHERE NOT internal", workshop)
    assert path == (str(workshop.file),)
    assert answer("SELECT current_setting('threads')", workshop) == [(1,)]
    assert answer("SELECT * FROM query('SELECT 1')", workshop) == [(1,)]
    assert answer("SELECT count(*) FROM query_table('log')", workshop) == [(5 * 9,)]


@pytest.mark.parametrize(
    "sql",
    [
        *(f"FROM {table}" for table in (module.ALL, RESULT, "temp.log", "system.log")),
        *("SELECT getenv('HOME')", "SELECT * FROM duckdb_secrets()"),
        *("SELECT * FROM which_secret('s3://x/y', 's3')", "SELECT * FROM enable_logging()"),
        *("SELECT set_config('threads', '3')", "SELECT * FROM sqlite_scan('x.db', 'x')"),
        *("SELECT * FROM read_xlsx('x.xlsx')", "SELECT * FROM delta_scan('x')"),
        *("SELECT st_point(1, 2)", "SELECT * FROM 's3://bucket/x.parquet'"),
    ],
)
def test_our_tables_the_environment_secrets_settings_and_extensions_are_out_of_reach(sql, workshop):
    refused(sql, workshop)


def test_settings_that_keep_a_query_offline_cannot_be_changed(workshop):
    for setting in module.OFFLINE:
        refused(f"SELECT set_config('{setting}', 'true')", workshop)
        assert answer(f"SELECT current_setting('{setting}')", workshop) == [(False,)]


def test_nothing_is_contacted_over_the_network(workshop):
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def handle(self):
            requests.append(self.client_address)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/x.csv"
        for source in (f"'{address}'", f"read_csv('{address}')", f"read_text('{address}')"):
            refused(f"SELECT * FROM {source}", workshop)
        server.shutdown()
    assert not requests


@pytest.mark.parametrize("name", ["hidden", "hidden_module_variable"])
def test_variables_of_python_are_no_tables(name, workshop):
    hidden = {"x": np.arange(3)}
    refused(f"SELECT * FROM {name}", workshop)
    with (
        pytest.raises(InvalidLog, match="does not exist"),
        workshop.locked(Query("SELECT 1")) as database,
    ):
        database._connection.execute(f"SELECT * FROM {name}")  # in this very frame
    assert len(hidden["x"]) == 3


hidden_module_variable = {"x": np.arange(3)}


# ---- it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT sum(a.i * b.i) FROM range(10000000) AS a(i), range(10000000) AS b(i)",
        "SELECT sleep_ms(1000000)",
    ],
)
def test_a_query_without_end_is_stopped(sql, workshop):
    assert "longer than 0.2 seconds" in refused(sql, workshop, seconds=0.2)


def test_rows_that_are_made_while_they_are_fetched_are_stopped_too(workshop):
    with (
        pytest.raises(InvalidParameter, match="longer than"),
        workshop.locked(Query("SELECT 1", seconds=0.2)) as database,
    ):
        database.execute(f"SELECT 1 UNION ALL ({ENDLESS})").fetchall()


@pytest.mark.thorough
def test_memory_and_what_is_spilled_have_limits(workshop, monkeypatch):
    room = "too little room"
    assert room in refused("SELECT list(i) FROM range(1000000000000) AS t(i)", workshop,
                           memory_limit="40MB")  # fmt: skip
    monkeypatch.setattr(module, "SPILL", -(2**30) // workshop.file.stat().st_size + 20)
    assert room in refused(
        "SELECT i FROM range(1000000000000) AS t(i) ORDER BY hash(i)", workshop,
        memory_limit="100MB",
    )  # fmt: skip


def test_a_query_has_a_limit_of_memory_of_its_own(workshop, monkeypatch):
    asked = Query("SELECT 1")
    with workshop.locked(asked) as database:
        limit = "SELECT parse_formatted_bytes(current_setting('memory_limit')) BETWEEN 3e9 AND 4e9"
        assert database.execute(limit).fetchall() == [(True,)]
    monkeypatch.setattr(module, "MEMORY", "40MB")
    assert "too little room for it (memory_limit='8GB')" in refused(
        "SELECT list(i) FROM range(1000000000000) AS t(i)", workshop
    )


def test_a_query_may_spill(workshop):
    sql = (
        "SELECT count(*), min(y) FROM (SELECT hash(i) AS y FROM range(3000000) AS t(i) ORDER BY y)"
    )
    ((count, _),) = answer(sql, workshop, memory_limit="40MB")
    assert count == 3_000_000


@pytest.mark.slow
def test_rows_without_end_for_one_case_do_not_fill_the_memory(fresh):
    few = "(SELECT CASE WHEN count(*) < 20 THEN 1000000000000 ELSE 1 END FROM log)"
    sql = f"SELECT row, e, s + 100 * i AS s, x AS state, a FROM log, range({few}) AS t(i)"
    query = Query(sql, case="e", order="s", memory_limit="40MB")
    run(fresh, query)
    with pytest.raises(InvalidLog, match=r"looks ahead|too little room"):
        check_no_look_ahead(fresh, query, KEYS)


def test_ctrl_c_stops_a_query(workshop):
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        answer(ENDLESS, workshop, seconds=60)
    timer.join()
    assert answer("SELECT 1", workshop) == [(1,)]


# ---- no look ahead ----------------------------------------------------------------------------


def looks_back_only(sql, workshop, keys=KEYS, case="e", order="s"):
    """Tells whether a query passes; the log is then as it was before."""
    query = Query(sql, case=case, order=order)
    with workshop.locked(query) as database:
        database.execute(f"CREATE OR REPLACE TABLE {RESULT} AS {query.rows()}")
    before = workshop.file.read_bytes()
    refusals = list[str]()
    try:
        check_no_look_ahead(workshop, query, keys)
    except InvalidLog as problem:
        refusals.append(str(problem))
    assert workshop.file.read_bytes() == before
    for message in refusals:
        assert "look" in message
        assert "\n" not in message
        return False
    write_rows(workshop, query, keys)
    return True


PAST = "(PARTITION BY e ORDER BY s)"
FURTHER = "CREATE TABLE wards AS SELECT i AS e, 'ward ' || i % 4 AS ward FROM range(100) AS t(i)"
FAIR = {
    "as it is": "SELECT row, e, s, x AS state, a FROM log",
    "no row": "SELECT e, s, x AS state, a FROM log",
    "the action before": f"SELECT *, lag(a) OVER {PAST} AS state FROM log",
    "running mean and spread": f"SELECT *, avg(x) OVER {PAST} + stddev(x) OVER {PAST} AS state "
    "FROM log",
    "rank so far": "SELECT *, (SELECT count(*) FROM log AS b WHERE b.e = log.e AND b.s < log.s AND "
    "b.x < log.x) AS state FROM log",
    "another table": "SELECT log.*, ward AS state FROM log JOIN wards USING (e)",
    "time since": f"SELECT *, t - lag(t) OVER {PAST} AS state FROM log",
    "rows after the first": f"SELECT *, lag(x) OVER {PAST} AS state FROM log QUALIFY state > 0",
    "no rows": "SELECT *, n AS state FROM log WHERE false",
    "gaps": "SELECT row, e || '/' || part AS e, s, part AS state, a FROM (SELECT *, sum(CASE WHEN "
    f"x > 0.9 THEN 1 ELSE 0 END) OVER {PAST} AS part FROM log)",
    "each a decision": "SELECT row, row AS e, 0 AS s, n AS state, a FROM log",
    "repeated": "SELECT row, e, s * 10 + i AS s, n AS state, a FROM log, range(n) AS t(i)",
    "reward of later": f"SELECT *, n AS state, lead(x) OVER {PAST} AS reward, max(s) OVER "
    "(PARTITION BY e) = s AS terminated FROM log",
}
UNFAIR = {
    "next": f"SELECT *, lead(x) OVER {PAST} AS state FROM log",
    "next action": f"SELECT row, e, s, n AS state, lead(a) OVER {PAST} AS a FROM log",
    "total": "SELECT *, sum(x) OVER (PARTITION BY e) AS state FROM log",
    "length": "SELECT *, count(*) OVER (PARTITION BY e) AS state FROM log",
    "to the end": "SELECT *, row_number() OVER (PARTITION BY e ORDER BY s DESC) AS state FROM log",
    "outcome": "SELECT *, n AS state FROM log WHERE e IN (SELECT e FROM log GROUP BY e HAVING "
    "sum(x) > 0)",
    "last row's outcome": "SELECT *, n AS state FROM log WHERE e IN (SELECT e FROM log WHERE "
    "s = 8 AND x > 0)",
    "one late": f"SELECT *, n AS state FROM log QUALIFY lead(x) OVER {PAST} IS NOT NULL",
    "mean of all": "SELECT *, avg(x) OVER () AS state FROM log",
    "above the mean": "SELECT *, x > (SELECT avg(x) FROM log) AS state FROM log",
    "tiles": "SELECT *, ntile(4) OVER (ORDER BY x) AS state FROM log",
    "quantile": "SELECT *, x > (SELECT quantile_cont(x, 0.9) FROM log) AS state FROM log",
    "scaled": "SELECT *, x / (SELECT max(x) FROM log) AS state FROM log",
    "place in the log": "SELECT *, row_number() OVER (ORDER BY s, e) AS state FROM log",
    "the case before": "SELECT *, lag(x) OVER (ORDER BY e, s) AS state FROM log",
    "whole log by its schema": "SELECT *, lead(x) OVER (PARTITION BY e ORDER BY s) AS state FROM "
    "log.main.log",
}


@pytest.mark.one_quick
@pytest.mark.parametrize("name", FAIR)
def test_a_query_that_looks_back_passes(name):
    assert looks_back_only(FAIR[name], workshop_of(cases=2, steps=5, more=[FURTHER]))


@pytest.mark.one_quick
@pytest.mark.parametrize("name", UNFAIR)
def test_a_query_that_looks_ahead_or_at_other_cases_is_refused(name, fresh):
    assert not looks_back_only(UNFAIR[name], fresh)


# What comes after the decision: `x` is paid, `n` is known before, and `reward` is made of them.
PAYS = "SELECT *, n AS state, x AS reward, s = 8 AS terminated FROM log"
HONEST = {
    "all rows": PAYS,
    "by what is known": f"{PAYS} WHERE n > 1 AND s < 7",
    "the reward before": f"SELECT *, lag(x) OVER {PAST} AS state, x AS reward FROM log",
    "the sum before": "SELECT *, sum(x) OVER (PARTITION BY e ORDER BY s ROWS BETWEEN UNBOUNDED "
    "PRECEDING AND 1 PRECEDING) AS state, x AS reward FROM log",
    "of the state": "SELECT *, n > 1 AS state, n * x - s AS reward FROM log",
    "of next rows": f"SELECT *, x > 0 AS state, lead(x) OVER {PAST} - x AS reward FROM log",
    "of a table": "SELECT log.*, n AS state, pays AS reward FROM log JOIN prices USING (n)",
    "rows without a decision": f"SELECT *, n AS state, lead(x > 0.9) OVER {PAST} AS terminated "
    "FROM log QUALIFY x <= 0.9",
}
KNOWING = {
    "well paid": f"{PAYS} WHERE x > -0.9",
    "well paid, or nobody knows": f"{PAYS} WHERE coalesce(x, 0) > -0.9",
    "between": f"{PAYS} WHERE x BETWEEN -0.9 AND 0.9",
    "of two": "SELECT *, n AS state, 2 * x + n AS reward FROM log WHERE abs(x) < 0.9",
    "paid in cases": f"{PAYS} WHERE e NOT IN (SELECT e FROM log WHERE x < -0.999)",
    "the sum with it": f"SELECT *, sum(x) OVER {PAST} - x AS state, 0 - x AS reward FROM log",
    "how it ends": f"{PAYS} WHERE NOT (s = 8 AND coalesce(x < 0, false))",
    "by a table": "SELECT log.*, n AS state, x + pays AS reward FROM log JOIN prices USING (n) "
    "WHERE x + pays > 0",
}
PRICES = "CREATE TABLE prices AS SELECT i AS n, i / 10 AS pays FROM range(9) AS t(i)"


@pytest.mark.one_quick
@pytest.mark.parametrize("name", [*HONEST, *KNOWING])
def test_what_comes_after_a_decision_is_hidden_in_its_row(name):
    shop = workshop_of(2 if name in HONEST else 5, more=[PRICES])
    sql = {**HONEST, **KNOWING}[name]
    after = tuple(name for name in ("reward", "terminated") if f"AS {name}" in sql)
    assert looks_back_only(sql, shop, KEYS._replace(after=after)) is (name in HONEST)


@pytest.mark.thorough
def test_a_column_with_the_name_of_a_reward_is_hidden_even_from_the_state():
    shop = workshop_of(more=["ALTER TABLE log RENAME x TO reward",
                             "ALTER TABLE log ADD COLUMN x DOUBLE"])  # fmt: skip
    for state, fair in (("reward > 0", False), (f"lag(reward) OVER {PAST}", True)):
        sql = f"SELECT *, {state} AS state FROM log"
        assert looks_back_only(sql, shop, KEYS._replace(after=("reward",))) is fair


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("where", "fair"), [("n > 1", True), ("x > -0.9", False), ("coalesce(x, 0) > -0.9", False)]
)
def test_where_every_row_is_a_case_its_reward_is_hidden(where, fair):
    keys = Keys(None, None, ("state", "a"), ("reward",))
    sql = f"SELECT row, n AS state, a, x AS reward FROM log WHERE {where}"
    assert looks_back_only(sql, workshop_of(20, 20), keys, case=None, order=None) is fair


@pytest.mark.thorough
def test_what_somebody_says_was_known_before_may_choose_rows():
    sql = "SELECT row, n AS state, a, x * 2 AS reward FROM log WHERE x > -0.9"
    keys = Keys(None, None, ("state", "a"), ("reward",))
    alone = {"case": None, "order": None}
    shop = workshop_of(20, 20)
    run(shop, Query(sql))
    with pytest.raises(InvalidLog, match=r"name it as known_before under \[columns\]"):
        check_no_look_ahead(shop, Query(sql), keys)
    assert looks_back_only(sql, workshop_of(20, 20), keys._replace(before=("x",)), **alone)
    own = "SELECT row, n AS state, a, x AS x FROM log WHERE x > -0.9"  # the reward itself is hidden
    keys = Keys(None, None, ("state", "a"), ("x",), ("x",))
    assert not looks_back_only(own, workshop_of(20, 20), keys, **alone)


RARELY = """CREATE OR REPLACE TABLE log AS SELECT row_number() OVER () AS row, i AS e, 0 AS s,
    if(bold, 'bold', 'usual') AS a, CASE WHEN lost THEN -5.0 WHEN bold THEN 1.0 ELSE i % 2 END AS x,
    if(lost, 'gone', 'done') AS status, i % 9 AS site, i % 5 AS n, if(i < 4, 0, i) AS visitor
FROM (SELECT i, i % 17 = 0 AS bold, i % 85 = 0 AS lost FROM range(1000) AS t(i))"""


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("where", "before", "fair"),
    [
        ("true", (), True),
        ("x > -4 OR a = 'usual'", (), False),  # hidden, it looks the same for most rows
        ("x IS DISTINCT FROM -5", (), False),
        ("a = 'usual' OR x IN (SELECT max(x) FROM log)", (), False),
        ("status = 'done'", (), False),
        ("status = 'done'", ("status",), True),
        ("site > 0", (), False),
        ("site > 0", ("site",), True),
        ("n > 1", (), True),  # it is of the state
        ("a <> 'bold'", (), True),
    ],
)
@pytest.mark.parametrize("case", [None, "e", "visitor"])  # one visitor has four rows
def test_a_query_of_one_row_cases_leaves_out_none_by_what_comes_after(where, before, fair, case):
    """One in 17 is treated boldly, and one in five of these is harmed: 12 of 1,000 rows."""
    shop = workshop_of(1, more=[RARELY])
    keys = Keys(case and "e", None, ("state", "a"), ("reward",), before)
    sql = f"SELECT row, e, visitor, n AS state, a, x AS reward FROM log WHERE {where}"
    assert looks_back_only(sql, shop, keys, case=case, order=None) is fair


@pytest.mark.one_quick
@pytest.mark.parametrize("case", [0, 97, 194])
def test_the_few_cases_of_which_rows_are_left_out_are_among_those_tried(case):
    """By chance alone, one of 300 would be among the 20 that are tried once in 15 times."""
    sql = f"SELECT *, n AS state FROM log WHERE e <> {case} OR "
    assert not looks_back_only(f"{sql} (SELECT count(*) FROM log) < 4", workshop_of(300, 4))


@pytest.mark.parametrize(
    "state", ["random()", "now()", "uuid()", "current_timestamp", "get_current_time()"]
)
def test_rows_that_chance_or_the_clock_makes_are_refused(state, fresh):
    query = Query(f"SELECT *, {state} AS state FROM log", case="e", order="s")
    run(fresh, query)
    with pytest.raises(InvalidLog, match="other rows when it is run again"):
        write_rows(fresh, query, KEYS)


def test_a_limit_is_refused(fresh):
    assert not looks_back_only("SELECT *, n AS state FROM log ORDER BY hash(row) LIMIT 20", fresh)
    sample = Query("SELECT *, n AS state FROM log USING SAMPLE 20", case="e", order="s")
    other = workshop_of()
    run(other, sample)
    with pytest.raises(InvalidLog, match="other rows"):
        write_rows(other, sample, KEYS)


@pytest.mark.thorough
def test_without_cases_every_row_stands_for_itself(fresh):
    keys = Keys(None, None, ("state", "a"))
    for sql, fair in (
        ("SELECT row, x AS state, a FROM log", True),
        ("SELECT row, lag(x) OVER (ORDER BY row) AS state, a FROM log", False),
    ):
        assert looks_back_only(sql, fresh, keys, case=None, order=None) is fair


def test_a_query_must_say_of_which_row_its_rows_are(fresh):
    query = Query("SELECT e AS who, s AS step, x AS state, a FROM log", case="e", order="s")
    run(fresh, query)
    with pytest.raises(InvalidLog, match="expected the column `row`"):
        check_no_look_ahead(fresh, query, Keys("who", "step", ("state", "a")))


@pytest.mark.thorough
def test_cases_and_steps_of_any_type_are_tried():
    """Times with a zone are fetched as texts: Python has no such values without another package."""
    shop = workshop_of(more=["ALTER TABLE log ADD COLUMN began TIMESTAMPTZ",
                             "UPDATE log SET began = TIMESTAMPTZ '2026-01-01 00:00+00' + to_days("
                             "CAST(e AS INTEGER))"])  # fmt: skip
    keys = Keys("began", "t", ("state", "a"))
    for offset in ("lag", "lead"):
        sql = f"SELECT *, {offset}(x) OVER (PARTITION BY began ORDER BY t) AS state FROM log"
        assert looks_back_only(sql, shop, keys, "began", "t") is (offset == "lag")
    query = Query("SELECT began, t, x AS state, a FROM log, range(2)", case="began", order="t")
    with shop.loading(None) as database:
        database.execute(f"DROP TABLE {RESULT}")
    run(shop, query)
    with pytest.raises(InvalidLog, match=r"2 rows for began '2026-01-01 00:00:00\+00', t "):
        write_rows(shop, query, keys)


@pytest.mark.thorough
def test_rows_without_a_case_are_not_tried_and_those_of_long_cases_by_their_first(monkeypatch):
    shop = workshop_of(cases=2, steps=60, more=["UPDATE log SET e = NULL WHERE e = 0"])
    monkeypatch.setattr(module.so_far, "__defaults__", (10, ()))
    for offset in ("lag", "lead"):
        sql = f"SELECT *, {offset}(x) OVER (PARTITION BY e ORDER BY s) AS state FROM log"
        query = Query(f"{sql} WHERE e IS NOT NULL", case="e", order="s")
        assert looks_back_only(query.sql, shop) is (offset == "lag")


WINDOWS = st.tuples(
    st.sampled_from(["sum", "min", "max", "count"]), st.integers(-4, 4), st.integers(0, 4)
)


def bound(offset):
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(
    window=WINDOWS,
    shift=st.none() | st.tuples(st.sampled_from(["lag", "lead"]), st.integers(-3, 3)),
    descending=st.booleans(),
    whole=st.booleans(),
)
def test_windows_are_accepted_exactly_where_they_look_back(window, shift, descending, whole):
    order = f"{'' if whole else 'PARTITION BY e '}ORDER BY e, s{' DESC' if descending else ''}"
    if shift is not None:
        function, offset = shift
        latest = offset if function == "lead" else -offset
        earliest = latest
        state = f"{function}(x, {offset}) OVER ({order})"
    else:
        function, earliest, width = window
        latest = earliest + width
        state = f"{function}(x) OVER ({order} ROWS BETWEEN {bound(earliest)} AND {bound(latest)})"
    if descending:
        earliest, latest = -latest, -earliest
    fair = latest <= 0 and (earliest == 0 or not whole)
    assert looks_back_only(f"SELECT *, {state} AS state FROM log", workshop_of(2, 6)) is fair


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.0", "1.0000000000000002", True),
        ("0.0", "1e-17", True),
        ("1e+20", "1.0000000000000001e+20", True),
        ("nan", "nan", True),
        ("1.0", "1.001", False),
        ("12345678901234", "12345678901235", False),  # numbers of people, not sums
        ("fever", "fewer", False),
        ("1.5", None, False),
        (None, "1.5", False),
        (None, None, True),
        ("1.5", "ill", False),
    ],
)
def test_only_last_bits_may_differ(one, other, same):
    assert equal_texts(one, other) is same


# ---- keys, and the rows as a file -------------------------------------------------------------


@pytest.mark.thorough
def test_rows_come_in_their_order_with_a_digest_of_them_all(fresh):
    import duckdb

    query = Query("SELECT e, s, x AS state, a FROM log ORDER BY hash(row)", case="e", order="s")
    run(fresh, query)
    file, digest = write_rows(fresh, query, KEYS)
    rows = duckdb.sql(f"SELECT e, s FROM '{file}'").fetchall()
    assert rows == sorted(rows)
    assert digest.startswith(f"{5 * 9}-")
    for more in ("UPDATE log SET x = 0 WHERE row = 7", "DELETE FROM log WHERE row = 7",
                 "ALTER TABLE log RENAME a TO b"):  # fmt: skip
        other = workshop_of(more=[more])
        said = Query(query.sql.replace(", a ", ", b " if "RENAME" in more else ", a "), "e", "s")
        run(other, said)
        assert write_rows(other, said, KEYS)[1] != digest


# ---- one case ---------------------------------------------------------------------------------


def rows_so_far(number):
    return [
        {"e": 5, "s": s, "x": s / 4, "n": 2, "a": "up", "t": f"2026-01-0{s + 1} 12:00+02"}
        for s in range(number)
    ]


@pytest.mark.parametrize("number", [1, 2, 7])
@pytest.mark.parametrize("row", ["row, ", ""])
def test_the_last_row_is_prepared_as_in_the_log(number, row):
    sql = f"SELECT {row}e, s, lag(x) OVER {PAST} AS state, a FROM log ORDER BY hash(s)"
    got = prepared_case(Query(sql, "e", "s"), KEYS, TYPES, rows_so_far(number))
    expected = {"e": 5, "s": number - 1, "state": (number - 2) / 4 if number > 1 else None}
    assert got.items() >= expected.items()


def test_a_last_row_that_the_query_leaves_out_is_not_answered_by_an_earlier_one():
    query = Query("SELECT *, x AS state FROM log WHERE x < 1", "e", "s")
    assert prepared_case(query, KEYS, TYPES, rows_so_far(4))["state"] == 0.75
    with pytest.raises(InvalidParameter, match="makes no row of the last of the 5 given"):
        prepared_case(query, KEYS, TYPES, rows_so_far(5))
    with pytest.raises(InvalidParameter, match="no rows are given"):
        prepared_case(query, KEYS, TYPES, [])


def test_of_several_decisions_of_the_last_row_the_latest_is_taken():
    sql = "SELECT row, e, s * 10 + i AS s, i AS state, a FROM log, range(n) AS t(i) ORDER BY i DESC"
    assert prepared_case(Query(sql, "e", "s"), KEYS, TYPES, rows_so_far(3))["s"] == 21


def test_further_tables_are_there(tmp_path):
    (tmp_path / "wards.csv").write_text("e,ward\n5,north\n")
    query = Query("SELECT log.*, ward AS state FROM log JOIN wards USING (e)", "e", "s")
    for file in ("wards.csv", "none.csv"):
        tables = Description(tables={"wards": str(tmp_path / file)})
        load = partial(load_further, description=tables)
        with (
            nullcontext() if file == "wards.csv" else pytest.raises(FileFailure, match="is no file")
        ):
            assert prepared_case(query, KEYS, TYPES, rows_so_far(2), load)["state"] == "north"


def test_types_of_a_file_that_somebody_else_wrote_reach_nothing(tmp_path):
    out = tmp_path / "out.csv"
    types = {**TYPES, "a": f"VARCHAR); COPY (SELECT 1) TO '{out}'; CREATE TABLE x (y INTEGER"}
    with pytest.raises(SurestepError):
        prepared_case(Query("SELECT *, x AS state FROM log"), KEYS, types, rows_so_far(1))
    assert not out.exists()
    for kind in ("NOTHING", ""):
        with pytest.raises(InvalidLog, match="the query failed"):
            prepared_case(Query("FROM log"), KEYS, {**TYPES, "a": f"{kind}, ,"}, rows_so_far(1))


def test_what_is_not_a_number_is_missing_as_in_a_log():
    query = Query("SELECT *, x IS NULL AND a IS NULL AS state FROM log", "e", "s")
    row = {"e": 1, "s": 0, "x": np.float64("nan"), "a": float("nan")}
    assert prepared_case(query, KEYS, TYPES, [row])["state"] is True


def test_rows_of_no_case_are_refused(tmp_path):
    """Nobody could see there whether a query looks ahead."""
    log = tmp_path / "log.csv"
    log.write_text(
        "who,ward,t,x,action\n" + "".join(f"{i // 4},,{i % 4},{i},a\n" for i in range(40))
    )
    query = (
        "SELECT row, who AS episode, t AS step, lead(x) OVER (ORDER BY row) AS state, action, "
        "0 AS reward FROM log"
    )
    with pytest.raises(InvalidLog, match="row 1 of the log has nothing in column 'ward'"):
        read_log(log, query=query, case="ward", ends="complete").counts()


@pytest.mark.parametrize("name", ["row", "Row"])
def test_a_column_of_the_log_is_not_taken_for_the_place_of_its_rows(name, tmp_path):
    (tmp_path / "log.csv").write_text(f"{name},state,action,reward\n1,a,b,0\n")
    with pytest.raises(InvalidLog, match=f"has a column '{name}', which for a query is the place"):
        read_log(tmp_path / "log.csv", query="FROM log")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n", "many"), ("n", 1.5), ("n", "1.5"), ("n", [1]), ("n", {}), ("n", 10**30),
        ("n", np.float64(0.5)), ("x", "1,5"), ("x", object()), ("x", 1j),
        ("t", "yesterday"), ("t", 3), ("a", "\ud800"),
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused_by_their_row_and_column(column, value):
    rows = rows_so_far(3)
    rows[1][column] = value
    with pytest.raises(InvalidParameter, match="row 2 has values of other types than the log: "):
        prepared_case(Query("SELECT *, x AS state FROM log"), KEYS, TYPES, rows)


def test_values_are_of_the_types_of_the_log():
    rows = rows_so_far(2)
    rows[1] |= {"n": np.int64(4), "x": "0.5", "a": 7, "t": datetime.datetime(2026, 1, 5)}
    sql = "SELECT row, e, s, a, n + 1 AS n, 2 * x AS state, a || '!' AS b FROM log"
    got = prepared_case(Query(sql, "e", "s"), KEYS, TYPES, rows)
    assert got == {"row": 2, "e": 5, "s": 1, "a": "7", "n": 5, "state": 1.0, "b": "7!"}
    del rows[1]["x"], rows[1]["a"]  # what is not known yet
    assert prepared_case(Query(sql, "e", "s"), KEYS, TYPES, rows)["state"] is None
    with pytest.raises(
        InvalidParameter, match=r"row 2: the log has no column 'xx'; did you mean x"
    ):
        prepared_case(Query(sql, "e", "s"), KEYS, TYPES, [rows[0], {"xx": 1}])


@pytest.mark.thorough
def test_states_of_all_types_are_called_in_act_as_in_the_log(tmp_path):
    values = (
        *("sum(i) OVER (ORDER BY i)", "i / 10::FLOAT", "i > 3", "i / 3", "[i]", "i::UBIGINT"),
        "TIMESTAMPTZ '2026-01-01 00:00:00Z' + INTERVAL (i) HOUR",
    )
    columns = {f"v{place}": value for place, value in enumerate(values)}
    rows = [{"who": "p", "i": i, "action": "a", "reward": i % 2} for i in range(8)]
    lines = (f"{','.join(map(str, row.values()))}\n" for row in rows)
    (tmp_path / "log.csv").write_text(f"who,i,action,reward\n{''.join(lines)}")
    made = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    sql = f"SELECT row, who AS episode, i AS step, {made}, action, reward FROM log"
    roles = {"state": tuple(columns)}
    source = read_log(tmp_path / "log.csv", query=sql, case="who", ends="complete", columns=roles)
    made, counts = source.table.made, source.counts()
    words = Vocabulary(roles["state"], ("action",), counts.states, counts.actions)
    for number in (1, 4, 8):
        now = prepared_case(Query(sql), made.keys, made.types, rows[:number])
        assert words.read("state", now)[2] in counts.states


@pytest.mark.thorough
def test_a_case_is_asked_for_where_rows_of_the_files_become_episodes(tmp_path):
    """Rows that are episodes of their own, or say what follows, need none."""
    path = tmp_path / "log.csv"
    path.write_text("who,day,ward,drug,gain,after\n" + "1,0,a,x,1,b\n1,1,b,y,0,a\n2,0,a,y,1,a\n")
    one = "SELECT row, ward AS state, drug AS action, gain AS reward FROM log"
    alone = read_log(path, query=one)
    assert (alone.columns.episode, alone.table.made.query.case) == ("(every row)", None)
    assert alone.counts().rows_read == 3
    told = one.replace("gain AS", "after AS next_state, false AS terminated, gain AS")
    following = read_log(path, query=told)
    assert (following.columns.episode, following.table.made.query.case) == (None, None)
    assert following.counts().rows_read == 3
    several = one.replace("row,", "row, who AS episode, day AS step, day = 1 AS terminated,")
    with pytest.raises(InvalidLog, match="nobody says which rows of the files belong together"):
        read_log(path, query=several)
    assert read_log(path, query=several, case="who").table.made.query.case == "who"
