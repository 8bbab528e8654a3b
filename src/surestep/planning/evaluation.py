"""Known MDP and policy to values, each with a proven bound on its error."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep._reprs import short_repr
from surestep._settings import check_setting
from surestep.errors import NotConverged
from surestep.model.batch import MDPBatch
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Plan, Policy, PolicyLike, policy_of
from surestep.planning.batch import eliminated, one_by_one, policies_of, stacked
from surestep.planning.chain import Method, change_range, largest, solve
from surestep.planning.ends import refuse_endless
from surestep.planning.horizons import chain_under
from surestep.planning.proof import LOOSEST_DEFAULT, Bracket, StoppingRule, refuse
from surestep.planning.pruning import Backup

LARGE = 100_000  # transitions: such models are solved one by one, and need not be copied for it


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """V^π, and how far it can be off: |V^π(s) − value(s)| ≤ `error_bound` in every state."""

    value: FloatArray  # [S]
    residual: float  # max_s |(T_π v)(s) − v(s)|
    error_bound: float
    method: str  # the one that was used, also "elimination"

    __repr__ = short_repr("value", "error_bound", "method")

    def plan(self, policy: Policy, iterations: int, q: FloatArray) -> Plan:
        """Returns the plan of the policy that was evaluated, with q of its value [K]."""
        return Plan(policy, self.value, iterations, self.residual, self.error_bound, q)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """V^π of each model, with the fields of `Evaluation` along a leading axis; `[b]` is one."""

    value: FloatArray  # [B, S]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]
    method: tuple[str, ...]  # [B]

    __repr__ = short_repr("value.shape", "value", "error_bound")

    def __getitem__(self, b: int) -> Evaluation:
        """Returns the evaluation of one model."""
        residual, error = float(self.residual[b]), float(self.error_bound[b])
        return Evaluation(self.value[b], residual, error, self.method[b])


def evaluate(
    mdp: FiniteMDP, policy: PolicyLike, *, method: Method = "auto", tolerance: float | None = None
) -> FloatArray:
    """V^π [S]: the expected discounted reward from each state. See `evaluate_with_bound`."""
    return evaluate_with_bound(mdp, policy, method=method, tolerance=tolerance).value


def evaluate_with_bound(
    mdp: FiniteMDP, policy: PolicyLike, *, method: Method = "auto", tolerance: float | None = None
) -> Evaluation:
    """V^π with a proven bound on its error: `evaluate_batch` of one model and one policy.

    The policy may come as the Plan, the Improvement or the Result that has it, or as an array of
    probabilities [S, A], as `Policy.dense` gives it.

    Methods: "dense" LU, "sparse" LU, "iterative" (sweeps while they are fast, then BiCGSTAB),
    "components" (one strongly connected component after the other, each by sweeps in place, or by
    one of the others where these are slow), or "auto": dense when small, sweeps while they are
    fast, else components. `tolerance` is the largest error allowed; by default 1e-10 of the largest
    reward and value, or what doubles can prove. One that cannot be proved raises NotConverged,
    whose `evaluation` is what was reached.
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    checked = policy_of(policy, mdp)
    return evaluate_batch(mdp, checked, method=method, tolerance=tolerance)[0]


def evaluate_batch(
    models: MDPBatch | FiniteMDP,
    policy: Policy | FloatArray,
    *,
    method: Method = "auto",
    tolerance: float | None = None,
) -> EvaluationBatch:
    """V^π of every model, for one policy or one each (probabilities [B, K]).

    Of several times as many policies, those after the first B are for the same models again. One
    model is a batch of one: with a Policy it is solved by itself, as `evaluate_with_bound` says.
    Batches, and several policies [B, K] of one model, go through a compiled elimination on all
    cores where little fills in and every policy ends, or is discounted. All others are solved one
    by one, and so is everything where a method or a tolerance is asked for.
    """
    check_setting("method", method, Method)
    arrays.expect("models", models, (MDPBatch, FiniteMDP))
    alone = method != "auto" or tolerance is not None
    if isinstance(models, FiniteMDP):
        alone = alone or isinstance(policy, Policy) or models.num_transitions > LARGE
    probability = policies_of(models, policy)
    if not alone:
        batch = models if isinstance(models, MDPBatch) else MDPBatch.from_models([models])
        found = eliminated(batch, probability)
        if found is not None:
            return EvaluationBatch(*found, ("elimination",) * len(found[0]))
    each = (
        [policy] if isinstance(policy, Policy) else [Policy(models.pairs, p) for p in probability]
    )
    parts = one_by_one(models, each, lambda mdp, one: evaluate_alone(mdp, one, method, tolerance))
    value, residual, error = stacked(parts, "value", "residual", "error_bound")
    return EvaluationBatch(value, residual, error, tuple(part.method for part in parts))


def evaluate_alone(
    mdp: FiniteMDP, policy: Policy, method: Method, tolerance: float | None
) -> Evaluation:
    """Returns V^π of one model, solved by itself."""
    chain, horizon = chain_under(mdp, policy.probability)
    # A row of the chain adds up the successors of all actions in one sum.
    runs = (chain.offsets, mdp.pairs.offsets)
    longest = sum(int(arrays.run_lengths(offsets).max()) for offsets in runs)
    rule = StoppingRule.of(mdp, tolerance, horizon)
    rule = replace(rule, terms=max(rule.terms, longest + 8))

    def bracket(value: FloatArray, residuals: tuple[float, float]) -> Bracket:
        return rule.bracket(residuals, float(np.abs(value).max()))

    start = np.zeros(mdp.num_states)
    first = bracket(start, (0.0, 0.0))
    value, used = solve(
        chain,
        method,
        start,
        target=max(first.goal / rule.horizon.high / 2, first.floor),
        horizon=rule.horizon,
        good_enough=lambda value, _: bracket(value, change_range(chain, value)).good,
    )
    residuals = change_range(chain, value)
    final = bracket(value, residuals)
    evaluation = Evaluation(value, largest(residuals), final.error, used)
    if not final.good:
        refuse(final, rule.tolerance, evaluation=evaluation)
    return evaluation


def evaluate_as_proven(
    mdp: FiniteMDP, policy: Policy, method: Method = "auto", tolerance: float | None = None
) -> Evaluation:
    """Returns the evaluation, also where it comes only near the tolerance asked for."""
    try:
        return evaluate_with_bound(mdp, policy, method=method, tolerance=tolerance)
    except NotConverged as problem:
        if not isinstance(problem.evaluation, Evaluation):
            raise
        return problem.evaluation


def performance(
    mdp: FiniteMDP, policy: PolicyLike, *, method: Method = "auto", tolerance: float | None = None
) -> float:
    """ρ(π, M) = Σ_s ι(s) V^π(s), of a policy as `evaluate_with_bound` takes it."""
    value = evaluate(mdp, policy, method=method, tolerance=tolerance)
    return float(mdp.initial @ value)


def q_values(mdp: FiniteMDP, value: FloatArray) -> FloatArray:
    """Q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for every pair [K]."""
    return Backup.of(mdp).q(value)


def occupancy(mdp: FiniteMDP, policy: PolicyLike, *, method: Method = "auto") -> FloatArray:
    """Expected discounted visits of each pair [K]: Σ_t E[γ^t 1(s_t = s, a_t = a)].

    With discounts per pair, γ^t is the product of the discounts passed. The errors of all pairs
    together are at most 1e-9 · max w, with w the expected discounted number of steps, or what
    doubles can prove.
    """
    check_setting("method", method, Method)
    checked = check_inputs(mdp, policy)
    refuse_endless(mdp, checked.probability)  # a rest is worth 0, but has no number of visits
    chain, horizon = chain_under(mdp, checked.probability)
    chain = chain.transposed(mdp.initial)
    rounding = (int(arrays.run_lengths(chain.offsets).max()) + 8) * 2.0**-52
    allowed = min(max(1e-9, 4 * rounding * (1 + horizon.high)), LOOSEST_DEFAULT)

    def imbalance(visits: FloatArray) -> float:
        # In the sum norm, (I − Wᵀ)⁻¹ is at most max w.
        change = float(np.abs(chain.step(visits) - visits).sum())
        return change + rounding * (1 + float(np.abs(visits).sum()))

    visits, _ = solve(
        chain,
        method,
        mdp.initial,
        target=allowed / mdp.num_states / 10,
        horizon=replace(horizon, uniform=False),  # that is about W, not Wᵀ
        good_enough=lambda visits, _: imbalance(visits) <= allowed,
    )
    if not imbalance(visits) <= allowed:
        raise NotConverged(
            f"inflow and outflow of the visits differ by {imbalance(visits):.3g}, expected at most "
            f"{allowed:.3g}; try another method, or discounts further below 1"
        )
    return np.repeat(visits, arrays.run_lengths(mdp.pairs.offsets)) * checked.probability


def check_inputs(mdp: FiniteMDP, policy: PolicyLike) -> Policy:
    """Returns the policy, once it is known to be one of the model."""
    arrays.expect("mdp", mdp, FiniteMDP)
    checked = policy_of(policy, mdp)
    check_same_pairs("the model", mdp.pairs, "the policy", checked.pairs)
    return checked
