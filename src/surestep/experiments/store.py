"""The directory of a run: a file for every finished block, and one table in the end.

A block is done if its file is there, can be read, and was made by what would make it now; files
appear whole. Whatever kills a run, the next one goes on where it stopped.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from surestep._arrays import AnyArray
from surestep._blocks import BlockFolder, versions_here
from surestep._files import BESIDE, beside, lock, write_together
from surestep.errors import FileFailure, InvalidParameter
from surestep.experiments.experiment import Experiment
from surestep.io.sql import first_lines, in_memory, sql_text

FORMAT = 2
# NaN stands for "none" in columns of whole numbers, which NumPy has no other word for.
WHOLE = "REPLACE (n_wedge::BIGINT AS n_wedge, n_wedge_used::BIGINT AS n_wedge_used)"
ORDER = (
    "environment", "episodes", "algorithm", "setting", "n_wedge", "certifier", "certifier_setting",
    "repetition",
)  # fmt: skip


class Manifest(Struct, frozen=True):
    """A description of a run: what it is, by which code and versions, and how long it took."""

    name: str
    title: str
    identity: str
    format: int = 0
    repetitions: int = 0
    versions: dict[str, str] = {}
    made_by: dict[str, int] = {}
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Store:
    """The directory of a run."""

    directory: Path

    @property
    def manifest(self) -> Path:
        """Returns the path of the manifest: what the run is, its versions, and its time."""
        return self.directory / "manifest.json"

    @property
    def table(self) -> Path:
        """Returns the path of the table of all rows, written once the run is complete."""
        return self.directory / "table.parquet"

    @property
    def blocks(self) -> BlockFolder:
        """Returns the folder of the rows of each block."""
        return BlockFolder(self.directory / "blocks")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes the directory and keeps other runs out; what killed ones left in it is removed."""
        try:
            self.blocks.folder.mkdir(parents=True, exist_ok=True)
            file = (self.directory / ".lock").open("ab")
        except OSError as problem:
            raise FileFailure(f"{self.directory} cannot be written: {problem.strerror}") from None
        with file:
            try:
                alone = lock(file)
            except OSError:  # no locks here: nobody can be kept out
                yield
                return
            if not alone:
                raise FileFailure(
                    f"another run is at work in {self.directory}; wait for it, or give another "
                    "directory with -o"
                )
            for path in self.directory.rglob(f"{BESIDE}*"):  # never moved to its place
                with suppress(OSError):
                    path.unlink()
            yield

    def open(self, experiment: Experiment) -> None:
        """Begins the experiment, or finds that the directory belongs to it."""
        if not self.manifest.exists():
            if any(self.blocks.folder.iterdir()):
                raise InvalidParameter(
                    f"{self.directory} has blocks but no manifest.json, so nobody knows what they "
                    "belong to; give another directory, or delete it"
                )
            self.write_manifest(experiment, {}, 0.0)
            return
        held = self.read_manifest()
        if (held.identity, held.format) != (experiment.identity(), FORMAT):
            raise InvalidParameter(
                f"{self.directory} holds the experiment {held.name!r}, begun with other settings "
                f"than {experiment.name!r} has now, or by an older version; give another directory "
                "with -o, or delete it"
            )

    def read_manifest(self) -> Manifest:
        """Reads the manifest, which must be one."""
        try:
            return msgspec.json.decode(self.manifest.read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError, RecursionError) as problem:
            raise FileFailure(
                f"{self.manifest} cannot be read: {problem}; put it back, or begin anew in another "
                "directory"
            ) from None

    def write_manifest(
        self, experiment: Experiment, blocks: Mapping[str, int], seconds: float
    ) -> None:
        """Writes the manifest: how many blocks which code made, and the seconds, with before.

        The versions are those of the code that made blocks last.
        """
        before = self.read_manifest().seconds if self.manifest.exists() else 0.0
        content = Manifest(
            name=experiment.name,
            title=experiment.title,
            identity=experiment.identity(),
            format=FORMAT,
            repetitions=experiment.repetitions,
            versions=versions_here(),
            made_by=dict(sorted(blocks.items())),
            seconds=round(before + seconds, 3),
        )
        text = msgspec.json.format(msgspec.json.encode(content), indent=2)
        write_together({self.manifest: [text + b"\n"]})

    def write_table(self, keys: Sequence[str]) -> None:
        """Writes all rows of the blocks, in one order, each with the code that made it."""
        with in_memory(threads=1) as database:
            for place, key in enumerate(keys):
                kept = self.blocks.read(key)
                if kept is None:
                    raise FileFailure(
                        f"{self.blocks.path_of(key)} was damaged meanwhile; run again"
                    )
                size = len(next(iter(kept.arrays.values())))
                code = np.full(size, kept.made_by, object)
                database.register("block", {**kept.arrays, "code": code})
                into = "INSERT INTO rows BY NAME" if place else "CREATE TEMP TABLE rows AS"
                database.execute(f"{into} SELECT * {WHOLE} FROM block")
            names = [row[0] for row in database.execute("DESCRIBE rows").fetchall()]
            order = ", ".join(name for name in ORDER if name in names)
            write_query(database, f"SELECT * FROM rows ORDER BY {order}", self.table)

    def read_table(self) -> dict[str, AnyArray]:
        """All rows, column by column."""
        if not self.table.exists():
            raise InvalidParameter(
                f"{self.directory} holds no table.parquet: the run is not complete; go on with "
                "surestep run"
            )
        import duckdb

        with in_memory(threads=1) as database:
            try:
                columns: dict[str, AnyArray] = database.read_parquet(
                    glob.escape(str(self.table))  # which DuckDB takes for no pattern
                ).fetchnumpy()
            except duckdb.Error as problem:
                raise FileFailure(
                    f"{self.table} cannot be read: {first_lines(problem)}; delete it, and run again"
                ) from None
        return columns


def write_query(database: Any, query: str, path: Path) -> None:
    """Writes the result of a query as Parquet, whole or not at all."""
    import duckdb

    temporary = beside(path)
    try:
        database.execute(f"COPY ({query}) TO {sql_text(str(temporary))} (FORMAT parquet)")
        os.replace(temporary, path)
    except (duckdb.IOException, OSError) as problem:
        reason = getattr(problem, "strerror", None) or first_lines(problem)
        raise FileFailure(
            f"{path} cannot be written: {reason}; once it can, the same command goes on from here"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
