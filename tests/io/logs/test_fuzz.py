"""Whatever stands in a log or in a file of counts, it is counted or refused: nothing else.

Each search is small here and large among the slow tests. A crash would end the test run itself.
"""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.junk import damaged
from support.log_tables import COLUMNS, write_table
from surestep.errors import SurestepError
from surestep.io import merge_counts, read_counts, read_log, write_counts
from surestep.io.sql import in_memory

small = settings(max_examples=settings.default.max_examples // 3)
large = settings(max_examples=400, deadline=None)
KINDS = (".csv", ".tsv", ".jsonl", ".parquet")
ODD = st.sampled_from(
    [
        *("", " ", "0", "-0", "+1", "1.", ".5", "1e5", "1e-400", "1e999", "nan", "inf", "-1"),
        *("2.0", "0x10", "1_000", "１", "1,5", "true", "F", "yes", "null", "None", "NA", "\\N"),
        *("9" * 40, "0." + "1" * 40, str(2**63), str(-(2**127)), "x" * 9000, "\U0001f600"),
        *('"', '""', "'", "a\nb", "a\r", "a\tb", "\ufeff", "é", "\0", "\u202e"),
        *("{}", "[1]", '{"a": 1}', "2020-01-01", "=1+1", "%s", "../..", "(end)"),
    ]
)
TEXTS = st.one_of(st.sampled_from(["0", "1", "2"]), ODD, st.text(max_size=4))
JSON = st.one_of(
    TEXTS,
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from([10**40, -(2**63), 2**64, 1e308, 5e-324, [], {}, [1, "a"], {"a": [None]}]),
)
TYPES = (
    *("TINYINT", "UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL(38, 10)", "BOOLEAN"),
    *("VARCHAR", "BLOB", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "UUID", "BIT"),
    *("INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "BIGINT", "DECIMAL(4, 1)"),
)


def attempt(path, **options):
    """Counts and loads a log as far as that goes; returns what is refused, in one line each."""
    told = []
    for verb in (lambda log: log.counts().to_counts(), lambda log: log.load()):
        try:
            verb(read_log(path, **options))
        except SurestepError as refusal:
            told.append(str(refusal).strip())
    assert "\n" not in "".join(told)
    return told


@st.composite
def plausible_rows(draw, values):
    """Rows of short episodes in which some cells are odd."""
    rows = [
        {
            **{"episode": e, "step": t, "state": f"s{t}", "action": f"a{e % 2}", "reward": 0.5},
            **{"next_state": f"s{t + 1}", "terminated": t == 1, "truncated": False},
        }
        for e in range(draw(st.integers(1, 3)))
        for t in range(2)
    ]
    for _ in range(draw(st.integers(0, 4))):
        row = draw(st.sampled_from(rows))
        row[draw(st.sampled_from(COLUMNS))] = draw(values)
    return rows


@st.composite
def options(draw):
    """Choices that change how a log is read."""
    found = {}
    if draw(st.booleans()):
        found["memory_limit"] = draw(st.sampled_from(["1GB", "100MB"]))
    if draw(st.integers(0, 3)) == 0:
        rules = [{"quantiles": 2}, {"edges": [0, 1]}, {"width": 0.5}, {"width": 1e-300}]
        found["bins"] = {draw(st.sampled_from(["state", "action"])): draw(st.sampled_from(rules))}
    return found


def texts_with_odd_cells(data, folder):
    kind = data.draw(st.sampled_from([".csv", ".tsv"]))
    columns = data.draw(st.permutations(COLUMNS))[: data.draw(st.integers(4, 8))]
    rows = data.draw(plausible_rows(TEXTS))
    separator = "\t" if kind == ".tsv" else data.draw(st.sampled_from([",", ";", ",,", "\t"]))
    lines = [separator.join(columns), *(separator.join(str(r[c]) for c in columns) for r in rows)]
    text = data.draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)
    path = folder / f"odd{kind}"
    path.write_bytes(
        data.draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe"])) + text.encode()
    )
    attempt(path, **data.draw(options()))


def lines_of_json_with_odd_cells(data, folder):
    path = write_table(folder / "odd.jsonl", data.draw(plausible_rows(JSON)))
    attempt(path, **data.draw(options()))


def parquet_of_odd_types(data, folder):
    path = write_table(folder / "plain.parquet", data.draw(plausible_rows(st.just(None))))
    changed = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    odd = folder / "odd.parquet"
    values = {
        name: f"TRY_CAST(({data.draw(st.sampled_from([name, '1', repr('1'), 'NULL']))})::VARCHAR "
        f"AS {data.draw(st.sampled_from(TYPES))}) AS {name}"
        for name in changed
    }
    with in_memory() as database:
        source = f"SELECT * REPLACE ({', '.join(values.values())}) FROM '{path}'"
        database.execute(f"COPY ({source}) TO '{odd}' (FORMAT parquet)")
    attempt(odd, **data.draw(options()))


def damaged_bytes(data, folder):
    kind = data.draw(st.sampled_from(KINDS))
    plain = write_table(folder / f"whole{kind}", data.draw(plausible_rows(st.just("0"))))
    path = folder / f"damaged{kind}"
    path.write_bytes(damaged(data, plain.read_bytes()))
    attempt(path)


def any_bytes(data, folder):
    """No file at all, or a good first line and signs that mean something in one."""
    signs = st.text(st.sampled_from('01,"\n\r;ab\t .{}:[]'), max_size=80)
    tables = signs.map(lambda text: f"state,action,reward,next_state\n{text}".encode())
    path = folder / f"any{data.draw(st.sampled_from([*KINDS, '.txt', '.csv.gz', '.xes']))}"
    path.write_bytes(data.draw(st.one_of(st.binary(max_size=200), tables)))
    assert all(path.name in refusal for refusal in attempt(path))


# ---- files of counts --------------------------------------------------------------------------


FORGED = st.sampled_from(
    [
        *("NULL", "0", "-1", "2", "1e300", "'x'", "''", "true", "false", "'nan'", "[1]"),
        *("{'a': 1}", "9223372036854775807", "-9223372036854775808", "9" * 38),
    ]
)
WORDS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 40), st.floats(), st.text(max_size=3),
    st.sampled_from([10**30, [], {}, ["a", "a"], ["b", "a"], {"a": -1}, [[]], [None], "x" * 9000]),
)  # fmt: skip


def good_counts(folder):
    """A file of counts with propensities."""
    rows = [
        {
            **{"episode": e, "step": t, "state": f"s{t}", "action": f"a{e % 2}", "reward": e / 2},
            **{"terminated": t == 1, "behavior_prob": 0.5},
        }
        for e in range(3)
        for t in range(2)
    ]
    path = folder / "good.parquet"
    if not path.exists():
        log = write_table(folder / "log.csv", rows, tuple(rows[0]))
        write_counts(read_log(log).counts(), path)
    return path


def attempt_counts(path, folder):
    """Reads, merges and writes counts as far as that goes; what is refused names the file."""
    try:
        counts = read_counts(path)
    except SurestepError as refusal:
        assert path.name in str(refusal)  # noqa: PT017
        return
    try:
        counts.to_counts()
        merge_counts([counts, dataclasses.replace(counts, sources=())])
        write_counts(counts, folder / "again.parquet")
    except SurestepError:
        return


def damaged_counts(data, folder):
    path = folder / "damaged.parquet"
    path.write_bytes(damaged(data, good_counts(folder).read_bytes()))
    attempt_counts(path, folder)


def forged_counts(data, folder):
    """Other numbers in some rows, and another word in the manifest."""
    good, path = good_counts(folder), folder / "forged.parquet"
    with in_memory() as database:
        described = database.execute(f"DESCRIBE FROM '{good}'").fetchall()
        ((text,),) = database.execute(
            f"SELECT value FROM parquet_kv_metadata('{good}') WHERE key = 'surestep'"
        ).fetchall()
        manifest = json.loads(bytes(text)) | {"version": 6}  # whose files have no digest
        del manifest["digest"]
        if data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(manifest)))
            manifest[name] = data.draw(WORDS)
            if data.draw(st.integers(0, 4)) == 0:
                del manifest[name]
        cells = []
        for name, kind, *_ in data.draw(
            st.lists(st.sampled_from(described), max_size=2, unique_by=lambda row: row[0])
        ):
            value, kept = data.draw(FORGED), data.draw(st.sampled_from([kind, "VARCHAR", "DOUBLE"]))
            where = data.draw(st.sampled_from(["true", "kind = 'transition'", "kind = 'state'"]))
            cells.append(
                f"CASE WHEN {where} THEN TRY_CAST(({value})::VARCHAR AS {kept}) "
                f'ELSE TRY_CAST("{name}" AS {kept}) END AS "{name}"'
            )
        replaced = f" REPLACE ({', '.join(cells)})" if cells else ""
        words = json.dumps(manifest).replace("'", "''")
        database.execute(
            f"COPY (SELECT *{replaced} FROM '{good}') TO '{path}' "
            f"(FORMAT parquet, KV_METADATA {{surestep: '{words}'}})"
        )
    attempt_counts(path, folder)


SEARCHES = (
    *(texts_with_odd_cells, lines_of_json_with_odd_cells, parquet_of_odd_types, damaged_bytes),
    *(any_bytes, damaged_counts, forged_counts),
)


@pytest.mark.one_quick
@pytest.mark.parametrize("search", SEARCHES)
@small
@given(data=st.data())
def test_any_file_is_read_or_refused(search, folder, data):
    search(data, folder)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@large
@given(data=st.data())
def test_any_file_is_read_or_refused_at_length(search, folder, data):
    search(data, folder)
