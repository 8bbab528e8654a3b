"""Runs the stress test of an improvement before it is made, with a page (`rehearse`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surestep._progress import Progress, telling
from surestep.description import command, described, given_as
from surestep.errors import InvalidParameter
from surestep.parallel import reach
from surestep.pipeline.evidence import gather, open_source
from surestep.pipeline.improve import Draft, draft_with, prepared
from surestep.pipeline.recording import Rehearsed, said_of
from surestep.pipeline.stress_test import ALONE, Effort, rehearsal_of
from surestep.pipeline.terms import Terms
from surestep.rehearsal import Rehearsal, rehearsal_from_json
from surestep.rehearsal.rehearse import SIZES, read_sizes
from surestep.report.result import rehearsal_page
from surestep.results.findings import Findings
from surestep.results.record import Record, digests_of
from surestep.results.unfinished import (
    REHEARSAL,
    RUN,
    begin,
    check_can_begin,
    finish,
    read_file,
)


@dataclass(frozen=True, slots=True)
class RehearsedLog:
    """The stress test of a log, and the record of how it was made.

    Parameters
    ----------
    findings : Findings
        What the page shows of the improvement that is tested.
    rehearsal : Rehearsal
        The outcomes in each world.
    record : Record
        The settings it was made with.

    Examples
    --------
    >>> from surestep.pipeline import rehearse_log
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> rehearsed = rehearse_log(table, {"discount": 0}, worlds=2, sizes=(1.0,))
    >>> rehearsed.page[:15]
    '<!DOCTYPE html>'
    """

    findings: Findings
    rehearsal: Rehearsal
    record: Record

    @property
    def page(self) -> str:
        """Returns the stress test as a page (HTML)."""
        return rehearsal_page(self.findings)

    def files(self) -> dict[str, bytes]:
        """Renders the files of a saved stress test.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """
        contents = {
            REHEARSAL: f"{self.rehearsal.to_json()}\n".encode(),
            "rehearsal.html": self.page.encode(),
        }
        return contents | {RUN: self.record.to_json(digests_of(contents)).encode()}


def rehearse_log(
    source: object,
    terms: Mapping[str, Any] | None = None,
    *,
    worlds: int,
    sizes: Sequence[float] = SIZES,
    seed: int = 0,
    effort: Effort = ALONE,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> RehearsedLog:
    """Runs a stress test of the improvement of a log, in worlds whose truth is known.

    Parameters
    ----------
    source : str, path, LogSource, table or LabelledCounts
        A description (a path that ends in .toml), or anything that `read_log` takes; or counts.
    terms : mapping, optional
        Arguments of `improve` in words and numbers, such as {"discount": 0.9}.
    worlds : int, optional
        Worlds of each kind in the stress test; 0: none. Default: 10, or what δ needs, as far as
        that takes about a quarter of a minute of one core; beyond, only those that say how often
        beliefs are wrong.
    sizes : sequence of float
        The amounts of data that are collected in a world, in multiples of the log.
    seed : int, default 0
        The seed of random numbers.
    effort : Effort, optional
        The processes and the time that it may take. Finished parts are kept in its folder, where
        it has one, and the same call goes on from them.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    RehearsedLog
        The rehearsal, its page and its record.

    Raises
    ------
    InvalidParameter
        The log has several signals, or a size or the number of worlds is none.

    Examples
    --------
    >>> from surestep.pipeline import rehearse_log
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> terms = {"discount": 0, "ending": (0, 1)}
    >>> rehearsed = rehearse_log(table, terms, worlds=2, sizes=(1.0,))
    >>> rehearsed.rehearsal.worlds
    2
    """
    if worlds < 1:
        raise InvalidParameter(f"worlds is {worlds}, expected at least 1 of each kind")
    sizes = read_sizes(sizes)
    reach(effort.engine, effort.address)
    folder = effort.folder
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        description, frame = given_as(source, **(terms or {}))
        asked = Terms.of(description, worlds=worlds)
        if folder is not None:
            check_can_begin(folder, said_of(description, asked))
        evidence = gather(open_source(description, frame, memory_limit), asked)
        question = prepared(evidence)
        if question.problem.signals:
            raise InvalidParameter(
                "the log has several signals, or unsafe states, and worlds have one signal; "
                "expected a description without [signals] and [unsafe]"
            )
        how = Rehearsed(worlds, sizes, seed)
        made = draft_with(evidence, question, how, tell)
        before = {RUN: record_of_rehearsal(made, how).to_json({}).encode()}
        done = folder is not None and begin(folder, before)
        if folder is not None and done:
            rehearsal = rehearsal_from_json(read_file(folder, REHEARSAL).decode())
        else:
            rehearsal, how = rehearsal_of(question, how, effort, tell, made.least_worlds)
    rehearsed = RehearsedLog(
        replace(made.findings, rehearsal=rehearsal), rehearsal, record_of_rehearsal(made, how)
    )
    if folder is not None and not done:
        finish(folder, rehearsed.files())
    return rehearsed


def record_of_rehearsal(made: Draft, how: Rehearsed) -> Record:
    """Returns the record of a rehearsal: that of the improvement, with another command."""
    record = made.record(how)
    sizes = ",".join(f"{size:g}" for size in how.sizes)
    words = ("--sizes", sizes, "--seed", str(how.seed), "-o", "OUT")
    return replace(record, command=command("rehearse", described(record.description), *words))
