"""Knows the file formats of logs, and the SQL with which DuckDB reads each of them.

Text files have one row a line, the names of columns in the first, and may be compressed. Columns
are matched by name, so their order may differ between files. A column without a name, as pandas
writes its index, is called as in pandas: 'Unnamed: 0'.
"""

import csv
import gzip
import re
import sys
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, XMLPullParser
from xml.parsers.expat import ExpatError, ParserCreate

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from surestep._files import failing_to_read
from surestep.description import Reader, several
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, said
from surestep.io.sql import columns_of, file_list, replacing, sql_name, sql_text

DELIMITERS = (",", ";", "|", "\t")
BY_ENDING = {".tsv": "\t", ".psv": "|"}
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".zst": zstd.open}
PIECE = 1 << 20  # bytes


class Header(NamedTuple):
    """The first line of a file."""

    delimiter: str
    names: tuple[str, ...]
    reader: Reader

    def read_csv(self, files: Sequence[Path], *options: str, also: Sequence[str] = ()) -> str:
        """Returns SQL that reads files with this first line; `also` names settings to pass on."""
        quote = sql_text(self.reader.quote or '"')
        nothing = ", ".join(map(sql_text, ("", *several(self.reader.nullstr))))
        given = [
            f"delim={sql_text(self.delimiter)}",
            f"quote={quote}",
            f"escape={quote}",
            f"nullstr=[{nothing}]",
            "header=true",
            f"skip={self.reader.skip or 0}",
            *options,
        ]
        told = {name: getattr(self.reader, name) for name in ("encoding", *also)}
        given += [f"{name}={sql_text(value)}" for name, value in told.items() if value is not None]
        return f"read_csv({file_list(files)}, {', '.join(given)})"


# ---- reading ----------------------------------------------------------------------------------


def scan_text(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads text files; all columns are text."""
    first, *others = [header_of(file, reader) for file in files]
    options = ("all_varchar=true", "union_by_name=true")  # DuckDB reads the first line of each file
    if all(other == first for other in others):
        options = ("auto_detect=false", f"columns={as_text(first.names)}")
    return f"SELECT * FROM {first.read_csv(files, *options)}"


def typed_text(files: Sequence[Path], reader: Reader) -> str:
    """Returns SQL that reads text files for a query; DuckDB infers types from all rows."""
    rows = header_of(files[0], reader).read_csv(
        files,
        "sample_size=-1",
        "union_by_name=true",
        also=("decimal_separator", "thousands", "timestampformat"),
    )
    return f"SELECT * FROM {rows}"


def as_text(columns: Iterable[str]) -> str:
    """Returns the option of a reader that makes all columns text."""
    return "{" + ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in columns) + "}"


# ---- the first line ---------------------------------------------------------------------------


def header_of(file: Path, reader: Reader) -> Header:
    """Returns the delimiter and the names of the columns.

    The delimiter is the given one, that of the file's ending, or the one that cuts the first line
    into most columns. With a wrong one, the columns of roles are not found.
    """
    beginning = next(pieces(file), b"")
    skip = reader.skip or 0
    marked = beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if marked or b"\0\0" in (beginning[:4:2], beginning[1:4:2]):
        raise InvalidLog(f"{file} is UTF-16, expected UTF-8; save it so (in Excel: CSV UTF-8)")
    lines = re.split(b"\r\n|\r|\n", beginning.removeprefix(BOM_UTF8))
    if len(lines) <= skip + 1 and len(beginning) == PIECE:
        raise InvalidLog(
            f"{file}: the line with the names of columns does not end within its first megabyte"
        )
    try:
        line = b"".join(lines[skip:][:1]).decode(reader.encoding or "utf-8")
    except UnicodeError:
        how = said("reader={'encoding': 'latin-1'}", "--set reader.encoding=latin-1")
        raise InvalidLog(f"{file}, line 1 is not UTF-8; save it so, or say {how}") from None
    if not line.strip():
        raise InvalidLog(f"{file} is empty, expected a first line with the names of the columns")
    delimiter = reader.delim or BY_ENDING.get(split_ending(file)[0])
    signs = DELIMITERS if delimiter is None else (delimiter,)
    try:
        cut = {sign: next(csv.reader([line], delimiter=sign)) for sign in signs}
        best = max(signs, key=lambda sign: len(cut[sign]))
        names = next(csv.reader([line], delimiter=best, strict=True))  # refuses a broken line
    except csv.Error as problem:
        raise InvalidLog(f"{file}, line 1 has no names of columns: {problem}") from None
    return Header(best, checked_names(file, names), reader)


def checked_names(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Checks the names of columns, and gives one to those that have none."""
    known = dict[str, str]()  # by their small letters
    for place, given in enumerate(names):
        name = given or f"Unnamed: {place}"
        while not given and name in names:
            name += ".1"
        if "\0" in name or known.setdefault(name.lower(), name) is not name:
            raise InvalidLog(f"{file}, line 1: column {name!r} is given twice, or no name")
    return tuple(known.values())


# ---- compressed files -------------------------------------------------------------------------


def split_ending(file: Path) -> tuple[str, str]:
    """Returns the ending of a file, and that of its compression.

    >>> split_ending(Path("log.CSV.gz"))
    ('.csv', '.gz')
    """
    endings = [ending.lower() for ending in file.suffixes[-2:]]
    if len(endings) == 2 and endings[1] in COMPRESSED:
        return endings[0], endings[1]
    return file.suffix.lower(), ""


def pieces(file: Path) -> Iterator[bytes]:
    """Yields the decompressed bytes of a file; refuses one that is cut short or damaged."""
    opened = COMPRESSED.get(split_ending(file)[1], open)
    with failing_to_read(file):
        try:
            with opened(file, "rb") as stream:
                while piece := stream.read(PIECE):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError):
            raise InvalidLog(f"{file} is cut short or damaged; copy or compress it again") from None


def check_whole(files: Sequence[Path]) -> None:
    """Refuses a compressed file that is cut short or damaged; reads all of it."""
    for file in files:
        if split_ending(file)[1]:
            deque(pieces(file), maxlen=0)


# ---- event logs of process mining in XES (IEEE 1849) ------------------------------------------
#
# They are read as a stream and kept as Parquet. A trace is an episode, and its events are the
# steps, in the order of the file:
#
#     episode         the trace's concept:name; without one, the file and the number of the trace
#     step            the number of the event in its trace, from 0
#     last_event      true at the last event of a trace
#     concept:name    and every other attribute of an event, under its key
#     case:concept:name    and every other attribute of a trace, under its key behind 'case:'
#
# All values are text, as they are written; attributes of attributes and lists are not read. Values
# that a log declares as global are no values of events. Nothing outside the file is ever looked up:
# documents with a DTD, and so with entities of their own, are refused.


ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id"})
OWN = ("episode", "step", "last_event")
ROWS = 20_000  # of a group in the Parquet file, which are in memory together


def convert_xes(database: Any, files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Writes the events of each file to a Parquet file in the folder, with the same columns."""
    columns = {name: name for name in OWN}  # by their small letters
    lines = {file: folder / f"{number}.jsonl" for number, file in enumerate(files)}
    converted = {file: source.with_suffix(".parquet") for file, source in lines.items()}
    try:
        for file, target in lines.items():
            with target.open("wb") as out:
                for row in events_of(file, columns):
                    out.write(msgspec.json.encode(row) + b"\n")
        types = f"columns={as_text(columns.values())}"
        database.execute("SET threads = 1")
        for file, source in lines.items():
            database.execute(
                "COPY (SELECT * REPLACE (CAST(step AS BIGINT) AS step) "
                f"FROM {json_lines([source], types)}) "
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

    def refuse_type(*declared: object) -> None:
        raise refused(file, 0, "found a document type (DTD), expected XES without")

    parser: Any = XMLPullParser(("start", "end"))
    prolog = ParserCreate()  # reads all encodings, and across the borders of pieces
    prolog.StartDoctypeDeclHandler = refuse_type
    root = None
    number = 0
    try:
        for piece in pieces(file):
            if root is None:
                prolog.Parse(piece)
            parser.feed(piece)
            for kind, element in parser.read_events():
                root = element if root is None else root
                if kind == "start" or tag(element) != "trace":
                    continue
                number += 1
                yield from event_rows(file, number, element, columns)
                if tag(root) != "log" or any(tag(child) == "event" for child in root):
                    raise refused(file, number, "found events outside of traces, or another log")
                root.clear()
        parser.close()
    except (ParseError, ExpatError) as problem:
        raise refused(file, number, f"found {problem}; copy or export it again") from None
    if not number:
        raise refused(file, number, "found no trace, expected at least one")


def event_rows(
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
    """Returns an error that names the file and the trace."""
    return InvalidLog(f"{file}, trace {number:,}: {words}")


# ---- formats: to add one, write a `Format` and list it in `FORMATS` ----------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: its endings, and how DuckDB reads it."""

    suffixes: tuple[str, ...]
    # (database, files, how) → the SQL that reads them
    scan: Callable[[Any, Sequence[Path], Reader], str]
    # (database, files, a new folder) → Parquet files to read instead; None: no conversion
    convert: Callable[[Any, Sequence[Path], Path], Mapping[Path, Path]] | None = None
    # (files, how) → SQL that reads them with inferred types, for a query; None: like `scan`
    typed: Callable[[Sequence[Path], Reader], str] | None = None
    packed: bool = False  # files may be compressed
    knows_rows: bool = False  # rows can be counted and skipped without reading them


def scan_parquet(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns SQL that reads Parquet files; a column that a file lacks is NULL in its rows."""
    together = ", union_by_name=true" if len(files) > 1 else ""
    return f"SELECT * FROM read_parquet({file_list(files)}{together})"


def scan_json(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads lines of JSON, all of whose values are text."""
    names = columns_of(database, f"FROM {json_lines(files)}")
    return f"SELECT * FROM {json_lines(files, f'columns={as_text(names)}')}"


def typed_json(files: Sequence[Path], reader: Reader) -> str:
    """Returns SQL that reads lines of JSON for a query; DuckDB infers types from all rows."""
    return f"SELECT * FROM {json_lines(files, 'sample_size=-1', 'union_by_name=true')}"


def json_lines(files: Sequence[Path], *options: str) -> str:
    """Returns the SQL of a reader of lines of JSON."""
    given = ", ".join([file_list(files), "format='newline_delimited'", *options])
    return f"read_json({given})"


def scan_frame(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads a table in memory; labels of categories are text, as in files."""
    kinds = columns_of(database, "frame")
    names = [sql_name(name) for name, kind in kinds.items() if kind.startswith("ENUM")]
    texts = [f"CAST({name} AS VARCHAR) AS {name}" for name in names]
    return f"SELECT {replacing(texts)} FROM frame"


FORMATS = {
    "text": Format((".csv", ".tsv", ".psv", ".txt"), scan_text, typed=typed_text, packed=True),
    "parquet": Format((".parquet",), scan_parquet, knows_rows=True),
    "json": Format((".jsonl", ".ndjson"), scan_json, typed=typed_json, packed=True),
    "xes": Format((".xes",), scan_parquet, convert_xes, packed=True),
}
IN_MEMORY = Format((), scan_frame)  # an object that DuckDB can scan


OF_ENDINGS = {
    suffix + packed: known
    for known in FORMATS.values()
    for packed in ("", *(COMPRESSED if known.packed else ()))
    for suffix in known.suffixes
}


def has_format(file: Path) -> bool:
    """Tells whether the ending of a file in a folder says that it is a log; `.txt` does not."""
    return "".join(split_ending(file)) in OF_ENDINGS and split_ending(file)[0] != ".txt"


def format_of(file: Path) -> Format:
    """Returns the format of a file, by its ending."""
    ending = "".join(split_ending(file))
    if ending not in OF_ENDINGS:
        raise InvalidParameter(
            f"{file} has no known ending, expected {', '.join(OF_ENDINGS)} (save a spreadsheet as "
            "CSV)"
        )
    return OF_ENDINGS[ending]
