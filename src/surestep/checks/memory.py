"""Finds how many steps of memory situations need.

A log with a memory of k steps also has every shorter memory, if states that differ only in earlier
steps are merged. A memory is enough if the Markov checks pass with it, which look three steps back
from it; if no single earlier step of those asked for predicts the next state or the reward, among
rows of the same state and action; and if the longest memory passes. The tests of one memory share
the level of a check. Passing is no proof: the test may be too weak, above all if a long memory
makes rows scarce, or if only several steps together predict something.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from surestep._arrays import IntArray
from surestep._words import counted
from surestep.checks.check import Check, CheckKind
from surestep.checks.markov import next_state_by_past, reward_by_past
from surestep.checks.running import given_log
from surestep.checks.words import failed
from surestep.model import DecisionLog
from surestep.model.numbering import merged_log


def check(log: DecisionLog, labels: Sequence[tuple[str, ...]], ends: Sequence[int]) -> Check:
    """Finds the shortest memory that no Markov check fails.

    The columns of a memory of j steps are the first `ends[j]` ones of the labels [S]. The last of
    `ends` is the memory that was asked for.
    """
    known = log.with_outcomes()
    whole = given_log(known).log  # the drawn episodes do not depend on the memory
    before = [columns(labels, *span)[whole.state] for span in pairwise(ends)]  # 1, 2, … steps
    asked = len(before)

    def tests(steps: int) -> list[Check]:
        given = given_log(merged_log(known, columns(labels, 0, ends[steps]))[0])
        pasts = [[], *([past] for past in before[steps:])]
        level = given.level / len(pasts)
        return [test(given._replace(level=level), past) for past in pasts for test in TESTS]

    longest = tests(asked)
    if failed(longest):
        return Check(code=KIND.code, outcome="failed", figures={"asked": asked})
    for enough in range(asked + 1):
        made = longest if enough == asked else tests(enough)
        if not failed(made):
            break
    reasons = [check.why for check in made]
    if "too-small" in reasons or all(reasons):
        return Check.unchecked(
            KIND.code, "too-small" if "too-small" in reasons else str(reasons[0])
        )
    backs = [int(check.figures["back"]) for check in made if "back" in check.figures]
    far = enough + min(backs, default=0)
    figures = {"asked": asked, "enough": enough, "tested": max(asked, far)}
    return Check(code=KIND.code, outcome="passed", figures=figures)


def columns(labels: Sequence[tuple[str, ...]], begin: int, end: int) -> IntArray:
    """Numbers the labels [S]; labels with the same texts in the columns get the same number."""
    texts = [" ".join(map(repr, label[begin:end])) for label in labels]
    return np.unique(texts, return_inverse=True)[1]


def said(check: Check) -> str:
    """Returns the sentence of a pass; older results do not say how far back was tested."""
    asked, enough, *tested = (int(x) for x in check.figures.values())
    far = f" (tested up to {counted(tested[0], 'step')} back)" if tested else ""
    memory = counted(enough, "step")
    return f"No sign that more is needed than a memory of {memory}{far}; asked for: {asked}."


TESTS = (next_state_by_past, reward_by_past)
KIND = CheckKind(
    code="memory",
    title="The memory is long enough",
    broken="The memory is too short",
    passed=said,
    failed="With a memory of {asked:step}, the time before it still helps to predict what comes "
    "next. Ask for a longer memory, or record more of the situation.",
    aside="It fails where a Markov check fails for the memory that was asked for.",
    against="markov",
    figures=("asked",),
    figures_also=(("asked", "enough", "tested"), ("asked", "enough")),
)
