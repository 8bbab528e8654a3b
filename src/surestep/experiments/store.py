"""The store of a run's rows: a file for every block, and one table in the end.

A block is done if its file is there, can be read, and was made by what would make it now; files
appear whole. Whatever kills a run, the next one goes on where it stopped.
"""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep._files import BESIDE, beside, lock, write_together
from surestep.errors import FileFailure, InvalidParameter
from surestep.experiments.experiment import Experiment
from surestep.experiments.origin import Origin, origin_from_json
from surestep.io.sql import file_list, first_lines, in_memory, sql_text

FORMAT = 1
ORIGIN = "surestep"  # the name under which a Parquet file says what made it
UNKNOWN = "unknown"  # what made blocks of versions that did not say
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
        """Returns the path of the manifest: what the run is, its versions, and its time."""
        return self.directory / "manifest.json"

    @property
    def table(self) -> Path:
        """Returns the path of the table of all rows, written once the run is complete."""
        return self.directory / "table.parquet"

    def block(self, key: str) -> Path:
        """Returns the path of the rows of one block."""
        return self.directory / "blocks" / f"{key}.parquet"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes the directory and keeps other runs out; what killed ones left in it is removed."""
        try:
            self.block("any").parent.mkdir(parents=True, exist_ok=True)
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
            self.remove_leftovers()
            try:
                yield
            finally:
                self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Removes what was never moved to its place."""
        for folder in (self.directory, self.block("any").parent):
            for path in folder.glob(f"{BESIDE}*"):
                with suppress(OSError):
                    path.unlink()

    def open(self, experiment: Experiment) -> None:
        """Begins the experiment, or finds that the directory belongs to it."""
        if not self.manifest.exists():
            if any(self.directory.glob("blocks/*.parquet")):
                raise InvalidParameter(
                    f"{self.directory} has blocks but no manifest.json, so nobody knows what they "
                    "belong to; give another directory, or delete it"
                )
            self.write_manifest(experiment, {}, {})
            return
        manifest = self.read_manifest()
        if manifest.get("identity") != experiment.identity() or manifest.get("format") != FORMAT:
            raise InvalidParameter(
                f"{self.directory} holds the experiment {manifest.get('name')!r}, begun with other "
                f"settings than {experiment.name!r} has now; give another directory with -o, or "
                "delete it"
            )

    def read_manifest(self) -> dict[str, Any]:
        """Reads the manifest, which must be one."""
        try:
            manifest = json.loads(self.manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as problem:
            raise FileFailure(
                f"{self.manifest} cannot be read: {problem}; put it back, or begin anew in another "
                "directory"
            ) from None
        if not isinstance(manifest, dict):
            raise FileFailure(f"{self.manifest} is no manifest of a run")
        return manifest

    def read_plan(self) -> dict[str, Any]:
        """Returns what was run, as `Experiment.identity` has it."""
        try:
            plan = json.loads(self.read_manifest()["identity"])
        except (KeyError, TypeError, ValueError, RecursionError):
            plan = None
        if not isinstance(plan, dict):
            raise FileFailure(f"{self.manifest} does not say what was run")
        return plan

    def write_manifest(
        self,
        experiment: Experiment,
        made_by: Mapping[str, object],
        seconds: Mapping[str, float],
    ) -> None:
        """Writes the manifest; `made_by` says what made the rows, `seconds` where time went."""
        content = {
            "format": FORMAT,
            "name": experiment.name,
            "title": experiment.title,
            "repetitions": experiment.repetitions,
            "identity": experiment.identity(),
            "made_by": dict(made_by),
            "seconds": dict(seconds),
        }
        write_together({self.manifest: [(json.dumps(content, indent=2) + "\n").encode()]})

    def origin(self, key: str) -> Origin | None:
        """Returns the origin of a block; None where there is no block that can be read."""
        import duckdb

        path = self.block(key)
        if not path.exists():
            return None
        with in_memory(threads=1) as database:
            try:
                rows = database.execute(
                    "SELECT value FROM parquet_kv_metadata(?) WHERE decode(key) = ?",
                    [escaped(path), ORIGIN],
                ).fetchall()
            except duckdb.Error:
                return None
        origin = origin_from_json(bytes(rows[0][0]).decode(errors="replace")) if rows else None
        return origin or Origin(UNKNOWN, UNKNOWN, {})

    def origins(self, keys: Sequence[str]) -> dict[str, Any]:
        """For each digest of code the versions that it ran with, and how many blocks it made."""
        origins = [origin for origin in map(self.origin, keys) if origin is not None]
        blocks = Counter(origin.code for origin in origins)
        return {
            origin.code: {"versions": origin.versions, "blocks": blocks[origin.code]}
            for origin in sorted(origins, key=lambda origin: origin.code)
        }

    def write_block(self, key: str, columns: Mapping[str, AnyArray], origin: Origin) -> None:
        """Writes the rows of a block with what made them, whole or not at all."""
        size = len(next(iter(columns.values())))
        marked = {**columns, "code": np.full(size, origin.code, object)}
        with in_memory(threads=1) as database:  # rows keep their order
            database.register("rows", marked)
            write_query(database, f"SELECT * {WHOLE} FROM rows", self.block(key), origin.to_json())

    def write_table(self, keys: Sequence[str]) -> None:
        """Writes all rows of the blocks, in one order."""
        import duckdb

        blocks = file_list([self.block(key) for key in keys])
        with in_memory(threads=1) as database:
            try:
                database.execute(
                    "CREATE TEMP TABLE rows AS "
                    f"SELECT * FROM read_parquet({blocks}, union_by_name=true)"
                )
            except duckdb.Error as problem:
                raise FileFailure(
                    f"{self.damaged(keys) or self.directory} cannot be read: {said(problem)}; "
                    "delete it, and run again"
                ) from None
            names = [row[0] for row in database.execute("DESCRIBE rows").fetchall()]
            order = ", ".join(name for name in ORDER if name in names)
            known = f"* REPLACE (coalesce(code, '{UNKNOWN}') AS code)"
            known = known if "code" in names else f"*, '{UNKNOWN}' AS code"
            write_query(database, f"SELECT {known} FROM rows ORDER BY {order}", self.table)

    def damaged(self, keys: Sequence[str]) -> Path | None:
        """The first block whose rows cannot all be read."""
        import duckdb

        with in_memory(threads=1) as database:
            for path in map(self.block, keys):
                try:
                    database.read_parquet(escaped(path)).fetchnumpy()
                except duckdb.Error:
                    return path
        return None

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
                    escaped(self.table)
                ).fetchnumpy()
            except duckdb.Error as problem:
                raise FileFailure(
                    f"{self.table} cannot be read: {said(problem)}; delete it, and run again"
                ) from None
        return columns


def write_query(database: Any, query: str, path: Path, origin: str | None = None) -> None:
    """Writes the result of a query as Parquet that may say what made it, whole or not at all."""
    import duckdb

    temporary = beside(path)
    noted = "" if origin is None else f", KV_METADATA {{{ORIGIN}: {sql_text(origin)}}}"
    try:
        database.execute(f"COPY ({query}) TO {sql_text(str(temporary))} (FORMAT parquet{noted})")
        os.replace(temporary, path)
    except (duckdb.IOException, OSError) as problem:
        raise FileFailure(
            f"{path} cannot be written: {said(problem)}; once it can, the same command goes on "
            "from here"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def escaped(path: Path) -> str:
    """A path that DuckDB takes for no pattern."""
    return glob.escape(str(path))


def said(problem: Exception) -> str:
    """Returns what went wrong in a few words."""
    return str(getattr(problem, "strerror", None) or first_lines(problem))
