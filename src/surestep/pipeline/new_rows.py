"""Reads rows that came after a result, by the description that the result keeps.

Columns, bins, names, rewards, ends, discount and signals are those of run.json. Situations and
actions that the policy does not know are read as well: whole episodes are judged, not models.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    first_where,
    run_lengths,
    run_sums,
)
from surestep.description import RANGES, described, several
from surestep.errors import InvalidLog
from surestep.followup.episodes import Episodes, Measure
from surestep.io.counts.labelled import LabelledCounts, counts_digest
from surestep.io.labels.vocabulary import Vocabulary, joined
from surestep.io.logs.columns import closest
from surestep.io.logs.source import LogSource
from surestep.kernels.runs import discounted_returns
from surestep.model import DecisionLog, Pairs
from surestep.model.known import NOTHING, Ranges, with_zero
from surestep.model.log import UNKNOWN
from surestep.pipeline.certify import log_again, pairs_in
from surestep.pipeline.posing import unsafe_states
from surestep.results import Record, Result
from surestep.results.findings import UNCHANGED

YES = ("1", "1.0", "true", "t", "yes", "y")


@dataclass(frozen=True, slots=True)
class NewRows:
    """New rows as episodes, and as decisions of the situations that the policy knows."""

    episodes: Episodes
    source: LogSource
    log: DecisionLog  # [N] steps; situations of the result have its numbers
    pair: IntArray  # [N] of the result's table; −1: it decides nothing there, or has no such action
    advised: BoolArray  # [N] the new policy takes this action there
    counts_sha256: str  # of the counts, as a record has it


def measures_of(record: Record) -> tuple[Measure, ...]:
    """Returns the measures that judge episodes: a result's signals with ranges and limits."""
    description = described(record.description)
    kept = record.parameters
    told: dict[str, dict[str, Any]] = {
        name: {"discount": kept.discount, "margin": rule.not_worse_by or 0.0} | rule.stakes
        for name, rule in description.signals.items()
    }
    first = next(iter(told), "reward")
    told[first] = {part: getattr(kept, part) for part in (*RANGES, "discount")}
    measures = list[Measure]()
    for name, stakes in told.items():
        running, ending = (stakes.get(part) or NOTHING for part in ("running", "ending"))
        discount = float(stakes["discount"])
        low, high = stakes.get("returns") or Ranges(running, ending).returns(discount)
        measures.append(Measure(name, float(low), float(high), discount, stakes.get("margin", 0.0)))
    unsafe = description.unsafe
    if unsafe.states is not None:
        at_most = unsafe.at_most if isinstance(unsafe.at_most, float) else None
        measures.append(Measure(unsafe.states, -1.0, 0.0, 1.0, unsafe.not_worse_by or 0.0, at_most))
    return tuple(measures)


def new_rows(
    saved: Result,
    log: object,
    *,
    arm: str | None = None,
    pending: str | None = None,
    time: str | None = None,
    memory_limit: str | None = None,
    allow_query: bool = False,
) -> NewRows:
    """Reads new rows; `arm`, `pending` and `time` are columns beside those of the description.

    An episode is pending if its last row says so: by the column `pending`, or where neither an end
    nor a clock is recorded.
    """
    source = opened(saved, log, memory_limit, time, allow_query=allow_query)
    for name in (arm, pending):
        if name is not None and name not in source.types:
            raise InvalidLog(
                f"{source.table.name}: there is no column {name!r}; "
                f"{closest(name, [*source.types])}"
            )
    counts = source.counts()
    words = saved.table.vocabulary
    words = replace(
        words,
        states=tuple(dict.fromkeys((*words.states, *counts.states, *counts.end_states()))),
        actions=tuple(dict.fromkeys((*words.actions, *counts.actions))),
    )
    pairs = Pairs.full(
        len(words.states),
        len(words.actions),
        state_labels=[*map(joined, words.states)],
        action_labels=[*map(joined, words.actions)],
    )
    steps = source.load(pairs, counts, stopped=True, numbered=True)
    episode = str(source.columns.episode)
    _, texts, changing = source.first_values([episode, *several(arm)])
    ids = tuple(map(str, texts[episode]))
    for e, others in first_where(changing.get(str(arm), np.zeros(0, np.bool_)), "episode"):
        raise InvalidLog(
            f"{source.table.name}: episode {ids[e]!r} is in both arms: column {arm!r} changes "
            f"within it; expected one arm an episode{others}"
        )
    unfinished = unfinished_in(source, steps, pairs, counts)
    if pending is not None:
        marks = source.first_values([pending], last=True)[1][pending]
        unfinished |= np.isin([str(mark).strip().lower() for mark in marks], YES)
    pair = pairs_in(saved).find(words.states, words.actions, steps.state, steps.action)
    advised = (pair >= 0) & (saved.table.probability[pair] > UNCHANGED)
    lowest, highest, returns = returns_of(saved.record, source, steps, words)
    return NewRows(
        episodes=Episodes(
            measures=measures_of(saved.record),
            ids=ids,
            starts=source.begun_at(),
            arm=None if arm is None else texts[arm].astype(str),
            returns=returns,
            lowest=lowest,
            highest=highest,
            pending=unfinished,
            followed=run_sums(advised.astype(np.float64), steps.episode_offsets)
            / run_lengths(steps.episode_offsets),
        ),
        source=source,
        log=steps,
        pair=pair,
        advised=advised,
        counts_sha256=counts_digest(counts),
    )


def opened(
    saved: Result, log: object, memory_limit: str | None, time: str | None, *, allow_query: bool
) -> LogSource:
    """Opens a log of episodes; where steps are time stamps, they are its times."""
    source = log_again(saved, log, memory_limit, but=RANGES, allow_query=allow_query, time=time)
    if not isinstance(source, LogSource) or source.columns.episode is None:
        raise InvalidLog(
            "new rows are counts, or loose transitions; expected a log with columns of episodes "
            "and steps"
        )
    source.check_one_decision(float(saved.record.parameters.discount))
    if source.columns.time is None and source.table.preparation.numbers_stamps:
        return opened(saved, log, memory_limit, source.columns.step, allow_query=allow_query)
    return source


def unfinished_in(
    source: LogSource, steps: DecisionLog, pairs: Pairs, counts: LabelledCounts
) -> BoolArray:
    """Marks the episodes [E] whose last row says neither that they ended nor that a clock did it.

    A row that a clock stopped may lead nowhere, too; loading without such rows tells them apart.
    """
    unknown: BoolArray = steps.next_state[steps.episode_offsets[1:] - 1] == UNKNOWN
    if not unknown.any() or source.columns.truncated is None:
        return unknown
    others = source.load(pairs, counts, numbered=True)
    open_ended = others.next_state[others.episode_offsets[1:] - 1] == UNKNOWN
    still_open = np.asarray(others.number)[open_ended]
    return np.isin(np.asarray(steps.number), still_open)


def returns_of(
    record: Record, source: LogSource, steps: DecisionLog, words: Vocabulary
) -> FloatArray:
    """Returns the least, the greatest and the recorded return of every measure [3, M, E]."""
    description = described(record.description)
    cut = ~steps.terminated[steps.episode_offsets[1:] - 1]
    lengths = run_lengths(steps.episode_offsets)
    returns = list[FloatArray]()
    rules = [None, *[*description.signals.values()][1:]]
    for one, rule in zip(measures_of(record), rules, strict=False):
        log = steps if rule is None else source.of_signal(rule).load(steps.pairs, stopped=True)
        earned = discounted_returns(steps.episode_offsets, log.reward, one.discount)
        so_far = earned[steps.episode_offsets[:-1]]
        left = np.where(cut, one.discount**lengths, 0.0)
        low, high = with_zero((one.low, one.high))
        returns.append(np.stack([so_far + left * low, so_far + left * high, so_far]))
    if description.unsafe.states is not None:
        within = np.inf if description.unsafe.within is None else description.unsafe.within
        unsafe = np.append(unsafe_states(description.unsafe.states, words), False)  # UNKNOWN
        reached = (unsafe[steps.state] & (steps.step <= within)) | (
            unsafe[steps.next_state] & (steps.step < within)
        )
        met = -np.minimum(run_sums(reached.astype(np.float64), steps.episode_offsets), 1.0)
        open_still = cut & (lengths < within)
        returns.append(np.stack([np.where(open_still, -1.0, met), met, met]))
    return np.stack(returns, axis=1)
