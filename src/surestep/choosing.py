"""N∧ chosen by a certificate, without letting the choice spoil the claim.

The largest of several lower bounds, each of which may be too high by chance, is too high more often
than any of them. Who may choose, and who must then certify, depends on the certificate:

- robust: one event covers every policy at once, so the best candidate's claim stands as it is;
- posterior: one set of draws chooses, another one certifies;
- trajectory: the training part chooses, by a split of its own, and the test part certifies;
- a-priori: its N∧ is fixed before the data, so there is nothing to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from surestep._arrays import expect
from surestep.algorithms import make_algorithm
from surestep.algorithms.registry import kind_of
from surestep.certificates import (
    Certifier,
    Posterior,
    Robust,
    Trajectory,
    certify,
    posterior_gains,
    training_part,
)
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.certificate import Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem

SEEDS = 2**63  # a posterior's seeds are below


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenNWedge:
    """The N∧ that was chosen, what was expected of each candidate, and what is claimed in the end.

    `lower` is what the choice went by, None where the certificate was refused. Only `certificate`
    is a claim.
    """

    n_wedge: int
    policy: Policy
    certificate: Certificate
    grid: tuple[int, ...]
    lower: tuple[float | None, ...]


def choose_n_wedge(
    problem: Problem, algorithm: str, certifier: Certifier, grid: Sequence[int]
) -> ChosenNWedge:
    """The N∧ of the grid with the largest lower bound, and a certificate left fresh by the choice.

    `algorithm` is the name of one with the setting n_wedge. Of equal bounds, the largest N∧ wins.
    """
    expect("problem", problem, Problem)
    candidates = read_grid(algorithm, grid)
    lower: Sequence[float | CertificateRefused]
    if isinstance(certifier, Robust):
        policies = improved(problem, algorithm, candidates)
        lower = lower_bounds(problem, policies, certifier)
    elif isinstance(certifier, Posterior):
        policies = improved(problem, algorithm, candidates)
        other_draws = replace(certifier, seed=(certifier.seed + 1) % SEEDS)
        gains = np.sort(posterior_gains(problem, policies, other_draws), axis=1)
        lower = [float(each) for each in gains[:, certifier.rank - 1]]
    elif isinstance(certifier, Trajectory):
        training = training_part(problem, certifier.train_share, certifier.seed)
        inner = training_part(training, certifier.train_share, certifier.seed)
        lower = lower_bounds(training, improved(inner, algorithm, candidates), certifier)
        policies = improved(training, algorithm, candidates)
    else:
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected Robust, Posterior or "
            "Trajectory: the claims of others hold for an N∧ that was fixed beforehand"
        )
    best = best_of(candidates, lower)
    return ChosenNWedge(
        n_wedge=candidates[best],
        policy=policies[best],
        certificate=certify(problem, policies[best], certifier),
        grid=candidates,
        lower=tuple(None if isinstance(each, CertificateRefused) else each for each in lower),
    )


def improved(problem: Problem, algorithm: str, candidates: tuple[int, ...]) -> list[Policy]:
    """The policy of each candidate."""
    return [
        make_algorithm(algorithm, n_wedge=n_wedge).improve(problem).policy for n_wedge in candidates
    ]


def lower_bounds(
    problem: Problem, policies: list[Policy], certifier: Certifier
) -> list[float | CertificateRefused]:
    """L of each policy, or why there is none."""
    found: list[float | CertificateRefused] = []
    for policy in policies:
        try:
            found.append(certify(problem, policy, certifier).lower)
        except CertificateRefused as reason:
            found.append(reason)
    return found


def best_of(candidates: tuple[int, ...], lower: Sequence[float | CertificateRefused]) -> int:
    """The position of the largest bound; of equal ones, that of the largest N∧."""
    refused = [each for each in lower if isinstance(each, CertificateRefused)]
    if len(refused) == len(lower):
        raise refused[0]
    values = [-np.inf if isinstance(each, CertificateRefused) else each for each in lower]
    return max(range(len(values)), key=lambda i: (values[i], candidates[i]))


def read_grid(algorithm: object, grid: object) -> tuple[int, ...]:
    """Different whole numbers, for an algorithm that has an N∧."""
    kind = kind_of(algorithm)
    if "n_wedge" not in [field.name for field in fields(kind)]:
        raise InvalidParameter(f"{algorithm} has no setting n_wedge, expected one that has it")
    if not isinstance(grid, Sequence) or isinstance(grid, str) or len(grid) == 0:
        raise InvalidParameter(f"grid is {grid!r}, expected several numbers N∧")
    for n_wedge in grid:
        kind(n_wedge=n_wedge)  # says what is wrong with it
    candidates = tuple(int(n_wedge) for n_wedge in grid)
    if len(set(candidates)) < len(candidates):
        raise InvalidParameter(f"grid is {grid!r}, expected no N∧ twice")
    return candidates
