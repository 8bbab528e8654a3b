"""The certificate of the mended beta bound, for counts of visits that were fixed beforehand.

In a log they were not: a logger who repeats an action until it looks good makes such claims wrong
(see `Robust`, which has a strict form). So the standing is asymptotic, or that of a posterior.

Let M̂ be the estimated MDP, and e(s,a) ≥ ‖P(·|s,a) − P̂(·|s,a)‖₁ for every pair, at 1 − δ together
(see `bounds.beta_corrected`; δ is shared among all rows that may have more than one successor, and
the share of a row among its splits, before the data). Rewards R are known. For a policy π write
W = R + γ V_M^π for what comes of a step. Subtract V_M̂ = Σ_a π Σ P̂ (R + γ V_M̂) from
V_M = Σ_a π Σ P (R + γ V_M):

    V_M − V_M̂ = Σ_a π Σ (P − P̂) W + γ Σ_a π Σ P̂ (V_M − V_M̂).

So V_M − V_M̂ is the value of π in M̂ when a step earns Σ (P − P̂) W, and with the expected discounted
visits d of the pairs in M̂, which the data tell exactly,

    ρ(π, M) − ρ(π, M̂) = Σ_(s,a) d(s,a) Σ_s' (P − P̂)(s'|s,a) W(s').

P − P̂ adds up to 0, so that only the spread of W counts: the inner sum is at most e(s,a)/2 times
max W − min W ≤ γ (V_max − V_min) + max R(s,a,·) − min R(s,a,·). Hence

    |ρ(π, M) − ρ(π, M̂)| ≤ loss(π) = Σ_(s,a) d(s,a) · e(s,a)/2 · (γ (V_max − V_min) + spread of R),

which is the performance of π in M̂ with these terms as rewards, and is computed as such. Both
policies together give L = ρ(π_I, M̂) − ρ(π_b, M̂) − loss(π_I) − loss(π_b). The d of a policy add up
to 1/(1 − γ) at most, and V_max − V_min is at most twice the paper's V_max; so where rewards belong
to pairs, that takes off less than half of 4/(1 − γ) · V_max · max e, the published formula.

Nothing is said about a pair that was never seen. So every pair that π_I or π_b takes must have more
than N∧ visits; where one has not, there is no certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray
from surestep.bounds.beta_corrected import (
    BetaCorrected,
    BetaCorrectedPosterior,
    RowCounts,
    row_errors,
)
from surestep.certificates.apriori import gain_terms, performance_with_bound, usable_discount
from surestep.certificates.common import (
    Needs,
    check_delta,
    check_n_wedge,
    log_statements,
    values_statement,
)
from surestep.certificates.confidence import MOST_VISITS
from surestep.certificates.uncertainty import SMALLEST_LEVEL, sorted_counts
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model.certificate import Certificate
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.scalars import Scalar
from surestep.model.statements import Statement

CORRECTED: dict[str, BetaCorrected | BetaCorrectedPosterior] = {
    "beta-corrected": BetaCorrected(),
    "beta-corrected-posterior": BetaCorrectedPosterior(),
}
WIDENED = 1e-9  # of the error of a row: more than inverse beta functions and rounding are off


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedBeta:
    """The claim of the mended beta bound, where the data show every pair that either policy takes.

    `bound` says which interval a split has: Clopper and Pearson's, or a credible one under a
    uniform prior. `n_wedge` is N∧; None takes the largest that the data allow.
    """

    bound: str = "beta-corrected"  # or "beta-corrected-posterior"
    delta: float = 0.1
    n_wedge: int | None = None

    name: ClassVar = "beta-corrected"
    value_figures: ClassVar = frozenset(
        {"loss", "performance", "behavior_performance", "evaluation_error", "gain"}
    )
    needs: ClassVar = Needs(exact_rewards=True)
    may_choose: ClassVar = False

    def __post_init__(self) -> None:
        """Checks the settings."""
        if not isinstance(self.bound, str) or self.bound not in CORRECTED:
            raise InvalidParameter(
                f"bound is {self.bound!r}, expected one of {', '.join(CORRECTED)}"
            )
        check_delta(self.delta)
        check_n_wedge(self.n_wedge)

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns L = gain − loss(π_I) − loss(π_b), less what evaluating them may be off."""
        discount = usable_discount(problem)
        low, high = problem.value_bounds
        counts, behavior = problem.counts, problem.behavior
        changed = policy.probability != behavior.probability
        figures: dict[str, Scalar] = {
            "states": problem.num_states,
            "pairs": counts.pairs.num_pairs,
            "discount": discount,
            "value_low": low,
            "value_high": high,
            "visits": int(counts.visits.sum()),
            "changed_pairs": int(np.count_nonzero(changed)),
        }
        if problem.support is not None:
            figures["successors"] = problem.support.successor.size
        lower = 0.0
        notes: tuple[Statement, ...] = ()
        if not changed.any():
            notes = (Statement("nothing-changed"),)
        else:
            used = (policy.probability > 0) | (behavior.probability > 0)
            used &= ~counts.terminal[counts.pairs.state]
            figures["n_wedge"] = self.n_wedge_of(problem, used)
            refuse_open_rewards(problem, used)
            terms = self.terms(problem, policy, used)
            figures |= terms
            lower = terms["gain"] - terms["loss"]
            if lower > high - low:
                raise RefutedBounds(
                    f"value_bounds is {problem.value_bounds}, but by the data the policies differ "
                    f"by at least {lower:.6g}; expected bounds on the values of both policies",
                    code="difference-beyond-values",
                )
        return Certificate(
            kind=self.name,
            standing="asymptotic" if self.bound == "beta-corrected" else "posterior",
            lower=lower,
            delta=self.delta,
            span=high - low,
            assumptions=self.assumptions(problem),
            notes=notes,
            parameters={"bound": self.bound, "delta": self.delta, "n_wedge": self.n_wedge},
            figures=figures,
        )

    def n_wedge_of(self, problem: Problem, used: BoolArray) -> int:
        """Returns N∧, once every pair that is used has more visits."""
        visits, pairs = problem.counts.visits, problem.counts.pairs
        smallest = int(visits[used].min(initial=LARGEST_TOTAL))
        n_wedge = max(smallest - 1, 0) if self.n_wedge is None else int(self.n_wedge)
        arrays.refuse_where(
            used & (visits <= n_wedge),
            lambda k: (
                f"a policy takes {pairs.pair_name(k)}, which the data visits {visits[k]} times; "
                f"the bound {self.bound} needs more than {n_wedge} of every pair that is taken"
            ),
            "pair",
            partial(CertificateRefused, code="too-few-visits"),
        )
        return n_wedge

    def terms(self, problem: Problem, policy: Policy, used: BoolArray) -> dict[str, float]:
        """Returns the gain in the estimate and what it may be off for both policies, in parts."""
        error = self.errors(problem)
        low, high = problem.value_bounds
        spread = problem.single_discount * (high - low) + reward_spread(problem)
        cost = error / 2 * spread
        estimated = problem.estimate()
        costs = replace(
            estimated,
            reward=np.repeat(cost, arrays.run_lengths(estimated.offsets)),
            ending_reward=np.zeros(cost.size),
        )
        both = [performance_with_bound(costs, taken) for taken in (policy, problem.behavior)]
        loss = sum(cost + above for cost, above in both)
        largest = float(error[used].max(initial=0.0))
        return gain_terms(problem, policy) | {"largest_row_error": largest, "loss": loss}

    def errors(self, problem: Problem) -> FloatArray:
        """Returns e(s,a) [K] of all pairs, at 1 − δ together."""
        counts, support = sorted_counts(problem.counts), problem.support
        sizes, ends = problem.support_sizes(), counts.terminal[counts.pairs.state]
        open_rows = max(int(np.count_nonzero(~ends & (sizes > 1))), 1)
        share = float(self.delta) / open_rows
        if counts.visits.sum() > MOST_VISITS or share / max(sizes.max(), 1) < SMALLEST_LEVEL:
            raise CertificateRefused(
                f"{counts.visits.sum()} visits and {open_rows} rows that share delta = "
                f"{self.delta} are beyond what intervals can be computed for",
                code="intervals-beyond-computing",
            )
        if support is None:
            rows = RowCounts(counts.offsets, counts.successor, counts.times, sizes)
        else:
            place = np.arange(support.successor.size) - np.repeat(support.offsets[:-1], sizes)
            rows = RowCounts(support.offsets, place, support.times(counts), sizes)
        error = row_errors(CORRECTED[self.bound], rows, share)
        return np.where(sizes > 1, np.minimum(error + WIDENED, 2.0), 0.0)

    def assumptions(self, problem: Problem) -> tuple[Statement, ...]:
        """Returns what must hold for the claim."""
        return (
            *log_statements(problem),
            Statement("rewards-known"),
            Statement("starts-as-logged"),
            Statement("ends-as-marked"),
            values_statement(problem),
            *(() if problem.support is None else (problem.support.statement(),)),
            Statement("visits-fixed")
            if self.bound == "beta-corrected"
            else Statement("splits-prior"),
        )


def refuse_open_rewards(problem: Problem, used: BoolArray) -> None:
    """Refuses rewards that are not known, for every successor that a used pair may have."""
    counts, sizes = problem.counts, problem.support_sizes()
    pairs = counts.pairs
    if not counts.rewards.known:
        raise CertificateRefused(
            "the rewards are not known, only what was observed of them; expected known rewards",
            code="rewards-not-known",
        )
    if counts.rewards.per == "pair":
        return
    given = problem.stored_sizes()
    arrays.refuse_where(
        used & (given < sizes),
        lambda k: (
            f"the known rewards of {pairs.pair_name(k)} are given for {given[k]} of the "
            f"{sizes[k]} states that it may lead to; expected known rewards for all of them"
        ),
        "pair",
        partial(CertificateRefused, code="rewards-partly-known"),
    )


def reward_spread(problem: Problem) -> FloatArray:
    """Returns max R(s,a,·) − min R(s,a,·) of each pair [K] over the successors that it may have."""
    counts = problem.counts
    size = counts.pairs.num_pairs
    if counts.rewards.per == "pair":
        return np.zeros(size)
    inside, owner = problem.possible(), arrays.run_owners(counts.offsets)
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, owner[inside], counts.rewards.values[inside])
    np.maximum.at(most, owner[inside], counts.rewards.values[inside])
    return np.where(most >= least, most - least, 0.0)
