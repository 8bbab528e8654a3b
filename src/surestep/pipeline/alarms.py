"""The alarms of a result: what does not fit together, and what rests on little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from surestep._arrays import run_sums
from surestep.certificates import find_kind
from surestep.checks import Check, CheckCode
from surestep.checks.places import MOST_OF_THE_TIME
from surestep.model import Certificate
from surestep.results.alarms import Alarm, AlarmCode
from surestep.results.baseline import Baseline
from surestep.results.record import Estimates
from surestep.results.table import PolicyTable

ALARM_OF: Mapping[CheckCode, AlarmCode] = {
    "markov-next-state": "not-markov",
    "markov-reward": "rewards-remember",
    "model-returns": "values-off",
    "drift-next-state": "drift",
    "drift-reward": "reward-drift",
    "behavior-memory": "behavior-remembers",
    "practice-changed": "practice-changed",
}
FIRST_PLACE = 0.5  # the chance of an action that is recommended
FEW_VISITS, FEW_OF_ALL = 10, 0.05  # decisions behind a recommendation


def alarms_of(
    table: PolicyTable,
    certificates: Sequence[Certificate],
    *,
    estimates: Estimates,
    checks: Sequence[Check],
    baseline: Baseline | None,
    rewards_vary: bool,
) -> tuple[Alarm, ...]:
    """Returns all alarms.

    A claim is compared with the gain that data estimate which did not choose the policy; without
    such, with the larger of both other estimates. `checks` are those of its assumptions.
    """
    chosen_by = estimates["policy"] - estimates["behavior"]
    gain = max(chosen_by, estimates.get("gain_of_all", chosen_by))
    gain = estimates.get("held_out_gain", gain)
    alarms = [*claim_alarms(certificates, gain, baseline)]
    alarms += check_alarms(checks)
    if baseline is not None and baseline.has_gap:
        figures = {"model": baseline.model, "low": baseline.low, "high": baseline.high}
        alarms.append(Alarm("baseline-gap", figures))
    exact = [claim for claim in certificates if takes_means(claim.kind)]
    if rewards_vary and any((claim.lower or 0) > 0 for claim in exact):
        alarms.append(Alarm("rewards-vary", {}))
    if any((claim.lower or 0) > 0 and may_be_confounded(claim) for claim in certificates):
        alarms.append(Alarm("acted-on-more", {}))
    return (*alarms, *few_alarms(table))


def takes_means(kind: str) -> bool:
    """Tells whether certificates of a kind take mean rewards for exact."""
    known = find_kind(kind)
    return known is not None and known.needs.exact_rewards


def may_be_confounded(claim: Certificate) -> bool:
    """Tells whether a claim excludes hidden causes, where whoever acted saw more than the state."""
    return {"acted-on-more", "no-hidden-causes"} <= {said.code for said in claim.assumptions}


def claim_alarms(
    certificates: Sequence[Certificate], gain: float, baseline: Baseline | None
) -> Iterator[Alarm]:
    """Yields alarms about claims that are better than what was seen."""
    claims = [claim.lower for claim in certificates if claim.lower is not None]
    highest = max(claims, default=0.0)
    if highest > max(gain, 0.0) + 1e-9 * abs(gain):
        yield Alarm("claim-above-estimate", {"claim": highest, "estimate": gain})
    if baseline is None:
        return
    low, high = baseline.least, baseline.greatest
    # Who earns something may earn more; who only pays can gain no more than all of it.
    if highest > max(high, 0.0) - min(low, 0.0):
        yield Alarm("claim-above-returns", {"claim": highest, "low": low, "high": high})


def check_alarms(checks: Sequence[Check]) -> Iterator[Alarm]:
    """Yields alarms about assumptions that the log contradicts, and places that it hardly knows."""
    for check in checks:
        if check.outcome != "failed":
            continue
        if check.code == "enough-data":
            yield from place_alarms(check.figures)
        elif check.p_value is not None and check.level is not None:
            figures = {"p_value": check.p_value, "level": check.level}
            yield Alarm(ALARM_OF[check.code], figures)


def place_alarms(figures: Mapping[str, float]) -> Iterator[Alarm]:
    """Yields alarms about a policy that lives where the log hardly was, in open bins above all."""
    places: tuple[tuple[AlarmCode, str], ...]
    places = (("time-in-scarce-states", "scarce"), ("time-in-open-bins", "open"))
    for code, name in places:
        if figures[f"{name}_share"] > MOST_OF_THE_TIME:
            decisions = int(figures[f"{name}_decisions"])
            yield Alarm(code, {"share": figures[f"{name}_share"], "decisions": decisions})


def few_alarms(table: PolicyTable) -> Iterator[Alarm]:
    """Yields an alarm where first choices rest on few of a state's decisions."""
    pairs = table.pairs
    decisions = run_sums(table.visits, pairs.offsets)[pairs.state]
    raised = table.probability > table.behavior + FIRST_PLACE / 2
    few = (table.visits < FEW_VISITS) | (table.visits < FEW_OF_ALL * decisions)
    bold = np.flatnonzero(raised & (table.probability >= FIRST_PLACE) & few & table.decided)
    if bold.size:
        worst = bold[np.argmin(table.visits[bold])]
        figures = {
            "situations": int(np.unique(pairs.state[bold]).size),
            "visits": int(table.visits[worst]),
            "decisions": int(decisions[worst]),
        }
        yield Alarm("first-on-few", figures)
