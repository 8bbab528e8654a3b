"""Plain words for what makes a situation: a rule that was learnt."""

from __future__ import annotations

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
