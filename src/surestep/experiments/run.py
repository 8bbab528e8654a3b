"""Runs an experiment: every block that is not done yet, then the table.

The directory of a run has a file for every finished block, and one table in the end. A block is
done if its file exists, can be read, and was made by the present code; files are written whole or
not at all. After a run was killed, the next run does only the missing blocks.
"""

import glob
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from surestep._arrays import AnyArray
from surestep._blocks import BlockFolder, code_here, digest_of, versions_here
from surestep._files import (
    BESIDE,
    failing_to_write,
    lock,
    read_whole,
    temporary_folder,
    write_together,
)
from surestep.algorithms import registry as algorithms
from surestep.algorithms.registry import needs_log
from surestep.certificates import registry as certificates
from surestep.environments import registry as environments
from surestep.errors import FileFailure, InvalidParameter, SurestepError
from surestep.experiments.cell import CellBlock, joined_rows, run_claims, run_methods
from surestep.experiments.experiment import Experiment, module_of
from surestep.extensions import Shelf, check_importable, version_of, versions_of
from surestep.io.sql import first_lines, in_memory, sql_text
from surestep.kernels.devices import device_in_use
from surestep.parallel import map_as_done, reach

FORMAT = 2
# NaN stands for a missing value in columns of whole numbers, since NumPy has no other.
WHOLE = "REPLACE (n_wedge::BIGINT AS n_wedge, n_wedge_used::BIGINT AS n_wedge_used)"
ORDER = (
    "environment", "episodes", "algorithm", "setting", "n_wedge", "certifier", "certifier_setting",
    "repetition",
)  # fmt: skip


class RunManifest(msgspec.Struct, frozen=True):
    """A description of a run: its experiment, the code and versions that made it, and its time."""

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
        """Returns the path of the manifest."""
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
        """Makes the directory, keeps other runs out, and removes the leftovers of killed runs."""
        with failing_to_write(self.directory):
            self.blocks.folder.mkdir(parents=True, exist_ok=True)
            file = (self.directory / ".lock").open("ab")
        with file:
            try:
                alone = lock(file)
            except OSError:  # the file system has no locks
                yield
                return
            if not alone:
                raise FileFailure(
                    f"another run is at work in {self.directory}; wait for it, or give another "
                    "directory with -o"
                )
            for path in self.directory.rglob(f"{BESIDE}*"):  # files never moved to their place
                with suppress(OSError):
                    path.unlink()
            yield

    def open(self, experiment: Experiment) -> None:
        """Begins the experiment in the directory; refuses a directory of another experiment."""
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

    def read_manifest(self) -> RunManifest:
        """Reads the manifest; raises an error if the file is no manifest."""
        try:
            return msgspec.json.decode(self.manifest.read_bytes(), type=RunManifest)
        except (OSError, msgspec.MsgspecError, RecursionError) as problem:
            raise FileFailure(
                f"{self.manifest} cannot be read: {problem}; put it back, or begin anew in another "
                "directory"
            ) from None

    def write_manifest(
        self, experiment: Experiment, blocks: Mapping[str, int], seconds: float
    ) -> None:
        """Writes the manifest: the number of blocks by each code, and the seconds of all runs.

        It names the versions of the present run.
        """
        before = self.read_manifest().seconds if self.manifest.exists() else 0.0
        content = RunManifest(
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
        """Writes all rows of the blocks, sorted, each with the digest of the code that made it."""
        parts = []
        for key in keys:
            kept = self.blocks.read(key)
            if kept is None:
                raise FileFailure(f"{self.blocks.path_of(key)} was damaged meanwhile; run again")
            code = np.full(len(next(iter(kept.arrays.values()))), kept.made_by, object)
            parts.append({**kept.arrays, "code": code})
        rows = joined_rows(parts)
        order = ", ".join(name for name in ORDER if name in rows)
        with temporary_folder() as folder, in_memory(threads=1) as database:
            database.register("rows", rows)
            written = folder / self.table.name
            database.execute(
                f"COPY (SELECT * {WHOLE} FROM rows ORDER BY {order}) "
                f"TO {sql_text(str(written))} (FORMAT parquet)"
            )
            write_together({self.table: [read_whole(written)]})

    def read_table(self) -> dict[str, AnyArray]:
        """Returns all rows, column by column."""
        if not self.table.exists():
            raise InvalidParameter(
                f"{self.directory} holds no table.parquet: the run is not complete; go on with "
                "surestep run"
            )
        import duckdb

        with in_memory(threads=1) as database:
            try:
                columns: dict[str, AnyArray] = database.read_parquet(
                    glob.escape(str(self.table))  # DuckDB would read a pattern
                ).fetchnumpy()
            except duckdb.Error as problem:
                raise FileFailure(
                    f"{self.table} cannot be read: {first_lines(problem)}; delete it, and run again"
                ) from None
        return columns


# ---- running -----------------------------------------------------------------------------------

REPETITIONS = 50  # of a block
WITH_CLAIMS = 25  # of a block with certifiers
ON_GPU = 1000  # of a block on a GPU, which fewer would leave idle


def plan_blocks(experiment: Experiment) -> list[CellBlock]:
    """Returns the blocks of an experiment, the largest data sets first, since they take longest.

    With certifiers, a block has all sizes, and all environments' first repetitions come first.
    """
    together = WITH_CLAIMS if experiment.certifiers else REPETITIONS
    # A GPU takes more repetitions, if all algorithms need counts only.
    if (
        not experiment.certifiers
        and device_in_use() != "cpu"
        and not any(needs_log(spec.make()) for spec in experiment.algorithms)
    ):
        together = ON_GPU
    sizes: list[tuple[int, ...]] = [(size,) for size in sorted(experiment.episodes, reverse=True)]
    places = [
        (environment, episodes, first)
        for environment in experiment.environments
        for episodes in ([experiment.episodes] if experiment.certifiers else sizes)
        for first in range(0, experiment.repetitions, together)
    ]
    if experiment.certifiers:
        places.sort(key=lambda place: place[2])
    return [
        CellBlock(
            experiment.seed,
            environment,
            episodes,
            first,
            min(first + together, experiment.repetitions),
            experiment.algorithms,
            experiment.certifiers,
        )
        for environment, episodes, first in places
    ]


def brought_to(block: CellBlock) -> dict[str, str]:
    """Maps the plug-ins and the user's own modules in a block to their versions."""
    specs: list[tuple[Shelf[Any], Any]] = [
        (environments.SHELF, block.environment),
        *((algorithms.SHELF, spec) for spec in block.algorithms),
        *((certificates.SHELF, spec) for spec in block.certifiers),
    ]
    own = {module_of(thing): version_of(thing) for _, spec in specs for thing in spec.code}
    return own | versions_of((shelf, spec.name) for shelf, spec in specs if spec.own is None)


def code_of_block(block: CellBlock) -> str:
    """Returns a digest of all present sources and versions that a block depends on."""
    return digest_of((code_here(), sorted(brought_to(block).items())))[:16]


def run_experiment(
    experiment: Experiment,
    directory: str | Path,
    *,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    keep: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    outdated: Callable[[int, int], None] = lambda old, total: None,
) -> Path:
    """Runs the blocks of an experiment that are not done yet, and writes its table.

    The table depends on the experiment and the code alone, not on workers or interruptions. Each
    row names the code that made it.

    Parameters
    ----------
    experiment : Experiment
        The plan.
    directory : str or Path
        The folder of the run.
    workers : int
        The number of processes; 1 by default.
    engine : {"local", "ray"}
        "local", the default, uses processes of this machine. "ray" uses a cluster, whose machines
        must see the directory and have the same code.
    address : str, optional
        The address of the cluster.
    keep : bool
        Keeps blocks that other code or versions made; by default they are made again.
    progress : callable, optional
        Called with the number of finished blocks, and the number of all blocks.
    outdated : callable, optional
        Called with the number of blocks that other code or versions made, and the number of all
        blocks, if there are outdated ones.

    Returns
    -------
    Path
        The path of the table.

    Raises
    ------
    FileFailure
        The folder cannot be written, or another run is at work in it.
    InvalidParameter
        The folder holds another experiment.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import make_experiment, run_experiment
    >>> plan = make_experiment("small", environments=["bandit"], algorithms=["basic-rl"],
    ...                        episodes=[20], repetitions=10, seed=1)
    >>> run_experiment(plan, tempfile.mkdtemp()).name
    'table.parquet'
    """
    reach(engine, address)
    if engine == "ray" or workers > 1:
        check_importable(experiment.given(), elsewhere=engine == "ray")
    store = Store(Path(directory))
    with store.held():
        store.open(experiment)
        blocks = plan_blocks(experiment)
        expected = {block.key: code_of_block(block) for block in blocks}
        stored = {key: kept.made_by for key in expected if (kept := store.blocks.read(key))}
        old = sum(code != expected[key] for key, code in stored.items())
        if old:
            outdated(old, len(blocks))
        there = {key for key, code in stored.items() if keep or code == expected[key]}
        tasks = [(block, expected[block.key]) for block in blocks if block.key not in there]
        progress(len(there), len(blocks))
        spent = 0.0
        # Closing it ends the workers first when a run is interrupted.
        with closing(
            map_as_done(
                partial(run_into, store), tasks, engine=engine, workers=workers, address=address
            )
        ) as made:
            for done, (_, seconds) in enumerate(made, len(there) + 1):
                spent += seconds
                progress(done, len(blocks))
        made_by = [stored[key] if key in there else expected[key] for key in expected]
        store.write_table(list(expected))
        store.write_manifest(experiment, Counter(made_by), spent)
    return store.table


def run_into(store: Store, task: tuple[CellBlock, str]) -> float:
    """Runs a block and writes its rows with the digest of the code; returns the seconds it took."""
    begun = time.perf_counter()
    block, expected = task
    code = code_of_block(block)
    if code != expected:
        raise SurestepError(
            f"{block.key} would be made by the code {code}, but the run began with {expected}: its "
            "sources were changed meanwhile, or this machine has others; run again"
        )
    store.blocks.write(
        block.key, code, run_claims(block) if block.certifiers else run_methods(block)
    )
    return time.perf_counter() - begun
