"""Writes for whom the new policy is better or worse: a forest plot of groups, and its sentences."""

import math
from collections.abc import Sequence

from surestep._words import counted, listed, number, percent, signed
from surestep.report.signals import DIGITS
from surestep.results.groups import GroupGain, none_harmed
from surestep.results.record import Record
from surestep.sections import (
    Caption,
    Column,
    Flag,
    Section,
    Strip,
    Strips,
    Table,
    Tone,
    numbers,
)

UNTOLD = {
    "differs": "In {}, actions do something else than in other episodes of the same situation, so "
    "their gain cannot be told: make the column part of the state.",
    "too-few": "In {}, too few rows tell whether actions do the same as in other episodes, so "
    "their gain cannot be told.",
}


def groups_section(record: Record) -> list[Section]:
    """Returns the section of groups with a bar for each; none where there are no groups."""
    groups = record.groups
    if not groups:
        return []
    sure = percent(1 - record.parameters.delta)
    caption = Caption(
        "forest",
        "Gain of each group",
        f"{record.unit}, by rows set aside for checking; each range holds with about {sure}",
    )
    picture = Strips(
        caption, f"gain {record.unit}", [*map(strip, groups)], [Flag(0.0, "no change")]
    )
    columns = [Column("Group"), *numbers("Cases", "Gain", "From", "To")]
    rows = [[group.name, f"{group.episodes:,}", *amounts(group)] for group in groups]
    table = Table("groups-table", caption.description, columns, rows)
    return [
        Section(
            "groups",
            "For whom it is better or worse",
            sentences(groups, record.parameters.delta),
            pictures=[picture],
            parts=[Section("every-group", "Every group in numbers", tables=[table], folded=True)],
            mood="bad" if any(group.harmed for group in groups) else "plain",
        )
    ]


def amounts(group: GroupGain) -> list[str]:
    """Returns the gain of a group and the ends of its interval for a table."""
    if group.gain is None or group.low is None or group.high is None:
        return ["cannot be told", "–", "–"]
    return [signed(value, DIGITS) for value in (group.gain, group.low, group.high)]


def strip(group: GroupGain) -> Strip:
    """Returns the bar of a group: red where its whole range is a loss; none where it is untold."""
    cases = counted(group.episodes, "case")
    if group.gain is None or group.low is None or group.high is None:
        return Strip(group.name, math.nan, math.nan, words=f"cannot be told · {cases}")
    tone: Tone = "vermilion" if group.harmed else "orange" if group.gain < 0 else "blue"
    words = f"{signed(group.gain, DIGITS)} · {cases}"
    return Strip(group.name, group.low, group.high, group.gain, tone, words)


def sentences(groups: Sequence[GroupGain], delta: float) -> list[str]:
    """Returns who loses, who gains for sure, and whose gain cannot be told."""
    wrong = f"Of the groups named here, on average at most {percent(delta)} are wrong: "
    chosen = {
        "Worse for {}.": [group for group in groups if group.harmed],
        wrong + "{} gain.": [group for group in groups if group.gains],
    }
    for why, text in UNTOLD.items():
        chosen[text] = [group for group in groups if group.untold == why]
    said = [text.format(names_of(some)) for text, some in chosen.items() if some]
    changing = {group.column: group.changing for group in groups if group.changing}
    said += [
        f"{column} changes within {counted(many, 'episode')}; its first value counts."
        for column, many in changing.items()
    ]
    return said or ["No group is shown to lose."]


def names_of(groups: Sequence[GroupGain]) -> str:
    """Returns the names of groups in one text."""
    return listed([f"“{group.name}”" for group in groups])


def margin_words(record: Record) -> str:
    """Returns which groups are not shown to be spared, or that all are; empty if nobody asked."""
    asked = [group for group in record.groups if group.spared is not None]
    most = f"{number(record.description.get('groups', {}).get('not_worse_by', 0.0))} {record.unit}"
    if not none_harmed(asked):
        not_spared = names_of([group for group in asked if not group.spared])
        return f" But it is not shown that no group loses more than {most}: {not_spared}."
    shown = f" No group is worse by more than {most}: shown with the gain, by the same confidence."
    return shown if asked else ""
