"""Does the log have enough data where the new policy leads, and for what it newly recommends?"""

import numpy as np

import surestep._arrays as arrays
from surestep.checks.check import Check, CheckKind, GivenResult, Mark

MOST_OF_THE_TIME = 0.5
MORE_THAN_THE_LOG = 0.5  # times the share of time in an open bin: fewer decisions are too few
SCARCE = 0.1  # times the share of time in a state: fewer decisions are scarce
SHOWN = 8  # states
PLACES = ("scarce", "open")
FIRST_PLACE = 0.5  # the least probability of a recommended action
FEW_VISITS = 10  # fewer decisions with an action are few
FEW_OF_ALL = 0.05  # a smaller share of the decisions of its state is few


def check(result: GivenResult) -> Check:
    """Compares the new policy's time in each state with the decisions of the log there.

    The time is estimated by the model. A state is scarce if its share of the decisions that chose
    the policy is less than a tenth of its share of the time. A state of a bin that is open to one
    side counts if its share of these decisions is less than half of its share of the time. The
    check fails if the states of either sort take most of the time. Nothing is tested if the policy
    changes nothing.
    """
    policy = result.policy
    if policy is None:
        return Check.unchecked(KIND.code, "no-change")
    offsets = policy.pairs.offsets
    chose = arrays.run_sums(policy.visits, offsets)
    decisions = chose + arrays.run_sums(policy.held_out_visits, offsets)
    share = policy.time / (policy.time.sum() or 1.0)
    known = chose / max(int(chose.sum()), 1)
    of_all = decisions / max(int(decisions.sum()), 1)
    scarce = known < SCARCE * share
    is_open = policy.is_open & (known < MORE_THAN_THE_LOG * share)
    figures = dict[str, float]()
    for name, spent in zip(PLACES, (scarce, is_open), strict=True):
        figures |= {
            f"{name}_share": float(share[spent].sum()),
            f"{name}_states": float(np.count_nonzero(spent)),
            f"{name}_decisions": float(decisions[spent].sum()),
        }
    most = max(figures["scarce_share"], figures["open_share"])
    marked = scarce | is_open
    shown = [s for s in np.argsort(-share, kind="stable")[:SHOWN].tolist() if share[s] > 0]
    return Check(
        code=KIND.code,
        outcome="failed" if most > MOST_OF_THE_TIME else "passed",
        figures=figures,
        picture=tuple(
            Mark(policy.names[s], 0.0, share[s], share[s], of_all[s], marked=bool(marked[s]))
            for s in shown
        ),
    )


def first_on_few(result: GivenResult) -> Check | None:
    """Fails if the policy newly recommends actions that few decisions of their state took."""
    policy = result.policy
    if policy is None:
        return None
    visits = policy.visits
    decisions = arrays.run_sums(visits, policy.pairs.offsets)[policy.pairs.state]
    raised = policy.probability > policy.behavior + FIRST_PLACE / 2
    few = (visits < FEW_VISITS) | (visits < FEW_OF_ALL * decisions)
    bold = np.flatnonzero(raised & (policy.probability >= FIRST_PLACE) & few & policy.decided)
    if bold.size == 0:
        return None
    worst = bold[np.argmin(visits[bold])]
    counts = np.unique(policy.pairs.state[bold]).size, visits[worst], decisions[worst]
    return Check(
        code=FEW.code,
        outcome="failed",
        figures=dict(zip(FEW.figures, map(float, counts), strict=True)),
    )


SPENDS = (
    "The new policy spends {scarce_share:%} of its time in situations that the log hardly visits "
    "({scarce_decisions:decision}), and {open_share:%} in bins that are open to one side "
    "({open_decisions:decision})"
)
KIND = CheckKind(
    code="enough-data",
    title="The log has enough data where the new policy goes",
    broken="The log has little data where the new policy goes",
    passed=f"{SPENDS}.",
    failed=f"{SPENDS}: its worth there is mostly a guess.",
    aside="It fails where more than half of the time, as estimated, is spent in states that the "
    "log hardly visits, or of bins that are open to one side.",
    figures=tuple(f"{name}_{what}" for name in PLACES for what in ("share", "states", "decisions")),
    of_result=check,
)
FEW = CheckKind(
    code="first-on-few",
    title="Top recommendations rest on few observations",
    failed="The top recommendation rests on few observations in {situations:situation}: in one on "
    "{visits} of {decisions:decision}.",
    figures=("situations", "visits", "decisions"),  # the last two of the worst situation
    of_result=first_on_few,
)
