"""Locks on files: the system lets go of them when their process dies, however it dies."""

from __future__ import annotations

import sys
from typing import IO


def lock(file: IO[bytes]) -> bool:
    """Locks an open file until it is closed; False where somebody else has locked it.

    An OSError says that this system, or the disk that the file is on, has no such locks.
    """
    if sys.platform == "win32":
        raise OSError("this system has no such locks")
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
