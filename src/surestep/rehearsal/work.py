"""How much work a rehearsal is: a number of steps that follows from the problem alone.

A step takes about a nanosecond on one core. With n draws, P policies among which N∧ is chosen, and
C transitions in a drawn model of S states, one world at one size takes about

    5·10⁶ + n · (2 · 100 · C + (P + 3) · E) steps,  E = 0.6 · S³/3 up to 128 states, 20 · C above:

models are drawn twice, to choose and to claim, and every policy is evaluated in each, π_b too.
Certificates without draws solve some 20 systems of S equations for every policy, and go over the T
observed transitions as often as 100 draws would:

    5·10⁶ + 100 · 2 · 100 · T + 20 · (P + 3) · 0.6 · S³/3 steps.

Certificates of whole episodes put N steps of a log together in 16 runs for every policy, and in 40
to claim, after the episodes were drawn:

    5·10⁷ + 30 · (16 · P + 40) · N steps,  and 20 · 60 · T for every policy that is planned.

A world of each kind is gone through at every size, and once more where it calibrates; and there are
ten, or as many as of a kind, in which all actions are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from surestep._arrays import BoolArray
from surestep.algorithms import Improver
from surestep.certificates import Certifier, Posterior
from surestep.certificates.drawn import SMALL, expected_cells
from surestep.certificates.posterior import model_draws, with_few_draws
from surestep.choosing import AutoNWedge
from surestep.errors import CertificateRefused
from surestep.model.problem import Problem
from surestep.rehearsal.worlds import default_family, least_of_luck

STEPS_A_SECOND = 1e9  # of one core
TO_DRAW = 100.0  # steps for one transition of a drawn model
TO_ELIMINATE = 0.6  # steps for one product of an elimination
TO_ITERATE = 20.0  # steps for one transition, over all iterations
AS_MANY_AS_DRAWS = 100  # passes of a certificate without draws
SYSTEMS = 20  # that it solves for every policy
RUNS_TO_CHOOSE, RUNS_TO_CLAIM = 16, 40  # through the steps of a log
TO_STITCH = 30.0  # steps for one step of the log
ITERATIONS = 60.0
TO_SET_UP_EPISODES = 5e7
TO_SET_UP = 5e6  # steps for a world at a size, however small


def work_of(
    problem: Problem,
    algorithm: Improver,
    certifiers: Sequence[Certifier],
    worlds: int,
    sizes: Sequence[float],
) -> float:
    """The steps of a rehearsal in `worlds` worlds of each kind of the default family.

    The first certifier is the one that is rehearsed.
    """
    certifier = certifiers[0]
    kinds = default_family(problem, certifier)
    calibrating = sum(kind.calibrates for kind in kinds) if isinstance(certifier, Posterior) else 0
    passes = worlds * (calibrating + len(kinds) * sum(sizes)) + max(
        worlds, least_of_luck(certifier.delta)
    )
    return passes * sum(work_of_world(problem, algorithm, each) for each in certifiers)


def work_of_world(problem: Problem, algorithm: Improver, certifier: Certifier) -> float:
    """The steps of one world at one size."""
    size, policies = problem.num_states, policies_of(problem, algorithm) + 3
    eliminating = TO_ELIMINATE * size**3 / 3
    if certifier.needs.episodes:
        runs = RUNS_TO_CHOOSE * (policies - 3) + RUNS_TO_CLAIM
        steps = TO_STITCH * runs * float(problem.counts.visits.sum())
        plans = policies * TO_ITERATE * ITERATIONS * problem.counts.successor.size
        return TO_SET_UP_EPISODES + steps + plans
    if not isinstance(certifier, Posterior):
        drawing = AS_MANY_AS_DRAWS * 2 * TO_DRAW * problem.counts.successor.size
        return TO_SET_UP + drawing + SYSTEMS * policies * eliminating
    cells, draws = cells_of(problem, certifier), with_few_draws(certifier).draws
    evaluating = len(cells) * eliminating if size <= SMALL else TO_ITERATE * sum(cells)
    return TO_SET_UP + draws * (2 * TO_DRAW * sum(cells) + policies * evaluating)


def cells_of(problem: Problem, certifier: Posterior) -> list[int]:
    """Returns how many transitions a model has that is drawn under each prior."""
    counts = problem.counts
    used: BoolArray = ~counts.terminal[counts.pairs.state]
    try:
        return [
            expected_cells(model_draws(problem, certifier, prior), used)
            for prior in certifier.priors_for(problem)
        ]
    except CertificateRefused:  # then nothing is drawn
        return [int(counts.successor.size)]


def policies_of(problem: Problem, algorithm: Improver) -> int:
    """Among how many policies N∧ is chosen."""
    if not isinstance(algorithm, AutoNWedge):
        return 1
    return len(algorithm.grid_for(int(problem.counts.visits.max())))
