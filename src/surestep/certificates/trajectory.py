"""The trajectory certificate: what episodes that did not choose the policy say about it.

Each episode of π_b is weighted by how much likelier π_I is to act as it did. Its weighted return
less its own return has mean Δ, so a lower bound on a mean is a claim (Thomas, Theocharous and
Ghavamzadeh 2015). No model is made and no state needs to be Markov; the price is paid in episodes.
Where rows name the probabilities of their actions, whoever acted may have looked at more than the
state: Π_t π_I(a_t|s_t) / p_t is still how much likelier π_I acts so, given all that was looked at.

Two things are easy to get wrong. (1) The episodes must not have chosen the policy: a part of them,
named by `train_share` and `seed`, is for that, and `episodes.training_part` makes the problem that
a policy may be chosen from. (2) Recording may stop before the process does. With Δ_H the difference
over the first H steps and V the values after them,

    Δ = Δ_H + γ^H (E_π[V^π(s_H); not over] − E_b[V^b(s_H); not over]) ≥ Δ_H − γ^H (V_max − V_min),

where V_min and V_max are stretched to contain 0 if episodes can be over by then.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
import surestep.certificates.episodes as episodes
import surestep.offpolicy as offpolicy
from surestep._settings import Delta
from surestep.certificates.refuting import check_returns, check_values
from surestep.errors import RefutedBounds, UnsupportedPolicy
from surestep.model import Certificate, Policy, Problem
from surestep.model.known import Known, Logger, ends
from surestep.model.log import DecisionLog, row_name
from surestep.model.statements import Scalar, Statement
from surestep.offpolicy.estimators import returns as logged_returns
from surestep.planning.backups import Backup
from surestep.planning.evaluation import evaluate

EstimatorName = Literal["is", "pdis", "wis", "wpdis", "dr"]
Interval = Literal["bernstein", "betting", "student-t", "bca"]
Claim = Literal["performance", "horizon"]
DEFAULT_INTERVAL: Interval = "betting"
PROVED = ("bernstein", "betting")
PROVABLE = ("is", "pdis")  # unbiased, and the paired difference is bounded below
SMALLEST_RESAMPLED = 1e-6  # δ of a bootstrap, which takes 20/δ resamples


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(common.WithRanges, common.Certifier):
    """A lower bound on the mean of the paired difference over the episodes not used for training.

    Parameters
    ----------
    estimator : {"pdis", "is", "wis", "wpdis", "dr"}
        How an episode is weighted; "dr" takes its model from the training part.
    interval : {"betting", "bernstein", "student-t", "bca"}
        "betting" and "bernstein" (Maurer and Pontil's, of differences cut off at a threshold that
        the training part chooses) are proved, for the estimators "is" and "pdis" and bounded
        rewards, or for "is" and bounded returns, which alone are enough without a discount.
        "student-t" and "bca" are asymptotic, for every estimator.
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    train_share : float, default 0.2
        The share of the episodes that may have chosen the policy; 0 says that none did.
    seed : int, default 0
        Of the order that episodes are shuffled into, before that share is taken.
    logger : {"fixed", "adaptive"}
        "adaptive": the logger may have learnt, and the share is taken in the order of the log.
    horizon : int, optional
        The number of steps after which recording stops at the latest (longer episodes are cut
        there); by default every episode is recorded until it is over.
    claim : {"performance", "horizon"}
        The claim is about the performance ρ, or about that of the first `horizon` steps.
    reward_low, reward_high : float, optional
        Bounds of rewards.
    return_low, return_high : float, optional
        Bounds of the returns of whole episodes.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense(
    ...     [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]],
    ...     [[0.0, 0.0], [1.0, 0.5]], discount=0.5)
    >>> behavior = surestep.Policy.uniform(mdp)
    >>> log = surestep.sample_log(mdp, behavior, 400, horizon=10, rng=np.random.default_rng(1))
    >>> problem = surestep.Problem(counts=log.counts(), behavior=behavior, discount=0.5,
    ...     value_bounds=(0.0, 2.0), log=log)
    >>> policy = surestep.Policy.deterministic(mdp, [1, 0])
    >>> claim = surestep.certify(problem, policy, surestep.certificates.Trajectory(
    ...     horizon=10, reward_low=0.0, reward_high=1.0))
    >>> str(claim.standing), claim.lower > 0
    ('proved', True)
    """

    estimator: EstimatorName = "pdis"
    interval: Interval = DEFAULT_INTERVAL
    delta: Delta = 0.1
    train_share: common.Share = 0.2
    seed: common.Seed = 0
    logger: Logger = "fixed"
    horizon: Annotated[int | None, Meta(ge=1)] = None
    claim: Claim = "performance"
    reward_low: common.End = None
    reward_high: common.End = None
    return_low: common.End = None
    return_high: common.End = None

    name: ClassVar = "trajectory"
    value_figures: ClassVar = frozenset({"estimate", "lower_of_steps", "after_steps", "least"})
    needs: ClassVar = common.Needs(episodes=True, held_out=True)
    may_choose: ClassVar = True

    def __post_init__(self) -> None:
        super(Trajectory, self).__post_init__()
        proved = self.interval in PROVED
        returns = self.return_low is not None
        rewards = self.reward_low is not None
        no_horizon = self.horizon is None
        common.refuse_settings(
            {
                f"interval is {self.interval!r} with estimator {self.estimator!r}, whose error "
                "nothing bounds; expected is or pdis, or student-t or bca": proved
                and self.estimator not in PROVABLE,
                f"reward_low and reward_high are None, but {self.interval} needs to know what "
                "rewards are possible; expected two numbers": proved
                and not rewards
                and not returns,
                f"bounds of rewards or returns are given, but {self.interval} asks for no bounds; "
                "expected none": not proved and (rewards or returns),
                "return_low and return_high bound whole episodes; expected estimator='is' and "
                "horizon=None beside them": returns and not (self.estimator == "is" and no_horizon),
                "train_share is 0, but the threshold of bernstein and the model of dr come from "
                "the training part; expected more": self.train_share == 0
                and (self.interval == "bernstein" or self.estimator == "dr"),
                "horizon is None, but a claim about a horizon needs a number of steps": no_horizon
                and self.claim == "horizon",
            }
        )

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from facts of the data: bounds, where they prove.

        Parameters
        ----------
        known : Known
            Facts of the data.
        given : mapping of str to value
            The settings that the user gave.

        Returns
        -------
        dict of str to value
            Settings by name; bounds of returns go with whole episodes.
        """
        proved = given.get("interval", DEFAULT_INTERVAL) in PROVED
        whole = proved and given.get("estimator") == "is" and "horizon" not in given
        bounds = ends("reward", known.possible_rewards if proved else None)
        return known.usual() | bounds | ends("return", known.returns if whole else None)

    def choosing_bounds(
        self, problems: Sequence[Problem], policies: Sequence[Sequence[Policy]], again: common.Again
    ) -> list[list[common.Bound]]:
        """Returns claims about the candidates that a training part of each problem leads to.

        Parameters
        ----------
        problems : sequence of Problem
            A part of each makes the candidates once more; the rest claims.
        policies : sequence of sequences of Policy
            Not used.
        again : callable
            `again(part)` makes the candidates from a part of a problem.

        Returns
        -------
        list of lists of float or CertificateRefused
            The bound of each candidate, or its refusal.
        """
        parts = [episodes.training_part(problem, *episodes.split_of(self)) for problem in problems]
        return super(Trajectory, self).choosing_bounds(problems, [*map(again, parts)], again)

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns L: the lower bound on the mean difference, less the loss after the horizon.

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
            Where the log does not allow it, as where π_b was estimated.
        """
        check_discount(problem, self)
        episodes.check_known_support(problem, policy)
        log = episodes.recorded_log(problem, self.horizon)
        if self.returns is not None:
            check_returns(problem, log, self.returns)
        elif self.interval in PROVED:
            check_rewards(log, *self.rewards)
        train, test = parts_of(log, self)
        try:
            weights = offpolicy.importance_weights(test, policy, problem.behavior)
            values = self._differences(problem, policy, weights)
            lower = self._bound(problem, policy, values, train)
        except UnsupportedPolicy as reason:
            raise common.refused("policy-beyond-log", reason=str(reason)) from None
        after = self._after_steps(problem)
        if after > 0:
            check_values(problem, ends=False)  # which are worth 0
        total = weights.total
        figures: dict[str, Scalar] = {
            "episodes": test.num_episodes,
            "training_episodes": 0 if train is None else train.num_episodes,
            "truncated_episodes": int(np.count_nonzero(~episodes.over_at_last(log))),
            "estimate": float(values.mean()),
            "lower_of_steps": lower,
            "after_steps": after,
            "least": self._least(problem.single_discount) if self.interval in PROVED else None,
            "largest_weight": float(total.max()),
            "effective_episodes": effective_number(total),
            **common.terms_of(problem),
        }
        return common.claim_of(
            self,
            problem,
            lower - after,
            "proved" if self.interval in PROVED else "asymptotic",
            assumptions=assumptions_of(self, problem),
            figures=figures,
            notes=(
                *common.statement_if(self.estimator != "dr", "need-not-be-markov"),
                *common.statement_if(
                    self.claim == "horizon", "first-steps-only", steps=self.horizon
                ),
            ),
        )

    def _differences(
        self, problem: Problem, policy: Policy, weights: offpolicy.ImportanceWeights
    ) -> arrays.FloatArray:
        """Returns one value for each episode of the weights' log [E]; their mean is Δ_H."""
        discount = problem.single_discount
        if self.interval in PROVED:
            low = min(self.rewards[0], 0.0)
            if self.estimator == "is":
                least = (
                    low * discounted_steps(discount, self.horizon)
                    if self.returns is None
                    else self.returns[0]
                )
                return offpolicy.paired_returns(weights, discount, least).values
            steps = math.inf if self.horizon is None else float(self.horizon)
            return offpolicy.paired_rewards(weights, discount, low, steps).values
        if self.estimator == "dr":
            mdp = episodes.training_part(problem, *episodes.split_of(self)).estimate()
            values = offpolicy.doubly_robust(
                weights, discount, Backup.of(mdp).q(evaluate(mdp, policy))
            ).values
        else:
            values = offpolicy.ESTIMATORS[self.estimator](weights, discount).values
        return values - logged_returns(weights, discount)

    def _bound(
        self, problem: Problem, policy: Policy, values: arrays.FloatArray, train: DecisionLog | None
    ) -> float:
        """Returns the lower bound on the mean of the values."""
        if self.interval == "student-t":
            return offpolicy.student_t(values, self.delta)
        if self.interval == "bca":
            rng = np.random.default_rng(self.seed)
            common.check_delta(self.delta, "a bootstrap", SMALLEST_RESAMPLED)
            return offpolicy.bca_bootstrap(
                offpolicy.MeanEstimate(values),
                self.delta,
                rng,
                max(2000, math.ceil(20 / self.delta)),
            )
        least = self._least(problem.single_discount)
        if train is None or self.interval == "betting":
            return offpolicy.betting(values, least, self.delta)
        training = self._differences(
            problem, policy, offpolicy.importance_weights(train, policy, problem.behavior)
        )
        threshold = offpolicy.choose_threshold(training, least, values.size, self.delta)
        return offpolicy.truncated_bernstein(values, least, threshold, self.delta)

    @property
    def rewards(self) -> tuple[float, float]:
        """Returns the bounds of rewards; a proved claim has them, or bounds of returns."""
        return common.range_of(self, "reward") or (0.0, 0.0)

    @property
    def returns(self) -> tuple[float, float] | None:
        """Returns the bounds of returns, where they are given."""
        return common.range_of(self, "return")

    def _least(self, discount: float) -> float:
        """Returns the least value that the paired difference of an episode can have."""
        if self.returns is not None:
            least, most = self.returns
            return least - most
        low, high = self.rewards  # and 0, which an episode earns after its end
        return -(max(high, 0.0) - min(low, 0.0)) * discounted_steps(discount, self.horizon)

    def _after_steps(self, problem: Problem) -> float:
        """Returns γ^H (V_max − V_min), to be lost after the horizon; 0 if the claim ends there."""
        if self.horizon is None or self.claim == "horizon":
            return 0.0
        low, high = problem.value_bounds
        if problem.counts.terminal.any():
            low, high = min(low, 0.0), max(high, 0.0)
        return float(problem.single_discount**self.horizon * (high - low))


def assumptions_of(certifier: Trajectory, problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions of the claim."""
    share, seed = episodes.split_of(certifier)
    by_rows = problem.log is not None and problem.log.propensity is not None
    proved = certifier.interval in PROVED
    by_returns = certifier.returns is not None
    low, high = certifier.returns or certifier.rewards
    return (
        Statement("propensities-of-rows") if by_rows else Statement("behavior-known"),
        # Proved claims leave out weighted values, none below 0, of actions that π_b never takes.
        # That lowers the mean, and the claim stands.
        *common.statement_if(by_rows and not proved, "rows-supported"),
        Statement("episodes-independent"),
        Statement("chosen-without-log")
        if share == 0
        else Statement("chosen-from-part", {"share": share, "seed": seed}),
        Statement("recorded-until-over")
        if certifier.horizon is None
        else Statement("recorded-for-steps", {"steps": certifier.horizon}),
        *common.statement_if(by_returns, "returns-bounded", low=low, high=high),
        *common.statement_if(proved and not by_returns, "rewards-bounded", low=low, high=high),
        *common.statement_if(not proved, "many-episodes"),
        *((common.values_statement(problem),) if certifier._after_steps(problem) > 0 else ()),
    )


def check_discount(problem: Problem, settings: Trajectory) -> None:
    """Refuses discounts without a performance."""
    discount = common.usable_discount(problem)
    bounded = settings.return_low is not None or settings.interval not in PROVED
    whole = settings.claim == "horizon" or (settings.horizon is None and bounded)
    if discount == 1 and (settings.estimator == "dr" or not whole):
        raise common.refused("discount-1")


def check_rewards(log: DecisionLog, low: float, high: float) -> None:
    """Refuses a log with a reward outside of its bounds."""
    for i, others in arrays.first_where((log.reward < low) | (log.reward > high), "step"):
        what = f"the reward of {row_name(log.episode_offsets, i)}"
        raise common.refused(
            "rewards-beyond-bounds",
            RefutedBounds,
            what=what,
            reward=log.reward[i],
            low=low,
            high=high,
            others=others,
        )


def parts_of(log: DecisionLog, settings: Trajectory) -> tuple[DecisionLog | None, DecisionLog]:
    """Returns the training part, or None, and the test part; refuses parts that are too small.

    Both are of whole episodes: those that a split in time has cut are left out.
    """
    train, test = (
        part and part.whole() for part in episodes.parts_of_log(log, *episodes.split_of(settings))
    )
    sizes = [0 if part is None else part.num_episodes for part in (train, test)]
    if test is None or sizes[1] < 2 or (settings.train_share > 0 and sizes[0] < 2):
        raise common.refused(
            "too-few-episodes",
            what="episodes",
            whole=log.num_episodes,
            train=sizes[0],
            test=sizes[1],
            least=2,
        )
    return train, test


def discounted_steps(discount: float, horizon: int | None) -> float:
    """Returns Σ_{t<H} γ^t."""
    if discount == 1 and horizon is not None:
        return float(horizon)
    return (1.0 if horizon is None else 1.0 - discount**horizon) / (1.0 - discount)


def effective_number(weights: arrays.FloatArray) -> float:
    """Returns (Σ w)² / Σ w²: how many equally weighted episodes would say as much."""
    largest = float(weights.max())
    if largest == 0:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / (scaled**2).sum())
