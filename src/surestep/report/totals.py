"""Writes undiscounted totals before and after, and explains what discounting does."""

import re

from surestep._words import Scale, number, percent
from surestep.results.record import Record, Total
from surestep.sections import Key

PER = re.compile("(?:(.*) )?per (.+)")  # an amount, if any, and what an episode is


def total_key(total: Total, record: Record) -> Key:
    """Returns the undiscounted total of a signal: 'deaths per 100 patients', '36 → 25'."""
    points = total.share and total.per is None  # shown in per cent
    times = 100.0 if points else 1.0
    scale = Scale.of(times * found.value for found in (total.before, total.after))
    change, low, high = (
        scale.signed(times * end)
        for end in (total.change.value, total.change.low, total.change.high)
    )

    def written(number: float) -> str:
        return percent(number) if points else f"{scale.number(number)}{scale.unit}"

    before, after = (
        f"{written(found.low)} to {written(found.high)}" for found in (total.before, total.after)
    )
    flattered = (
        ", by the rows that chose the policy, which flatter it"
        if record.parameters.train_share is None
        else ""
    )
    return Key(
        total_name(total, record),
        f"{written(total.before.value)} → {written(total.after.value)}",
        f"{change}{' percentage points' if points else ''}, probably {low} to {high} (before "
        f"{before}, after {after}). {'Not discounted; a' if record.parameters.discount else 'A'}n "
        f"estimate{flattered}: do not promise it.",
    )


def total_name(total: Total, record: Record) -> str:
    """Returns the name of a total with its unit, such as 'deaths per 100 patients'.

    Where the unit of rewards names what an episode is ('€ per pump'), so does the name.
    """
    parts = PER.fullmatch(record.unit)
    amount, noun = parts.groups() if parts else (record.unit, "episode")
    name = f"{total.name} reached" if total.chance else total.name
    if amount and not (record.description.get("signals") or total.chance):
        name = amount
    whose = f"per {noun}" if total.per is None else f"per {total.per:,} {noun}s"
    if total.share and total.per is None:
        whose = f"(share of {noun}s)"
    return f"{name} {whose}{'' if total.within is None else f' within {total.within:,} steps'}"


def discount_words(record: Record) -> str:
    """Says how much later steps count of each signal; empty where no number is discounted."""
    usual = record.parameters.discount
    rules = record.description.get("signals", {})
    own = {name: rule.get("discount", usual) for name, rule in rules.items()}
    if all(discount == usual for discount in own.values()):
        return f"discounted: {later_words(usual)}" if 0 < usual < 1 else ""
    return "; ".join(f"{name}: {later_words(discount)}" for name, discount in own.items())


def discounted_unit(record: Record) -> str:
    """Returns the unit of gains; where they are discounted, also how, and today's value."""
    if not 0 < record.parameters.discount < 1:
        return record.unit
    return (
        f"{record.unit} ({later_words(record.parameters.discount)}; today's value is about "
        f"{number(record.estimates['behavior'], 3)})"
    )


def later_words(discount: float) -> str:
    """Returns how much later steps count: 'each later step counts 3 % less'."""
    if discount == 1:
        return "not discounted"
    return f"each later step counts {percent(1 - discount)} less"
