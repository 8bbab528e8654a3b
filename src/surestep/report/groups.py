"""Writes the section on groups: for whom the new policy is better or worse, with a forest plot."""

import math
from collections.abc import Iterable

from surestep._words import counted, listed, number, percent, signed
from surestep.report.signals import DIGITS
from surestep.results import GroupGain, Record
from surestep.sections import (
    Caption,
    Column,
    Flag,
    Section,
    Strip,
    Strips,
    Table,
    numbers,
)

STOCK = "running-cases"  # a check that tells for whom the claim is not
UNTOLD = {
    "differs": "In {}, actions do something else than in other episodes of the same situation, so "
    "their gain cannot be told: make the column part of the state.",
    "too-few": "In {}, too few rows tell whether actions do the same as in other episodes, so "
    "their gain cannot be told.",
}


def groups_section(record: Record) -> list[Section]:
    """Returns the section of groups with a bar for each; none where there are no groups."""
    groups = record.groups
    told = (
        f"{record.unit}, by rows set aside for checking; each range holds with about "
        f"{percent(1 - record.parameters.delta)}"
    )
    rows = [
        [
            x.name,
            f"{x.episodes:,}",
            *("untold" if end is None else signed(end, DIGITS) for end in (x.gain, x.low, x.high)),
        ]
        for x in groups
    ]
    section = Section(
        "groups",
        "For whom it is better or worse",
        sentences(record),
        pictures=[
            Strips(
                Caption("forest", "Gain of each group", told),
                f"gain {record.unit}",
                [*map(strip, groups)],
                [Flag(0.0, "no change")],
            )
        ],
        parts=[
            Section(
                "every-group",
                "Every group in numbers",
                tables=[
                    Table(
                        "groups-table",
                        told,
                        [Column("Group"), *numbers("Cases", "Gain", "From", "To")],
                        rows,
                    )
                ],
                folded=True,
            )
        ],
    )
    return [section] if groups else []


def strip(group: GroupGain) -> Strip:
    """Returns the bar of a group: red if its whole interval is a loss; no bar if it is unknown."""
    low, high = (math.nan if end is None else end for end in (group.low, group.high))
    told = "cannot be told" if group.gain is None else signed(group.gain, DIGITS)
    return Strip(
        group.name,
        low,
        high,
        group.gain,
        "vermilion" if group.harmed else "orange" if (group.gain or 0.0) < 0 else "blue",
        f"{told} · {counted(group.episodes, 'case')}",
    )


def sentences(record: Record) -> list[str]:
    """Says which groups are shown to lose or to gain, and for which the gain is unknown."""
    groups = record.groups
    most = percent(record.parameters.delta)
    chosen = {
        "Worse for {}.": [one.name for one in groups if one.harmed],
        f"Better for {{}}. Of the groups named here, on average at most {most} are wrong.": [
            one.name for one in groups if one.gains
        ],
        **{text: [x.name for x in groups if x.untold == why] for why, text in UNTOLD.items()},
        "Of {} this holds if actions do there what they do elsewhere. A test found no difference, "
        "which proves nothing.": [x.name for x in groups if not x.by_state and x.gain is not None],
        "{}: it changes within some episodes, and its first value counts.": [
            *dict.fromkeys(one.column for one in groups if one.changing)
        ],
        "Perhaps worse for {}: the best guess is a loss.": perhaps_worse(record),
    }
    said = [text.format(listed(names)) for text, names in chosen.items() if names]
    return said or ["No group loses, by the best guess."]


def harm_words(record: Record | None) -> str:
    """Says which groups are shown to lose, and what to do for them; empty if none is."""
    if record is None:
        return ""
    harmed = [f"“{x.name}”" for x in record.groups if x.harmed]
    stock = [
        f"cases that run already, in “{mark.name}”"
        for check in record.checks
        if check.code == STOCK and check.figures["high"] < 0
        for mark in check.picture
    ]
    if not harmed and not stock:
        return ""
    included = "; all numbers include it" * (not stock)
    return f"It is worse for {listed(harmed + stock)}. Keep what you do there{included}. "


def harmed_in(record: Record, column: str, values: Iterable[str]) -> str:
    """Returns the harmed group that contains all these values of a column; else an empty text."""
    groups = {x.value: x.name for x in record.groups if x.harmed and x.column == column}
    return next((groups[value] for value in values if {*values} <= {*groups}), "")


def perhaps_worse(record: Record) -> list[str]:
    """Says which groups have an estimated loss that is not certain."""
    return [one.name for one in record.groups if (one.gain or 0.0) < 0 and not one.harmed]


def margin_words(record: Record) -> str:
    """Says which groups are not shown to be spared, or that all are; empty if nobody asked."""
    asked = [group for group in record.groups if group.spared is not None]
    open_ones = [group.name for group in asked if not group.spared]
    most = f"{number(record.description.get('groups', {}).get('not_worse_by', 0.0))} {record.unit}"
    if open_ones:
        return f" But it is not shown that no group loses more than {most}: {listed(open_ones)}."
    believed = [group.name for group in asked if group.believed]
    if believed:
        return (
            f" That no group loses more than {most} is not proved for {listed(believed)}: it holds "
            "if actions do there what they do elsewhere in the same situation. Make the column "
            "part of the state, and it may be proved."
        )
    return (
        f" No group is worse by more than {most}: shown with the gain, by the same confidence."
        if asked
        else ""
    )
