"""Tells how strong hidden causes would have to be, which no log shows.

A hidden cause (a severity that doctors see and the log does not show) makes what follows an action
in the log differ from what would follow if the policy chose it. Suppose that for either policy, at
every step and whatever came before, the law of the outcome (reward, next state) differs from the
row that the claim is about by at most ε in total variation: each event changes its probability by
at most ε. Suppose further that expected returns from any step on stay within the value bounds.

**Lemma.** |ρ'(π) − ρ(π)| ≤ span · ε / (1 − γ(1 − ε)), where span = V_max − V_min is the width of
what a return from any outcome on is worth, on average.

*Proof.* Run both processes on one space, with a maximal coupling of their outcomes at each step.
As long as all outcomes were the same, actions can be drawn the same, and the next outcomes differ
with probability at most ε, whatever came before. Let T be the first step at which they differ. Up
to T both have earned the same; from T on, counted at T, each is worth between V_min and V_max on
average. So |ρ' − ρ| ≤ span · E[γ^T] with P(T ≥ t) ≥ (1 − ε)^t, and E[γ^T] is largest where T comes
as early as it may, P(T = t) = ε(1 − ε)^t: E[γ^T] ≤ Σ_t γ^t ε (1 − ε)^t = ε / (1 − γ(1 − ε)). ∎

Both policies may be hit, so a claim Δ ≥ L becomes Δ' ≥ L − 2 span ε / (1 − γ(1 − ε)). With
κ = L / (2 span) that is at least 0 as long as **ε ≤ κ(1 − γ) / (1 − κγ)**, or for every ε if
κ ≥ 1. For small ε it is the usual 2 ε span / (1 − γ). It is a worst case: most hidden causes of
that strength would take less, but none can be told apart from the worst one by the log.

Value bounds are often wide. With the values V of a policy in the model itself one has the

**Lemma** (simulation lemma). |ρ'(π) − ρ(π)| ≤ ε w / (1 − γ), where w is the largest difference of
r + γV(s') between two outcomes.

*Proof.* V telescopes along the way: ρ' − ρ = Σ_t γ^t E'[r_t + γV(s_{t+1}) − V(s_t)]. Given what
came before, the mean of r_t + γV(s_{t+1}) would be V(s_t) if outcomes had the law of the model; for
each action it differs from that by at most ε w, hence also on average over the actions of π. ∎

So Δ' ≥ L − ε(w_I + w_b) / (1 − γ), and the gain stands up to **ε = L(1 − γ) / (w_I + w_b)**: as
far as the estimated values are right. Both lemmas hold at once, so the larger ε is what is told.
"""

from surestep.checks.check import Check, CheckKind, GivenResult


def break_even(lower: float, span: float, discount: float) -> float:
    """Returns the largest ε at which a claim Δ ≥ `lower` > 0 still proves a gain; at most 1."""
    share = lower / (2 * span)
    return 1.0 if share >= 1 else share * (1 - discount) / (1 - share * discount)


def break_even_in_model(lower: float, widths: tuple[float, float], discount: float) -> float:
    """Returns the same by the widths w_I and w_b of r + γV(s') in a model; at most 1."""
    total = sum(widths)
    return min(lower * (1 - discount) / total, 1.0) if total > 0 else 1.0


def check(result: GivenResult) -> Check:
    """Returns how strong hidden causes would have to be to undo a claim.

    A gain that stands whatever the states leave out needs no such figure.
    """
    lower = result.claim.lower or 0.0
    discount = result.discount
    if lower > 0 and any(said.code == "need-not-be-markov" for said in result.claim.notes):
        return Check.unchecked(KIND.code, "not-assumed")
    if lower <= 0 or result.span <= 0:
        return Check.unchecked(KIND.code, "no-claim")
    if discount >= 1:
        return Check.unchecked(KIND.code, "no-discount")
    proved = break_even(lower, result.span, discount)
    estimated = max(proved, break_even_in_model(lower, result.widths, discount))
    return Check(
        code=KIND.code,
        outcome="told",
        figures={"proved": proved, "estimated": estimated, "lower": lower},
    )


KIND = CheckKind(
    code="hidden-causes",
    title="No hidden cause affects both decisions and outcomes",
    always="No log shows hidden causes: a severity that doctors see and the log does not can make "
    "any action look good or bad.",
    failed="",
    told="The claim of {lower:+} could fall if they changed the chances of what follows by more "
    "than {estimated:%} at every step, if the model's values are right; by value bounds alone, "
    "from {proved:%} on.",
    figures=("proved", "estimated", "lower"),  # two break-even ε, and the claim
    of_result=check,
)
