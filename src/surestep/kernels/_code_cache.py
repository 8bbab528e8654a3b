"""Keeps the machine code of kernels on disk, in Numba's own cache.

The stored code is valid as long as *all* kernel sources stay the same. Numba's own check looks only
at the file of the called function, so a helper edited in another file would leave its callers
stale. If no folder is writable, the code lives in memory only.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any


def keep_code(dispatcher: Any, form: str) -> None:
    """Stores the machine code of a function in Numba's cache, if a folder there is writable."""
    with suppress(RuntimeError):  # Numba raises it if it finds no writable folder
        dispatcher.enable_caching()
        kept = dispatcher._cache
        kept._cache_file = type(kept._cache_file)(
            kept.cache_path, f"{kept._impl.filename_base}-{form}", source_hash()
        )
        kept._guard_against_spurious_io_errors = partial(made_again, kept)


@contextmanager
def made_again(kept: Any) -> Iterator[None]:
    """Deletes stored code that cannot be read, so that it is compiled; ignores a full disk."""
    try:
        yield
    except Exception:  # a damaged file may raise anything
        with suppress(OSError):
            kept.flush()


@cache
def source_hash() -> str:
    """Returns a hash of all kernel sources: names and contents."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        content = source.read_bytes()
        digest.update(f"{source.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
