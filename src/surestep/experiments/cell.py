"""Runs a block of an experiment: one environment, some sizes and repetitions, all algorithms.

The data of a repetition depend on the seed, the environment, the size and the repetition, never on
the algorithm, the block or the worker. So comparisons are paired, and equal experiments give equal
tables.

*With certifiers*, each certifier makes claims about the policies of each algorithm. The true gain
Δ = ρ(π_I) − ρ(π_b) is known here, so the claim L ≤ Δ can be checked. Data do not depend on the
certifier either. If one certifier judges by whole episodes, all certifiers get logs, so that
comparisons are paired. They also get logs if a log says more than counts of the model could, as
with noisy rewards. Otherwise all get counts.
"""

import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms import Algorithm
from surestep.algorithms.batch import improve_batches
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.episodes import needs_episodes
from surestep.certificates.registry import told_to
from surestep.choosing_n_wedge import AutoNWedge
from surestep.environments import Benchmark
from surestep.errors import CertificateRefused
from surestep.experiments.experiment import AlgorithmSpec, CertifierSpec, EnvironmentSpec
from surestep.model import (
    Counts,
    CountsBatch,
    DecisionLog,
    LoggedRewards,
    MDPBatch,
    Problem,
    ProblemBatch,
)
from surestep.model.known import Known, Ranges, with_zero
from surestep.parallel import map_in_threads
from surestep.rehearsal import calibrate
from surestep.sampling import CountSampler
from surestep.trials import Claimed, Proposed, claimed, proposed_each, proposed_together, true_gains

ColumnArrays = dict[str, arrays.AnyArray]  # column by column


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
        """Returns a name for the block's file: a hash of the environment, sizes and repetitions."""
        environment = zlib.crc32(self.environment.label.encode())
        sizes = "claims" if self.certifiers else "-".join(map(str, self.episodes))
        return f"{environment:08x}-{sizes}-{self.first}-{self.last}"

    def rngs(self, episodes: int) -> list[np.random.Generator]:
        """Returns the random generator of the data of each repetition."""
        return [
            np.random.default_rng(data_seed(self.seed, self.environment, episodes, repetition))
            for repetition in range(self.first, self.last)
        ]


def data_seed(
    seed: int, environment: EnvironmentSpec, episodes: int, repetition: int
) -> tuple[int, int, int, int]:
    """Returns the seed of the data of a repetition; the data depend on nothing else."""
    return seed, zlib.crc32(environment.label.encode()), episodes, repetition


def run_methods(block: CellBlock) -> ColumnArrays:
    """Draws the data of the block, runs every algorithm on them, and evaluates the policies."""
    alone = [replace(block, first=i, last=i + 1) for i in range(block.first, block.last)]
    groups = alone if block.environment.changes else [block]
    return joined_rows([run_at(group, size) for size in block.episodes for group in groups])


def joined_rows(parts: Sequence[ColumnArrays]) -> ColumnArrays:
    """Joins the rows of all parts."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=4096)  # the same environment serves all data sizes
def made(environment: EnvironmentSpec, repetition: int) -> Benchmark:
    """Returns the benchmark of a repetition."""
    return environment.make(repetition)


def run_at(block: CellBlock, episodes: int) -> ColumnArrays:
    """Returns the rows of a block at one data size; its repetitions share one environment."""
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
    best = benchmark.optimal_performance()
    # Bounds must hold for all repetitions, even if each has its own environment.
    low, high = (
        benchmark.value_bounds
        if block.environment.changes
        else (benchmark.worst_performance(), best)
    )
    total = len(rngs) * len(block.algorithms)

    def spread(entries: Sequence[object], kind: type) -> arrays.AnyArray:
        return np.repeat(np.array(entries, kind), len(rngs))

    return {
        "environment": np.full(total, block.environment.label, object),
        "episodes": np.full(total, episodes, np.int64),
        "algorithm": spread([spec.name for spec in block.algorithms], object),
        "setting": spread([spec.label for spec in block.algorithms], object),
        # As a number, None is NaN.
        "n_wedge": spread([spec.n_wedge for spec in block.algorithms], np.float64),
        "n_wedge_used": spread([answer.n_wedge for answer in answers], np.float64),
        "repetition": np.tile(np.arange(block.first, block.last), len(block.algorithms)),
        "performance": values,
        "behavior_performance": np.full(total, benchmark.performance_of_behavior()),
        "optimal_performance": np.full(total, best),
        "lowest_performance": np.full(total, low),
        "highest_performance": np.full(total, high),
    }


def counted_problems(
    benchmark: Benchmark, size: int, rngs: Sequence[np.random.Generator]
) -> ProblemBatch:
    """Returns the problems of data sets whose counts are drawn at once, without simulation."""
    mdp = benchmark.mdp
    # Rewards are as in the published experiment: a known table of pairs, or rewards of the
    # transitions that were seen, which count through P̂.
    rewards = LoggedRewards(mdp.reward, "transition", True)
    if benchmark.known_rewards is not None:
        rewards = LoggedRewards(benchmark.known_rewards, "pair", True)
    sampler = CountSampler.of(mdp, benchmark.collector)
    episodes, steps = (1, size) if benchmark.horizon is None else (size, benchmark.horizon)
    drawn = map_in_threads(lambda rng: sampler.draw(episodes, steps, rng), rngs)
    counts = CountsBatch(
        mdp.pairs,
        mdp.offsets,
        mdp.successor,
        np.stack([times for times, _ in drawn]),
        rewards,
        np.stack([starts for _, starts in drawn]),
        sampler.shares.over,
    )
    return ProblemBatch(
        counts=counts,
        behavior=benchmark.behavior,
        discount=benchmark.discount,
        value_bounds=benchmark.value_bounds,
    )


# ---- with certifiers ---------------------------------------------------------------------------

LARGEST_SEED = 2**63 - 1


class DataSets(NamedTuple):
    """The data of some repetitions, for certifiers and for algorithms."""

    repetitions: range
    problems: list[Problem]
    batch: ProblemBatch | None  # the input of algorithms; None: they get `problems`, too


ProposedAndClaimed = tuple[Proposed, Claimed]  # policies of some repetitions, claims about them


def seeded_certifier(
    block: CellBlock, spec: CertifierSpec, episodes: int, repetition: int, **told: object
) -> Certifier:
    """Makes the certifier, with another seed in each repetition.

    `told` has settings that follow from the benchmark; settings of the experiment come first.
    """
    if spec.takes_seed:
        key = (*data_seed(block.seed, block.environment, episodes, repetition), 1)
        told["seed"] = int(np.random.default_rng(key).integers(LARGEST_SEED))
    return spec.make(**told)


def run_claims(block: CellBlock) -> ColumnArrays:
    """Draws data, improves, certifies, and evaluates, at every data size of the block."""
    benchmark = made(block.environment, block.first)
    _ = benchmark.truth  # raises an error before any work if the true gain is unknown
    parts = []
    sizes = {spec: spec.episodes or block.episodes for spec in block.certifiers}
    for episodes in sorted({size for several in sizes.values() for size in several}):
        asked = [spec for spec in block.certifiers if episodes in sizes[spec]]
        meetings = list(itertools.product(block.algorithms, asked))
        outcomes = [
            [outcome_of(block, episodes, data, *meeting) for meeting in meetings]
            for data in drawn_data(block, benchmark, episodes)
        ]
        parts += [
            claim_columns(block, episodes, *meeting, whole)
            for meeting, whole in zip(meetings, zip(*outcomes, strict=True), strict=True)
        ]
    return joined_rows(parts)


def drawn_data(block: CellBlock, benchmark: Benchmark, episodes: int) -> Iterator[DataSets]:
    """Yields the counts of all repetitions at once, or one log at a time, since logs are long."""
    repetitions = range(block.first, block.last)
    rngs = block.rngs(episodes)
    if (
        benchmark.simulator is None
        and not any(needs_log(spec.make()) for spec in block.algorithms)
        and not any(needs_episodes(spec.make()) for spec in block.certifiers)
    ):
        batch = counted_problems(benchmark, episodes, rngs)
        known = [known_to_certifiers(benchmark, batch.problem(i)) for i in range(len(rngs))]
        yield DataSets(repetitions, known, batch)
        return
    for repetition, rng in zip(repetitions, rngs, strict=True):
        problem = problem_for_certifiers(benchmark, benchmark.sample(episodes, rng))
        yield DataSets(range(repetition, repetition + 1), [problem], None)


def outcome_of(
    block: CellBlock,
    episodes: int,
    data: DataSets,
    algorithm: AlgorithmSpec,
    spec: CertifierSpec,
) -> ProposedAndClaimed:
    """Returns the policies that the algorithm proposes, and the claims of the certifier about them.

    If a certifier holds out a part of the log, the other episodes choose the policy.
    """
    told = {}
    if data.batch is None:
        benchmark = made(block.environment, block.first)
        told = told_of_log(spec.asked.type, benchmark, data.problems[0], spec.asked.settings)
    certifiers = [
        seeded_certifier(block, spec, episodes, repetition, **told)
        for repetition in data.repetitions
    ]
    if data.batch is None:
        improves = improver(algorithm, certifiers[0])
        proposed = proposed_each(improves, data.problems, certifiers)
    else:
        improves = improver(algorithm, spec.make())
        proposed = proposed_together(improves, data.batch, data.problems)
    judges: Sequence[Certifier | CertificateRefused] = certifiers
    if spec.worlds is not None:
        judges = [
            calibrated_certifier(problem, improver(algorithm, certifier), certifier, spec.worlds)
            for problem, certifier in zip(data.problems, certifiers, strict=True)
        ]
    return proposed, claimed(judges, data.problems, proposed.policy)


def improver(algorithm: AlgorithmSpec, certifier: Certifier) -> Algorithm | AutoNWedge:
    """Returns the algorithm; if it chooses N∧, this certifier judges the choice."""
    made = algorithm.make()
    return AutoNWedge(algorithm=made, certifier=certifier) if algorithm.chooses else made


def calibrated_certifier(
    problem: Problem, improves: Algorithm | AutoNWedge, certifier: Certifier, worlds: int
) -> Certifier | CertificateRefused:
    """Returns the certifier, calibrated in worlds like its data, or a refusal to claim anything."""
    # The draws differ from the certificate's own.
    rng = np.random.default_rng((getattr(certifier, "seed", 0), 1))
    try:
        return calibrate(problem, improves, certifier, rng=rng, worlds=worlds).applied_to(certifier)
    except CertificateRefused as refusal:
        return refusal


def claim_columns(
    block: CellBlock,
    episodes: int,
    algorithm: AlgorithmSpec,
    certifier: CertifierSpec,
    outcomes: Sequence[ProposedAndClaimed],
) -> ColumnArrays:
    """Returns the columns of the claims of one certifier about one algorithm."""
    benchmark = made(block.environment, block.first)
    truth = benchmark.truth
    proposed, claims = zip(*outcomes, strict=True)
    policies = np.concatenate([proposal.policy for proposal in proposed])
    gain, behavior, _ = true_gains(
        MDPBatch.from_models([truth.mdp]),
        policies[:, truth.pair],
        truth.acting(benchmark.behavior),
        benchmark.value_bounds,
    )

    def words(text: str) -> arrays.AnyArray:
        return np.full(gain.size, text, object)

    return {
        "family": words(block.environment.family),
        "environment": words(block.environment.label),
        "episodes": np.full(gain.size, episodes, np.int64),
        "algorithm": words(algorithm.name),
        "setting": words(algorithm.label),
        # As a number, None is NaN.
        "n_wedge": np.full(gain.size, algorithm.n_wedge, np.float64),
        "n_wedge_used": np.full(gain.size, proposed[0].n_wedge, np.float64),
        "certifier": words(certifier.name),
        "certifier_setting": words(certifier.label),
        "delta": np.full(gain.size, float(certifier.make().delta)),
        "repetition": np.arange(block.first, block.last),
        "behavior_performance": np.full(gain.size, behavior[0]),
        "gain": gain,
    } | {
        name: np.concatenate([getattr(claim, name) for claim in claims]) for name in Claimed._fields
    }


# ---- facts about a benchmark's data that a user would give to certifiers ------------------------


def known_to_certifiers(benchmark: Benchmark, problem: Problem) -> Problem:
    """Returns the problem without facts that only the true model shows.

    Rewards are known, even of unseen transitions: as a table of pairs if the experiment has one,
    else as the prize for entering a state. The possible successors are not known: the problem
    stores the seen ones only, or all states.
    """
    prize = prizes(benchmark)
    if benchmark.known_rewards is None and prize is not None:
        return replace(problem, counts=with_all_successors(problem.counts, prize))
    counts = problem.counts
    seen = counts.times > 0
    rewards = counts.rewards
    if rewards.per == "transition":
        rewards = LoggedRewards(rewards.values[seen], "transition", True)
    stored = replace(
        counts,
        offsets=arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), counts.offsets)),
        successor=counts.successor[seen],
        times=counts.times[seen],
        rewards=rewards,
    )
    return replace(problem, counts=stored)


def problem_for_certifiers(benchmark: Benchmark, log: DecisionLog) -> Problem:
    """Returns the problem of a log; if no ranges are declared, its rewards bound the values."""
    problem = benchmark.problem(log)
    if benchmark.declared:
        return problem
    seen = Ranges.seen(log.reward, log.terminated)
    return replace(
        problem,
        value_bounds=with_zero(seen.returns(benchmark.discount)),
        premises=(seen.statement(declared=False),),
    )


def told_of_log(
    kind: type[Any], benchmark: Benchmark, problem: Problem, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the settings that a user would give to a certifier for the log of a benchmark.

    These are bounds of single returns if the kind needs them, and of single rewards if rewards are
    only observed. Rewards that vary in the log are declared as noisy. Bounds that are not declared
    are read off the log.
    """
    every = benchmark.best_model.mdp.reward
    ranges = None if benchmark.ranges is None else Ranges(*benchmark.ranges)
    if not benchmark.declared and problem.log is not None:
        every = problem.log.reward
        ranges = None
    least, greatest = problem.counts.observed_rewards()
    bounds = with_zero((every.min(), every.max()))
    known = Known(
        ranges=ranges,
        rewards_seen=None if problem.counts.rewards.known else bounds,
        rewards_vary=bool((least != greatest).any()),
        returns=benchmark.return_bounds or problem.value_bounds,
    )
    return told_to(kind, known, given)


def prizes(benchmark: Benchmark) -> arrays.FloatArray | None:
    """Returns the reward for entering each state [S], or None if rewards depend on more than that.

    A state without transitions to it pays 0.
    """
    mdp = benchmark.mdp
    prize = np.zeros(mdp.num_states)
    prize[mdp.successor] = mdp.reward
    return prize if (prize[mdp.successor] == mdp.reward).all() else None


def with_all_successors(counts: Counts, prize: arrays.FloatArray) -> Counts:
    """Returns counts in which every pair has all states as successors, each with its reward."""
    states = prize.size
    goes_on = ~counts.terminal[counts.pairs.state]
    table = np.zeros((counts.pairs.num_pairs, states), np.int64)
    table[arrays.run_owners(counts.offsets), counts.successor] = counts.times
    successor = np.tile(np.arange(states, dtype=np.int32), int(goes_on.sum()))
    return replace(
        counts,
        offsets=arrays.offsets_of(np.where(goes_on, states, 0)),
        successor=successor,
        times=table[goes_on].ravel(),
        rewards=LoggedRewards(prize[successor], "transition", True),
    )
