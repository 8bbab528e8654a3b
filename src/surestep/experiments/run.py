"""Running an experiment: every block that is not there yet, then the table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from surestep._blocks import code_here, digest_of
from surestep.algorithms import needs_log
from surestep.algorithms import registry as algorithms
from surestep.certificates import registry as certificates
from surestep.environments import registry as environments
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments.cell import CellBlock, run_block
from surestep.experiments.claims import run_claims
from surestep.experiments.experiment import Experiment
from surestep.experiments.given import module_of
from surestep.experiments.store import Store
from surestep.extensions import Shelf, check_importable, version_of, versions_of
from surestep.kernels._device import device_in_use
from surestep.parallel import map_as_done, reach

REPETITIONS = 50  # of a block
WITH_CLAIMS = 25
ON_GPU = 1000  # which fewer would leave idle


def blocks_of(experiment: Experiment) -> list[CellBlock]:
    """The blocks of an experiment, the largest data sets first, since they take longest.

    Of claims, all sizes are one block, and the first repetitions of all environments come first.
    """
    many, together = experiment.repetitions, repetitions_together(experiment)
    firsts = range(0, many, together)
    sizes: list[tuple[int, ...]] = [(size,) for size in sorted(experiment.episodes, reverse=True)]
    places = [
        (environment, episodes, first)
        for environment in experiment.environments
        for episodes in ([experiment.episodes] if experiment.certifiers else sizes)
        for first in firsts
    ]
    if experiment.certifiers:
        places.sort(key=lambda place: place[2])
    return [
        CellBlock(
            experiment.seed,
            environment,
            episodes,
            first,
            min(first + together, many),
            experiment.algorithms,
            experiment.certifiers,
        )
        for environment, episodes, first in places
    ]


def repetitions_together(experiment: Experiment) -> int:
    """Returns the repetitions of a block: more for a GPU, if each is planned from counts alone."""
    if experiment.certifiers:
        return WITH_CLAIMS
    counted = not any(needs_log(spec.make()) for spec in experiment.algorithms)
    return ON_GPU if counted and device_in_use() != "cpu" else REPETITIONS


def brought_to(block: CellBlock) -> dict[str, str]:
    """Returns the extensions in a block with their versions, and own modules with their sources."""
    specs: list[tuple[Shelf[Any], Any]] = [(environments.SHELF, block.environment)]
    specs += [(algorithms.SHELF, spec) for spec in block.algorithms]
    specs += [(certificates.SHELF, spec) for spec in block.certifiers]
    own = {module_of(thing): version_of(thing) for _, spec in specs for thing in spec.code}
    return own | versions_of((shelf, spec.name) for shelf, spec in specs if spec.own is None)


def code_of(block: CellBlock) -> str:
    """Returns what stands for all sources and versions that would make a block here and now."""
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
    """Runs what is not done yet and writes the table; `progress(done, total)` counts blocks.

    `engine` "local" is `workers` processes of this machine, "ray" the cluster at `address`, whose
    machines must see the directory and have the same code.

    Blocks that other code or versions made are made again, unless `keep`; `outdated(old, total)` is
    told how many these are, if any. Each row says which code made it.

    The table depends on the experiment and the code alone, not on workers, nor on where a run was
    interrupted.
    """
    reach(engine, address)
    if engine == "ray":
        check_in_modules(experiment)
    elif workers > 1:
        check_importable(experiment.given())
    store = Store(Path(directory))
    with store.held():
        store.open(experiment)
        blocks = blocks_of(experiment)
        expected = {block.key: code_of(block) for block in blocks}
        found = {key: kept.made_by for key in expected if (kept := store.blocks.read(key))}
        old = sum(code != expected[key] for key, code in found.items())
        if old:
            outdated(old, len(blocks))
        there = {key for key, code in found.items() if keep or code == expected[key]}
        tasks = [(block, expected[block.key]) for block in blocks if block.key not in there]
        progress(len(there), len(blocks))
        function, spent = partial(run_into, store), 0.0
        made = map_as_done(function, tasks, engine=engine, workers=workers, address=address)
        for done, (_, seconds) in enumerate(made, len(there) + 1):
            spent += seconds
            progress(done, len(blocks))
        made_by = [found[key] if key in there else expected[key] for key in expected]
        store.write_table(list(expected))
        store.write_manifest(experiment, Counter(made_by), spent)
    return store.table


def check_in_modules(experiment: Experiment) -> None:
    """Refuses objects of the script itself: on other machines nobody knows its sources."""
    for what, thing in experiment.given():
        if module_of(thing) == "__main__":
            raise InvalidParameter(
                f"the {what} stands in the script that runs, which the machines of a cluster do "
                "not have; define it in a module that they can import"
            )


def run_into(store: Store, task: tuple[CellBlock, str]) -> float:
    """Runs a block and keeps its rows with what made them; returns the seconds that it took."""
    begun, (block, expected) = time.perf_counter(), task
    code = code_of(block)
    if code != expected:
        raise SurestepError(
            f"{block.key} would be made by the code {code}, but the run began with {expected}: its "
            "sources were changed meanwhile, or this machine has others; run again"
        )
    rows = run_claims(block) if block.certifiers else run_block(block)
    store.blocks.write(block.key, code, rows)
    return time.perf_counter() - begun
