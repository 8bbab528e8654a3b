"""Writes the pages of `surestep pilot` (plan and answer) and of `surestep watch` (alarms)."""

from collections.abc import Iterator

from surestep._words import counted, floored, listed, number, percent, signed
from surestep.errors import said
from surestep.followup.pilot import Forecast, MeasureAnswer, Pilot, PilotAnswer, PilotPlan
from surestep.followup.watching import ANOTHER, Watch, hardly_more
from surestep.report.checks import checks_section
from surestep.results.record import Record
from surestep.sections import (
    Amount,
    Caption,
    Column,
    Curves,
    Flag,
    Item,
    Key,
    Mood,
    Section,
    Table,
    numbers,
)

DIGITS = 3
ORDERS = {
    "lots": "in the order of their lots",
    "starts": "in the order of their starts",
    "rows": "in the order of the rows, as no column says when they began",
}
OTHER_LOG = "The old log is not the one that the result was made from."
VERDICTS: dict[str, tuple[str, Mood]] = {
    "proved better": ("Proved: the new policy is better", "good"),
    "believed better": ("Believed, not proved: the new policy is better", "caution"),
    "not yet": ("Not yet: neither better nor worse is shown", "plain"),
    "stop: it is worse": ("Stop: the new policy is worse", "bad"),
    "no claim": ("Nothing is claimed", "bad"),
}


def plan_sections(pilot: Pilot, record: Record) -> list[Section]:
    """Returns the plan of a pilot on one page: its cost, the columns to record, when to stop."""
    plan, forecast = pilot.plan, pilot.forecast
    assert forecast is not None
    title = record.about.get("title", "")
    days = None if forecast.a_day is None else plan.episodes / forecast.a_day
    rate = "the log has no times" if days is None else f"at {number(forecast.a_day or 0, 3)} a day"
    keys = [
        Key("Episodes", f"{plan.episodes:,}", f"{percent(forecast.proved)} show a gain by then"),
        Key("Time", "unknown" if days is None else f"{number(days, 2)} days", rate),
        Key(
            "Most that may be lost",
            number(forecast.at_risk, DIGITS),
            f"in all; {number(forecast.at_risk_likely, DIGITS)} by the lower end of the estimate",
        ),
    ]
    purpose, *assigned = arms_words(plan)
    stops = [
        "Look as often as you like (surestep pilot RESULT new.csv), and stop when it says proved "
        "better, or stop: it is worse.",
        f"After {plan.episodes:,} episodes without either, the gain is probably smaller than "
        "expected. You may go on.",
    ]
    if plan.until:
        stops.append(f"A second round may learn from rows up to {plan.until[:10]}, and no later.")
    return [
        Section(
            "pilot",
            f"Pilot: {title}" if title else "A pilot of the new policy",
            [purpose, expected(forecast, record), *([OTHER_LOG] if plan.another_log else [])],
            keys=keys,
        ),
        Section("arms", "How episodes are assigned", assigned),
        Section(
            "record",
            "What to record",
            items=[Item("", x, sign="•") for x in to_record(plan, record)],
        ),
        Section("stop", "When to stop", stops, facts=[("Digest of pilot.toml", pilot.digest)]),
    ]


def arms_words(plan: PilotPlan) -> list[str]:
    """Says what a pilot can show, and how episodes get their arm."""
    if plan.control == "past":
        return [
            "The new policy is tried on all new episodes and compared with past ones. A gain is "
            "believed at most, since times may have changed; where a check shows that they did, "
            "nothing is claimed.",
            "Every episode from now on gets the new policy. It counts, followed or not.",
        ]
    chances = [
        f"from {date[:10]} on with a chance of {percent(chance)}" for date, chance in plan.schedule
    ]
    return [
        "Episodes are drawn by lot: some get the new policy, the others go on as before. A gain is "
        f"proved with {percent(1 - plan.delta)} confidence, however often you look and whenever "
        "you stop.",
        f"Each episode gets the new policy by lot, {', '.join(chances)}. Draw before it starts, "
        "for whole episodes, and never by who comes.",
        f"The lots are drawn: {plan.lots}. Use them in order, and write the episode beside its lot "
        "before it starts. A lot that is left out "
        + (
            "stops the count."
            if plan.deadline is None
            else "counts as the worst after the deadline."
        )
        if plan.lots
        else "Better draw all lots with the plan (option draw): without them nobody notices "
        "episodes that are missing from the rows.",
        "Episodes count in the arm that was drawn, also where the advice was not followed.",
    ]


def expected(forecast: Forecast, record: Record) -> str:
    """Says how long the pilot takes, estimated by simulated pilots."""
    shown = (
        f"fewer than 80 % of pilots show a gain within {forecast.most:,} episodes: it may be too "
        "small, or there may be none."
        if forecast.needed is None
        else f"80 % of pilots show a gain within {forecast.needed:,} episodes."
    )
    words = (
        f"The estimated gain is {signed(forecast.gain, DIGITS)} {record.unit}. In "
        f"{counted(forecast.worlds, 'simulated world')} that the log allows, {shown}"
    )
    if forecast.cut > 0:
        words += (
            f" A clock cut {percent(forecast.cut)} of the old episodes. In a pilot, what comes "
            "later counts against the new policy: record episodes for longer."
        )
    if forecast.needed and 4 * forecast.pairs > forecast.needed:
        words += (
            f" The range of returns is wide beside the gain: at least about {forecast.pairs:,} "
            "pairs of episodes are needed, whatever their spread. A narrower range, if it holds, "
            "would shorten the pilot."
        )
    return words


def to_record(plan: PilotPlan, record: Record) -> list[str]:
    """Lists the columns of the new rows."""
    roles = record.parameters.columns
    named = [f"{role}: {', '.join(names)}" for role, names in roles.items()]
    time = plan.time or roles.get("time", [""])[0]
    late = f"column {plan.pending}" if plan.pending else "an episode without an end is pending"
    ranges = [f"{x.name} from {number(x.low)} to {number(x.high)}" for x in plan.measures]
    told = [
        f"The columns of the old log ({'; '.join(named)}).",
        f"The arm, column {plan.arm}: {plan.new} or {plan.old}."
        if plan.control == "concurrent" and not plan.lots
        else "",
        f"When an episode began, column {time}."
        if time
        else "Rows in the order in which episodes began, or a column of times (key `time`).",
        f"Outcomes that are not known yet: {late}. The first one stops the count."
        if plan.deadline is None
        else f"Outcomes that are not known yet: {late}. After {number(plan.deadline)} days it "
        "counts as the worst.",
        f"No return may lie outside of the declared range: {'; '.join(ranges)}.",
    ]
    return [words for words in told if words]


def answer_sections(answer: PilotAnswer, record: Record) -> list[Section]:
    """Returns the answer of a pilot: the line to act on, its course over time, and its basis."""
    plan = answer.plan
    facts = [
        ("made", plan.made),
        ("digest of pilot.toml", answer.digest),
        ("digest of the result", plan.digest),
        ("control", plan.control),
        ("δ", number(plan.delta)),
        ("share", "; ".join(f"{date[:10]} {percent(chance)}" for date, chance in plan.schedule)),
        ("episodes planned", f"{plan.episodes:,}"),
    ]
    if plan.another_log:
        facts.append(("counts of the old log, not that of the result", plan.another_log))
    title, mood = VERDICTS[answer.verdict]
    keys = list[Key]()
    for first in answer.measures[:1]:
        sure = f"with {percent(1 - plan.delta)} confidence"
        keys = [
            Key("Gain, estimated", signed(first.estimate, DIGITS), record.unit),
            Key("At least", signed(floored(first.lower, DIGITS), DIGITS), sure),
        ]
    keys.append(Key("Episodes", f"{answer.counted:,}", f"{answer.new:,} with the new policy"))
    return [
        Section(
            "answer",
            title,
            [answer.why or next_step(answer)],
            keys=keys,
            items=[Item("", words, sign="!", mood="caution") for words in doubts(answer)],
            pictures=[over_time(x, record) for x in answer.measures[:1] if len(x.lines) > 1],
            mood=mood,
        ),
        *([measures_section(answer)] if len(answer.measures) > 1 else []),
        Section("episodes", "Which episodes count", [*counting(answer)]),
        Section("plan", "The plan", facts=facts),
    ]


def next_step(answer: PilotAnswer) -> str:
    """Says what to do next."""
    past = answer.plan.control == "past"
    left = answer.plan.episodes - (answer.new if past else answer.counted)
    return {
        "proved better": "Adopt it, and watch it (surestep watch RESULT new.csv). The gain was "
        "above the bound on some day of the pilot; the average over days may be another.",
        "believed better": "Past episodes are the control. Only a concurrent one can prove a gain.",
        "stop: it is worse": "Go back to what was done before.",
    }.get(
        answer.verdict,
        f"Go on: {counted(left, 'episode')} of the plan are still to come."
        if left > 0
        else "All planned episodes are over. You may go on; the bound stays valid.",
    )


def doubts(answer: PilotAnswer) -> Iterator[str]:
    """Says what rows without lots cannot show."""
    if answer.verdict in ("proved better", "believed better") and not answer.plan.lots:
        yield (
            "Not tested: whether all episodes that began since the plan are among these rows."
            if answer.plan.control == "past"
            else "Not tested: whether all episodes that were assigned are among these rows, in the "
            "arm that was drawn. Lots that are drawn with the plan show it (option draw)."
        )
    if answer.measures and answer.lower_with_lacking is not None:
        yield (
            f"The {'new arm' if answer.lacking > 0 else 'control'} has "
            f"{counted(abs(answer.lacking), 'episode')} fewer than planned. If these are missing "
            f"from the rows and went as {'badly' if answer.lacking > 0 else 'well'} as can be, the "
            f"gain is at least {signed(floored(answer.lower_with_lacking, DIGITS), DIGITS)}."
        )


def over_time(first: MeasureAnswer, record: Record) -> Curves:
    """Returns the picture of the bound and the estimate after each episode."""
    shown = first.lines[len(first.lines) // 20 :]
    return Curves(
        Caption(
            "over-time",
            "Bound and estimate over time",
            f"After {shown[-1][0]:,} episodes the gain is at least {signed(shown[-1][1], DIGITS)} "
            f"and estimated as {signed(shown[-1][2], DIGITS)}.",
        ),
        "episodes",
        f"gain {record.unit}",
        {
            "at least": [(n, low) for n, low, _ in shown],
            "estimate": [(n, estimate) for n, _, estimate in shown],
        },
        [Flag(first.above, "no gain" if first.above == 0 else "limit")],
    )


def measures_section(answer: PilotAnswer) -> Section:
    """Returns the table of all measures; each is judged at the whole δ."""
    rows = [
        [
            one.name,
            *(
                Amount(signed(x, DIGITS), x)
                for x in (one.estimate, one.lower, one.upper, one.above)
            ),
            "kept" if one.passed else "broken" if one.broken else "not yet",
        ]
        for one in answer.measures
    ]
    columns = [
        Column("Signal"),
        *numbers("Estimate", "At least", "At most", "Has to exceed"),
        Column("So far"),
    ]
    return Section(
        "measures",
        "All signals",
        ["It is proved better only if the first gains and all others keep their limits."],
        tables=[Table("signals", "", columns, rows)],
    )


def counting(answer: PilotAnswer) -> Iterator[str]:
    """Says which episodes count, and how far the advice was followed."""
    ours, theirs = map(percent, answer.followed)
    yield (
        f"{counted(answer.episodes - answer.missing, 'episode')} were read, {answer.counted:,} "
        f"count: {ORDERS[answer.order]}, up to the first whose outcome is pending."
    )
    if answer.missing:
        yield f"{counted(answer.missing, 'lot')} without a row: pending, in the arm that was drawn."
    if answer.pending:
        yield (
            f"{counted(answer.pending, 'outcome')} pending, {answer.overdue:,} of them past the "
            f"deadline on {answer.today}: these count the least in the new arm, the greatest in "
            "the control."
        )
    yield (
        f"{ours} of decisions in the new arm are ones that the new policy takes, {theirs} in the "
        "control. Every episode counts in its arm, followed or not."
    )
    if answer.plan.control == "concurrent":
        yield (
            f"Evidence against the planned share of arms: {number(answer.share_evidence, 2)}; the "
            "test fails at 1,000."
        )


def watch_sections(watch: Watch) -> list[Section]:
    """Returns the sections of a watch: the line to act on, then the numbers behind it."""
    return [
        alarm_section(watch),
        goodness(watch),
        following(watch),
        world(watch),
        Section("inputs", "What was read", facts=[*watch.inputs.items()], folded=True),
    ]


def alarm_section(watch: Watch) -> Section:
    """Returns the line to act on, and what to do."""
    tested = [level for level in watch.levels if level.value is not None]
    title = calm = f"No alarm after {counted(watch.known, 'episode')}"
    ignored = [
        f"“{', '.join(state)}” ({percent(rate.share)}, before {percent(watch.before[state])})"
        for state, rate in watch.followed.items()
        if hardly_more(rate, watch.before[state])
    ]
    mood: Mood = "caution" if ignored or not watch.is_followed else "plain"
    sentences = ["No alarm is no proof. Run the same command again when there are more rows."]
    if watch.alarm:
        title = (
            "Alarm: the new policy is no longer as good"
            if watch.is_followed
            else "Alarm, and not followed: hardly more than before"
        )
        mood = "bad"
        sentences = [
            f"It fell below {level.name} ({number(level.value or 0.0)}): alarm with episode "
            f"{level.alarm}, probably since episode {level.since}."
            for level in tested
            if level.alarm is not None
        ]
        sentences += [
            "Most of these returns are those of former practice: find out why the new policy is "
            "not followed."
            if not watch.is_followed
            else "It now does worse than former practice: go back to that until you know why."
            if watch.levels[1].alarm
            else "It breaks a limit: go back to former practice until you know why."
            if any(level.alarm for level in watch.levels[2:])
            else "It may still do better than former practice. Find out what changed.",
            "Then learn from the rows since the alarm: a second round.",
        ]
    elif not tested:
        title = "Not watched: there is no level to compare with"
        mood = "caution"
    elif not watch.is_followed:
        title = "Not followed: hardly more than before"
        sentences = [
            f"{calm}, but most of these returns are those of former practice. Whether the "
            "new policy is still good can only be said of what is followed.",
        ]
    sentences += [
        f"In {len(ignored):,} of {counted(len(watch.followed), 'situation')} decisions are hardly "
        f"more often as advised than before: {listed(ignored[:3])}."
        for _ in ignored[:1]
    ]
    if watch.known < len(watch.ids):
        sentences.append(
            f"{counted(len(watch.ids) - watch.known, 'episode')} not counted yet: they count in "
            "the order of their starts, and the outcome "
            f"of {watch.ids[watch.known]} is pending."
        )
    return Section(
        "answer",
        title,
        sentences,
        keys=[
            Key("Evidence of a fall", percent(max(level.evidence, 0)), f"of an alarm: {level.name}")
            for level in tested
        ],
        mood=mood,
    )


def goodness(watch: Watch) -> Section:
    """Returns the picture of performance over time, and says what an alarm means."""
    items = [
        Item(f"Not tested: {level.name}", f"It needs {level.why}.", sign="–")
        if level.value is None
        else Item(
            f"{level.name[0].upper()}{level.name[1:]}: {number(level.value)}",
            f"It is too high with a chance of at most {percent(level.delta)}." * (level.delta > 0),
        )
        for level in watch.levels
    ]
    promise = (
        "While the policy is as good as these levels say, an alarm among the first "
        f"{watch.within:,} episodes has a chance of at most {percent(watch.alpha)}, however often "
        "you look. A level from the old log takes its episodes for alike."
    )
    gap = watch.values - watch.recorded
    size = max(-(-watch.values.size // 24), 5)  # at most 24 points, each of 5 or more
    points = {
        name: [
            (float(watch.places[first + size // 2] + 1), values[first : first + size].mean())
            for first in range(0, values.size - size + 1, size)
        ]
        for name, values in (("as recorded", watch.recorded), ("at best", watch.values))
        if name == "as recorded" or gap.any()
    }
    tested = [(level.value, level.name) for level in watch.levels[:2] if level.value is not None]
    sentences = [promise, OTHER_LOG] if ANOTHER in watch.inputs else [promise]
    if tested and 2 * (gap > 0).sum() > gap.size:
        sentences.append(
            f"{percent((gap > 0).mean())} of these returns are of episodes that a "
            f"clock cut. They count at best, {number(gap.mean(), DIGITS)} above what was recorded, "
            "while those of the old log or a holdout count at worst. So returns as recorded, "
            f"{number(watch.recorded.mean(), DIGITS)} on average, must fall below "
            + listed([f"{number(x - gap.mean(), DIGITS)} ({name})" for x, name in tested], "or")
            + " before there is an alarm. Record episodes for longer."
        )
    return Section(
        "goodness",
        "Is it still as good?",
        sentences,
        items=items,
        pictures=[
            Curves(
                Caption("over-time", "Over time", f"Each point is the mean of {size:,} in a row."),
                "episode",
                f"mean {watch.unit}",
                points,
                [Flag(*level) for level in tested],
                [Flag(x.place + 1, "alarm") for x in watch.levels if x.place is not None][:1],
            )
        ],
    )


def following(watch: Watch) -> Section:
    """Returns how often decisions follow the new policy."""
    words = "The new policy rules nothing out in these rows."
    if watch.followed:
        rate, before = watch.adoption
        words = (
            f"{percent(rate.share)} of {counted(rate.total, 'decision')} are as advised; by former "
            f"practice {percent(before)} would be."
        )
    if watch.unknown:
        words += f" {counted(watch.unknown, 'decision')}: a situation or action it does not know."
    rows = [
        [
            ", ".join(state),
            Amount(f"{rate.total:,}", rate.total),
            *(
                Amount(percent(x), x)
                for x in (rate.share, rate.low, rate.high, watch.before[state])
            ),
        ]
        for state, rate in watch.followed.items()
    ]
    columns = [Column("Situation"), *numbers("Decisions", "As advised", "From", "To", "Before")]
    table = Table(
        "situations",
        "Situations in which the new policy rules an action out; intervals of 95 %",
        columns,
        rows,
        sortable=True,
    )
    return Section("followed", "Is it followed?", [words], tables=[table] if rows else [])


def world(watch: Watch) -> Section:
    """Says whether actions have other effects or rewards than in the old log."""
    once = "The old log is compared with the new rows. It is a test for one look, not for many."
    if watch.checks is None:
        once = f"Not tested: the old log is not there. Name it ({said('log=…', '--log')})."
    return checks_section(watch.checks or (), folded=False)._replace(
        name="world", title="Has the world changed?", sentences=[once]
    )
