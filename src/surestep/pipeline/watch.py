"""`watch`: is an adopted policy followed, has the world changed, is it still as good?"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, run_owners, run_sums
from surestep._files import read_path
from surestep._words import number
from surestep.certificates.registry import standing_of
from surestep.checks import Check
from surestep.checks.drift import next_state_by_time, reward_by_time
from surestep.checks.running import given_log
from surestep.checks.words import forbids_proof
from surestep.errors import InvalidLog
from surestep.followup.detector import detect, lowest_season, paired
from surestep.followup.watching import Level, Watch
from surestep.model import DecisionLog, Pairs
from surestep.model.statements import STOPPING
from surestep.pipeline.new_rows import NewRows, measures_of, new_rows
from surestep.rehearsal import Rate
from surestep.report.page import page
from surestep.report.watch import watch_sections
from surestep.results.findings import is_proved
from surestep.results.record import InputFile, Record
from surestep.results.result import Result, load
from surestep.results.table import UNCHANGED
from surestep.results.unfinished import RUN

SLACK = 1e-9  # relative, for sums of rewards


def watch(
    result: Result | str | Path,
    frame: object,
    *,
    within: int = 1_000,
    alpha: float = 0.05,
    holdout: tuple[str, str] | None = None,
    seasons: int = 1,
    log: object = None,
    time: str | None = None,
    pending: str | None = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
) -> Watch:
    """Watches a policy that was adopted, by the rows that came since.

    Parameters
    ----------
    result : Result, str or path
        The result whose policy was adopted, or its folder.
    frame : str, path, Description or table
        The rows since the adoption, with the columns of the log that the result was made from. The
        same call with more rows goes on to the same answer.
    within : int, default 1000
        N: while the policy is as good as it was, a false alarm among the first N episodes has a
        chance of at most `alpha`.
    alpha : float in (0, 1), default 0.05
        That chance.
    holdout : (str, str), optional
        A column and its value in episodes that go on as before. The others are compared with
        these: seasons do not matter then.
    seasons : int, default 1
        Cut the old log into so many equal parts, and take the lowest of them for the level.
    log : str, path, Description or table, optional
        The log that the result was made from. Default: the files of its names, if they are still
        here or beside the result.
    time : str, optional
        The column that says when an episode began, where the result's log had none.
    pending : str, optional
        A column that marks episodes whose outcome is not known yet: the first of them stops the
        count.
    allow_query : bool, default False
        Run the query that the result was made by.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.

    Returns
    -------
    Watch
        The alarm, or none; how far the policy is followed; and whether the world changed.

    Raises
    ------
    InvalidLog
        The rows cannot be read as the result's log was, or contradict what was declared.
    InvalidParameter
        An argument contradicts its type, or the rows.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> table |= {"episode": list(range(60)), "step": [0] * 60}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), ends="complete", worlds=0)
    >>> new = {"state": ["mild"] * 90, "action": ["wait"] * 90, "reward": [1] * 90}
    >>> new |= {"episode": list(range(90)), "step": [0] * 90}
    >>> surestep.watch(result, new, log=table, within=500).alarm
    False
    """
    saved = result if isinstance(result, Result) else load(read_path(result))
    read = partial(new_rows, saved, allow_query=allow_query, memory_limit=memory_limit)
    arm, value = holdout or (None, "")
    rows = read(frame, arm=arm, pending=pending, time=time)
    there = old_files(saved.record, result) if log is None else log
    old = None if there is None else read(there)
    episodes = rows.episodes
    held = np.zeros(len(episodes), np.bool_) if episodes.arm is None else episodes.arm == value
    if arm is not None and held.all() == held.any():
        raise InvalidLog(
            f"column {arm!r} is {value!r} in {'every' if held.all() else 'no'} episode; expected "
            "it in episodes of the holdout, and in no others"
        )
    ended = None if old is None else old.episodes.starts
    if ended is not None and episodes.starts is not None and episodes.starts[0] < ended[-1]:
        raise InvalidLog(
            f"episode {episodes.ids[0]!r} began before the old log ended; expected rows since the "
            "adoption alone"
        )
    measure = episodes.measures[0]
    recorded = episodes.returns[0]
    high = measure.high
    for place in np.flatnonzero(recorded > high + SLACK * abs(high))[:1]:
        raise InvalidLog(
            f"episode {episodes.ids[place]!r} returned {number(float(recorded[place]))}, expected "
            f"at most {number(high)}, as was declared; make the result again with a range that "
            "holds"
        )
    known = int(np.argmax(np.append(episodes.pending, True)))
    # Of an episode that a clock cut, what speaks for the new policy.
    values: FloatArray = np.where(held, episodes.lowest[0], episodes.highest[0])[:known]
    places: IntArray = np.arange(known)
    if arm is not None:
        values, places = paired(values, held[:known])
        high -= measure.low
    values = np.minimum(values, high)
    levels = levels_of(saved, old, seasons, holdout=arm is not None)
    many = sum(level.value is not None for level in levels)  # each has its part of α
    names = [*episodes.ids]
    if episodes.starts is not None:
        days = [datetime.fromtimestamp(x, UTC).date() for x in episodes.starts.tolist()]
        names = [f"{name} ({day})" for name, day in zip(names, days, strict=True)]
    for i, level in enumerate(levels):
        if level.value is not None:
            seen = detect(values, level.value, high, within=within * many, alpha=alpha)
            levels[i] = level._replace(evidence=float(seen.evidence[-1:].sum()) / seen.goal)
            if seen.alarm is not None and seen.since is not None:
                alarm, since = places[[seen.alarm, seen.since]].tolist()
                levels[i] = level._replace(
                    evidence=1.0, alarm=names[alarm], since=names[since], place=alarm
                )
    inputs = {RUN: hashlib.sha256(saved.files()[RUN]).hexdigest()}
    inputs |= {path.name: InputFile.of("log", path).sha256 for path in rows.source.files}
    answer = Watch(
        ids=tuple(names),
        known=known,
        values=values,
        places=places,
        levels=tuple(levels),
        within=within,
        alpha=alpha,
        followed=followed_in(saved, rows, ~held),
        unknown=int(np.count_nonzero(rows.pair < 0)),
        checks=None if old is None else drifted(old.log, rows.log),
        unit=saved.record.unit,
        inputs=inputs,
    )
    sections = watch_sections(answer)
    return replace(answer, report=page(sections[0].title, "Watching an adopted policy", sections))


def old_files(record: Record, result: object) -> list[str] | None:
    """Finds the files of the log that a result was made from, here or beside it; None: not all."""
    wanted = [file for file in record.inputs if file.role == "log"]
    folders = [Path()] if isinstance(result, Result) else [Path(), read_path(result).parent]
    for folder in folders:
        paths = [folder / file.name for file in wanted if (folder / file.name).is_file()]
        if paths and [InputFile.of("log", path) for path in paths] == wanted:
            return [*map(str, paths)]
    return None


def levels_of(saved: Result, old: NewRows | None, seasons: int, *, holdout: bool) -> list[Level]:
    """Returns what was proved of the new policy alone, and a lower bound of former practice.

    Where no rounds were of the new policy alone, and the current policy is known, its level is that
    of former practice and the proved gain. Beside a holdout, levels are gains over it.
    """
    claim = saved.certificate
    delta = float(saved.record.parameters.delta)
    sound = not forbids_proof(saved.record.checks, claim) and not claim.assumes(STOPPING.code)
    proved = sound and is_proved(claim)
    proof = f"a proof by the {claim.kind} certificate"
    if holdout:
        gain = claim.lower if proved else None
        none = Level("the holdout itself", 0.0, 0.0, "")
        return [Level("the proved gain over the holdout", gain, claim.delta, proof), none]
    first = measures_of(saved.record)[0]
    least, most = first.low, first.high
    former = least
    if old is not None:
        former = lowest_season(np.maximum(old.episodes.lowest[0], least), seasons, least, delta)
    ours = claim.figures.get("policy_lower") if sound and standing_of(claim) == "proved" else None
    chance = claim.delta
    if ours is None and former > least and proved and not saved.record.behavior_is_estimated:
        ours = former + (claim.lower or 0.0)
        chance += delta
    ours = ours if isinstance(ours, float) and seasons == 1 else least
    why = f"{proof} of the new policy alone, in every season"
    levels = [
        Level("the level proved of the new policy", ours, chance, why),
        Level("the level of former practice", former, delta, "the old log, with enough episodes"),
    ]
    inside = [least < value < most for value in (ours, former)]
    return [x if y else x._replace(value=None) for x, y in zip(levels, inside, strict=True)]


def followed_in(saved: Result, rows: NewRows, among: BoolArray) -> dict[tuple[str, ...], Rate]:
    """Counts decisions as advised, by situations in which the policy rules something out."""
    table = saved.table
    some = run_sums((table.probability <= UNCHANGED).astype(np.int64), table.pairs.offsets) > 0
    ours = among[run_owners(rows.log.episode_offsets)]
    decisions = np.bincount(rows.log.state[ours], minlength=some.size)
    as_advised = np.bincount(rows.log.state[ours & rows.advised], minlength=some.size)
    rates = dict[tuple[str, ...], Rate]()
    for s in np.flatnonzero(some & ~table.quiet & (decisions[: some.size] > 0)).tolist():
        rate = Rate.of(np.arange(decisions[s]) < as_advised[s])
        rates[table.vocabulary.state_name(s)] = rate
    return dict(sorted(rates.items(), key=lambda one: one[1].happened - one[1].total))


def drifted(old: DecisionLog, new: DecisionLog) -> tuple[Check, Check]:
    """Compares the effects and the rewards of actions in old rows with those in new ones."""
    logs = [old.with_outcomes(), new.with_outcomes()]
    sizes = np.max([(log.pairs.num_states, log.pairs.num_actions) for log in logs], axis=0)
    names = ("state", "action", "reward", "next_state", "terminated", "truncated")
    columns = {name: np.concatenate([getattr(log, name) for log in logs]) for name in names}
    early, late = (log.episode_offsets for log in logs)
    columns["episode_offsets"] = np.concatenate([early, early[-1] + late[1:]])
    columns["number"] = np.arange(early.size + late.size - 2)
    given = given_log(DecisionLog(Pairs.full(*sizes.tolist()), **columns))
    is_late = np.asarray(given.log.number) >= early.size - 1
    part = is_late[run_owners(given.log.episode_offsets)].astype(np.int64)
    given = given._replace(parts=[part])
    return next_state_by_time(given), reward_by_time(given)
