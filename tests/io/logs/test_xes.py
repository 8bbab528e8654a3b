"""XES event logs count as the table of their events, and what is no such log is refused."""

import gc
import gzip
import re
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_tables import COLUMNS, digest_of, rows_of, write_table
from support.pump_commands import run_surestep
from support.strategies import decision_logs
from surestep.errors import InvalidLog
from surestep.io import read_log
from surestep.io.logs.formats import OWN, PIECE
from surestep.pipeline.verify import verify_result

BEGIN = '<?xml version="1.0" encoding="UTF-8"?>\n<log xmlns="http://www.xes-standard.org/">'
EVENT = (
    '<string key="state" value="a"/><string key="action" value="x"/><int key="reward" value="1"/>'
)
TWO = f"{BEGIN}<trace><event>{EVENT}</event><event>{EVENT}</event></trace></log>"


def element(tag, key, value, within=""):
    return f"<{tag} key={quoteattr(key)} value={quoteattr(str(value))}>{within}</{tag}>"


def written(rows, prefix=""):
    """Rows as an event log, between things that others write too."""
    parts = [BEGIN, '<extension name="Concept" prefix="concept" uri="http://nowhere"/>']
    parts.append('<global scope="event"><string key="state" value="UNKNOWN"/></global>')
    parts.append('<classifier name="Activity" keys="action"/><string key="by" value="&lt;us&gt;"/>')
    named = {}
    for row in rows:
        named.setdefault(row["episode"], []).append(row)
    for name, steps in named.items():
        parts.append(f"<trace>{element('string', 'concept:name', name)}\n")
        for row in steps:
            nested = element("string", "inner", "x")
            values = [element("string", key, row[key], nested) for key in COLUMNS if key not in OWN]
            parts.append(f"<event><!-- one -->{''.join(values)}</event>\n")
        parts.append("</trace>\n")
    text = "".join([*parts, "</log>"])
    return re.sub("<(/?)([a-z])", rf"<\1{prefix}\2", text)


@settings(max_examples=3)
@given(
    log=decision_logs(rewards=st.integers(-5, 5).map(float)),
    words=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=5),
    packed=st.booleans(),
)
def test_events_count_as_the_rows_of_their_table(log, words, packed, folder):
    rows = [
        row | {"state": words + row["state"], "next_state": words + row["next_state"]}
        for row in rows_of(log)
    ]
    usual = read_log(write_table(folder / "usual.csv", rows)).counts()
    path = folder / ("log.xes.gz" if packed else "log.xes")
    content = written(rows).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    source = read_log(path)
    assert digest_of(source.counts()) == digest_of(usual)
    assert "case:concept:name" in source.types


def test_columns_are_named_by_keys(folder):
    path = folder / "odd.xes"
    path.write_text(
        f"{BEGIN}<trace>{element('int', 'amount', 7)}<event>{element('string', 'tags', 'é')}"
        f"<list key='none'/>{element('string', 'k', 1)}</event><event/>"
        f"{element('string', 'late', 1)}</trace><trace/></log>",
        encoding="utf-8",
    )
    roles = {"state": "tags", "action": "k", "reward": "case:amount"}
    source = read_log(path, columns=roles, ends="clock")
    assert list(source.types)[:-1] == [
        *("episode", "step", "last_event", "case:amount", "case:late", "tags", "k")
    ]
    with pytest.raises(InvalidLog, match=r"odd\.xes, row 2, column 'tags': found nothing"):
        source.counts()
    shown = run_surestep("inspect", path, "--state", "tags", "--action", "k", "--reward", "k")
    assert shown.exit_code == 0
    assert "episode odd.xes, trace 1" in " ".join(shown.output.split())  # wherever lines end


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "trace 0: found no element found"),
        (TWO[: TWO.rindex("<event>") + 9], "found unclosed token.*; copy or export it again"),
        ("state,action\n", "found syntax error: line 1, column 0"),
        (TWO.replace("</event>", "", 1), "mismatched tag"),
        (TWO.replace('"a"', '"&a;"'), "undefined entity"),
        ('<!DOCTYPE log SYSTEM "file:///etc/passwd"><log/>', r"found a document type \(DTD\)"),
        ('<!DOCTYPE l [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><log>&c;</log>', "document type"),
        (f"<html>{TWO[TWO.index('<log') :]}</html>", "found events outside of traces, or another"),
        (f"{BEGIN}</log>", "found no trace, expected at least one"),
        (TWO.replace("<trace>", "<event/><trace>"), "trace 1: found events outside of traces"),
        (TWO.replace('"action"', '"state"'), "found 'state' twice, or in other letters"),
    ],
)
def test_what_is_no_event_log_is_refused(content, message, folder):
    path = folder / "bad.xes"
    path.write_text(content)
    with pytest.raises(InvalidLog, match=message) as refused:
        read_log(path)
    assert str(refused.value).startswith(str(path))


LAUGHS = '<!DOCTYPE l [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><log>&c;</log>'


@pytest.mark.parametrize(
    "content",
    [
        LAUGHS.encode("utf-16"),
        f'<?xml version="1.0" encoding="utf-16"?>{LAUGHS}'.encode("utf-16"),
        *((f"<!--{' ' * (PIECE - most)}-->{LAUGHS}".encode()) for most in range(8, 18)),
    ],
)
def test_document_types_are_refused_in_any_encoding_and_anywhere(content, folder):
    (folder / "bad.xes").write_bytes(content)
    with pytest.raises(InvalidLog, match=r"bad\.xes, trace 0: found a document type \(DTD\)"):
        read_log(folder / "bad.xes")


def test_words_about_document_types_are_none(folder):
    path = folder / "fine.xes"
    path.write_text(TWO.replace("<log", "<!-- <!DOCTYPE log> --><log", 1))
    assert read_log(path, ends="complete").counts().rows_read == 2


def test_a_packed_log_that_is_cut_short_is_refused(folder):
    path = folder / "cut.xes.gz"
    path.write_bytes(gzip.compress(TWO.encode())[:-9])
    refused = run_surestep("count", path, "-o", folder / "none.parquet")
    assert refused.exit_code == 2
    assert "is cut short" in " ".join(refused.stderr.split())
    with pytest.raises(InvalidLog, match="is cut short"):  # or is of another kind than it says
        read_log(path.rename(folder / "log.xes.zst"))


def test_files_of_different_attributes_are_one_log(folder):
    rows = [
        {"episode": f"e{i}", "step": 0, "state": "s", "action": "a", "reward": 1}
        | {"next_state": "s", "terminated": True, "truncated": False}
        for i in range(4)
    ]
    first, second = folder / "first.xes", folder / "second.xes"
    first.write_text(written(rows[:2]))
    other = written(rows[2:], "xes:").replace('key="state"', 'key="other"', 2)
    second.write_text(other.replace("xmlns=", "xmlns:xes="))
    source = read_log([first, second])
    assert "other" in source.types
    with pytest.raises(InvalidLog, match=r"second\.xes, row 1, column 'state': found nothing"):
        source.counts()


@pytest.mark.thorough
def test_a_result_of_events_is_made_again_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "log.xes"
    trace = f"<trace>{f'<event>{EVENT}</event>' * 3}</trace>"
    path.write_text(f"{BEGIN}{trace * 30}</log>")
    made = run_surestep(
        *("improve", path, "--terminated", "last_event", "--discount", "0.9", "--worlds", "0"),
        *("--kind", "robust", "-o", tmp_path / "out"),
    )
    assert made.exit_code == 0, made.output
    assert "30 episodes" in made.output
    assert verify_result(tmp_path / "out", path).level == "same bytes"
    gc.collect()
    assert sorted(each.name for each in Path(tmp_path).iterdir()) == ["log.xes", "out"]
