"""Recomputes a saved result from its log, and compares both.

All is made again with the names of files, the versions and the machine that the record tells. Where
these are not the ones here, equal bytes confirm nothing: anybody can write them into a record.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import surestep.description as keys
from surestep._arrays import shown
from surestep._files import failing_to_read, read_path, read_whole
from surestep._progress import Progress, telling
from surestep._version import __version__
from surestep.errors import InvalidParameter, ResultMismatch, said
from surestep.io.counts.file import kind_of_counts
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.io.logs.source import LogSource
from surestep.model.certificate import VERDICT
from surestep.pipeline.evidence import SOURCES, CountsSource, Evidence, gather, open_source
from surestep.pipeline.improve import draft, result_of
from surestep.pipeline.recording import made_from_log, terms_of
from surestep.pipeline.structured import improve_structured
from surestep.results import Record, Result, StructuredResult, load
from surestep.results.policy_files import policy_parquet_rows, policy_rows
from surestep.results.result import (
    CARD,
    FILES,
    FOR_STAFF,
    PARQUET,
    POLICY,
)
from surestep.results.structured import BELIEF
from surestep.results.unfinished import CERTIFICATE, REHEARSAL, REPORT, RULES, RUN, STRESS_TEST

CLOSE = 1e-9  # the largest difference of numbers, relative or absolute
# Where the page has a number in full, to sort by; all others it shows rounded.
IN_FULL = re.compile(r'data-key="(-?[0-9.]+(?:e[+-]?[0-9]+)?)"')
PAGES = (CARD, REPORT)
MADE_WITH = ("versions", "machine", "inputs")
SOME = (*FILES, *FOR_STAFF, BELIEF, REHEARSAL)  # files that some result has
SHOWN = 60  # letters of a value in a message


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of making a saved result again.

    Parameters
    ----------
    level : {"same bytes", "same values", "refuted"}
        How much came out the same.
    difference : str, default ""
        The first one: its file and place, what was there, and what is there now.
    compared : tuple of str
        The keys of the description given, which agree with the result.
    repeated : str, default "every file"
        What was made again.

    Examples
    --------
    >>> from surestep.pipeline import Verification
    >>> Verification("same values").confirmed
    False
    """

    level: Literal["same bytes", "same values", "refuted"]
    difference: str = ""
    compared: tuple[str, ...] = field(default=(), compare=False)
    repeated: str = "every file"

    @property
    def confirmed(self) -> bool:
        """Tells whether all that was repeated has the same bytes."""
        return self.level == "same bytes"


def verify_result(
    directory: str | Path,
    log: object,
    *,
    behavior: object = None,
    states: object = None,
    actions: object = None,
    possible: object = None,
    allowed: object = None,
    worlds: int | None = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
    progress: Progress | bool | None = None,
) -> Verification:
    """Makes a saved result again from its log, and compares all bytes, or all values.

    Tables that were given when it was made are given again, where the description names none. A
    result for a log with a structure needs the description that it was made by, and is compared
    byte by byte.

    Parameters
    ----------
    directory : str or path
        The folder of a saved result.
    log : str, path, Description or table
        The log, or a description of it. A key that says another thing than the result was made
        with is refused.
    behavior : str, path or table, optional
        The policy that made the log: a table of state, action, probability; uniform (a randomised
        trial); propensities, or row-propensities where they vary within a state; or estimate.
        Default: propensities, else estimate.
    states : path, table or sequence, optional
        A file with all states that there are, where the log shows fewer.
    actions : path, table or sequence, optional
        A file with all actions that there are.
    possible : path, table or "seen", optional
        What can be done in a state: `seen`, only what the log shows there; or a table of state,
        action with all pairs that there are.
    allowed : path or table, optional
        A table of state, action: no other is taken more often than before.
    worlds : int, optional
        0: take the stress test as it is, instead of repeating it, which takes the most time.
    allow_query : bool, default False
        Run the query that the result was made by, which is not in a description of yours.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.
    progress : bool or callable, optional
        True shows a bar. A function is called with what is being done, how much of it is done, and
        of how much.

    Returns
    -------
    Verification
        Whether all bytes are the same, or all values; else the first difference.

    Raises
    ------
    ResultMismatch
        The log, a table or a key is not what the result was made with.
    InvalidResult
        The folder holds no result, or one whose files were changed.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.pipeline import verify_result
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     surestep.improve(table, discount=0, worlds=0).save(f"{folder}/result")
    ...     verify_result(f"{folder}/result", table).level
    'same bytes'
    """
    if worlds not in (0, None):
        raise InvalidParameter(
            f"{said('worlds', '--worlds')} is {worlds!r}, expected 0, to leave the stress test "
            "out, or nothing, to repeat it in the worlds of the result"
        )
    folder = read_path(directory)
    if (folder / RUN).is_file():  # else `load` says that there is no result
        check_nothing_else(folder)
    saved = load(folder)
    check_nothing_else(folder, saved)
    own, frame = keys.given_as(log)
    if isinstance(saved, StructuredResult):
        if worlds is not None:
            raise InvalidParameter(
                f"{said('worlds', '--worlds')} is {worlds!r}, but beside a structure the stress "
                "test is repeated, too; leave it out"
            )
        mine, theirs = keys.without_folders(own).given(), saved.record.description
        for name in sorted({*mine, *theirs}):
            if mine.get(name) != theirs.get(name):
                raise ResultMismatch(f"{name}: your description says another thing than the result")
        again = improve_structured(own, memory_limit=memory_limit, progress=progress)
        return same_files(folder, again.files(), tuple(mine))
    record = saved.record
    compared = check_said(record, own)
    source = open_again(record, own, frame, memory_limit, allow_query=allow_query)
    beside = {
        "behavior": behavior,
        "states": states,
        "actions": actions,
        "possible": possible,
        "allowed": allowed,
    }
    given = {name: value for name, value in beside.items() if value is not None}
    check_given(record, {name: keys.at(own, path) for name, path in SOURCES.items()} | given)
    objects = {name: x for name, x in given.items() if not keys.is_word(SOURCES[name], x)}
    with telling(progress) as tell:
        tell("reading the log", 0, 1)
        evidence = gather(source, terms_of(record), objects)
        check_same_rows(record, evidence)
        evidence = replace(evidence, description=keys.described(record.description))
        kept = None if worlds is None else saved.rehearsal
        findings = draft(evidence, tell, time_limit=record.parameters.time_limit).finished(
            tell, kept=kept
        )
        made = result_of(replace(findings, record=as_if_there(findings.record, record)))
    then, now = ({name: asdict(x)[name] for name in MADE_WITH} for x in (record, findings.record))
    verification = comparison(folder, saved, made, difference(RUN, then, now))
    if verification.level == "refuted":
        check_same_files(record, evidence)
    return replace(
        verification,
        compared=compared,
        repeated="every file"
        if kept is None
        else "all but the stress test, which was not repeated",
    )


def as_if_there(here: Record, there: Record) -> Record:
    """Returns a record with the versions, machine and files of another one, and what it knew."""

    def in_order(own: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
        return {name: theirs[name] for name in (*own, *theirs) if name in theirs}

    return replace(
        here,
        versions=in_order(here.versions, there.versions),
        machine=in_order(here.machine, there.machine),
        inputs=there.inputs,
        beside_counts=there.beside_counts and here.beside_counts,
    )


def comparison(folder: Path, saved: Result, made: Result, moved: str) -> Verification:
    """Compares files byte by byte, and compares the values of files whose bytes differ.

    `moved` says what else it was made with. A page of another release has other words, and is not
    compared.
    """
    again = made.files()
    kept = saved.files()  # both as this release writes them
    changed = [name for name in again if read_whole(folder / name) != again[name]]
    if not changed and not moved:
        return Verification("same bytes")
    for name in sorted(changed, key=[RUN, *FILES[:-1], RULES, REHEARSAL, *PAGES].index):
        if name in PAGES and saved.record.versions.get("surestep") != __version__:
            moved += f"; {name} has the words of that release, and was not compared"
            break
        ours: Any = policy_rows(saved.table)
        theirs: Any = policy_rows(made.table)
        if name == PARQUET:
            ours = policy_parquet_rows(folder / name)
        elif name != POLICY:
            ours, theirs = (values_in(name, files[name]) for files in (kept, again))
        if name == CERTIFICATE:
            ours[VERDICT] = json.loads(read_whole(folder / name)).get(VERDICT)
        if differing := difference(name, ours, theirs):
            return Verification("refuted", "; ".join(filter(None, (differing, moved))))
    return Verification("same values", moved or f"{changed[0]} has other bytes")


def same_files(folder: Path, files: Mapping[str, bytes], compared: tuple[str, ...]) -> Verification:
    """Compares files that were made again with those in a folder, byte by byte."""
    for name, content in files.items():
        if read_whole(folder / name) != content:
            return Verification("refuted", f"{name} comes out otherwise")
    return Verification("same bytes", compared=compared)


def check_nothing_else(folder: Path, saved: Result | StructuredResult | None = None) -> None:
    """Refuses an unfinished stress test, and files that do not belong to the result.

    This is also called before anything is loaded, since finished parts may be anybody's files.
    """
    known = {RUN, *(SOME if saved is None else saved.contents())}
    others = further_files(folder, known)
    awaited = isinstance(saved, Result) and saved.awaits_stress_test
    if STRESS_TEST in others or awaited:
        raise ResultMismatch(
            f"{folder} is not finished: its stress test is still to come, or left the folder "
            f"{STRESS_TEST} behind; run the command that made it again"
        )
    check_only(folder, known)


def check_only(folder: Path, known: set[str], of: str = "the result") -> None:
    """Refuses files that do not belong to a result, or to something else that was saved."""
    if others := further_files(folder, known):
        raise ResultMismatch(
            f"{folder} holds {shown(others)}, expected only files of {of}: move others away"
        )


def further_files(folder: Path, known: set[str]) -> list[str]:
    """Returns the names of other files in a folder than those that are known."""
    with failing_to_read(folder):
        return sorted({path.name for path in folder.iterdir()} - known)


def open_again(
    record: Record,
    own: keys.Description,
    frame: object,
    memory_limit: str | None,
    columns_and_bins: Mapping[str, Any] | None = None,
    *,
    allow_query: bool = False,
) -> LogSource | CountsSource:
    """Opens the log, or the counts if the result was made from counts, as the record says.

    The caller gives the files and the query. `columns_and_bins` replace those of the record for
    another log, where they would mean something else.
    """
    if isinstance(frame, LogSource):
        raise InvalidParameter(
            f"log is a {type(frame).__name__}, expected files or a table, which are read with the "
            "columns and bins of the result"
        )
    counted = isinstance(frame, LabelledCounts) or any(map(kind_of_counts, keys.several(own.files)))
    if counted == made_from_log(record):
        then, now = ("a log", "counts are") if made_from_log(record) else ("counts", "a log is")
        raise ResultMismatch(f"the result was made from {then}, and {now} given; expected {then}")
    theirs = record.description.get("query")
    if theirs is not None and own.query != theirs and not allow_query:
        raise InvalidParameter(
            f"the result was made by a query that is not yours: {theirs!r}; read it, then allow it "
            f"with {said('allow_query=True', '--allow-query')}, or give a description that has it"
        )
    content = {
        **keys.with_files(record.description, lambda file: None),
        "files": own.files,
        "tables": own.tables,
    }
    if made_from_log(record):
        content |= columns_and_bins or {}
    mine = {"reader": own.reader.given(), **({} if own.case is None else {"case": own.case})}
    for path in keys.FILE_KEYS:
        if keys.at(own, path) is not None and not keys.is_word(path, keys.at(own, path)):
            keys.put(mine, path, keys.at(own, path))
    return open_source(keys.described(keys.merged(content, mine)), frame, memory_limit)


# Defaults of keys that are not among the parameters of a record.
TAKEN = {
    "stakes.unit": "per episode",
    "stakes.per": None,
    "stakes.horizon": None,
    "unsafe.at_most": "as before",
    "unsafe.not_worse_by": 0.0,
    "signals.not_worse_by": 0.0,
    "signals.cost": False,
}
LEFT_OPEN = ("n_wedge", "running", "ending")  # the data may have settled these


def check_said(record: Record, own: keys.Description) -> tuple[str, ...]:
    """Returns the keys of a description; refuses a value other than the result's.

    Files are compared by their content, later. Options for reading text files may be missing from
    the record: then the description's options are used, and the counts have to agree.
    """
    used, ours = (dict(keys.leaves(d.given())) for d in (keys.described(record.description), own))
    ours |= {f"signals.{keys.key_text(x)}.cost": rule.cost for x, rule in own.signals.items()}
    for path, mine in ours.items():
        table, _, name = path.rpartition(".")
        if path in ("files", *keys.FILE_KEYS) or table == "tables":
            continue
        if (table == "reader" or name == "case") and path not in used:
            continue
        if name == "worlds" and record.parameters.time_limit is not None:
            continue  # there are as many as it left time for
        theirs = used[path] if path in used else taken(record, table.partition(".")[0], name)
        if mine != theirs:
            raise ResultMismatch(
                f"{path}: your description says {around(mine, theirs)}, the result was made "
                f"{'without it' if theirs is None else f'with {around(theirs, mine)}'}"
            )
    return tuple(ours)


def taken(record: Record, table: str, name: str) -> Any:
    """Returns the default that was taken for a key; None: there is none."""
    parameters = record.parameters
    if table == "columns":
        return keys.plain(parameters.columns.get(name))
    if table not in ("stakes", "method", "behavior") or f"{table}.{name}" in TAKEN:
        return TAKEN.get(f"{table}.{name}")
    if name == "algorithm":
        return parameters.algorithm[name]
    value = keys.plain(getattr(parameters, name))
    left_open = name in record.defaults if name in LEFT_OPEN else value is None
    return keys.DEFAULTS.get(name) if left_open else value


def check_same_files(record: Record, evidence: Evidence) -> None:
    """Refuses tables beside the log with other bytes; asked where the result is another one."""
    known = {(file.role, file.sha256) for file in record.inputs}
    for file in evidence.files:
        if file.role in SOURCES and (file.role, file.sha256) not in known:
            raise ResultMismatch(
                f"{SOURCES[file.role]}: your {file.name} is not the file that the result was made "
                "with, and the result comes out otherwise with it"
            )


def check_given(record: Record, given: Mapping[str, Any]) -> None:
    """Refuses tables beside the log that are not given again, or that the record contradicts."""
    for name, path in SOURCES.items():
        used = getattr(record.parameters, name)
        told = keys.at(keys.described(record.description), path)
        file = "table" if name == "behavior" else "listed"
        known = [value for value in (given[name], told) if value is not None]
        kinds = {value if keys.is_word(path, value) else file for value in known}
        if kinds - {used} or (given[name] is None and used == file):
            raise ResultMismatch(
                f"{path} was {used!r} when the result was made, and is "
                f"{min(kinds - {used}, default='not given')!r} now; expected what it was made with"
            )


def check_same_rows(record: Record, evidence: Evidence) -> None:
    """Refuses another log: other rows of a query first, then other counts."""
    source = evidence.log_source
    made = None if source is None else source.query_facts
    same_rows = (record.query or {}).get("digest") == (made or {}).get("digest")
    if not same_rows or counts_digest(evidence.counts) != record.counts_sha256:
        what = "log does not have the counts" if same_rows else "query does not make the rows"
        raise ResultMismatch(
            f"the {what} that the result was made from; expected the same log, query and columns"
        )


def values_in(name: str, content: bytes) -> Any:
    """Returns the content of a JSON file without digests, or a page by its lines.

    Texts stay texts, as labels may be digits; only where a number was computed, it is a number.
    """
    if name == RUN:
        return {**json.loads(content), "outputs": None}
    if name not in PAGES:
        return json.loads(content, object_hook=without_refusal)
    lines = enumerate(map(IN_FULL.split, content.decode(errors="replace").split("\n")), 1)
    return {i: [float(x) if j % 2 else x for j, x in enumerate(line)] for i, line in lines}


def without_refusal(member: dict[str, Any]) -> dict[str, Any]:
    """Drops the sentence of a refusal from an object of a certificate; its code stays."""
    return {name: value for name, value in member.items() if name != "refusal"}


def difference(place: str, was: Any, now: Any) -> str:
    """Returns the first place where values differ by more than rounding; empty: there is none."""
    if isinstance(was, dict) and isinstance(now, dict):
        inside = ((key, was.get(key, "nothing"), now.get(key, "nothing")) for key in {**was, **now})
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple) and len(was) == len(now):
        inside = ((i, *pair) for i, pair in enumerate(zip(was, now, strict=True)))
    elif are_close(was, now):
        return ""
    else:
        return f"{place} was {around(was, now)}, is {around(now, was)}"
    return next(filter(None, (difference(f"{place}: {key}", *pair) for key, *pair in inside)), "")


def are_close(was: Any, now: Any) -> bool:
    """Tells whether values are equal but for the rounding of numbers."""
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(was) is type(now) and bool(was == now)


def around(value: Any, other: Any) -> str:
    """Returns a value for a message; of a long one, the part that differs from `other`."""
    pairs = enumerate(zip(repr(value), repr(other), strict=False))
    start = max(next((i for i, (one, two) in pairs if one != two), 0) - SHOWN // 2, 0)
    text = repr(value)[start:]
    return f"{'…' if start else ''}{text if len(text) <= SHOWN else f'{text[:SHOWN]}…'}"
