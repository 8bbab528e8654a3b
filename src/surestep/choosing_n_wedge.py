"""N∧ chosen by a certificate, without letting the choice spoil the claim.

The largest of several lower bounds, each of which may be too high by chance, is too high more often
than any of them. Who may choose, and who must then certify, depends on the certificate:

- robust: one event covers every policy at once, so the best candidate's claim stands as it is;
- posterior: one set of draws chooses, another one certifies;
- trajectory: the training part chooses, by a split of its own, and the test part certifies;
- stitched: the training part chooses, by what its own rollouts predict, and the rest certifies;
- a-priori: its N∧ is fixed before the data, so there is nothing to choose.

What holds for the N∧ of one algorithm holds for other candidates beside it: further algorithms, and
the policies of all with one action in every state that they change, which people can follow; and
small trees over the columns of the state, which people can remember.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms import Algorithm, Constrained
from surestep.algorithms.batch import improve_batches
from surestep.algorithms.constrained import Bounded
from surestep.algorithms.contract import improvement_of
from surestep.algorithms.limits import NO_LIMITS, ROUNDING, Limited, Limits, limited
from surestep.algorithms.registry import is_algorithm
from surestep.algorithms.trees import StateColumn, Tree, ends, grow
from surestep.certificates import CERTIFIERS, Certifier
from surestep.certificates.common import Bound
from surestep.certificates.registry import certifier_for, check_certifier
from surestep.errors import CertificateRefused, InvalidParameter, NeverEnds, NotConverged
from surestep.model import Improvement, Policy, Problem, ProblemBatch

NEARLY = 0.9  # of the largest bound: what a policy that people can follow has to promise
MIXED = np.inf  # the size of a policy that may draw lots
ONE_ACTION = 1e6  # the size of a policy with one action in every state that it changes
LEAST_RANGE = float(np.finfo(float).tiny)  # of values that are all the same
N_WEDGE_SETTINGS = ("n_wedge", "spibb_n_wedge")


class Candidate(NamedTuple):
    """An algorithm with its N∧, its improvement, and the bound of it, or why there is none.

    Its size says how hard it is to follow: the number of rules of a tree, else `ONE_ACTION` or
    `MIXED`.
    """

    algorithm: Algorithm
    improvement: Improvement
    lower: Bound
    size: float = MIXED
    tree: Tree = ()

    @property
    def n_wedge(self) -> int | None:
        """Returns N∧ as the algorithm was asked for it; None where it has none."""
        return n_wedge_of(self.algorithm)


class Judged(NamedTuple):
    """The candidates of a problem, each with its algorithm, size and bound; trees come last."""

    algorithms: list[Algorithm]
    policies: list[Policy]
    sizes: list[float]
    trees: list[Tree]
    chosen_by: Certifier
    lower: list[Bound]

    def joined(self, others: Judged) -> Judged:
        """Returns these candidates and others."""
        return Judged(
            self.algorithms + others.algorithms,
            self.policies + others.policies,
            self.sizes + others.sizes,
            self.trees + others.trees,
            self.chosen_by,
            self.lower + others.lower,
        )

    @property
    def taken(self) -> int:
        """Returns the place of the best candidate; refused where all are."""
        return best_of(self.algorithms, self.lower, self.sizes)


class Choice(NamedTuple):
    """All candidates, the grid first; the place of the best, and the certifier that chose it."""

    candidates: tuple[Candidate, ...]
    taken: int
    chosen_by: Certifier

    @property
    def best(self) -> Candidate:
        """Returns the one that was taken."""
        return self.candidates[self.taken]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoNWedge:
    """The algorithm with the N∧ of a grid that has the largest lower bound, or one beside it.

    `algorithm` may have any N∧. `certifier` is what chooses; a posterior does so with other draws
    than its own, and as few as suffice, which leaves its own fresh for the claim. Without a grid,
    1, 2, 5, 10, … up to the first N∧ that trusts no pair, so that π_b is a candidate; none below
    `least`, and all within the limits. Where no candidate is expected to be certified better than
    π_b, the bounds of `otherwise` choose, if it is given: what cannot be proved may still be
    believed. `beside` are further candidates. With `one_action`, so are the policies of all
    candidates that take, in every state that they change, only the action that they take most of
    those taken more often than before. With `columns`, so are trees over these of up to so many
    `rules`. See `best_of` for when one of all these is preferred.
    """

    algorithm: Algorithm
    certifier: Certifier
    grid: tuple[int, ...] | None = None
    least: int = 1
    otherwise: Certifier | None = None
    limits: Limits = NO_LIMITS
    beside: tuple[Algorithm, ...] = ()
    one_action: bool = False
    columns: tuple[StateColumn, ...] = ()
    rules: int = 0

    def __post_init__(self) -> None:
        if not is_algorithm(self.algorithm) or n_wedge_setting(self.algorithm) is None:
            raise InvalidParameter(
                f"algorithm is {arrays.shown(self.algorithm)}, expected one of surestep.algorithms "
                "with its settings, that has an N∧"
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
        arrays.expect("problem", problem, Problem)
        algorithms = self.algorithms(int(problem.counts.visits.max()))
        made = self.tables(problem, algorithms)
        (judged,) = self.judged([problem], algorithms, [[each.policy for each in made]])
        for place in range(len(made), len(judged.policies)):
            n_wedge = n_wedge_of(judged.algorithms[place])
            made.append(improvement_of(problem, judged.policies[place], n_wedge=n_wedge))
        candidates = map(
            Candidate, judged.algorithms, made, judged.lower, judged.sizes, judged.trees
        )
        return Choice(tuple(candidates), judged.taken, judged.chosen_by)

    def choose_batch(self, batch: ProblemBatch, problems: Sequence[Problem]) -> arrays.FloatArray:
        """π_I [B, K] of the candidate that each problem chooses; `batch` has the same problems.

        All have one grid, that of the most visits: beyond its own, a problem only finds π_b again.
        Where every candidate is refused, π_b stays.
        """
        algorithms = self.algorithms(int(batch.counts.visits.max()))
        own = algorithms[: len(algorithms) - len(self.beside)]
        improved = improve_batches([limited(algorithm, self.limits) for algorithm in own], batch)
        policies = []
        for b, problem in enumerate(problems):
            several = [Policy(problem.counts.pairs, made.policy[b]) for made in improved]
            several += [self.improvement(other, problem).policy for other in self.beside]
            if self.one_action:
                several += [with_one_action(policy, problem.behavior) for policy in several]
            policies.append(several)
        taken = []
        both = zip(self.judged(problems, algorithms, policies), problems, strict=True)
        for judged, problem in both:
            try:
                taken.append(judged.policies[judged.taken].probability)
            except CertificateRefused:
                taken.append(problem.behavior.probability)
        return np.stack(taken)

    def lighter(self) -> AutoNWedge:
        """Returns the same, which chooses with less work: as a stress test does in its worlds."""
        other = None if self.otherwise is None else self.otherwise.lightest()
        return replace(self, certifier=self.certifier.lightest(), otherwise=other)

    def algorithms(self, most_visits: int) -> list[Algorithm]:
        """Returns the algorithm at each N∧ for so many visits of a pair, and those beside it."""
        grid = usual_grid(most_visits, self.least) if self.grid is None else self.grid
        return [*(with_n_wedge(self.algorithm, n_wedge) for n_wedge in grid), *self.beside]

    def judged(
        self,
        problems: Sequence[Problem],
        algorithms: Sequence[Algorithm],
        policies: Sequence[Sequence[Policy]],
    ) -> list[Judged]:
        """Returns the candidates of each problem, and trees beside them, with their bounds."""
        found = self.judged_by(self.certifier, problems, algorithms, policies)
        left = [b for b, judged in enumerate(found) if not any_gain(judged.lower)]
        if self.otherwise is None or not left:
            return found
        others = self.judged_by(
            self.otherwise, [problems[b] for b in left], algorithms, [policies[b] for b in left]
        )
        for b, judged in zip(left, others, strict=True):
            found[b] = judged
        return found

    def judged_by(
        self,
        judge: Certifier,
        problems: Sequence[Problem],
        algorithms: Sequence[Algorithm],
        policies: Sequence[Sequence[Policy]],
    ) -> list[Judged]:
        """Returns the same by one certifier; trees only where a candidate promises a gain."""

        def again(part: Problem) -> list[Policy]:
            return [improvement.policy for improvement in self.tables(part, algorithms)]

        number = len(algorithms)
        found = []
        for several, lower in zip(
            policies, judge.choosing_bounds(problems, policies, again), strict=True
        ):
            own = [algorithms[place % number] for place in range(len(several))]
            sizes = [MIXED if place < number else ONE_ACTION for place in range(len(several))]
            found.append(Judged(own, [*several], sizes, [() for _ in several], judge, lower))
        grown = {
            b: self.trees_for(problems[b], judged)
            for b, judged in enumerate(found)
            if self.rules and any_gain(judged.lower)
        }
        grown = {b: candidates for b, candidates in grown.items() if candidates.policies}
        bounds = judge.choosing_bounds(
            [problems[b] for b in grown], [each.policies for each in grown.values()], again
        )
        for (b, candidates), lower in zip(grown.items(), bounds, strict=True):
            found[b] = found[b].joined(candidates._replace(lower=lower))
        return found

    def trees_for(self, problem: Problem, judged: Judged) -> Judged:
        """Returns trees for candidates with one action that promise half as much as the best one.

        They keep to the N∧ of their candidate, and to the limits. They have no bounds yet.
        """
        trees = Judged([], [], [], [], judged.chosen_by, [])
        lower = [-np.inf if isinstance(x, CertificateRefused) else x for x in judged.lower]
        for source, bound in enumerate(lower):
            if judged.sizes[source] == MIXED or bound < max(lower) / 2:
                continue
            algorithm = judged.algorithms[source]
            scarce = problem.counts.visits <= (n_wedge_of(algorithm) or 0)
            inside = problem.within(self.limits.closed(problem.counts) | scarce)
            for grown in grow(inside, judged.policies[source], self.columns, self.rules):
                if grown.policy not in trees.policies:
                    trees.algorithms.append(algorithm)
                    trees.policies.append(grown.policy)
                    trees.sizes.append(grown.size)
                    trees.trees.append(grown.tree)
        return trees

    def tables(self, problem: Problem, algorithms: Sequence[Algorithm]) -> list[Improvement]:
        """Returns the improvement by each algorithm; then with one action, where that is asked.

        One that would never end with one action stays as it is.
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
        """Returns the improvement within the limits; none where one beside cannot make any."""
        try:
            return limited(algorithm, self.limits).improve(problem)
        except (NeverEnds, NotConverged):
            if algorithm not in self.beside:
                raise
            return improvement_of(problem, problem.behavior)


class Tried(NamedTuple):
    """A candidate policy, with its distance to spare from the limit of each signal."""

    algorithm: Constrained
    policy: Policy
    spare: Mapping[str, float]
    size: float = MIXED
    tree: Tree = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainedChoice:
    """The constrained policy that promises the most of all signals, of several, or π_b.

    A limit that is just kept in the estimate can hardly be proved to be kept. So there are
    candidates that keep it with something to spare: `caution` times the distance from the estimate
    to the lower bound that is expected for the policy without caution. Candidates whose further
    signals are all expected within their limits come first, then those that miss them by the least,
    as a share of the range of values; of equal ones, the one with the largest lower bound of the
    first signal, or one nearly as good that has more to spare. Where for none all is expected, with
    a gain, the bounds of `otherwise` choose, if it is given.

    Of candidates that keep their limits and have at least half the largest bound, the policies with
    one action in every state that they change are candidates too, and trees over the `columns` of
    the state with up to so many `rules`. Of those nearly as good, the smallest comes first.
    """

    algorithm: Constrained
    certifier: Certifier
    rounds: tuple[float, ...] = (5, 20, 80)
    caution: tuple[float, ...] = (0.5, 1.25, 2.0)  # beside none: 1 would often just miss
    otherwise: Certifier | None = None
    limits: Limits = NO_LIMITS
    one_action: bool = False
    columns: tuple[StateColumn, ...] = ()
    rules: int = 0

    name: ClassVar = Constrained.name

    def improve(self, problem: Problem) -> Improvement:
        """Returns the policy of the best candidate."""
        return self.choose(problem).best.improvement

    def choose(self, problem: Problem) -> Choice:
        """Tries all candidates; refused where the first signal has no bound for any.

        All of the problem chooses. Where a part of the log is held out, give the training part.
        """
        arrays.expect("problem", problem, Problem)
        inside = problem.within(self.limits.closed(problem.counts))
        bounded = self.algorithm.bounded(inside)
        judge = self.certifier
        tried = [Tried(self.algorithm, problem.behavior, {})]
        for rounds in self.rounds:
            tried += candidate(bounded, replace(self.algorithm, rounds=rounds), {})
        plain = tried[1:]
        for one, lower in zip(
            plain, bounds_of(judge, inside, plain).T if plain else (), strict=True
        ):
            for caution in self.caution if problem.signals else ():
                spare = {
                    limit.name: caution * max(limit.found(one.policy)[0] - limit.origin - bound, 0)
                    for limit, bound in zip(bounded.limits[1:], lower[1:], strict=True)
                    if np.isfinite(bound)
                }
                tried += candidate(bounded, one.algorithm, spare)
        promised = [promise(bounded, lower) for lower in bounds_of(judge, inside, tried).T]
        if self.otherwise is not None and max(promised)[:2] <= (0.0, 0.0):
            judge = self.otherwise
            promised = [promise(bounded, lower) for lower in bounds_of(judge, inside, tried).T]
        if simple := self.simpler(inside, tried, promised):
            tried += simple
            promised += [promise(bounded, lower) for lower in bounds_of(judge, inside, simple).T]
        taken = best_promise(promised, [one.size for one in tried])
        candidates = []
        for place, (one, outlook) in enumerate(zip(tried, promised, strict=True)):
            made = (
                one.algorithm.explained(bounded, one.policy, one.spare)
                if place == taken
                else improvement_of(problem, one.policy, n_wedge=one.algorithm.n_wedge)
            )
            candidates.append(Candidate(one.algorithm, made, outlook.first, one.size, one.tree))
        return Choice(tuple(candidates), taken, judge)

    def simpler(
        self, problem: Problem, tried: Sequence[Tried], promised: Sequence[Outlook]
    ) -> list[Tried]:
        """Returns policies that people can follow, for candidates that promise enough."""
        best = max(promised)
        if not self.one_action or best.kept < 0 or best.first <= 0:
            return []
        found: list[Tried] = []
        for one, outlook in zip(tried, promised, strict=True):
            if outlook.kept < 0 or outlook.first < best.first / 2:
                continue
            alone = with_one_action(one.policy, problem.behavior)
            inside = problem.within(problem.counts.visits <= one.algorithm.n_wedge)
            trees = grow(inside, alone, self.columns, self.rules) if self.rules else []
            several = [one._replace(policy=alone, size=ONE_ACTION)] if ends(problem, alone) else []
            several += [
                one._replace(policy=tree.policy, size=tree.size, tree=tree.tree) for tree in trees
            ]
            known = [(each.policy, each.size) for each in found]
            found += [each for each in several if (each.policy, each.size) not in known]
        return found


def candidate(bounded: Bounded, algorithm: Constrained, spare: Mapping[str, float]) -> list[Tried]:
    """Returns the best policy that keeps its limits by the `spare` distances, if there is one."""
    try:
        policy = bounded.best(algorithm.rounds, spare)
    except (NeverEnds, NotConverged):
        return []
    return [] if policy is None else [Tried(algorithm, policy, spare)]


def bounds_of(certifier: Certifier, problem: Problem, tried: Sequence[Tried]) -> arrays.FloatArray:
    """Returns the bound of each signal for each policy [J, P], to choose by; −∞: none.

    Refused where the first signal has no bound for any policy.
    """
    policies = [one.policy for one in tried]
    judges = [(certifier, problem)]
    judges += [(certifier_for(certifier, signal), signal.problem) for signal in problem.signals]
    bounds = np.full((len(judges), len(policies)), -np.inf)
    for j, (judge, part) in enumerate(judges):
        (lower,) = judge.choosing_bounds([part], [policies], lambda _: policies)
        refused = [bound for bound in lower if isinstance(bound, CertificateRefused)]
        if j == 0 and refused and len(refused) == len(lower):
            raise refused[0]
        for p, bound in enumerate(lower):
            bounds[j, p] = -np.inf if isinstance(bound, CertificateRefused) else bound
    return bounds


class Outlook(NamedTuple):
    """The limits that a candidate should keep, and the gain that it should be shown to have."""

    kept: float  # minus how far the worst further signal is from its limit; 0 where all keep theirs
    first: float  # the bound of the first signal
    spare: float = 0.0  # how far the worst further signal is within its limit


def promise(bounded: Bounded, lower: arrays.FloatArray) -> Outlook:
    """Returns the outlook that bounds [J] give; distances are shares of the range of values."""
    spare = np.inf
    for limit, signal, bound in zip(
        bounded.limits[1:], bounded.problem.signals, lower[1:], strict=True
    ):
        low, high = signal.problem.value_bounds
        above = (bound - limit.least + limit.origin) / max(high - low, LEAST_RANGE)
        spare = min(spare, float(above))
    return Outlook(min(spare, 0.0), float(lower[0]), spare)


def best_promise(promised: Sequence[Outlook], sizes: Sequence[float]) -> int:
    """Returns the place of the best candidate; of nearly equal ones, the smallest.

    Nearly as good are candidates that keep all limits and have nine tenths of the largest bound. Of
    those with the same size, the one that is the most within its limits is the best.
    """
    best = max(promised)
    if best.kept < 0 or best.first <= 0:
        return promised.index(best)
    near = [
        i
        for i, outlook in enumerate(promised)
        if outlook.kept == 0 and outlook.first >= NEARLY * best.first
    ]
    return min(near, key=lambda i: (sizes[i], -promised[i].spare))


def with_one_action(policy: Policy, behavior: Policy) -> Policy:
    """Returns the policy with one action in every state that it changes.

    It is the one that it takes most of those that it takes more often than π_b; so what is closed
    is still not taken more often than by π_b. Of equal ones, the first.
    """
    offsets, state = policy.pairs.offsets, policy.pairs.state
    more = policy.probability > behavior.probability + ROUNDING
    chance = np.where(more, policy.probability, 0.0)
    most = np.flatnonzero(more & (chance == np.maximum.reduceat(chance, offsets[:-1])[state]))
    changed, first = np.unique(state[most], return_index=True)
    alone = np.where(np.isin(state, changed), 0.0, policy.probability)
    alone[most[first]] = 1.0
    return Policy(policy.pairs, alone)


def check_may_choose(name: str, certifier: Certifier) -> None:
    """Refuses a certifier by whose claims no policy may be chosen."""
    check_certifier(certifier)
    if not certifier.may_choose:
        choosing = " or ".join(kind.__name__ for kind in CERTIFIERS.values() if kind.may_choose)
        raise InvalidParameter(
            f"{name} is of type {type(certifier).__name__}, expected {choosing}: the claims of "
            "others hold for an N∧ that was fixed beforehand"
        )


def any_gain(lower: Sequence[Bound]) -> bool:
    """Tells whether one of the bounds promises a gain."""
    return any(not isinstance(bound, CertificateRefused) and bound > 0 for bound in lower)


Improving = (
    Algorithm | AutoNWedge | ConstrainedChoice | Limited
)  # whatever a pipeline may improve with


def best_of(algorithms: Sequence[Algorithm], lower: Sequence[Bound], sizes: Sequence[float]) -> int:
    """Returns the position of the largest bound; of equal ones, that of the largest N∧.

    If the largest bound is above 0, the smallest candidate that has nine tenths of it is taken; of
    those with one action in every state, and of others, the best.
    """
    refused = [bound for bound in lower if isinstance(bound, CertificateRefused)]
    if len(refused) == len(lower):
        raise refused[0]
    values = [-np.inf if isinstance(bound, CertificateRefused) else bound for bound in lower]
    careful = [n_wedge_of(one) or 0 for one in algorithms]
    best = max(values)
    near = [i for i, value in enumerate(values) if value >= (NEARLY * best if best > 0 else best)]
    smallest = min(sizes[i] for i in near) if best > 0 else MIXED
    return max((i for i in near if sizes[i] <= smallest), key=lambda i: (values[i], careful[i]))


# ---- N∧ as a setting ----------------------------------------------------------------------------


def n_wedge_setting(algorithm: Any) -> str | None:
    """Returns the setting that says N∧, where the algorithm, or the class of one, has it."""
    names = [field.name for field in dataclasses.fields(algorithm)]
    return next((name for name in N_WEDGE_SETTINGS if name in names), None)


def n_wedge_of(algorithm: Algorithm) -> int | None:
    """Returns N∧ as the algorithm was asked for it; None where it has none."""
    setting = n_wedge_setting(algorithm)
    return None if setting is None else int(getattr(algorithm, setting))


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


def read_grid(algorithm: Algorithm, grid: object) -> tuple[int, ...]:
    """Returns a grid as different whole numbers; refuses numbers that the algorithm refuses."""
    if not isinstance(grid, Sequence) or isinstance(grid, str) or len(grid) == 0:
        raise InvalidParameter(f"grid is {grid!r}, expected several numbers N∧")
    for n_wedge in grid:
        with_n_wedge(algorithm, n_wedge)  # says what is wrong with it
    candidates = tuple(int(n_wedge) for n_wedge in grid)
    if len(set(candidates)) < len(candidates):
        raise InvalidParameter(f"grid is {grid!r}, expected no N∧ twice")
    return candidates
