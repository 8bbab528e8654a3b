"""The machine code of one kernel in one file, which is read only if it is whole.

Numba's own cache has an index beside the code and trusts both: a file cut short ends in an
exception, and a changed byte in whatever LLVM makes of it. Here a file begins with the digest of
the rest, and its name holds all that its content depends on but the sources: the versions and the
processor. What is absent, damaged or meant for others is compiled, and written anew. The digest
guards against damage, not against malice: like machine code itself, these files are for the user
who made them, and are never exchanged.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

DIGEST_BYTES = hashlib.sha256().digest_size


class MachineCode:
    """A store that Numba asks for machine code before it compiles, and writes to afterwards."""

    def __init__(self, folder: Path, name: str, on_compile: Callable[[], None]) -> None:
        """Keeps the kernel of that name in `folder`; calls `on_compile` where it is not there."""
        self.folder = folder
        self.name = name
        self.on_compile = on_compile

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Returns the compiled kernel, or None where it is not there or not whole."""
        target.refresh()
        try:
            content = self.path(target.codegen()).read_bytes()
        except OSError:
            content = b""
        digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(code).digest() != digest:
            self.on_compile()
            return None
        return CompileResult._rebuild(target, *pickle.loads(code))  # noqa: S301

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Writes the compiled kernel, where that can be done; others see the whole file or none."""
        code = dumps(compiled._reduce())
        path = self.path(compiled.codegen)
        with suppress(OSError):  # the disk is full: this process has the code, and that will do
            part = path.with_name(f"{path.name}.{os.getpid()}.part")
            try:
                part.write_bytes(hashlib.sha256(code).digest() + code)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    def path(self, codegen: Any) -> Path:
        """Returns the file for this interpreter, these versions and this processor."""
        made_for = (sys.version, numba.__version__, llvmlite.__version__, codegen.magic_tuple())
        digest = hashlib.sha256(repr(made_for).encode()).hexdigest()
        return self.folder / f"{self.name}-{digest[:16]}.code"
