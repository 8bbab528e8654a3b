"""Do top recommendations rest on few observations?"""

import numpy as np

import surestep._arrays as arrays
from surestep.checks.check import Check, CheckKind, GivenResult

FIRST_PLACE = 0.5  # the least probability of a recommended action
FEW_VISITS = 10  # fewer decisions with an action are few
FEW_OF_ALL = 0.05  # a smaller share of the decisions of its state is few


def check(result: GivenResult) -> Check | None:
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
        code=KIND.code,
        outcome="failed",
        figures=dict(zip(KIND.figures, map(float, counts), strict=True)),
    )


KIND = CheckKind(
    code="first-on-few",
    title="Top recommendations rest on few observations",
    failed="The top recommendation rests on few observations in {situations:situation}: in one on "
    "{visits} of {decisions:decision}.",
    figures=("situations", "visits", "decisions"),  # the last two of the worst situation
    of_result=check,
)
