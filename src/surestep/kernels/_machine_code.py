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
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

DIGEST_BYTES = hashlib.sha256().digest_size


class CodeStore(ABC):
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
            content = self.path(signature, target.codegen()).read_bytes()
        except OSError:
            content = b""
        digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(code).digest() != digest:
            self.on_compile()
            return None
        return self.rebuilt(target, code)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Writes the compiled kernel, where that can be done; others see the whole file or none."""
        code = self.serialised(compiled)
        path = self.path(signature, compiled.codegen)
        with suppress(OSError):  # the disk is full: this process has the code, and that will do
            part = path.with_name(f"{path.name}.{os.getpid()}.part")
            try:
                part.write_bytes(hashlib.sha256(code).digest() + code)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    def path(self, signature: Any, codegen: Any) -> Path:
        """Returns the file for this interpreter, these versions and this processor."""
        made_for = (
            sys.version,
            numba.__version__,
            llvmlite.__version__,
            codegen.magic_tuple(),
            *self.also_made_for(signature),
        )
        digest = hashlib.sha256(repr(made_for).encode()).hexdigest()
        return self.folder / f"{self.name}-{digest[:16]}.code"

    @abstractmethod
    def also_made_for(self, signature: Any) -> tuple[object, ...]:
        """Returns what else the content of a file depends on."""

    @abstractmethod
    def rebuilt(self, target: Any, code: bytes) -> Any:
        """Returns the kernel of a file."""

    @abstractmethod
    def serialised(self, compiled: Any) -> bytes:
        """Returns what a file holds of a kernel."""


class MachineCode(CodeStore):
    """The store of a kernel of one signature, for the processor."""

    def also_made_for(self, signature: Any) -> tuple[object, ...]:
        """Returns nothing: the sources say what the signature is."""
        return ()

    def rebuilt(self, target: Any, code: bytes) -> Any:
        """Returns the kernel of a file."""
        return CompileResult._rebuild(target, *pickle.loads(code))  # noqa: S301

    def serialised(self, compiled: Any) -> bytes:
        """Returns what a file holds of a kernel."""
        return bytes(dumps(compiled._reduce()))


class GpuCode(CodeStore):
    """The store of a kernel of several signatures, for a GPU."""

    def also_made_for(self, signature: Any) -> tuple[object, ...]:
        """Returns the version of what compiles for GPUs, and the signature."""
        import numba_cuda

        return numba_cuda.__version__, repr(signature)

    def rebuilt(self, target: Any, code: bytes) -> Any:
        """Returns the kernel of a file."""
        from numba.cuda.dispatcher import _Kernel
        from numba.cuda.utils import numba_target_override

        with numba_target_override():
            return _Kernel._rebuild(**pickle.loads(code))  # noqa: S301

    def serialised(self, compiled: Any) -> bytes:
        """Returns what a file holds of a kernel."""
        from numba.cuda.serialize import dumps as dumps_for_gpu

        return bytes(dumps_for_gpu(compiled._reduce_states()))


LISTENERS: list[Callable[[str], None]] = []


@contextmanager
def compiling_told_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls `listener` with the name of every kernel that has to be compiled meanwhile."""
    LISTENERS.append(listener)
    try:
        yield
    finally:
        LISTENERS.remove(listener)


def tell_compiling(name: str) -> None:
    """Tells all who listen that the kernel of that name is about to be compiled."""
    for listener in tuple(LISTENERS):
        listener(name)


def source_hash(folder: Path) -> str:
    """Returns a hash of all Python sources in the folder: names and contents."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        content = source.read_bytes()
        digest.update(f"{source.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


@cache
def cache_directory() -> Path | None:
    """Returns the folder for the machine code of these sources, or None for memory only.

    `NUMBA_CACHE_DIR` if it is set; else beside the sources, else in the user's cache folder.
    """
    here = Path(__file__).parent
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        roots = [Path(chosen)]
    else:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        roots = [here / "__pycache__", Path(user) / "surestep"]
    return first_writable(root / f"surestep-kernels-{source_hash(here)}" for root in roots)


def first_writable(folders: Iterable[Path]) -> Path | None:
    """Returns the first folder that exists or can be made, and that can be written to."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None
