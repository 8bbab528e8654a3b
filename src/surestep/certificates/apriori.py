"""The a-priori certificate: what the published bounds of Table 1 say about one policy.

ζ = f(γ) · V_max · radius(N∧) − gain. As published, with the gaps that docs/bounds.md shows, but for
one of them: the gain is ρ(π_I, M̂ with unseen pairs at V_min) − ρ(π_b, M̂ with unseen pairs at
V_max), so what was never seen cannot look like a gain.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._settings import Delta, Settings
from surestep.bounds import BOUNDS, ProblemSize, zeta
from surestep.bounds.loss import BoundName
from surestep.certificates.refuting import check_values
from surestep.model import Certificate, FiniteMDP, Policy, Problem
from surestep.model.counts import LARGEST_TOTAL
from surestep.model.statements import Scalar, Statement
from surestep.planning.evaluation import evaluate_with_bound

UNCHANGED = 1e-12  # probabilities this close are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class APriori(Settings, common.Certifier):
    """The claim of a published bound, for policies that keep π_b wherever data is scarce.

    Parameters
    ----------
    bound : {"spibb", "spi", "two-successor", "beta", …}
        The name of a bound of `surestep.bounds.BOUNDS`.
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    n_wedge : int, optional
        N∧; by default the largest with which the policy is covered, one less than the smallest
        number of visits among the pairs it changes (for standard SPI, the smallest of all).

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 150]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.from_dense(counts, [[0.0, 1.0], [0.5, 0.5]])
    >>> claim = surestep.certify(problem, policy, surestep.certificates.APriori())
    >>> str(claim.standing), claim.says_nothing
    ('as-published', True)
    """

    bound: BoundName = "spibb"
    delta: Delta = 0.1
    n_wedge: Annotated[int | None, Meta(ge=1)] = None

    name: ClassVar = "a-priori"
    value_figures: ClassVar = frozenset(
        {"loss", "performance", "behavior_performance", "evaluation_error", "gain", "copying_error"}
    )
    needs: ClassVar = common.Needs(exact_rewards=True)
    may_choose: ClassVar = False

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns L = gain − f(γ) · V_max · radius(N∧), less errors of evaluating and copying.

        Parameters
        ----------
        problem : Problem
            The data.
        policy : Policy
            The policy to be judged.

        Returns
        -------
        Certificate
            The claim.

        Raises
        ------
        CertificateRefused
            Where the bound does not cover the policy.
        """
        discount = common.usable_discount(problem)
        if not 0 < discount < 1:
            raise common.refused("discount-0-or-1", discount=discount)
        if problem.value_bound == 0:
            raise common.refused("value-bounds-unusable", low=0.0, high=0.0)
        check_values(problem)
        change = np.abs(policy.probability - problem.behavior.probability)
        n_wedge = covering_n_wedge(self, problem, change)
        error = copying_error(problem, change)
        figures: dict[str, Scalar] = {
            "n_wedge": n_wedge,
            "states": problem.num_states,
            "actions": problem.num_actions,
            **common.terms_of(problem),
            "visits": int(problem.counts.visits.sum()),
            "unseen_pairs": int(np.count_nonzero(problem.unseen_pairs())),
            "changed_pairs": int(np.count_nonzero(change > UNCHANGED)),
            "copying_error": error,
        }
        lower = 0.0 - error
        if n_wedge is not None:
            size = ProblemSize.of(problem, self.delta)
            bound = BOUNDS[self.bound]
            loss = zeta(bound, n_wedge, size)
            low, high = problem.value_bounds
            ours, our_error = performance_with_bound(
                problem.estimate_with_unseen_worth(low), policy
            )
            theirs, their_error = performance_with_bound(
                problem.estimate_with_unseen_worth(high), problem.behavior
            )
            gain = ours - theirs - (our_error + their_error)
            # The formula of standard SPI has no gain; but a loss in the estimate is a loss.
            lower += (gain if bound.bootstraps else min(gain, 0.0)) - loss
            figures |= {
                "radius": float(bound.radius(n_wedge, size)),
                "loss": loss,
                "performance": ours,
                "behavior_performance": theirs,
                "evaluation_error": our_error + their_error,
                "gain": gain,
            }
        return common.claim_of(
            self,
            problem,
            lower,
            BOUNDS[self.bound].standing,
            assumptions=assumptions_of(self, problem),
            figures=figures,
            notes=() if n_wedge else (Statement("nothing-changed"),),
        )


def covering_n_wedge(certifier: APriori, problem: Problem, change: arrays.FloatArray) -> int | None:
    """Returns the N∧ with which the bound covers the policy; None for π_b itself.

    Standard SPI asks for N visits of every pair, the others for π = π_b on every pair with at
    most N∧ visits.
    """
    visits = problem.counts.visits
    changed = change > UNCHANGED
    if not changed.any():
        return None
    if BOUNDS[certifier.bound].bootstraps:
        n_wedge = certifier.n_wedge or max(int(visits[changed].min()) - 1, 1)
        wrong = changed & (visits <= n_wedge)
        does = "the policy changes"
        needs = f"more than {n_wedge}"
    else:
        # Nobody decides where episodes end. Without any other pair, nothing is asked.
        asked = ~problem.counts.terminal[problem.counts.pairs.state]
        n_wedge = certifier.n_wedge or max(int(visits[asked].min(initial=LARGEST_TOTAL)), 1)
        wrong = asked & (visits < n_wedge)
        does = "there is"
        needs = f"at least {n_wedge} of every pair, changed or not"
    for k, others in arrays.first_where(wrong, "pair"):
        raise common.refused(
            "too-few-visits",
            does=does,
            bound=certifier.bound,
            needs=needs,
            pair=problem.counts.pairs.pair_name(k),
            visits=visits[k],
            others=others,
        )
    return n_wedge


def assumptions_of(certifier: APriori, problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions of the claim, and the gaps of the published proof."""
    bound = BOUNDS[certifier.bound]
    return (
        *common.log_statements(problem),
        Statement("rewards-known")
        if problem.counts.rewards.known
        else Statement("mean-rewards-exact"),
        Statement("starts-as-logged"),
        common.values_statement(problem),
        Statement("visits-fixed"),
        *common.statement_if(certifier.n_wedge is None, "n-wedge-fixed"),
        *common.statement_if(bound.bootstraps, "rare-pairs-known"),
        *common.statement_if(bound.covers == "split", "radius-of-one-split"),
        *common.statement_if(bound.covers == "split", "later-splits-unvisited"),
        *common.statement_if(certifier.bound == "beta", "split-prior-uniform"),
        *common.statement_if(certifier.bound == "beta", "interval-centred"),
    )


def performance_with_bound(mdp: FiniteMDP, policy: Policy) -> tuple[float, float]:
    """Returns ρ(π, M) and its largest error, by the values and by rounding in their sum."""
    evaluation = evaluate_with_bound(mdp, policy)
    terms = int(np.count_nonzero(mdp.initial)) + 2
    rounding = terms * 2.0**-52 * float(np.abs(evaluation.value).max())
    return float(mdp.initial @ evaluation.value), evaluation.error_bound + rounding


def copying_error(problem: Problem, change: arrays.FloatArray) -> float:
    """Bounds the loss where π only nearly copies π_b: 2 · max_s Σ_a |π − π_b| · span/(1 − γ).

    The sum is over the pairs that count as unchanged. By the performance difference lemma, policies
    at the distance d = max_s ½‖π − π'‖₁ differ by at most d · span/(1 − γ). Some π' that copies
    π_b exactly is as near to π as that sum: once in the true MDP, once in the estimate.
    """
    nearly = np.where(change <= UNCHANGED, change, 0.0)
    low, high = problem.value_bounds
    distance = float(arrays.run_sums(nearly, problem.counts.pairs.offsets).max())
    return 2 * distance * (high - low) / (1 - problem.single_discount)
