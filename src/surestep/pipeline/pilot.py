"""`pilot`: plans a pilot of a result's policy, or judges one by its episodes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from surestep._arrays import FloatArray, run_lengths
from surestep._files import read_path, read_whole
from surestep._json import converted
from surestep.certificates import Stitched
from surestep.certificates.registry import Asked
from surestep.checks import CHECKS, failed
from surestep.description import read_toml
from surestep.errors import InvalidParameter, InvalidResult, ResultMismatch, said
from surestep.followup import bets
from surestep.followup.episodes import Measure
from surestep.followup.pilot import (
    ANSWER,
    DAY,
    PLAN,
    Forecast,
    Pilot,
    PilotPlan,
    dated,
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
from surestep.results.result import Result, load
from surestep.results.unfinished import RUN

WORLDS, PILOTS, DRAWN = 40, 5, 1_000  # worlds, pilots in each, and episodes that they draw from
CHANCE = 0.8  # with which a pilot that is long enough proves a gain
SPARE = 1.1  # times the episodes that simulated pilots need are planned
LEAST, MOST = 20, 20_000  # episodes of a pilot that is simulated
MOST_PAST = 2_000  # the same with a past control, whose bound takes longer
TWO_ERRORS = 2.12  # standard errors: a one-sided test at 0.1 with a power of 80 %
LEAST_SPREAD = 0.01  # of the range, for stakes
SEED = 0
World = tuple[FloatArray, FloatArray]  # returns under the new policy, and under the current one


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
    }
    given = {name: value for name, value in told.items() if value is not None}
    if frame is None:
        name = "" if in_memory else read_path(result).resolve().name
        past = read(found(there))
        made = planned(saved, {"digest": digest, "result": name} | given, past)
        sections = plan_sections(made, saved.record)
        return replace(made, report=page(sections[0].title, "Plan of a pilot", sections))
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
    rows = read(
        frame, arm=terms.arm if concurrent else None, pending=terms.pending, time=terms.time
    )
    episodes_seen = rows.episodes
    drift = ""
    if not concurrent:
        before = read(found(there))
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
    sections = answer_sections(answer, saved.record)
    report = page(sections[0].title, "A pilot", sections)
    return Pilot(plan=terms, toml=fixed.toml, report=report, answer=answer)


def found(log: object) -> object:
    """Returns the log that a result was made from; refused where it is not there."""
    if log is None:
        raise InvalidParameter(
            "the log that the result was made from is neither here nor beside the result; expected "
            f"it as {said('log=…', '--log')}: returns and worlds are drawn from it"
        )
    return log


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
    plan: PilotPlan = converted(read_toml(path), PilotPlan, PLAN, InvalidParameter)
    return Pilot(plan=plan, toml=read_whole(path).decode(), report="")


def planned(saved: Result, given: dict[str, Any], past: NewRows) -> Pilot:
    """Returns a plan with what to expect of it; stakes follow from old returns."""
    record = saved.record
    if not saved.table.changed.any():
        raise InvalidParameter("the new policy changes nothing, so that there is nothing to pilot")
    measures = list[Measure]()
    for m, measure in enumerate(measures_of(record)):
        known = np.clip(past.episodes.returns[m], measure.low, measure.high)
        least = LEAST_SPREAD * (measure.high - measure.low)
        stakes = {"middle": float(known.mean()), "variance": max(float(known.std()), least) ** 2}
        measures.append(msgspec.structs.replace(measure, **stakes))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    known_already = {"made": made, "delta": record.parameters.delta, "measures": measures}
    content = msgspec.to_builtins(known_already | {"episodes": LEAST} | given)
    plan: PilotPlan = converted(content, PilotPlan, "the plan", InvalidParameter)
    if plan.time is None and (plan.deadline is not None or isinstance(plan.share, list)):
        dated(past.episodes, "deadline, share")
    first = measures[0]
    worlds = worlds_of(saved, first, past)
    shown = float(np.mean([ours.mean() - theirs.mean() for ours, theirs in worlds]))
    gain = saved.estimated_gain
    share = float(np.mean([chance for _, chance in plan.schedule]))
    if "episodes" not in given:
        both = first.variance / (share * (1 - share))
        wanted = both * (TWO_ERRORS / max(shown, 1e-9)) ** 2  # as a t-test needs
        plan = msgspec.structs.replace(plan, episodes=int(min(max(wanted, LEAST), MOST / 16)))
        needed = float(np.quantile(simulated(plan, worlds, share), CHANCE, method="higher"))
        wanted = SPARE * needed if needed < np.inf else plan.episodes
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
    """Draws returns of both policies in worlds as the stress test draws them.

    Episodes are recorded as long as those of the log; what is cut counts as it does in a pilot.
    """
    rng = np.random.default_rng(SEED)
    whole_episodes = [Asked.of(Stitched.name)]  # a kind that looks at them, so that rewards vary
    made = SavedPolicy.of(saved, past.source, whole_episodes, None)
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
            earned = np.empty(log.num_steps)
            discounted_returns(offsets, log.reward, measure.discount, earned)
            left = measure.discount ** run_lengths(offsets) * ~log.terminated[offsets[1:] - 1]
            whole = earned[offsets[:-1]] + cuts * left * rest
            drawn.append(np.clip(whole, measure.low, measure.high))
    return [*zip(drawn[::2], drawn[1::2], strict=True)]


def simulated(plan: PilotPlan, worlds: Sequence[World], share: float) -> FloatArray:
    """Returns after how many episodes simulated pilots prove a gain; ∞ where they do not."""
    rng = np.random.default_rng(SEED)
    wager, _ = wagers(plan, plan.measures[0])
    many = min(16 * plan.episodes, MOST)
    looks = np.unique(np.geomspace(1, min(many, MOST_PAST), 16).astype(np.int64))
    found = list[float]()
    pilots = 1 if plan.control == "past" else PILOTS
    for ours, theirs in [world for world in worlds for _ in range(pilots)]:
        if plan.control == "past":
            bounds = bets.past_bounds(wager, theirs, rng.choice(ours, looks[-1]), looks)
            found.append(float(min(looks[bounds > 0], default=np.inf)))
        else:
            new = rng.random(many) < share
            returns = np.where(new, rng.choice(ours, many), rng.choice(theirs, many))
            series = bets.gains(wager, new, np.full(many, share), returns)
            found.append(float(bets.reached(series, wager, np.zeros(1))[0]))
    return np.array(found)
