"""Making a saved result again from its log, and holding both against each other.

All is made again as if with the versions and on the machine that the record names. What they are
here, and whether the files are the same, decides what a difference means: where nothing is
different, the same bytes are demanded. Elsewhere the last digits of a sum may differ: there equal
counts are demanded, a policy that differs at most between actions whose values tie, each number
within 1e-9 of itself, and the same words on the page. That is less than a confirmation, since
anybody can write another version into a record.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surestep._arrays import BoolArray, FloatArray, run_owners
from surestep._files import read_path, read_whole
from surestep.certificates import verify
from surestep.description import (
    SEEN,
    WORDS_FOR_BEHAVIOR,
    Description,
    at,
    described,
    several,
)
from surestep.errors import InvalidParameter, ResultMismatch, said
from surestep.io.counts.file import is_counts_file
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.io.labels.behavior import BehaviorTable
from surestep.io.labels.label import joined
from surestep.io.labels.pair_table import PairTable
from surestep.io.labels.vocabulary import Vocabulary
from surestep.io.logs.source import LogSource, given_as
from surestep.model import Policy
from surestep.pipeline.evidence import SOURCES, CountsSource, Evidence, gather, open_source
from surestep.pipeline.improve import Progress, draft
from surestep.pipeline.recording import (
    Names,
    check_extensions,
    made_from_log,
    terms_of,
    versions_with,
)
from surestep.pipeline.stress_test import Question
from surestep.rehearsal import Rehearsal
from surestep.results.policy_files import policy_parquet_rows, policy_rows
from surestep.results.record import InputFile, Record, current_machine
from surestep.results.result import PARQUET, POLICY, Result, load, strangers
from surestep.results.table import PolicyTable
from surestep.results.unfinished import STRESS_TEST


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of making a saved result again, where nothing refutes it."""

    level: Literal["same bytes", "same values"]
    why_not_bytes: str = ""  # what is not as the record says; empty where bytes were demanded
    taken_from_folder: tuple[str, ...] = ()  # what was not given again, hence not checked
    page_compared: bool = True  # not where ties between actions fell otherwise

    @property
    def confirmed(self) -> bool:
        """Tells whether every byte in the folder has been made again."""
        return self.level == "same bytes" and not self.taken_from_folder


def verify_result(
    directory: str | Path,
    log: object,
    *,
    behavior: object = None,
    states: object = None,
    actions: object = None,
    possible: object = None,
    allowed: object = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Makes a saved result again, and refuses it with the first difference.

    `log` is a log, or a description of one. `behavior`, `states`, `actions`, `possible` and
    `allowed` are the files that were given when it was made. What is not given again, by the
    description either, is taken from the folder itself, and the answer says so. A query that only
    the result has runs where that is allowed.
    """
    folder = read_path(directory)
    saved = load(folder)
    check_nothing_else(folder, saved)
    own, frame = given_as(log)
    source = open_again(saved.record, own, frame, memory_limit, allow_query=allow_query)
    objects = {"behavior": behavior, "states": states, "actions": actions}
    objects |= {"possible": possible, "allowed": allowed}
    given = {
        name: at(own, path) if objects[name] is None else objects[name]
        for name, path in SOURCES.items()
    }
    known, taken = completed(saved, given)
    tell = progress or (lambda what, done, total: None)
    tell("reading the log", 0, 1)
    terms = terms_of(saved.record)
    evidence = gather(source, terms=terms, objects=known)
    check_same_rows(saved.record, evidence)
    other = difference(saved.record, evidence, taken)
    told = tuple(name for name in saved.record.defaults if name == "behavior")
    asked = described(saved.record.description)
    check_description(asked, saved.record.parameters)
    evidence = replace(evidence, files=saved.record.inputs, defaults=told, description=asked)
    limit = saved.record.parameters["time_limit"]
    again = draft(evidence, terms, tell, time_limit=limit).like(saved.record)
    made = result_of(again.finished(tell))
    page_compared = check_agreement(saved, made, again.question)
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
    return Verification(level, other, taken, page_compared or not changed)


def first_change(folder: Path, made: Result) -> str | None:
    """The first file with other bytes than the one made again; None where all are the same."""
    files = made.files().items()
    return next((name for name, content in files if read_whole(folder / name) != content), None)


def check_nothing_else(folder: Path, saved: Result) -> None:
    """Refuses a result whose stress test is not finished, and whatever else is in the folder."""
    others = strangers(folder, saved)
    if saved.awaits_stress_test or STRESS_TEST in others:
        raise ResultMismatch(
            f"{folder} is not finished: its stress test is still to come, or left the folder "
            f"{STRESS_TEST} behind; run the command that made it again, and verify it then"
        )
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        raise ResultMismatch(
            f"{folder} holds {others[0]!r}{more}, expected only files of the result: move away "
            "what does not belong to it"
        )


def open_again(
    record: Record,
    own: Description,
    frame: object,
    memory_limit: str | None,
    bins: Mapping[str, Any] | None = None,
    *,
    allow_query: bool = False,
) -> LogSource | CountsSource:
    """Opens a log as the record says; or counts, where the result was made from counts.

    The files are those of whoever asks, and so is a query. `bins` are the rules for another log,
    where those of the record would not mean the same.
    """
    if isinstance(frame, LogSource):
        raise InvalidParameter(
            f"log is a {type(frame).__name__}, expected files or a table, which are read with the "
            "columns and bins of the result"
        )
    check_extensions(record)
    counted = isinstance(frame, LabelledCounts) or any(map(is_counts_file, several(own.files)))
    if counted == made_from_log(record):
        then, now = ("a log", "counts are") if made_from_log(record) else ("counts", "a log is")
        raise ResultMismatch(f"the result was made from {then}, and {now} given; expected {then}")
    files = ("files", "tables")
    content = {name: value for name, value in record.description.items() if name not in files}
    mine = {name: value for name, value in own.given().items() if name in files}
    theirs = content.get("query")
    if theirs is not None and own.query != theirs and not allow_query:
        raise InvalidParameter(
            f"the result was made by a query that is not yours: {theirs!r}; read it, then allow it "
            f"with {said('allow_query=True', '--allow-query')}, or give a description that has it"
        )
    if made_from_log(record):
        # Those of the parameters are of the files; columns that reading adds are said alone.
        content["columns"] = {**content.get("columns", {}), **record.parameters["columns"]}
        content |= {} if bins is None else {"bins": bins}
    return open_source(described({**content, **mine}), frame, memory_limit)


def check_parquet(saved: Result, folder: Path) -> None:
    """Refuses a policy.parquet that says something else than policy.csv."""
    if policy_parquet_rows(folder / PARQUET) != policy_rows(saved.table):
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
    return BehaviorTable(POLICY, listed.vocabulary, policy)


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
    return PairTable(POLICY, known, pairs)


def difference(record: Record, evidence: Evidence, taken: tuple[str, ...]) -> str:
    """Returns what here differs from the record, so that bytes may; empty where nothing does."""
    here = versions_with(Names.said_in(record.parameters), record.vocabulary["learnt"])
    for name in dict.fromkeys([*here, *record.versions]):
        if record.versions.get(name) != here.get(name):
            return (
                f"it says that it was made with {name} {record.versions.get(name, 'unknown')}, and "
                f"this is {here.get(name, 'unknown')}"
            )
    if record.machine != current_machine():
        return "it says that it was made on another kind of machine"
    before = [file for file in record.inputs if file.role not in taken]
    now = [file for file in evidence.files if file.role not in taken]
    if [fingerprint(file) for file in before] != [fingerprint(file) for file in now]:
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


# ---- a check that two results of the same log say the same, up to rounding and ties -------------

AGREEMENT = 1e-9  # of a number itself
ROUNDING = 1e-11  # of the largest value: what rounding may leave of a difference of values
SAME_PROBABILITY = 1e-9
MOST_LETTERS = 80  # of a value in a message
MOST_WORLDS = 0.9  # in which a rehearsal must find the same on every machine
PRINTED = re.compile(r"[+\-−]?\d[\d,]*\.\d+(?:e[+\-]?\d+)?")  # a number that may be rounded


def check_same_rows(record: Record, evidence: Evidence) -> None:
    """Refuses another log: other rows of a query first, then other counts."""
    made = None if evidence.source is None else evidence.source.query_facts
    if (record.query or {}).get("digest") != (made or {}).get("digest"):
        raise ResultMismatch(
            "the query does not make the rows that the result was made from; expected the same log "
            "and the same query"
        )
    if counts_digest(evidence.counts) != record.counts_sha256:
        raise ResultMismatch(
            "the log does not have the counts that the result was made from; expected the same "
            "log, read with the same columns"
        )


def check_description(asked: Description, parameters: Mapping[str, Any]) -> None:
    """Refuses a description that says something else than what the result was made with."""
    for role, names in asked.columns.given().items():
        used = parameters["columns"].get(role, names)
        if several(names) != several(used):
            refuse(f"run.json: description: columns: {role}", names, used)
    for name, path in SOURCES.items():
        said, words = at(asked, path), {"behavior": WORDS_FOR_BEHAVIOR, "possible": (SEEN,)}
        file = "table" if name == "behavior" else "listed"
        kind = said if said in words.get(name, ()) else file
        if said is not None and kind != parameters[name]:
            refuse(f"run.json: description: {path}", said, parameters[name])


def check_agreement(saved: Result, made: Result, question: Question) -> bool:
    """Refuses a saved result that says something else; returns whether no tie fell otherwise.

    Where one did, the pages cannot be held against each other.
    """
    scale = float(np.abs(made.table.q).max(initial=0.0)) + max(
        map(abs, question.problem.value_bounds)
    )
    slack = ROUNDING * scale
    ours, theirs = asdict(saved.record), asdict(made.record)
    check_same("run.json: parameters", ours["parameters"], theirs["parameters"], slack)
    same_policy = check_table(saved.table, made.table, slack)
    check_same("run.json", ours, theirs, slack)
    if same_policy:
        before, now = (
            [claim.content() for claim in result.certificates] for result in (saved, made)
        )
        check_same("certificates.json", before, now, slack, same_words)
    else:
        check_claims(saved, made, question)
    return check_same_rehearsal(saved.rehearsal, made.rehearsal) and same_policy


def check_same(
    where: str,
    before: Any,
    now: Any,
    slack: float,
    same: Callable[[str, str], bool] = operator.eq,
) -> None:
    """Refuses what is not equal; numbers may differ by 1e-9 of themselves, or by the slack.

    `same` says which texts count as equal.
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys([*before, *now]):
            if name not in before or name not in now:
                refuse(f"{where}: {name}", before.get(name, "missing"), now.get(name, "no part"))
            check_same(f"{where}: {name}", before[name], now[name], slack, same)
    elif is_list(before) and is_list(now) and len(before) == len(now):
        for place, (ours, theirs) in enumerate(zip(before, now, strict=True)):
            check_same(f"{where}: {place}", ours, theirs, slack, same)
    elif isinstance(before, float) and isinstance(now, float):
        if not math.isclose(before, now, rel_tol=AGREEMENT, abs_tol=slack):
            refuse(where, before, now)
    elif isinstance(before, str) and isinstance(now, str):
        if not same(before, now):
            refuse(where, before, now)
    elif type(before) is not type(now) or before != now:
        refuse(where, before, now)


def is_list(value: object) -> bool:
    """Tells whether JSON has a list for it."""
    return isinstance(value, list | tuple)


def refuse(where: str, before: object, now: object) -> None:
    """Says what was found and what was expected."""
    raise ResultMismatch(
        f"{where} is {short(before)}, but {short(now)} when the result is made again"
    )


def short(value: object) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def same_words(before: str, now: str) -> bool:
    """Tells whether texts are equal but for the last digit of numbers that may be rounded."""
    if PRINTED.sub("0.0", before) != PRINTED.sub("0.0", now):
        return False
    pairs = zip(PRINTED.findall(before), PRINTED.findall(now), strict=True)
    return all(ours == theirs or within_last_digit(ours, theirs) for ours, theirs in pairs)


def within_last_digit(before: str, now: str) -> bool:
    """Tells whether two printed numbers differ by at most one in the last digit."""
    ours, theirs = (Decimal(text.replace(",", "").replace("−", "-")) for text in (before, now))
    unit = max(ours.as_tuple().exponent, theirs.as_tuple().exponent)
    return abs(ours - theirs) <= Decimal(1).scaleb(unit)  # type: ignore[arg-type]


def check_page(before: str, now: str) -> None:
    """Refuses a page that says something else than the one made again."""
    ours, theirs = before.split("\n"), now.split("\n")
    for number, (line, again) in enumerate(zip(ours, theirs, strict=False), 1):
        if not same_words(line, again):
            raise ResultMismatch(
                f"report.html says something else in line {number} than when it is made again"
            )
    if len(ours) != len(theirs):
        raise ResultMismatch(
            f"report.html has {len(ours):,} lines, but {len(theirs):,} when it is made again"
        )


def check_table(ours: PolicyTable, theirs: PolicyTable, slack: float) -> bool:
    """Refuses a policy with other values; whether no tie between actions fell otherwise."""
    if ours.pairs != theirs.pairs or ours.vocabulary != theirs.vocabulary:
        raise ResultMismatch("the result has other states and actions than the log")
    for name in ("visits", "held_out_visits", "trusted", "quiet", "n_wedge"):
        if not np.array_equal(getattr(ours, name), getattr(theirs, name)):
            raise ResultMismatch(f"{name} of policy.csv is not what the log says")
    must_be_close("behavior_probability", ours, ours.behavior, theirs.behavior, SAME_PROBABILITY)
    same_policy = check_same_policy(ours, theirs, slack)
    must_be_close("q", ours, ours.q, theirs.q, slack)
    for name in ("advantage", "advantage_low", "advantage_high"):
        must_be_close(name, ours, getattr(ours, name), getattr(theirs, name), 2 * slack)
    return same_policy


def check_claims(saved: Result, made: Result, question: Question) -> None:
    """Refuses certificates of a policy whose ties fell otherwise, unless they hold for it."""
    before, now = saved.certificates, made.certificates
    ours, theirs = ([(claim.kind, claim.delta) for claim in claims] for claims in (before, now))
    check_same("certificates.json", ours, theirs, 0.0)
    problem, policy = question.problem, saved.table.policy
    if question.numbering is not None:
        policy = question.numbering.policy(policy)
    policy = Policy(problem.counts.pairs, policy.probability)
    for claim, again in zip(before, now, strict=True):
        if again.lower is not None:  # a refusal is told in words, which may end in other digits
            check_same("certificates.json", dict(claim.parameters), dict(again.parameters), 0.0)
        verify(claim, problem, policy)


def check_same_rehearsal(before: Rehearsal | None, now: Rehearsal | None) -> bool:
    """Refuses a stress test that found something else; whether it is the same in all worlds.

    Ties between actions may fall otherwise on another machine, in some of the worlds.
    """
    if before is None or now is None:
        if (before is None) != (now is None):
            refuse("rehearsal.json", "missing" if before is None else "there", "not so")
        return True
    try:
        ours, theirs = json.loads(before.to_json()), json.loads(now.to_json())
        check_same("rehearsal.json", ours, theirs, now.tolerance * ROUNDING / AGREEMENT, same_words)
        return True
    except ResultMismatch as difference:
        same = (before.family, before.sizes, before.episodes, before.horizon, before.limits) == (
            now.family, now.sizes, now.episodes, now.horizon, now.limits
        )  # fmt: skip
        for name in ("gain", "claim", "luck"):
            mine, yours = getattr(before, name), getattr(now, name)
            same = same and mine.shape == yours.shape
            if not same or not most_are_close(mine, yours, now.tolerance):
                raise difference from None
        return False


def most_are_close(before: FloatArray, now: FloatArray, slack: float) -> bool:
    """Tells whether nine of ten numbers are equal up to rounding."""
    close = np.isclose(before, now, rtol=AGREEMENT, atol=slack, equal_nan=True)
    return close.size == 0 or bool(np.mean(close) >= MOST_WORLDS)


def check_same_policy(ours: PolicyTable, theirs: PolicyTable, tie: float) -> bool:
    """Refuses policies that differ but between actions whose values tie; whether none does."""
    moved = np.abs(ours.probability - theirs.probability) > SAME_PROBABILITY
    if not moved.any():
        return True
    offsets = ours.pairs.offsets
    high = np.maximum.reduceat(np.where(moved, theirs.q, -np.inf), offsets[:-1])
    low = np.minimum.reduceat(np.where(moved, theirs.q, np.inf), offsets[:-1])
    wrong = moved & (high - low > tie)[run_owners(offsets)]
    if wrong.any():
        must_be_close(
            "probability", ours, np.where(wrong, ours.probability, 0.0),
            np.where(wrong, theirs.probability, 0.0), SAME_PROBABILITY,
        )  # fmt: skip
    return False


def must_be_close(
    what: str, table: PolicyTable, found: FloatArray, expected: FloatArray, slack: float
) -> None:
    """Refuses a column of policy.csv with a number that is too far from what it should be."""
    off = ~(np.abs(found - expected) <= slack)
    if off.any():
        k = int(np.argmax(off))
        state = joined(table.vocabulary.states[int(table.pairs.state[k])])
        action = joined(table.vocabulary.actions[int(table.pairs.action[k])])
        raise ResultMismatch(
            f"{what} of state {state!r}, action {action!r} is {float(found[k])!r} in policy.csv, "
            f"but {float(expected[k])!r} when the result is made again; {int(off.sum()):,} "
            f"row{' is' if off.sum() == 1 else 's are'} affected"
        )
