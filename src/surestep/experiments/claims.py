"""A block of an experiment with certifiers: what each claims of what each algorithm found.

The true gain Δ = ρ(π_I) − ρ(π_b) is known here, and the claim L ≤ Δ can be held against it. Data
are drawn as in `cell`; they depend neither on the algorithm nor on the certifier.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray, IntArray, offsets_of, run_owners, run_sums
from surestep.algorithms import improve_batch
from surestep.certificates import Certifier, certify
from surestep.environments import Benchmark
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.experiments.cell import (
    Block,
    Rows,
    counted_problems,
    data_seed,
    made,
    none_as_nan,
)
from surestep.experiments.plan import (
    AlgorithmSpec,
    CertifierSpec,
    EnvironmentSpec,
    Experiment,
)
from surestep.model import Counts, LoggedRewards, MDPBatch, Policy, Problem, ProblemBatch
from surestep.planning import evaluate_batch

BLOCK_REPETITIONS = 25
LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ClaimBlock:
    """Repetitions `first` … `last − 1` of one environment, at all data sizes."""

    seed: int
    environment: EnvironmentSpec
    episodes: tuple[int, ...]
    first: int
    last: int
    algorithms: tuple[AlgorithmSpec, ...]
    certifiers: tuple[CertifierSpec, ...]

    @property
    def key(self) -> str:
        """A name for the block's file: the environment by a hash, the rest in words."""
        environment = zlib.crc32(self.environment.label.encode())
        return f"{environment:08x}-claims-{self.first}-{self.last}"

    def sizes(self) -> list[int]:
        """All data sizes that any certifier is asked at."""
        every = [spec.episodes or self.episodes for spec in self.certifiers]
        return sorted({size for sizes in every for size in sizes})

    def repetitions(self, algorithm: AlgorithmSpec, certifier: CertifierSpec) -> range:
        """The repetitions of the block in which the two meet."""
        limits = (algorithm.repetitions, certifier.repetitions)
        last = min([self.last, *(limit for limit in limits if limit is not None)])
        return range(self.first, max(last, self.first))

    def certifier(self, spec: CertifierSpec, episodes: int, repetition: int) -> Certifier:
        """The certifier, with random numbers of its own in each repetition."""
        if not spec.takes_seed:
            return spec.make()
        rng = np.random.default_rng(
            (*data_seed(self.seed, self.environment, episodes, repetition), 1)
        )
        return spec.make(seed=int(rng.integers(LARGEST_SEED)))


class Claim(NamedTuple):
    """What a certifier said; of a refusal, the reason."""

    lower: float  # L; NaN where refused
    standing: str
    refusal: str


class Found(NamedTuple):
    """What the algorithms found in the repetitions of a block at one data size."""

    policy: FloatArray  # [A, B, K]
    gain: FloatArray  # [A, B] Δ
    behavior_performance: float  # ρ(π_b)
    n_wedge: list[int | None]  # that was used


def claim_blocks(experiment: Experiment) -> list[ClaimBlock]:
    """The blocks of an experiment; the first repetitions of all environments come first."""
    size = experiment.repetitions
    return [
        ClaimBlock(
            experiment.seed,
            environment,
            experiment.episodes,
            first,
            min(first + BLOCK_REPETITIONS, size),
            experiment.algorithms,
            experiment.certifiers,
        )
        for first in range(0, size, BLOCK_REPETITIONS)
        for environment in experiment.environments
    ]


def run_claims(block: ClaimBlock) -> Rows:
    """Draws data, improves, certifies, and evaluates, at every data size of the block."""
    benchmark = made(block.environment, block.first)
    if benchmark.simulator is not None:
        raise InvalidParameter(
            f"{block.environment.label} is simulated, so no true gain is known that a claim could "
            "be held against; expected an environment that is its own model"
        )
    parts: list[dict[str, AnyArray]] = []
    sampling = improving = evaluating = certifying = 0.0
    for episodes in block.sizes():
        clock = [time.perf_counter()]
        cell = Block(
            block.seed, block.environment, episodes, block.first, block.last, block.algorithms
        )
        problems = counted_problems(cell, benchmark, range(block.first, block.last))
        clock.append(time.perf_counter())
        batches = [improve_batch(spec.make(), problems) for spec in block.algorithms]
        clock.append(time.perf_counter())
        policies = np.stack([batch.policy for batch in batches])
        gain, behavior = true_gains(benchmark, policies)
        found = Found(policies, gain, behavior, [batch.n_wedge for batch in batches])
        clock.append(time.perf_counter())
        given = [known_to_certifiers(benchmark, problems, i) for i in range(policies.shape[1])]
        parts += claims_at(block, episodes, given, found)
        clock.append(time.perf_counter())
        spent = np.diff(clock)
        sampling, improving = sampling + spent[0], improving + spent[1]
        evaluating, certifying = evaluating + spent[2], certifying + spent[3]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Rows(columns, sampling, improving, evaluating, certifying)


def claims_at(
    block: ClaimBlock, episodes: int, problems: list[Problem], found: Found
) -> Iterator[dict[str, AnyArray]]:
    """The rows of every algorithm and certifier at one data size, column by column."""
    pairs = problems[0].counts.pairs
    for a, algorithm in enumerate(block.algorithms):
        policies = [Policy(pairs, row) for row in found.policy[a]]
        for spec in block.certifiers:
            if episodes not in (spec.episodes or block.episodes):
                continue
            repetitions = block.repetitions(algorithm, spec)
            claims = [
                claim_of(problem, policy, block.certifier(spec, episodes, repetition))
                for repetition, problem, policy in zip(
                    repetitions, problems, policies, strict=False
                )
            ]
            yield rows_of(block, episodes, algorithm, spec, repetitions, claims, found, a)


def rows_of(
    block: ClaimBlock,
    episodes: int,
    algorithm: AlgorithmSpec,
    certifier: CertifierSpec,
    repetitions: range,
    claims: list[Claim],
    found: Found,
    place: int,
) -> dict[str, AnyArray]:
    """The columns of what one certifier claimed of one algorithm."""
    size = len(repetitions)
    delta = float(certifier.make().delta)  # type: ignore[attr-defined]
    return {
        "family": np.full(size, block.environment.family, object),
        "environment": np.full(size, block.environment.label, object),
        "episodes": np.full(size, episodes, np.int64),
        "algorithm": np.full(size, algorithm.name, object),
        "setting": np.full(size, algorithm.label, object),
        "n_wedge": np.full(size, none_as_nan(algorithm.n_wedge)),
        "n_wedge_used": np.full(size, none_as_nan(found.n_wedge[place])),
        "certifier": np.full(size, certifier.name, object),
        "certifier_setting": np.full(size, certifier.label, object),
        "delta": np.full(size, delta),
        "repetition": np.array(repetitions, np.int64),
        "behavior_performance": np.full(size, found.behavior_performance),
        "gain": found.gain[place, :size],
        "lower": np.array([claim.lower for claim in claims], np.float64),
        "standing": np.array([claim.standing for claim in claims], object),
        "refusal": np.array([claim.refusal for claim in claims], object),
    }


def claim_of(problem: Problem, policy: Policy, certifier: Certifier) -> Claim:
    """What the certifier says; a refusal is an answer too."""
    try:
        found = certify(problem, policy, certifier)
    except CertificateRefused as refusal:
        return Claim(float("nan"), "", reason_of(refusal))
    return Claim(found.lower, found.standing, "")


def reason_of(refusal: CertificateRefused) -> str:
    """The refusal without the names and numbers of this very case: reasons can be counted."""
    text = re.split(r"; |, but |, expected ", str(refusal))[0]
    return re.sub(r"'[^']*'|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", "…", text)


def true_gains(benchmark: Benchmark, policies: FloatArray) -> tuple[FloatArray, float]:
    """Δ = ρ(π_I) − ρ(π_b) of policies [A, B, K] in the true MDP, and ρ(π_b), evaluated alike."""
    mdp = benchmark.mdp
    flat = policies.reshape(-1, policies.shape[-1])
    everyone = np.concatenate([benchmark.behavior.probability[np.newaxis], flat])
    worth = evaluate_batch(MDPBatch.from_models([mdp]), everyone).value @ mdp.initial
    return (worth[1:] - worth[0]).reshape(policies.shape[:-1]), float(worth[0])


def known_to_certifiers(benchmark: Benchmark, problems: ProblemBatch, index: int) -> Problem:
    """The problem of one data set with what a user would know, and no more.

    Rewards are known, also of what was never seen: as a table of pairs where the experiment has
    one, else as what entering a state pays. Which successors are possible is not known: only those
    that were seen are stored, or all states.
    """
    counts, mdp = problems.counts, benchmark.mdp
    times, starts = counts.times[index], counts.starts[index]
    prize = prizes(benchmark)
    if benchmark.known_rewards is not None or prize is None:
        seen = times > 0
        rewards = counts.rewards
        if rewards.per == "transition":
            rewards = LoggedRewards(rewards.values[seen], "transition", True)
        offsets = offsets_of(run_sums(seen.astype(np.int64), mdp.offsets))
        given = Counts(
            mdp.pairs, offsets, mdp.successor[seen], times[seen], rewards, starts, counts.terminal
        )
    else:
        given = with_all_successors(benchmark, times, starts, prize, counts.terminal)
    return Problem(
        counts=given,
        behavior=benchmark.behavior,
        discount=benchmark.discount,
        value_bounds=benchmark.value_bounds,
    )


def prizes(benchmark: Benchmark) -> FloatArray | None:
    """What entering each state pays [S], where that is all that rewards depend on, or None.

    A state that nothing leads to pays nothing.
    """
    mdp = benchmark.mdp
    prize = np.zeros(mdp.num_states)
    prize[mdp.successor] = mdp.reward
    return prize if (prize[mdp.successor] == mdp.reward).all() else None


def with_all_successors(
    benchmark: Benchmark, times: IntArray, starts: IntArray, prize: FloatArray, over: AnyArray
) -> Counts:
    """Counts in which every pair has all states as successors, each with its known reward."""
    mdp = benchmark.mdp
    pairs, states = mdp.pairs, mdp.num_states
    goes_on = ~over[pairs.state]
    table = np.zeros((pairs.num_pairs, states), np.int64)
    table[run_owners(mdp.offsets), mdp.successor] = times
    successor = np.tile(np.arange(states, dtype=np.int32), int(goes_on.sum()))
    return Counts(
        pairs,
        offsets_of(np.where(goes_on, states, 0)),
        successor,
        table[goes_on].ravel(),
        LoggedRewards(prize[successor], "transition", True),
        starts,
        over,
    )
