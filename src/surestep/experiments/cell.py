"""A block of an experiment: one environment, some data sizes and repetitions, all algorithms.

The data of a repetition depend on the seed, the environment, the size and the repetition, never on
the algorithm, the block or the worker: comparisons are paired, and tables equal however they came
about.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from surestep._arrays import AnyArray
from surestep.algorithms import needs_log
from surestep.algorithms.batch import improve_batches
from surestep.environments import Benchmark
from surestep.experiments.experiment import AlgorithmSpec, CertifierSpec, EnvironmentSpec
from surestep.model import CountsBatch, LoggedRewards, Problem, ProblemBatch
from surestep.parallel import map_in_threads
from surestep.sampling import CountSampler

Rows = dict[str, AnyArray]  # column by column


@dataclass(frozen=True, slots=True)
class CellBlock:
    """Repetitions `first` … `last − 1` of one environment, at some data sizes."""

    seed: int
    environment: EnvironmentSpec
    episodes: tuple[int, ...]
    first: int
    last: int
    algorithms: tuple[AlgorithmSpec, ...]
    certifiers: tuple[CertifierSpec, ...] = ()

    @property
    def key(self) -> str:
        """A name for the block's file: the environment by a hash, the rest in words."""
        environment = zlib.crc32(self.environment.label.encode())
        sizes = "claims" if self.certifiers else "-".join(map(str, self.episodes))
        return f"{environment:08x}-{sizes}-{self.first}-{self.last}"

    def rngs(self, episodes: int) -> list[np.random.Generator]:
        """The source of the data of each repetition."""
        return [
            np.random.default_rng(data_seed(self.seed, self.environment, episodes, repetition))
            for repetition in range(self.first, self.last)
        ]


def data_seed(
    seed: int, environment: EnvironmentSpec, episodes: int, repetition: int
) -> tuple[int, int, int, int]:
    """All that the data of a repetition depend on."""
    return seed, zlib.crc32(environment.label.encode()), episodes, repetition


def run_block(block: CellBlock) -> Rows:
    """Draws the data of the block, runs every algorithm on them, and evaluates what comes out."""
    alone = [replace(block, first=i, last=i + 1) for i in range(block.first, block.last)]
    groups = alone if block.environment.changes else [block]
    return joined([run_at(group, size) for size in block.episodes for group in groups])


def joined(parts: Sequence[Rows]) -> Rows:
    """Returns the rows of all parts."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=4096)  # the same environment serves all data sizes
def made(environment: EnvironmentSpec, repetition: int) -> Benchmark:
    """The benchmark of a repetition."""
    return environment.make(repetition)


def run_at(block: CellBlock, episodes: int) -> Rows:
    """The rows of a block at one data size, whose repetitions share one environment."""
    benchmark = made(block.environment, block.first)
    algorithms = [spec.make() for spec in block.algorithms]
    rngs = block.rngs(episodes)
    problems: ProblemBatch | list[Problem]
    if benchmark.simulator is not None or any(map(needs_log, algorithms)):
        problems = [benchmark.problem(benchmark.sample(episodes, rng)) for rng in rngs]
    else:
        problems = counted_problems(benchmark, episodes, rngs)
    answers = improve_batches(algorithms, problems)
    values = benchmark.best_model.worth(np.concatenate([answer.policy for answer in answers]))
    best, behavior = benchmark.optimal_performance(), benchmark.performance_of_behavior()
    # Bounds must hold for all repetitions, also where each has an environment of its own.
    changes = block.environment.changes
    low, high = benchmark.value_bounds if changes else (benchmark.worst_performance(), best)
    size = len(rngs)

    def spread(entries: Sequence[object], kind: type) -> AnyArray:
        return np.repeat(np.array(entries, kind), size)

    specs = block.algorithms
    total = size * len(specs)
    return {
        "environment": np.full(total, block.environment.label, object),
        "episodes": np.full(total, episodes, np.int64),
        "algorithm": spread([spec.name for spec in specs], object),
        "setting": spread([spec.label for spec in specs], object),
        "n_wedge": spread([none_as_nan(spec.n_wedge) for spec in specs], np.float64),
        "n_wedge_used": spread([none_as_nan(answer.n_wedge) for answer in answers], np.float64),
        "repetition": np.tile(np.arange(block.first, block.last), len(specs)),
        "performance": values,
        "behavior_performance": np.full(total, behavior),
        "optimal_performance": np.full(total, best),
        "lowest_performance": np.full(total, low),
        "highest_performance": np.full(total, high),
    }


def none_as_nan(n_wedge: int | None) -> float:
    """N∧ as a number of a column, in which NaN means that there is none."""
    return float("nan") if n_wedge is None else float(n_wedge)


def counted_problems(
    benchmark: Benchmark, size: int, rngs: Sequence[np.random.Generator]
) -> ProblemBatch:
    """The problems of data sets whose counts are drawn at once, without simulating."""
    mdp, horizon = benchmark.mdp, benchmark.horizon
    sampler = CountSampler.of(mdp, benchmark.collector)
    episodes, steps = (1, size) if horizon is None else (size, horizon)
    drawn = map_in_threads(lambda rng: sampler.draw(episodes, steps, rng), rngs)
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


def rewards_of(benchmark: Benchmark) -> LoggedRewards:
    """Rewards as the published experiment has them: a known table of pairs, or through P̂.

    Through P̂ a reward counts for the successors that were seen, so it is that of the transition.
    """
    if benchmark.known_rewards is not None:
        return LoggedRewards(benchmark.known_rewards, "pair", True)
    return LoggedRewards(benchmark.mdp.reward, "transition", True)
