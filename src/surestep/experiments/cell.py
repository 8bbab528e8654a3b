"""A block of an experiment: one environment, one data size, some repetitions, all algorithms.

The data of a repetition depend on the seed, the environment, the size and the repetition, never on
the algorithm, the block or the worker: comparisons are paired, and tables equal however they came
about.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray
from surestep.algorithms import Algorithm, improve_batch, needs_log
from surestep.environments import Benchmark, make
from surestep.experiments.plan import AlgorithmSpec, EnvironmentSpec
from surestep.model import CountsBatch, LoggedRewards, Problem, ProblemBatch
from surestep.sampling import CountSampler

COLUMNS = (
    "environment", "episodes", "algorithm", "setting", "n_wedge", "n_wedge_used", "repetition",
    "performance", "behavior_performance", "optimal_performance", "lowest_performance",
    "highest_performance",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Repetitions `first` … `last − 1` of one environment at one data size."""

    seed: int
    environment: EnvironmentSpec
    episodes: int
    first: int
    last: int
    algorithms: tuple[AlgorithmSpec, ...]

    @property
    def key(self) -> str:
        """A name for the block's file: the environment by a hash, the rest in words."""
        environment = zlib.crc32(self.environment.label.encode())
        return f"{environment:08x}-{self.episodes}-{self.first}-{self.last}"

    def rng(self, repetition: int) -> np.random.Generator:
        """The source of the data of one repetition."""
        return np.random.default_rng(
            data_seed(self.seed, self.environment, self.episodes, repetition)
        )


def data_seed(
    seed: int, environment: EnvironmentSpec, episodes: int, repetition: int
) -> tuple[int, int, int, int]:
    """All that the data of a repetition depend on."""
    return seed, zlib.crc32(environment.label.encode()), episodes, repetition


class Rows(NamedTuple):
    """The rows of a block, column by column, and where the time went."""

    columns: dict[str, AnyArray]
    sampling: float  # seconds
    improving: float
    evaluating: float
    certifying: float = 0.0


def run_block(block: Block) -> Rows:
    """Draws the data of the block, runs every algorithm on them, and evaluates what comes out."""
    if not block.environment.changes:
        benchmark = made(block.environment, block.first)
        return run_repetitions(block, benchmark, range(block.first, block.last))
    parts = [
        run_repetitions(
            block, made(block.environment, repetition), range(repetition, repetition + 1)
        )
        for repetition in range(block.first, block.last)
    ]
    return Rows(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS},
        sum(part.sampling for part in parts),
        sum(part.improving for part in parts),
        sum(part.evaluating for part in parts),
    )


@lru_cache(maxsize=4096)  # the same environment serves all data sizes
def made(environment: EnvironmentSpec, repetition: int) -> Benchmark:
    """The benchmark of a repetition."""
    return make(environment.name, **environment.parameters_of(repetition))


def run_repetitions(block: Block, benchmark: Benchmark, repetitions: range) -> Rows:
    """The rows of repetitions that share one environment."""
    algorithms = [spec.make() for spec in block.algorithms]
    clock = time.perf_counter()
    if benchmark.simulator is not None or any(map(needs_log, algorithms)):
        logged = logged_problems(block, benchmark, repetitions)
        sampling, clock = time.perf_counter() - clock, time.perf_counter()
        answers = [improved(algorithm, logged) for algorithm in algorithms]
    else:
        counted = counted_problems(block, benchmark, repetitions)
        sampling, clock = time.perf_counter() - clock, time.perf_counter()
        batches = [improve_batch(algorithm, counted) for algorithm in algorithms]
        answers = [(batch.policy, batch.n_wedge) for batch in batches]
    improving, clock = time.perf_counter() - clock, time.perf_counter()
    used = [n_wedge for _, n_wedge in answers]
    values = benchmark.best_model.worth(np.concatenate([policy for policy, _ in answers]))
    best, behavior = benchmark.optimal_performance(), benchmark.performance_of_behavior()
    # Bounds must hold for all repetitions, also where each has an environment of its own.
    changes = block.environment.changes
    low, high = benchmark.value_bounds if changes else (benchmark.worst_performance(), best)
    evaluating = time.perf_counter() - clock
    size = len(repetitions)

    def spread(entries: Sequence[object], kind: type) -> AnyArray:
        return np.repeat(np.array(entries, kind), size)

    specs = block.algorithms
    total = size * len(specs)
    columns = {
        "environment": np.full(total, block.environment.label, object),
        "episodes": np.full(total, block.episodes, np.int64),
        "algorithm": spread([spec.name for spec in specs], object),
        "setting": spread([spec.label for spec in specs], object),
        "n_wedge": spread([none_as_nan(spec.n_wedge) for spec in specs], np.float64),
        "n_wedge_used": spread([none_as_nan(n_wedge) for n_wedge in used], np.float64),
        "repetition": np.tile(np.array(repetitions, np.int64), len(specs)),
        "performance": values,
        "behavior_performance": np.full(total, behavior),
        "optimal_performance": np.full(total, best),
        "lowest_performance": np.full(total, low),
        "highest_performance": np.full(total, high),
    }
    return Rows(columns, sampling, improving, evaluating)


def improved(algorithm: Algorithm, problems: list[Problem]) -> tuple[FloatArray, int | None]:
    """The improved policies [B, K] of all problems, and the N∧ that was used."""
    improvements = [algorithm.improve(problem) for problem in problems]
    return np.stack([improvement.policy.probability for improvement in improvements]), improvements[
        0
    ].n_wedge


def none_as_nan(n_wedge: int | None) -> float:
    """N∧ as a number of a column, in which NaN means that there is none."""
    return float("nan") if n_wedge is None else float(n_wedge)


def counted_problems(block: Block, benchmark: Benchmark, repetitions: range) -> ProblemBatch:
    """The problems of data sets whose counts are drawn at once, without simulating."""
    mdp, horizon = benchmark.mdp, benchmark.horizon
    sampler = CountSampler.of(mdp, benchmark.collector)
    episodes, steps = (1, block.episodes) if horizon is None else (block.episodes, horizon)
    drawn = [sampler.draw(episodes, steps, block.rng(repetition)) for repetition in repetitions]
    counts = CountsBatch(
        mdp.pairs,
        mdp.offsets,
        mdp.successor,
        np.stack([times for times, _ in drawn]),
        rewards_of(benchmark),
        np.stack([starts for _, starts in drawn]),
        sampler.over,
    )
    return ProblemBatch(
        counts=counts,
        behavior=benchmark.behavior,
        discount=benchmark.discount,
        value_bounds=benchmark.value_bounds,
    )


def logged_problems(block: Block, benchmark: Benchmark, repetitions: range) -> list[Problem]:
    """The problems of simulated logs, for algorithms that look at whole episodes."""
    problems = []
    for repetition in repetitions:
        log = benchmark.sample(block.episodes, block.rng(repetition))
        known = benchmark.known_rewards
        table = None if known is None else benchmark.mdp.pairs.dense(known)
        problems.append(
            Problem(
                counts=log.counts(rewards=table),
                behavior=benchmark.behavior,
                discount=benchmark.discount,
                value_bounds=benchmark.value_bounds,
                log=log,
            )
        )
    return problems


def rewards_of(benchmark: Benchmark) -> LoggedRewards:
    """Rewards as the published experiment has them: a known table of pairs, or through P̂.

    Through P̂ a reward counts for the successors that were seen, so it is that of the transition.
    """
    if benchmark.known_rewards is not None:
        return LoggedRewards(benchmark.known_rewards, "pair", True)
    return LoggedRewards(benchmark.mdp.reward, "transition", True)
