"""Running an experiment: every block that is not there yet, then the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from surestep.algorithms import needs_log
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments.cell import Block, Spent, run_block
from surestep.experiments.claims import ClaimBlock, claim_blocks, run_claims
from surestep.experiments.experiment import Experiment
from surestep.experiments.given import module_of
from surestep.experiments.origin import Origin, origin_of
from surestep.experiments.store import Store
from surestep.extensions import check_importable
from surestep.kernels._device import device_in_use
from surestep.parallel import map_as_done, reach

BLOCK_REPETITIONS = 50
REPETITIONS_ON_GPU = 1000  # which fewer would leave idle
SPENT_ON = ("sampling", "improving", "evaluating", "certifying")


def blocks_of(experiment: Experiment) -> Sequence[Block | ClaimBlock]:
    """The blocks of an experiment, the largest data sets first, since they take longest."""
    if experiment.certifiers:
        return claim_blocks(experiment)
    size, together = experiment.repetitions, repetitions_together(experiment)
    return [
        Block(
            experiment.seed,
            environment,
            episodes,
            first,
            min(first + together, size),
            experiment.algorithms,
        )
        for environment in experiment.environments
        for episodes in sorted(experiment.episodes, reverse=True)
        for first in range(0, size, together)
    ]


def repetitions_together(experiment: Experiment) -> int:
    """Returns the repetitions of a block: more for a GPU, if each is planned from counts alone."""
    counted = not any(needs_log(spec.make()) for spec in experiment.algorithms)
    return REPETITIONS_ON_GPU if counted and device_in_use() != "cpu" else BLOCK_REPETITIONS


def run_experiment(
    experiment: Experiment,
    directory: str | Path,
    *,
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    keep_old: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    outdated: Callable[[int, int], None] = lambda old, total: None,
) -> Path:
    """Runs what is not done yet and writes the table; `progress(done, total)` counts blocks.

    `engine` "local" is `workers` processes of this machine, "ray" the cluster at `address`, whose
    machines must see the directory and have the same code.

    Blocks that other code or versions made are made again, unless `keep_old`; `outdated(old,
    total)` is told how many these are, if any. Each row says which code made it.

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
        expected = {block.key: origin_of(block) for block in blocks}
        waiting, old = to_do(store, expected, keep_old=keep_old)
        if old:
            outdated(old, len(blocks))
        tasks = [(block, expected[block.key]) for block in blocks if block.key in waiting]
        done = len(blocks) - len(tasks)
        progress(done, len(blocks))
        spent = []
        function = partial(run_into, store)
        for _, seconds in map_as_done(
            function, tasks, engine=engine, workers=workers, address=address
        ):
            spent.append(seconds)
            done += 1
            progress(done, len(blocks))
        store.write_table(list(expected))
        before = store.read_manifest().get("seconds", {})
        store.write_manifest(experiment, store.origins(list(expected)), totals(spent, before))
    return store.table


def check_in_modules(experiment: Experiment) -> None:
    """Refuses objects of the script itself: on other machines nobody knows its sources."""
    for what, thing in experiment.given():
        if module_of(thing) == "__main__":
            raise InvalidParameter(
                f"the {what} stands in the script that runs, which the machines of a cluster do "
                "not have; define it in a module that they can import"
            )


def to_do(store: Store, expected: Mapping[str, Origin], *, keep_old: bool) -> tuple[set[str], int]:
    """The keys of blocks that are to be made, and how many there are of other code or versions."""
    waiting, old = set[str](), 0
    for key, origin in expected.items():
        present = store.origin(key)
        if present is not None and present.agrees(origin):
            continue
        old += present is not None
        if present is None or not keep_old:
            waiting.add(key)
    return waiting, old


def run_into(store: Store, task: tuple[Block | ClaimBlock, Origin]) -> Spent:
    """Runs a block and keeps its rows with what made them."""
    block, expected = task
    origin = origin_of(block)
    if origin.code != expected.code:
        raise SurestepError(
            f"{block.key} would be made by the code {origin.code}, but the run began with "
            f"{expected.code}: its sources were changed meanwhile, or this machine has others; run "
            "again"
        )
    rows = run_block(block) if isinstance(block, Block) else run_claims(block)
    store.write_block(block.key, rows.columns, origin)
    return rows.spent


def totals(spent: Sequence[Spent], before: Mapping[str, float]) -> dict[str, float]:
    """The seconds of these blocks and of what was done before, by what they were spent on."""
    return {
        name: round(before.get(name, 0.0) + sum(block[name] for block in spent), 3)
        for name in SPENT_ON
    }
