"""Where the rows of a run are kept: a file for every block, and one table in the end.

A block is done if and only if its file is there, and files appear whole: whatever kills a run, the
next one goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surestep._arrays import AnyArray
from surestep._files import write_together
from surestep._version import __version__
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments.plan import Experiment

FORMAT = 1
PACKAGES = ("numpy", "scipy", "numba", "duckdb")
# NaN stands for "none" in columns of whole numbers, which NumPy has no other word for.
WHOLE = "REPLACE (n_wedge::BIGINT AS n_wedge, n_wedge_used::BIGINT AS n_wedge_used)"
ORDER = (
    "environment", "episodes", "algorithm", "setting", "n_wedge", "certifier", "certifier_setting",
    "repetition",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Store:
    """The directory of a run."""

    directory: Path

    @property
    def manifest(self) -> Path:
        """What the run is, with which versions, and where its time went."""
        return self.directory / "manifest.json"

    @property
    def table(self) -> Path:
        """All rows, once the run is complete."""
        return self.directory / "table.parquet"

    def block(self, key: str) -> Path:
        """The rows of one block."""
        return self.directory / "blocks" / f"{key}.parquet"

    def open(self, experiment: Experiment) -> None:
        """Makes the directory, or finds that it belongs to this experiment."""
        try:
            self.block("any").parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise SurestepError(f"cannot make {self.directory}: {problem.strerror}") from None
        if not self.manifest.exists():
            if any(self.directory.glob("blocks/*.parquet")):
                raise InvalidParameter(
                    f"{self.directory} has blocks but no manifest.json, so nobody knows what they "
                    "belong to; give another directory, or delete it"
                )
            self.write_manifest(experiment, {})
            return
        found = self.read_manifest()
        if found.get("identity") != experiment.identity() or found.get("format") != FORMAT:
            raise InvalidParameter(
                f"{self.directory} holds the experiment {found.get('name')!r}, begun with other "
                f"settings than {experiment.name!r} has now; give another directory with -o, or "
                "delete it"
            )

    def read_manifest(self) -> dict[str, Any]:
        """The manifest, which must be one."""
        try:
            found = json.loads(self.manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise InvalidParameter(f"cannot read {self.manifest}: {problem}") from None
        if not isinstance(found, dict):
            raise InvalidParameter(f"{self.manifest} is no manifest of a run")
        return found

    def write_manifest(self, experiment: Experiment, seconds: Mapping[str, float]) -> None:
        """What the run is; `seconds` says where its time went."""
        content = {
            "format": FORMAT,
            "name": experiment.name,
            "title": experiment.title,
            "repetitions": experiment.repetitions,
            "identity": experiment.identity(),
            "versions": {
                "surestep": __version__,
                "python": platform.python_version(),
                **{package: version(package) for package in PACKAGES},
            },
            "seconds": dict(seconds),
        }
        write_together({self.manifest: [(json.dumps(content, indent=2) + "\n").encode()]})

    def write_block(self, key: str, columns: Mapping[str, AnyArray]) -> None:
        """The rows of a block, whole or not at all."""
        with connection() as database:
            database.register("rows", dict(columns))
            write_query(database, f"SELECT * {WHOLE} FROM rows", self.block(key))

    def write_table(self, keys: Sequence[str]) -> None:
        """All rows of the blocks, in one order."""
        paths = [str(self.block(key)) for key in keys]
        with connection() as database:
            whole = database.read_parquet(paths)
            database.register("rows", whole)
            order = ", ".join(name for name in ORDER if name in whole.columns)
            write_query(database, f"SELECT * FROM rows ORDER BY {order}", self.table)

    def read_table(self) -> dict[str, AnyArray]:
        """All rows, column by column."""
        if not self.table.exists():
            raise InvalidParameter(
                f"{self.directory} holds no table.parquet: the run is not complete; go on with "
                "surestep run"
            )
        with connection() as database:
            columns: dict[str, AnyArray] = database.read_parquet(str(self.table)).fetchnumpy()
        return columns


def connection() -> Any:
    """A database of its own, on one thread, so that rows keep their order."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def write_query(database: Any, query: str, path: Path) -> None:
    """The result of a query as a Parquet file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        database.sql(query).write_parquet(str(temporary))
        os.replace(temporary, path)
    except OSError as problem:
        raise SurestepError(f"cannot write {path}: {problem.strerror or problem}") from None
    finally:
        temporary.unlink(missing_ok=True)
