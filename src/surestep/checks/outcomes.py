"""Does a column of the state tell an outcome, known only after the decision?

A value that occurs only in last rows of episodes was probably written when the episode was over,
like a status ("died", "discharged"). Then the effect of the action is attributed to the state. If a
share p of rows are last ones, all k rows of a value are last by chance with probability p^k. One of
V values is reported if k ln(1/p) ≥ ln(1000 V). Here p is the share among all rows, or the largest
share of a value that is not always last, whichever is larger: if some situations nearly always end
episodes, another one may do so by chance.
Columns that follow the step, such as weeks, are left out: the last week has last rows only. No log
shows whether a value was known before the decision, so the user is asked.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from surestep._arrays import AnyArray, IntArray, marked
from surestep._words import listed
from surestep.checks.check import Check, CheckKind
from surestep.model.log import DecisionLog

ALARMS = 1000  # one false alarm in so many columns


def values_told_after(texts: Sequence[str], place: IntArray, offsets: IntArray) -> list[str]:
    """Returns the values of a column that occur in last rows only, too often for chance.

    `place` [N] is where each row has its text; rows are sorted by episodes with `offsets` [E+1].
    """
    labels, code = np.unique(np.array(texts, str), return_inverse=True)
    value = code[place]
    last = marked(offsets[1:] - 1, value.size)
    times = np.bincount(value, minlength=len(labels))
    ending = np.bincount(value[last], minlength=len(labels))
    goes_on = ending < times
    share = max(float(last.mean()), float((ending / np.maximum(times, 1))[goes_on].max(initial=0)))
    enough = times * -math.log(share) >= math.log(ALARMS * np.count_nonzero(times))
    after = labels[~goes_on & enough].tolist()
    return [] if after and follows_step(labels, value, offsets) else after


def follows_step(labels: AnyArray, value: IntArray, offsets: IntArray) -> bool:
    """Tells whether the step determines the value, or numbers rise, or fall, with every step."""
    step = np.arange(value.size) - np.repeat(offsets[:-1], np.diff(offsets))
    if np.unique(step * np.int64(len(labels)) + value).size == np.unique(step).size:
        return True
    with suppress(ValueError):  # the labels are no numbers
        change = np.diff(np.array([*map(float, labels)])[value])[step[1:] > 0]
        return bool((change > 0).all() or (change < 0).all())
    return False


def columns_told_after(
    columns: Mapping[str, Sequence[str]], place: IntArray, offsets: IntArray
) -> dict[str, list[str]]:
    """Returns the values that occur in last rows only, too often for chance, by column.

    `place` [N] is where each row has its text in a column; rows are sorted by episodes with
    `offsets` [E+1].
    """
    told = {name: values_told_after(texts, place, offsets) for name, texts in columns.items()}
    return {name: values for name, values in told.items() if values}


def check(log: DecisionLog, columns: Mapping[str, Sequence[str]]) -> Check | None:
    """Fails if columns of the state, given as texts [S], have values that tell the outcome."""
    told = columns_told_after(columns, log.state, log.episode_offsets)
    words = "; ".join(f"{name!r}: {listed([*map(repr, x)])}" for name, x in told.items())
    return Check(code=KIND.code, outcome="failed", signal=words) if told else None


KIND = CheckKind(
    code="outcome-in-state",
    title="A column of the situation may have been known only after the decision",
    failed="Was it known before the decision? These values stand in last rows of episodes only, as "
    "an outcome does. If it was known, say so (`known_before` under [columns]). If not, leave it "
    "out of the state; if it tells how episodes end, make it the column of ends (`terminated`). "
    "Then repeat the analysis.",
    asks=True,
    forbids_proof=lambda check, certificate: True,
)
