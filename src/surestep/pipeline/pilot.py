"""`pilot`: plans a pilot of a result's policy, or judges one by its episodes."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from surestep._arrays import FloatArray
from surestep._files import read_path, read_whole
from surestep._json import converted
from surestep.checks import CHECKS, failed
from surestep.errors import InvalidParameter, InvalidResult, ResultMismatch
from surestep.followup import bets
from surestep.followup.episodes import Measure
from surestep.followup.pilot import (
    ANSWER,
    DAY,
    PLAN,
    Forecast,
    Pilot,
    PilotPlan,
    judged,
    toml_of,
    wagers,
)
from surestep.kernels.runs import discounted_returns
from surestep.pipeline.certify import SavedPolicy
from surestep.pipeline.new_rows import NewRows, measures_of, new_rows
from surestep.pipeline.verify import Verification
from surestep.pipeline.watch import drifted, old_files
from surestep.rehearsal.sources import Residuals, Simulated, size_of
from surestep.rehearsal.worlds import DrawnFromPosterior
from surestep.report.page import page
from surestep.report.pilot import answer_sections, plan_sections
from surestep.results.record import LEVEL, Record, usual
from surestep.results.result import Result, load
from surestep.results.unfinished import RUN

WORLDS, PILOTS, DRAWN = 40, 5, 1_000  # worlds, pilots in each, and episodes that they draw from
CHANCE = 0.8  # with which a pilot that is long enough proves a gain
LEAST, MOST = 20, 20_000  # episodes of a pilot that is simulated
MOST_PAST = 2_000  # the same with a past control, whose bound takes longer
TWO_ERRORS = 2.12  # standard errors: a one-sided test at 0.1 with a power of 80 %
LEAST_SPREAD = 0.01  # of the range, for stakes
SEED = 0


class World(NamedTuple):
    """Returns of episodes in a simulated world, under the new policy and under the current one."""

    ours: FloatArray
    theirs: FloatArray


def pilot(
    result: Result | str | Path,
    frame: object = None,
    *,
    plan: Pilot | str | Path | None = None,
    log: object = None,
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
    saved = result if isinstance(result, Result) else load(read_path(result))
    read = partial(new_rows, saved, allow_query=allow_query, memory_limit=memory_limit)
    there = old_files(saved.record, result) if log is None else log
    digest = hashlib.sha256(saved.files()[RUN]).hexdigest()
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
    }
    given = {name: value for name, value in told.items() if value is not None}
    if frame is None:
        past = None if there is None else read(there, time=time)
        name = "" if isinstance(result, Result) else read_path(result).resolve().name
        made = planned(saved, {"digest": digest, "result": name} | given, past)
        sections = plan_sections(made, saved.record)
        return replace(made, report=page(sections[0].title, "Plan of a pilot", sections))
    if given or plan is None:
        raise InvalidParameter(
            f"{next(iter(given), 'new rows')} is given, but no plan or beside one; expected rows "
            "and the plan that was made before them, which has all else"
        )
    fixed = plan if isinstance(plan, Pilot) else read_plan(plan)
    terms = fixed.plan
    if terms.digest != digest:
        raise ResultMismatch("the plan is of another result: the digest of run.json is not its own")
    concurrent = terms.control == "concurrent"
    rows = read(
        frame, arm=terms.arm if concurrent else None, pending=terms.pending, time=terms.time
    )
    episodes_seen = rows.episodes
    drift = ""
    if not concurrent:
        if there is None:
            raise InvalidParameter("the control are past episodes; expected the old log (log)")
        before = read(there)
        episodes_seen = rows.episodes.after(before.episodes, (terms.old, terms.new))
        changed = failed(drifted(before.log, rows.log))
        drift = (
            f"{CHECKS[changed[0].code].broken}: past episodes are no control." if changed else ""
        )
    answer = judged(
        terms,
        hashlib.sha256(fixed.toml.encode()).hexdigest(),
        episodes_seen,
        today or datetime.now(UTC).date().isoformat(),
        drift,
    )
    sections = answer_sections(answer, saved.record)
    report = page(sections[0].title, "A pilot", sections)
    return Pilot(plan=terms, toml=fixed.toml, report=report, answer=answer)


def verify_pilot(
    directory: str | Path,
    log: object,
    *,
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
    name = read_plan(folder).plan.result
    result = next((x for x in (folder.parent / name, Path(name)) if (x / RUN).is_file()), None)
    if result is None or not name:
        raise InvalidResult(f"{folder}: its plan is of the result {name!r}; expected it beside it")
    try:
        today = str(json.loads(read_whole(folder / ANSWER))["today"])
    except (ValueError, KeyError, TypeError):
        raise InvalidResult(f"{folder / ANSWER} is not what `surestep pilot` writes") from None
    made = pilot(
        result,
        log,
        plan=folder,
        today=today,
        allow_query=allow_query,
        memory_limit=memory_limit,
    )
    for name, content in made.files.items():
        if read_whole(folder / name) != content:
            return Verification("refuted", f"{name} comes out otherwise")
    return Verification("same bytes", compared=("the plan", "the result", "the rows"))


def read_plan(folder: str | Path) -> Pilot:
    """Reads the plan in a folder."""
    path = read_path(folder) / PLAN
    text = read_whole(path).decode()
    try:
        plan: PilotPlan = converted(tomllib.loads(text), PilotPlan, str(path), InvalidParameter)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidParameter(f"{path} is not written as TOML: {problem}") from None
    return Pilot(plan=plan, toml=text, report="")


def planned(saved: Result, given: dict[str, Any], past: NewRows | None) -> Pilot:
    """Returns a plan with what to expect of it; stakes follow from old returns."""
    record = saved.record
    if not saved.table.changed.any():
        raise InvalidParameter("the new policy changes nothing, so that there is nothing to pilot")
    measures = [
        msgspec.structs.replace(measure, **moments(measure, m, record, past))
        for m, measure in enumerate(measures_of(record))
    ]
    first = measures[0]
    worlds = worlds_of(saved, first, past)
    gain = float(np.mean([ours.mean() - theirs.mean() for ours, theirs in worlds]))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    said = {"made": made, "delta": record.parameters.delta, "measures": measures}
    content = msgspec.to_builtins(said | {"episodes": LEAST} | given)
    plan: PilotPlan = converted(content, PilotPlan, "the plan", InvalidParameter)
    share = float(np.mean([chance for _, chance in plan.schedule]))
    if "episodes" not in given:
        both = first.variance / (share * (1 - share))
        wanted = both * TWO_ERRORS**2 / max(gain, 1e-9) ** 2  # as a t-test needs
        plan = msgspec.structs.replace(plan, episodes=int(min(max(wanted, LEAST), MOST / 16)))
        needed = quantile(simulated(plan, worlds, share))
        plan = msgspec.structs.replace(plan, episodes=int(min(max(needed, LEAST), MOST)))
    when = simulated(plan, worlds, share)
    needed = quantile(when)
    starts = None if past is None else past.episodes.starts
    lasted = 0.0 if starts is None else float(np.ptp(starts)) / DAY
    span = first.high - first.low
    exposed = plan.episodes * (share if plan.control == "concurrent" else 1.0)
    low = record.estimates.get("held_out_low", gain)
    forecast = Forecast(
        worlds=0 if past is None else WORLDS,
        gain=gain,
        needed=int(needed) if needed < np.inf else None,
        most=min(16 * plan.episodes, MOST),
        proved=float(np.mean(when <= plan.episodes)),
        at_risk=exposed * span,
        at_risk_likely=exposed * max(-low, 0.0),
        a_day=(starts.size - 1) / lasted if starts is not None and lasted > 0 else None,
        pairs=math.ceil(span * math.log(1 / plan.delta) / (2 * gain)) if gain > 0 else 0,
    )
    return Pilot(plan=plan, toml=toml_of(plan), report="", forecast=forecast)


def quantile(when: FloatArray) -> float:
    """Returns after how many episodes 80 % of pilots have proved a gain."""
    return float(np.quantile(when, CHANCE, method="higher"))


def moments(measure: Measure, m: int, record: Record, past: NewRows | None) -> dict[str, float]:
    """Returns the mean and the variance of old returns; without any, of half of the range."""
    span = measure.high - measure.low
    middle, spread = measure.low + span / 2, span / 4
    if past is not None and not past.episodes.pending.all():
        known = past.episodes.returns[m, ~past.episodes.pending]
        middle, spread = float(known.mean()), float(known.std())
    elif record.baseline is not None and m == 0:
        baseline = record.baseline
        error = (baseline.high - baseline.low) / 2 / usual(LEVEL)
        middle, spread = baseline.mean, error * math.sqrt(baseline.episodes)
    variance = max(spread, LEAST_SPREAD * span) ** 2
    return {"middle": min(max(middle, measure.low), measure.high), "variance": variance}


def worlds_of(saved: Result, measure: Measure, past: NewRows | None) -> list[World]:
    """Draws returns of both policies in worlds as the stress test draws them.

    Without the log, the gain is drawn from its interval, and added to returns of about the spread
    and range that the record has.
    """
    rng = np.random.default_rng(SEED)
    worlds = list[World]()
    if past is None:
        estimates = saved.record.estimates
        gain = saved.estimated_gain
        width = estimates.get("held_out_high", gain) - estimates.get("held_out_low", gain)
        error = width / 2 / usual(1 - saved.record.parameters.delta)
        spread = math.sqrt(measure.variance)
        for drawn in rng.normal(gain, error, WORLDS):
            returns = measure.middle + spread * rng.standard_normal((2, DRAWN))
            returns[0] += drawn
            worlds.append(World(*np.clip(returns, measure.low, measure.high)))
        return worlds
    made = SavedPolicy.of(saved, past.source, [], None)
    problem = made.problem
    steps = size_of(problem).horizon
    for _ in range(WORLDS):
        world = DrawnFromPosterior(weight=1.0).world(problem, rng)
        drawn_returns = list[FloatArray]()
        for policy in (made.policy, problem.behavior):
            noise = Residuals.of(problem, world.truth)
            log = Simulated.of(world.truth, policy, noise).record(DRAWN, steps, rng).log
            assert log is not None
            earned = np.empty(log.num_steps)
            discounted_returns(log.episode_offsets, log.reward, problem.single_discount, earned)
            drawn_returns.append(
                np.clip(earned[log.episode_offsets[:-1]], measure.low, measure.high)
            )
        worlds.append(World(*drawn_returns))
    return worlds


def simulated(plan: PilotPlan, worlds: Sequence[World], share: float) -> FloatArray:
    """Returns after how many episodes simulated pilots prove a gain; ∞ where they do not."""
    rng = np.random.default_rng(SEED)
    wager, _ = wagers(plan, plan.measures[0])
    many = min(16 * plan.episodes, MOST)
    looks = np.unique(np.geomspace(1, min(many, MOST_PAST), 16).astype(np.int64))
    found = list[float]()
    for ours, theirs in [world for world in worlds for _ in range(PILOTS)]:
        if plan.control == "past":
            bounds = bets.past_bounds(wager, theirs, rng.choice(ours, looks[-1]), looks)
            found.append(float(min(looks[bounds > 0], default=np.inf)))
        else:
            new = rng.random(many) < share
            returns = np.where(new, rng.choice(ours, many), rng.choice(theirs, many))
            series = bets.gains(wager, new, np.full(many, share), returns)
            found.append(float(bets.reached(series, wager, np.zeros(1))[0]))
    return np.array(found)
