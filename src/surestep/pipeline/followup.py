"""Follows up a result: `pilot` plans or judges a pilot, `watch` observes an adopted policy."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    run_lengths,
    run_owners,
    run_sums,
)
from surestep._files import read_path, read_whole
from surestep._json import converted
from surestep._words import number
from surestep.certificates import Stitched
from surestep.certificates.registry import Asked, standing_of
from surestep.checks import CHECKS, Check, failed
from surestep.checks.drift import next_state_by_time, reward_by_time
from surestep.checks.running import given_log
from surestep.checks.words import forbids_proof
from surestep.description import read_toml
from surestep.errors import InvalidLog, InvalidParameter, InvalidResult, ResultMismatch, said
from surestep.followup import bets
from surestep.followup.episodes import Episodes, Measure
from surestep.followup.lots import LOTS, in_order
from surestep.followup.pilot import (
    ANSWER,
    ANSWER_PAGE,
    DAY,
    PLAN,
    PLAN_PAGE,
    Forecast,
    Pilot,
    PilotPlan,
    dated,
    judged,
    toml_of,
    wagers,
    with_lots,
)
from surestep.followup.watching import ANOTHER, Level, Watch, detect, lowest_season, paired
from surestep.kernels.runs import discounted_returns
from surestep.model import DecisionLog, Pairs
from surestep.model.statements import STOPPING
from surestep.pipeline.certify import SavedPolicy
from surestep.pipeline.new_rows import NewRows, measures_of, new_rows
from surestep.pipeline.verify import Verification, check_only, same_files
from surestep.rehearsal import DrawnFromPosterior, Rate
from surestep.rehearsal.sources import Residuals, Simulated, size_of
from surestep.report.followup import answer_sections, plan_sections, watch_sections
from surestep.report.page import page
from surestep.results.findings import UNCHANGED, is_proved
from surestep.results.record import InputFile, Record, digests_of
from surestep.results.result import Result, with_table
from surestep.results.unfinished import RUN

WORLDS, PILOTS, DRAWN = 40, 5, 1_000  # worlds, pilots in each, and episodes that they draw from
CHANCE = 0.8  # that a pilot of sufficient length proves a gain
LEAST, MOST = 20, 20_000  # episodes of a pilot that is simulated
SEED = 0
WATCH_SETTINGS = ("within", "alpha", "holdout", "seasons", "time", "pending")
World = tuple[FloatArray, FloatArray]  # returns under the new policy, and under the current one


def pilot(
    result: Result | str | Path,
    frame: object = None,
    *,
    plan: Pilot | str | Path | None = None,
    log: object = None,
    another_log: object = None,
    control: Literal["concurrent", "past"] | None = None,
    share: float | Sequence[tuple[str, float]] | None = None,
    episodes: int | None = None,
    delta: float | None = None,
    arm: str | None = None,
    new: str | None = None,
    old: str | None = None,
    time: str | None = None,
    pending: str | None = None,
    deadline: float | None = None,
    until: str | None = None,
    draw: int | None = None,
    today: str | None = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
) -> Pilot:
    """Plans a pilot of the new policy; with rows of one, judges it.

    Parameters
    ----------
    result : Result, str or path
        The result whose policy is tried, or its folder.
    frame : str, path, Description or table, optional
        The episodes of the pilot, with the columns of the log that the result was made from, and
        one that says the arm. Without them, the pilot is planned.
    plan : Pilot, str or path, optional
        The plan, or its folder, by which episodes are judged.
    log : str, path, Description or table, optional
        The log that the result was made from: for a plan, and as past control. Default: the files
        of its names, if they are still here or beside the result.
    another_log : str, path, Description or table, optional
        A log that the result was not made from, in place of `log`; the plan says so.
    control : {"concurrent", "past"}, default "concurrent"
        What the new policy is compared with: episodes that are drawn by lot to go on as before, or
        those of the old log. A past control makes a gain believed at most.
    share : float or sequence of (date, float), default 0.5
        The chance with which an episode gets the new policy; of a ramp-up, from which date on.
    episodes : int, optional
        The episodes planned, of both arms. Default: as many as prove a gain with a chance of 80 %.
    delta : float in (0, 1), optional
        The chance that a claim is wrong (δ). Default: the result's own.
    arm : str, default "arm"
        The column of the arm.
    new : str, default "new"
        Its value in episodes that get the new policy.
    old : str, default "old"
        Its value in the others.
    time : str, optional
        The column that says when an episode began, where the result's log had none.
    pending : str, optional
        A column that marks episodes whose outcome is not known yet.
    deadline : float, optional
        Days after its start by which an outcome may be pending; then it counts as the worst.
    until : str, optional
        The date up to which a second round may read the rows of the pilot.
    draw : int, optional
        Draw so many lots, at least as many as episodes are planned: a file of arms, into which
        staff write the episode that got each.
    today : str, optional
        The date by which outcomes are overdue. Default: today.
    allow_query : bool, default False
        Run the query that the result was made by.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.

    Returns
    -------
    Pilot
        The plan with a forecast; or the answer.

    Raises
    ------
    InvalidLog
        An episode is not as the plan says: in no arm or in both, before the plan, or with a return
        beyond the declared range.
    InvalidParameter
        An argument contradicts its type, or the plan.

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> table |= {"episode": list(range(60)), "step": [0] * 60}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), ends="complete", worlds=0)
    >>> plan = surestep.pilot(result, log=table, episodes=50)
    >>> rows = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> rows |= {"episode": list(range(60)), "step": [0] * 60, "arm": ["new", "old"] * 30}
    >>> surestep.pilot(result, rows, plan=plan).answer.verdict
    'proved better'
    """
    saved = with_table(result)
    read = partial(new_rows, saved, allow_query=allow_query, memory_limit=memory_limit)
    in_memory = isinstance(result, Result)
    run = saved.files()[RUN] if in_memory else read_whole(read_path(result) / RUN)
    digest = hashlib.sha256(run).hexdigest()
    told = {
        "control": control,
        "share": share,
        "episodes": episodes,
        "delta": delta,
        "arm": arm,
        "new": new,
        "old": old,
        "time": time,
        "pending": pending,
        "deadline": deadline,
        "until": until,
        "lots": None if draw is None else LOTS,
        "another_log": another_log,
    }
    given: dict[str, object] = {name: x for name, x in told.items() if x is not None}
    if frame is None:
        name = "" if in_memory else read_path(result).resolve().name
        past = found(old_rows(saved, read, result, log, another=another_log))
        if another_log is not None:
            given["another_log"] = past.counts_sha256
        made = planned(saved, {"digest": digest, "result": name} | given, past)
        made = made if draw is None else with_lots(made, draw)
        return replace(made, report=page("Plan of a pilot", plan_sections(made, saved.record)))
    if given or plan is None:
        raise InvalidParameter(
            f"{next(iter(given), 'no plan')} is given beside new rows; expected rows and the plan "
            "that was made before them, which fixes all else"
        )
    fixed = plan if isinstance(plan, Pilot) else read_plan(plan)
    terms = fixed.plan
    if terms.digest != digest:
        raise ResultMismatch("the plan is of another result: the digest of run.json is not its own")
    concurrent = terms.control == "concurrent"
    arm = terms.arm if concurrent and not terms.lots else None
    rows = read(frame, arm=arm, pending=terms.pending, time=terms.time)
    episodes_seen = rows.episodes
    if terms.lots:
        episodes_seen = in_order(fixed.lots, terms.lots_digest, rows.episodes)
    drift = ""
    if not concurrent:
        before = found(old_rows(saved, read, result, log, digest=terms.another_log))
        episodes_seen = rows.episodes.after(before.episodes, (terms.old, terms.new))
        changed = failed(drifted(before.log, rows.log))
        drift = (
            f"{CHECKS[changed[0].code].broken}: past episodes are no control." if changed else ""
        )
    answer = judged(
        terms,
        fixed.digest,
        episodes_seen,
        today or datetime.now(UTC).date().isoformat(),
        drift,
    )
    beside = {PLAN_PAGE: fixed.report.encode(), str(terms.lots): fixed.lots.encode()}
    answer = replace(answer, beside=digests_of({name: x for name, x in beside.items() if x}))
    return Pilot(
        plan=terms,
        toml=fixed.toml,
        report=page("A pilot", answer_sections(answer, saved.record)),
        answer=answer,
    )


def old_rows(
    saved: Result,
    read: Callable[[object], NewRows],
    result: object,
    log: object,
    *,
    another: object = None,
    digest: str | None = None,
) -> NewRows | None:
    """Reads the log that a result was made from, or `another`; returns None where there is none.

    Refuses a `log` whose counts are not those of the result (or of `digest`, if it is given), or
    with other times or further signals.
    """
    if log is not None and another is not None:
        raise InvalidParameter(
            f"{said('log and another_log are', '--log and --another-log are')} given; expected one"
        )
    if another is not None:
        return read(another)
    there = old_files(saved.record, result) if log is None else log
    if there is None:
        return None
    rows = read(there)
    same = rows.counts_sha256 == (digest or saved.record.counts_sha256)
    beside = saved.record.beside_counts if digest is None else None
    if not same or beside not in (None, rows.source.beside_counts()):
        what = (
            "has other times or further signals than those" if same else "does not have the counts"
        )
        raise ResultMismatch(
            f"the old log {what} that the result was made from; expected the same "
            f"log, or {said('another_log=…', '--another-log')} before it, which is then recorded"
            if digest is None
            else "the old log does not have the counts of the one that the plan was made with"
        )
    return rows


def found(rows: NewRows | None) -> NewRows:
    """Returns the rows of the old log; refuses None, which means that it is missing."""
    if rows is None:
        raise InvalidParameter(
            "the log that the result was made from is neither here nor beside the result; expected "
            f"it as {said('log=…', '--log')}: returns and worlds are drawn from it"
        )
    return rows


def verify_pilot(
    directory: str | Path,
    log: object,
    *,
    old_log: object = None,
    allow_query: bool = False,
    memory_limit: str | None = None,
) -> Verification:
    """Judges a pilot again by its plan, and compares the bytes of the answer.

    Parameters
    ----------
    directory : str or path
        The folder of the plan and the answer. The result that the plan names is beside it, or here.
    log : str, path, Description or table
        The rows that were judged.
    old_log : str, path, Description or table, optional
        The log of a past control. Default: the files of its names, here or beside the result.
    allow_query : bool, default False
        Run the query that the result was made by.
    memory_limit : str, optional
        Such as "2GB"; the rest spills to disk.

    Returns
    -------
    Verification
        Whether all bytes are the same; else the first file that differs.

    Raises
    ------
    InvalidResult
        There is no such result, or no answer.

    Examples
    --------
    See `surestep verify`.
    """
    folder = read_path(directory)
    plan = read_plan(folder).plan
    check_only(folder, {PLAN, PLAN_PAGE, ANSWER, ANSWER_PAGE, plan.lots or PLAN}, of="the pilot")
    result = result_beside(folder, plan.result)
    try:
        today = str(json.loads(read_whole(folder / ANSWER))["today"])
    except (ValueError, KeyError, TypeError):
        raise InvalidResult(f"{folder / ANSWER} is not what `surestep pilot` writes") from None
    made = pilot(
        result,
        log,
        plan=folder,
        log=old_log,
        today=today,
        allow_query=allow_query,
        memory_limit=memory_limit,
    )
    return same_files(folder, made.files, ("the plan", "the result", "the rows"))


def result_beside(place: Path, name: str) -> Path:
    """Finds the result that a plan or a watch is of, beside it or here."""
    for path in (place.parent / name, Path(name)):
        if name and (path / RUN).is_file():
            return path
    raise InvalidResult(f"{place} is of the result {name!r}; expected it beside that, or here")


def read_plan(folder: str | Path) -> Pilot:
    """Reads the plan in a folder."""
    path = read_path(folder) / PLAN
    plan: PilotPlan = converted(read_toml(path), PilotPlan, PLAN, InvalidParameter)
    lots = read_whole(path.parent / plan.lots).decode("utf-8-sig", "replace") if plan.lots else ""
    there = path.parent / PLAN_PAGE
    report = read_whole(there).decode(errors="replace") if there.exists() else ""
    return Pilot(plan=plan, toml=read_whole(path).decode(), report=report, lots=lots)


def planned(saved: Result, given: dict[str, Any], past: NewRows) -> Pilot:
    """Returns a plan with what to expect of it; stakes follow from old returns."""
    record = saved.record
    if not saved.table.changed.any():
        raise InvalidParameter("the new policy changes nothing, so that there is nothing to pilot")
    measures = list[Measure]()
    for m, measure in enumerate(measures_of(record)):
        known = np.clip(past.episodes.returns[m], measure.low, measure.high)
        spread = max(float(known.std()), 0.01 * (measure.high - measure.low))
        measures.append(
            msgspec.structs.replace(measure, middle=float(known.mean()), variance=spread**2)
        )
    usual = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "delta": record.parameters.delta,
        "measures": measures,
        "episodes": LEAST,
    }
    content = msgspec.to_builtins(usual | given)
    plan: PilotPlan = converted(content, PilotPlan, "the plan", InvalidParameter)
    if plan.time is None and (plan.deadline is not None or isinstance(plan.share, list)):
        dated(past.episodes, "deadline, share")
    first = measures[0]
    worlds = worlds_of(saved, first, past)
    gain = saved.estimated_gain
    share = float(np.mean([chance for _, chance in plan.schedule]))
    if "episodes" not in given:
        shown = float(np.mean([ours.mean() - theirs.mean() for ours, theirs in worlds]))
        # As a one-sided t-test at 0.1 needs for a power of 80 %: 2.12 standard errors.
        wanted = first.variance / (share * (1 - share)) * (2.12 / max(shown, 1e-9)) ** 2
        plan = msgspec.structs.replace(plan, episodes=int(min(max(wanted, LEAST), MOST / 16)))
        needed = float(np.quantile(simulated(plan, worlds, share), CHANCE, method="higher"))
        wanted = 1.1 * needed if needed < np.inf else plan.episodes
        plan = msgspec.structs.replace(plan, episodes=int(min(max(wanted, LEAST), MOST)))
    when = simulated(plan, worlds, share)
    needed = float(np.quantile(when, CHANCE, method="higher"))
    starts = past.episodes.starts
    lasted = 0.0 if starts is None else float(np.ptp(starts)) / DAY
    span = first.high - first.low
    exposed = plan.episodes * (share if plan.control == "concurrent" else 1.0)
    forecast = Forecast(
        worlds=WORLDS,
        gain=gain,
        needed=int(needed) if needed < np.inf else None,
        most=min(16 * plan.episodes, MOST),
        proved=float(np.mean(when <= plan.episodes)),
        at_risk=exposed * span,
        at_risk_likely=exposed * max(-record.estimates.get("held_out_low", gain), 0.0),
        a_day=(len(past.episodes) - 1) / lasted if lasted > 0 else None,
        cut=float(np.mean(past.episodes.lowest[0] < past.episodes.highest[0])),
        pairs=math.ceil(span * math.log(1 / plan.delta) / (2 * gain)) if gain > 0 else 0,
    )
    return Pilot(plan=plan, toml=toml_of(plan), report="", forecast=forecast)


def worlds_of(saved: Result, measure: Measure, past: NewRows) -> list[World]:
    """Draws returns of both policies in worlds drawn from the posterior of the log.

    Episodes are recorded as long as those of the log; what is cut counts as it does in a pilot.
    """
    rng = np.random.default_rng(SEED)
    whole_episodes = [Asked.of(Stitched.name)]  # a kind that looks at them, so that rewards vary
    made = SavedPolicy.of(saved, past.source, whole_episodes, {})
    problem = made.problem
    steps = size_of(problem).horizon
    cuts = bool((past.episodes.lowest[0] < past.episodes.highest[0]).any())
    drawn = list[FloatArray]()
    for _ in range(WORLDS):
        truth = DrawnFromPosterior(weight=1.0).world(problem, rng).truth
        noise = Residuals.of(problem, truth)
        for policy, rest in ((made.policy, measure.low), (problem.behavior, measure.high)):
            log = Simulated.of(truth, policy, noise).record(DRAWN, steps, rng).log
            assert log is not None
            offsets = log.episode_offsets
            earned = discounted_returns(offsets, log.reward, measure.discount)
            left = measure.discount ** run_lengths(offsets) * ~log.terminated[offsets[1:] - 1]
            whole = earned[offsets[:-1]] + cuts * left * rest
            drawn.append(np.clip(whole, measure.low, measure.high))
    return [*zip(drawn[::2], drawn[1::2], strict=True)]


def simulated(plan: PilotPlan, worlds: Sequence[World], share: float) -> FloatArray:
    """Returns the number of episodes after which each simulated pilot proves a gain, or ∞."""
    rng = np.random.default_rng(SEED)
    wager, _ = wagers(plan, plan.measures[0])
    many = min(16 * plan.episodes, MOST)
    # The bound by a past control takes longer: fewer episodes, and 16 looks.
    looks = np.unique(np.geomspace(1, min(many, 2_000), 16).astype(np.int64))
    needed = list[float]()
    pilots = 1 if plan.control == "past" else PILOTS
    for ours, theirs in [world for world in worlds for _ in range(pilots)]:
        if plan.control == "past":
            bounds = bets.past_bounds(wager, theirs, rng.choice(ours, looks[-1]), looks)
            needed.append(float(min(looks[bounds > 0], default=np.inf)))
        else:
            new = rng.random(many) < share
            returns = np.where(new, rng.choice(ours, many), rng.choice(theirs, many))
            series = bets.gains(wager, new, np.full(many, share), returns)
            needed.append(float(bets.reached(series, wager, np.zeros(1))[0]))
    return np.array(needed)


def watch(
    result: Result | str | Path,
    frame: object,
    *,
    within: int = 1_000,
    alpha: float = 0.05,
    holdout: tuple[str, str] | None = None,
    seasons: int = 1,
    log: object = None,
    another_log: object = None,
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
    another_log : str, path, Description or table, optional
        A log that the result was not made from, in place of `log`; the page says so.
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
    saved = with_table(result)
    read = partial(new_rows, saved, allow_query=allow_query, memory_limit=memory_limit)
    arm, value = holdout or (None, "")
    rows = read(frame, arm=arm, pending=pending, time=time)
    old = old_rows(saved, read, result, log, another=another_log)
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
    known = int(np.argmax(np.append(episodes.pending, True)))
    watched = [watched_values(episodes, m, held, known) for m in range(len(episodes.measures))]
    levels = [*levels_of(saved, old, seasons, holdout=arm is not None)]
    many = sum(level.value is not None for level in levels)  # each has its part of α
    names = [*episodes.ids]
    if episodes.starts is not None:
        days = [datetime.fromtimestamp(x, UTC).date() for x in episodes.starts.tolist()]
        names = [f"{name} ({day})" for name, day in zip(names, days, strict=True)]
    for i, level in enumerate(levels):
        values, _, places, high = watched[max(i - 1, 0)]  # the first measure has two levels
        if level.value is not None:
            # What must never happen has the level `high`, and nothing lies above that.
            seen = detect(
                values, min(level.value, high - 1e-9), high, within=within * many, alpha=alpha
            )
            levels[i] = level._replace(evidence=float(seen.evidence[-1:].sum()) / seen.goal)
            if seen.alarm is not None and seen.since is not None:
                alarm, since = places[[seen.alarm, seen.since]].tolist()
                levels[i] = level._replace(
                    evidence=1.0, alarm=names[alarm], since=names[since], place=alarm
                )
    followed = followed_in(saved, rows, ~held)
    answer = Watch(
        ids=tuple(names),
        known=known,
        values=watched[0][0],
        recorded=watched[0][1],
        places=watched[0][2],
        levels=tuple(levels),
        within=within,
        alpha=alpha,
        followed={state: rate for state, (rate, _) in followed.items()},
        before={state: before for state, (_, before) in followed.items()},
        unknown=int(np.count_nonzero(rows.pair < 0)),
        checks=None if old is None else drifted(old.log, rows.log),
        unit=saved.record.unit,
        inputs={
            RUN: hashlib.sha256(saved.files()[RUN]).hexdigest(),
            **{path.name: InputFile.of("log", path).sha256 for path in rows.source.files},
            **({} if old is None or another_log is None else {ANOTHER: old.counts_sha256}),
        },
    )
    return replace(answer, report=page("Watching an adopted policy", watch_sections(answer)))


def watch_json(watched: Watch, settings: Mapping[str, Any]) -> bytes:
    """Returns a watch as JSON, with the settings by which it is made again."""
    content = {"settings": settings} | watched.content()
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def verify_watch(file: Path, log: object, *, old_log: object = None, **how: Any) -> Verification:
    """Watches again by the settings that a JSON file of `watch` keeps, and compares all bytes."""
    try:
        kept = json.loads(read_whole(file))
        settings = kept["settings"]
        asked = {name: settings[name] for name in WATCH_SETTINGS}
        result = result_beside(file, Path(str(settings["result"])).name)
        beside = file.parent / Path(str(settings.get("another_log"))).name
        had_log = bool(kept["drift"])
    except (ValueError, KeyError, TypeError):
        raise InvalidResult(f"{file} is not what `surestep watch` writes") from None
    if "another_log" in settings:
        asked["another_log"] = old_log or (beside if beside.exists() else Path(beside.name))
    else:
        asked["log"] = old_log
    watched = watch(result, log, **asked, **how)
    if had_log and watched.checks is None:
        found(None)
    made = {
        file.name: watch_json(watched, settings),
        file.with_suffix(".html").name: watched.report.encode(),
    }
    return same_files(file.parent, made, ("the result", "the rows"))


def old_files(record: Record, result: object) -> list[str] | None:
    """Finds the unchanged log files of a result, here or beside it; None if any is missing."""
    wanted = [file for file in record.inputs if file.role == "log"]
    folders = [Path()] if isinstance(result, Result) else [Path(), read_path(result).parent]
    for folder in folders:
        paths = [folder / file.name for file in wanted if (folder / file.name).is_file()]
        if paths and [InputFile.of("log", path) for path in paths] == wanted:
            return [*map(str, paths)]
    return None


def levels_of(
    saved: Result, old: NewRows | None, seasons: int, *, holdout: bool
) -> Iterator[Level]:
    """Yields the level proved of the new policy, that of former practice, and further limits.

    If the claim has no bound of the new policy alone and the current policy is known, the first
    level is that of former practice plus the proved gain. With a holdout, levels are gains over it.

    Each further measure must not fall below a lower bound of former practice less the margin. With
    a holdout, the limit is minus the margin. For a measure with a limit of its own (`at_most`), it
    is minus that limit.
    """
    claim = saved.certificate
    delta = float(saved.record.parameters.delta)
    sound = not forbids_proof(saved.record.checks, claim) and not claim.assumes(STOPPING.code)
    proved = sound and is_proved(claim)
    proof = f"a proof by the {claim.kind} certificate"
    why = "the old log, with enough episodes"
    measures = measures_of(saved.record)
    practice = [
        one.low
        if old is None or holdout or one.at_most is not None
        else lowest_season(np.maximum(old.episodes.lowest[m], one.low), seasons, one.low, delta)
        for m, one in enumerate(measures)
    ]
    first, former = measures[0], practice[0]
    if holdout:
        yield Level(
            "the proved gain over the holdout", claim.lower if proved else None, claim.delta, proof
        )
        yield Level("the holdout itself", 0.0, 0.0, "")
    else:
        alone = sound and standing_of(claim) == "proved"
        ours = claim.figures.get("policy_lower") if alone else None
        chance = claim.delta
        if (
            ours is None
            and former > first.low
            and proved
            and not saved.record.behavior_is_estimated
        ):
            ours = former + (claim.lower or 0.0)
            chance += delta
        ours = ours if isinstance(ours, float) and seasons == 1 else first.low
        yield Level(
            "the level proved of the new policy",
            ours if first.low < ours < first.high else None,
            chance,
            f"{proof} of the new policy alone, in every season",
        )
        yield Level(
            "the level of former practice",
            former if first.low < former < first.high else None,
            delta,
            why,
        )
    for one, lowest in zip(measures[1:], practice[1:], strict=True):
        own = one.at_most is not None
        value = -one.margin if holdout else lowest - one.margin
        value = 0.0 - (one.at_most or 0.0) if own else value
        level = value if holdout or own or one.low < value < one.high else None
        told = old is not None and not own and not holdout
        yield Level(f"the limit of {one.name}", level, delta * told, why)


def watched_values(
    episodes: Episodes, m: int, held: BoolArray, known: int
) -> tuple[FloatArray, FloatArray, IntArray, float]:
    """Returns values by which a measure is watched, as recorded, their episodes, their upper limit.

    With a holdout they are differences to it, unless the measure has a limit of its own.
    """
    measure = episodes.measures[m]
    high = measure.high
    recorded = episodes.returns[m]
    for place in np.flatnonzero(recorded > high + 1e-9 * abs(high))[:1]:
        signal = f" of {measure.name}" * (m > 0)
        raise InvalidLog(
            f"episode {episodes.ids[place]!r} returned {number(float(recorded[place]))}{signal}, "
            f"expected at most {number(high)}, as was declared; make the result again with a range "
            "that holds"
        )
    # For an episode that a clock cut, the value that favours the new policy.
    values: FloatArray = np.where(held, episodes.lowest[m], episodes.highest[m])[:known]
    if held.any() and measure.at_most is None:
        values, places = paired(values, held[:known])
        high -= measure.low
        return np.minimum(values, high), paired(recorded[:known], held[:known])[0], places, high
    places = np.flatnonzero(~held[:known])
    return np.minimum(values[places], high), recorded[places], places, high


def followed_in(
    saved: Result, rows: NewRows, among: BoolArray
) -> dict[tuple[str, ...], tuple[Rate, float]]:
    """Counts decisions as advised in each situation in which the policy rules an action out.

    Beside them is the share by the current policy.
    """
    table = saved.table
    ruled_out = table.probability <= UNCHANGED
    some = run_sums(ruled_out.astype(np.int64), table.pairs.offsets) > 0
    before = 1 - run_sums(np.where(ruled_out, table.behavior, 0.0), table.pairs.offsets)
    ours = among[run_owners(rows.log.episode_offsets)]
    decisions = np.bincount(rows.log.state[ours], minlength=some.size)
    as_advised = np.bincount(rows.log.state[ours & rows.advised], minlength=some.size)
    rates = {
        table.vocabulary.state_name(s): (
            Rate.of(np.arange(decisions[s]) < as_advised[s]),
            float(before[s]),
        )
        for s in np.flatnonzero(some & ~table.quiet & (decisions[: some.size] > 0)).tolist()
    }
    return dict(sorted(rates.items(), key=lambda one: one[1][0].happened - one[1][0].total))


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
