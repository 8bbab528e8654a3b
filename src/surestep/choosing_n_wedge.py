"""N∧ chosen by a certificate, without letting the choice spoil the claim.

The largest of several lower bounds, each of which may be too high by chance, is too high more often
than any of them. Who may choose, and who must then certify, depends on the certificate:

- robust: one event covers every policy at once, so the best candidate's claim stands as it is;
- posterior: one set of draws chooses, another one certifies;
- trajectory: the training part chooses, by a split of its own, and the test part certifies;
- stitched: the training part chooses, by what its own rollouts predict, and the rest certifies;
- a-priori: its N∧ is fixed before the data, so there is nothing to choose.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import FloatArray, expect
from surestep.algorithms import Algorithm, Limited, Limits, is_algorithm
from surestep.algorithms.batch import improve_batches
from surestep.algorithms.limits import NO_LIMITS, limited
from surestep.algorithms.registry import kind_of
from surestep.certificates import CERTIFIERS, Certifier, certify
from surestep.certificates.bounding import choosing_bounds_each
from surestep.certificates.episodes import training_for
from surestep.certificates.protocol import Bound
from surestep.certificates.registry import check_certifier
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.certificate import Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Improvement, Problem
from surestep.model.problem_batch import ProblemBatch

N_WEDGE_SETTINGS = ("n_wedge", "spibb_n_wedge")


class Candidate(NamedTuple):
    """One N∧, what it gives, and what the choice went by: a bound, or why there is none."""

    n_wedge: int
    improvement: Improvement
    lower: Bound


class Choice(NamedTuple):
    """All candidates in the order of the grid, which of them was taken, and by whose bounds."""

    candidates: tuple[Candidate, ...]
    taken: int
    chosen_by: Certifier

    @property
    def best(self) -> Candidate:
        """Returns the one that was taken."""
        return self.candidates[self.taken]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoNWedge:
    """An algorithm whose N∧ is the one of a grid with the largest lower bound.

    `algorithm` may have any N∧. `certifier` is what chooses; a posterior does so with other draws
    than its own, and as few as suffice, which leaves its own fresh for the claim. Without a grid,
    1, 2, 5, 10, … up to the first N∧ that trusts no pair, so that π_b is a candidate; none below
    `least`, and all within the limits. Where no candidate is expected to be certified better than
    π_b, the bounds of `otherwise` choose, if it is given: what cannot be proved may still be
    believed.
    """

    algorithm: Algorithm
    certifier: Certifier
    grid: tuple[int, ...] | None = None
    least: int = 1
    otherwise: Certifier | None = None
    limits: Limits = NO_LIMITS

    def __post_init__(self) -> None:
        """Refuses what has nothing to choose, and certificates that may not choose."""
        if not is_algorithm(self.algorithm):
            raise InvalidParameter(
                f"algorithm is of type {type(self.algorithm).__name__}, expected one of "
                "surestep.algorithms with its settings"
            )
        if n_wedge_setting(self.algorithm) is None:
            raise InvalidParameter(
                f"{self.algorithm.name} has no N∧, expected an algorithm that has it"
            )
        check_may_choose("certifier", self.certifier)
        if self.otherwise is not None:
            check_may_choose("otherwise", self.otherwise)
        if self.grid is not None:
            object.__setattr__(self, "grid", read_grid(self.algorithm, self.grid))

    @property
    def name(self) -> str:
        """Returns the name of the algorithm."""
        return self.algorithm.name

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy of the candidate with the largest lower bound."""
        return self.choose(problem).best.improvement

    def choose(self, problem: Problem) -> Choice:
        """Tries all candidates. Of equal bounds, the largest N∧ wins; refused where all are.

        All of the problem chooses. Where a part of the log is held out, give the training part.
        """
        expect("problem", problem, Problem)
        grid = self.grid_for(int(problem.counts.visits.max()))
        improvements = self.improved(problem, grid)
        policies = [improvement.policy for improvement in improvements]
        chosen_by, lower = self.bounds_of(problem, grid, policies)
        candidates = tuple(map(Candidate, grid, improvements, lower))
        return Choice(candidates, best_of(grid, lower), chosen_by)

    def choose_batch(self, batch: ProblemBatch, problems: Sequence[Problem]) -> FloatArray:
        """π_I [B, K] with the N∧ that each problem chooses; `batch` has the same problems.

        All have one grid, that of the most visits: beyond its own, a problem only finds π_b again.
        Where every candidate is refused, π_b stays.
        """
        grid = self.grid_for(int(batch.counts.visits.max()))
        improved = improve_batches([self.at(n_wedge) for n_wedge in grid], batch)
        every = [improvements.policy for improvements in improved]
        policies = [
            [Policy(problem.counts.pairs, chances[b]) for chances in every]
            for b, problem in enumerate(problems)
        ]
        taken = []
        for b, (_, lower) in enumerate(self.bounds_of_each(problems, grid, policies)):
            try:
                taken.append(every[best_of(grid, lower)][b])
            except CertificateRefused:
                taken.append(problems[b].behavior.probability)
        return np.stack(taken)

    def grid_for(self, most_visits: int) -> tuple[int, ...]:
        """Returns the candidates for data in which the most visits of a pair are so many."""
        return usual_grid(most_visits, self.least) if self.grid is None else self.grid

    def bounds_of(
        self, problem: Problem, grid: tuple[int, ...], policies: Sequence[Policy]
    ) -> tuple[Certifier, list[Bound]]:
        """Returns whose lower bounds the choice goes by, and that of each candidate, if any."""
        return self.bounds_of_each([problem], grid, [policies])[0]

    def bounds_of_each(
        self,
        problems: Sequence[Problem],
        grid: tuple[int, ...],
        policies: Sequence[Sequence[Policy]],
    ) -> list[tuple[Certifier, list[Bound]]]:
        """Returns the `bounds_of` of the candidates of each problem."""

        def again(part: Problem) -> list[Policy]:
            return [improvement.policy for improvement in self.improved(part, grid)]

        lower = choosing_bounds_each(self.certifier, problems, policies, again)
        chosen = [(self.certifier, bounds) for bounds in lower]
        left = [b for b, bounds in enumerate(lower) if not any_gain(bounds)]
        if self.otherwise is None or not left:
            return chosen
        others = choosing_bounds_each(
            self.otherwise, [problems[b] for b in left], [policies[b] for b in left], again
        )
        for b, bounds in zip(left, others, strict=True):
            chosen[b] = self.otherwise, bounds
        return chosen

    def improved(self, problem: Problem, grid: tuple[int, ...]) -> list[Improvement]:
        """Returns the improvement at each N∧."""
        return [self.at(n_wedge).improve(problem) for n_wedge in grid]

    def at(self, n_wedge: int) -> Algorithm | Limited:
        """Returns the algorithm with some N∧, within the limits."""
        return limited(with_n_wedge(self.algorithm, n_wedge), self.limits)


def check_may_choose(name: str, certifier: object) -> None:
    """Refuses a certifier by whose claims no policy may be chosen."""
    check_certifier(certifier)
    kind = type(certifier)
    if not kind.may_choose:  # type: ignore[attr-defined]
        choosing = " or ".join(other.__name__ for other in CERTIFIERS.values() if other.may_choose)
        raise InvalidParameter(
            f"{name} is of type {kind.__name__}, expected {choosing}: the claims of others hold "
            "for an N∧ that was fixed beforehand"
        )


def any_gain(lower: Sequence[Bound]) -> bool:
    """Tells whether one of the bounds promises a gain."""
    return any(not isinstance(bound, CertificateRefused) and bound > 0 for bound in lower)


Method = Algorithm | AutoNWedge | Limited  # whatever a pipeline may improve with


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
    problem: Problem, algorithm: str, certifier: Certifier, grid: Sequence[int] | None = None
) -> ChosenNWedge:
    """Chooses the N∧ of the grid with the largest lower bound; and a certificate it leaves fresh.

    `algorithm` is the name of one with an N∧; see `AutoNWedge` for the rest.
    """
    expect("problem", problem, Problem)
    kind = kind_of(algorithm)
    setting = n_wedge_setting(kind)
    if setting is None:
        raise InvalidParameter(f"{algorithm} has no N∧, expected an algorithm that has it")
    auto = AutoNWedge(
        algorithm=kind(**{setting: 1}),
        certifier=certifier,
        grid=grid,  # type: ignore[arg-type]
    )
    choice = auto.choose(training_for(problem, certifier))
    policy = choice.best.improvement.policy
    return ChosenNWedge(
        n_wedge=choice.best.n_wedge,
        policy=policy,
        certificate=certify(problem, policy, certifier),
        grid=tuple(candidate.n_wedge for candidate in choice.candidates),
        lower=tuple(number_or_none(candidate.lower) for candidate in choice.candidates),
    )


def best_of(grid: tuple[int, ...], lower: Sequence[Bound]) -> int:
    """Returns the position of the largest bound; of equal ones, that of the largest N∧."""
    refused = [bound for bound in lower if isinstance(bound, CertificateRefused)]
    if len(refused) == len(lower):
        raise refused[0]
    values = [-np.inf if isinstance(bound, CertificateRefused) else bound for bound in lower]
    return max(range(len(values)), key=lambda i: (values[i], grid[i]))


def number_or_none(bound: Bound) -> float | None:
    """Returns the bound, where it is one."""
    return None if isinstance(bound, CertificateRefused) else bound


# ---- N∧ as a setting ----------------------------------------------------------------------------


def n_wedge_setting(algorithm: Any) -> str | None:
    """Returns the setting that says N∧, where the algorithm, or the class of one, has it."""
    names = [field.name for field in dataclasses.fields(algorithm)]
    return next((name for name in N_WEDGE_SETTINGS if name in names), None)


def with_n_wedge(algorithm: Algorithm, n_wedge: int) -> Algorithm:
    """Returns the algorithm with another N∧."""
    changed: Algorithm = replace(algorithm, **{str(n_wedge_setting(algorithm)): n_wedge})  # type: ignore[type-var]
    return changed


def usual_grid(most_visits: int, least: int = 1) -> tuple[int, ...]:
    """Returns 1, 2, 5, 10, 20, … from the least to the first that trusts no pair.

    >>> usual_grid(80)
    (1, 2, 5, 10, 20, 50, 100)
    >>> usual_grid(80, 9)
    (9, 10, 20, 50, 100)
    """
    usual = {digit * 10**power for power in range(19) for digit in (1, 2, 5)}
    grid = sorted(n_wedge for n_wedge in {*usual, least} if n_wedge >= least)
    enough = next(i for i, n_wedge in enumerate(grid) if n_wedge >= most_visits)
    return tuple(grid[: enough + 1])


def read_grid(algorithm: Algorithm, grid: object) -> tuple[int, ...]:
    """Different whole numbers that the algorithm takes for N∧."""
    if not isinstance(grid, Sequence) or isinstance(grid, str) or len(grid) == 0:
        raise InvalidParameter(f"grid is {grid!r}, expected several numbers N∧")
    for n_wedge in grid:
        with_n_wedge(algorithm, n_wedge)  # says what is wrong with it
    candidates = tuple(int(n_wedge) for n_wedge in grid)
    if len(set(candidates)) < len(candidates):
        raise InvalidParameter(f"grid is {grid!r}, expected no N∧ twice")
    return candidates
