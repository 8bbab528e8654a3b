"""Keeps the machine code of kernels on disk, in Numba's own cache.

Wheels carry code for the usual processors; what does not fit is compiled, and kept for the user.

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

from numba.core.caching import IndexDataCacheFile

SHIPPED = Path(__file__).parent / "machine_code"  # in wheels; `tools/machine_code.py` makes it


class Shelf(IndexDataCacheFile):  # type: ignore[misc]
    """The stored code of one kernel: that of the wheel where it fits, else that of the user."""

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        """Names the files of both."""
        super().__init__(folder, name, stamp)
        self.shipped = IndexDataCacheFile(str(SHIPPED), name, stamp)

    def load(self, key: Any) -> Any:
        """Returns stored code; None if there is none for this processor, Python and Numba."""
        return self.shipped.load(key) or super().load(key)


def keep_code(dispatcher: Any, form: str) -> None:
    """Stores the machine code of a function in Numba's cache, if a folder there is writable."""
    with suppress(RuntimeError):  # Numba raises it if it finds no writable folder
        dispatcher.enable_caching()
        kept = dispatcher._cache
        kept._cache_file = Shelf(
            kept.cache_path, f"{kept._impl.filename_base}-{form}", source_hash()
        )
        kept._guard_against_spurious_io_errors = partial(made_again, kept)


def is_kept(dispatcher: Any, signature: Any) -> bool:
    """Tells whether the cache has code of this signature, or there is none to look into."""
    kept = dispatcher._cache
    if not hasattr(kept, "_cache_file"):
        return True
    key = kept._index_key(signature, dispatcher.targetctx.codegen())
    return kept._cache_file.load(key) is not None


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
