"""The stitched certificate: trajectories of both policies, put together from the log's own steps.

**Stacks.** Let fold 2 be a part of the log that had no part in choosing π_I. The j-th visit of pair
k in it, in the order of decisions, reveals the entry Y_{k,j}: what was earned, where it led, and
whether the process was over. If, given (s, a), what comes does not depend on anything that whoever
acted knew, then there is a space on which all Y_{k,j}, j = 1, 2, …, are independent with the law of
pair k, and independent of the logger's own randomness; the log is what a logger, who may learn,
reads off these stacks. It shows j ≤ N_k, and N_k may depend on everything. A warehouse may keep the
first n entries of each pair alone (`io.logs.warehouse`), which show j ≤ min(n, N_k). An entry of
which nobody knows where it led, or why that is not known, keeps its place. The starts of episodes
are a stack of their own, unless the start distribution ι is known.

**A round.** π_I and then π_b are rolled out from one start. In each rollout, the l-th visit of pair
k reads Y_{k, b_k + l}, where b_k is what earlier rounds may have read; after the round b_k rises by
the larger of the two numbers of reads. Rules that fold 1 fixed may cut a rollout, by its own past:
after H steps, or where it takes a pair that fold 1 never saw. A rollout cut with the discount γ^t
pays γ^t times a lower bound of what is left for π_I, an upper bound for π_b, and in all not less
than the least return there is, nor more than the greatest. X is the return of π_I less that of π_b.

**Lemma.** E[X | earlier rounds] ≤ Δ. Which entry is read next is decided by what this rollout and
earlier rounds have read, and it was read by none of them: so it is fresh, and each rollout by
itself is a trajectory of its policy, stopped by a rule of its own past. That both read the same
entries and draw their actions with the same numbers changes their joint law, and no mean. At a cut
the mean of what is left is γ^t Q or γ^t V, at least what is paid for π_I, at most what is paid for
π_b; and no mean return is below the least, or above the greatest. ∎

**Theorem.** Rounds go on until one needs an entry that the log does not have, or not whole. With
the stake and the cuts from fold 1, `bets.limits_of` gives P(L > Δ) ≤ δ. On the infinite stacks
the rounds are such a series as it needs, and the log has some first ones of them; how many may
depend on everything. Nothing is conditioned on N_k, and no union over pairs is taken. It holds
given fold 1, for any logger. ∎ Several runs with other numbers, over the same stacks, are its
several series.

**Robust tails.** On an event of probability 1 − δ′, a strict robust set from *all* of the log
contains the true model (`uncertainty`); then V_low^{π_I}, Q_low, V_high^{π_b} and Q_high bound what
is left at every cut, so that each X is at most what it would be with the true values there, and so
is L, which rises with every X. Hence P(L > Δ) ≤ δ″ + δ′, with L at level δ″ and δ″ + δ′ = δ,
whatever the event has to do with the rounds. Stakes, cuts, the least X, and whether to do this at
all, come from fold 1, with such tails from fold 1 alone.

**Paired or in turn.** A pair of rollouts shares its chances, but X may be as low as the least
return less the greatest, and such a loss must stay possible in every bet. So fold 1 may also choose
that the policies take turns: one round of π_I, then one or more of π_b, each from its own start and
on entries that no round before has read. By the lemma, a round of π_I has a mean of at most ρ(π_I)
given all rounds before, and a round of π_b, counted as −G_b, one of at most −ρ(π_b);
`bets.limits_of` makes one L of both at the whole δ. A bet on either then has to fear the
bad luck of that one only.

**Chances to reach states** (`model.signals`). To reach them ends a rollout and pays −1, all else
pays nothing, and γ is 1. Where only N steps count, a rollout is over after N: that is a rule of its
own past, and the mean of what is left is what is paid, 0, for both policies. So the lemma holds,
and this is no cut. At a pair that fold 1 never saw, what is left lies between −1 and 0: the states
count as reached for π_I, and as not reached for π_b. Where the chance under π_I alone is asked for,
all rounds are of π_I, each with a mean of at most ρ(π_I) given those before, and L bounds that.

**Returns of practice.** Where π_b is estimated, all of the above is about the estimate. But fold 2
shows what was really done. Let L_I be the limit of rounds of π_I alone at the level δ_I (with
robust tails or without), and U_b the upper bound that `practice` puts at the level δ_b on ρ_b, the
mean of what episodes of fold 2 could be expected to return: P(L_I > ρ(π_I)) ≤ δ_I, and
P(U_b < ρ_b) ≤ δ_b. With δ_I + δ_b = δ (or what robust tails leave of it), L = L_I − U_b is above
ρ(π_I) − ρ_b with a chance of at most δ: a union, whatever rows both have read. Both are about
starts by the same law, that of fold 2. Fold 1 expects L_I − U_b as it expects all other limits, and
takes the largest: that is a rule of fold 1. The claim then is about what was done, of a logger who
learns about the mean of what was done on the way, and no longer about π_b. So it is offered where
π_b is an estimate of what was done. A known π_b is compared with itself: rounds of both policies
prove more of the gain (of Random MDPs at 1,000 trajectories 67 % instead of 59 %).
Where π_I does as before, it draws from the estimate, which is part of what π_I is. It is not
offered for chances to reach states, nor beside a `worst_share`, which compares with π_b, nor for a
single stream, which has no episodes, nor with a known start unless all episodes begin there.

**Foreseen tails.** The robust set that certifies comes from all of the log, and knows more than one
of fold 1 alone. Plans foresee it by fold 1 with all counts as many times as large; whether that
comes true changes what is claimed, and not how often it is wrong.

What is *not* valid: to leave out an entry for what came of it; to shuffle a stack, or to count N_k
as fixed; to cut a rollout where the log happens to end and go on; to sort episodes by how they
went; to split the log of a logger who learns at random (its later actions tell the outcomes of
earlier steps); to estimate π_b from fold 2; to leave out rollouts that are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
import surestep.certificates.episodes as episodes
from surestep._settings import Delta
from surestep.certificates.bets import (
    CERTIFYING,
    MOST_READ,
    PLANNING_RUNS,
    READ_AT_LAST,
    READ_BY_ALL,
    SERIES_A_RUN,
    BetPlan,
    Fold,
    ReturnsBet,
    Terms,
    best_plans,
    case_of,
    kinds_of,
    least_of,
    limits_of,
)
from surestep.certificates.downside import worst_figures
from surestep.certificates.practice import paid_returns
from surestep.certificates.refuting import check_returns, check_values
from surestep.certificates.stacks import Way, course_of, roll_out_each, stacks_of, tails_of_set
from surestep.certificates.uncertainty import SMALLEST_LEVEL, SetTerms, uncertainty_of
from surestep.errors import CertificateRefused, RefutedBounds
from surestep.kernels.stitched import BOTH, OURS, THEIRS, Case, Course, Stacks, Tails, Tallied
from surestep.model import Certificate, Policy, estimate_behavior
from surestep.model.known import Known, Logger
from surestep.model.log import UNKNOWN, DecisionLog
from surestep.model.problem import Problem, stopped
from surestep.model.statements import Scalar, Statement

PLANNING_SHARE = 0.2  # of a log that did not choose the policy: what plans, and may not certify
FEWEST = {"episodes": 2, "steps": 20}  # of either part: of a log, of a single stream
FEW_SERIES = 96  # in a stress test: L is as often wrong, and a little more to the seed
GROWTHS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0)  # of a log
# From so many steps of the log on. The seed then moves L by no more than with 1,024 series of 10⁵
# steps: that falls with the root of the series, and with the root of the steps.
SERIES_IF_LONG = {10_000_000: 32, 1_000_000: 96, 300_000: 300}
MOST_PAIRS = 5_000  # of a robust set: with more, it takes longer than all rounds


class Folds(NamedTuple):
    """The part of a log that may choose and plan, and the one that judges."""

    first: DecisionLog
    second: DecisionLog
    ratio: float  # the size of the second relative to the first
    stacks: tuple[Stacks, Stacks]  # of both


@dataclass(frozen=True, slots=True, kw_only=True)
class Stitched(common.WithRanges, common.Certifier):
    """A lower bound on the mean difference of returns over rollouts stitched from held-out steps.

    Parameters
    ----------
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    train_share : float, default 0.3
        The share of the log that may have chosen the policy; 0 says that none of it did, and then
        the first fifth only plans.
    logger : {"adaptive", "fixed"}
        "fixed": the logger acted in all episodes alike, and the share is drawn by `seed`.
        "adaptive": it may have learnt on the way, and the share is the first part of the log. A
        log of one episode is split by its steps, and needs a known start.
    seed : int, default 0
        Of rollouts, and of that share.
    series : int, default 1024
        The number of series of rounds over fold 2. With 1,024, another seed moves L by less than
        a tenth of its distance to the estimate; fewer are as valid, and faster.
    known_start : bool, default False
        Whether the start distribution is exactly that of the counts.
    return_low, return_high : float, optional
        Bounds of the return of every single episode; by default the value bounds.
    tails : float, default 0.2
        The share of δ that a robust set may take to bound the values where rollouts are cut, if
        fold 1 expects more of that. It needs γ below 1, and known rewards or bounds of them.
    reward_low, reward_high : float, optional
        Bounds of single rewards.
    worst_share : float, default 0.0
        The share of returns, the lowest, whose mean is claimed about as well, in the figures and
        at a δ of its own; 0: none.
    practice : float, default 0.3
        The share of δ that a bound on the returns of episodes of fold 2 may take, where π_b is
        estimated and fold 1 expects more of comparing with that than with rollouts; 0: never.

    Notes
    -----
    `surestep.certificates.stitched` has the proof, `surestep.certificates.downside` that of the
    worst share.

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
    >>> stitched = surestep.certificates.Stitched(reward_low=0.0, reward_high=1.0)
    >>> claim = surestep.certify(problem, policy, stitched)
    >>> str(claim.standing), round(claim.lower, 1)
    ('proved', 0.4)
    """

    delta: Delta = 0.1
    train_share: common.Share = 0.3
    logger: Logger = "adaptive"
    seed: common.Seed = 0
    series: Annotated[int, Meta(ge=1, le=100_000)] = 1024
    known_start: bool = False
    return_low: common.End = None
    return_high: common.End = None
    tails: common.Share = 0.2
    reward_low: common.End = None
    reward_high: common.End = None
    worst_share: common.Share = 0.0
    practice: common.Share = 0.3

    name: ClassVar = "stitched"
    value_figures: ClassVar = frozenset(
        {"estimate", "expected", "policy_lower", "practice_upper"}
        | {"worst_lower", "worst_policy", "worst_behavior"}
    )
    formerly: ClassVar = {"practice": 0.0}  # of claims from before there was such a setting
    needs: ClassVar = common.Needs(episodes=True, held_out=True)
    may_choose: ClassVar = True
    claims_chances: ClassVar = True
    compares_many: ClassVar = True

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from facts of the data: of many steps, fewer series.

        Any number of series is as honest, whatever decides it: the bound of `bets` holds for all
        numbers at once.

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
        fewer = [series for steps, series in SERIES_IF_LONG.items() if known.steps >= steps]
        return known.usual() | ({"series": fewer[0]} if fewer else {})

    def lighter(self) -> Stitched:
        """Returns the certifier with at most 96 series.

        Returns
        -------
        Stitched
            L is as often wrong, and owes a little more to the seed.
        """
        return replace(self, series=min(self.series, FEW_SERIES))

    def for_signal(self, *, first: bool) -> Stitched:
        """Returns the settings for one of several signals: all have one baseline.

        Parameters
        ----------
        first : bool
            Whether it is the signal to be improved: the worst returns are those of that one.

        Returns
        -------
        Stitched
            The settings.
        """
        return replace(self, practice=0.0, worst_share=self.worst_share if first else 0.0)

    def choosing_bounds(
        self, problems: Sequence[Problem], policies: Sequence[Sequence[Policy]], again: common.Again
    ) -> list[list[common.Bound]]:
        """Returns the L that training parts expect of their candidates.

        Parameters
        ----------
        problems : sequence of Problem
            Training parts; all plan at once.
        policies : sequence of sequences of Policy
            The candidates of each problem.
        again : callable
            Not used.

        Returns
        -------
        list of lists of float or CertificateRefused
            They are no claims: the same steps may have chosen the candidates.
        """
        planned = [
            common.tried(planned_for, self, problem, several)
            for problem, several in zip(problems, policies, strict=True)
        ]
        of_each = common.usable(planned)
        plans = iter(plans_of([one for own in of_each for one in own.values()]))
        scores = ({key: next(plans).score for key in own} for own in of_each)
        return [
            [found] * len(several)
            if isinstance(found, CertificateRefused)
            else [found.get(policy.probability.tobytes(), 0.0) for policy in several]
            for found, several in zip(common.answered(planned, scores), policies, strict=True)
        ]

    def growth_for_proof(self, training: Problem, policy: Policy) -> float | None:
        """Returns the factor by which the log must grow, as fold 1 expects, to prove a gain.

        Parameters
        ----------
        training : Problem
            The training part, fold 1.
        policy : Policy
            The policy.

        Returns
        -------
        float or None
            The first of some factors from 1 on; None where even the largest is not enough, as
            where fold 1 sees no gain at all. It is an expectation, and no claim.
        """
        planned = planned_for(self, training, [policy])
        larger = [one._replace(ratio=one.ratio * f) for one in planned.values() for f in GROWTHS]
        plans = zip(GROWTHS, plans_of(larger), strict=False)
        return next((factor for factor, plan in plans if plan.score > 0), None)

    @staticmethod
    def certify_many(asked: Sequence[common.Question]) -> list[common.Claim]:
        """Returns L of each policy by rounds on fold 2, as fold 1 planned them; 0 where it is π_b.

        Parameters
        ----------
        asked : sequence of Question
            All plan at once, and all certify at once. Questions that differ in δ alone share their
            folds.

        Returns
        -------
        list of Certificate or CertificateRefused
            The claims, or refusals.
        """
        same: dict[tuple[Stitched, int, int], Judging] = {}

        def judging_for(question: common.Question) -> Judging:
            certifier, problem, policy, at_least, planned = question
            common.check_delta(certifier.delta, "a bet", SMALLEST_LEVEL)
            key = replace(certifier, delta=0.5), id(problem), id(policy)
            if key not in same:
                same[key] = judging_of(certifier, problem, policy)
            return same[key]._replace(certifier=certifier, at_least=at_least, planned_for=planned)

        judging = [common.tried(judging_for, question) for question in asked]
        judged = common.usable(judging)
        limits = iter(lower_limits([one for one in judged if one.is_open]))

        def claim_of(one: Judging) -> common.Claim:
            limit = next(limits) if one.is_open else (0.0, {})
            if isinstance(limit, CertificateRefused):
                return limit
            lower, figures = limit
            if one.certifier.worst_share > 0:
                figures = figures | one.worst_figures()
            return one.certificate(lower, figures)

        return common.answered(judging, map(claim_of, judged))


def levels_of(certifier: Any, *, robust: bool, returns: bool) -> tuple[float, float]:
    """Returns the shares of δ for bets on rounds, and for the bet on returns of practice."""
    left = (1 - certifier.tails) * certifier.delta if robust else certifier.delta
    share = certifier.practice if returns else 0.0
    return (1 - share) * left, share * left


def planned_for(
    certifier: Stitched, training: Problem, policies: Sequence[Policy]
) -> dict[bytes, Planning]:
    """Maps the bytes of each different policy to its planning on the training part.

    Leaves out π_b if it would be compared with itself.
    """
    common.check_delta(certifier.delta, "a bet", SMALLEST_LEVEL)
    training = stopped(training)
    common.usable_discount(training)
    log = episodes.log_of(training)
    share = certifier.train_share or PLANNING_SHARE
    stacks, parts = first_part(stacks_of(log))
    ratio = (1 - share) / share
    foreseen = grown(training, 1 + ratio) if may_have_tails(certifier, training, log) else training
    returns = planned_returns(certifier, training, log)
    practised = training.behavior.probability
    others = {
        policy.probability.tobytes(): policy
        for policy in policies
        if training.alone or (policy.probability != practised).any()
    }
    every = robust_tails(certifier, foreseen, [*others.values()])
    return {
        key: Planning(
            certifier,
            stacks,
            course_for(certifier, training, policy),
            ratio,
            tails,
            training.alone,
            returns,
            parts,
        )
        for (key, policy), tails in zip(others.items(), every, strict=True)
    }


def return_limits(certifier: Stitched, problem: Problem) -> tuple[float, float]:
    """Returns the bounds of all returns; chances have their own."""
    given = None if problem.reach is not None else common.range_of(certifier, "return")
    return given or problem.value_bounds


def course_for(certifier: Stitched, problem: Problem, policy: Policy) -> Course:
    """Returns the course of π_I and π_b, with the start distribution where it is known."""
    initial = problem.counts.starts / problem.counts.starts.sum() if certifier.known_start else None
    return course_of(problem, policy, return_limits(certifier, problem), initial)


def judging_of(certifier: Stitched, problem: Problem, policy: Policy) -> Judging:
    """Sets up the judging of a policy by both folds; refuses a log that cannot judge it."""
    whole = problem
    problem = stopped(problem)
    common.usable_discount(problem)
    log = episodes.log_of(problem)
    folds = folds_of(certifier, log)
    changed = int(np.count_nonzero(policy.probability != problem.behavior.probability))
    if changed or problem.alone:  # where nothing is, nothing is compared with the estimate
        check_estimate(whole, folds)
    limits = return_limits(certifier, problem)
    check_values(problem)
    check_returns(problem, log, limits)
    return Judging(
        certifier,
        problem,
        policy,
        folds,
        figures={
            "episodes": folds.second.starts.size,
            "training_episodes": folds.first.num_episodes,
            "steps": folds.second.num_steps,
            "training_steps": folds.first.num_steps,
            **common.terms_of(problem),
            "return_low": limits[0],
            "return_high": limits[1],
            "changed_pairs": changed,
        },
    )


def first_part(stacks: Stacks) -> tuple[Stacks, int]:
    """Returns the first of m parts of every stack, and m: 1 where all entries are few enough.

    That many times as many rounds are to be expected of all. Every pair keeps its first entry.
    """
    m = stacks.reward.size // MOST_READ
    if m <= 1:
        return stacks, 1
    sizes = -(-stacks.sizes // m)
    kept = np.arange(stacks.reward.size) < np.repeat(stacks.offsets[:-1] + sizes, stacks.sizes)
    first = Stacks(
        arrays.offsets_of(sizes),
        stacks.reward[kept],
        stacks.successor[kept],
        stacks.ended[kept],
        stacks.starts[: -(-stacks.starts.size // m)],
    )
    return first, m


def planned_returns(
    certifier: Stitched, problem: Problem, first: DecisionLog
) -> arrays.FloatArray | None:
    """Returns the returns of episodes of fold 1; None where they may not be compared with."""
    whole = first.whole()
    alike = not certifier.known_start or np.count_nonzero(problem.counts.starts) == 1
    claimed = problem.reach is None and certifier.worst_share == 0
    shared = min(levels_of(certifier, robust=True, returns=True)) > 0  # both have something of δ
    offered = problem.behavior_is_estimated and alike and claimed and shared
    if not offered or whole is None or whole.num_episodes < 2:
        return None
    return paid_returns(problem, whole, return_limits(certifier, problem)[1])


def may_have_tails(certifier: Stitched, problem: Problem, log: DecisionLog | None) -> bool:
    """Tells whether a robust set may be useful, and small enough to compute.

    It needs to know rewards, or what they lie between, and where every step of the log led.
    """
    small = problem.counts.pairs.num_pairs <= MOST_PAIRS
    rewarded = problem.counts.rewards.known or certifier.reward_low is not None
    led = log is None or (log.next_state != UNKNOWN).all()
    level = certifier.tails * certifier.delta
    return bool(level > 0 and problem.single_discount < 1 and small and rewarded and led)


def robust_tails(
    certifier: Stitched, problem: Problem, policies: Sequence[Policy]
) -> list[Tails | None]:
    """Bounds the values at cuts by a robust set; None where there can be no such set."""
    none: list[Tails | None] = [None] * len(policies)
    if not may_have_tails(certifier, problem, problem.log):
        return none
    terms = SetTerms(
        delta=certifier.tails * certifier.delta,
        reward_low=certifier.reward_low,
        reward_high=certifier.reward_high,
        known_start=True,
    )
    try:
        return [*tails_of_set(problem, policies, uncertainty_of(problem, terms).models)]
    except RefutedBounds:
        raise
    except CertificateRefused:  # not enough is known of the rewards
        return none


def planning_split(certifier: Stitched) -> tuple[float, int | None]:
    """Returns the share of the log that only plans, and the seed that shuffles its episodes."""
    share, seed = episodes.split_of(certifier)
    return share or PLANNING_SHARE, seed


def folds_of(certifier: Stitched, log: DecisionLog) -> Folds:
    """Returns both parts of the log; refuses a log with a part that is too small.

    A log that is one stream is split by its steps, and a start of the second part is no start.
    """
    stream = log.num_episodes == 1
    if stream and (not certifier.known_start or certifier.logger == "fixed"):
        raise common.refused("one-episode")
    first, second = episodes.parts_of_log(log, *planning_split(certifier))
    what, whole = ("steps", log.num_steps) if stream else ("episodes", log.num_episodes)
    train, test = (
        0 if part is None else part.num_steps if stream else part.starts.size
        for part in (first, second)
    )
    if first is None or second is None or min(train, test) < FEWEST[what]:
        raise common.refused(
            "too-few-episodes", what=what, whole=whole, train=train, test=test, least=FEWEST[what]
        )
    return Folds(first, second, test / train, (stacks_of(first), stacks_of(second)))


def assumptions_of(
    certifier: Stitched, problem: Problem, of_rounds: Mapping[str, Scalar]
) -> tuple[Statement, ...]:
    """Returns the assumptions of the claim, by the figures of its rounds."""
    robust = bool(of_rounds.get("robust_tails"))
    low, high = return_limits(certifier, problem)
    part = dict(zip(("share", "seed"), planning_split(certifier), strict=True))
    *about_log, _ = common.log_statements(problem)
    baseline = (
        *common.statement_if(not problem.behavior_is_estimated, "behavior-known"),
        *common.statement_if("practice_upper" in of_rounds, "practice-as-recorded"),
    )
    bounds = {"low": certifier.reward_low, "high": certifier.reward_high}
    rewards_bounded = certifier.reward_low is not None
    return (
        *about_log,
        *(baseline or (Statement("behavior-estimated-apart"),)),
        *(
            (Statement("chosen-without-log"), Statement("part-only-planned", part))
            if certifier.train_share == 0
            else (Statement("chosen-from-part", part),)
        ),
        Statement("logger-never-learnt")
        if certifier.logger == "fixed"
        else Statement("order-of-decisions"),
        Statement("nothing-left-out"),
        Statement("starts-as-logged") if certifier.known_start else Statement("starts-unchosen"),
        Statement("returns-bounded", {"low": low, "high": high}),
        *common.statement_if(robust and rewards_bounded, "rewards-bounded", **bounds),
        *common.statement_if(robust and not rewards_bounded, "rewards-known"),
        *((common.values_statement(problem),) if problem.value_bounds != (low, high) else ()),
        Statement("seed-fixed"),
    )


class Planning(NamedTuple):
    """The course of two policies on fold 1, from which their bets are planned."""

    certifier: Any  # `Stitched`, or `NodeStitched`
    stacks: Any  # of pairs, or of nodes
    course: Any
    ratio: float  # the size of the second fold relative to the first
    tails: Any  # by a robust set, as the course has them; None without one
    alone: bool = False  # rounds are of π_I alone
    returns: arrays.FloatArray | None = None  # of practice, where they may be compared with
    parts: int = 1  # of all entries; these are the first

    def folds(self) -> list[Fold]:
        """Returns the ways to plan on fold 1: without a robust set, and with one if there is one.

        If returns of practice may be compared with, both ways are added for rounds of π_I alone.
        """
        certifier, stacks, plain, ratio, tails, alone, returns, parts = self
        courses = [plain] if tails is None else [plain, plain._replace(tails=tails)]
        folds = []
        for paid in [None] if returns is None else [None, returns]:
            for course, robust in zip(courses, (False, True), strict=False):
                level, rest = levels_of(certifier, robust=robust, returns=paid is not None)
                bet = None if paid is None else ReturnsBet.of(paid, ratio, rest, course)
                folds.append(
                    Fold(
                        stacks, course, parts * ratio, level, alone or bet is not None, robust, bet
                    )
                )
        return folds


class Judging(NamedTuple):
    """A policy, and the folds of the log that plan and judge its claim."""

    certifier: Stitched
    problem: Problem
    policy: Policy
    folds: Folds
    figures: dict[str, Scalar]
    at_least: float | None = None  # see `Question`
    planned_for: float | None = None

    @property
    def planner(self) -> Stitched:
        """Returns the settings that fold 1 plans with."""
        return replace(self.certifier, delta=self.planned_for or self.certifier.delta)

    @property
    def is_open(self) -> bool:
        """Tells whether rounds are needed: π_b itself gains nothing over π_b."""
        return bool(self.figures["changed_pairs"] or self.problem.alone)

    @property
    def course(self) -> Course:
        """Returns the course of both policies, without a robust set."""
        certifier, problem, policy, folds, *_ = self
        # An end that only the second fold shows is on its stacks; plans must not know of it.
        over = episodes.known_ends(problem, folds.first)
        if problem.reach is not None:  # the problem itself names these ends
            over = over | problem.reach.states
        return course_for(certifier, problem, policy)._replace(over=over)

    def planning(self) -> Planning:
        """Returns what plans the bet on fold 1, with the robust set that it foresees."""
        _, problem, policy, folds, *_ = self
        tails = None
        if may_have_tails(self.planner, problem, folds.first):  # fold 2 must not decide it
            training = episodes.training_part(problem, *planning_split(self.planner))
            (tails,) = robust_tails(self.planner, grown(training, 1 + folds.ratio), [policy])
        return Planning(
            self.planner,
            folds.stacks[0],
            self.course,
            folds.ratio,
            tails,
            problem.alone,
            planned_returns(self.planner, problem, folds.first),
        )

    def begun(self, planning: Planning, plan: BetPlan) -> tuple[BetPlan, Case]:
        """Returns the bet at its own level, and the case of fold 2 that it is on."""
        certifier, problem, policy, folds, *_ = self
        fold = plan.fold
        level, _ = levels_of(certifier, robust=fold.robust, returns=fold.baseline is not None)
        course = planning.course
        whole = robust_tails(certifier, problem, [policy])[0] if fold.robust else None
        if whole is not None:
            course = course._replace(tails=whole)
        case = case_of(folds.stacks[1], course, fold.stacks, certifier.seed)
        return plan._replace(fold=fold._replace(delta=level)), case

    def limit(
        self, plan: BetPlan, rounds: Tallied, lower: float
    ) -> tuple[float, dict[str, Scalar]]:
        """Returns L by the limit of rounds, with their figures.

        Where the fold compares with returns of practice, U_b is subtracted from a limit of π_I
        alone.
        """
        certifier, problem, _, folds, *_ = self
        low, high = return_limits(certifier, problem)
        fold = plan.fold
        figures: dict[str, Scalar] = {
            "robust_tails": fold.robust,
            "expected": plan.score,
            **figures_of(plan.way, rounds),
        }
        if fold.baseline is not None:
            rolled = figures["estimate"]
            returns = paid_returns(problem, folds.second, high)
            _, level = levels_of(certifier, robust=fold.robust, returns=True)
            upper = min(fold.baseline.upper(returns, returns.size, level), high)
            estimate = None if rolled is None else float(rolled) - float(returns.mean())
            figures |= {"estimate": estimate, "policy_lower": lower, "practice_upper": upper}
            lower -= upper
        return max(lower, low - high), figures

    def certificate(self, lower: float, of_rounds: dict[str, Scalar]) -> Certificate:
        """Returns the claim of a lower limit, with the figures of its rounds, if there are any."""
        certifier, problem, _, _, figures, *_ = self
        least, most = return_limits(certifier, problem)
        return common.claim_of(
            certifier,
            problem,
            lower,
            "proved",
            assumptions=assumptions_of(certifier, problem, of_rounds),
            figures=figures | of_rounds,
            notes=() if self.is_open else (Statement("nothing-changed"),),
            span=most - least,
        )

    def worst_figures(self) -> dict[str, Scalar]:
        """Returns the figures of a claim about the worst share of returns."""
        return worst_figures(
            self.folds.stacks,
            self.folds.ratio,
            self.course,
            share=self.certifier.worst_share,
            delta=self.certifier.delta,
            seed=self.certifier.seed,
        )


def plans_of(
    planning: Sequence[Planning], runs: int = PLANNING_RUNS, read: int = MOST_READ
) -> list[BetPlan]:
    """Returns the plan with the highest expected limit of each fold 1; plans them together.

    On long stacks, fewer runs read at most so many entries in all.
    """
    sizes = [int(one.stacks.sizes.sum()) for one in planning]
    fewer = {runs if n <= READ_BY_ALL else int(np.clip(read // n, 1, runs)) for n in sizes}
    if len(fewer) > 1:
        return [plans_of([one], runs, read)[0] for one in planning]
    runs = min(fewer, default=runs)
    return best_plans([one.folds() for one in planning], runs)


def lower_limits(
    judging: Sequence[Judging],
) -> list[tuple[float, dict[str, Scalar]] | CertificateRefused]:
    """Returns L of each second fold, with the figures of its rounds, or why there is none."""
    number = {one.certifier.series for one in judging}
    if len(number) != 1:
        return [lower_limits([one])[0] for one in judging]
    (series,) = number
    keys = [(id(one.folds), one.planner) for one in judging]  # those who share it plan alike
    asked = dict(zip(keys, judging, strict=True))
    planning = [common.tried(Judging.planning, one) for one in asked.values()]
    ready = common.usable(planning)
    plans = plans_of(ready, max(PLANNING_RUNS, series // SERIES_A_RUN), READ_AT_LAST)
    planned = common.answered(planning, zip(ready, plans, strict=True))
    made = dict(zip(asked, planned, strict=True))
    found = [made[key] for key in keys]
    begun = [
        both if isinstance(both, CertificateRefused) else (one, *one.begun(*both))
        for one, both in zip(judging, found, strict=True)
    ]
    going = common.usable(begun)
    ways = [plan.way for _, plan, _ in going]
    rolled = roll_out_each([case for *_, case in going], ways, CERTIFYING, series)
    checks = [
        common.tried(check_rounds, plan.way, rounds, case.course)
        for (_, plan, case), rounds in zip(going, rolled, strict=True)
    ]
    done = [
        (one, plan, rounds)
        for (one, plan, _), rounds, check in zip(going, rolled, checks, strict=True)
        if check is None
    ]
    lower = limits_of([plan.bet(rounds, one.at_least) for one, plan, rounds in done])
    limits = (
        one.limit(plan, rounds, least)
        for (one, plan, rounds), least in zip(done, lower, strict=True)
    )
    return common.answered(begun, common.answered(checks, limits))


def check_rounds(way: Way, rounds: Tallied, course: Terms) -> None:
    """Refuses bounds of returns that a round refutes."""
    kinds = (way.who,) if way.who <= OURS else (OURS, THEIRS)
    for who, values in zip(kinds, kinds_of(way.who, rounds), strict=True):
        least = least_of(who, course)
        worst = float(values.min(initial=least))
        if worst < least:
            low, high = course.limits
            raise common.refused(
                "rollouts-beyond-returns",
                RefutedBounds,
                worst=worst,
                low=low,
                high=high,
                least=least,
            )


def figures_of(way: Way, rounds: Tallied) -> dict[str, Scalar]:
    """Returns the figures of the rounds that certified."""
    paired = way.who == BOTH
    kinds = kinds_of(way.who, rounds)
    rollouts = rounds.complete.sum() * (2 if paired else 1)
    return {
        "paired": paired,
        "rounds": kinds[0].size / rounds.complete.size,
        "behavior_rounds": 0.0 if way.who == OURS else kinds[-1].size / rounds.complete.size,
        "horizon": way.horizon,
        "behavior_horizon": way.their_horizon,
        "cut_share": float(rounds.cuts.sum() / max(rollouts, 1)),
        "estimate": float(sum(values.mean() for values in kinds))
        if all(values.size for values in kinds)
        else None,
    }


def grown(problem: Problem, factor: float) -> Problem:
    """Multiplies the counts by a factor, to foresee the robust set of that much data.

    The set that certifies is made from the whole log, of which this problem is a part.
    """
    counts = problem.counts
    rewards = problem.counts.rewards
    times = np.rint(factor * counts.times).astype(np.int64)
    if not rewards.known:
        after = arrays.run_sums(times, counts.offsets) if rewards.per == "pair" else times
        rewards = replace(rewards, values=rewards.values * after / np.maximum(counts.observed, 1))
    return replace(problem, counts=replace(counts, times=times, rewards=rewards), log=None)


def check_estimate(problem: Problem, folds: Folds) -> None:
    """Refuses a π_b that was estimated from the part of the log that certifies."""
    behavior = problem.behavior
    if not behavior.estimated:
        return
    training = estimate_behavior(folds.first.counts()).probability
    if (behavior.probability == training).all():
        return
    parts = {
        "whole log, also from the part": problem.counts,
        "part": folds.second.counts(),
    }
    for part, counts in parts.items():
        if (behavior.probability == estimate_behavior(counts).probability).all():
            raise common.refused("behavior-from-judging-part", part=part)
