"""How many steps of memory are enough for the present to tell all that matters?

A log with a memory of k steps is also a log with any shorter memory: states that differ only in
what is longer ago are one. A memory is enough if, among rows of the same state and action, neither
the step before nor any single step that is longer ago tells the next state or the reward; and if
the longest memory passes, as a longer past is seen with it. The tests of one memory share the level
of a check. One that finds nothing is no proof: it may be too weak, most of all where a longer
memory makes rows scarce, or where only several steps together tell something.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from surestep._arrays import IntArray
from surestep.checks.check import Check, CheckKind
from surestep.checks.markov import next_state_by_past, reward_by_past
from surestep.checks.running import given_log
from surestep.checks.words import failed
from surestep.model import DecisionLog
from surestep.model.numbering import merged_log


def check(log: DecisionLog, labels: Sequence[tuple[str, ...]], ends: Sequence[int]) -> Check:
    """Finds the shortest memory that no Markov check fails.

    A memory of j steps is the first `ends[j]` columns of the labels [S]; the last one is the one
    that was asked for.
    """
    known = log.with_outcomes()
    whole = given_log(known).log  # the same episodes are drawn with any memory
    before = [columns(labels, *span)[whole.state] for span in pairwise(ends)]  # 1, 2, … steps
    asked = len(before)

    def tests(steps: int) -> list[Check]:
        given = given_log(merged_log(known, columns(labels, 0, ends[steps]))[0])
        pasts = [[], *([past] for past in before[steps:])]
        level = given.level / len(pasts)
        return [test(given._replace(level=level), past) for past in pasts for test in TESTS]

    made = tests(asked)
    enough = asked
    if failed(made):
        return Check(code=KIND.code, outcome="failed", figures={"asked": asked})
    for steps in range(asked):
        shorter = tests(steps)
        if not failed(shorter):
            made = shorter
            enough = steps
            break
    reasons = [check.why for check in made]
    if "too-small" in reasons or all(reasons):
        return Check.unchecked(
            KIND.code, "too-small" if "too-small" in reasons else str(reasons[0])
        )
    return Check(code=KIND.code, outcome="passed", figures={"asked": asked, "enough": enough})


def columns(labels: Sequence[tuple[str, ...]], begin: int, end: int) -> IntArray:
    """Numbers the labels [S] by the texts of some columns."""
    texts = [" ".join(map(repr, label[begin:end])) for label in labels]
    return np.unique(texts, return_inverse=True)[1]


TESTS = (next_state_by_past, reward_by_past)
KIND = CheckKind(
    code="memory",
    title="The memory is long enough",
    broken="The memory is too short",
    passed="No sign that more is needed than a memory of {enough:step}; asked for: {asked}.",
    failed="With a memory of {asked:step}, the time before it still helps to predict what comes "
    "next. Ask for a longer memory, or record more of the situation.",
    aside="It fails where a Markov check fails for the memory that was asked for.",
    against="markov",
    figures=("asked",),
    figures_also=(("asked", "enough"),),
)
