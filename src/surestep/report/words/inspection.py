"""Words about an inspection, the same for the terminal and the page."""

from __future__ import annotations

from surestep._words import counted, listed, number, percent
from surestep.errors import said
from surestep.io.logs.inspection import Rewards
from surestep.results.chart_bins import Bin
from surestep.results.inspection import Inspection

DISCOUNTS = (0.9, 0.95, 0.99)  # that many would choose from


def visits_words(bin: Bin) -> str:
    """Returns 'never', '1 visit' or '2–4 visits'."""
    if bin.high == 0:
        return "never"
    return counted(bin.low, "visit") if bin.low == bin.high else f"{bin.low:,}–{bin.high:,} visits"


def ends_words(inspection: Inspection) -> str:
    """Returns how episodes end."""
    episodes = inspection.episodes
    if episodes is None:
        return "loose transitions"
    ends = (
        (episodes.terminated, "terminated"),
        (episodes.truncated, "truncated"),
        (episodes.without_end, "without an end"),
    )
    said = [f"{many:,} {how}" for many, how in ends if many]
    return listed(said) if said else "none"


def rewards_words(rewards: Rewards) -> str:
    """Returns '−400 to 300, median 90', and how far outliers lie."""
    middle = number(rewards.quartiles[1])
    words = f"{number(rewards.low)} to {number(rewards.high)}, median {middle}"
    beyond = [
        number(value)
        for value, outside in (
            (rewards.lowest, rewards.lowest < rewards.low),
            (rewards.highest, rewards.highest > rewards.high),
        )
        if outside
    ]
    return f"{words}, and outliers as far as {listed(beyond)}" if beyond else words


def fit(inspection: Inspection) -> str:
    """Returns whether the given policy can have made the log, in words."""
    overlap = inspection.overlap
    if overlap is None:
        return "not given"
    if overlap.states_unknown or overlap.impossible:
        return "cannot have made this log"
    if overlap.unlikely:
        return "unlikely to have made this log"
    return "fits the log"


def discount_words(inspection: Inspection) -> list[str]:
    """Explains the discount that has to be chosen by what it means for episodes as long as these.

    A reward n steps ahead counts γⁿ, so the last of an episode of n rows counts γⁿ⁻¹ at its start.
    """
    meaning = "The discount γ is yours to choose: a reward n steps ahead counts γⁿ of one now."
    episodes = inspection.episodes
    if episodes is None or episodes.rows is None:
        weights = [f"{percent(discount**20)} with {discount:g}" for discount in DISCOUNTS]
        return [f"{meaning} One 20 steps ahead counts {listed(weights)}."]
    length = episodes.rows.median
    if episodes.rows.highest == 1:
        return [f"{meaning} Every episode here has one row, so that any γ means the same."]
    weights = [f"{percent(discount ** (length - 1))} with {discount:g}" for discount in DISCOUNTS]
    sentences = [
        f"{meaning} Episodes here have {counted(length, 'row')} (median), up to "
        f"{episodes.rows.highest:,}: at its start, the reward in row {length:,} of an episode "
        f"counts {listed(weights)}."
    ]
    if episodes.terminated == episodes.number:
        sentences.append(
            "Every episode here comes to its end, so that γ = 1 "
            f"({said('discount=1', '--discount 1')}) can be chosen too: then rewards count the "
            "same however late they come."
        )
    return sentences
