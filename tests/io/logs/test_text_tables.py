"""Tables as text, compressed or not: written in any way, they are one log; and what is refused."""

import csv
import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import COLUMNS, digest_of, rows_of, write_table
from support.strategies import decision_logs
from surestep.description import Reader
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io import read_log
from surestep.io.logs import formats
from surestep.io.logs.formats import checked_names, header_of, zstd

HEADER = "state,action,reward,next_state"
LINES = [HEADER, "a,x,1,b", "b,y,2,a"]
SIGNS = {".csv": ",;|\t", ".txt": ",;|\t", ".tsv": "\t", ".psv": "|"}


def write(path, rows, delimiter=","):
    """Rows of texts as a file, compressed as its name says."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return pack(path, out.getvalue().encode())


def pack(path, content):
    """A file with this content, compressed as its name says."""
    compress = {".gz": gzip.compress, ".zst": zstd.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(content))
    return path


def lines(*given):
    return "".join(f"{line}\n" for line in given).encode()


@settings(max_examples=3)
@given(
    log=decision_logs(rewards=st.integers(-5, 5).map(float)),
    packed=st.sampled_from(["", ".gz", ".zst"]),
    index=st.booleans(),
    data=st.data(),
)
def test_however_it_is_written_it_is_the_same_log(log, packed, index, data, folder):
    rows = rows_of(log)
    ending = data.draw(st.sampled_from([*SIGNS]))
    delimiter = data.draw(st.sampled_from(SIGNS[ending]))
    usual = write(folder / "usual.csv", [COLUMNS, *([row[c] for c in COLUMNS] for row in rows)])
    cut = data.draw(st.integers(0, len(rows)))
    parts = []
    for number, part in enumerate((rows[:cut], rows[cut:])):
        order = data.draw(st.permutations(COLUMNS))
        table = [order, *([row[name] for name in order] for row in part)]
        if index:
            table = [["" if i == 0 else i - 1, *row] for i, row in enumerate(table)]
        parts.append(write(folder / f"part{number}{ending}{packed}", table, delimiter))
    assert digest_of(read_log(parts).counts()) == digest_of(read_log(usual).counts())


def test_an_episode_may_go_on_in_a_file_with_other_columns(tmp_path):
    first = pack(tmp_path / "a.csv", lines("episode,step,state,action,reward", "1,0,a,x,1"))
    then = lines(
        "note,reward,action,state,step,episode", "n,2,y,b,1,1", "n,3,z,c,2,1", "n,4,x,d,0,0"
    )
    source = read_log([first, pack(tmp_path / "b.csv", then)], ends="clock")
    counts, log = source.counts(), source.load()
    assert (counts.episodes.recorded, counts.rows_read) == (2, 4)
    assert counts.starts.tolist() == [1, 0, 0, 1]
    assert log.reward.tolist() == [1, 2]  # where the last steps led, nobody knows


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["", "a"], ("Unnamed: 0", "a")),
        (["", "Unnamed: 0", "a", ""], ("Unnamed: 0.1", "Unnamed: 0", "a", "Unnamed: 3")),
    ],
)
def test_columns_without_a_name_are_called_as_pandas_calls_them(names, expected):
    assert checked_names("log.csv", names) == expected


@pytest.mark.parametrize(
    ("name", "given", "delimiter"),
    [
        ("a.csv", ["a,b", "1,2"], ","),
        ("a.csv", ["a;b|c;d", "1;2|3"], ";"),
        ("a.csv", ['a,"b;c",d', "1,2,3"], ","),
        ("a.csv", ["a,b;c,d", "1,2;5,3"], ","),
        ("a.csv", ["a;b;c (x, y)", "1;2;3"], ";"),
        ("a.txt", ["a\tb", "1,5\t2"], "\t"),
        ("a.txt", ["a"], ","),
        ("a.tsv", ["a,b"], "\t"),
    ],
)
def test_the_first_lines_tell_what_is_between_columns(name, given, delimiter, folder):
    path = pack(folder / name, lines(*given))
    assert header_of(path, Reader()).delimiter == delimiter


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_columns_that_only_some_files_have_are_named_where_they_are_needed(kind, tmp_path):
    def log(name, **more):
        row = {"state": name, "action": "x", "reward": 1, "next_state": name} | more
        return write_table(tmp_path / f"{name}{kind}", [row], tuple(row))

    plain, odd, flagged = log("plain"), log("odd", note="n"), log("flagged", truncated=True)
    assert len(read_log([plain, odd]).counts().states) == 2
    assert len(read_log([odd, plain]).counts().states) == 2
    for pair in ([plain, flagged], [flagged, plain]):
        with pytest.raises(InvalidLog, match=r"plain\.\w+, row 1, column 'truncated': found noth"):
            read_log(pair).counts()


def test_a_damaged_file_of_gzip_is_refused(folder):
    content = bytearray(gzip.compress(lines(*LINES), 0))
    content[content.index(b"b,y,2,a")] = ord("c")
    path = folder / "damaged.csv.gz"
    path.write_bytes(bytes(content))
    with pytest.raises(InvalidLog, match=r"damaged\.csv\.gz is cut short or damaged"):
        read_log(path).counts()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", lines(*LINES, "a,x,1,5,b"), r"line 4: found 5 values, expected 4, .*'a,x,1,5,b'"),
        ("a.csv.gz", lines(*LINES, "a,x,1"), "line 4: found 3 values, expected 4, .*: 'a,x,1'"),
        ("a.csv", lines(*LINES, '"a,x,1,b'), "Line: 4; .*; Value with unterminated quote found"),
        ("a.csv", lines(*LINES) + b"\xff,x,1,b\n", "This file is not utf-8 encoded"),
        ("a.csv.gz", b"", "is empty, expected a first line"),
        ("a.csv.zst", b"", "is empty, expected a first line"),
        ("a.csv", lines("a,b,A"), "line 1: column 'A' is given twice"),
        ("a.csv", lines('a,"b', 'c",d'), "line 1 has no names of columns: unexpected end of data"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(name, content, message, folder):
    path = pack(folder / name, content)
    with pytest.raises(InvalidLog, match=message) as refused:
        read_log(path).counts()
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zst", ".jsonl.gz"])
@settings(max_examples=2)
@given(share=st.floats(0.1, 0.999))
def test_a_compressed_file_that_is_cut_short_is_refused(ending, share, folder):
    rows = lines(*LINES, *(f"s{i},x,{i},t{i * i}" for i in range(500)))
    if "jsonl" in ending:
        row = '{"state": "s%d", "action": "x", "reward": %d, "next_state": "a"}'
        rows = lines(*(row % (i, i) for i in range(500)))
    path = pack(folder / f"cut{ending}", rows)
    assert read_log(path).counts().rows_read >= 500
    content = path.read_bytes()
    path.write_bytes(content[: max(5, int(share * len(content)))])
    with pytest.raises(InvalidLog, match=r"cut\..* is cut short or damaged; copy"):
        read_log(path).counts()


def test_a_zstandard_file_may_have_several_frames_and_none_is_cut(folder):
    """DuckDB takes a frame that stops early for a whole one, and its rows for all."""
    content = pack(folder / "whole.csv.zst", lines(*LINES)).read_bytes()
    empty_skippable = bytes.fromhex("502a4d1800000000")
    path = folder / "some.csv.zst"
    for whole in (content, content + content, empty_skippable + content):
        path.write_bytes(whole)
        formats.check_whole([path])
    for size in range(1, len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(InvalidLog, match="is cut short or damaged"):
            formats.check_whole([path])


def test_names_must_say_how_files_are_compressed(folder):
    plain = folder / "plain.csv.gz"
    plain.write_bytes(lines(*LINES))
    with pytest.raises(InvalidLog, match=r"plain\.csv\.gz is cut short or damaged"):
        read_log(plain)
    packed = folder / "packed.csv"
    packed.write_bytes(gzip.compress(lines(*LINES)))
    with pytest.raises(InvalidLog, match=r"packed\.csv, line 1 is not UTF-8"):
        read_log(packed)
    with pytest.raises(InvalidParameter, match=r"no known ending, expected \.csv, .*\.jsonl\.zst"):
        read_log(pack(folder / "log.parquet.gz", b""))


def test_a_table_and_its_compressed_copy_are_not_one_log(tmp_path):
    for name in ("log.csv", "log.csv.gz"):
        pack(tmp_path / name, lines(*LINES))
    (tmp_path / "readme.txt").write_text("Not a log.")
    with pytest.raises(InvalidLog, match="are one table by their names"):
        read_log(tmp_path)
    (tmp_path / "log.csv").unlink()
    assert read_log(tmp_path).counts().rows_read == 2


def test_compressed_files_without_rows_are_no_copies_of_each_other(tmp_path):
    for name in ("a.csv.zst", "b.csv.zst"):
        pack(tmp_path / name, lines(HEADER))
    pack(tmp_path / "c.csv.zst", lines(*LINES))
    assert len(read_log(tmp_path).counts().sources) == 1
