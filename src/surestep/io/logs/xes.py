"""Event logs of process mining in XES (IEEE 1849), read as a stream and kept as Parquet.

A trace is an episode, and its events are the steps, in the order of the file:

    episode         the trace's concept:name; without one, the file and the number of the trace
    step            the number of the event in its trace, from 0
    last_event      true at the last event of a trace
    concept:name    and every other attribute of an event, under its key
    case:concept:name    and every other attribute of a trace, under its key behind 'case:'
    cost/driver     an attribute of an attribute
    tags            a list, as JSON: ["a", "b"]

All values are text, as they are written. Values that a log declares as global are no values of
events. Nothing outside the file is ever looked up: documents with a DTD, and so with entities of
their own, are refused, and no event, name or number of columns may grow without limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn
from xml.etree.ElementTree import Element
from xml.parsers.expat import ExpatError, ParserCreate, errors

import msgspec

from surestep.errors import FileFailure, InvalidLog
from surestep.io.logs.text_tables import as_text, pieces
from surestep.io.sql import file_list, sql_text

ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id", "list", "container"})
OWN = ("episode", "step", "last_event")
LONGEST_EVENT = 1 << 22  # bytes
LONGEST_NAME = 300  # characters of a column
MOST_COLUMNS = 2000
CUT_SHORT = (  # what Expat says of a document that stops before its end
    *(errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN),
    *(errors.XML_ERROR_PARTIAL_CHAR, errors.XML_ERROR_UNCLOSED_CDATA_SECTION),
)
ROWS = 20_000  # of a group in the Parquet file, which are in memory together


def convert_xes(database: Any, files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Writes the events of each file as a Parquet file into the folder; all have all columns."""
    columns = {name: (name, "") for name in OWN}
    lines = {file: folder / f"{number}.jsonl" for number, file in enumerate(files)}
    converted = {file: source.with_suffix(".parquet") for file, source in lines.items()}
    try:
        for file, target in lines.items():
            with target.open("wb") as out:
                Events(file, columns, out).read()
        types = as_text(column for column, _ in columns.values())
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


class Events:
    """The events of one file on their way to rows of JSON.

    `columns` are those of all files so far: by their name in small letters, the name, and the name
    of the attribute that is kept there, of which no two differ in their case only.
    """

    def __init__(self, file: Path, columns: dict[str, tuple[str, str]], out: IO[bytes]) -> None:
        self.file, self.columns, self.out = file, columns, out
        self.open = list[Element]()
        self.traces, self.events = 0, 0  # so far; events of this trace
        self.begin = 0  # bytes before what is kept in memory
        self.of_trace = dict[str, str]()
        self.row: dict[str, str] | None = None  # of the last event, until the next one
        self.parser = ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse_dtd

    def read(self) -> None:
        """Reads the file to its end."""
        fed = 0
        try:
            for piece in pieces(self.file):
                fed += len(piece)
                self.parser.Parse(piece, False)
                if fed - self.begin > LONGEST_EVENT:
                    self.refuse(f"an event or element has more than {LONGEST_EVENT:,} bytes")
            self.parser.Parse(b"", True)
        except ExpatError as problem:
            if errors.messages[problem.code] not in CUT_SHORT:
                self.refuse(f"this is no XML ({problem})")
            self.refuse(f"the file is {'cut short' if fed else 'empty'}; copy or export it again")
        if not self.traces:
            self.refuse("there is no trace, expected at least one")

    def start(self, tag: str, given: dict[str, str]) -> None:
        """Goes into an element."""
        element = Element(tag.rpartition(":")[2], given)
        if self.open:
            self.open[-1].append(element)
        elif element.tag != "log":
            self.refuse(f"the outermost element is {element.tag!r}, expected 'log'")
        self.open.append(element)
        if element.tag == "trace" and len(self.open) == 2:
            self.traces, self.events = self.traces + 1, 0
        elif element.tag == "event" and len(self.open) == 3:
            self.events += 1

    def end(self, tag: str) -> None:
        """Leaves an element; traces and events become rows, and are forgotten."""
        element, depth = self.open.pop(), len(self.open)
        if depth > 2:
            return
        if depth == 1 and element.tag == "event":
            self.refuse("an event stands outside of a trace, and belongs to no episode")
        elif depth == 1 and element.tag == "trace":
            self.take_trace(element)
            self.write(last=True)
        elif depth == 2 and element.tag == "event" and self.open[1].tag == "trace":
            self.take_trace(self.open[1])
            self.write(last=False)
            row = self.of_trace | {"step": str(self.events - 1)}
            self.row = self.filled(row, self.attributes(element))
        elif depth != 1:
            return
        self.open[-1].clear()
        self.begin = self.parser.CurrentByteIndex

    def take_trace(self, trace: Element) -> None:
        """Takes the attributes of a trace that stand before its first event; refuses others."""
        given = [*self.attributes(trace, "case:")]
        if self.row is None:
            unnamed = f"{self.file.name}, trace {self.traces}"
            name = next((value for key, value in given if key == "case:concept:name"), unnamed)
            self.of_trace = self.filled({"episode": name}, given)
        elif given:
            self.refuse(f"the attribute {given[0][0]!r} of the trace stands behind its events")

    def attributes(self, element: Element, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Yields the names and values of all attributes, and of those within them."""
        for child in element:
            if child.tag not in ATTRIBUTES:
                continue
            if (key := child.get("key")) is None:
                self.refuse(f"an attribute of type {child.tag!r} has no key")
            name = prefix + (key or "(no name)")
            if len(name) > LONGEST_NAME:
                self.refuse(f"a key with those around it has more than {LONGEST_NAME} characters")
            if child.tag == "list":
                items = [*child, *(item for part in child.findall("values") for item in part)]
                values = [item.get("value", "") for item in items if item.tag in ATTRIBUTES]
                yield name, json.dumps(values, ensure_ascii=False)
                continue
            if child.tag != "container":
                yield name, child.get("value", "")
            if len(child):
                yield from self.attributes(child, f"{name}/")

    def filled(self, row: dict[str, str], given: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Returns a row with values; a second one of a name is put into a column beside."""
        for name, value in given:
            column, number = name, 1
            while (
                column in row or self.columns.setdefault(column.lower(), (column, name))[1] != name
            ):
                number += 1
                column = f"{name} ({number})"
            row[column] = value
            if len(self.columns) > MOST_COLUMNS:
                self.refuse(f"there are more than {MOST_COLUMNS:,} different attributes")
        return row

    def write(self, last: bool) -> None:
        """Writes the event before, if there is one."""
        if self.row is not None:
            self.row["last_event"] = "true" if last else "false"
            self.out.write(msgspec.json.encode(self.row) + b"\n")
            self.row = None

    def refuse(self, words: str) -> NoReturn:
        """Raises what is wrong, with its place."""
        where = f"{self.file}, line {self.parser.CurrentLineNumber:,}"
        if self.traces:
            where += f", trace {self.traces:,}, event {self.events:,}"
        raise InvalidLog(f"{where}: {words}")

    def refuse_dtd(self, *declared: object) -> NoReturn:
        """Refuses a document type, whose entities may grow or point to other files."""
        self.refuse("the file has a document type (DTD), expected XES without; remove it")
