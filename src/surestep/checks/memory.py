"""How many steps of memory are enough for the present to tell all that matters?

A log with a memory of k steps is also a log with any shorter memory: states that differ only in
what is longer ago are one. The Markov checks are made for each of them, from none on. A check that
finds nothing is no proof: it may be too weak, most of all where a longer memory makes rows scarce.
"""

from collections.abc import Sequence

import numpy as np

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
    asked = len(ends) - 1
    for steps, end in enumerate(ends):
        _, group = np.unique([" ".join(map(repr, x[:end])) for x in labels], return_inverse=True)
        shorter, _ = merged_log(log.with_outcomes(), group)
        given = given_log(shorter)
        made = (next_state_by_past(given), reward_by_past(given))
        if failed(made):
            continue
        weak = [check.why for check in made if check.why == "too-small"]
        if weak or all(check.why for check in made):
            return Check.unchecked(KIND.code, str(made[0].why or made[1].why))
        return Check(code=KIND.code, outcome="passed", figures={"asked": asked, "enough": steps})
    return Check(code=KIND.code, outcome="failed", figures={"asked": asked})


KIND = CheckKind(
    code="memory",
    title="The memory is long enough",
    broken="The memory is too short",
    passed="No sign that more is needed than a memory of {enough:step}; asked for: {asked}.",
    failed="With any memory of up to {asked:step}, the time before it still helps to predict what "
    "comes next. Ask for a longer memory, or record more of the situation.",
    aside="fails where a Markov check fails for every memory up to the one that was asked for",
    against="markov",
    figures=("asked",),
    figures_also=(("asked", "enough"),),
)
