"""Whether two results of the same log say the same, up to rounding and ties."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from surestep._arrays import FloatArray, run_owners
from surestep.certificates import verify
from surestep.errors import ResultMismatch
from surestep.io.counts_digest import counts_digest
from surestep.io.labelled_counts import joined
from surestep.model import Certificate, Policy
from surestep.pipeline.evidence import Evidence
from surestep.pipeline.improving import Made
from surestep.rehearsal import Rehearsal
from surestep.results.record import Record
from surestep.results.result import Result
from surestep.results.table import PolicyTable

AGREEMENT = 1e-9  # of the largest value
SAME_PROBABILITY = 1e-9
MOST_WORLDS = 0.9  # in which a rehearsal must find the same on every machine


def check_same_counts(record: Record, evidence: Evidence) -> None:
    """Refuses another log."""
    if counts_digest(evidence.counts) != record.counts_sha256:
        raise ResultMismatch(
            "the log does not have the counts that the result was made from; expected the same "
            "log, read with the same columns"
        )


def check_agreement(saved: Result, made: Made) -> None:
    """Refuses a saved result whose policy, values or certificate come out differently."""
    ours, theirs = saved.table, made.result.table
    again = made.result.record
    check_same_numbers("parameters", saved.record.parameters, again.parameters)
    if ours.pairs != theirs.pairs or ours.vocabulary != theirs.vocabulary:
        raise ResultMismatch("the result has other states and actions than the log")
    check_same_numbers("data", saved.record.data, again.data)
    for name in ("visits", "trusted"):
        if not np.array_equal(getattr(ours, name), getattr(theirs, name)):
            raise ResultMismatch(f"{name} of policy.csv is not what the log says")
    scale = AGREEMENT * float(np.abs(theirs.q).max())
    must_be_close("behavior_probability", ours, ours.behavior, theirs.behavior, SAME_PROBABILITY)
    check_same_policy(ours, theirs, scale)
    must_be_close("q", ours, ours.q, theirs.q, scale)
    must_be_close("advantage", ours, ours.advantage, theirs.advantage, 2 * scale)
    for name, found in saved.record.estimates.items():
        if not abs(found - again.estimates[name]) <= scale:
            raise ResultMismatch(
                f"{name} among the estimates is {found!r} in run.json, but "
                f"{again.estimates[name]!r} when the result is made again"
            )
    check_claims(saved, made)
    check_same_rehearsal(saved.rehearsal, made.result.rehearsal)


def check_claims(saved: Result, made: Made) -> None:
    """Refuses certificates other than those that the terms ask for, or that say something else."""
    before, now = saved.certificates, made.result.certificates
    if len(before) != len(now):
        raise ResultMismatch(
            f"there are {len(before)} certificates, but {len(now)} when the result is made again"
        )
    same_policy = saved.policy == made.result.policy
    policy = Policy(made.problem.counts.pairs, saved.table.probability)
    for ours, theirs in zip(before, now, strict=True):
        check_same_claim(ours, theirs)
        if not (same_policy and ours == theirs):  # else it has just been made again
            verify(ours, made.problem, policy)


def check_same_rehearsal(before: Rehearsal | None, now: Rehearsal | None) -> None:
    """Refuses a stress test that is missing, or that found something else."""
    if before is None or now is None:
        if (before is None) != (now is None):
            raise ResultMismatch(
                f"there is {'no' if before is None else 'a'} rehearsal, but "
                f"{'one' if before is None else 'none'} when the result is made again"
            )
        return
    same = (before.family, before.sizes, before.episodes) == (now.family, now.sizes, now.episodes)
    for name in ("gain", "claim"):
        ours, theirs = getattr(before, name), getattr(now, name)
        same = same and ours.shape == theirs.shape
        # Ties between actions may fall otherwise on another machine, in some of the worlds.
        close = same and np.isclose(
            ours, theirs, rtol=AGREEMENT, atol=now.tolerance, equal_nan=True
        )
        if not same or np.mean(close) < MOST_WORLDS:
            raise ResultMismatch(
                f"{name} of rehearsal.json is not what the stress test finds when it is made again"
            )


def check_same_numbers(what: str, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Refuses numbers of run.json that are not what the log says."""
    for name in dict.fromkeys([*before, *now]):
        if not same_parameter(before.get(name), now.get(name)):
            raise ResultMismatch(
                f"{name} among the {what} is {before.get(name)!r} in run.json, but "
                f"{now.get(name)!r} when the result is made again"
            )


def check_same_claim(before: Certificate, now: Certificate) -> None:
    """Refuses a certificate of another kind, or with other parameters, than the algorithm's.

    Whether what it says is right is another question. A refusal is told in words, which may end in
    other digits.
    """
    same = before.kind == now.kind and before.delta == now.delta
    if not same or (now.lower is not None and before.parameters != now.parameters):
        raise ResultMismatch(
            f"a certificate claims {before.kind} with {dict(before.parameters)}, but the result "
            f"made again has {now.kind} with {dict(now.parameters)}"
        )


def same_parameter(before: object, now: object) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(same_parameter, before, now))
    if isinstance(before, float) and isinstance(now, float):
        return math.isclose(before, now, rel_tol=AGREEMENT)
    return before == now


def check_same_policy(ours: PolicyTable, theirs: PolicyTable, tie: float) -> None:
    """Policies may differ only between actions of a state whose values tie."""
    moved = np.abs(ours.probability - theirs.probability) > SAME_PROBABILITY
    if not moved.any():
        return
    offsets = ours.pairs.offsets
    high = np.maximum.reduceat(np.where(moved, theirs.q, -np.inf), offsets[:-1])
    low = np.minimum.reduceat(np.where(moved, theirs.q, np.inf), offsets[:-1])
    wrong = moved & (high - low > tie)[run_owners(offsets)]
    if wrong.any():
        must_be_close(
            "probability", ours, np.where(wrong, ours.probability, 0.0),
            np.where(wrong, theirs.probability, 0.0), SAME_PROBABILITY,
        )  # fmt: skip


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
