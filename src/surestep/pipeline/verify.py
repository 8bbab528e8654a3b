"""Making a saved result again from its log, and holding both against each other.

All is made again as if with the versions and on the machine that the record names. What they are
here, and whether the files are the same, decides what a difference means: where nothing is
different, the same bytes are demanded. Elsewhere the last digits of a sum may differ: there equal
counts are demanded, a policy that differs at most between actions whose values tie, each number
within 1e-9 of itself, and the same words on the page. That is less than a confirmation, since
anybody can write another version into a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surestep._arrays import BoolArray
from surestep._files import read_path, read_whole
from surestep.errors import InvalidParameter, ResultMismatch
from surestep.io.counts.file import is_counts_file
from surestep.io.counts.labelled import LabelledCounts
from surestep.io.labels.behavior import BehaviorTable
from surestep.io.labels.pair_table import PairTable
from surestep.io.labels.vocabulary import Vocabulary
from surestep.io.logs.reading import USUAL, Reading
from surestep.io.logs.source import LogSource, open_log
from surestep.model import Policy
from surestep.pipeline.agreement import check_agreement, check_page, check_same_counts
from surestep.pipeline.brought import Names, check_extensions, versions_with
from surestep.pipeline.evidence import SEEN, CountsSource, Evidence, gather, open_source
from surestep.pipeline.improve import Progress, draft
from surestep.pipeline.recording import made_from_log, terms_of
from surestep.results.policy_files import policy_parquet_rows, policy_rows
from surestep.results.record import InputFile, Record, current_machine
from surestep.results.result import PARQUET, POLICY, Result, load, strangers
from surestep.results.unfinished import path_in
from surestep.terms import SOURCES


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of making a saved result again, where nothing refutes it."""

    level: Literal["same bytes", "same values"]
    why_not_bytes: str = ""  # what is not as the record says; empty where bytes were demanded
    taken_from_folder: tuple[str, ...] = ()  # what was not given again, hence not checked
    strangers: tuple[str, ...] = ()  # files in the folder that do not belong to the result
    page_compared: bool = True  # not where ties between actions fell otherwise

    @property
    def confirmed(self) -> bool:
        """Tells whether every byte in the folder has been made again."""
        return self.level == "same bytes" and not self.taken_from_folder and not self.strangers


def verify_result(
    directory: str | Path,
    log: object,
    *,
    behavior: object = None,
    states: object = None,
    actions: object = None,
    possible: object = None,
    allowed: object = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Makes a saved result again, and refuses it with the first difference.

    `behavior`, `states`, `actions`, `possible` and `allowed` are the files that were given when it
    was made. What is not given again is taken from the folder itself, and the answer says so.
    """
    folder = read_path(directory)
    saved = load(folder)
    source = open_again(saved.record, log, memory_limit)
    given = {"behavior": behavior, "states": states, "actions": actions}
    given |= {"possible": possible, "allowed": allowed}
    known, taken = completed(saved, given)
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    evidence = gather(source, **known)
    check_same_counts(saved.record, evidence)
    other = difference(saved.record, evidence, taken)
    told = tuple(name for name in saved.record.defaults if name == "behavior")
    evidence = replace(evidence, files=saved.record.inputs, defaults=told)
    limit = saved.record.parameters["time_limit"]
    again = draft(evidence, terms_of(saved.record), tell, time_limit=limit).like(saved.record)
    # A result that was saved before its stress test says so, and is held against the like.
    made = again.result if saved.awaits_stress_test else again.finished(tell)
    page_compared = check_agreement(saved, made, again.question.problem)
    changed = first_change(folder, made)
    if changed and not other:
        raise ResultMismatch(
            f"{folder / changed} has other bytes than when it is made again on this machine, "
            "although all values agree; expected the file as it was written"
        )
    if changed:
        check_parquet(saved, folder)
        if page_compared:
            check_page(saved.report, made.report)
    level: Literal["same bytes", "same values"] = "same values" if other else "same bytes"
    return Verification(level, other, taken, strangers(folder), page_compared or not changed)


def first_change(folder: Path, made: Result) -> str | None:
    """The first file with other bytes than the one made again; None where all are the same."""
    files = made.files().items()
    return next(
        (name for name, content in files if read_whole(path_in(folder, name)) != content), None
    )


def open_again(
    record: Record,
    log: object,
    memory_limit: str | None,
    bins: Sequence[str] | None = None,
    **changes: Any,
) -> LogSource | CountsSource:
    """Opens the log as the record says; or counts, where the result was made from counts.

    `bins` are the rules for another log, where those of the record would not mean the same, and
    `changes` what else is read otherwise.
    """
    if isinstance(log, LogSource | LabelledCounts):
        raise InvalidParameter(
            f"log is a {type(log).__name__}, expected files or a table, which are read with the "
            "columns and bins of the result"
        )
    check_extensions(record)
    files = isinstance(log, str | Path | list | tuple)
    paths = [log] if isinstance(log, str | Path) else log
    counts = files and all(map(is_counts_file, paths))  # type: ignore[call-overload]
    if counts == made_from_log(record.parameters):
        found, given = ("counts", "a log") if not counts else ("a log", "counts")
        raise ResultMismatch(
            f"the result was made from {found}, and {given} {'is' if not counts else 'are'} given; "
            f"expected {found}"
        )
    if counts:
        return open_source(paths, columns={}, reading=USUAL, memory_limit=memory_limit)  # type: ignore[arg-type]
    parameters = record.parameters
    reading = Reading.of(parameters)
    if bins is not None:
        reading = replace(reading, bins=bins)
    reading = replace(reading, **changes)
    return open_log(log, parameters["columns"], reading, memory_limit)


def check_parquet(saved: Result, folder: Path) -> None:
    """Refuses a policy.parquet that says something else than policy.csv."""
    if policy_parquet_rows(path_in(folder, PARQUET)) != policy_rows(saved.table):
        raise ResultMismatch(f"{folder / PARQUET} does not say the same as {folder / POLICY}")


def completed(saved: Result, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns what is given, and from the folder what is not; and the names of the latter."""
    parameters, table = saved.record.parameters, saved.table
    kind = parameters["behavior"]
    words, deciding = table.vocabulary, int((~table.quiet).sum())
    inside = {
        "behavior": table_of(saved) if kind == "table" else None,
        "states": list(words.states[:deciding]) if parameters["states"] == "listed" else None,
        "actions": list(words.actions) if parameters["actions"] == "listed" else None,
        "possible": pairs_in(saved, table.decided) if parameters["possible"] == "listed" else None,
        "allowed": None if table.allowed is None else pairs_in(saved, table.allowed),
    }
    known = {name: inside[name] if given[name] is None else given[name] for name in SOURCES}
    taken = tuple(name for name in SOURCES if given[name] is None and inside[name] is not None)
    if kind != "table" and "behavior" not in saved.record.defaults:
        known["behavior"] = kind if given["behavior"] is None else given["behavior"]
    if parameters["possible"] == SEEN and given["possible"] is None:
        known["possible"] = SEEN
    return known, taken


def table_of(saved: Result) -> BehaviorTable:
    """The behavior policy as it stands in the folder."""
    table = saved.table
    listed = pairs_in(saved, table.decided)
    policy = Policy(listed.pairs, table.behavior[table.decided])
    return BehaviorTable(POLICY, listed.vocabulary, policy, lifted=listed.lifted)


def pairs_in(saved: Result, marked: BoolArray) -> PairTable:
    """Returns those of the pairs [K] in the folder that are marked, with their own labels."""
    table = saved.table
    words = table.vocabulary
    states, state = np.unique(table.pairs.state[marked], return_inverse=True)
    actions, action = np.unique(table.pairs.action[marked], return_inverse=True)
    known = Vocabulary(
        words.state_columns,
        words.action_columns,
        tuple(words.states[s] for s in states),
        tuple(words.actions[a] for a in actions),
        words.binnings,
    )
    pairs = known.pairs_of(np.stack([state, action], axis=1))
    return PairTable(POLICY, known, pairs, saved.record.parameters["states"] == "observed")


def difference(record: Record, evidence: Evidence, taken: tuple[str, ...]) -> str:
    """Returns what here differs from the record, so that bytes may; empty where nothing does."""
    here = versions_with(Names.said_in(record.parameters))
    for name in dict.fromkeys([*here, *record.versions]):
        if record.versions.get(name) != here.get(name):
            return (
                f"it says that it was made with {name} {record.versions.get(name, 'unknown')}, and "
                f"this is {here.get(name, 'unknown')}"
            )
    if record.machine != current_machine():
        return "it says that it was made on another kind of machine"
    before = [each for each in record.inputs if each.role not in taken]
    now = [each for each in evidence.files if each.role not in taken]
    if [fingerprint(each) for each in before] != [fingerprint(each) for each in now]:
        return "the files given are not those it was made from, although they say the same"
    for was, given in zip(before, now, strict=True):
        if was.name != given.name:
            return (
                f"it says that it was made from {was.name!r}, and the file given is {given.name!r}"
            )
    return ""


def fingerprint(file: InputFile) -> tuple[str, int, str]:
    """Returns what does not change when a file is renamed."""
    return file.role, file.size, file.sha256
