"""Finds best total rewards among the policies that end, if others may go round without discount.

If the model allows a policy to go on for ever without rewards (`endless` is 0), that is an end too.

**Policy iteration** from a policy that ends changes only actions that are better by more than a
tie. The next policy ends too, unless total rewards have no bound: if the next policy π' stays for
ever in a set of states with stationary distribution μ, then v = r_π + P_π v gives
Σ μ (r_π' + P_π' v − v) = Σ μ r_π', and the left side is above 0, since π' differs from π in the set
and is better there.

**End components without rewards.** Within an end component whose pairs earn 0 on average, every
state can be reached from every other for nothing, so the best value is one number. Each component
is merged into a single state, which keeps only the pairs that lead out or earn something, and an
end that earns 0 if the policy may stay. (S. Haddad and B. Monmege, "Interval iteration algorithm
for MDPs and IMDPs", Theoretical Computer Science 735, 2018.)

**Traps.** If endless episodes are worth −∞, so are states from which no policy ends for certain.
They become one state, without the pairs that may lead there; in the rest some policy ends. Starts
that are worth −∞ are refused.

**Proof.** Let v be near V^π, D = v − (r + Pv) for each pair, D ≥ −ε. If some w has

    w(s) ≥ 1 − M D⁺(s,a) + P(s,a) w   for all pairs,  and ε M ≤ 1,

then u = v + ε w has u − (r + Pu) ≥ D + ε (1 − M D⁺) ≥ 0, so that u ≥ r_π' + P_π' u ≥ … ≥ V^π' for
every policy π' that ends (P_π'ⁿ u → 0). Such a w is the longest time of an episode if a step with
the disadvantage D takes M·D of it back: finite unless it costs nothing to go round, up to 1/M a
step. Then rounding decides whether values are infinite, and the answer is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.errors import NeverEnds, NotConverged
from surestep.model import FiniteMDP, Plan, Policy
from surestep.model.pairs import LazyLabels, Pairs, picked_labels
from surestep.planning.backups import Backup, best_of
from surestep.planning.chain import TOO_MANY_STEPS
from surestep.planning.ends import (
    EndComponents,
    end_components,
    ending_policy,
    endless_circle,
    goes_round,
    idle,
    lasting,
    missing,
    names,
    steps_towards,
)
from surestep.planning.evaluation import Evaluation, evaluate_as_proven, evaluate_with_bound
from surestep.planning.horizons import MOST_ROUNDS, better_rows, longest
from surestep.planning.proof import (
    LOOSEST_DEFAULT,
    SMALLEST_NORMAL,
    TIE_TOLERANCE,
    Bracket,
    most_terms,
    refuse,
)

BestOfAll = Callable[[FiniteMDP, float | None, int], Plan]  # a model, tolerance, terms of a sum

PENALTY = 1e6  # M, relative to max |R| + max |v|: a round trip must cost more than 1/M a step
LARGEST_RATE = 1e300  # if all rewards are 0, or nearly


def may_last(mdp: FiniteMDP) -> bool:
    """Tells whether some policy may never end."""
    arrays.expect("mdp", mdp, FiniteMDP)
    return goes_round(mdp) and bool(end_components(mdp, lasting(mdp)).inner.any())


def best_ending(mdp: FiniteMDP, tolerance: float | None, best: BestOfAll) -> Plan:
    """Returns the best of the policies that end for certain, and its value.

    If all policies end once components are merged into single states, `best` finds the policy.
    """
    if mdp.endless == -np.inf:
        traps = missing(mdp)
        if traps.inner.any() and not mdp.initial[traps.component >= 0].any():
            quotient = Quotient.of(mdp, traps, traps)
            return changed(
                lambda: (
                    best_ending(quotient.mdp, tolerance, best)
                    if may_last(quotient.mdp)
                    else best(quotient.mdp, tolerance, quotient.terms(mdp))
                ),
                partial(quotient.whole, mdp),
            )
    rests = end_components(mdp, idle(mdp))
    # Refuses a model in which no policy ends, by the names of its states.
    ending_policy(mdp, lasting(mdp) & ~rests.inner)
    quotient = Quotient.of(mdp, rests)
    inside = quotient.mdp
    terms = quotient.terms(mdp)
    if mdp.endless == 0 and not may_last(inside):
        return changed(lambda: best(inside, tolerance, terms), partial(quotient.whole, mdp))
    plan = ending_iteration(
        inside,
        lambda q: best_of(inside.pairs, q),
        ending_policy(inside, lasting(inside)),
        lambda policy: evaluate_with_bound(inside, policy),
        MOST_ROUNDS,
    )
    upper = plan.value + most_left(inside, plan, terms)
    policy = quotient.lifted(mdp, plan.policy)
    own_value = evaluate_as_proven(mdp, policy, tolerance=tolerance)
    value = own_value.value
    error = max(own_value.error_bound, float((upper[quotient.state] - value).max()))
    scale = scale_of(mdp, value)
    q = arrays.own(Backup.of(mdp).q(value))
    reached = Plan(policy, value, plan.iterations, plan.residual, error, q)
    bracket = Bracket(
        -error, error, LOOSEST_DEFAULT * scale if tolerance is None else tolerance, floor=0.0
    )
    if not bracket.good:
        refuse(bracket, tolerance, plan=reached)
    return reached


def changed(solve: Callable[[], Plan], change: Callable[[Plan], Plan]) -> Plan:
    """Returns `change` of the plan that `solve` finds; an error has its plan changed, too."""
    try:
        return change(solve())
    except NotConverged as problem:
        if isinstance(problem.plan, Plan):
            problem.plan = change(problem.plan)
        raise


def ending_iteration(
    mdp: FiniteMDP,
    greedy_step: Callable[[arrays.FloatArray], arrays.FloatArray],
    policy: Policy,
    evaluated: Callable[[Policy], Evaluation],
    limit: int,
) -> Plan:
    """Iterates policies from one that ends; changes only actions better by more than a tie.

    `error_bound` holds for the value of the policy found. No policy of the class that the greedy
    step searches gains more than `residual` and ties by one step.
    """
    pairs = mdp.pairs
    model = Backup.of(mdp)
    for iteration in range(1, limit + 1):
        evaluation = evaluated(policy)
        q = model.q(evaluation.value)
        tie = TIE_TOLERANCE * float(np.abs(q).max())
        after, better = better_rows(
            pairs, q, policy.probability, Policy(pairs, greedy_step(q)).probability, tie
        )
        if not better:
            return evaluation.plan(policy, iteration, q)
        circle = endless_circle(mdp, after)
        if circle.size:
            raise NeverEnds(
                f"total rewards have no bound: each way round {names(pairs, circle)} is worth "
                "more, at discount 1; expected a discount below 1, or other rewards"
            )
        policy = Policy(pairs, after)
    raise NotConverged(f"policy iteration stopped after {limit} rounds, the limit")


def scale_of(mdp: FiniteMDP, value: arrays.FloatArray) -> float:
    """Returns max |R| + max |v|: no |q| is larger."""
    rewards = max(map(arrays.largest_magnitude, (mdp.reward, mdp.ending_reward)))
    return rewards + float(np.abs(value).max()) + SMALLEST_NORMAL


def most_left(mdp: FiniteMDP, plan: Plan, terms: int) -> arrays.FloatArray:
    """Bounds the gain of any policy that ends over the value of the plan [S].

    A backup is a sum of at most `terms` rounded terms.
    """
    scale = scale_of(mdp, plan.value)
    disadvantage = plan.value[mdp.pairs.state] - Backup.of(mdp).q(plan.value)
    slack = terms * 2.0**-52 * scale
    epsilon = max(-float(disadvantage.min()), 0.0) + slack
    rate = min(PENALTY / scale, LARGEST_RATE)
    clock = 1 - rate * np.maximum(disadvantage, 0.0)
    w = longest(mdp, clock, plan.policy.probability)
    excess = float((Backup.of(mdp)._replace(reward=clock).q(w) - w[mdp.pairs.state]).max())
    theta = 1 - excess - terms * 2.0**-52 * (float(np.abs(w).max()) + float(np.abs(clock).max()))
    if not (theta > 0 and epsilon * rate <= theta):
        raise NotConverged(TOO_MANY_STEPS)
    return epsilon / theta * np.maximum(w, 0.0)


class Quotient(NamedTuple):
    """A model in which each end component without rewards is one state."""

    mdp: FiniteMDP
    state: arrays.IntArray  # [S] the state of the quotient that a state belongs to
    pair: arrays.IntArray  # [K'] the original pair of each pair; −1: to stay for ever
    components: EndComponents
    rests: EndComponents  # the components in which a policy may stay

    @classmethod
    def of(
        cls, mdp: FiniteMDP, rests: EndComponents, sets: EndComponents | None = None
    ) -> Quotient:
        """Merges each end component, or each of `sets`, into one state without its inner pairs."""
        components = sets or end_components(mdp, lasting(mdp) & (mdp.expected_reward == 0))
        component, inner = components
        state = np.unique(
            np.where(component < 0, np.arange(mdp.num_states) + component.max() + 1, component),
            return_inverse=True,
        )[1]
        states = int(state.max()) + 1
        kept = np.flatnonzero(~inner)
        stays = np.unique(state[rests.component >= 0])
        owner = np.append(state[mdp.pairs.state[kept]], stays)
        kept = np.append(kept, np.full(stays.size, -1))[np.argsort(owner, kind="stable")]
        lengths = np.bincount(owner, minlength=states)
        offsets = arrays.offsets_of(lengths)
        action = np.arange(kept.size) - np.repeat(offsets[:-1], lengths)
        first = np.unique(state, return_index=True)[1]
        labels = LazyLabels(  # only messages need them
            lambda: mdp.pairs.state_labels or [*map(str, range(mdp.num_states))], mdp.num_states
        )
        pairs = Pairs(offsets, action, int(lengths.max()), picked_labels(labels, first))
        place = np.full(mdp.num_pairs, -1)
        place[kept[kept >= 0]] = np.flatnonzero(kept >= 0)
        row = place[arrays.run_owners(mdp.offsets)]
        inside = (row >= 0) & (mdp.probability > 0)
        key, merged = np.unique(
            row[inside] * np.int64(states) + state[mdp.successor[inside]], return_inverse=True
        )
        runs = np.bincount(key // states, minlength=kept.size)
        # Rows sum to 1 within rounding only, and the expected rewards must not change.
        total = np.bincount(row[inside], mdp.probability[inside], minlength=kept.size)
        reward = np.where(kept >= 0, mdp.expected_reward[kept], 0.0) / np.where(
            runs == 0, 1.0, total
        )
        smaller = FiniteMDP(
            pairs,
            arrays.offsets_of(runs),
            key % states,
            np.bincount(merged, mdp.probability[inside], minlength=key.size).astype(np.float64),
            np.repeat(reward, runs),
            mdp.discount[kept],
            np.bincount(state, mdp.initial, minlength=states).astype(np.float64),
            np.where(runs == 0, reward, 0.0),
            endless=None,
        )
        return cls(smaller, state, kept, components, rests)

    def terms(self, mdp: FiniteMDP) -> int:
        """Returns the most terms that a sum has in either model."""
        return most_terms(mdp.offsets, self.mdp.pairs.offsets)

    def whole(self, mdp: FiniteMDP, plan: Plan) -> Plan:
        """Returns the plan in the original model; to stay is worth 0, or −∞ as the model says."""
        value = plan.value[self.state]
        q = Backup.of(mdp).q(value)
        if mdp.endless == -np.inf:
            value[self.rests.component >= 0] = -np.inf
            q[self.rests.inner] = -np.inf
        return replace(
            plan, policy=self.lifted(mdp, plan.policy), value=arrays.own(value), q=arrays.own(q)
        )

    def lifted(self, mdp: FiniteMDP, policy: Policy) -> Policy:
        """Returns the policy in the original model; in components it goes the shortest way out."""
        taken = policy.probability > 0
        chosen = self.pair[taken & (self.pair >= 0)]
        stays = arrays.marked(policy.pairs.state[taken & (self.pair < 0)], policy.pairs.num_states)
        inner = np.flatnonzero(self.rests.inner & stays[self.state][mdp.pairs.state])
        chosen = np.append(chosen, inner[np.unique(mdp.pairs.state[inner], return_index=True)[1]])
        leaves = arrays.marked(mdp.pairs.state[chosen], mdp.num_states)
        inside = steps_towards(mdp, self.components.inner, leaves)[~leaves]
        every = arrays.marked(np.append(chosen, inside), mdp.num_pairs)
        return Policy(mdp.pairs, every.astype(np.float64))
