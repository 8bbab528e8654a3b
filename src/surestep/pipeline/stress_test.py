"""The stress test of an improvement: how large it is, and how it goes on where it stopped.

Its size follows from the problem alone, never from a clock, so that it can be repeated. What a
rehearsal takes is counted in steps (`surestep.rehearsal.work`). Up to `MOST_WORK` of them, ten
worlds of each kind are gone through, or as many as δ needs, at all sizes. Beyond, with the data as
large as the log only, and in as many worlds as that allows. Where these are too few for δ, only
those in which all actions are alike are gone through, unless somebody asks for the others: they
say how often a belief is wrong where nothing can be gained, and whoever holds one has to know that
at every size. They take about as long as the beliefs that are held themselves: each has a few
dozen draws, where a belief has a thousand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._progress import Progress
from surestep.certificates import Certifier, Posterior
from surestep.certificates.registry import only_believed
from surestep.choosing_n_wedge import Method
from surestep.model import Problem
from surestep.model.known import Known
from surestep.model.numbering import Numbering
from surestep.parallel import usual_workers
from surestep.pipeline.recording import Rehearsed, versions_with
from surestep.pipeline.terms import Terms
from surestep.rehearsal import KeptBlocks, Rehearsal, TimeLimit, rehearse
from surestep.rehearsal.rehearse import SIZES
from surestep.rehearsal.work import STEPS_A_SECOND, work_in
from surestep.results.findings import DECLINED, NoRehearsal
from surestep.results.record import current_machine
from surestep.results.unfinished import STRESS_TEST

USUAL_WORLDS = 10  # of each kind
MOST_WORK = 15e9  # steps by default: about a quarter of a minute of one core
OWN_SIZE = (1.0,)  # the data of the log, and no more


class Assignment(NamedTuple):
    """The problem, the parts of its log, and who chooses and judges the policy."""

    problem: Problem
    training: Problem  # the part that may choose the policy: all where nothing is held out
    judging: Problem | None  # the rest, if anything is held out
    algorithm: Method
    told: Known  # what the certifiers were told
    certifiers: tuple[Certifier, ...]  # the result stands by the first
    belief: Posterior | None  # what is only believed, if that is not the first itself
    numbering: Numbering | None = None  # of the problem, by first appearance

    @property
    def rehearsed(self) -> list[Certifier]:
        """Returns those that are rehearsed."""
        return [self.certifiers[0], *([] if self.belief is None else [self.belief])]

    @property
    def believes(self) -> bool:
        """Tells whether something is only believed."""
        return any(only_believed(certifier.name) for certifier in self.rehearsed)


def planned(terms: Terms, question: Assignment) -> Rehearsed:
    """Plans the rehearsal of the whole: as asked for, or by default as far as is affordable."""
    if obstacle := terms.asked[0].why_not_rehearsed:
        return Rehearsed(0, why_none=NoRehearsal("impossible", obstacle=obstacle))
    if terms.method.worlds == 0:
        return Rehearsed(0, why_none=DECLINED)
    if question.problem.signals:
        obstacle = "worlds have one signal, and the claim is of several"
        return Rehearsed(0, why_none=NoRehearsal("impossible", obstacle=obstacle))

    work = work_in(question.problem, question.algorithm, question.rehearsed)

    def seconds(worlds: int, sizes: tuple[float, ...]) -> float:
        return work.of(worlds, sizes) / STEPS_A_SECOND

    most, least = MOST_WORK / STEPS_A_SECOND, terms.least_worlds
    usual = max(USUAL_WORLDS, least)
    sizes = SIZES if seconds(usual, SIZES) <= most else OWN_SIZE
    worlds = terms.method.worlds
    if worlds is None:
        affordable = (many for many in range(usual, least - 1, -1) if seconds(many, sizes) <= most)
        worlds = next(affordable, 0)
    if worlds > 0:
        return Rehearsed(worlds, sizes, seconds=seconds(worlds, sizes))
    of_luck = seconds(0, OWN_SIZE)
    why = NoRehearsal("too much work", seconds(usual, OWN_SIZE) - of_luck)
    if not question.believes:
        return Rehearsed(0, why_none=why)
    return Rehearsed(0, OWN_SIZE, seconds=of_luck, why_none=why)


class Effort(NamedTuple):
    """The processes and the time of a stress test, and the folder of its finished parts.

    Parameters
    ----------
    workers : int or None, default 1
        Processes of this machine; None: as many as pay.
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
    >>> Effort(workers=4, time_limit=60).cores(seconds=300.0)
    4
    """

    workers: int | None = 1
    engine: str = "local"
    address: str | None = None
    time_limit: float | None = None
    folder: Path | None = None

    def cores(self, seconds: float) -> int:
        """Counts the processes for work that takes one core so many seconds.

        Parameters
        ----------
        seconds : float
            The time that the work would take one core.

        Returns
        -------
        int
            The number of processes.
        """
        return self.workers or usual_workers(self.engine, seconds)


ALONE = Effort()


def rehearsal_of(
    question: Assignment, how: Rehearsed, effort: Effort, progress: Progress, least_worlds: int
) -> tuple[Rehearsal, Rehearsed]:
    """The stress test of the whole pipeline, choice of N∧ included, and how large it became.

    Of what a time limit ends, there are `least_worlds` of each kind at least.
    """
    folder, limit = effort.folder, effort.time_limit
    versions = versions_with(question.algorithm.name, (each.name for each in question.rehearsed))
    made_with = json.dumps([versions, current_machine()])
    rehearsal = rehearse(
        question.problem,
        question.algorithm,
        question.certifiers[0],
        belief=question.belief,
        rng=np.random.default_rng(how.seed),
        worlds=how.worlds,
        sizes=how.sizes,
        workers=effort.cores(how.seconds),
        engine=effort.engine,
        address=effort.address,
        progress=lambda done, total: progress("stress test", done, total),
        kept=None if folder is None else KeptBlocks(folder / STRESS_TEST, made_with),
        time_limit=None if limit is None else TimeLimit(limit, least_worlds),
    )
    if rehearsal.worlds < how.worlds:
        how = how._replace(worlds=rehearsal.worlds, time_limit=limit)
    return rehearsal, how
