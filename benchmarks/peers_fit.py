"""Fits d3rlpy's discrete CQL and BCQ to logs, in an environment of its own.

    .peers/bin/python benchmarks/peers_fit.py FOLDER [--workers 2] [--device cpu]

FOLDER holds logs as `benchmarks/peers.py` writes them, NAME-EPISODES-NUMBER.log.npz. Every setting
is fitted to every log, and the greedy action of each state is kept after each number of gradient
steps, in NAME.SETTING.fit.npz. A run that was ended goes on where it stopped, group by group.

States are one-hot vectors. A fit spends its time on calls, not on numbers. So the learners of one
setting and environment learn together: their parameters are stacked, and torch runs the networks,
targets and losses of d3rlpy on all of them at once. Each has a start, batches and an Adam of its
own. Before that, d3rlpy makes the first steps of one learner with the same batches, and must reach
the same parameters; then some steps with batches of its own, which tell what a fit alone takes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

SMALLEST = (".",)  # the arguments of the quickest run: nothing is there to be fitted
STEPS = (5_000, 20_000)
COMPARED, TIMED = 20, 200  # steps that d3rlpy makes alone
BATCH = 32  # d3rlpy's
COLUMNS = ("state", "action", "reward", "next_state", "terminal")
# As the library has them, and what was found to suit such small problems better: a larger learning
# rate, and targets that follow sooner than after 8,000 steps.
QUICK = {"learning_rate": 1e-3, "target_update_interval": 250}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "CQL, as it comes": ("DiscreteCQLConfig", {}),
    "CQL, α = 0.1": ("DiscreteCQLConfig", {**QUICK, "alpha": 0.1}),
    "CQL, α = 1": ("DiscreteCQLConfig", {**QUICK, "alpha": 1.0}),
    "CQL, α = 4": ("DiscreteCQLConfig", {**QUICK, "alpha": 4.0}),
    "BCQ, as it comes": ("DiscreteBCQConfig", {}),
    "BCQ, τ = 0.1": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.1}),
    "BCQ, τ = 0.3": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.3}),
    "BCQ, τ = 0.5": ("DiscreteBCQConfig", {**QUICK, "action_flexibility": 0.5}),
}


def file_of(log: Path, setting: str) -> Path:
    """Returns where the fits of a setting to the log are kept."""
    short = "".join(sign for sign in setting if sign.isascii() and sign.isalnum())
    return log.with_name(log.name.replace(".log.npz", f".{short}.fit.npz"))


def usable(log: dict[str, Any]) -> dict[str, Any]:
    """Returns the steps that d3rlpy learns from: ends, and those whose next state the log shows."""
    shown = log["terminated"] | ~log["truncated"]
    following = np.append(log["state"][1:], 0)  # behind an end it has no weight
    columns = (log["state"], log["action"], log["reward"], following, log["terminated"])
    return {name: column[shown] for name, column in zip(COLUMNS, columns, strict=True)}


class Learners:
    """Learners of one setting, one for each log of an environment, that learn together."""

    def __init__(self, logs: Sequence[dict[str, Any]], setting: str, device: str) -> None:
        import d3rlpy
        import torch

        states, actions = int(logs[0]["states"]), int(logs[0]["actions"])
        name, parameters = SETTINGS[setting]
        config = getattr(d3rlpy.algos, name)(gamma=float(logs[0]["discount"]), **parameters)

        def learner(seed: int) -> Any:
            d3rlpy.seed(seed)
            made = config.create(device=device)
            made.create_impl((states,), actions)
            return made

        self.alone = learner(0)  # by d3rlpy: what the first of the others is
        self.interval = config.target_update_interval
        self.one_hot = torch.eye(states, device=device)
        steps = [usable(log) for log in logs]
        self.number = torch.tensor([[len(each["state"])] for each in steps], device=device)
        self.columns = {
            name: torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(each[name], device=device) for each in steps], batch_first=True
            )
            for name in COLUMNS
        }
        self.random = torch.Generator(device).manual_seed(0)
        self.taken = 0
        starts = [
            dict(networks_of(learner(seed).impl).named_parameters()) for seed in range(len(logs))
        ]
        self.parameters = {
            name: torch.stack([start[name].detach() for start in starts]) for name in starts[0]
        }
        learnt = [p for name, p in self.parameters.items() if not name.startswith("target.")]
        for parameter in learnt:
            parameter.requires_grad_()
        adam = self.alone.impl.q_function_optim.defaults
        self.adam = torch.optim.Adam(
            learnt, **{name: adam[name] for name in ("lr", "betas", "eps")}
        )
        # One more does the work of all, each time with the parameters of another.
        self.worker = learner(0).impl
        self.networks = networks_of(self.worker)
        self.worker._q_func_forwarder = only(self.networks["q"], actions)
        self.worker._targ_q_func_forwarder = only(self.networks["target"], actions)

    def batches(self) -> dict[str, Any]:
        """Draws a batch for each learner; each of its steps has the same chance."""
        import torch

        shape = (len(self.number), BATCH)
        chance = torch.rand(shape, generator=self.random, device=self.number.device)
        rows = (chance * self.number).long().clamp(max=self.number - 1)
        return {name: column.gather(1, rows) for name, column in self.columns.items()}

    def as_d3rlpy(self, batch: dict[str, Any]) -> Any:
        """Returns the batch of one learner as d3rlpy has it."""
        from d3rlpy.torch_utility import TorchMiniBatch

        reward = batch["reward"].float()[:, None]
        return TorchMiniBatch(
            observations=self.one_hot[batch["state"]],
            actions=batch["action"].float()[:, None],
            rewards=reward,
            next_observations=self.one_hot[batch["next_state"]],
            next_actions=reward,  # neither algorithm looks at it, nor at what follows a step
            returns_to_go=reward,
            terminals=batch["terminal"].float()[:, None],
            intervals=reward * 0 + 1,
            device=str(self.one_hot.device),
        )

    def loss(self, batch: dict[str, Any]) -> Any:
        """Returns the loss of one learner."""
        mini_batch = self.as_d3rlpy(batch)
        target = self.worker.compute_target(mini_batch)
        return self.worker.compute_loss(mini_batch, target).loss

    def best_actions(self) -> Any:
        """Returns the greedy action of one learner in each state."""
        return self.worker.inner_predict_best_action(self.one_hot)

    def of_all(self, function: Callable[..., Any], *given: Any) -> Any:
        """Calls a function for every learner, with its parameters and its part of what is given."""
        import torch

        def of_one(parameters: dict[str, Any], *own: Any) -> Any:
            return torch.func.functional_call(self.networks, parameters, (function, *own))

        return torch.vmap(of_one)(self.parameters, *given)

    def step(self, batch: dict[str, Any]) -> None:
        """Makes a gradient step of each learner, as `update` of d3rlpy does of one."""
        self.adam.zero_grad()
        self.of_all(self.loss, batch).sum().backward()  # each loss has parameters of its own
        self.adam.step()
        if self.taken % self.interval == 0:
            for name, parameter in self.parameters.items():
                if name.startswith("target."):
                    parameter.copy_(self.parameters[name.replace("target", "q", 1)].detach())
        self.taken += 1


def networks_of(impl: Any) -> Any:
    """Returns the networks of a learner as one module; called, it calls what it is given."""
    import torch

    class Networks(torch.nn.ModuleDict):
        def forward(self, function: Callable[..., Any], *given: Any) -> Any:
            return function(*given)

    modules = {"q": impl.modules.q_funcs[0], "target": impl.modules.targ_q_funcs[0]}
    if hasattr(impl.modules, "imitator"):
        modules["imitator"] = impl.modules.imitator
    return Networks(modules)


def only(network: Any, actions: int) -> Any:
    """Returns an ensemble of one as its only member: torch cannot add up in place for several."""
    from d3rlpy.models.torch import DiscreteMeanQFunctionForwarder

    member = DiscreteMeanQFunctionForwarder(network, actions)
    return SimpleNamespace(
        compute_expected_q=member.compute_expected_q,
        compute_error=member.compute_error,
        compute_target=lambda states, action, reduction: member.compute_target(states, action),
    )


def compare(learners: Learners) -> None:
    """Makes the first steps by d3rlpy, too, and refuses other parameters than it reaches."""
    import torch

    for number in range(COMPARED):
        batch = learners.batches()
        own = learners.as_d3rlpy({name: column[0] for name, column in batch.items()})
        learners.alone.impl.update(own, number)
        learners.step(batch)
    for name, expected in networks_of(learners.alone.impl).named_parameters():
        reached = learners.parameters[name][0]
        torch.testing.assert_close(reached.detach(), expected.detach(), atol=1e-5, rtol=1e-4)


def seconds_alone(learners: Learners, log: dict[str, Any]) -> float:
    """Returns the seconds that a gradient step of d3rlpy takes by itself, its batch included."""
    import d3rlpy

    one_hot = np.eye(int(log["states"]), dtype=np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        one_hot[log["state"]],
        log["action"][:, None],
        log["reward"].astype(np.float32)[:, None],
        terminals=log["terminated"].astype(np.float32),
        timeouts=log["truncated"].astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=int(log["actions"]),
    )
    began = time.perf_counter()
    for _ in range(TIMED):
        learners.alone.update(dataset.sample_transition_batch(BATCH))
    return (time.perf_counter() - began) / TIMED


def fit(logs: Sequence[dict[str, Any]], setting: str, device: str) -> tuple[list[Any], float]:
    """Returns the greedy actions [log, state] after each number of steps, and a step's seconds."""
    import torch

    torch.set_num_threads(1)  # several groups run beside each other
    # On a processor both round alike, so that Adam cannot make much of a last bit.
    few = Learners(logs[:2], setting, "cpu")
    compare(few)
    seconds = seconds_alone(few, logs[0])
    learners = Learners(logs, setting, device)
    actions = []
    for end in STEPS:
        while learners.taken < end:
            learners.step(learners.batches())
        actions.append(learners.of_all(learners.best_actions).cpu().numpy())
    return actions, seconds


def fit_files(logs: Sequence[Path], setting: str, device: str) -> float:
    """Fits a setting to the logs of an environment and keeps what came of it, a file a log."""
    began = time.perf_counter()
    kept = []
    for log in logs:
        with np.load(log) as file:
            kept.append(dict(file))
    actions, seconds = fit(kept, setting, device)
    for number, log in enumerate(logs):
        whole = file_of(log, setting).with_suffix(".part")
        with open(whole, "wb") as file:
            np.savez(
                file,
                action=np.array([each[number] for each in actions]),
                seconds=seconds * np.array(STEPS),
                steps=np.array(STEPS),
            )
        os.replace(whole, file_of(log, setting))
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    given = parser.parse_args()
    groups: dict[tuple[str, str], list[Path]] = {}
    for log, setting in itertools.product(sorted(given.folder.glob("*.log.npz")), SETTINGS):
        if not file_of(log, setting).exists():
            environment, *_ = log.name.rsplit("-", 2)
            groups.setdefault((environment, setting), []).append(log)
    print(f"{sum(map(len, groups.values()))} fits to make, in {len(groups)} groups")
    # What was forked from a process that has used a GPU cannot use it.
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(fit_files, logs, setting, given.device): (environment, setting)
            for (environment, setting), logs in groups.items()
        }
        for number, done in enumerate(as_completed(running), 1):
            environment, setting = running[done]
            print(f"{number} of {len(groups)}: {environment}, {setting}, {done.result():.0f} s")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
