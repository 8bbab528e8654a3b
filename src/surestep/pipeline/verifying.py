"""Making a saved result again from its log, and holding both against each other.

On the machine and with the versions that made it, the same bytes are demanded. Elsewhere the last
digits of a sum may differ: there equal counts are demanded, a policy that differs at most between
actions whose values tie, and values within 1e-9 of the largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from surestep._files import read_path, read_whole
from surestep.errors import InvalidParameter, ResultMismatch
from surestep.io.behavior_table import BehaviorTable
from surestep.io.counts_file import is_counts_file
from surestep.io.labelled_counts import LabelledCounts
from surestep.io.log_source import LogSource, read_log
from surestep.io.vocabulary import Vocabulary
from surestep.model import Policy
from surestep.pipeline.agreement import check_agreement, check_same_counts
from surestep.pipeline.command import made_from_log
from surestep.pipeline.evidence import CountsSource, Evidence, gather, open_source
from surestep.pipeline.improving import Progress, make_result
from surestep.pipeline.terms import terms_of
from surestep.results.policy_files import policy_parquet_rows, policy_rows
from surestep.results.record import InputFile, Record, current_machine, current_versions
from surestep.results.result import PARQUET, POLICY, Result, load

GIVEN_AGAIN = ("behavior", "states", "actions")


@dataclass(frozen=True, slots=True)
class Verification:
    """What was confirmed about a saved result."""

    level: Literal["same bytes", "same values"]
    why_not_bytes: str  # empty where bytes were compared
    taken_from_folder: tuple[str, ...]  # what was not given again, hence not checked


def verify_result(
    directory: str | Path,
    log: object,
    *,
    behavior: object = None,
    states: object = None,
    actions: object = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Confirms a saved result, or refuses it with the first difference.

    `behavior`, `states` and `actions` are the files that were given when it was made. What is not
    given again is taken from the folder itself, and the answer says so.
    """
    folder = read_path(directory)
    saved = load(folder)
    source = open_again(saved.record, log, memory_limit)
    given = {"behavior": behavior, "states": states, "actions": actions}
    known, taken = completed(saved, given)
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    evidence = gather(source, **known)
    check_same_counts(saved.record, evidence)
    other = difference(saved.record, evidence, taken)
    told = tuple(name for name in saved.record.defaults if name == "behavior")
    evidence = replace(evidence, files=saved.record.inputs, defaults=told)
    made = make_result(evidence, terms_of(saved.record), tell)
    check_agreement(saved, made)
    if other:
        check_parquet(saved, folder)
    else:
        for name, content in made.result.files().items():
            if read_whole(folder / name) != content:
                raise ResultMismatch(
                    f"{folder / name} has other bytes than when it is made again on this machine, "
                    "although all values agree; expected the file as it was written"
                )
    return Verification("same values" if other else "same bytes", other, taken)


def open_again(record: Record, log: object, memory_limit: str | None) -> LogSource | CountsSource:
    """The log, read as the record says; or counts, where the result was made from counts."""
    if isinstance(log, LogSource | LabelledCounts):
        raise InvalidParameter(
            f"log is a {type(log).__name__}, expected files or a table, which are read with the "
            "columns and bins of the result"
        )
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
        return open_source(paths, columns={}, bins=(), memory_limit=memory_limit)  # type: ignore[arg-type]
    columns, bins = record.parameters["columns"], record.parameters["bins"]
    return read_log(log, columns=columns, bins=bins, memory_limit=memory_limit)


def check_parquet(saved: Result, folder: Path) -> None:
    """Refuses a policy.parquet that says something else than policy.csv."""
    if policy_parquet_rows(folder / PARQUET) != policy_rows(saved.table):
        raise ResultMismatch(f"{folder / PARQUET} does not say the same as {folder / POLICY}")


def completed(saved: Result, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is given, and from the folder what is not; and the names of the latter."""
    parameters, table = saved.record.parameters, saved.table
    kind = parameters["behavior"]
    words, deciding = table.vocabulary, int((~table.quiet).sum())
    inside = {
        "behavior": table_of(saved) if kind == "table" else None,
        "states": list(words.states[:deciding]) if parameters["states"] == "listed" else None,
        "actions": list(words.actions) if parameters["actions"] == "listed" else None,
    }
    known = {name: inside[name] if given[name] is None else given[name] for name in GIVEN_AGAIN}
    taken = tuple(name for name in GIVEN_AGAIN if given[name] is None and inside[name] is not None)
    if kind != "table" and "behavior" not in saved.record.defaults:
        known["behavior"] = kind if given["behavior"] is None else given["behavior"]
    return known, taken


def table_of(saved: Result) -> BehaviorTable:
    """The behavior policy as it stands in the folder."""
    table = saved.table
    words, rows = table.vocabulary, table.decided
    deciding = int((~table.quiet).sum())
    known = Vocabulary(
        words.state_columns,
        words.action_columns,
        words.states[:deciding],
        words.actions,
        words.binnings,
    )
    enabled = [*zip(table.pairs.state[rows], table.pairs.action[rows], strict=True)]
    policy = Policy(known.pairs_of(enabled), table.behavior[rows])
    return BehaviorTable("policy.csv", known, policy)


def difference(record: Record, evidence: Evidence, taken: tuple[str, ...]) -> str:
    """Why bytes cannot be demanded; empty where they can."""
    if record.versions != (here := current_versions()):
        changed = next(name for name in here if record.versions.get(name) != here[name])
        return (
            f"it was made with {changed} {record.versions.get(changed, 'unknown')}, and this is "
            f"{here[changed]}"
        )
    if record.machine != current_machine():
        return "it was made on another kind of machine"
    before = [fingerprint(each) for each in record.inputs if each.role not in taken]
    now = [fingerprint(each) for each in evidence.files]
    if before != now:
        return "the files given are not those it was made from, although they say the same"
    return ""


def fingerprint(file: InputFile) -> tuple[str, int, str]:
    """What does not change when a file is renamed."""
    return file.role, file.size, file.sha256
