"""Counts and stacks that a warehouse makes: the claim that is made from rows, to the byte."""

import hashlib
import sys
from collections import Counter

import duckdb
import numpy as np
import pytest

import surestep
from support.pump_commands import run_surestep
from support.warehouses import (
    Duck,
    Lite,
    Postgres,
    first_entries,
    postgres,
    postgres_program,
    rows_of,
    save,
    write_log,
)
from surestep.errors import InvalidCounts, InvalidLog, InvalidParameter
from surestep.io.logs.warehouse import queries_for, read_tables

pytest.importorskip("sqlglot", reason="needs the extra: pip install '.[warehouse]'")

ROLES = {"state": ["ward", "mood"], "time": "moment"}
TERMS = {"discount": 0.9, "running": (0, 1), "ending": (0, 1), "worlds": 0}
QUICK = {"algorithm": "spibb:n_wedge=5", "certificates": ["stitched:series=64", "posterior"]}
SHARE = 0.3
GAP = """DELETE FROM log
WHERE step = 1 AND episode = (SELECT min(episode) FROM log WHERE step = 2)"""
LABELS = ("state__ward", "state__mood", "action__action")


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL of our own."""
    if not all(map(postgres_program, ("initdb", "pg_ctl", "psql"))):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres() as socket:
        yield socket


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="PostgreSQL is asked on Linux")
def test_all_tests_include_a_real_postgres():
    """Where only some tests run, it may be missing."""
    assert all(map(postgres_program, ("initdb", "pg_ctl", "psql"))), "apt-get install postgresql"


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def engine(request):
    """Makes an engine that holds rows."""
    if request.param == "postgres":
        socket = request.getfixturevalue("server")
        return lambda rows: Postgres(socket, rows)
    return {"duckdb": Duck, "sqlite": Lite}[request.param]


@pytest.fixture(scope="module")
def rows():
    """Decisions of several episodes lie between each other."""
    return rows_of(150, np.random.default_rng(3), between=True)


@pytest.fixture(scope="module")
def log(rows, tmp_path_factory):
    """The rows as a file."""
    return write_log(tmp_path_factory.mktemp("log"), rows)


def tables(made, log, folder, most, **more):
    """The files of both tables that an engine makes of its log."""
    source = surestep.read_log(log, columns=ROLES, **more)
    for table in ("counts", "entries"):
        made.run(f"DROP TABLE IF EXISTS surestep_{table}")
    made.run(queries_for(source, made.dialect, table="log", most=most))
    return save(made, folder)


def improved(source, **more):
    return surestep.improve(source, **TERMS | QUICK | more)


def answers(made, query):
    """The rows of an answer, by the names of their columns."""
    names, found = made.answer(query)
    return [dict(zip(names, row, strict=True)) for row in found]


@pytest.mark.thorough
def test_all_rows_give_the_claim_of_the_log_to_the_byte(engine, rows, log, tmp_path):
    mixed = np.random.default_rng(0).permutation(len(rows))  # a table has no order
    files = tables(engine([rows[i] for i in mixed]), log, tmp_path, 10_000)
    there, here = improved(files), improved(log, columns=ROLES, train_share=SHARE)
    assert [one.lower for one in there.certificates] == [one.lower for one in here.certificates]
    assert there.certificate.figures == here.certificate.figures
    assert there.certificate.figures["rounds"] > 5
    assert there.table.probability.tolist() == here.table.probability.tolist()


@pytest.mark.one_quick
def test_entries_are_the_first_of_every_stack(engine, rows, log, tmp_path):
    made = engine(rows)
    tables(made, log, tmp_path, 20)
    sizes, stacks, began = first_entries(rows, SHARE, 9, 20)
    there = {}
    for row in answers(made, "SELECT * FROM surestep_entries ORDER BY decided, step"):
        if row["decided"] is not None:
            ahead = (row["next_state__ward"], row["next_state__mood"])
            entry = float(row["reward"]), ahead if ahead[0] else None, int(row["terminated"])
            there.setdefault((row["part"], tuple(row[x] for x in LABELS)), []).append(entry)
    assert there == stacks
    assert max(sizes.values()) > 20  # some stacks are longer than their entries
    counted = Counter()
    for row in answers(made, "SELECT * FROM surestep_counts"):
        stopped = int(row["truncated"]) and not int(row["terminated"])
        counted[row["part"], tuple(row[x] for x in LABELS)] += 0 if stopped else int(row["times"])
    assert counted == sizes
    columns = '"state__ward", "state__mood"'
    _, starts = made.answer(
        f"SELECT part, {columns} FROM surestep_entries WHERE decided IS NULL ORDER BY begun"
    )
    distinct = len({state for several in began.values() for state in several})
    for part, limit in (("choosing", 9), ("judging", 20)):
        assert [row[1:] for row in starts if row[0] == part] == began[part][: limit * distinct]


def check_same_log(files, source):
    """Compares what both tables hold with the log that is read from its rows."""
    made, counts = read_tables(files), source.counts()
    assert made.complete
    for name in (
        "states",
        "actions",
        "rows_read",
        "dropped",
        "episodes",
        "dropped_rewards",
        "scale",
    ):
        assert getattr(made.counts, name) == getattr(counts, name), name
    assert made.counts.starts.tolist() == counts.starts.tolist()
    for ours, theirs in zip(made.counts.transitions[:8], counts.transitions[:8], strict=True):
        assert ours.tolist() == theirs.tolist()
    pairs = counts.to_counts().pairs
    ours, theirs = made.load(pairs), source.load(pairs, counts)
    for name in ("state", "action", "reward", "next_state", "terminated", "truncated"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
    assert ours.episode_offsets.tolist() == theirs.episode_offsets.tolist()
    assert ours.order.tolist() == theirs.order.tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [None, "complete"])
def test_what_is_said_of_ends_holds_in_the_warehouse(rows, tmp_path, ends):
    log = write_log(tmp_path, rows, but=["terminated", "truncated"] if ends else [])
    files = tables(Duck(rows), log, tmp_path, 10_000, ends=ends)
    check_same_log(files, surestep.read_log(log, columns=ROLES, ends=ends))


@pytest.mark.thorough
def test_next_states_may_have_columns_of_their_own(rows, tmp_path):
    log = write_log(tmp_path, rows, ahead=True)
    made = Duck(rows)
    made.database.execute(f"CREATE OR REPLACE TABLE log AS FROM '{log}'")
    check_same_log(tables(made, log, tmp_path, 10_000), surestep.read_log(log, columns=ROLES))
    made.database.execute("UPDATE log SET next_mood = 'odd' WHERE episode = 'e7' AND step = 0")
    with pytest.raises(InvalidCounts, match=r"1 rows? of the log cannot be used"):
        read_tables(tables(made, log, tmp_path, 10_000))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("spoilt", "odd"),
    [
        (GAP, 1),
        ("UPDATE log SET terminated = 1 WHERE step = 0", None),
        ("UPDATE log SET reward = NULL WHERE step = 0 AND episode = 'e3'", 1),
        ("UPDATE log SET mood = NULL WHERE step = 0 AND episode = 'e3'", 1),
        ("INSERT INTO log SELECT * FROM log WHERE step = 0 AND episode = 'e3'", 1),
    ],
)
def test_rows_that_cannot_be_used_are_told(rows, log, tmp_path, spoilt, odd):
    """A gap, an end on the way, a missing value, and a row that is there twice."""
    made = Duck(rows)
    made.run(spoilt)
    if odd is None:
        odd = sum(row[1] == 1 for row in rows)
    with pytest.raises(InvalidCounts, match=f"^{odd} rows of the log cannot be used"):
        read_tables(tables(made, log, tmp_path, 10_000))


@pytest.mark.thorough
def test_first_entries_prove_without_whole_episodes(tmp_path):
    """The counts are those of all rows, so that all that rests on counts stays the same."""
    rows = rows_of(150, np.random.default_rng(3), between=False)  # numbered by the first entries
    log = write_log(tmp_path, rows)
    there = improved(tables(Duck(rows), log, tmp_path, 30))
    here = improved(log, columns=ROLES, train_share=SHARE)
    assert there.certificate.standing == "proved"
    assert there.table.behavior.tolist() == here.table.behavior.tolist()
    assert there.table.visits.tolist() == here.table.visits.tolist()
    claims, theirs = there.certificates, here.certificates
    assert claims[1].lower == pytest.approx(theirs[1].lower, abs=1e-9)
    assert 0 < claims[0].figures["rounds"] < theirs[0].figures["rounds"]
    assert claims[0].figures["steps"] < theirs[0].figures["steps"]
    assert there.record.baseline is None
    assert "episodes_for_proof" not in there.record.estimates  # more entries may be enough
    why = {check.why for check in there.record.checks if check.outcome == "unchecked"}
    assert "no-episodes" in why  # nothing is said of what only rows can show
    assert there.record.data == here.record.data
    assert "Counts alone" not in there.report


@pytest.mark.thorough
def test_verify_makes_a_result_of_tables_again(rows, log, tmp_path):
    files = tables(Duck(rows), log, tmp_path, 30)
    result = improved(files)
    result.save(tmp_path / "result")
    assert run_surestep("verify", tmp_path / "result", *files).exit_code == 0
    other = tables(Duck(rows[:-9]), log, tmp_path, 30)
    assert run_surestep("verify", tmp_path / "result", *other).exit_code != 0


@pytest.mark.one_quick
def test_a_sample_has_a_fifth_of_the_episodes_whole_and_is_the_same_everywhere(engine, log):
    """The query of `count --sql`: by a hash of the id, which no engine computes otherwise."""
    rows = [
        (f"patient {e}", step, *["2025-03-01", "w", "m", "a", 1, 0, 0])
        for e in range(400)
        for step in (0, 1)
    ]
    made = engine(rows)
    source = surestep.read_log(log, columns=ROLES)
    script = queries_for(source, made.dialect, table="log", most=9)
    query = next(line for line in script.splitlines() if "SELECT" in line).removeprefix("-- ")
    kept = Counter(row["episode"] for row in answers(made, query))
    assert set(kept.values()) == {2}
    digests = {f"patient {e}": hashlib.md5(f"patient {e}".encode()).hexdigest() for e in range(400)}
    assert {*kept} == {name for name, digest in digests.items() if int(digest[:2], 16) < 51}
    assert abs(len(kept) - 400 * 51 / 256) < 5 * (400 * 0.2 * 0.8) ** 0.5


def test_commands_go_from_a_sample_to_a_claim(rows, log, tmp_path):
    options = ("--state", "ward", "--state", "mood", "--set", "columns.time=moment")
    printed = run_surestep("count", log, *options, "--sql", "duckdb", "--entries", 25)
    assert printed.exit_code == 0
    made = Duck(rows)
    made.run(printed.output)
    files = save(made, tmp_path)
    earns = ("--discount", 0.9, "--running", 0, 1, "--ending", 0, 1, "--worlds", 0)
    earns += ("--kind", "stitched:series=64", "--set", "method.algorithm=spibb:n_wedge=5")
    result = run_surestep("improve", *files, *earns, "-o", tmp_path / "result")
    assert result.exit_code == 0
    assert "Not stress tested: none was asked for." in result.output
    assert surestep.load(tmp_path / "result").certificate.figures["steps"] <= 25 * 6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a table in a warehouse has no order; expected columns that say"),
        ({"time": "moment", "bins": 1}, "the log has bins, which queries for a warehouse leave"),
        ({"time": "moment", "memory": 1}, "the log has a memory, which queries"),
        (
            {"time": "moment", "ends": "clock"},
            "a view whose column `truncated` marks the last rows",
        ),
        ({"time": "moment", "ends": "random"}, r'the log has ends = "random", which queries'),
        ({"time": "moment", "dialect": "sqlit"}, "no dialect 'sqlit'; did you mean sqlite"),
    ],
)
def test_what_queries_cannot_do_is_refused(log, given, message):
    bins = {"ward": {"edges": [1]}} if "bins" in given else None
    columns = {"state": ["ward", "mood"]} | ({"time": "moment"} if "time" in given else {})
    more = {name: given.get(name) for name in ("memory", "ends")}
    source = surestep.read_log(log, columns=columns, bins=bins, **more)
    with pytest.raises(InvalidParameter, match=message):
        queries_for(source, given.get("dialect", "duckdb"), table="log", most=9)


def test_whole_numbers_are_no_times_neither_in_rows_nor_in_tables():
    frame = {"episode": [1, 1], "step": [0, 1], "state": ["a", "b"], "action": ["x", "y"]}
    frame |= {"reward": [0, 1], "terminated": [False, True], "when": [17, 18]}
    source = surestep.read_log(frame, columns={"time": "when"})
    for refusing in (source.counts, lambda: queries_for(source, "duckdb", table="log", most=9)):
        with pytest.raises(InvalidLog, match="row 1, column 'when': found '17', expected a time"):
            refusing()


@pytest.mark.parametrize("dialect", ["bigquery", "databricks", "redshift", "snowflake", "trino"])
def test_queries_are_said_in_other_dialects_without_a_doubt(log, dialect, caplog):
    source = surestep.read_log(log, columns=ROLES)
    assert "md5" in queries_for(source, dialect, table="a.log", most=9).lower()
    assert not caplog.records


@pytest.mark.thorough
def test_tables_that_do_not_fit_are_refused(rows, log, tmp_path):
    made = Duck(rows)
    counts, entries = tables(made, log, tmp_path, 30)
    with pytest.raises(InvalidCounts, match="expected the two tables"):
        improved([counts])
    with pytest.raises(InvalidCounts, match="expected the two tables"):
        improved([counts, entries, log])
    made.run("DELETE FROM surestep_entries WHERE step = 2")
    with pytest.raises(InvalidCounts, match="the entries are not those of the counts"):
        improved(save(made, tmp_path))
    files = tables(made, log, tmp_path, 30)
    read_tables(files)
    made.run("UPDATE surestep_counts SET most = 31")
    with pytest.raises(InvalidCounts, match="expected both tables of the same queries"):
        improved([save(made, log.parent)[0], files[1]])
    with pytest.raises(InvalidParameter, match=r"split after the first 0\.3 of the episodes"):
        improved(files, train_share=0.4)
    with pytest.raises(InvalidParameter, match="trajectory looks at whole episodes"):
        improved(files, certificates=["trajectory"])


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"], indirect=True)
def test_tables_count_the_ties_that_the_log_has(engine, rows, tmp_path):
    """By the day; the last three lie on days of their own."""
    *days, one, other, last = [(*row[:2], f"{row[2][:10]} 00:00:00", *row[3:]) for row in rows]
    days += [
        (*x[:2], f"2025-04-0{i} 00:00:00", *x[3:]) for i, x in enumerate((one, other, last), 1)
    ]
    log = write_log(tmp_path, days)
    files = tables(engine(days), log, tmp_path, 30)
    by_day = Counter(day for _, day in {(row[0], row[2]) for row in days})  # of how many episodes
    tied = sum(by_day[row[2]] > 1 for row in days)
    assert 0 < tied <= len(days) - 3
    assert read_tables(files).tied == surestep.read_log(log, columns=ROLES).tied() == tied
    result = surestep.improve(files, **TERMS, **QUICK)
    (told,) = [check for check in result.record.checks if check.code == "tied-times"]
    assert told.figures == {"tied": tied}
    with duckdb.connect() as database:  # tables of older queries do not say
        older = tmp_path / "older.parquet"
        database.execute(f"COPY (SELECT * EXCLUDE tied FROM '{files[0]}') TO '{older}'")
    assert read_tables([older, files[1]]).tied == 0


CONTRADICTIONS = (
    "UPDATE surestep_entries SET reward = 1000 WHERE step = 2",
    "UPDATE surestep_entries SET reward = 1 - reward WHERE step = 2",
    "UPDATE surestep_entries SET reward = NULL WHERE step = 2",
    "UPDATE surestep_entries SET terminated = 1 - terminated WHERE step = 2",
    "UPDATE surestep_entries SET next_state__mood = 'other' WHERE step = 2",
    "UPDATE surestep_entries SET step = step + 1",
    "UPDATE surestep_entries SET state__mood = 'other' WHERE step IS NULL",
    "DELETE FROM surestep_entries WHERE step IS NULL AND begun % 2 = 0",
    "UPDATE surestep_counts SET reward_sum = reward_sum + 1000",
    "UPDATE surestep_counts SET least_reward = greatest_reward",
    "UPDATE surestep_counts SET greatest_reward = least_reward",
    "UPDATE surestep_counts SET begins = 1 - begins",
    "UPDATE surestep_counts SET least_reward = NULL",
    "UPDATE surestep_entries SET begun = 1 WHERE step IS NOT NULL",
    "UPDATE surestep_entries SET begun = NULL WHERE step IS NOT NULL",
    "UPDATE surestep_entries SET decided = 1 WHERE step IS NOT NULL",
)


@pytest.mark.thorough
@pytest.mark.parametrize("most", [30, 10_000])
def test_entries_that_contradict_the_counts_beside_them_are_refused(rows, log, tmp_path, most):
    """All entries, or the first of each pair, which have to fit into what the counts leave."""
    made = Duck(rows)
    read_tables(tables(made, log, tmp_path, most))
    for change in CONTRADICTIONS:
        made.run("BEGIN")
        made.run(change)
        with pytest.raises(InvalidCounts, match="the entries contradict the counts"):
            read_tables(save(made, tmp_path))
        made.run("ROLLBACK")
