"""The posterior certificate: a quantile of the gain over models drawn from a Bayesian posterior.

Every row of transition probabilities has a Dirichlet prior over *all* known states, or those that
its pair is known to lead to; given the counts, it is Dirichlet again. Both policies are evaluated
in models M_1 … M_n drawn from there, Δ_k = ρ(π_I, M_k) − ρ(π_b, M_k), and L is the r-th smallest
Δ_k, r = ⌊δ(n + 1)⌋. Given the data, the true Δ is one more draw, and exchangeable with the others.
So P(Δ < L) ≤ r/(n + 1) ≤ δ exactly, for any n of at least 1/δ − 1, whatever the policy and however
it was chosen from the data.

Where π_b is estimated, each Δ_k is less by what a draw of it is worth more than the estimate (see
`practice`).

Both policies meet the same model, so much of what is unknown about it cancels. What was never seen
is not taken to be harmless: unseen successors have the weight that the prior gives them, and a pair
never visited is a draw from the prior itself. Rows of many states are drawn sparsely, and vary by a
trifle more than the posterior does (`kernels.posterior`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._settings import Delta
from surestep.certificates.drawn import DrawnQuestion, Gains, ModelDraws, drawn_gains_each
from surestep.certificates.episodes import held_out_part, log_of, parts_of_log, split_of
from surestep.certificates.practice import BehaviorDoubt
from surestep.certificates.prior import (
    OF_A_WEIGHT,
    Prior,
    PriorName,
    RewardModel,
    adverse_questions,
    prior_of,
    prior_statements,
    reward_draws,
    reward_statements,
)
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model import Certificate, Policy
from surestep.model.known import Known, Logger, Ranges, ends
from surestep.model.problem import Problem, stopped
from surestep.model.statements import Scalar, Statement

Starts = Literal["posterior", "known"]
# Chosen on Gridworld and Wet Chicken, and not refuted by benchmarks/posterior.py.
DEFAULT_WEIGHT = 5.0
# What never came in n visits then has the chance Beta(1, n) of coming: it exceeds x as often as n
# visits do not show what comes with the chance x. So of one pair, and at any δ, the worst is feared
# as much as a proof would have to fear it (Clopper and Pearson 1934), and no more.
EXTREME_WEIGHT = 1.0
SEEDS = 2**63  # all are below
FEW_DRAWS = 99
# Above so many different transitions, and from so many steps of the log on. Of a long log, L then
# owes no more to the seed than with 1,000 draws of 10⁵ steps: the error of a quantile falls with
# the root of the draws, its posterior with that of steps.
DRAWS_IF_MORE = (
    (20_000, 0, 300),
    (100_000, 0, 99),
    (200_000, 0, 29),
    (-1, 300_000, 300),
    (-1, 1_000_000, 99),
    (200_000, 1_000_000, 19),  # 29 of 10⁵ steps owe more to the seed
)
WIDE_TO_CHOOSE = 5_000  # from which on a choice among policies goes by the fewest draws
CHOOSING = 2**63 - 2**61 + 104_729  # moves a seed to draws that no small seed has
MEMORY = 2**29  # bytes of drawn models held at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior(common.WithRanges, common.Certifier):
    """The claim of a Bayesian who drew models from the posterior.

    Parameters
    ----------
    delta : float, default 0.1
        The chance δ that the claim is wrong.
    prior : {"cautious", "weight", "pooled", "uniform", "jeffreys", "own"}
        The prior of a row, over the states that its pair may lead to. "weight" has the total
        weight `prior_weight`, the same for each state; "pooled" has it where steps of the row's
        state lead, whatever the action; "cautious" is both, and a third one that is against the
        policy, and makes the smallest claim of the three. "uniform" has weight 1 a state,
        "jeffreys" ½; "own" has the weights of the problem's support.
    prior_weight : float, default 5.0
        The total weight of a row.
    draws : int, default 1000
        The number of models, at least 1/δ − 1.
    seed : int, default 0
        Of the draws, and of the split where the logger is fixed.
    starts : {"posterior", "known"}
        "known": distributed as in the log. "posterior": with a prior that is the same for each
        state, of the weight that a state of a row has ("own": of weight `prior_weight`).
    rewards : {"deterministic", "bounded"}
        Rewards that are not known: "deterministic" ones are the same each time, so that an
        observed one is exact; "bounded" ones are noise between `reward_low` and `reward_high`.
        Rewards that were never observed, or too rarely, are like the observed ones.
    reward_low, reward_high : float, optional
        The range of single rewards.
    ending_low, ending_high : float, optional
        The range of the reward of a step that ends an episode, where it is another one.
    extreme_weight : float, default 0.0
        The third prior of "cautious" takes the worst end of its range for so many visits of every
        pair: a disaster that hardly ever shows is not impossible.
    train_share : float, default 0.0
        The share of the log that may have chosen the policy, and is not looked at; 0: none.
    logger : {"adaptive", "fixed"}
        "adaptive": whoever acted may have learnt, and that share is the first part of the log.
        "fixed": it is drawn by `seed`.

    Notes
    -----
    "pooled" is read off the data, as the third prior of "cautious" is, which leaves no exact
    posterior. Gains are held to the value bounds. `surestep.certificates.posterior` has the proof.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 15]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.deterministic(counts, [1, 0])
    >>> claim = surestep.certify(problem, policy, surestep.certificates.Posterior(draws=99))
    >>> str(claim.standing), claim.lower > 0
    ('posterior', True)
    """

    delta: Delta = 0.1
    prior: PriorName = "cautious"
    prior_weight: Annotated[float, Meta(ge=1e-3, le=1e9)] = DEFAULT_WEIGHT
    draws: Annotated[int, Meta(ge=1, le=10_000_000)] = 1000
    seed: common.Seed = 0
    starts: Starts = "posterior"
    rewards: RewardModel = "deterministic"
    reward_low: common.End = None
    reward_high: common.End = None
    ending_low: common.End = None
    ending_high: common.End = None
    extreme_weight: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    train_share: common.Share = 0.0
    logger: Logger = "adaptive"

    name: ClassVar = "posterior"
    value_figures: ClassVar = frozenset({"mean_gain", "median_gain", "evaluation_error"})
    needs: ClassVar = common.Needs()
    may_choose: ClassVar = True
    calibrates: ClassVar = True
    claims_chances: ClassVar = True

    def __post_init__(self) -> None:
        super(Posterior, self).__post_init__()
        weight = self.extreme_weight
        no_bounds = self.reward_low is None
        unbounded = "without bounds; expected reward_low and reward_high"
        common.refuse_settings(
            {
                f"prior_weight is {self.prior_weight}, but the prior {self.prior} has a weight of "
                "its own; expected none": self.prior not in OF_A_WEIGHT
                and self.prior_weight != DEFAULT_WEIGHT,
                f"draws is {self.draws}, expected at least 1/delta − 1 = "
                f"{arrays.in_digits(arrays.least_draws(self.delta))}: fewer do not show what "
                "happens so rarely": self.rank < 1,
                f"extreme_weight is {weight} and the prior {self.prior}, expected none, or the "
                "prior cautious: it is a part of that": weight > 0 and self.prior != "cautious",
                f"rewards is 'bounded' {unbounded}": self.rewards == "bounded" and no_bounds,
                f"extreme_weight is {weight} {unbounded}": weight > 0 and no_bounds,
                f"ending_low is given {unbounded}": self.ending_low is not None and no_bounds,
            }
        )

    @property
    def ranges(self) -> Ranges | None:
        """Returns the ranges of single rewards, where they are given."""
        running = common.range_of(self, "reward")
        return (
            None if running is None else Ranges(running, common.range_of(self, "ending") or running)
        )

    @property
    def noise(self) -> tuple[float, float] | None:
        """Returns the bounds of single rewards, where they are noisy."""
        return None if self.rewards != "bounded" or self.ranges is None else self.ranges.rewards

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from facts of the data.

        Rewards that vary are noisy. The worst ends of declared ranges count as a visit. Of a wide
        problem, or a long log, fewer models are drawn, as each takes its time. Any number from
        1/δ − 1 on is as honest; fewer make L vary more from seed to seed.

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

        Raises
        ------
        InvalidParameter
            Where rewards are said to be deterministic, and vary.
        """
        noisy = given.get("rewards", "bounded" if known.rewards_vary else "deterministic")
        if known.rewards_vary and noisy == "deterministic":
            raise InvalidParameter(
                "rewards is 'deterministic', but one transition earned different rewards; expected "
                "'bounded', or leave it out"
            )
        told = known.usual() | {"rewards": "bounded" if known.rewards_vary else None}
        delta = given.get("delta", known.delta)
        fewer = [
            draws
            for size, steps, draws in DRAWS_IF_MORE
            if known.transitions > size and known.steps >= steps
        ]
        enough = [draws for draws in fewer if delta is not None and delta >= 1 / draws]
        if enough:
            told["draws"] = min(enough)
        if known.ranges is not None:
            running, ending = known.ranges
            told |= ends("reward", running) | ends("ending", ending)
            cautious = given.get("prior", "cautious") == "cautious"
            return told | {"extreme_weight": EXTREME_WEIGHT if cautious else None}
        return told | (ends("reward", known.possible_rewards) if noisy == "bounded" else {})

    def lighter(self) -> Posterior:
        """Returns the certifier with at most 99 draws, or as many as δ needs, to compare policies.

        Returns
        -------
        Posterior
            99 draws rank policies at a tenth of the cost of 1000.
        """
        return replace(self, draws=min(self.draws, max(FEW_DRAWS, arrays.least_draws(self.delta))))

    def lightest(self) -> Posterior:
        """Returns the certifier with three times as many draws as δ needs, to count wrong claims.

        Returns
        -------
        Posterior
            Its claims are not made, only counted.
        """
        return replace(self, draws=min(self.draws, 3 * arrays.least_draws(self.delta) + 2))

    def has_prior(self, name: str, weight: float | None) -> bool:
        """Tells whether this is its prior; "cautious" includes the prior "weight".

        Parameters
        ----------
        name : str
            The name of a prior of rows.
        weight : float or None
            Its weight, where the name does not say it.

        Returns
        -------
        bool
            Whether it is.
        """
        same = name == self.prior or (name, self.prior) == ("weight", "cautious")
        return same and weight in (None, self.prior_weight)

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns the claim: L is the r-th smallest Δ_k, each less its error of evaluation.

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
            Where nothing can be drawn.
        """
        if not problem.alone and common.nothing_changed(problem, policy):
            question_of(self, problem, [policy])  # it may be impossible to draw
            return drawn_claim(self, problem, policy, Gains(np.zeros((1, self.draws)), 0.0))
        (drawn,) = drawn_each([self], [problem], [[policy]])
        return drawn_claim(self, problem, policy, common.unless_refused(drawn))

    def gains(self, problem: Problem, policies: Sequence[Policy]) -> arrays.FloatArray:
        """Returns Δ_k of several policies in the same draws, each less its error of evaluation.

        Parameters
        ----------
        problem : Problem
            The data.
        policies : sequence of Policy
            The policies.

        Returns
        -------
        array of float [P, draws]
            The gains by policy and draw.

        Raises
        ------
        CertificateRefused
            Where nothing can be drawn.
        """
        (gains,) = self.gains_each([self], [problem], [policies])
        return common.unless_refused(gains)

    @staticmethod
    def gains_each(
        certifiers: Sequence[Posterior],
        problems: Sequence[Problem],
        policies: Sequence[Sequence[Policy]],
    ) -> list[arrays.FloatArray | CertificateRefused]:
        """Returns the `gains` of the policies of each problem, made together.

        Parameters
        ----------
        certifiers : sequence of Posterior
            One for each problem.
        problems : sequence of Problem
            The data.
        policies : sequence of sequences of Policy
            The policies of each problem.

        Returns
        -------
        list of arrays of float [P, draws] or CertificateRefused
            The gains, or the refusal.
        """
        drawn = drawn_each(certifiers, problems, policies)
        return [one if isinstance(one, CertificateRefused) else one.lower for one in drawn]

    def choosing_bounds(
        self, problems: Sequence[Problem], policies: Sequence[Sequence[Policy]], again: common.Again
    ) -> list[list[common.Bound]]:
        """Returns L of each candidate by other draws, which leaves its own fresh for the claim.

        Parameters
        ----------
        problems : sequence of Problem
            The data.
        policies : sequence of sequences of Policy
            The candidates of each problem.
        again : callable
            Not used.

        Returns
        -------
        list of lists of float or CertificateRefused
            The bound of each candidate, or the refusal.
        """
        choosing = [for_choosing(self, problem) for problem in problems]
        gains = self.gains_each(choosing, problems, policies)
        return [
            [drawn] * len(several)
            if isinstance(drawn, CertificateRefused)
            else np.sort(drawn, axis=1)[:, judge.rank - 1].tolist()
            for judge, several, drawn in zip(choosing, policies, gains, strict=True)
        ]

    @staticmethod
    def joint_bounds(
        judges: Sequence[Posterior], parts: Sequence[common.SignalPart], policy: Policy
    ) -> common.JointBounds:
        """Returns bounds for several signals: each r-th smallest gain, and joint bounds.

        Parameters
        ----------
        judges : sequence of Posterior
            The certifier of each signal.
        parts : sequence of SignalPart
            The signals.
        policy : Policy
            The policy.

        Returns
        -------
        JointBounds
            The claim about the first signal, and all bounds.
        """
        asked = {  # the tested problem is mostly the shown one
            id(problem): (judge, problem)
            for judge, part in zip(judges, parts, strict=True)
            for problem in (part.tested, part.shown)
        }
        every, problems = zip(*asked.values(), strict=True)
        drawn = dict(zip(asked, drawn_each(every, problems, [[policy]] * len(asked)), strict=True))
        first: Any = drawn[id(parts[0].tested)]
        if isinstance(first, Gains):
            first = drawn_claim(judges[0], parts[0].tested, policy, first)
        refused = {
            place: answer
            for place, part in enumerate(parts)
            for answer in (drawn[id(part.shown)], drawn[id(part.tested)])
            if isinstance(answer, CertificateRefused)
        }
        whole = [part for place, part in enumerate(parts) if place not in refused]
        if 0 in refused:
            nothing: list[common.Bound] = [refused[0]] * len(parts)
            return common.JointBounds(first, nothing, nothing, together=False)
        lower = {key: gains.lower for key, gains in drawn.items() if isinstance(gains, Gains)}
        tested = np.concatenate([lower[id(part.tested)] for part in whole])
        shown = np.concatenate([lower[id(part.shown)] for part in whole])
        rank = judges[0].rank
        rising = np.sort(shown, axis=1)
        kept = [gain > 0 if k == 0 else gain >= whole[k].limit for k, gain in enumerate(tested)]
        together = not refused and int(np.count_nonzero(~np.all(kept, axis=0))) < rank
        below = [np.count_nonzero((shown < rising[:, [q]]).any(axis=0)) for q in range(rank)]
        place = max((q for q in range(rank) if below[q] < rank), default=0)
        refusals = [refused.get(k) for k in range(len(parts))]
        return common.JointBounds(
            first,
            common.answered(refusals, np.sort(tested, axis=1)[:, rank - 1].tolist()),
            common.answered(refusals, rising[:, place].tolist()),
            together,
        )


def for_choosing(settings: Posterior, problem: Problem) -> Posterior:
    """Returns the certifier with other draws, as many as choosing in this problem takes."""
    # The held-out part is not in this problem, so nothing more is held out.
    other = replace(settings, seed=(settings.seed + CHOOSING) % SEEDS, train_share=0.0)
    wide = np.count_nonzero(problem.counts.times) > WIDE_TO_CHOOSE
    return other.lighter().lightest() if wide else other.lighter()


def judged_part(settings: Posterior, problem: Problem) -> Problem:
    """Returns the part of the problem that did not choose the policy."""
    return problem if settings.train_share == 0 else held_out_part(problem, *split_of(settings))


def drawn_claim(settings: Posterior, problem: Problem, policy: Policy, drawn: Gains) -> Certificate:
    """Returns the certificate of gains that were drawn."""
    part = judged_part(settings, problem)
    prior = prior_of(part, settings.prior, float(settings.prior_weight))
    problem = stopped(part)
    gains = np.sort(drawn.lower[0])
    changed = policy.probability != problem.behavior.probability
    figures: dict[str, Scalar] = {
        "rank": settings.rank,
        "mean_gain": float(gains.mean()),
        "median_gain": float(np.median(gains)),
        "draws_with_a_loss": int(np.count_nonzero(gains < 0)),
        "evaluation_error": drawn.error,
        "alpha": prior.alpha,
        "total_prior_weight": prior.total,
        "states": problem.num_states,
        **common.terms_of(problem),
        "visits": int(problem.counts.visits.sum()),
        "episodes": int(problem.counts.starts.sum()),
        "unseen_pairs": int(np.count_nonzero(problem.unseen_pairs())),
        "changed_pairs": int(np.count_nonzero(changed)),
    }
    if problem.alone:  # what is worth less than nothing is no loss
        del figures["draws_with_a_loss"]
    if problem.support is not None:
        figures["successors"] = problem.support.successor.size
    return common.claim_of(
        settings,
        problem,
        float(gains[settings.rank - 1]),
        "posterior",
        assumptions=assumptions_of(settings, problem, prior),
        figures=figures,
        notes=common.nothing_changed(problem, policy),
    )


def over_practice(
    settings: Posterior, problem: Problem, policies: Sequence[Policy], gains: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns gains [P, draws] over draws of π_b, where π_b is estimated."""
    if not problem.behavior_is_estimated or problem.alone:
        return gains
    counts = problem.counts
    part = stopped(judged_part(settings, problem))
    if settings.train_share > 0:
        first, _ = parts_of_log(log_of(problem), *split_of(settings))
        counts = counts if first is None else first.counts()
    drawn = BehaviorDoubt.of(part, counts).draws(settings.draws, settings.seed)
    low, high = part.value_bounds
    same = [[(p.probability == part.behavior.probability).all()] for p in policies]
    return np.where(same, gains, np.maximum(gains - drawn, low - high))


def assumptions_of(settings: Posterior, problem: Problem, prior: Prior) -> tuple[Statement, ...]:
    """Returns the assumptions of the claim, the prior first of all."""
    *about_log, behavior = common.log_statements(problem)
    share, seed = split_of(settings)
    return (
        *prior_statements(problem, settings.prior, prior),
        *about_log,
        Statement("behavior-drawn") if problem.behavior_is_estimated else behavior,
        *reward_statements(problem, settings.rewards, settings.ranges, settings.extreme_weight),
        Statement("starts-as-logged")
        if settings.starts == "known"
        else Statement(
            "starts-prior", {"states": int(prior.startable.sum()), "weight": prior.start_alpha}
        ),
        common.values_statement(problem),
        Statement("chosen-without-draws"),
        *common.statement_if(share > 0, "chosen-from-part", share=share, seed=seed),
    )


def drawn_each(
    every: Sequence[Posterior],
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
    memory: int = MEMORY,
) -> list[Gains | CertificateRefused]:
    """Returns the gains of the policies of each problem by its settings, or a refusal.

    Of several signals of a log, whose settings agree in seed, draws, first prior and split, draw k
    has the same transitions and starts under the first prior: every row and the starts have random
    numbers of their own, by (seed, k, pair), and what rewards need comes after them. Only the rows
    of unsafe states are none of a chance to reach these. So the share of all k in which several
    statements hold is that of their joint posterior. Under several priors, the gains of a signal
    are made as small as under each, by rank (`least_of`): the share is at most that under the
    first, and each signal by itself holds under all.
    """
    cases = [*zip(every, problems, policies, strict=True)]
    asked = [common.tried(question_of, *case) for case in cases]
    ready = common.usable(asked)
    try:
        least = least_gains_each([question for question, _ in ready], memory)
    except CertificateRefused as refusal:
        if len(cases) == 1:
            return [refusal]
        # One of them is refused, and the others are not.
        return [drawn_each([one], [data], [several], memory)[0] for one, data, several in cases]
    gains = (
        one._replace(lower=one.lower[places]) for (_, places), one in zip(ready, least, strict=True)
    )
    return [
        one
        if isinstance(one, CertificateRefused)
        else one._replace(lower=over_practice(*case, one.lower))
        for case, one in zip(cases, common.answered(asked, gains), strict=True)
    ]


def question_of(
    settings: Posterior, problem: Problem, policies: Sequence[Policy]
) -> tuple[DrawnQuestion, arrays.IntArray]:
    """Returns the question about all distinct policies, and the place of each policy in it."""
    part = judged_part(settings, problem)
    # Bytes that begin with the highest rise with the chances: the order is that of the rows.
    keys = [policy.probability.astype(">f8").tobytes() for policy in policies]
    different = sorted(set(keys))
    rows = [policies[keys.index(key)].probability for key in different]
    question = DrawnQuestion(model_draws(part, settings), part.behavior.probability, np.stack(rows))
    return question, np.array([different.index(key) for key in keys])


def least_gains_each(questions: Sequence[DrawnQuestion], memory: int) -> list[Gains]:
    """Returns the gains of each question, by rank the smallest under any of its priors.

    If there are several priors, one more works against each policy; see `adverse_questions`.
    """
    every = drawn_gains_each(questions, memory)
    against = [
        (question, under_each, places)
        for asked, under_each in zip(questions, every, strict=True)
        if len(asked.models.rows) > 1
        for question, places in adverse_questions(asked)
    ]
    answers = drawn_gains_each([question for question, _, _ in against], memory)
    for (_, under_each, places), (gains,) in zip(against, answers, strict=True):
        lower = under_each[0].lower.copy()
        lower[places] = gains.lower
        under_each.append(Gains(lower, gains.error))
    return [least_of(under_each) for under_each in every]


def least_of(every: Sequence[Gains]) -> Gains:
    """Returns the gains under the first prior, lowered to the smallest of equal rank.

    That is, each is no more than the gain of the same rank under any other prior.
    """
    lower = every[0].lower
    order = np.argsort(lower, axis=1)
    least = np.min([np.sort(gains.lower, axis=1) for gains in every], axis=0)
    np.put_along_axis(lower, order, least, axis=1)
    return Gains(lower, max(gains.error for gains in every))


def model_draws(problem: Problem, settings: Posterior) -> ModelDraws:
    """Checks that problem and settings suit each other; returns the posterior over models."""
    prior = prior_of(problem, settings.prior, float(settings.prior_weight))
    problem = stopped(problem)
    discount = common.usable_discount(problem)
    rewards = reward_draws(problem, settings.rewards, settings.ranges)
    if problem.support is not None:
        rewards = rewards.moved(
            problem.support.places(problem.counts), problem.support.successor.size
        )
    return ModelDraws(
        counts=problem.counts,
        rows=prior.rows,
        discount=discount,
        value_bounds=problem.value_bounds,
        start_weight=np.zeros(0)
        if settings.starts == "known"
        else problem.counts.starts + prior.start_alpha * prior.startable,
        rewards=rewards,
        extreme=float(settings.extreme_weight),
        seed=settings.seed,
        draws=settings.draws,
        horizon=problem.horizon,
        alone=problem.alone,
    )
