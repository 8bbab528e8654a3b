"""Evaluates policies in known MDPs; each value has a proven bound on its error."""

from dataclasses import dataclass, replace

import numpy as np

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.errors import NotConverged
from surestep.model import FiniteMDP, MDPBatch
from surestep.model.noun import noun
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Plan, Policy, PolicyLike, policy_of
from surestep.planning.backups import Backup
from surestep.planning.batch import eliminated, one_by_one, policies_of, stacked
from surestep.planning.chain import SolveMethod, change_range, largest, solve
from surestep.planning.ends import refuse_endless
from surestep.planning.horizons import chain_under
from surestep.planning.proof import LOOSEST_DEFAULT, Bracket, StoppingRule, most_terms, refuse

LARGE = 100_000  # models with more transitions are solved one by one, without a copy


@noun("value", "error_bound", "method")
@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The value V^π of a policy: |V^π(s) − value(s)| ≤ `error_bound` in every state.

    Parameters
    ----------
    value : array of float [S]
        The value of each state.
    residual : float
        The largest |(T_π v)(s) − v(s)|.
    error_bound : float
        The largest error that is possible.
    method : str
        The method that was used, also "elimination".

    Examples
    --------
    >>> from surestep.planning import Evaluation
    >>> Evaluation(np.array([1.0]), 0.0, 1e-12, "dense").error_bound
    1e-12
    """

    value: arrays.FloatArray  # [S]
    residual: float
    error_bound: float
    method: str

    def plan(self, policy: Policy, iterations: int, q: arrays.FloatArray) -> Plan:
        """Returns the plan of the policy that was evaluated.

        Parameters
        ----------
        policy : Policy
            The policy that was evaluated.
        iterations : int
            The rounds that led to it.
        q : array of float [K]
            The value of each pair.

        Returns
        -------
        Plan
            The policy with its value and errors.
        """
        return Plan(policy, self.value, iterations, self.residual, self.error_bound, q)


@noun("value.shape", "value", "error_bound")
@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """The value of a policy in each of B models; `[b]` gives the `Evaluation` of one.

    Parameters
    ----------
    value : array of float [B, S]
        The value of each state.
    residual : array of float [B]
        The largest |(T_π v)(s) − v(s)| of each model.
    error_bound : array of float [B]
        The largest error that is possible in each model.
    method : tuple of str
        The method that was used for each model.

    Examples
    --------
    >>> from surestep import FiniteMDP, MDPBatch, Policy, evaluate_batch
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> batch = MDPBatch.from_models([mdp, mdp.with_rewards([[0.0, 0.0], [0.0, 2.0]])])
    >>> evaluate_batch(batch, Policy.uniform(mdp))[1].value.round(3)
    array([0.857, 2.   ])
    """

    value: arrays.FloatArray  # [B, S]
    residual: arrays.FloatArray  # [B]
    error_bound: arrays.FloatArray  # [B]
    method: tuple[str, ...]  # [B]

    def __getitem__(self, b: int) -> Evaluation:
        return Evaluation(
            self.value[b], float(self.residual[b]), float(self.error_bound[b]), self.method[b]
        )


def evaluate(
    mdp: FiniteMDP | MDPBatch,
    policy: PolicyLike,
    *,
    method: SolveMethod = "auto",
    tolerance: float | None = None,
) -> arrays.FloatArray:
    """Returns V^π: the expected discounted reward from each state.

    Parameters
    ----------
    mdp : FiniteMDP or MDPBatch
        The model, or a batch of B models.
    policy : Policy, Plan, Improvement, Result or array of float [S, A]
        The policy, or an object that has one. For a batch, a Policy or probabilities [B, K].
    method : {"auto", "dense", "sparse", "iterative", "components"}
        The way to solve; see `evaluate_with_bound`.
    tolerance : float, optional
        The largest error allowed; see `evaluate_with_bound`.

    Returns
    -------
    array of float [S] or [B, S]
        The value of each state.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, evaluate
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> evaluate(mdp, Policy.uniform(mdp)).round(3)
    array([1.429, 2.   ])
    >>> evaluate(mdp, [[0.5, 0.5], [0.5, 0.5]]).round(3)
    array([1.429, 2.   ])
    """
    if isinstance(mdp, MDPBatch):
        return evaluate_batch(
            mdp,
            policy if isinstance(policy, np.ndarray) else policy_of(policy, mdp.pairs),
            method=method,
            tolerance=tolerance,
        ).value
    return evaluate_with_bound(mdp, policy, method=method, tolerance=tolerance).value


def evaluate_with_bound(
    mdp: FiniteMDP,
    policy: PolicyLike,
    *,
    method: SolveMethod = "auto",
    tolerance: float | None = None,
) -> Evaluation:
    """Returns V^π with a proven bound on its error.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    policy : Policy, Plan, Improvement, Result or array of float [S, A]
        The policy, or an object that has one.
    method : {"auto", "dense", "sparse", "iterative", "components"}
        "dense" and "sparse" are an LU. "iterative" is sweeps while they are fast, then BiCGSTAB.
        "components" solves one strongly connected component after the other, by sweeps in place, or
        by another method if these are slow. "auto" is "dense" for small models, else sweeps while
        they are fast, else "components".
    tolerance : float, optional
        The largest error allowed. By default 1e-10 of the largest reward and value, or as little as
        doubles can prove.

    Returns
    -------
    Evaluation
        Values, residual, error bound and the method that was used.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved; its `evaluation` has the values that were reached.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, evaluate_with_bound
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> answer = evaluate_with_bound(mdp, Policy.uniform(mdp))
    >>> answer.method, answer.error_bound < 1e-9
    ('dense', True)
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    return evaluate_batch(mdp, policy_of(policy, mdp), method=method, tolerance=tolerance)[0]


def evaluate_batch(
    models: MDPBatch | FiniteMDP,
    policy: Policy | arrays.FloatArray,
    *,
    method: SolveMethod = "auto",
    tolerance: float | None = None,
) -> EvaluationBatch:
    """Returns V^π of every model with error bounds, for one policy or one policy each.

    Parameters
    ----------
    models : MDPBatch or FiniteMDP
        B models; one model is a batch of one.
    policy : Policy or array of float [B, K]
        One policy for all models, or the probabilities of one policy for each. If there are several
        times B policies, the models repeat in the same order.
    method : {"auto", "dense", "sparse", "iterative", "components"}
        The way to solve; see `evaluate_with_bound`.
    tolerance : float, optional
        The largest error allowed; see `evaluate_with_bound`.

    Returns
    -------
    EvaluationBatch
        The fields of `Evaluation` along a leading axis.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved for some model.

    Notes
    -----
    Batches, and several policies of one model, go through a compiled elimination on all cores, if
    little fills in and every policy ends, or is discounted. All others are solved one by one, and
    so are all models if a method or a tolerance is given.

    Examples
    --------
    >>> from surestep import FiniteMDP, MDPBatch, Policy, evaluate_batch
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> batch = MDPBatch.from_models([mdp, mdp.with_rewards([[0.0, 0.0], [0.0, 2.0]])])
    >>> evaluate_batch(batch, Policy.uniform(mdp)).value.round(3)
    array([[1.429, 2.   ],
           [0.857, 2.   ]])
    """
    check_setting("method", method, SolveMethod)
    arrays.expect("models", models, (MDPBatch, FiniteMDP))
    alone = method != "auto" or tolerance is not None
    if isinstance(models, FiniteMDP):
        alone = alone or isinstance(policy, Policy) or models.num_transitions > LARGE
    probability = policies_of(models, policy)
    if not alone:
        batch = models if isinstance(models, MDPBatch) else MDPBatch.from_models([models])
        together = eliminated(batch, probability)
        if together is not None:
            return EvaluationBatch(*together, ("elimination",) * len(together[0]))
    one_each = (
        [policy] if isinstance(policy, Policy) else [Policy(models.pairs, p) for p in probability]
    )
    parts = one_by_one(
        models, one_each, lambda mdp, one: evaluate_alone(mdp, one, method, tolerance)
    )
    value, residual, error = stacked(parts, "value", "residual", "error_bound")
    return EvaluationBatch(value, residual, error, tuple(part.method for part in parts))


def evaluate_alone(
    mdp: FiniteMDP, policy: Policy, method: SolveMethod, tolerance: float | None
) -> Evaluation:
    """Returns V^π of one model, solved by itself."""
    chain, horizon = chain_under(mdp, policy.probability)
    # A row of the chain adds up the successors of all actions in one sum.
    terms = most_terms(chain.offsets, mdp.pairs.offsets)
    rule = StoppingRule.of(mdp, tolerance, horizon, terms)

    def bracket(value: arrays.FloatArray, residuals: tuple[float, float]) -> Bracket:
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
    mdp: FiniteMDP, policy: Policy, method: SolveMethod = "auto", tolerance: float | None = None
) -> Evaluation:
    """Returns the evaluation, even if its proven error exceeds the tolerance."""
    try:
        return evaluate_with_bound(mdp, policy, method=method, tolerance=tolerance)
    except NotConverged as problem:
        if not isinstance(problem.evaluation, Evaluation):
            raise
        return problem.evaluation


def performance(
    mdp: FiniteMDP,
    policy: PolicyLike,
    *,
    method: SolveMethod = "auto",
    tolerance: float | None = None,
) -> float:
    """Returns the performance of a policy, ρ(π, M) = Σ_s ι(s) V^π(s).

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    policy : Policy, Plan, Improvement, Result or array of float [S, A]
        The policy, or an object that has one.
    method : {"auto", "dense", "sparse", "iterative", "components"}
        The way to solve; see `evaluate_with_bound`.
    tolerance : float, optional
        The largest error allowed; see `evaluate_with_bound`.

    Returns
    -------
    float
        The expected discounted reward from the start of episodes on.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, performance
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> round(performance(mdp, Policy.uniform(mdp)), 3)  # ½ (1 + ½ (½ V + ½ · 2)) + ½ (½ · 2)
    1.429
    """
    return float(mdp.initial @ evaluate(mdp, policy, method=method, tolerance=tolerance))


def q_values(mdp: FiniteMDP, value: arrays.FloatArray) -> arrays.FloatArray:
    """Returns Q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for every pair.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    value : array of float [S]
        The value v of each state.

    Returns
    -------
    array of float [K]
        The value of each pair.

    Examples
    --------
    >>> from surestep import FiniteMDP
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> surestep.planning.q_values(mdp, np.array([2.0, 4.0]))
    array([2.5, 2. , 2. , 4. ])
    """
    return Backup.of(mdp).q(value)


def occupancy(
    mdp: FiniteMDP, policy: PolicyLike, *, method: SolveMethod = "auto"
) -> arrays.FloatArray:
    """Returns the expected discounted visits of each pair: Σ_t E[γ^t 1(s_t = s, a_t = a)].

    With discounts per pair, γ^t is the product of the discounts passed.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    policy : Policy, Plan, Improvement, Result or array of float [S, A]
        The policy, or an object that has one.
    method : {"auto", "dense", "sparse", "iterative", "components"}
        The way to solve; see `evaluate_with_bound`.

    Returns
    -------
    array of float [K]
        The visits of each pair. The errors of all together are at most 1e-9 · max w, with w the
        expected discounted number of steps, or as little as doubles can prove.

    Raises
    ------
    NeverEnds
        If the policy may go round for ever without a discount.
    NotConverged
        If the error cannot be proved.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, occupancy
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> occupancy(mdp, Policy.uniform(mdp)).round(3)  # adds up to 1 / (1 − γ)
    array([0.571, 0.571, 0.429, 0.429])
    """
    check_setting("method", method, SolveMethod)
    checked = check_inputs(mdp, policy)
    refuse_endless(mdp, checked.probability)  # resting is worth 0, but its visits are infinite
    chain, horizon = chain_under(mdp, checked.probability)
    chain = chain.transposed(mdp.initial)
    rounding = (int(arrays.run_lengths(chain.offsets).max()) + 8) * 2.0**-52
    allowed = min(max(1e-9, 4 * rounding * (1 + horizon.high)), LOOSEST_DEFAULT)

    def imbalance(visits: arrays.FloatArray) -> float:
        # In the sum norm, (I − Wᵀ)⁻¹ is at most max w.
        return float(np.abs(chain.step(visits) - visits).sum()) + rounding * (
            1 + float(np.abs(visits).sum())
        )

    visits, _ = solve(
        chain,
        method,
        mdp.initial,
        target=allowed / mdp.num_states / 10,
        horizon=replace(horizon, uniform=False),  # `uniform` is true of W, not of Wᵀ
        good_enough=lambda visits, _: imbalance(visits) <= allowed,
    )
    if not imbalance(visits) <= allowed:
        raise NotConverged(
            f"inflow and outflow of the visits differ by {imbalance(visits):.3g}, expected at most "
            f"{allowed:.3g}; try another method, or discounts further below 1"
        )
    return np.repeat(visits, arrays.run_lengths(mdp.pairs.offsets)) * checked.probability


def check_inputs(mdp: FiniteMDP, policy: PolicyLike) -> Policy:
    """Returns the policy; refuses one over other pairs than the model's."""
    arrays.expect("mdp", mdp, FiniteMDP)
    checked = policy_of(policy, mdp)
    check_same_pairs("the model", mdp.pairs, "the policy", checked.pairs)
    return checked
