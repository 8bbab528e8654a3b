"""Plain words for what makes a situation: several rows, or a rule that was learnt."""

from __future__ import annotations

from surestep.io.labels.histories import Length
from surestep.io.labels.state_rules import StateRule
from surestep.report.numbers import counted

MOST_NAMED = 6  # learnt states that are told by name


def learnt_words(rule: StateRule | None, learnt_from: int | None) -> tuple[str, ...]:
    """Returns which situations were made of measurements; none where they were not learnt."""
    if rule is None:
        return ()
    names = rule.labels()
    more = len(names) - MOST_NAMED
    named = [*names[:MOST_NAMED], *([f"{more:,} more"] if more > 0 else [])]
    taught = (
        f"were learnt with the first {counted(learnt_from, 'episode')}, which judge nothing else"
        if learnt_from
        else "are those of a rule that was given"
    )
    return (f"The {counted(len(names), 'situation')} {taught}: {'; '.join(named)}.",)


def history_words(history: str | None, learnt_from: int | None) -> tuple[str, ...]:
    """Returns what a situation is where it may be several rows, and how that was chosen.

    Both are as run.json has them. None where nobody asked for histories.
    """
    if history is None:
        return ()
    length = Length.read(history)
    if length.rows is None:
        return ("How many rows make a situation is to be chosen.",)
    sentence = (
        "A situation is the present row alone."
        if length.rows == 1
        else f"A situation is the last {length.rows} rows of an episode, with the actions between "
        "them."
    )
    if not length.log_likelihood:
        return (sentence,)
    table = ", ".join(
        f"{likelihood:.4f} with {counted(rows, 'row')}"
        for rows, likelihood in enumerate(length.log_likelihood, 1)
    ).replace("-", "−")
    return (
        sentence,
        f"That was chosen with the first {counted(learnt_from or 0, 'episode')}, which judge "
        f"nothing else, by how well what comes next is told where it was held out: log-likelihood "
        f"a row {table}.",
    )
