"""Plans pilots, and judges from their episodes whether the new policy is better or worse.

A plan is fixed before the first episode. `judged` looks at the episodes in the order of their
starts, or of their lots, by the bets of `followup.bets`. Several measures are judged by
intersection and union: a pilot is proved better only if the first measure gains, and every other
one keeps its limit, each at the whole δ. If one of these is false, it passes with a chance of at
most δ, and all pass with no larger one. That it is worse may be said by any of M measures, each at
δ/M.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil, floor, sqrt
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from surestep._arrays import BoolArray, FloatArray, first_where
from surestep._words import number
from surestep.description import written
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.followup import bets, lots
from surestep.followup.episodes import Episodes, Measure

Share = Annotated[float, msgspec.Meta(ge=1e-9, le=1 - 1e-9)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Verdict = Literal["proved better", "believed better", "not yet", "stop: it is worse", "no claim"]
PLAN, ANSWER = "pilot.toml", "answer.json"
PLAN_PAGE, ANSWER_PAGE = "pilot.html", "answer.html"
DAY = 86_400.0  # seconds
FALSE_ALARMS = 0.001  # of the test of the share of arms
POINTS = 200  # of a line over time; a past control is looked at so often
SAME = 1e-9  # of the range: rounding, in returns
MOST = 1e100  # of a return
MOST_LOTS = 1_000_000
SHORT = 1.28  # standard errors by which an arm may be short: one-sided, 10 %


class PilotPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is fixed before the first episode of a pilot; the content of pilot.toml."""

    made: str
    digest: str  # of run.json of the result
    result: str = ""  # its folder, from that of the plan
    control: Literal["concurrent", "past"] = "concurrent"
    delta: Share
    episodes: Annotated[int, msgspec.Meta(ge=2, le=1_000_000_000)]
    measures: Annotated[list[Measure], msgspec.Meta(min_length=1)]
    arm: Name = "arm"
    new: Name = "new"
    old: Name = "old"
    share: Share | list[tuple[str, Share]] = 0.5
    time: Name | None = None
    pending: Name | None = None
    lots: Name | None = None  # a file beside the plan
    lots_digest: str | None = None  # of the arms in it
    deadline: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None  # days
    until: str | None = None
    another_log: str | None = None  # the digest of its counts, if it is not that of the result

    def __post_init__(self) -> None:
        dates = [seconds(date) for date, _ in self.schedule]
        past = self.control == "past"
        first = self.measures[0]
        faults = {
            "a list of dates and chances as share, by rising dates": not dates
            or dates != sorted(set(dates)),
            "two different names of arms, new and old": self.new == self.old,
            "a concurrent control and one share of all lots": self.lots is not None
            and (past or isinstance(self.share, list)),
            f"until after made ({self.made}), found {self.until}": self.until is not None
            and seconds(self.until) <= seconds(self.made),
            f"a gain of {first.name!r}, without margin and at_most": first.margin != 0
            or first.at_most is not None,
        }
        for x in self.measures:
            numbers = [x.low, x.high, x.discount, x.margin, x.at_most or 0.0, x.middle, x.variance]
            faults |= {
                f"numbers of {x.name!r} within ±{MOST:g}": not all(abs(y) <= MOST for y in numbers),
                f"low < high of {x.name!r}, and middle between them": x.low == x.high
                or not x.low <= x.middle <= x.high,
                "control = 'concurrent': a past control does not judge the limit of "
                f"{x.name!r} (at_most)": past and x.at_most is not None,
            }
        for expected, wrong in faults.items():
            if wrong:
                raise ValueError(f"Expected {expected}")

    @property
    def schedule(self) -> list[tuple[str, float]]:
        """Returns pairs of a date and the chance of the new policy from that date on."""
        return self.share if isinstance(self.share, list) else [(self.made, self.share)]

    def chances(self, episodes: Episodes) -> FloatArray:
        """Returns the chance of the new policy for each episode [E]."""
        if isinstance(self.share, float):
            return np.full(len(episodes), self.share)
        dates = np.array([seconds(date) for date, _ in self.schedule])
        place = np.searchsorted(dates, dated(episodes, "share"), side="right") - 1
        for e, others in first_where(place < 0, "episode"):
            raise InvalidLog(
                f"episode {episodes.ids[e]!r} began before {self.schedule[0][0]}, the first date "
                f"of share{others}"
            )
        return np.asarray([chance for _, chance in self.schedule])[place]


def seconds(date: str) -> float:
    """Returns a date in seconds since 1970; without a time zone it is in UTC."""
    try:
        read = datetime.fromisoformat(date)
    except ValueError:
        raise InvalidParameter(f"{date!r} is no date; expected one such as 2026-03-31") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def dated(episodes: Episodes, why: str) -> FloatArray:
    """Returns the start times of episodes; refuses rows without a column of times."""
    if episodes.starts is None:
        raise InvalidLog(
            f"the plan has dates ({why}), but no column says when episodes began; expected one, "
            f"named by {said('time', '--time')}"
        )
    return episodes.starts


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAnswer:
    """The bounds on one measure by the episodes, now and over time.

    Parameters
    ----------
    name : str
        The name of the measure.
    estimate : float
        The gain over the control; of a limit of its own, the level of the new policy.
    lower : float
        It is at least that, with a confidence of 1 − δ.
    upper : float
        It is at most that, with a confidence of 1 − δ, shared by all measures.
    above : float
        What has to be exceeded.
    lines : list of (int, float, float)
        The lower bound and the estimate after so many episodes.

    Examples
    --------
    >>> from surestep.followup.pilot import MeasureAnswer
    >>> known = MeasureAnswer(
    ...     name="reward", estimate=0.2, lower=0.1, upper=0.3, above=0.0, lines=[])
    >>> known.passed, known.broken
    (True, False)
    """

    name: str
    estimate: float
    lower: float
    upper: float
    above: float
    lines: list[tuple[int, float, float]]

    @property
    def passed(self) -> bool:
        """Tells whether the lower bound exceeds the level that it has to exceed."""
        return self.lower > self.above

    @property
    def broken(self) -> bool:
        """Tells whether the upper bound is below the level that the lower bound has to exceed."""
        return self.upper < self.above


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotAnswer:
    """The answer of a pilot so far.

    Parameters
    ----------
    verdict : str
        "proved better", "believed better", "not yet", "stop: it is worse" or "no claim".
    why : str
        Why nothing is claimed, where that is so.
    digest : str
        The SHA-256 of pilot.toml.
    plan : PilotPlan
        What was fixed before the first episode.
    today : str
        The date by which pending outcomes are overdue.
    episodes : int
        The episodes that were read.
    counted : int
        Those before the first pending one.
    new : int
        Those of the new policy among the counted ones.
    pending : int
        Outcomes that are not known yet.
    overdue : int
        Those among them past the deadline, which count as the worst.
    followed : (float, float)
        The share of decisions that the new policy takes, too: in the new arm, and in the control.
    share_evidence : float
        The evidence against the planned share of arms; the test fails at 1,000.
    measures : list of MeasureAnswer
        What is known of each measure, the one that is improved first; none where nothing is
        claimed.
    order : str
        The order in which episodes count: that of "lots", "starts" or "rows".
    missing : int
        Lots without a row before the last one used.
    lacking : int
        The episodes that the new arm has fewer than planned, if that is no chance (at 10 %) and
        there are no lots; those of the control as a negative number.
    lower_with_lacking : float or None
        The lower bound on the first measure if these went as can be worst for the new policy.
    beside : dict from str to str
        The SHA-256 of the page of the plan and of the file of lots, where these are there.

    Examples
    --------
    See `surestep.pilot`.
    """

    verdict: Verdict
    why: str
    digest: str
    plan: PilotPlan
    today: str
    episodes: int
    counted: int
    new: int
    pending: int
    overdue: int
    followed: tuple[float, float]
    share_evidence: float
    measures: list[MeasureAnswer]
    order: Literal["lots", "starts", "rows"]
    missing: int
    lacking: int
    lower_with_lacking: float | None
    beside: dict[str, str] = field(default_factory=dict)


class Forecast(NamedTuple):
    """The forecast of a pilot, from simulated pilots in worlds that the log allows."""

    worlds: int
    gain: float  # as the result estimates it
    needed: int | None  # episodes until 80 % of all pilots prove a gain; None: not within `most`
    most: int  # episodes of a simulated pilot
    proved: float  # the share of pilots that prove a gain within the planned episodes
    at_risk: float  # the most that may be lost, by the range of returns
    at_risk_likely: float  # the same by the lower end of the estimated gain
    a_day: float | None  # episodes a day in the old log; None where it has no times
    cut: float  # the share of old episodes that a clock cut
    pairs: int  # of episodes that the range of returns asks for at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """A pilot that is planned, or judged.

    Parameters
    ----------
    plan : PilotPlan
        What is fixed before the first episode.
    toml : str
        The same as pilot.toml has it; its digest is that of the plan.
    report : str
        The page, as HTML.
    forecast : Forecast, optional
        What to expect; None of a pilot that is judged.
    answer : PilotAnswer, optional
        What episodes have shown; None of a plan.
    lots : str
        The content of the file of lots, if there is one.

    Examples
    --------
    See `surestep.pilot`.
    """

    plan: PilotPlan
    toml: str
    report: str = field(repr=False)
    forecast: Forecast | None = None
    answer: PilotAnswer | None = None
    lots: str = ""

    @property
    def digest(self) -> str:
        """Returns the SHA-256 of pilot.toml."""
        return hashlib.sha256(self.toml.encode()).hexdigest()

    @property
    def files(self) -> dict[str, bytes]:
        """Returns the files of a plan, or of an answer."""
        if self.answer is None:
            made = [(PLAN, self.toml), (PLAN_PAGE, self.report), (self.plan.lots, self.lots)]
            return {name: text.encode() for name, text in made if name}
        return {ANSWER: self.to_json().encode(), ANSWER_PAGE: self.report.encode()}

    def to_json(self) -> str:
        """Returns plan, forecast and answer as JSON.

        Returns
        -------
        str
            The content of answer.json.
        """
        known = {"plan": self.plan, "forecast": self.forecast and self.forecast._asdict()}
        content = msgspec.to_builtins(known if self.answer is None else self.answer)
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def with_lots(pilot: Pilot, many: int) -> Pilot:
    """Returns a plan with so many lots."""
    plan = pilot.plan
    if not plan.episodes <= many <= MOST_LOTS:
        raise InvalidParameter(
            f"{many:,} lots are drawn, expected {plan.episodes:,}, as planned, to {MOST_LOTS:,}"
        )
    text = lots.drawn(many, plan.schedule[0][1], (plan.new, plan.old))
    plan = msgspec.structs.replace(plan, lots_digest=lots.read(text)[-1])
    return replace(pilot, plan=plan, toml=toml_of(plan), lots=text)


def toml_of(plan: PilotPlan) -> str:
    """Returns a plan as pilot.toml has it."""
    content = {name: x for name, x in msgspec.to_builtins(plan).items() if x is not None}
    lines = [f"{name} = {written(x)}" for name, x in content.items() if name != "measures"]
    for measure in content["measures"]:
        told = [f"{name} = {written(x)}" for name, x in measure.items() if x is not None]
        lines += ["", "[[measures]]", *told]
    return "\n".join(["# Fixed before the first episode. Do not change it afterwards.", *lines, ""])


def judged(
    plan: PilotPlan, digest: str, episodes: Episodes, today: str, drift: str = ""
) -> PilotAnswer:
    """Judges episodes by a plan; `drift` says why a past control allows no claim."""
    ours, theirs = (
        ", ".join(f"{one.name} (discount {one.discount})" for one in x.measures)
        for x in (plan, episodes)
    )
    if ours != theirs:
        raise InvalidParameter(
            f"pilot.toml has the measures {ours}; expected those of the result: {theirs}"
        )
    if seconds(today) + DAY <= seconds(plan.made):
        raise InvalidParameter(f"today is {today}, before the plan was made ({plan.made})")
    new = arms(plan, episodes)
    concurrent = plan.control == "concurrent"
    chance = plan.chances(episodes) if concurrent else np.full(new.size, 0.5)
    overdue = np.zeros(new.size, np.bool_)
    if plan.deadline is not None:
        began = dated(episodes, "deadline")
        overdue = episodes.pending & (began + DAY * plan.deadline <= seconds(today))
    counted = int(np.argmax(np.append(episodes.pending & ~overdue, True)))
    ends = [ends[:, :counted] for ends in ends_of(plan, episodes)]
    known = (new[:counted], chance[:counted], ends)
    measures = answers_of(plan, *known)
    lacking = shortage(*known[:2]) if concurrent and not plan.lots else 0
    worst = answers_of(plan, *with_lacking(plan, lacking, *known)) if lacking else measures
    strange = bets.share_evidence(new, chance).max(initial=1.0) if concurrent else 1.0
    why = drift
    if strange >= 1 / FALSE_ALARMS:
        why = (
            f"The share of arms is not as planned: {number(new.mean(), 3)} of the episodes are in "
            f"the new arm, {number(chance.mean(), 3)} were planned. Find out who assigned them."
        )
    verdict: Verdict = "not yet"
    if why:
        verdict = "no claim"
    elif any(one.broken for one in measures):
        verdict = "stop: it is worse"
    elif all(one.passed for one in [*measures, *worst]):
        verdict = "proved better" if concurrent else "believed better"
    lost = np.isnan(episodes.followed)
    with_new, without = (episodes.followed[side & ~lost] for side in (new, ~new))
    return PilotAnswer(
        verdict=verdict,
        why=why,
        digest=digest,
        plan=plan,
        today=today,
        episodes=len(episodes),
        counted=counted,
        new=int(new[:counted].sum()),
        pending=int(episodes.pending.sum()),
        overdue=int(overdue.sum()),
        followed=(
            float(with_new.sum() / max(with_new.size, 1)),
            float(without.sum() / max(without.size, 1)),
        ),
        share_evidence=float(strange),
        measures=[] if why else measures,
        order="lots" if plan.lots else "rows" if episodes.starts is None else "starts",
        missing=int(lost.sum()),
        lacking=lacking,
        lower_with_lacking=worst[0].lower if lacking else None,
    )


def shortage(new: BoolArray, chance: FloatArray) -> int:
    """Returns how many episodes the new arm lacks, or those of the control as a negative number.

    It is 0 where that may be chance (one-sided, 10 %).
    """
    short = float((chance - new).sum())
    if abs(short) <= SHORT * sqrt(float((chance * (1 - chance)).sum())):
        return 0
    return ceil(short / np.mean(1 - chance)) if short > 0 else floor(short / np.mean(chance))


def with_lacking(
    plan: PilotPlan, lacking: int, new: BoolArray, chance: FloatArray, ends: list[FloatArray]
) -> tuple[BoolArray, FloatArray, list[FloatArray]]:
    """Returns arms, chances and ends with episodes that an arm lacks: they may return anything.

    They are spread evenly over the pilot.
    """
    at = np.arange(abs(lacking)) * new.size // abs(lacking)
    anything = [np.repeat([[one.low], [one.high]], at.size, axis=1) for one in plan.measures]
    filled = [np.insert(x, at, more, axis=1) for x, more in zip(ends, anything, strict=True)]
    return np.insert(new, at, lacking > 0), np.insert(chance, at, chance[at]), filled


def arms(plan: PilotPlan, episodes: Episodes) -> BoolArray:
    """Returns which episodes [E] got the new policy; refuses rows that no plan allows."""
    names = np.asarray(episodes.arm)
    for e, others in first_where(~np.isin(names, (plan.new, plan.old)), "episode"):
        raise InvalidLog(
            f"episode {episodes.ids[e]!r} is in the arm {str(names[e])!r}; expected {plan.new!r} "
            f"or {plan.old!r}, as pilot.toml says{others}"
        )
    new: BoolArray = names == plan.new
    made = seconds(plan.made)
    starts = np.full(new.size, made) if episodes.starts is None else episodes.starts
    for e, others in first_where((starts < made) & (new | (plan.control != "past")), "episode"):
        raise InvalidLog(
            f"episode {episodes.ids[e]!r} began before the plan was made ({plan.made}); expected "
            f"episodes of the pilot alone{others}"
        )
    return new


def ends_of(plan: PilotPlan, episodes: Episodes) -> Iterator[FloatArray]:
    """Yields the least and greatest return [2, E] per measure; refuses any beyond its range.

    A pending episode may return anything within it.
    """
    for m, measure in enumerate(plan.measures):
        ends = np.stack([episodes.lowest[m], episodes.highest[m]])
        slack = SAME * (measure.high - measure.low)
        beyond = (ends[1] < measure.low - slack) | (ends[0] > measure.high + slack)
        for e, others in first_where(beyond & ~episodes.pending, "episode"):
            raise InvalidLog(
                f"episode {episodes.ids[e]!r} returned {episodes.returns[m, e]:g} of "
                f"{measure.name}; pilot.toml declares {measure.low:g} to {measure.high:g}, so that "
                f"nothing can be claimed{others}"
            )
        declared = [[measure.low], [measure.high]]
        yield np.where(episodes.pending, declared, ends.clip(measure.low, measure.high))


def wagers(plan: PilotPlan, measure: Measure) -> tuple[bets.Wager, bets.Wager]:
    """Returns the bet that a measure is better, and the bet on mirrored returns that it is worse.

    Any one measure can show that a pilot is worse, so the second bets share δ.
    """
    low, high, middle, variance = measure.low, measure.high, measure.middle, measure.variance
    less = plan.delta / len(plan.measures)
    return (
        bets.Wager(low, high, middle, variance, plan.episodes, plan.delta),
        bets.Wager(-high, -low, -middle, variance, plan.episodes, less),
    )


def answers_of(
    plan: PilotPlan, new: BoolArray, chance: FloatArray, ends: list[FloatArray]
) -> list[MeasureAnswer]:
    """Returns the bounds on all measures."""
    return [
        answer_of(plan, measure, new, chance, both)
        for measure, both in zip(plan.measures, ends, strict=True)
    ]


def answer_of(
    plan: PilotPlan, measure: Measure, new: BoolArray, chance: FloatArray, ends: FloatArray
) -> MeasureAnswer:
    """Returns the bounds on a measure, over time, by the least and the most [2, n] of episodes."""
    wager, mirrored = wagers(plan, measure)
    against = np.where(new, ends[0], ends[1])
    in_favour = np.where(new, ends[1], ends[0])
    if plan.control == "concurrent":
        series = bets.gains if measure.at_most is None else bets.levels
        better = series(wager, new, chance, against)
        lower = bets.lower_bound(better, wager)
        upper = -bets.lower_bound(series(mirrored, new, chance, -in_favour), mirrored)
        many = np.arange(1, new.size + 1)
        looks = np.unique(np.linspace(0, max(new.size - 1, 0), POINTS).astype(int))[: new.size]
        bounds = bets.bounds_over_time(better, wager)
        lines = [line[looks] for line in (many, bounds, np.cumsum(better.value) / many)]
        estimate = better.value.mean() if new.size else 0.0
    else:
        many = np.arange(1, new.sum() + 1)
        looks = np.unique(np.linspace(0, many.size, POINTS).astype(int))
        bounds = bets.past_bounds(wager, against[~new], against[new], looks)
        lower = bounds[-1]
        upper = -bets.past_bounds(mirrored, -in_favour[~new], -in_favour[new], looks)[-1]
        before = against[~new].sum() / max(int((~new).sum()), 1)
        means = np.append(0.0, np.cumsum(against[new]) / many - before)[looks]
        lines = [looks, bounds, means]
        estimate = means[-1]
    return MeasureAnswer(
        name=measure.name,
        estimate=float(estimate),
        lower=float(lower),
        upper=float(upper),
        above=-measure.margin if measure.at_most is None else -measure.at_most,
        lines=[*zip(*(line.tolist() for line in lines), strict=True)],
    )
