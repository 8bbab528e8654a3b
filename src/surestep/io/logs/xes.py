"""Event logs of process mining in XES (IEEE 1849), read as a stream and kept as Parquet.

A trace is an episode, and its events are the steps, in the order of the file:

    episode         the trace's concept:name; without one, the file and the number of the trace
    step            the number of the event in its trace, from 0
    last_event      true at the last event of a trace
    concept:name    and every other attribute of an event, under its key
    case:concept:name    and every other attribute of a trace, under its key behind 'case:'

All values are text, as they are written; attributes of attributes and lists are not read. Values
that a log declares as global are no values of events. Nothing outside the file is ever looked up:
documents with a DTD, and so with entities of their own, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import msgspec

from surestep.errors import FileFailure, InvalidLog
from surestep.io.logs.text_tables import as_text, pieces
from surestep.io.sql import file_list, sql_text

ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id"})
OWN = ("episode", "step", "last_event")
ROWS = 20_000  # of a group in the Parquet file, which are in memory together


def convert_xes(database: Any, files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Writes the events of each file as a Parquet file into the folder; all have all columns."""
    columns = {name: name for name in OWN}  # by their small letters
    lines = {file: folder / f"{number}.jsonl" for number, file in enumerate(files)}
    converted = {file: source.with_suffix(".parquet") for file, source in lines.items()}
    try:
        for file, target in lines.items():
            with target.open("wb") as out:
                for row in events_of(file, columns):
                    out.write(msgspec.json.encode(row) + b"\n")
        types = as_text(columns.values())
        database.execute("SET threads = 1")
        for file, source in lines.items():
            rows = f"read_json({file_list([source])}, format='newline_delimited', columns={types})"
            database.execute(
                f"COPY (SELECT * REPLACE (CAST(step AS BIGINT) AS step) FROM {rows}) "
                f"TO {sql_text(str(converted[file]))} (FORMAT parquet, ROW_GROUP_SIZE {ROWS})"
            )
            source.unlink()
    except OSError as problem:
        raise FileFailure(
            f"the events of {files[0]} cannot be kept in {folder.parent}: {problem}; set TMPDIR to "
            "a folder with room"
        ) from None
    return converted


def events_of(file: Path, columns: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yields a row for each event; adds the names of its columns to those of all files so far.

    One trace is held in memory at a time.
    """
    parser: Any = XMLPullParser(("start", "end"))
    root, number = None, 0
    try:
        for piece in pieces(file):
            if root is None and b"<!DOCTYPE" in piece:
                raise refused(file, number, "found a document type (DTD), expected XES without")
            parser.feed(piece)
            for kind, element in parser.read_events():
                root = element if root is None else root
                if kind == "start" or tag(element) != "trace":
                    continue
                number += 1
                yield from rows_of(file, number, element, columns)
                if tag(root) != "log" or any(tag(child) == "event" for child in root):
                    raise refused(file, number, "found events outside of traces, or another log")
                root.clear()
        parser.close()
    except ParseError as problem:
        raise refused(file, number, f"found {problem}; copy or export it again") from None
    if not number:
        raise refused(file, number, "found no trace, expected at least one")


def rows_of(
    file: Path, number: int, trace: Element, columns: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yields the rows of a trace."""
    events = [child for child in trace if tag(child) == "event"]
    own = {"episode": f"{file.name}, trace {number}", "step": "0", "last_event": "false"}
    for step, event in enumerate(events):
        row = own | {"step": str(step), "last_event": str(step == len(events) - 1).lower()}
        for prefix, element in (("case:", trace), ("", event)):
            for child in element:
                if tag(child) not in ATTRIBUTES:
                    continue
                name = f"{prefix}{child.get('key') or '(no name)'}"
                if name in row or columns.setdefault(name.lower(), name) != name:
                    twice = f"found {name!r} twice, or in other letters; expected each once"
                    raise refused(file, number, twice)
                row[name] = child.get("value", "")
        yield row | {"episode": row.get("case:concept:name", row["episode"])}


def tag(element: Element) -> str:
    """Returns the name of an element, without its namespace."""
    return element.tag.rpartition("}")[2]


def refused(file: Path, number: int, words: str) -> InvalidLog:
    """Returns what is wrong, with its place."""
    return InvalidLog(f"{file}, trace {number:,}: {words}")
