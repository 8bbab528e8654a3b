"""A rehearsal of a whole improvement, before anything is deployed: a stress test, with a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surestep._files import read_path, write_folder
from surestep.errors import InvalidParameter
from surestep.pipeline.evidence import gather
from surestep.pipeline.improving import Progress, find, prepared
from surestep.pipeline.recording import Rehearsed
from surestep.pipeline.terms import Terms
from surestep.rehearsal import Rehearsal
from surestep.rehearsal.rehearse import SIZES
from surestep.report.page import rehearsal_page


@dataclass(frozen=True, slots=True)
class RehearsedLog:
    """What the rehearsal of a log found, and the page that shows it."""

    rehearsal: Rehearsal
    page: str  # HTML

    def save(self, directory: str | Path) -> None:
        """Writes a new folder, whole or not at all."""
        contents = {
            "rehearsal.json": f"{self.rehearsal.to_json()}\n".encode(),
            "rehearsal.html": self.page.encode(),
        }
        write_folder(read_path(directory), {name: [each] for name, each in contents.items()})


def rehearse_log(
    source: object,
    terms: Terms,
    *,
    worlds: int,
    behavior: object = None,
    states: object = None,
    actions: object = None,
    sizes: Sequence[float] = SIZES,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> RehearsedLog:
    """Rehearses the improvement of a log under these terms; see `improve` for what may be given.

    `worlds` of each kind, with `sizes` times the data of the log.
    """
    if worlds < 1:
        raise InvalidParameter(f"worlds is {worlds}, expected at least 1 of each kind")
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    evidence = gather(source, behavior, states, actions)
    problem, algorithm = prepared(evidence, terms)
    how = Rehearsed(worlds, tuple(sizes), seed)
    findings = find(evidence, terms, problem, algorithm, how, tell, workers)
    assert findings.rehearsal is not None
    return RehearsedLog(findings.rehearsal, rehearsal_page(findings))
