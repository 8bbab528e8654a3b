"""A check that two results of the same log say the same, up to rounding and ties."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import numpy as np

from surestep._arrays import FloatArray, run_owners
from surestep.certificates import verify
from surestep.errors import ResultMismatch
from surestep.io.counts.labelled import counts_digest
from surestep.io.labels.label import joined
from surestep.model import Policy, Problem
from surestep.pipeline.evidence import Evidence
from surestep.rehearsal import Rehearsal
from surestep.results.record import Record
from surestep.results.result import Result
from surestep.results.table import PolicyTable

AGREEMENT = 1e-9  # of a number itself
ROUNDING = 1e-11  # of the largest value: what rounding may leave of a difference of values
SAME_PROBABILITY = 1e-9
MOST_LETTERS = 80  # of a value in a message
MOST_WORLDS = 0.9  # in which a rehearsal must find the same on every machine
PRINTED = re.compile(r"[+\-−]?\d[\d,]*\.\d+(?:e[+\-]?\d+)?")  # a number that may be rounded


def check_same_counts(record: Record, evidence: Evidence) -> None:
    """Refuses another log."""
    if counts_digest(evidence.counts) != record.counts_sha256:
        raise ResultMismatch(
            "the log does not have the counts that the result was made from; expected the same "
            "log, read with the same columns"
        )


def check_agreement(saved: Result, made: Result, problem: Problem) -> bool:
    """Refuses a saved result that says something else; returns whether no tie fell otherwise.

    Where one did, the pages cannot be held against each other.
    """
    scale = float(np.abs(made.table.q).max(initial=0.0)) + max(map(abs, problem.value_bounds))
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
        check_claims(saved, made, problem)
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


def check_claims(saved: Result, made: Result, problem: Problem) -> None:
    """Refuses certificates of a policy whose ties fell otherwise, unless they hold for it."""
    before, now = saved.certificates, made.certificates
    ours, theirs = ([(each.kind, each.delta) for each in claims] for claims in (before, now))
    check_same("certificates.json", ours, theirs, 0.0)
    policy = Policy(problem.counts.pairs, saved.table.probability)
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
