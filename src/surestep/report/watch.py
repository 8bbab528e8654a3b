"""Writes what `surestep watch` shows: an alarm or none, and the three questions behind it."""

from collections.abc import Iterator

import surestep.sections as show
from surestep._words import counted, listed, number, percent
from surestep.checks.words import aside
from surestep.followup.watching import FORMER, PROVED, Level, Reading, Watch, blocks_of
from surestep.report.page import page

MOST_BLOCKS = 24  # means in the picture
MOST_POINTS = 200  # of a line
SELDOM = 0.8  # a policy that is followed less often is hardly tried
NAMES = {PROVED: "the level proved of the new policy", FORMER: "the level of former practice"}
AGAINST_HOLDOUT = {PROVED: "the proved gain over the holdout", FORMER: "the holdout itself"}
CHANGES = {
    "drift-next-state": ("Actions lead where they led", "Actions lead elsewhere than before"),
    "drift-reward": ("Steps earn what they earned", "Steps earn something else than before"),
}


def watch_page(watch: Watch) -> str:
    """Returns the page of a watch."""
    sections = watch_sections(watch)
    return page(sections[0].title, "Watching an adopted policy", sections)


def watch_sections(watch: Watch) -> list[show.Section]:
    """Returns the sections of a watch: the answer first, then what it rests on."""
    return [
        answer(watch),
        goodness(watch),
        following(watch),
        world(watch),
        promise(watch),
    ]


def name_of(level: Level, watch: Watch) -> str:
    """Returns the words for a level."""
    return (AGAINST_HOLDOUT if watch.held_out else NAMES)[level.code]


def answer(watch: Watch) -> show.Section:
    """Returns the line to act on, its reason, and the next step."""
    many = counted(watch.returns.size, "episode")
    fallen = [reading for reading in watch.readings if reading.alarm is not None]
    if fallen:
        title = "Alarm: the new policy is no longer as good"
        mood: show.Mood = "bad"
        sentences = [alarm_words(reading, watch) for reading in fallen]
        sentences.append(what_to_do(fallen))
    elif watch.readings:
        title = f"No alarm after {many}"
        mood = "good"
        sentences = ["Returns show no fall below a level. Run the same command on more rows."]
    else:
        title = "Not watched: there is no level to compare with"
        mood = "caution"
        sentences = ["An alarm is impossible. The next section says why."]
    if watch.pending:
        waiting = counted(watch.pending, "episode")
        sentences.append(
            f"{waiting} are not counted yet: outcomes count in the order of starts, and the first "
            f"of these is pending."
        )
    return show.Section("answer", title, sentences, keys=[*numbers_of(watch)], mood=mood)


def alarm_words(reading: Reading, watch: Watch) -> str:
    """Says which level returns fell below, when the alarm came, and since when they had fallen."""
    value = number(reading.level.value or 0.0)
    what = "Gains" if watch.held_out else "Returns"
    return (
        f"{what} fell below {name_of(reading.level, watch)} ({value}). The alarm came with "
        f"{placed(reading.alarm, watch)}; the fall probably began with "
        f"{placed(reading.since, watch)}."
    )


def placed(place: int | None, watch: Watch) -> str:
    """Names an episode by its number, its own name, and its day."""
    day = watch.day(place)
    name = watch.ids[place or 0]
    return f"episode {(place or 0) + 1:,} ({name}{f', {day}' if day else ''})"


def what_to_do(fallen: list[Reading]) -> str:
    """Says what an alarm asks for."""
    if any(reading.level.code == FORMER for reading in fallen):
        return (
            "It now does worse than former practice did. Go back to former practice until you know "
            "why, then learn from rows since the alarm: docs/watch.md has the second round."
        )
    return (
        "It may still do better than former practice. Find out what changed, then learn from rows "
        "since the alarm: docs/watch.md has the second round."
    )


def numbers_of(watch: Watch) -> Iterator[show.Key]:
    """Yields the mean return and how near an alarm is, by levels."""
    if watch.returns.size:
        mean = number(float(watch.returns.mean()))
        yield show.Key("Mean return", mean, f"{watch.unit}, of all that count")
    for reading in watch.readings:
        near = reading.detection.closeness[-1:]
        mood: show.Mood = "plain" if reading.alarm is None else "bad"
        close = "alarm" if reading.alarm is not None else percent(float(near.sum()))
        words = f"of the way to an alarm against {name_of(reading.level, watch)}"
        yield show.Key("Evidence of a fall", close, words if reading.alarm is None else "", mood)


def goodness(watch: Watch) -> show.Section:
    """Returns returns over time beside the levels, and how near an alarm was."""
    items = []
    for level in watch.levels:
        title = name_of(level, watch)
        title = f"{title[0].upper()}{title[1:]}"
        if level.value is None:
            items.append(show.Item(title, f"Not tested: {level.why}.", sign="–"))
            continue
        sure = f" With {percent(1 - level.delta)} confidence it is no lower." if level.delta else ""
        items.append(show.Item(f"{title}: {number(level.value)}", f"From {level.why}.{sure}"))
    return show.Section(
        "goodness", "Is it still as good?", items=items, pictures=[*lines_of(watch)]
    )


def lines_of(watch: Watch) -> Iterator[show.Picture]:
    """Draws mean returns over time, and the evidence of a fall."""
    if not watch.readings or watch.returns.size < 2:
        return
    alarms = [show.Flag(r.alarm + 1, "alarm") for r in watch.readings if r.alarm is not None][:1]
    flags = [
        show.Flag(reading.level.value or 0.0, name_of(reading.level, watch))
        for reading in watch.readings
    ]
    text = "Each point is the mean of neighbours in the order of their starts."
    means = show.Curve("mean return", blocks_of(watch.returns, MOST_BLOCKS))
    levels = () if watch.held_out else flags
    yield show.Curves(
        show.Caption("returns", "Returns over time", text),
        "episode",
        f"mean return ({watch.unit})",
        [means],
        levels,
        alarms,
    )
    tones: tuple[show.Tone, ...] = ("vermilion", "blue")
    curves = [
        show.Curve(name_of(reading.level, watch), points_of(reading), tone)
        for reading, tone in zip(watch.readings, tones, strict=False)
    ]
    text = "At 100 the alarm is raised, once and for all; without a fall the line stays low."
    yield show.Curves(
        show.Caption("evidence", "Evidence of a fall", text),
        "episode",
        "% of the way to an alarm",
        curves,
        [show.Flag(100.0, "alarm")],
        alarms,
    )


def points_of(reading: Reading) -> list[tuple[float, float]]:
    """Returns the evidence after every episode, or after some of many."""
    near = (100 * reading.detection.closeness).tolist()
    points = [(float(x + 1), y) for x, y in zip(reading.places.tolist(), near, strict=True)]
    return points[:: max(len(points) // MOST_POINTS, 1)] + points[-1:]


def following(watch: Watch) -> show.Section:
    """Returns how often decisions are those that the new policy takes."""
    title = "Is it followed?"
    decisions = sum(one.decisions for one in watch.followed)
    if not decisions:
        return show.Section("followed", title, ["The new policy rules nothing out in these rows."])
    share = sum(one.share * one.decisions for one in watch.followed) / decisions
    sentences = [f"{percent(share)} of {counted(decisions, 'decision')} are as advised."]
    if share < SELDOM:
        sentences.append("Returns say little of a policy that is not followed. Ask why it is not.")
    if watch.unknown:
        sentences.append(
            f"{counted(watch.unknown, 'decision')} in situations, or with actions, that the "
            "policy does not know: it says nothing there."
        )
    rows = [
        [
            ", ".join(one.state),
            show.Amount(f"{one.decisions:,}", one.decisions),
            show.Amount(percent(one.share), one.share),
            show.Amount(percent(one.low), one.low),
            show.Amount(percent(one.high), one.high),
        ]
        for one in watch.followed
    ]
    columns = [show.Column("Situation"), *show.numbers("Decisions", "As advised", "From", "To")]
    caption = "Situations in which the new policy rules an action out; intervals of 95 %"
    table = show.Table("followed-states", caption, columns, rows, sortable=True)
    mood: show.Mood = "caution" if share < SELDOM else "plain"
    return show.Section("followed", title, sentences, tables=[table], mood=mood)


def world(watch: Watch) -> show.Section:
    """Returns whether actions have other effects, or other rewards, than in the old log."""
    if watch.untested:
        sentences = [watch.untested, "Name the log that the result was made from with --log."]
        return show.Section("world", "Has the world changed?", sentences)
    items = []
    for check in watch.checks:
        same, other = CHANGES[check.code]
        if check.outcome == "unchecked":
            items.append(show.Item(same, "Not tested: too few rows are alike.", sign="–"))
        elif check.outcome == "failed":
            items.append(show.Item(other, "", aside(check), sign="✗", mood="bad"))
        else:
            items.append(show.Item(same, "No sign against it.", aside(check), sign="✓"))
    failed = [check for check in watch.checks if check.outcome == "failed"]
    words = ["Rows of the old log against new ones, in the same situation with the same action."]
    if failed:
        words.append("The result may hold only for the past. Find out what changed.")
    mood: show.Mood = "caution" if failed else "plain"
    return show.Section("world", "Has the world changed?", words, items=items, mood=mood)


def promise(watch: Watch) -> show.Section:
    """Returns what an alarm promises, and what it assumes."""
    levels = [name_of(reading.level, watch) for reading in watch.readings]
    sentences = [
        f"While the policy is as good as the levels say, an alarm among the first "
        f"{watch.within:,} episodes has a chance of at most {percent(watch.alpha)}. You may look "
        "every day: the alarm counts once.",
        "It holds for episodes in the order of their starts, and levels that are right. The level "
        "of former practice takes the episodes of the old log for alike.",
        "The test of the world is for one look: look at it daily, and it fails by chance now and "
        "then.",
    ]
    if len(levels) > 1:
        sentences.append(f"Watched are {listed(levels)}, at half of that chance each.")
    return show.Section("promise", "What an alarm means", sentences, folded=True)
