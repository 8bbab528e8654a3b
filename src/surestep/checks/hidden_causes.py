"""Finds how strong a hidden cause would have to be to undo the gain, beside recorded columns.

`planning.tilted` computes the gain that is left if a hidden cause tilts the odds of decisions by at
most Γ, in situations that look the same. It falls in Γ, as more laws are allowed. Γ* is the odds at
which nothing is left: of the estimate, of the belief (by the δ-quantile over models of the
posterior), and of the robust claim (with scaled sets, `certificates.tilted_sets`).

These models are drawn under one prior. The belief that is shown may be less, for other priors and
for an uncertain current policy. So each draw is reduced by the difference at Γ = 1.

**A yardstick**: how strong a recorded column would be, had nobody recorded it. Without it some
situations look the same, and the odds of an action differ between them. With log odds x of an
action in a situation, and x̄ in all that look the same, its strength is the root of the mean of
(x − x̄)² over all decisions; half a decision more of either kind keeps x finite. The largest
difference would be noise. Noise makes even the mean too large, so the mean of shuffled
columns is subtracted. A column that is not stronger than all of 19 shuffled ones has odds of 1. So
about one in twenty columns without meaning has more.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.special import logit

from surestep._arrays import IntArray, run_sums
from surestep.checks.check import Check, CheckKind, GivenResult, Mark
from surestep.checks.words import filled
from surestep.model import Certificate, Pairs
from surestep.planning.tilted import WorstCase

CURVE = (1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0)  # odds at which the gain is shown
MOST = 20.0  # the largest odds that are tried
HALVINGS = 10
SHUFFLES = 19


def break_even(left: Callable[[float], float], most: float) -> float:
    """Returns the odds at which the falling function `left` reaches 0; at most `most`."""
    low = 1.0
    high = middle = most
    for _ in range(HALVINGS):
        if left(middle) > 0:
            low = middle
        else:
            high = middle
        middle = math.sqrt(low * high)
    return low


def column_odds(
    visits: IntArray, pairs: Pairs, columns: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Returns the odds of each column, by decisions [K] and the texts [S] of the columns.

    A single column has no odds: without it, no situations would be left to compare.
    """
    codes = np.array([np.unique(texts, return_inverse=True)[1] for texts in columns.values()])
    odds = {}
    for place, name in enumerate(columns if len(columns) > 1 else ()):
        _, look = np.unique(np.delete(codes, place, axis=0), axis=1, return_inverse=True)
        odds[name] = odds_within(visits, pairs, look.ravel()[pairs.state])
    return odds


def odds_within(visits: IntArray, pairs: Pairs, look: IntArray) -> float:
    """Returns by which odds actions differ between situations of the same `look` [K, by pair]."""
    visits = visits // (1 + visits.sum() // 10**9)  # the most that NumPy can draw from
    here = run_sums(visits, pairs.offsets)[pairs.state]
    action = look * pairs.num_actions + pairs.action
    taken = np.bincount(action, visits).astype(np.int64)[action]
    among = np.bincount(look, visits).astype(np.int64)[look]
    # Among rows that look the same, shuffled counts of an action are hypergeometric.
    luck = np.random.default_rng(0).hypergeometric(
        taken, among - taken, here, (SHUFFLES, visits.size)
    )
    times = np.vstack([visits, luck])
    differ = logit((times + 0.5) / (here + 1)) - logit((taken + 0.5) / (among + 1))
    own, *shuffled = (times * differ**2).sum(axis=1) / max(int(visits.sum()), 1)
    return math.exp(math.sqrt(own - np.mean(shuffled))) if own > max(shuffled) else 1.0


def check(result: GivenResult) -> Check:
    """Returns how strong hidden causes would have to be to undo a gain, and how strong columns are.

    The picture has marks without a name, the gain at several odds, then the odds of each column.
    """
    given = result.causes
    if isinstance(given, str):
        return Check.unchecked(KIND.code, given)
    estimate = break_even(lambda odds: given.estimate.gains(odds)[0], MOST)
    belief = estimate
    if given.belief is not None and given.drawn is not None:
        belief = break_even(believed(given.drawn, given.belief), estimate)
    figures = {"estimate_odds": estimate, "belief_odds": belief}
    if given.robust is not None:
        figures["robust_odds"] = break_even(given.robust, estimate)
    return Check(
        code=KIND.code,
        outcome="told",
        figures=figures,
        picture=(
            *(Mark("", x, x, given.estimate.gains(x)[0]) for x in CURVE if x < 2 * estimate),
            *(
                Mark(name, 1.0, odds, odds)
                for name, odds in column_odds(
                    given.visits, given.estimate.policy.pairs, given.columns
                ).items()
            ),
        ),
    )


def believed(drawn: WorstCase, belief: Certificate) -> Callable[[float], float]:
    """Returns the function that maps odds to what is left of a belief, by the drawn models."""
    rank = max(int(belief.delta * (drawn.plain_gains.size + 1)), 1) - 1
    above = max(np.sort(drawn.plain_gains)[rank] - (belief.lower or 0.0), 0.0)
    return lambda odds: np.sort(drawn.gains(odds))[rank] - above


def odds_to_undo(checks: Sequence[Check]) -> float | None:
    """Returns Γ* of the belief, or of the estimate without a belief; None if no check has one."""
    return next((x.figures["belief_odds"] for x in checks if "belief_odds" in x.figures), None)


def strongest(checks: Sequence[Check]) -> Mark | None:
    """Returns the column that would be the strongest cause if nobody had recorded it."""
    columns = [
        mark
        for check in checks
        for mark in check.picture
        if check.code == KIND.code and mark.name and mark.value > 1
    ]
    return max(columns, key=lambda mark: mark.value, default=None)


def told(check: Check) -> str:
    """Returns how strong hidden causes would have to be, in words; by total variation if older."""
    if "proved" in check.figures:
        return filled(
            "The claim of {lower:+} could fall if they changed the chances of what follows by more "
            "than {estimated:%} at every step, if the model's values are right; by value bounds "
            "alone, from {proved:%} on.",
            check,
        )
    robust = ", what all possible models promise up to {robust_odds:2}"
    return filled(
        "The gain may be gone if one makes people choose an action {belief_odds:2} times as often "
        "(in odds) in situations that look the same; the best guess alone stands up to "
        f"{{estimate_odds:2}}{robust * ('robust_odds' in check.figures)}. A cause that lasts from "
        "step to step may need less.",
        check,
    )


KIND = CheckKind(
    code="hidden-causes",
    title="No hidden cause affects both decisions and outcomes",
    always="No log shows hidden causes: a severity that doctors see and the log does not can make "
    "any action look good or bad.",
    failed="",
    told=told,
    figures=("estimate_odds", "belief_odds"),  # equal without a belief
    figures_also=(
        ("estimate_odds", "belief_odds", "robust_odds"),  # if there is a robust claim above 0
        ("proved", "estimated", "lower"),  # in earlier releases: two break-even ε, and the claim
    ),
    of_result=check,
)
