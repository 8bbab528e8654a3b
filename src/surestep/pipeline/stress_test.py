"""Plans and runs the stress test of an improvement; continues one that was interrupted.

By default there are ten worlds of each kind, or as many as δ needs. Their size follows from the
problem alone, never from a clock, so that it can be repeated. With W worlds, N decisions in the log
(where whole episodes are looked at) and S situations:

- W N ≤ 3,000 and W S ≤ 300: at all sizes of the data;
- W N ≤ 20,000 and W S ≤ 1,000: with as much data as the log has;
- beyond: only worlds in which all actions are alike, and only where something is believed. They say
  how often a belief is wrong where nothing can be gained.
"""

import json
from pathlib import Path
from typing import NamedTuple

from surestep._progress import Progress
from surestep.algorithms.registry import needs_log
from surestep.certificates import Certifier
from surestep.certificates.episodes import needs_episodes
from surestep.certificates.registry import only_believed
from surestep.model import Problem
from surestep.parallel import available_cores
from surestep.pipeline.recording import Rehearsed, versions_with
from surestep.pipeline.terms import Improving, Terms
from surestep.rehearsal import Rehearsal, rehearse
from surestep.rehearsal.rehearse import SIZES
from surestep.results.groups import Group
from surestep.results.record import current_machine
from surestep.results.unfinished import STRESS_TEST

USUAL_WORLDS = 10  # of each kind
OWN_SIZE = (1.0,)  # the data of the log, and no more
# Decisions and situations, times the worlds of a kind, up to which worlds are gone through:
# about a minute of one core.
MOST_AT_ALL_SIZES = (3_000, 300)
MOST_AT_OWN_SIZE = (20_000, 1_000)


class Assignment(NamedTuple):
    """The problem, the parts of its log, and who chooses and judges the policy."""

    problem: Problem
    training: Problem  # the part that may choose the policy: all where nothing is held out
    judging: Problem | None  # the rest, if anything is held out
    algorithm: Improving
    certifiers: tuple[Certifier, ...]  # the first is the main one
    belief: Certifier | None  # makes the belief, if the first does not
    groups: tuple[Group, ...] = ()

    @property
    def rehearsed(self) -> list[Certifier]:
        """Returns the certifiers to rehearse: the first, and the one for the belief if any."""
        return [self.certifiers[0], *([] if self.belief is None else [self.belief])]

    def fits(self, worlds: int, most: tuple[int, int]) -> bool:
        """Tells whether this number of worlds needs at most this many decisions and situations."""
        decisions, situations = most
        if worlds * self.problem.num_states > situations:
            return False
        whole = needs_log(self.algorithm) or any(map(needs_episodes, self.rehearsed))
        return not whole or worlds * int(self.problem.counts.visits.sum()) <= decisions


def planned(terms: Terms, question: Assignment) -> Rehearsed:
    """Plans the stress test: as the user asked, or by default as large as the problem allows."""
    if obstacle := terms.asked[0].why_not_rehearsed:
        return Rehearsed(0, why_none=obstacle)
    if terms.method.worlds == 0:
        return Rehearsed(0)
    if question.problem.log is not None and question.problem.episodes is None:
        return Rehearsed(
            0, why_none="worlds need whole episodes, and only entries of the log are given"
        )
    if question.problem.signals:
        return Rehearsed(0, why_none="worlds have one signal, and the claim is of several")

    usual = max(USUAL_WORLDS, terms.least_worlds)
    sizes = SIZES if question.fits(usual, MOST_AT_ALL_SIZES) else OWN_SIZE
    worlds = terms.method.worlds
    if worlds is None:
        worlds = usual if question.fits(usual, MOST_AT_OWN_SIZE) else 0
    if worlds > 0:
        return Rehearsed(worlds, sizes)
    believes = any(only_believed(certifier.name) for certifier in question.rehearsed)
    return Rehearsed(
        0, OWN_SIZE if believes else (), why_none="the log is too large for one by default"
    )


class Effort(NamedTuple):
    """The processes and the time of a stress test, and the folder of its finished parts.

    Parameters
    ----------
    workers : int or None, default 1
        Processes of this machine; None: one for few worlds, else all cores.
    engine : {"local", "ray"}
        Work here, or on a Ray cluster.
    address : str, optional
        The Ray cluster, such as "auto" or "head:6379".
    time_limit : float, optional
        Seconds after which it ends.
    folder : Path, optional
        Finished parts are kept there, and not made again.

    Examples
    --------
    >>> from surestep.pipeline import Effort
    >>> Effort(workers=4, time_limit=60).cores(worlds=100)
    4
    """

    workers: int | None = 1
    engine: str = "local"
    address: str | None = None
    time_limit: float | None = None
    folder: Path | None = None

    def cores(self, worlds: int) -> int:
        """Counts the processes to use: one for few worlds, since its kernels use all cores.

        Parameters
        ----------
        worlds : int
            The worlds of each kind.

        Returns
        -------
        int
            The number of processes.
        """
        few = self.engine == "local" and worlds <= USUAL_WORLDS
        return self.workers or (1 if few else available_cores(self.engine))


ALONE = Effort()


def rehearsal_of(
    question: Assignment, how: Rehearsed, effort: Effort, progress: Progress, least_worlds: int
) -> tuple[Rehearsal, Rehearsed]:
    """Runs the stress test of the whole pipeline, choice of N∧ included; also returns its size.

    A time limit ends it no earlier than after `least_worlds` of each kind, or after all of them.
    """
    folder = effort.folder
    versions = versions_with(
        question.algorithm.name, (certifier.name for certifier in question.rehearsed)
    )
    rehearsal = rehearse(
        question.problem,
        question.algorithm,
        question.certifiers[0],
        belief=question.belief,
        rng=how.seed,
        worlds=how.worlds,
        sizes=how.sizes,
        workers=effort.cores(how.worlds),
        engine=effort.engine,
        address=effort.address,
        progress=lambda done, total: progress("stress test", done, total),
        folder=None if folder is None else folder / STRESS_TEST,
        made_with=json.dumps([versions, current_machine()]),
        time_limit=effort.time_limit,
        least_worlds=min(least_worlds, max(how.worlds, 1)),
    )
    if rehearsal.worlds < how.worlds:
        how = how._replace(worlds=rehearsal.worlds, time_limit=effort.time_limit)
    return rehearsal, how
