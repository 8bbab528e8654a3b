"""Reads and writes whole files: a new file is written beside its place, then moved there."""

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO

from surestep.errors import FileFailure, InvalidParameter

Chunks = Iterable[bytes | memoryview]
BESIDE = ".surestep-"  # how names of files begin that are not yet in their place
TEMPORARY = "surestep-temporary-"  # and then 16 digits: a folder that its process keeps locked


def read_path(path: object) -> Path:
    """Returns `path` as a `Path`; refuses anything that cannot be the name of a file."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(f"path is of type {type(path).__name__}, expected a string or Path")
    with suppress(ValueError):  # half of a surrogate pair
        if b"\0" not in os.fsencode(path):
            return Path(os.fsdecode(path))
    raise InvalidParameter(f"path is {os.fspath(path)!r}, which no file can be called")


def check_utf8(path: Path) -> None:
    """Refuses a name that is not UTF-8, which DuckDB cannot open."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise InvalidParameter(f"{shown} is no name in UTF-8; rename the file or folder") from None


def read_whole(path: Path) -> bytes:
    """Returns the bytes of a file."""
    with failing_to_read(path):
        return path.read_bytes()


def check_output(path: Path, read: Iterable[Path] = ()) -> None:
    """Refuses an output that is one of the files `read`, or exists and is not a regular file."""
    with failing_to_write(path):
        if not path.exists():
            return
        there = path.stat()
    if not stat.S_ISREG(there.st_mode):
        what = "a folder" if stat.S_ISDIR(there.st_mode) else "no regular file"
        raise FileFailure(f"{path} cannot be written: it is {what}; name another file")
    for file in read:
        with suppress(OSError, ValueError):  # what cannot be looked at is not read either
            if os.path.samestat(there, os.stat(file)):
                raise FileFailure(f"{path} cannot be written: it is the input {file}; name another")


def write_together(files: Mapping[Path, Chunks]) -> None:
    """Writes all of the files, or none of them."""
    path = Path()
    fresh = dict[Path, Path]()
    outdated = list[Path]()
    try:
        with ExitStack() as undo:
            for path, chunks in files.items():
                check_output(path)
                fresh[path] = beside(path)
                undo.callback(fresh[path].unlink, missing_ok=True)
                with fresh[path].open("xb") as file:
                    file.writelines(chunks)
            for path in files:
                if not path.exists():
                    undo.callback(path.unlink, missing_ok=True)
                elif len(files) > 1:  # one file alone is replaced in one step
                    outdated.append(beside(path))
                    os.replace(path, outdated[-1])
                    undo.callback(os.replace, outdated[-1], path)
                os.replace(fresh[path], path)
            undo.pop_all()
    except OSError as problem:
        raise FileFailure(f"{path} cannot be written: {problem.strerror}") from None
    for path in outdated:
        path.unlink(missing_ok=True)


def check_new_folder(path: Path) -> None:
    """Refuses a path that is a file, or a folder that is not empty."""
    with failing_to_write(path, "used"):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileFailure(
                f"{path} is {'not empty' if path.is_dir() else 'a file'}; name a new folder, or an "
                "empty one, so that nothing is overwritten"
            )


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Writes a new folder with all of the files, or nothing."""
    with new_folder(path) as fresh, failing_to_write(path):
        for name, content in files.items():
            (fresh / name).write_bytes(content)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields a folder to fill; moves it to its place at the end, or removes it after an error."""
    check_new_folder(path)
    place = Path(os.path.realpath(path))  # a link is not replaced: the folder that it names is
    with ExitStack() as undo:
        with failing_to_write(path):
            for parent in reversed(place.parents):
                if not parent.exists():
                    parent.mkdir()
                    undo.callback(remove_if_empty, parent)
            fresh = beside(place)
            undo.callback(shutil.rmtree, fresh, ignore_errors=True)
            fresh.mkdir()
        yield fresh
        with failing_to_write(path):
            os.replace(fresh, place)
        undo.pop_all()


@contextmanager
def failing_to_write(path: Path, done: str = "written") -> Iterator[None]:
    """Turns an `OSError` raised inside into a `FileFailure` that names the path."""
    try:
        yield
    except OSError as problem:
        raise FileFailure(f"{path} cannot be {done}: {problem.strerror}") from None


failing_to_read = partial(failing_to_write, done="read")


def lock(file: IO[bytes] | int) -> bool:
    """Locks an open file or folder until it is closed; returns False if another process has it.

    The lock ends with the process. Raises `OSError` where the system or the disk has no locks.
    """
    if sys.platform == "win32":
        raise OSError("this system has no such locks")
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a new folder in the system's place for temporary files, and removes it at the end.

    A process that is killed leaves its folder behind; the next one that needs a folder removes it.
    A folder gets its name once it is locked, so that nobody takes it for one left behind.
    """
    place = Path(tempfile.gettempdir())
    check_utf8(place)
    with ExitStack() as undo:
        try:
            remove_leftovers(place)
            folder = Path(tempfile.mkdtemp(prefix=BESIDE))
            with suppress(OSError):  # no locks here: nobody will remove it, whatever becomes of us
                held = os.open(folder, os.O_RDONLY)
                undo.callback(os.close, held)
                lock(held)
                folder = folder.rename(place / f"{TEMPORARY}{secrets.token_hex(8)}")
        except OSError as problem:
            raise FileFailure(
                f"no temporary folder can be made: {problem.strerror}; set TMPDIR to a folder with "
                "room"
            ) from None
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


@cache  # once a process: whoever dies later is the next one's concern
def remove_leftovers(place: Path) -> None:
    """Removes the temporary folders that dead processes of this user left in that place."""
    if sys.platform == "win32":
        return
    for folder in place.glob(TEMPORARY + 16 * "[0-9a-f]"):
        with suppress(OSError), ExitStack() as undo:  # gone, or nothing to be done about it
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            undo.callback(os.close, held)
            if os.fstat(held).st_uid == os.getuid() and lock(held):
                shutil.rmtree(folder, ignore_errors=True)


def remove_if_empty(folder: Path) -> None:
    """Removes a folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def beside(path: Path) -> Path:
    """Returns a temporary path in the same folder, so that moving the file is one rename."""
    return path.with_name(f"{BESIDE}{secrets.token_hex(8)}")
