"""Writes the joint claims about several signals, as a table and in sentences."""

from collections import Counter
from collections.abc import Iterable

from surestep._words import ceiled, counted, floored, listed, number, percent
from surestep.certificates.registry import standing_of
from surestep.model import Certificate, SignalClaim
from surestep.sections import Column, Section, Table

DIGITS = 3  # significant digits of bounds


def amount(value: float) -> str:
    """Rounds a lower bound down to few digits, so that it remains a bound."""
    return number(floored(value, DIGITS), DIGITS)


def at_most(lower: float) -> str:
    """Returns the largest loss that a lower bound allows, rounded up."""
    return number(0.0 - floored(lower, DIGITS), DIGITS)


def signals_section(
    claim: Certificate,
    kept_by: Iterable[str] = (),
    within: int | None = None,
    discounted: str = "",
    *,
    values: bool = True,
) -> Section:
    """Returns a row for each signal: its claim and its limit; with `values`, before and after.

    `kept_by` names for each pair the signals whose limits keep it from being taken more often.
    Unsafe states count as reached within the first `within` decisions; `discounted` says how much
    later steps count.
    """
    both = ("Before", "After") if values else ()
    headings = ("Signal", *both, "Claimed", "Has to be", "Shown")
    rows = [
        [
            part.name,
            *(shown_value(part, value) for value in (part.before, part.after) if values),
            bound_words(part) or "nothing",
            limit_words(part, first=place == 0),
            "✓" if part.holds else "✗",
        ]
        for place, part in enumerate(claim.signals)
    ]
    sort = "belief" if standing_of(claim) == "posterior" else "confidence"
    holds = f"All claims hold at once, with {percent(1 - claim.delta)} {sort}"
    columns = [Column(heading, number=heading in both) for heading in headings]
    said = [f"{part.name}: {part.refusal}" for part in claim.signals if part.refusal]
    if within is not None:
        said.append(f"Reached means: at the start, or by one of the first {within:,} decisions.")
    said += [
        f"What is done now breaks the limit of {part.name}."
        for part in claim.signals
        if part.alone and part.before is not None and part.before > -part.limit
    ]
    forbidden = Counter(name for names in kept_by for name in names.split(";") if name)
    said += [
        f"The limit of {name} keeps {counted(times, 'action')} from being taken more often "
        "(surestep explain says which)."
        for name, times in forbidden.items()
    ]
    return Section(
        "every",
        "Every number",
        said,
        tables=[Table("signals", "; ".join(filter(None, (holds, discounted))), columns, rows)],
    )


def worst_words(claim: Certificate, unit: str) -> str:
    """Puts the claim about the worst returns into a sentence; empty where nobody asked."""
    share = claim.parameters.get("worst_share")
    if not isinstance(share, float) or share <= 0:
        return ""
    lower = claim.figures.get("worst_lower")
    worst = f"The worst {percent(share)} of episodes"
    if not isinstance(lower, float):
        return f"{worst}: nothing is claimed, as the log is too short for it."
    said = (
        f"better by at least {amount(lower)}" if lower > 0 else f"worse by at most {at_most(lower)}"
    )
    return (
        f"{worst} are {said} {unit} on average, with {percent(1 - claim.delta)} confidence for "
        "itself."
    )


def joint_sentence(claim: Certificate) -> str:
    """Returns all bounds in a sentence, as they hold at once."""
    parts = [
        f"{part.name} is {'reached ' * part.chance}{said}"
        for part in claim.signals
        if (said := bound_words(part))
    ]
    sort = "belief" if standing_of(claim) == "posterior" else "confidence"
    return f"With {percent(1 - claim.delta)} {sort}, all at once: {listed(parts)}."


def broken_words(claim: Certificate) -> str:
    """Returns which signals are not shown to keep their limits; empty where all are."""
    broken = [part for place, part in enumerate(claim.signals) if place and not part.holds]
    words = [f"{part.name} ({limit_words(part, first=False)})" for part in broken]
    return f"Not shown to keep its limit: {listed(words)}." if words else ""


def bound_words(part: SignalClaim) -> str:
    """Puts the bound of a signal into words: 'better by at least 0.02', 'higher by at most 0.1'."""
    if part.lower is None:
        return ""
    if part.chance:
        return f"in at most {percent(ceiled(0.0 - part.lower))} of cases"
    better, worse = ("lower", "higher") if part.cost else ("better", "worse")
    if part.lower > 0:
        return f"{better} by at least {amount(part.lower)}"
    return f"{worse} by at most {at_most(part.lower)}"


def limit_words(part: SignalClaim, *, first: bool) -> str:
    """Puts the limit of a signal into words."""
    if first:
        return "better"
    most = 0.0 - part.limit
    if part.chance:
        above = f" plus {percent(most)}" if most > 0 else ""
        return f"at most {percent(most)}" if part.alone else f"as before{above}"
    worse = "higher" if part.cost else "worse"
    return f"{worse} by at most {number(most, DIGITS)}" if most > 0 else f"not {worse}"


def shown_value(part: SignalClaim, value: float | None) -> str:
    """Returns an estimate as text: a chance in per cent, else a number; None as "unknown"."""
    if value is None:
        return "unknown"
    return percent(value) if part.chance else number(value, DIGITS)
