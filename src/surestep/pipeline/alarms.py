"""Which alarms a result gives: what does not fit together, and what rests on little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from surestep._arrays import BoolArray, FloatArray, run_sums
from surestep.certificates import find_kind
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Certificate
from surestep.results.alarms import Alarm, AlarmCode
from surestep.results.baseline import Baseline
from surestep.results.table import PolicyTable

MOST_OF_THE_TIME = 0.5
MORE_THAN_THE_LOG = 0.5  # of the time in open bins, where the log has fewer of its decisions
SCARCE = 0.1  # of the time that the new policy spends in a state, where the log has fewer decisions
FIRST_PLACE = 0.5  # the chance of an action that is recommended
FEW_VISITS, FEW_OF_ALL = 10, 0.05  # decisions behind a recommendation


def alarms_of(
    table: PolicyTable,
    certificates: Sequence[Certificate],
    *,
    gain: float,
    occupancy: FloatArray,
    baseline: Baseline | None,
    rewards_vary: bool,
    bounds_from_data: tuple[float, float] | None,
) -> tuple[Alarm, ...]:
    """Returns all alarms.

    `occupancy` [S] is the share of the new policy's time in each state, `gain` the estimated one,
    `bounds_from_data` the value bounds where nobody gave any.
    """
    found = [*claim_alarms(certificates, gain, baseline)]
    found += place_alarms(table, occupancy)
    if baseline is not None and baseline.has_gap:
        figures = {"model": baseline.model, "low": baseline.low, "high": baseline.high}
        found.append(Alarm("baseline-gap", figures))
    first = certificates[0]
    if bounds_from_data is not None and first.standing == "proved" and (first.lower or 0) > 0:
        low, high = bounds_from_data
        found.append(Alarm("bounds-from-data", {"low": low, "high": high}))
    exact = [each for each in certificates if takes_means(each.kind)]
    if rewards_vary and any((each.lower or 0) > 0 for each in exact):
        found.append(Alarm("rewards-vary", {}))
    return (*found, *few_alarms(table))


def takes_means(kind: str) -> bool:
    """Tells whether certificates of a kind take mean rewards for exact."""
    known = find_kind(kind)
    return known is not None and known.needs.exact_rewards


def claim_alarms(
    certificates: Sequence[Certificate], gain: float, baseline: Baseline | None
) -> Iterator[Alarm]:
    """Yields alarms about claims that are better than what was seen."""
    claims = [each.lower for each in certificates if each.lower is not None]
    highest = max(claims, default=0.0)
    if highest > max(gain, 0.0) + 1e-9 * abs(gain):
        yield Alarm("claim-above-estimate", {"claim": highest, "estimate": gain})
    if baseline is None:
        return
    low, high = baseline.least, baseline.greatest
    # Who earns something may earn more; who only pays can gain no more than all of it.
    if highest > max(high, 0.0) - min(low, 0.0):
        yield Alarm("claim-above-returns", {"claim": highest, "low": low, "high": high})


def place_alarms(table: PolicyTable, occupancy: FloatArray) -> Iterator[Alarm]:
    """Yields alarms about a policy that lives where the log hardly was, in open bins above all."""
    if not table.changed.any():
        return
    decisions = run_sums(table.visits + table.held_out_visits, table.pairs.offsets)
    share = decisions / max(int(decisions.sum()), 1)
    scarce, is_open = share < SCARCE * occupancy, in_open_bins(table.vocabulary)
    if float(share[is_open].sum()) >= MORE_THAN_THE_LOG * float(occupancy[is_open].sum()):
        is_open = np.zeros_like(is_open)  # the log knows these bins well
    found: tuple[tuple[AlarmCode, BoolArray], ...]
    found = (("time-in-scarce-states", scarce), ("time-in-open-bins", is_open))
    for code, there in found:
        time = float(occupancy[there].sum())
        if time > MOST_OF_THE_TIME:
            yield Alarm(code, {"share": time, "decisions": int(decisions[there].sum())})


def in_open_bins(vocabulary: Vocabulary) -> BoolArray:
    """Returns the states [S] a column of which is a bin without an end."""
    open_labels = [
        set() if column not in vocabulary.binnings else vocabulary.binnings[column].open_labels()
        for column in vocabulary.state_columns
    ]
    return np.array(
        [
            any(text in labels for text, labels in zip(state, open_labels, strict=True))
            for state in vocabulary.states
        ],
        np.bool_,
    )


def few_alarms(table: PolicyTable) -> Iterator[Alarm]:
    """Yields an alarm where first choices rest on few of a state's decisions."""
    pairs = table.pairs
    decisions = run_sums(table.visits, pairs.offsets)[pairs.state]
    raised = table.probability > table.behavior + FIRST_PLACE / 2
    few = (table.visits < FEW_VISITS) | (table.visits < FEW_OF_ALL * decisions)
    found = np.flatnonzero(raised & (table.probability >= FIRST_PLACE) & few & table.decided)
    if found.size:
        worst = found[np.argmin(table.visits[found])]
        figures = {
            "situations": int(np.unique(pairs.state[found]).size),
            "visits": int(table.visits[worst]),
            "decisions": int(decisions[worst]),
        }
        yield Alarm("first-on-few", figures)
