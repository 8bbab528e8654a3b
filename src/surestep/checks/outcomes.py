"""Does a column of the state tell an outcome, known only after the decision?

A value that stands in last rows of episodes only was mostly written when the episode was over, as
a status is ("died", "discharged"): then what the action did is booked on the state. If a share p of
rows are last ones, chance puts all k rows of a value among them with p^k. Of V values one is called
so where k ln(1/p) ≥ ln(1000 V). The share is that of all rows, or of the value that has most of
those that also go on: where some situations nearly always end, another one may do so by chance.
Columns that follow the step, such as weeks, are left out: the last week has last rows only. Whether
it was known before, no log tells: it is asked.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from surestep._arrays import IntArray
from surestep._words import listed
from surestep.checks.check import Check, CheckKind
from surestep.model.log import DecisionLog

ALARMS = 1000  # one false alarm in so many columns


def values_told_after(labels: Sequence[str], value: IntArray, offsets: IntArray) -> list[str]:
    """Returns the values that stand in last rows only, too often for chance.

    `labels` [V] are those of the values [N], which lie by episodes with `offsets` [E+1].
    """
    last = np.zeros(value.size, np.bool_)
    last[offsets[1:] - 1] = True
    times = np.bincount(value, minlength=len(labels))
    ending = np.bincount(value[last], minlength=len(labels))
    goes_on = ending < times
    share = max(float(last.mean()), float((ending / np.maximum(times, 1))[goes_on].max(initial=0)))
    enough = times * -math.log(share) >= math.log(ALARMS * np.count_nonzero(times))
    after = [labels[v] for v in np.flatnonzero(~goes_on & enough).tolist()]
    return [] if after and follows_step(labels, value, offsets) else after


def follows_step(labels: Sequence[str], value: IntArray, offsets: IntArray) -> bool:
    """Tells whether the step tells the value, or numbers rise, or fall, with every step."""
    step = np.arange(value.size) - np.repeat(offsets[:-1], np.diff(offsets))
    if np.unique(step * np.int64(len(labels)) + value).size == np.unique(step).size:
        return True
    with suppress(ValueError):  # no numbers
        change = np.diff(np.array([*map(float, labels)])[value])[step[1:] > 0]
        return bool((change > 0).all() or (change < 0).all())
    return False


def columns_told_after(
    columns: Mapping[str, Sequence[str]], place: IntArray, offsets: IntArray
) -> dict[str, list[str]]:
    """Returns values that stand in last rows only, by column; each place has a text.

    `place` [N] is that of each row; rows lie by episodes with `offsets` [E+1].
    """
    told = dict[str, list[str]]()
    for name, texts in columns.items():
        labels, code = np.unique(np.array(texts, str), return_inverse=True)
        told[name] = values_told_after(labels.tolist(), code[place], offsets)
    return {name: values for name, values in told.items() if values}


def check(log: DecisionLog, columns: Mapping[str, Sequence[str]]) -> Check | None:
    """Looks for columns of the state, with a text for each [S], that tell the outcome."""
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
