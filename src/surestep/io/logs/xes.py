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
their own, are refused, and no element, value, nesting or number of columns may grow without limit.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn
from xml.parsers.expat import ExpatError, ParserCreate, errors

import msgspec

from surestep.description import Reader
from surestep.errors import FileFailure, InvalidLog
from surestep.io.logs.compression import cut_short, split_ending
from surestep.io.sql import file_list, in_memory, sql_name, sql_text

ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id", "list", "container"})
OWN = ("episode", "step", "last_event")
NAME = "concept:name"
PIECE = 1 << 16  # bytes that are parsed at a time
LONGEST_ELEMENT = 1 << 22  # bytes
LONGEST_KEY, LONGEST_VALUE = 1000, 1 << 20  # characters
LONGEST_EVENT = 1 << 23  # characters of all its values and those of its trace
MOST_COLUMNS = 2000
DEEPEST = 50  # elements within each other
CUT_SHORT = [  # what Expat says of a document that stops before its end
    errors.codes[words]
    for words in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_PARTIAL_CHAR,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
]
ROWS = 20_000  # of a group in the Parquet file, which are in memory together


def xes_conversion(files: Sequence[Path], reader: Reader) -> Callable[..., dict[Path, Path]]:
    """Returns what makes files readable."""
    return convert_xes


def convert_xes(files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Writes the events of each file as a Parquet file into the folder; all have all columns."""
    columns = Columns()
    lines = {file: folder / f"{number}.jsonl" for number, file in enumerate(files)}
    converted = {file: source.with_suffix(".parquet") for file, source in lines.items()}
    try:
        for file, target in lines.items():
            with target.open("wb") as out:
                Elements(file, columns, out).read()
        with in_memory(threads=1) as database:
            for file, source in lines.items():
                database.execute(
                    f"COPY (SELECT {columns.selected} FROM read_json({file_list([source])}, "
                    f"format='newline_delimited', columns={columns.types})) "
                    f"TO {sql_text(str(converted[file]))} (FORMAT parquet, ROW_GROUP_SIZE {ROWS})"
                )
                source.unlink()
    except OSError as problem:
        raise FileFailure(
            f"the events of {files[0]} cannot be kept in {folder.parent}: {problem}; set TMPDIR to "
            "a folder with room"
        ) from None
    return converted


class Columns:
    """The columns of events, in the order in which they were first seen; c0, c1, … in between."""

    def __init__(self) -> None:
        self.keys = dict[str, str]()  # attribute → c0, c1, …
        for name in OWN:
            self.key(f" {name}")  # no attribute's name: those are stripped

    def key(self, name: str) -> str:
        """Returns the short name of an attribute."""
        known = self.keys.get(name)
        if known is None:
            if len(self.keys) >= MOST_COLUMNS:
                raise InvalidLog(f"there are more than {MOST_COLUMNS:,} different attributes")
            known = self.keys[name] = f"c{len(self.keys)}"
        return known

    @property
    def names(self) -> dict[str, str]:
        """Returns short names and full ones, of which no two differ in their case only."""
        taken, names = set[str](), dict[str, str]()
        for name, key in self.keys.items():
            full, number = name.strip() or "(no name)", 1
            while full.lower() in taken:
                number += 1
                full = f"{name.strip()} ({number})"
            taken.add(full.lower())
            names[key] = full
        return names

    @property
    def selected(self) -> str:
        """Returns the columns under their full names, as SQL."""
        return ", ".join(f"{key} AS {sql_name(name)}" for key, name in self.names.items())

    @property
    def types(self) -> str:
        """Returns the short columns, all of them text, as the reader of JSON wants them."""
        return "{" + ", ".join(f"{key}: 'VARCHAR'" for key in self.keys.values()) + "}"


class Elements:
    """One file on its way from elements to rows; see the module."""

    def __init__(self, file: Path, columns: Columns, out: IO[bytes]) -> None:
        self.file, self.columns, self.out = file, columns, out
        self.encode = msgspec.json.Encoder().encode
        self.within = list[str]()  # log, trace, event, attribute, list, values, or skipped
        self.path = list[str]()  # the names of the attributes that are open
        self.traces, self.events = 0, 0  # so far; events of this trace
        self.size, self.size_of_trace = 0, 0  # characters of this event and of this trace
        self.of_trace = dict[str, str]()
        self.row: dict[str, str] | None = None  # of the last event, until the next one
        self.items = list[str]()  # of the list that is open
        self.parser = ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse_dtd
        self.parser.EntityDeclHandler = self.refuse_dtd

    def read(self) -> None:
        """Reads the file to its end."""
        fed = 0
        try:
            for piece in pieces(self.file):
                fed += len(piece)
                self.parser.Parse(piece, False)
                if fed - max(self.parser.CurrentByteIndex, 0) > LONGEST_ELEMENT:
                    self.refuse(f"an element has more than {LONGEST_ELEMENT:,} bytes")
        except ExpatError as problem:
            self.refuse(f"this is no XML ({problem})")
        try:
            self.parser.Parse(b"", True)
        except ExpatError as problem:
            if problem.code not in CUT_SHORT:
                self.refuse(f"this is no XML ({problem})")
            self.refuse(f"the file is {'cut short' if fed else 'empty'}; copy or export it again")
        if not self.traces:
            self.refuse("there is no trace, expected at least one")

    # ---- elements -----------------------------------------------------------------------------

    def start(self, tag: str, given: Mapping[str, str]) -> None:
        """Goes into an element."""
        tag = tag.rpartition(":")[2]
        parent = self.within[-1] if self.within else ""
        kind = "skipped"
        if not parent:
            if tag != "log":
                self.refuse(f"the outermost element is {tag!r}, expected 'log'")
            kind = "log"
        elif parent == "log":
            if tag == "trace":
                kind = tag
                self.traces, self.events, self.of_trace = self.traces + 1, 0, {}
                self.size = self.size_of_trace = 0
            elif tag == "event":
                self.refuse("an event stands outside of a trace, and belongs to no episode")
        elif parent == "trace" and tag == "event":
            kind = tag
            self.begin_event()
        elif parent != "skipped":
            kind = self.attribute(tag, given, parent)
        if len(self.within) >= DEEPEST:
            self.refuse(f"more than {DEEPEST} elements stand within each other")
        self.within.append(kind)

    def end(self, tag: str) -> None:
        """Leaves an element."""
        kind = self.within.pop()
        if kind == "attribute":
            self.path.pop()
        elif kind == "list":
            self.put("/".join(self.path), json.dumps(self.items, ensure_ascii=False))
            self.path.pop()
        elif kind == "trace":
            self.write(last=True)

    def begin_event(self) -> None:
        """Writes the event before, if there is one, and begins the next."""
        self.write(last=False)
        if not self.events:
            self.size_of_trace = self.size
        self.size = self.size_of_trace
        name = self.of_trace.get(self.columns.keys.get(f"case:{NAME}", ""))
        self.row = self.of_trace | {
            "c0": f"{self.file.name}, trace {self.traces}" if name is None else name,
            "c1": str(self.events),
        }
        self.events += 1

    def attribute(self, tag: str, given: Mapping[str, str], parent: str) -> str:
        """Takes an attribute of a trace, of an event, or of another attribute."""
        if parent in ("list", "values"):
            if tag in ATTRIBUTES:
                self.items.append(self.checked(given.get("value", "")))
            return "values" if tag == "values" else "skipped"
        if tag not in ATTRIBUTES:
            return "skipped"
        name = given.get("key")
        if name is None:
            self.refuse(f"an attribute of type {tag!r} has no key")
        if len(name) > LONGEST_KEY:
            self.refuse(f"a key has more than {LONGEST_KEY:,} characters")
        if parent == "trace":
            if self.events:
                self.refuse(f"the attribute {name!r} of the trace stands behind its events")
            name = f"case:{name}"
        self.path.append(name)
        if tag == "list":
            self.items = []
            return tag
        if tag != "container":
            self.put("/".join(self.path), self.checked(given.get("value", "")))
        return "attribute"

    # ---- rows ---------------------------------------------------------------------------------

    def put(self, name: str, value: str) -> None:
        """Gives the trace or the event a value; a second one of a name becomes a column beside."""
        row = self.of_trace if self.row is None else self.row
        try:
            key = self.columns.key(name)
            number = 1
            while key in row:
                number += 1
                key = self.columns.key(f"{name} ({number})")
        except InvalidLog as problem:
            self.refuse(str(problem))
        row[key] = value

    def checked(self, value: str) -> str:
        """Refuses a value that is too long, or one too many."""
        self.size += len(value) + 1
        if len(value) > LONGEST_VALUE:
            self.refuse(f"a value has more than {LONGEST_VALUE:,} characters")
        if self.size > LONGEST_EVENT:
            self.refuse(f"the values of an event have more than {LONGEST_EVENT:,} characters")
        return value

    def write(self, last: bool) -> None:
        """Writes the event that is finished."""
        if self.row is not None:
            self.row["c2"] = "true" if last else "false"
            self.out.write(self.encode(self.row))
            self.out.write(b"\n")
            self.row = None

    # ---- refusals -----------------------------------------------------------------------------

    def refuse(self, words: str) -> NoReturn:
        """Raises what is wrong, with its place."""
        where = f"{self.file}, line {self.parser.CurrentLineNumber:,}"
        if self.traces:
            where += f", trace {self.traces:,}, event {self.events:,}"
        raise InvalidLog(f"{where}: {words}")

    def refuse_dtd(self, *declared: object) -> NoReturn:
        """Refuses a document type, whose entities may grow or point to other files."""
        self.refuse("the file has a document type (DTD), expected XES without; remove it")


def pieces(file: Path) -> Iterator[bytes]:
    """Yields the bytes of a file, decompressed where its name says so."""
    try:
        packed = split_ending(file)[1] == ".gz"
        with gzip.open(file) if packed else file.open("rb") as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (EOFError, zlib.error):
        raise InvalidLog(cut_short(file)) from None
    except gzip.BadGzipFile as problem:
        raise InvalidLog(f"{file} cannot be read: {problem}") from None
    except OSError as problem:
        raise FileFailure(f"{file} cannot be read: {problem.strerror}") from None
