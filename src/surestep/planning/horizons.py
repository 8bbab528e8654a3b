"""Bounds the expected number of steps of an episode (the horizon), of every policy or of one."""

from dataclasses import replace

import numpy as np

import surestep._arrays as arrays
from surestep.errors import NeverEnds, NotConverged
from surestep.kernels.backup import best_values
from surestep.model import FiniteMDP, Pairs
from surestep.planning.backups import Backup, averaged, best_of
from surestep.planning.chain import (
    TOO_MANY_STEPS,
    Chain,
    change_range,
    policy_chain,
    settle,
    undiscounted_total,
)
from surestep.planning.ends import (
    Edges,
    end_components,
    ending_policy,
    endless_circle,
    first_of,
    goes_round,
    lasting,
    names,
    resting,
)
from surestep.planning.proof import ROW_EXCESS, Horizon, StoppingRule, most_terms

ENOUGH_STEPS = 0.01  # the residual of the number of steps: it makes a bound 1 % larger


def chain_under(mdp: FiniteMDP, policy: arrays.FloatArray) -> tuple[Chain, Horizon]:
    """Returns the chain of a policy [K], and bounds on its number of steps or every policy's.

    If pairs of discount 1 form a cycle, the policy must end for certain, or rest.
    """
    chain = policy_chain(mdp, policy)
    if mdp.discount.min() < 1.0 and not goes_round(mdp):
        return chain, horizon_of(mdp)
    chain = resting(mdp, policy, chain)
    return chain, Horizon(1.0, chain_steps(chain), uniform=False)


def chain_steps(chain: Chain) -> float:
    """Returns max w for a w ≥ 1 + W w, from the expected number of steps.

    Certificate: if w > 0 and w − W w ≥ θ > 0, then w/θ qualifies, and W has no eigenvalue as large
    as 1 (Perron and Frobenius), however the w was found.
    """
    counting = replace(chain, reward=np.ones(chain.reward.size))
    steps = undiscounted_total(counting, counting.reward, ENOUGH_STEPS)
    most = float(steps.max())
    excess = change_range(counting, steps)[1]
    theta = 1 - excess - (int(arrays.run_lengths(chain.offsets).max()) + 8) * 2.0**-52 * most
    if not (theta > 0 and steps.min() > 0):
        raise NotConverged(TOO_MANY_STEPS)
    return most / theta


REFINEMENTS = 50  # sweeps spent on a smaller w, for models with discount 1 somewhere


def rule_for_all(mdp: FiniteMDP, tolerance: float | None, terms: int = 0) -> StoppingRule:
    """Returns the stopping rule that holds for every policy, for sums of at least so many terms."""
    return StoppingRule.of(mdp, tolerance, horizon_of(mdp), terms)


def horizon_of(mdp: FiniteMDP) -> Horizon:
    """Returns 1/(1 − γ) if all discounts are below 1, else the largest entry of a certified w."""
    arrays.expect("mdp", mdp, FiniteMDP)
    discount = mdp.discount
    if discount.max() == 1.0:
        return Horizon(1.0, certified_steps(mdp), uniform=False)
    return discounted_horizon(
        float(discount.min()),
        float(discount.max()),
        bool((arrays.run_lengths(mdp.offsets) > 0).all()),
    )


def discounted_horizon(least: float, most: float, endless: bool) -> Horizon:
    """Returns the horizon for discounts from `least` to `most` < 1; `endless`: no episode ends."""
    return Horizon(
        low=1 / (1 - least * (1 - ROW_EXCESS)) if endless else 1.0,
        high=longest_horizon(most),
        uniform=endless and least == most,
    )


def longest_horizon(discount: float) -> float:
    """Returns 1/(1 − γ), with room for rows that sum to a little more than 1."""
    if discount * (1 + ROW_EXCESS) >= 1:
        raise NotConverged(
            f"discount {discount!r} is too near 1: with rows that sum to 1 only within rounding, "
            "nothing can be proven; expected discounts further below 1, or 1 itself on no cycle"
        )
    return 1 / (1 - discount * (1 + ROW_EXCESS))


def certified_steps(mdp: FiniteMDP) -> float:
    """Returns max w for a w ≥ 1 + Γ_a P_a w, for models in which some pairs have discount 1.

    Refuses models in which some policy never ends.
    Start: with γ the largest discount below 1, h(s) the longest path of steps with discount 1 from
    s and H the largest of them, w(s) = (1 + γH)/(1 − γ) + h(s) will do: along discount 1 because h
    falls by at least 1 a step, elsewhere because 1 + γ((1 + γH)/(1 − γ) + H) = (1 + γH)/(1 − γ).
    Where steps with discount 1 go round, there is no longest path, and policy iteration looks for
    the largest expected number of steps. Sweeps w ↦ max_a (1 + Γ_a P_a w) make w smaller.
    Certificate: if w > 0 and w − Γ_a P_a w ≥ θ > 0 for all pairs, then w/θ qualifies, whatever
    rounding did on the way.
    """
    discount = mdp.discount
    clock = Backup.of(mdp)._replace(reward=np.ones(mdp.num_pairs))
    if goes_round(mdp):
        component, inner = end_components(mdp, lasting(mdp))
        if inner.any():
            raise NeverEnds(
                f"{names(mdp.pairs, first_of(component))} never ends under some policy, which only "
                "goes round, at discount 1; expected a model in which all policies end for "
                "certain, a discount below 1, or `optimal`, which looks among the policies that end"
            )
        w = longest(mdp, np.ones(mdp.num_pairs), ending_policy(mdp, lasting(mdp)).probability)
    else:
        below = 1 - 1 / longest_horizon(float(discount[discount < 1.0].max(initial=0.0)))
        height = undiscounted_heights(mdp)
        w = (1 + below * height.max()) / (1 - below) + height
    after = np.empty(mdp.num_states)
    for _ in range(REFINEMENTS):
        best_values(clock, w, after)
        shrinking = after.max() < w.max() * 0.999
        w, after = after, w
        if not shrinking:
            break
    best_values(clock, w, after)
    rounding = most_terms(mdp.offsets, mdp.pairs.offsets) * 2.0**-52 + ROW_EXCESS
    theta = float((1 + w - after).min()) - rounding * float(w.max())
    if not (theta > 0 and w.min() > 0):
        raise NotConverged(
            f"{float(w.max()):.3g} steps without discounting are too many for a proof in doubles"
        )
    return float(w.max()) / theta


def undiscounted_heights(mdp: FiniteMDP) -> arrays.FloatArray:
    """Returns the most steps in a row with discount 1 from each state [S]; they form no cycle.

    These are the best values of a model with one action for each such step, which earns 1, and one
    action that stops.
    """
    _, source, target = Edges.of(mdp, mdp.discount == 1.0)
    pair_offsets = arrays.offsets_of(np.bincount(source, minlength=mdp.num_states) + 1)
    steps = np.ones(pair_offsets[-1], np.int64)
    steps[pair_offsets[1:] - 1] = 0  # the last pair of a state stops, and earns 0
    one = np.ones(steps.size)
    height = np.zeros(mdp.num_states)
    clock = Backup(
        pair_offsets,
        arrays.offsets_of(steps),
        target,
        one[: target.size],
        one,
        steps.astype(np.float64),
    )
    settle(clock, 0.0, height)
    return height


MOST_ROUNDS = 1_000
EXCESS = 0.1  # allowed in the inequality of w: it makes the bound 11 % larger
EXACT = 1e-6  # the residual of a policy's w: little beside the excess


def longest(
    mdp: FiniteMDP, clock: arrays.FloatArray, policy: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns nearly the largest total w [S] of `clock` [K] over the policies that end.

    No pair exceeds w by more than `EXCESS`: clock + ΓPw ≤ w + EXCESS.
    """
    pairs = mdp.pairs
    model = Backup.of(mdp)._replace(reward=clock)
    total: arrays.FloatArray = np.zeros(mdp.num_states)
    for _ in range(MOST_ROUNDS):
        circle = endless_circle(mdp, policy)
        if circle.size:
            raise NeverEnds(
                f"rewards on a way round {names(pairs, circle)} add up to 0, or nearly, at "
                "discount 1, so that doubles cannot prove a bound on total rewards; expected a "
                "discount below 1, or rewards that are 0 on that way"
            )
        total = undiscounted_total(
            replace(policy_chain(mdp, policy), reward=averaged(pairs, policy, clock)), total, EXACT
        )
        q = model.q(total)
        if not (q - total[pairs.state]).max() > EXCESS:
            return total
        policy, _ = better_rows(pairs, q, policy, best_of(pairs, q), EXCESS / 2)
    raise NotConverged(f"counting steps stopped after {MOST_ROUNDS} rounds, the limit")


def better_rows(
    pairs: Pairs,
    q: arrays.FloatArray,
    policy: arrays.FloatArray,
    proposed: arrays.FloatArray,
    tie: float,
) -> tuple[arrays.FloatArray, bool]:
    """Replaces rows of the policy by better proposed rows; also tells whether there are any."""
    better = averaged(pairs, proposed, q) > averaged(pairs, policy, q) + tie
    return arrays.own(np.where(better[pairs.state], proposed, policy)), bool(better.any())
