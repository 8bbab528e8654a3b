"""Fits d3rlpy's discrete CQL and BCQ to logs, in an environment of its own.

    .peers/bin/python benchmarks/peers_fit.py FOLDER [--workers 2] [--seconds 3600]

FOLDER holds logs as `benchmarks/peers.py` writes them, NAME.log.npz. Every setting is fitted to
every log, and the greedy action of each state is kept after each number of gradient steps, in
NAME.SETTING.fit.npz. A run that was ended goes on where it stopped. States are one-hot vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

SMALLEST = (".",)  # the arguments of the quickest run: nothing is there to be fitted
STEPS = (5_000, 20_000)
# As the library has them, and what was found to suit such small problems better: a larger learning
# rate, and targets that follow sooner than after 8,000 steps.
QUICK = {"learning_rate": 1e-3, "target_update_interval": 250}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "cql, as it comes": ("DiscreteCQLConfig", {}),
    "cql, α = 0.1": ("DiscreteCQLConfig", {**QUICK, "alpha": 0.1}),
    "cql, α = 1": ("DiscreteCQLConfig", {**QUICK, "alpha": 1.0}),
    "cql, α = 4": ("DiscreteCQLConfig", {**QUICK, "alpha": 4.0}),
    "bcq, as it comes": ("DiscreteBCQConfig", {}),
    "bcq, τ = 0.1": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.1}),
    "bcq, τ = 0.3": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.3}),
    "bcq, τ = 0.5": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.5}),
}


def file_of(log: Path, setting: str) -> Path:
    """Returns where the fits of a setting to the log are kept."""
    short = "".join(sign for sign in setting if sign.isascii() and sign.isalnum())
    return log.with_name(log.name.replace(".log.npz", f".{short}.fit.npz"))


def fit(log: Path, setting: str) -> float:
    """Fits the setting to the log, keeps its greedy actions, and returns the seconds it took."""
    import d3rlpy
    import torch

    torch.set_num_threads(1)  # several fits run beside each other
    d3rlpy.seed(0)
    with np.load(log) as kept:
        data = dict(kept)
    one_hot = np.eye(int(data["states"]), dtype=np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        one_hot[data["state"]],
        data["action"][:, None],
        data["reward"].astype(np.float32)[:, None],
        terminals=data["terminated"].astype(np.float32),
        timeouts=data["truncated"].astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=int(data["actions"]),
    )
    name, parameters = SETTINGS[setting]
    config = getattr(d3rlpy.algos, name)(gamma=float(data["discount"]), **parameters)
    learner = config.create(device="cpu")
    began = time.perf_counter()
    taken, seconds = [], []
    epoch = STEPS[0]
    for number, _ in learner.fitter(
        dataset,
        n_steps=STEPS[-1],
        n_steps_per_epoch=epoch,
        show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    ):
        if number * epoch in STEPS:
            taken.append(learner.predict(one_hot))
            seconds.append(time.perf_counter() - began)
    whole = file_of(log, setting).with_suffix(".part")
    with open(whole, "wb") as file:
        np.savez(file, action=np.array(taken), seconds=np.array(seconds), steps=np.array(STEPS))
    os.replace(whole, file_of(log, setting))
    return seconds[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    # Logs are named so that the first data set of all comes before the second of any.
    logs = sorted(given.folder.glob("*.log.npz"), key=lambda log: log.name.split("-")[-1])
    tasks = [(log, s) for log in logs for s in SETTINGS if not file_of(log, s).exists()]
    print(f"{len(logs)} logs, {len(tasks)} fits to make")
    end = time.monotonic() + given.seconds
    with ProcessPoolExecutor(given.workers) as pool:
        running = {pool.submit(fit, *task): task for task in tasks}
        for number, done in enumerate(as_completed(running), 1):
            log, setting = running[done]
            print(
                json.dumps([log.name, setting, round(done.result(), 1)]), f"{number}/{len(tasks)}"
            )
            sys.stdout.flush()
            if time.monotonic() > end:
                pool.shutdown(cancel_futures=True)
                break


if __name__ == "__main__":
    main()
