"""The robust certificate: what holds for every MDP that the data leaves possible.

Let Ξ be a rectangular set that contains the true MDP with probability 1 − δ (see `uncertainty`).
On that event, and for any policy, however it was chosen:

1. V_low^π ≤ V^π ≤ V_high^π, the fixed points of worst-case and best-case backups over Ξ. No value
   lies outside the given value bounds, so V_low is not taken below them, nor V_high above.
   Hence V^{π_I} − V^{π_b} ≥ f := V_low^{π_I} − V_high^{π_b} in every state.

2. Write D = V^{π_I} − V^{π_b}. With V^{π_b} = Σ_a π_b Q^{π_b}, V^{π_I} = Σ_a π_I Q^{π_I} and
   Q^{π_I} − Q^{π_b} = γ P D (rewards cancel, and so does what an episode's end is worth),

       D(s) = Σ_a (π_I − π_b)(a|s) Q^{π_b}(s,a) + γ Σ_a π_I(a|s) Σ_s' P(s'|s,a) D(s').

   The first sum is at least A(s) = Σ_a (π_I − π_b)⁺ Q_low^{π_b} − (π_I − π_b)⁻ Q_high^{π_b}, where
   Q_low and Q_high are one more worst-case and best-case backup of V_low^{π_b} and V_high^{π_b}.
   So D ≥ TD with (TD)(s) = A(s) + γ Σ_a π_I(a|s) min_p Σ p D, the worst case over Ξ; at the end of
   an episode D = A. A pair that was never seen may lead anywhere, or where the problem says that
   it may: it goes on with γ min D over these.

Both hold at once, so D ≥ max(TD, f). This operator is a monotone contraction, and applying it to D
again and again gives ever smaller functions, down to its fixed point: D is at least that. Its value
at the start, in the worst start distribution of the set, is L. It is at least as large as either
bound alone, and it is 0 for π_I = π_b, where A = 0 and f ≤ 0.

All fixed points are known up to a proven error only; each is moved by it to the safe side before it
is used. Without a discount (γ = 1), sweeps from the value bounds, and from f, take the place of the
fixed points: the operators are monotone, so that every sweep is a bound on the safe side.

**Chances to reach states** (`model.signals`): γ is 1, and where only N steps count, let n of them
be left. V_0 is known: −1 where the states are reached, and 0 elsewhere. Bounds of V_{n−1} make
bounds of V_n by one worst-case or best-case sweep; that nature may choose anew each time only makes
them wider. As in 2, with Q_n = Σ P V_{n−1} of π_b,

    D_n = Σ_a (π_I − π_b) Q_n + Σ_a π_I Σ P D_{n−1} ≥ max(A_n + Σ_a π_I min_p Σ p D_{n−1}, f_n)

from D_0 = 0 on, where A_n is A with the bounds of Q_n, and f_n is f with those of V_n. For the
chance under π_I alone, L is the least that V_low^{π_I} is at the start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep.certificates.uncertainty import (
    SetTerms,
    Uncertainty,
    uncertainty_of,
    unknown_parts,
)
from surestep.errors import RefutedBounds
from surestep.model import Certificate, Plan, Policy
from surestep.model.known import Known, ends
from surestep.model.problem import Problem, stopped
from surestep.model.statements import Scalar, Statement
from surestep.planning.rectangular import Earnings, RectangularSet
from surestep.planning.robust import Operator, best_values, rule_of, swept, worst_values

ROUNDING = 2.0**-52


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust(SetTerms, common.Certifier):
    """The claim that holds for every MDP that the data leaves possible, whatever the policy.

    Parameters
    ----------
    set : {"interval", "l1", "two-successor"}
        The set of a row: an interval for each successor, an L1 ball, or intervals for the splits
        of a balanced tree over all successors that may come.
    strict : bool, default True
        Strict sets hold for all numbers of visits at once, and only they are proved for logs. The
        others take those numbers for fixed beforehand, and a logger who stops when it suits him
        makes them wrong.
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    reward_low, reward_high : float, optional
        The range of all rewards; needed where rewards are not known.
    known_start : bool, default False
        Whether the start distribution is exactly that of the counts.

    Notes
    -----
    `surestep.certificates.robust` has the proof.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 150]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.deterministic(counts, [1, 0])
    >>> claim = surestep.certify(problem, policy, surestep.certificates.Robust(known_start=True))
    >>> str(claim.standing), claim.lower > 0
    ('proved', True)
    """

    name: ClassVar = "robust"
    value_figures: ClassVar = frozenset(
        {"lowest_performance", "highest_behavior", "difference", "evaluation_error"}
    )
    needs: ClassVar = common.Needs()
    may_choose: ClassVar = True
    claims_chances: ClassVar = True

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from facts of the data: rewards as given, or as seen.

        Parameters
        ----------
        known : Known
            Facts of the data.
        given : mapping of str to value
            The settings that the user gave.

        Returns
        -------
        dict of str to value
            Settings by name.
        """
        return known.usual() | ends("reward", known.possible_rewards)

    def shares(self, problems: Sequence[Problem]) -> list[float]:
        """Returns the shares of δ with which the bound of each problem has the sets of all.

        Parameters
        ----------
        problems : sequence of Problem
            The problems, one for each signal.

        Returns
        -------
        list of float
            One event serves all of them, so that the shares may add up to more than 1.
        """
        parts = [unknown_parts(stopped(one), known_start=self.known_start) for one in problems]
        rows, rewards = zip(*parts, strict=True)
        return [sum(part) / max(max(rows) + sum(rewards), 1) for part in parts]

    @staticmethod
    def certify_many(asked: Sequence[common.Question]) -> list[common.Claim]:
        """Returns each L: the fixed point of D ↦ max(TD, f) at the start, less its errors.

        Parameters
        ----------
        asked : sequence of Question
            Questions whose problems are small and share their pairs are answered together.

        Returns
        -------
        list of Certificate or CertificateRefused
            The claims, or refusals.
        """
        cases = [common.tried(Case.of, *question[:3]) for question in asked]
        usable = common.usable(cases)
        by_fixed_points = iter(
            claims_by_fixed_points([c for c in usable if c.problem.horizon is None])
        )
        claims = (  # by fixed points, or by as many sweeps as steps count
            next(by_fixed_points)
            if case.problem.horizon is None
            else certificate_of(swept_over(case))
            for case in usable
        )
        return common.answered(cases, claims)


def assumptions_of(certifier: Robust, problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions of the claim."""
    rewards = problem.counts.rewards
    bounds = {"low": certifier.reward_low, "high": certifier.reward_high}
    some_given = rewards.per == "transition" and certifier.reward_low is not None
    return (
        *common.log_statements(problem),
        Statement("rewards-known") if rewards.known else Statement("rewards-bounded", bounds),
        Statement("starts-as-logged") if certifier.known_start else Statement("starts-afresh"),
        Statement("ends-as-marked"),
        common.values_statement(problem),
        *common.support_statements(problem),
        *common.statement_if(rewards.known and some_given, "rewards-not-given-bounded", **bounds),
        *common.statement_if(not certifier.strict, "visits-fixed"),
    )


class Case(NamedTuple):
    """A policy to be certified, and the set of all MDPs that its problem leaves possible."""

    certifier: Robust
    problem: Problem
    policy: Policy
    models: Uncertainty

    @classmethod
    def of(cls, certifier: Robust, problem: Problem, policy: Policy) -> "Case":
        """Builds the set for a policy; refuses a problem without one."""
        common.usable_discount(problem)
        problem = stopped(problem)
        terms = certifier
        if problem.reach is not None:  # the rewards of a chance are known
            terms = replace(certifier, reward_low=None, reward_high=None)
        return cls(certifier, problem, policy, uncertainty_of(problem, terms))


def certificate_of(comparison: "BothPolicies") -> Certificate:
    """Returns the claim with its figures."""
    certifier, problem, policy, models = comparison.case
    counts = problem.counts
    changed = policy.probability != problem.behavior.probability
    figures: dict[str, Scalar] = {
        "states": problem.num_states,
        "pairs": counts.pairs.num_pairs,
        **common.terms_of(problem),
        "reward_low": certifier.reward_low,
        "reward_high": certifier.reward_high,
        "visits": int(counts.visits.sum()),
        "episodes": int(counts.starts.sum()),
        "unseen_pairs": int(np.count_nonzero(problem.unseen_pairs())),
        "changed_pairs": int(np.count_nonzero(changed)),
        "parts": models.parts,
        "lowest_performance": models.least_start(comparison.our_low),
        "highest_behavior": -models.least_start(-comparison.their_high),
        "difference": models.least_start(comparison.floor),
        "evaluation_error": comparison.error,
    }
    if problem.support is not None:
        figures["successors"] = problem.support.successor.size
    return common.claim_of(
        certifier,
        problem,
        comparison.lower if changed.any() or problem.alone else 0.0,
        "proved" if certifier.strict else "asymptotic",
        assumptions=assumptions_of(certifier, problem),
        figures=figures,
        notes=common.nothing_changed(problem, policy),
    )


class BothPolicies(NamedTuple):
    """The two policies over the whole set: all figures are on the safe side of their errors."""

    case: Case
    our_low: arrays.FloatArray  # [S] V_low of π_I
    their_high: arrays.FloatArray  # [S] V_high of π_b
    floor: arrays.FloatArray  # [S] f
    difference: RectangularSet  # with A as reward
    error: float  # the proven errors, added up
    lower: float = -np.inf  # L, once the difference is evaluated


def swept_over(case: Case) -> BothPolicies:
    """Evaluates both policies and their difference over the steps that count."""
    _, problem, policy, models = case
    worlds = models.models
    behavior = problem.behavior
    low, high = problem.value_bounds
    least = np.full(problem.num_states, low)
    change = policy.probability - behavior.probability
    ours, theirs = (Operator(worlds, chosen, least) for chosen in (policy, behavior))
    best = Operator(worlds.mirrored(), behavior, np.full(problem.num_states, -high))
    rule = rule_of(worlds, policy, least)
    our_low = their_low = their_high = worlds.low.ending[worlds.pairs.offsets[:-1]]
    floor: arrays.FloatArray = np.zeros(problem.num_states)
    gap = floor
    difference = worlds
    for _ in range(problem.horizon or 0):
        difference = difference_models(worlds, advantage(worlds, change, their_low, their_high))
        our_low = np.maximum(swept(ours, rule, our_low), low)
        their_low = np.maximum(swept(theirs, rule, their_low), low)
        their_high = np.minimum(-swept(best, rule, -their_high), high)
        floor = floor_of(our_low, their_high)
        rounding = rule_of(difference, policy, floor)
        gap = np.maximum(swept(Operator(difference, policy, floor), rounding, gap), floor)
    both = BothPolicies(case, our_low, their_high, floor, difference, 0.0)
    return with_lower(both, Plan(policy, gap, problem.horizon or 0, 0.0, 0.0))


def claims_by_fixed_points(cases: Sequence[Case]) -> list[common.Claim]:
    """Evaluates both policies of each case, then their difference."""
    worlds = [case.models.models for case in cases]
    ours, theirs = [case.policy for case in cases], [case.problem.behavior for case in cases]
    lows, highs = (
        [np.full(case.problem.num_states, case.problem.value_bounds[end]) for case in cases]
        for end in (0, 1)
    )
    evaluated = zip(
        cases,
        worst_values(worlds, ours, lows),
        worst_values(worlds, theirs, lows),
        best_values(worlds, theirs, highs),
        strict=True,
    )
    answers = [common.tried(compare, *evaluation) for evaluation in evaluated]
    compared = common.usable(answers)
    gaps = worst_values(
        [both.difference for both in compared],
        [both.case.policy for both in compared],
        [both.floor for both in compared],
    )
    return common.answered(answers, map(certificate_of, map(with_lower, compared, gaps)))


def with_lower(both: BothPolicies, gap: Plan) -> BothPolicies:
    """Returns the comparison with the difference of both values at the start, less all errors.

    Where the claim is of π_I alone, its own least value takes the place of the difference.
    """
    surely = np.maximum(gap.value - gap.error_bound, both.floor)
    problem = both.case.problem
    if problem.alone:
        surely = both.our_low
    rounding = (surely.size + 8) * ROUNDING * float(np.abs(surely).max())
    lower = both.case.models.least_start(surely) - rounding
    if problem.reach is not None:  # no chance is above 1, however rounded
        lower = max(lower, problem.value_bounds[0])
    return both._replace(error=both.error + gap.error_bound + rounding, lower=lower)


def compare(case: Case, ours: Plan, theirs: Plan, best: Plan) -> BothPolicies:
    """Returns both values, less their errors; refuses value bounds that the data contradict."""
    worlds = case.models.models
    low, high = case.problem.value_bounds
    our_low, their_low = (np.maximum(plan.value - plan.error_bound, low) for plan in (ours, theirs))
    their_high = np.minimum(best.value + best.error_bound, high)
    check_value_bounds(case.problem, np.maximum(our_low, their_low), best.value + best.error_bound)
    floor = floor_of(our_low, their_high)
    change = case.policy.probability - case.problem.behavior.probability
    gain = advantage(worlds, change, their_low, their_high)
    error = ours.error_bound + theirs.error_bound + best.error_bound
    return BothPolicies(case, our_low, their_high, floor, difference_models(worlds, gain), error)


def floor_of(our_low: arrays.FloatArray, their_high: arrays.FloatArray) -> arrays.FloatArray:
    """Returns f [S]; a difference of two doubles is rounded once."""
    floor: arrays.FloatArray = our_low - their_high
    return floor - ROUNDING * (np.abs(our_low) + np.abs(their_high))


def advantage(
    models: RectangularSet,
    change: arrays.FloatArray,
    low: arrays.FloatArray,
    high: arrays.FloatArray,
) -> arrays.FloatArray:
    """Returns A(s) = Σ_a (π_I − π_b)⁺ Q_low − (π_I − π_b)⁻ Q_high [S], rounded down."""
    least, most = backups(models, low, high)
    by_pair = np.where(change > 0, change * least, change * most)
    return arrays.run_sums(by_pair, models.pairs.offsets)


def backups(
    models: RectangularSet, low: arrays.FloatArray, high: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns Q_low, of values `low` [S], and Q_high, of values `high`; rounded outwards [K]."""
    rule = rule_of(models, None, None)
    scale = rule.reward_scale + max(float(np.abs(low).max()), float(np.abs(high).max()))
    slack = rule.terms * ROUNDING * scale
    return models.worst(low).q - slack, -models.mirrored().worst(-high).q + slack


def difference_models(models: RectangularSet, gain: arrays.FloatArray) -> RectangularSet:
    """Returns the models with A(s) as the reward of every step from s, the last one included."""
    earnings = Earnings.of_pairs(gain[models.pairs.state], models.rows.offsets)
    return RectangularSet(models.pairs, models.discount, models.rows, earnings, earnings)


def check_value_bounds(problem: Problem, least: arrays.FloatArray, most: arrays.FloatArray) -> None:
    """Refuses value bounds that the data contradict: some value of π_I or π_b must lie outside."""
    low, high = problem.value_bounds
    sides = (least > high, least, "at least"), (most < low, most, "at most")
    for wrong, value, side in sides:
        for s, others in arrays.first_where(wrong, "state"):
            raise common.refused(
                "values-beyond-bounds",
                RefutedBounds,
                low=low,
                high=high,
                side=side,
                state=problem.counts.pairs.state_name(s),
                value=value[s],
                others=others,
            )
