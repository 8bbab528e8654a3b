"""A block of an experiment with certifiers: what each claims of what each algorithm found.

The true gain Δ = ρ(π_I) − ρ(π_b) is known here, and the claim L ≤ Δ can be held against it. Data
are drawn as in `cell`; they depend neither on the algorithm nor on the certifier. Where a certifier
judges by whole episodes, all are given logs, so that comparisons are paired; also where a log says
more than counts of the model could, as with noisy rewards. Else all are given counts.
"""

from __future__ import annotations

import itertools
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray
from surestep.algorithms import Algorithm, improve_batch
from surestep.certificates import Certifier, certify, certify_batch
from surestep.certificates.episodes import needs_episodes, training_for
from surestep.certificates.protocol import believes
from surestep.certificates.standing import standing_name
from surestep.choosing_n_wedge import AutoNWedge, choose_batch
from surestep.environments import Benchmark
from surestep.errors import CertificateRefused
from surestep.experiments.cell import (
    Block,
    Rows,
    counted_problems,
    data_seed,
    made,
    none_as_nan,
)
from surestep.experiments.certifiable import known_to_certifiers, told_of_log
from surestep.experiments.plan import (
    AlgorithmSpec,
    CertifierSpec,
    EnvironmentSpec,
    Experiment,
)
from surestep.model import Policy, Problem, ProblemBatch
from surestep.model.certificate import Certificate
from surestep.rehearsal import calibrate

BLOCK_REPETITIONS = 25
LARGEST_SEED = 2**63 - 1
Meeting = tuple[AlgorithmSpec, CertifierSpec]


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

    def certifier(
        self, spec: CertifierSpec, episodes: int, repetition: int, **told: object
    ) -> Certifier:
        """The certifier, with random numbers of its own in each repetition.

        `told` is what it is told of the benchmark, unless the experiment says so itself.
        """
        given = dict(spec.settings)
        more = {name: value for name, value in told.items() if name not in given}
        if spec.takes_seed:
            rng = np.random.default_rng(
                (*data_seed(self.seed, self.environment, episodes, repetition), 1)
            )
            more["seed"] = int(rng.integers(LARGEST_SEED))
        return spec.make(**more)


class Claims(NamedTuple):
    """The policies of some repetitions and the claims about them; of a refusal, its code."""

    policy: list[FloatArray]  # [K] each
    n_wedge: int | None  # that was used
    lower: list[float]  # L; NaN where refused
    standing: list[str]
    refusal: list[str]


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
    _ = benchmark.truth  # refused before any work where no true gain is known
    logged = benchmark.simulator is not None or any(
        needs_episodes(spec.make()) for spec in block.certifiers
    )
    claims_of = claims_on_logs if logged else claims_on_counts
    parts: list[dict[str, AnyArray]] = []
    spent: dict[str, float] = defaultdict(float)
    for episodes in block.sizes():
        asked = [spec for spec in block.certifiers if episodes in (spec.episodes or block.episodes)]
        claims = dict(claims_of(block, benchmark, episodes, asked, spent))
        with timed(spent, "evaluating"):
            parts += [
                rows_of(block, benchmark, episodes, algorithm, certifier, claimed)
                for (algorithm, certifier), claimed in claims.items()
            ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Rows(columns, **{name: spent[name] for name in Rows._fields[1:]})


def claims_on_counts(
    block: ClaimBlock,
    benchmark: Benchmark,
    episodes: int,
    certifiers: list[CertifierSpec],
    spent: dict[str, float],
) -> Iterator[tuple[Meeting, Claims]]:
    """Yields claims about policies that the same counts chose."""
    repetitions = range(block.first, block.last)
    with timed(spent, "sampling"):
        cell = Block(block.seed, block.environment, episodes, block.first, block.last, ())
        problems = counted_problems(cell, benchmark, repetitions)
        given = [known_to_certifiers(benchmark, problems, i) for i in range(len(repetitions))]
    for algorithm, spec in itertools.product(block.algorithms, certifiers):
        with timed(spent, "improving"):
            rows, n_wedge = proposed(algorithm, spec, problems, given)
        policies = [Policy(benchmark.mdp.pairs, row) for row in rows]
        claims = Claims([], n_wedge, [], [], [])
        with timed(spent, "certifying"):
            certified = certify_all(block, algorithm, spec, episodes, given, policies)
        for policy, claim in zip(policies, certified, strict=True):
            add_claim(claims, policy, claim)
        yield (algorithm, spec), claims


def proposed(
    algorithm: AlgorithmSpec, spec: CertifierSpec, problems: ProblemBatch, given: list[Problem]
) -> tuple[FloatArray, int | None]:
    """π_I [B, K], and the N∧ that all had; None where each data set chose its own."""
    if not algorithm.chooses:
        improved = improve_batch(algorithm.make(), problems)
        return improved.policy, improved.n_wedge
    auto = AutoNWedge(algorithm=algorithm.make(), certifier=spec.make())
    return choose_batch(auto, problems, given), None


def improver(algorithm: AlgorithmSpec, certifier: Certifier) -> Algorithm | AutoNWedge:
    """Returns the algorithm; where N∧ is to be chosen, with this certifier as its judge."""
    made = algorithm.make()
    return AutoNWedge(algorithm=made, certifier=certifier) if algorithm.chooses else made


def certify_all(
    block: ClaimBlock,
    algorithm: AlgorithmSpec,
    spec: CertifierSpec,
    episodes: int,
    problems: list[Problem],
    policies: list[Policy],
) -> list[Certificate | CertificateRefused]:
    """Returns the certificate or refusal of each repetition: at once, unless each draws anew."""
    if not spec.takes_seed:
        return certify_batch(problems, policies, spec.make())
    claims: list[Certificate | CertificateRefused] = []
    repetitions = range(block.first, block.last)
    for repetition, problem, policy in zip(repetitions, problems, policies, strict=True):
        certifier = block.certifier(spec, episodes, repetition)
        try:
            if spec.worlds is not None:
                certifier = calibrated(problem, algorithm, certifier, spec.worlds)
            claims.append(certify(problem, policy, certifier))
        except CertificateRefused as refusal:
            claims.append(refusal)
    return claims


def calibrated(
    problem: Problem, algorithm: AlgorithmSpec, certifier: Certifier, worlds: int
) -> Certifier:
    """The certifier with what worlds of its own data leave of it; refused where that is nothing."""
    assert believes(certifier)
    improves = improver(algorithm, certifier)
    rng = np.random.default_rng((certifier.seed, 1))  # other draws than the certificate's own
    calibration = calibrate(problem, improves, certifier, rng=rng, worlds=worlds)
    return calibration.applied_to(certifier)


def claims_on_logs(
    block: ClaimBlock,
    benchmark: Benchmark,
    episodes: int,
    certifiers: list[CertifierSpec],
    spent: dict[str, float],
) -> Iterator[tuple[Meeting, Claims]]:
    """Yields claims about policies that other episodes of the same log chose, where it is split.

    Logs are kept one at a time, for they are long.
    """
    claimed: dict[Meeting, Claims] = {}
    for repetition in range(block.first, block.last):
        with timed(spent, "sampling"):
            rng = np.random.default_rng(
                data_seed(block.seed, block.environment, episodes, repetition)
            )
            problem = benchmark.problem(benchmark.sample(episodes, rng))
        for algorithm, spec in itertools.product(block.algorithms, certifiers):
            told = told_of_log(spec.name, benchmark, problem, dict(spec.settings))
            certifier = block.certifier(spec, episodes, repetition, **told)
            with timed(spent, "improving"):
                training = training_for(problem, certifier)
                improved = improver(algorithm, certifier).improve(training)
            n_wedge = None if algorithm.chooses else improved.n_wedge
            claims = claimed.setdefault((algorithm, spec), Claims([], n_wedge, [], [], []))
            with timed(spent, "certifying"):
                (claim,) = certify_batch([problem], [improved.policy], certifier)
            add_claim(claims, improved.policy, claim)
    yield from claimed.items()


def add_claim(claims: Claims, policy: Policy, claim: Certificate | CertificateRefused) -> None:
    """Appends the policy and its claim; a refusal is an answer too."""
    lower, standing, code = float("nan"), "", ""
    if isinstance(claim, CertificateRefused):
        code = claim.code
    elif claim.lower is None:
        code = claim.kind
    else:
        lower, standing = claim.lower, standing_name(claim)
    claims.policy.append(policy.probability)
    claims.lower.append(lower)
    claims.standing.append(standing)
    claims.refusal.append(code)


@contextmanager
def timed(spent: dict[str, float], what: str) -> Iterator[None]:
    """Adds the seconds that pass inside to what is spent on it."""
    begun = time.perf_counter()
    yield
    spent[what] += time.perf_counter() - begun


def rows_of(
    block: ClaimBlock,
    benchmark: Benchmark,
    episodes: int,
    algorithm: AlgorithmSpec,
    certifier: CertifierSpec,
    claims: Claims,
) -> dict[str, AnyArray]:
    """Returns the columns of what one certifier claimed of one algorithm."""
    gain, behavior = true_gains(benchmark, np.stack(claims.policy))

    def words(text: str) -> AnyArray:
        return np.full(gain.size, text, object)

    return {
        "family": words(block.environment.family),
        "environment": words(block.environment.label),
        "episodes": np.full(gain.size, episodes, np.int64),
        "algorithm": words(algorithm.name),
        "setting": words(algorithm.label),
        "n_wedge": np.full(gain.size, none_as_nan(algorithm.n_wedge)),
        "n_wedge_used": np.full(gain.size, none_as_nan(claims.n_wedge)),
        "certifier": words(certifier.name),
        "certifier_setting": words(certifier.label),
        "delta": np.full(gain.size, float(certifier.make().delta)),
        "repetition": np.arange(block.first, block.last),
        "behavior_performance": np.full(gain.size, behavior),
        "gain": gain,
        "lower": np.array(claims.lower, np.float64),
        "standing": np.array(claims.standing, object),
        "refusal": np.array(claims.refusal, object),
    }


def true_gains(benchmark: Benchmark, policies: FloatArray) -> tuple[FloatArray, float]:
    """Δ = ρ(π_I) − ρ(π_b) of policies [B, K] in the true MDP, and ρ(π_b), evaluated alike."""
    everyone = np.concatenate([benchmark.behavior.probability[np.newaxis], policies])
    worth = benchmark.truth.worth(everyone)
    return worth[1:] - worth[0], float(worth[0])
