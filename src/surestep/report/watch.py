"""Writes what `surestep watch` shows: an alarm or none, and the three questions behind it."""

import surestep.sections as show
from surestep._words import counted, number, percent
from surestep.errors import said
from surestep.followup.watching import Watch
from surestep.report.checks import checks_section

MOST_POINTS = 24  # of the line
LEAST_IN_POINT = 5  # episodes


def watch_sections(watch: Watch) -> list[show.Section]:
    """Returns the sections of a watch: the answer first, then what it rests on."""
    read = show.Section("inputs", "What was read", facts=[*watch.inputs.items()], folded=True)
    return [answer(watch), goodness(watch), following(watch), world(watch), read]


def answer(watch: Watch) -> show.Section:
    """Returns the line to act on, and what to do."""
    tested = [level for level in watch.levels if level.value is not None]
    title = f"No alarm after {counted(watch.known, 'episode')}"
    mood: show.Mood = "plain"
    sentences = ["No alarm is no proof. Run the same command again when there are more rows."]
    if watch.alarm:
        title = "Alarm: the new policy is no longer as good"
        mood = "bad"
        sentences = [
            f"It fell below {level.name} ({number(level.value or 0.0)}): alarm with episode "
            f"{level.alarm}, probably since episode {level.since}."
            for level in tested
            if level.alarm is not None
        ]
        sentences += [
            "It now does worse than former practice: go back to that until you know why."
            if tested[-1].alarm
            else "It may still do better than former practice. Find out what changed.",
            "Then learn from the rows since the alarm: a second round.",
        ]
    elif not tested:
        title = "Not watched: there is no level to compare with"
        mood = "caution"
    if watch.known < len(watch.ids):
        waiting = counted(len(watch.ids) - watch.known, "episode")
        sentences.append(
            f"{waiting} not counted yet: they count in the order of their starts, and the outcome "
            f"of {watch.ids[watch.known]} is pending."
        )
    keys = [
        show.Key(
            "Evidence of a fall", percent(max(level.evidence, 0)), f"of an alarm: {level.name}"
        )
        for level in tested
    ]
    return show.Section("answer", title, sentences, keys=keys, mood=mood)


def goodness(watch: Watch) -> show.Section:
    """Returns the line over time beside the levels, and what an alarm promises."""
    items = [
        show.Item(f"Not tested: {level.name}", f"It needs {level.why}.", sign="–")
        if level.value is None
        else show.Item(
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
    size = max(-(-watch.values.size // MOST_POINTS), LEAST_IN_POINT)
    points = [
        (float(watch.places[first + size // 2] + 1), watch.values[first : first + size].mean())
        for first in range(0, watch.values.size - size + 1, size)
    ]
    picture = show.Curves(
        show.Caption("over-time", "Over time", f"Each point is the mean of {size:,} in a row."),
        "episode",
        f"mean {watch.unit}",
        {"mean": points},
        [show.Flag(level.value, level.name) for level in watch.levels if level.value is not None],
        [show.Flag(x.place + 1, "alarm") for x in watch.levels if x.place is not None][:1],
    )
    title = "Is it still as good?"
    return show.Section("goodness", title, [promise], items=items, pictures=[picture])


def following(watch: Watch) -> show.Section:
    """Returns how often decisions are those that the new policy takes."""
    decisions = sum(rate.total for rate in watch.followed.values())
    happened = sum(rate.happened for rate in watch.followed.values())
    words = "The new policy rules nothing out in these rows."
    if decisions:
        words = (
            f"{percent(happened / decisions)} of {counted(decisions, 'decision')} are as advised."
        )
    if watch.unknown:
        words += f" {counted(watch.unknown, 'decision')}: a situation or action it does not know."
    rows = [
        [
            ", ".join(state),
            show.Amount(f"{rate.total:,}", rate.total),
            *(show.Amount(percent(x), x) for x in (rate.share, rate.low, rate.high)),
        ]
        for state, rate in watch.followed.items()
    ]
    columns = [show.Column("Situation"), *show.numbers("Decisions", "As advised", "From", "To")]
    caption = "Situations in which the new policy rules an action out; intervals of 95 %"
    tables = [show.Table("situations", caption, columns, rows, sortable=True)] if rows else []
    return show.Section("followed", "Is it followed?", [words], tables=tables)


def world(watch: Watch) -> show.Section:
    """Returns whether actions have other effects, or other rewards, than in the old log."""
    once = "The old log is compared with the new rows. It is a test for one look, not for many."
    if watch.checks is None:
        once = f"Not tested: the old log is not there. Name it ({said('log=…', '--log')})."
    made = checks_section(watch.checks or (), folded=False)
    return made._replace(name="world", title="Has the world changed?", sentences=[once])
