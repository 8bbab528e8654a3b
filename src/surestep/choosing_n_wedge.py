"""Chooses N∧ by a certificate's lower bounds, without letting the choice spoil the claim.

The largest of several lower bounds, each of which may be too high by chance, is too high more often
than any of them. Who may choose, and who must then certify, depends on the certificate:

- robust: one event covers every policy at once, so the best candidate's claim stands as it is;
- posterior: one set of draws chooses, another one certifies;
- trajectory: the training part chooses, by a split of its own, and the test part certifies;
- stitched: the training part chooses, by what its own rollouts predict, and the rest certifies;
- a-priori: its N∧ is fixed before the data, so there is nothing to choose.

What holds for the N∧ of one algorithm holds for other candidates beside it: further algorithms, and
the policies of all with one action in every state that they change, which people can follow; and
small trees over the columns of the state, which people can remember. Policies that leave one
column of the state out are candidates, too, for states that are too fine for their data.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.batch import improve_batches
from surestep.algorithms.coarser import spread, without_column
from surestep.algorithms.contract import Algorithm, improvement_of, limited
from surestep.algorithms.registry import is_algorithm
from surestep.algorithms.trees import ends
from surestep.candidates import (
    MIXED,
    ONE_ACTION,
    Candidate,
    Choice,
    Choosing,
    Tried,
    best_of,
    check_may_choose,
    in_numbers,
    n_wedge_of,
    n_wedge_setting,
    new_trees,
    with_one_action,
)
from surestep.certificates.common import Bound, Certifier
from surestep.errors import CertificateRefused, InvalidParameter, NeverEnds, NotConverged
from surestep.model import Improvement, Policy, Problem, ProblemBatch

# What was tried in a problem, and the bound of each by the certifier that chooses.
Judged = tuple[list[Tried], list[Bound], Certifier]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoNWedge(Choosing):
    """The algorithm with the N∧ of a grid that has the largest lower bound, or one beside it.

    `algorithm` may have any N∧. `certifier` is what chooses; a posterior does so with other draws
    than its own, and as few as suffice, which leaves its own fresh for the claim. Without a grid,
    1, 2, 5, 10, … up to the first N∧ that trusts no pair, so that π_b is a candidate; none below
    `least`, and all within the limits. Where no candidate is expected to be certified better than
    π_b, the bounds of `otherwise` choose, if it is given: what cannot be proved may still be
    believed. `beside` are further candidates. With `one_action`, so are the policies of all
    candidates that take, in every state that they change, only the action that they take most of
    those taken more often than before. With `columns`, so are trees over these of up to so many
    `rules`, and with `one_action` policies that leave out one of several columns. See `best_of` for
    when one of all these is preferred.
    """

    algorithm: Algorithm
    grid: tuple[int, ...] | None = None
    least: int = 1
    beside: tuple[Algorithm, ...] = ()

    def __post_init__(self) -> None:
        if not is_algorithm(self.algorithm) or n_wedge_setting(self.algorithm) is None:
            raise InvalidParameter(
                f"algorithm is {arrays.shown(self.algorithm)}, expected one of surestep.algorithms "
                "with its settings, that has an N∧"
            )
        check_may_choose("certifier", self.certifier)
        if self.otherwise is not None:
            check_may_choose("otherwise", self.otherwise)
        if not isinstance(self.grid, list | tuple | None):
            raise InvalidParameter(f"grid is {self.grid!r}, expected several numbers N∧")
        for n_wedge in self.grid or ():
            with_n_wedge(self.algorithm, n_wedge)  # says what is wrong with it

    @property
    def name(self) -> str:
        """Returns the name of the algorithm."""
        return self.algorithm.name

    def choose(self, problem: Problem) -> Choice:
        """Tries all candidates; of equal bounds, the largest N∧ wins. Refuses if all are refused.

        All of the problem chooses. Where a part of the log is held out, give the training part.
        """
        arrays.expect("problem", problem, Problem)
        algorithms = self.algorithms(int(problem.counts.visits.max()))
        made = self.tables(problem, algorithms)
        several = self.tried([improvement.policy for improvement in made], problem, algorithms)
        ((tried, lower, judge),) = self.judged([problem], algorithms, [several])
        # If a column is left out, N∧ is compared with visits of merged states.
        made += [
            improvement_of(
                problem,
                one.policy,
                n_wedge=n_wedge_of(one.algorithm) if one.left_out is None else None,
            )
            for one in tried[len(made) :]
        ]
        return Choice(tuple(map(Candidate, tried, made, lower)), best_of(tried, lower), judge)

    def choose_batch(self, batch: ProblemBatch, problems: Sequence[Problem]) -> arrays.FloatArray:
        """Returns π_I [B, K] of the candidate chosen in each problem; `batch` has these problems.

        All have one grid, that of the most visits: beyond its own, a problem only finds π_b again.
        Where every candidate is refused, π_b stays.
        """
        algorithms = self.algorithms(int(batch.counts.visits.max()))
        own = [limited(x, self.limits) for x in algorithms[: len(algorithms) - len(self.beside)]]
        improved = improve_batches(own, batch)
        tried = []
        for b, problem in enumerate(problems):
            several = [Policy(problem.counts.pairs, made.policy[b]) for made in improved]
            several += [self.improvement(other, problem).policy for other in self.beside]
            if self.one_action:
                several += [with_one_action(policy, problem.behavior) for policy in several]
            tried.append(self.tried(several, problem, algorithms))
        taken = [problem.behavior.probability for problem in problems]
        for b, (those, lower, _) in enumerate(self.judged(problems, algorithms, tried)):
            with suppress(CertificateRefused):
                taken[b] = those[best_of(those, lower)].policy.probability
        return np.stack(taken)

    def lighter(self) -> Self:
        """Returns a copy that chooses with less work, for the worlds of a stress test."""
        return replace(
            self,
            certifier=self.certifier.lightest(),
            otherwise=None if self.otherwise is None else self.otherwise.lightest(),
        )

    def algorithms(self, most_visits: int) -> list[Algorithm]:
        """Returns the algorithm at each N∧ of the grid, then the algorithms `beside`."""
        grid = self.grid or usual_grid(most_visits, self.least)
        return [*(with_n_wedge(self.algorithm, n_wedge) for n_wedge in grid), *self.beside]

    def tried(
        self, policies: Sequence[Policy], problem: Problem, algorithms: Sequence[Algorithm]
    ) -> list[Tried]:
        """Returns candidates: the given policies, and policies that ignore one column."""
        number = len(algorithms)
        candidates = [
            Tried(algorithms[place % number], policy, MIXED if place < number else ONE_ACTION)
            for place, policy in enumerate(policies)
        ]
        if not self.one_action or len(self.columns) < 2 or problem.episodes is None:
            return candidates
        inside = problem if self.limits.allowed is None else problem.within(~self.limits.allowed)
        scarce = replace(self.limits, allowed=None)
        grid = algorithms[: number - len(self.beside)]
        for left_out in range(len(self.columns)):
            coarse, pair = without_column(inside, problem.episodes, self.columns, left_out)
            for algorithm in dict.fromkeys([grid[0], grid[len(grid) // 2]]):
                with suppress(NeverEnds, NotConverged):
                    made = limited(algorithm, scarce).improve(coarse)
                    alone = with_one_action(made.policy, coarse.behavior)
                    policy = spread(alone, coarse, pair, problem.behavior)
                    if ends(problem, policy):
                        candidates.append(Tried(algorithm, policy, ONE_ACTION, (), left_out))
        return candidates

    def judged(
        self,
        problems: Sequence[Problem],
        algorithms: Sequence[Algorithm],
        tried: Sequence[list[Tried]],
    ) -> list[Judged]:
        """Returns the candidates of each problem, and trees grown from them, with their bounds."""
        answers = self.judged_by(self.certifier, problems, algorithms, tried)
        left = [b for b, (_, lower, _) in enumerate(answers) if max(in_numbers(lower)) <= 0]
        if self.otherwise is not None:
            others = self.judged_by(
                self.otherwise, [problems[b] for b in left], algorithms, [tried[b] for b in left]
            )
            for b, judged in zip(left, others, strict=True):
                answers[b] = judged
        return answers

    def judged_by(
        self,
        judge: Certifier,
        problems: Sequence[Problem],
        algorithms: Sequence[Algorithm],
        tried: Sequence[list[Tried]],
    ) -> list[Judged]:
        """Returns candidates with one certifier's bounds; grows trees if one promises a gain."""

        def bounds(places: Iterable[int], several: Iterable[list[Tried]]) -> list[list[Bound]]:
            return judge.choosing_bounds(
                [problems[b] for b in places],
                [[one.policy for one in each] for each in several],
                lambda part: [made.policy for made in self.tables(part, algorithms)],
            )

        answers = [
            (several, lower, judge)
            for several, lower in zip(tried, bounds(range(len(tried)), tried), strict=True)
        ]
        trees = [self.trees_for(problems[b], *answers[b][:2]) for b in range(len(answers))]
        grown = {b: several for b, several in enumerate(trees) if several}
        for b, lower in zip(grown, bounds(grown, grown.values()), strict=True):
            answers[b] = (tried[b] + grown[b], answers[b][1] + lower, judge)
        return answers

    def trees_for(
        self, problem: Problem, tried: Sequence[Tried], lower: Sequence[Bound]
    ) -> list[Tried]:
        """Returns trees for candidates with one action that promise half as much as the best one.

        They keep to the N∧ of their candidate, and to the limits. The list is empty if no candidate
        promises a gain.
        """
        bounds = in_numbers(lower)
        trees: list[Tried] = []
        for one, bound in zip(tried, bounds, strict=True):
            if self.rules and one.size == ONE_ACTION and bound >= max(bounds) / 2 > 0:
                inside = problem.within(self.limits.closed(problem.counts))
                trees += new_trees(trees, one, inside, self.columns, self.rules)
        return trees

    def tables(self, problem: Problem, algorithms: Sequence[Algorithm]) -> list[Improvement]:
        """Returns each algorithm's improvement; with `one_action`, then each with one action.

        A policy that would never end with one action stays unchanged.
        """
        made = [self.improvement(algorithm, problem) for algorithm in algorithms]
        alone = []
        for one in made if self.one_action else ():
            policy = with_one_action(one.policy, problem.behavior)
            try:
                alone.append(improvement_of(problem, policy, one.plan.iterations, one.n_wedge))
            except NeverEnds:
                alone.append(one)
        return made + alone

    def improvement(self, algorithm: Algorithm, problem: Problem) -> Improvement:
        """Returns the improvement within the limits; π_b if an algorithm of `beside` fails."""
        try:
            return limited(algorithm, self.limits).improve(problem)
        except (NeverEnds, NotConverged):
            if algorithm not in self.beside:
                raise
            return improvement_of(problem, problem.behavior)


# ---- N∧ as a setting ----------------------------------------------------------------------------


def with_n_wedge(algorithm: Algorithm, n_wedge: int) -> Algorithm:
    """Returns the algorithm with another N∧."""
    return replace(algorithm, **{str(n_wedge_setting(algorithm)): n_wedge})  # type: ignore[type-var]


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
