"""The SHA-256 of every file of a log, so that none is counted twice."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from surestep._files import failing_to_read
from surestep.errors import InvalidLog
from surestep.io.logs.compression import check_gzip, split_ending
from surestep.io.logs.lanes import rows_of
from surestep.io.logs.tables import Table

LOOKED_AT = 1 << 16  # bytes in which a file of text shows whether it has a row


def file_sources(table: Table, database: Any) -> tuple[str, ...]:
    """Returns the digests of the files with rows, rising; two files of one content are refused.

    Files without rows are often alike, and count nothing.
    """
    files = table.files
    if table.format.knows_rows:
        files = tuple(
            file for file, rows in zip(files, rows_of(files, database), strict=True) if rows
        )
    known = dict[str, Path]()
    for file in files:
        check_gzip([file])  # DuckDB does not look at its checksum
        digest = digest_of(file, header=table.format.has_header)
        if split_ending(file)[1] and not has_row(table, database, file):
            digest = None
        if digest in known:
            raise InvalidLog(
                f"{file} has the same content as {known[digest]}, and its rows would count twice; "
                "expected every log once"
            )
        if digest is not None:
            known[digest] = file
    return tuple(sorted(known))


def has_row(table: Table, database: Any, file: Path) -> bool:
    """Tells whether there is a row in a compressed file."""
    first = f"SELECT 1 FROM ({table.scan(database, (file,))}) LIMIT 1"
    return bool(database.execute(first).fetchall())


def digest_of(path: Path, *, header: bool) -> str | None:
    """The SHA-256 of a file; None where nothing but a header is in it."""
    with failing_to_read(path), path.open("rb") as file:
        if header:
            file.readline()
        empty = not file.read(LOOKED_AT).strip()
        file.seek(0)
        return None if empty else hashlib.file_digest(file, "sha256").hexdigest()
