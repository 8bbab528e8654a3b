"""Which file a refusal is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surestep.errors import InvalidModel


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Puts the name of the file before whatever is refused inside."""
    try:
        yield
    except InvalidModel as refusal:
        raise InvalidModel(f"{path}: {refusal}") from None
