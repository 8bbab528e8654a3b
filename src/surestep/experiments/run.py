"""Running an experiment: every block that is not there yet, then the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from surestep.experiments.cell import Block, run_block
from surestep.experiments.claims import ClaimBlock, claim_blocks, run_claims
from surestep.experiments.plan import Experiment
from surestep.experiments.store import Store
from surestep.parallel import map_in_order, map_on_ray

BLOCK_REPETITIONS = 50


class Spent(NamedTuple):
    """Where the time of a block went, in seconds."""

    sampling: float
    improving: float
    evaluating: float
    certifying: float


def blocks_of(experiment: Experiment) -> Sequence[Block | ClaimBlock]:
    """The blocks of an experiment, the largest data sets first, since they take longest."""
    if experiment.certifiers:
        return claim_blocks(experiment)
    size = experiment.repetitions
    return [
        Block(
            experiment.seed,
            environment,
            episodes,
            first,
            min(first + BLOCK_REPETITIONS, size),
            experiment.algorithms,
        )
        for environment in experiment.environments
        for episodes in sorted(experiment.episodes, reverse=True)
        for first in range(0, size, BLOCK_REPETITIONS)
    ]


def run_experiment(
    experiment: Experiment,
    directory: Path,
    *,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Runs what is not done yet and writes the table; `progress(done, total)` counts blocks.

    `engine` "local" is `workers` processes of this machine, "ray" the cluster at `address`, whose
    machines must see the directory.

    The table depends on the experiment alone, not on workers, nor on where a run was interrupted.
    """
    store = Store(directory)
    store.open(experiment)
    blocks = blocks_of(experiment)
    waiting = [block for block in blocks if not store.block(block.key).exists()]
    done = len(blocks) - len(waiting)
    progress(done, len(blocks))
    spent = []
    function = partial(run_into, store)
    answers = (
        map_on_ray(function, waiting, address=address)
        if engine == "ray"
        else map_in_order(function, waiting, workers=workers)
    )
    for seconds in answers:
        spent.append(seconds)
        done += 1
        progress(done, len(blocks))
    store.write_table([block.key for block in blocks])
    before = store.read_manifest().get("seconds", {})
    store.write_manifest(experiment, totals(spent, before))
    return store.table


def run_into(store: Store, block: Block | ClaimBlock) -> Spent:
    """Runs a block and keeps its rows."""
    rows = run_block(block) if isinstance(block, Block) else run_claims(block)
    store.write_block(block.key, rows.columns)
    return Spent(rows.sampling, rows.improving, rows.evaluating, rows.certifying)


def totals(spent: Sequence[Spent], before: Mapping[str, float]) -> dict[str, float]:
    """The seconds of these blocks and of what was done before, by what they were spent on."""
    return {
        name: round(before.get(name, 0.0) + sum(getattr(each, name) for each in spent), 3)
        for name in Spent._fields
    }
