"""Files, whole or not at all: read into memory, or written beside the target and moved there."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from surestep.errors import FileFailure, InvalidParameter

Chunks = Iterable[bytes | memoryview]
BESIDE = ".surestep-"  # how names of files begin that are not yet in their place
TEMPORARY = "surestep-tmp-"
HELD = "held-by-surestep"  # the file in a temporary folder that its process keeps locked


def read_path(path: object) -> Path:
    """Returns a path that the system can be asked for."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(f"path is of type {type(path).__name__}, expected a string or Path")
    try:
        possible = b"\0" not in os.fsencode(path)
    except ValueError:  # half of a surrogate pair
        possible = False
    if not possible:
        raise InvalidParameter(f"path is {os.fspath(path)!r}, which no file can be called")
    return Path(os.fsdecode(path))


def check_utf8(path: Path) -> None:
    """Refuses a name with bytes that are no UTF-8: the database cannot be asked for it."""
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
    """Refuses to write over a file that is `read`, under whatever name, or over no regular file."""
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


def write_together(files: Mapping[Path, Chunks], read: Sequence[Path] = ()) -> None:
    """Writes all of the files, or none of them; none over a file that was `read`."""
    path, fresh, outdated = Path(), dict[Path, Path](), list[Path]()
    try:
        with ExitStack() as undo:
            for path, chunks in files.items():
                check_output(path, read)
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
    """Refuses a folder that has something in it, or that is none."""
    with failing_to_write(path, "used"):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileFailure(
                f"{path} is {'not empty' if path.is_dir() else 'a file'}; name a new folder, or an "
                "empty one, so that nothing is overwritten"
            )


def write_folder(path: Path, files: Mapping[str, Chunks]) -> None:
    """Writes a new folder with all of the files, or nothing: made beside its place, then moved."""
    with new_folder(path) as fresh, failing_to_write(path):
        for name, chunks in files.items():
            with (fresh / name).open("xb") as file:
                file.writelines(chunks)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which is moved to its place at the end, or gone where anything failed."""
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
    """Names what cannot be written where the system refuses something inside."""
    try:
        yield
    except OSError as problem:
        raise FileFailure(f"{path} cannot be {done}: {problem.strerror}") from None


def failing_to_read(path: Path) -> AbstractContextManager[None]:
    """Names what cannot be read where the system refuses something inside."""
    return failing_to_write(path, "read")


def lock(file: IO[bytes]) -> bool:
    """Locks an open file until it is closed; False where somebody else has locked it.

    The system lets go of it when the process dies, however it dies. An OSError says that this
    system, or the disk that the file is on, has no such locks.
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
    """A folder that is gone afterwards, in the place the system has for such.

    A process that is killed leaves its folder behind; the next one that needs a folder removes it.
    """
    check_utf8(Path(tempfile.gettempdir()))
    try:
        remove_leftovers(Path(tempfile.gettempdir()))
        folder, held = held_folder()
    except OSError as problem:
        raise FileFailure(
            f"no temporary folder can be made: {problem.strerror}; set TMPDIR to a folder with room"
        ) from None
    with held:
        try:
            yield folder
        finally:
            remove_held(folder)


def held_folder() -> tuple[Path, IO[bytes]]:
    """Returns a new temporary folder, and the open file whose lock says that somebody needs it.

    It gets its name once it is locked, so that nobody takes it for that of a dead process.
    """
    fresh = Path(tempfile.mkdtemp(prefix=BESIDE))
    held = (fresh / HELD).open("xb")
    try:
        lock(held)
    except OSError:  # no locks here: nobody will remove it, whatever becomes of us
        return fresh, held
    return fresh.rename(fresh.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")), held


@cache  # once a process: whoever dies later is the next one's concern
def remove_leftovers(place: Path) -> None:
    """Removes the temporary folders that dead processes of this user left in that place."""
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{TEMPORARY}*"):
        with suppress(OSError):  # gone, or nothing to be done about it
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / HELD).open("r+b") as held:
                if lock(held):
                    remove_held(folder)


def remove_held(folder: Path) -> None:
    """Removes a temporary folder; the file that is locked last, so that who dies here is noticed.

    What cannot be removed stays.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != HELD:
                path.unlink(missing_ok=True)
        (folder / HELD).unlink(missing_ok=True)
        folder.rmdir()


def remove_if_empty(folder: Path) -> None:
    """Removes a folder unless somebody has put something into it."""
    with suppress(OSError):
        folder.rmdir()


def beside(path: Path) -> Path:
    """Returns a temporary name in the same folder, from where a move is a mere change of names."""
    return path.with_name(f"{BESIDE}{secrets.token_hex(8)}")
