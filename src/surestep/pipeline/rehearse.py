"""The verb `rehearse`: a stress test of an improvement before it is made, with a page."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from surestep.description import command, described
from surestep.errors import InvalidParameter
from surestep.io.logs.source import LogSource
from surestep.parallel import reach
from surestep.pipeline.evidence import CountsSource, gather
from surestep.pipeline.improve import draft_with, prepared
from surestep.pipeline.recording import Rehearsed
from surestep.pipeline.stress_test import ALONE, Effort, Progress, rehearsal_of
from surestep.pipeline.terms import Terms
from surestep.rehearsal import Rehearsal, rehearsal_from_json
from surestep.rehearsal.rehearse import SIZES, read_sizes
from surestep.report.result import rehearsal_page
from surestep.results.findings import Findings
from surestep.results.record import Record
from surestep.results.unfinished import REHEARSAL, RUN, begin, finish, read_file

PAGE = "rehearsal.html"


@dataclass(frozen=True, slots=True)
class RehearsedLog:
    """The stress test of a log, and the record of how it was made."""

    findings: Findings  # of the improvement that is tested
    rehearsal: Rehearsal
    record: Record

    @property
    def page(self) -> str:
        """Returns the stress test as a page (HTML)."""
        return rehearsal_page(self.findings)

    def files(self) -> dict[str, bytes]:
        """Renders the files of a saved stress test."""
        contents = {REHEARSAL: f"{self.rehearsal.to_json()}\n".encode(), PAGE: self.page.encode()}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        return contents | {RUN: self.record.to_json(digests).encode()}


def rehearse_log(
    log: LogSource | CountsSource,
    terms: Terms,
    *,
    worlds: int,
    sizes: Sequence[float] = SIZES,
    seed: int = 0,
    effort: Effort = ALONE,
    progress: Progress | None = None,
) -> RehearsedLog:
    """Runs a stress test of the improvement of a log under these terms.

    There are `worlds` of each kind, with `sizes` times the data of the log. Finished blocks are
    kept in the folder of the effort, where it has one, and the same call goes on from it.
    """
    if worlds < 1:
        raise InvalidParameter(f"worlds is {worlds}, expected at least 1 of each kind")
    sizes = read_sizes(sizes)
    reach(effort.engine, effort.address)
    folder = effort.folder
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    evidence = gather(log, terms=terms)
    method = msgspec.structs.replace(terms.method, worlds=worlds)
    terms = replace(terms, method=method, has_episodes=evidence.has_episodes)
    question = prepared(evidence, terms)
    if question.problem.signals:
        raise InvalidParameter(
            "the log has several signals, or unsafe states, and worlds have one signal; expected a "
            "description without [signals] and [unsafe]"
        )
    how = Rehearsed(worlds, sizes, seed)
    made = draft_with(evidence, terms, question, how, tell)

    def record(how: Rehearsed) -> Record:
        recorded = made.record(how)
        words = ["--sizes", ",".join(f"{size:g}" for size in sizes), "--seed", str(seed)]
        said = described(recorded.description)
        return replace(recorded, command=command("rehearse", said, *words, "-o", "OUT"))

    if folder is not None and begin(folder, {RUN: record(how).to_json({}).encode()}):
        rehearsal = rehearsal_from_json(read_file(folder, REHEARSAL).decode())
        return RehearsedLog(replace(made.findings, rehearsal=rehearsal), rehearsal, record(how))
    rehearsal, how = rehearsal_of(question, how, effort, tell, made.least_worlds)
    findings = replace(made.findings, rehearsal=rehearsal)
    rehearsed_log = RehearsedLog(findings, rehearsal, record(how))
    if folder is not None:
        finish(folder, rehearsed_log.files())
    return rehearsed_log
