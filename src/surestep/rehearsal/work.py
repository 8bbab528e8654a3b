"""The work of a rehearsal: a number of steps that follows from the problem alone.

A step takes about a nanosecond on one core. What one world takes has three parts. To build a truth
of T transitions, and to evaluate policies in it:

    700 · T steps.

What every data set takes, however large it is: 5·10⁶ to begin with; 1200 · T for each policy among
which one is chosen, by T observed transitions; 10⁷, and 2·10⁶ for each of these policies, where
whole episodes are looked at; 2.5·10⁵ for each pair of a linear program; and the draws of
posteriors. One with n draws of models with C transitions and S states, which judges p policies and
π_b, takes under each of its priors

    n · (80 · C + (p + 1) · E) steps,  E = 0.6 · S³/3 up to 128 states, 50 · C above.

One without draws solves some 20 systems of S equations for every policy, and goes over the observed
transitions as often as 100 draws would. And what grows with the N steps of the data, where whole
episodes are looked at: to record them and to count them in several ways; and where they are
stitched, to roll out policies in some runs, few of which read every step:

    1000 · N + 2 · N · runs steps.

A world of each kind is gone through at every size, and once more where it calibrates; and there are
ten, or as many as of a kind, in which all actions are alike. `benchmarks/certificates.py` compares
the seconds that this says with those it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.contract import Improver
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.bets import LAST_REHEARSALS, REHEARSALS
from surestep.certificates.drawn import SMALL
from surestep.certificates.episodes import needs_episodes
from surestep.certificates.posterior import Posterior, fewest_draws, with_few_draws
from surestep.certificates.stacks import horizons
from surestep.certificates.stitched import FEW_SERIES
from surestep.choosing_n_wedge import AutoNWedge
from surestep.model.problem import Problem
from surestep.rehearsal.worlds import (
    ActionsAlike,
    Completed,
    DrawnFromPosterior,
    WorldKind,
    default_family,
    least_of_luck,
)

STEPS_A_SECOND = 1e9  # of one core
TO_BUILD = 700.0  # steps for one transition of a truth
TO_DRAW = 80.0  # steps for one transition of a drawn model
TO_ELIMINATE = 0.6  # steps for one product of an elimination
TO_ITERATE = 50.0  # steps for one transition, over all iterations
TO_PASS = 100.0  # steps for one observed transition, in a pass of a certificate without draws
PASSES = 200  # of such a certificate
SYSTEMS = 20  # that it solves for every policy
TO_RECORD = 1000.0  # steps for one step of the data
TO_STITCH = 2.0  # steps for one step of the data, in a run that may read it
SIDES = 3  # both policies at once, or either alone
TO_PLAN = 1200.0  # steps for one observed transition, over all iterations
TO_PROGRAM = 2.5e5  # steps for one pair, in a linear program
TO_SET_UP = 5e6  # steps for a world at a size, however small
TO_SET_UP_EPISODES = 1e7  # more where whole episodes are looked at
TO_SET_UP_A_PLAN = 2e6  # for each policy then: these are not planned together


class Share(NamedTuple):
    """The steps of one data set: those that it takes in any case, and those of data of size 1."""

    fixed: float
    of_data: float

    def at(self, size: float) -> float:
        """Returns the steps of a data set of some size."""
        return self.fixed + size * self.of_data


class Work(NamedTuple):
    """The work of the parts of a rehearsal."""

    data_set: Share  # of a world
    built: tuple[float, ...]  # the truth of a world of each kind
    calibrating: tuple[float, ...]  # the same, of the kinds that calibrate
    lucky: float  # the truth of a world in which all actions are alike
    least_lucky: int  # the fewest of these

    def of(self, worlds: int, sizes: Sequence[float]) -> float:
        """Returns the steps of a rehearsal in so many worlds of each kind, at these sizes."""
        at_sizes, own = sum(map(self.data_set.at, sizes)), self.data_set.at(1.0)
        rounds = sum(self.built) + len(self.built) * at_sizes
        rounds += sum(self.calibrating) + len(self.calibrating) * own
        return worlds * rounds + max(worlds, self.least_lucky) * (self.lucky + own)


def work_in(problem: Problem, algorithm: Improver, certifiers: Sequence[Certifier]) -> Work:
    """Returns what a rehearsal takes; the first certifier is the one that is rehearsed."""
    first = certifiers[0]
    kinds = default_family(problem, first)
    again = [kind for kind in kinds if kind.calibrates and isinstance(first, Posterior)]

    def building(kinds: Sequence[WorldKind]) -> tuple[float, ...]:
        return tuple(TO_BUILD * size_of_truth(problem, kind) for kind in kinds)

    (lucky,) = building([ActionsAlike()])
    share = share_of(problem, algorithm, certifiers)
    return Work(share, building(kinds), building(again), lucky, least_of_luck(first.delta))


def share_of(problem: Problem, algorithm: Improver, certifiers: Sequence[Certifier]) -> Share:
    """Returns what a data set takes: to plan, to choose among the plans, and to claim."""
    policies, first = policies_of(problem, algorithm), certifiers[0]
    whole = needs_log(algorithm) or any(map(needs_episodes, certifiers))
    planned = policies * TO_PLAN * problem.counts.successor.size
    if whole:
        planned += TO_SET_UP_EPISODES + policies * TO_SET_UP_A_PLAN
    judged: list[Share] = []
    if isinstance(algorithm, AutoNWedge):
        planned += len(algorithm.beside) * TO_PROGRAM * problem.counts.pairs.num_pairs
        judges = [
            judge for judge in (algorithm.certifier, algorithm.otherwise) if judge is not None
        ]
        judged += [judging(problem, judge, policies, fewest_draws(judge.delta)) for judge in judges]
    for certifier in certifiers:
        draws = fewest_draws(certifier.delta)
        if isinstance(certifier, Posterior) and certifier is first:
            draws = with_few_draws(certifier).draws
        judged.append(judging(problem, certifier, 1, draws))
    recorded = TO_RECORD * float(problem.counts.visits.sum()) if whole else 0.0
    return Share(
        TO_SET_UP + planned + sum(share.fixed for share in judged),
        recorded + sum(share.of_data for share in judged),
    )


def judging(problem: Problem, judge: Certifier, policies: int, draws: int) -> Share:
    """Returns what it takes to judge so many policies, with so many draws if there are any."""
    size = problem.num_states
    eliminating = TO_ELIMINATE * size**3 / 3
    if isinstance(judge, Posterior):
        cells = judge.cells(problem, problem.behavior.probability > 0)
        evaluating = len(cells) * eliminating if size <= SMALL else TO_ITERATE * sum(cells)
        return Share(draws * (TO_DRAW * sum(cells) + (policies + 1) * evaluating), 0.0)
    if judge.needs.episodes:
        planning = LAST_REHEARSALS if policies == 1 else policies * REHEARSALS
        runs = SIDES * len(horizons(problem.single_discount)) * planning + FEW_SERIES
        return Share(0.0, TO_STITCH * runs * float(problem.counts.visits.sum()))
    passing = PASSES * TO_PASS * problem.counts.successor.size
    return Share(passing + SYSTEMS * policies * eliminating, 0.0)


def size_of_truth(problem: Problem, kind: WorldKind) -> float:
    """Returns about how many transitions a world of that kind has."""
    counts = problem.counts
    observed, unseen = counts.successor.size, problem.unseen_pairs()
    deciding = ~counts.terminal[counts.pairs.state]
    if isinstance(kind, ActionsAlike):
        size = np.int64(problem.num_states)
        keys = counts.pairs.state[arrays.run_owners(counts.offsets)] * size + counts.successor
        pooled = np.bincount(np.unique(keys) // size, minlength=problem.num_states)
        return float(pooled[counts.pairs.state].sum())
    if isinstance(kind, Completed) and kind.fill == "uniform":
        return observed + float(problem.support_sizes()[unseen].sum())
    if isinstance(kind, DrawnFromPosterior):
        judge = Posterior(prior=kind.prior)
        if kind.weight is not None:
            judge = replace(judge, prior_weight=kind.weight)
        return float(sum(judge.cells(problem, deciding)))
    return float(observed + np.count_nonzero(unseen))


def policies_of(problem: Problem, algorithm: Improver) -> int:
    """Among how many policies N∧ is chosen."""
    if not isinstance(algorithm, AutoNWedge):
        return 1
    algorithms = algorithm.algorithms(int(problem.counts.visits.max()))
    return len(algorithms) * (2 if algorithm.one_action else 1)
