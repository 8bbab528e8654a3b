"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from surestep.errors import SurestepError


def write_whole(contents: Mapping[Path, bytes]) -> None:
    """Writes all files, or, where one cannot be written, none of them.

    Each is written beside its place and then moved there, so that a reader sees the old file or
    the new one, and a full disk leaves the old ones as they were.
    """
    written: list[tuple[str, Path]] = []
    try:
        for path, content in contents.items():
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o666 & ~current_umask())
        for path in contents:
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a directory")
        for temporary, path in written:
            os.replace(temporary, path)
    except OSError as problem:
        names = ", ".join(map(str, contents))
        raise SurestepError(f"cannot write {names}: {problem.strerror or problem}") from None
    finally:
        for temporary, _ in written:
            with suppress(OSError):
                os.unlink(temporary)


def current_umask() -> int:
    """The permissions that new files go without; `mkstemp` alone would keep them private."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
