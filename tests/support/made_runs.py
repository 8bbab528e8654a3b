"""Runs that nobody ran: a manifest and made-up rows, for tests of what is made of runs."""

import json

import numpy as np

from surestep.experiments.run import Store
from surestep.io.sql import in_memory, sql_text

METHODS = (("basic-rl", "", None), ("spibb", "", 100), ("spibb-beta", "delta=0.1", 100))


def made_run(
    directory,
    methods=METHODS,
    *,
    environments=("gridworld",),
    episodes=(10, 100),
    repetitions=20,
    name="made",
    identity=None,
    without=(),
    changed=None,
):
    """Writes the run and returns its directory; `changed` are columns that replace others."""
    columns = made_columns(methods, environments, episodes, repetitions) | (changed or {})
    kept = {key: column for key, column in columns.items() if key not in without}
    directory.mkdir(parents=True, exist_ok=True)
    content = {
        "name": name,
        "title": "A made-up run",
        "repetitions": repetitions,
        "identity": identity or json.dumps({"name": name, "seed": 7}),
        "made_by": {"abc": 1},
        "seconds": 2.25,
    }
    store = Store(directory)
    store.manifest.write_text(json.dumps(content))
    with in_memory(threads=1) as database:
        database.register("rows", kept)
        database.execute(f"COPY rows TO {sql_text(str(store.table))} (FORMAT parquet)")
    return directory


def made_columns(methods=METHODS, environments=("gridworld",), episodes=(10,), repetitions=20):
    """The columns of such a table: performances in [0, 1], better with more data."""
    rng = np.random.default_rng(3)
    keys = [
        (environment, size, *method, repetition)
        for environment in environments
        for size in episodes
        for method in methods
        for repetition in range(repetitions)
    ]
    labels = list(zip(*keys, strict=True))
    total = len(keys)
    given = np.array([np.nan if wedge is None else wedge for wedge in labels[4]], float)
    sizes = np.array(labels[1])
    return {
        "environment": np.array(labels[0], object),
        "episodes": sizes,
        "algorithm": np.array(labels[2], object),
        "setting": np.array(labels[3], object),
        "n_wedge": given,
        "n_wedge_used": given / 2,
        "repetition": np.array(labels[5]),
        "performance": rng.beta(np.log(sizes) + 1, 2.0),
        "behavior_performance": np.full(total, 0.4),
        "optimal_performance": np.full(total, 1.0),
        "lowest_performance": np.zeros(total),
        "highest_performance": np.ones(total),
    }
