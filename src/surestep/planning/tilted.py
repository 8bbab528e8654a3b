"""Evaluates a policy in the worst world that a hidden cause allows, by the odds Γ of its strength.

A hidden cause U (a severity that doctors see and the log does not show) makes people decide
otherwise in situations that look the same: the odds of the logged action given (s, U) differ from
those given s alone by a factor of at most Γ (marginal sensitivity: Tan 2006; in MDPs: Bruns-Smith
2021). Write p = π_b(a|s), P for the law of (r, s') that the log shows after (s, a), and T for the
law that follows if a is chosen whatever U is.

**Lemma.** α ≤ T/P ≤ β with α = p + (1 − p)/Γ and β = p + (1 − p)Γ.

*Proof.* Let q = π(a|s,u). By Bayes the density of U = u given (s, a), relative to that given s, is
q/p. So T(y) = E[P(y|s,a,U) | s] = E[(p/q) P(y|s,a,U) | s, a]. The odds q/(1 − q) lie within a
factor Γ of p/(1 − p), so 1/q − 1 lies between (1/p − 1)/Γ and (1/p − 1)Γ, and p/q between α and
β. ∎

**Worst backup.** The least E_T[y] of y = r + γ V(s') under α ≤ T/P ≤ β weighs everything by α and
the lowest outcomes by β until the weights sum to 1. With T = αP + (1 − α)Q that is Q ≤ (Γ + 1) P,
since (β − α)/(1 − α) = Γ + 1; so it is α E_P[y] + (1 − α) CVaR_τ(y) with τ = 1/(1 + Γ).

Where the new policy does what people do, they go on to decide, and U acts as before: no worst case.

**The value** of a policy is the fixed point of its worst backup B. Let T_n attain B V_n, and let
V_{n+1} be the value under T_n, from V_0 under P on. Then V_1 ≤ B V_0 ≤ V_0, as P is one of the
laws; so values fall, and end at the fixed point after finitely many orders of outcomes. As α > 0,
each T has the support of P: where episodes end under P, they end under T, and a discount of 1 does
no harm.

Every pair and step has the worst cause of its own, drawn anew. A cause that lasts is stronger than
that: who is still there was selected by it, so the law that the log shows is of other people.
"""

import numpy as np

from surestep._arrays import FloatArray, IntArray, altered, run_owners, run_sums, weighted_rows
from surestep.model import MDPBatch, Policy
from surestep.planning.evaluation import evaluate_batch

MOST_ROUNDS = 100  # two or three are usual
UNCHANGED = 1e-12  # probabilities this close are the same
SETTLED = 1e-11  # of the largest value: a change that ends the iteration; the same order has none


def chance_taken(policy: Policy, behavior: Policy) -> FloatArray:
    """Returns p = π_b(a|s) [K], but 1 in states where π_I equals π_b, so that nothing is tilted."""
    moved = run_sums(np.abs(policy.probability - behavior.probability), policy.pairs.offsets)
    return np.where(moved[policy.pairs.state] > UNCHANGED, behavior.probability, 1.0)


class WorstCase:
    """Computes a policy's gain over π_b in the worst case that odds Γ allow, in each of B models.

    Each transition has two rewards [2, B, T] with chances `shares` [2, B, T]. Among rewards with a
    given mean between two ends, rewards at the ends have the lowest tail. `starts` [B, S] are the
    start distributions of the models.
    """

    def __init__(
        self,
        models: MDPBatch,
        starts: FloatArray,
        rewards: FloatArray,
        shares: FloatArray,
        *,
        policy: Policy,
        behavior: Policy,
    ) -> None:
        self.models = models
        self.starts = starts
        self.policy = policy
        self.rewards = rewards
        self.chances = shares * models.probability
        self.pair = run_owners(models.offsets)
        self.taken = chance_taken(policy, behavior)[self.pair]
        ends = run_sums(models.probability, models.offsets) == 0
        self.ending_reward = np.where(ends, models.expected_reward, 0.0)
        self.usual = weighted_rows(evaluate_batch(models, behavior).value, starts)
        self.value = evaluate_batch(models, policy).value
        self.plain_gains = weighted_rows(self.value, starts) - self.usual  # at Γ = 1

    def gains(self, odds: float) -> FloatArray:
        """Returns ρ of the policy in the worst case at Γ = `odds`, at least 1, less ρ(π_b) [B].

        It begins with the values found last: the iteration ends at the fixed point from any.
        """
        models = self.models
        kept = self.taken + (1 - self.taken) / odds  # α
        for _ in range(MOST_ROUNDS):
            worth = self.rewards + models.discount[self.pair] * self.value[:, models.successor]
            weight = kept * self.chances + (1 - kept) * self.lowest(worth, 1 / (1 + odds))
            worst = altered(
                models,
                probability=weight.sum(axis=0),
                expected_reward=run_sums((weight * self.rewards).sum(axis=0), models.offsets)
                + self.ending_reward,
            )
            last = self.value
            self.value = evaluate_batch(worst, self.policy).value
            if np.abs(self.value - last).max() <= SETTLED * (1 + np.abs(last).max()):
                break
        return weighted_rows(self.value, self.starts) - self.usual

    def lowest(self, worth: FloatArray, tail: float) -> FloatArray:
        """Returns the law [2, B, T] of the lowest outcomes of each pair: `tail` of all of them."""
        number, size = self.chances.shape[1:]
        row = np.arange(number)[:, np.newaxis]
        owner: IntArray = np.tile(row * self.models.pairs.num_pairs + self.pair, (2, 1)).ravel()
        first = np.tile(2 * (row * size + self.models.offsets[self.pair]), (2, 1)).ravel()
        order = np.lexsort((worth.ravel(), owner))
        chance = self.chances.ravel()[order]
        before = np.cumsum(chance) - chance
        before -= before[first[order]]
        law = np.empty_like(chance)
        law[order] = np.clip(tail - before, 0.0, chance) / tail
        return law.reshape(worth.shape)
