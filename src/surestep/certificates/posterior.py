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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
import surestep.certificates.common as common
from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep._settings import Delta, check_settings
from surestep.certificates.common import End, Needs, Seed, Share
from surestep.certificates.drawn import (
    DrawnQuestion,
    Gains,
    ModelDraws,
    drawn_gains_each,
    expected_cells,
)
from surestep.certificates.episodes import held_out_part, log_of, parts_of_log, split_of
from surestep.certificates.practice import BehaviorDoubt
from surestep.certificates.prior import (
    ADVERSE,
    OF_A_WEIGHT,
    Prior,
    PriorName,
    adverse_questions,
    prior_statements,
    priors_of,
)
from surestep.certificates.reward_draws import RewardModel, reward_draws, reward_statements
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.certificate import Certificate
from surestep.model.known import Known, Logger, Ranges, ends
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.signals import stopped
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
DRAWS_IF_WIDE = {200_000: 29, 100_000: 99, 20_000: 300}  # above so many different transitions
WIDE_TO_CHOOSE = 5_000  # from which on a choice among policies goes by the fewest draws
CHOOSING = 2**63 - 2**61 + 104_729  # moves a seed to draws that no small seed has
MEMORY = 2**29  # bytes of drawn models held at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The claim of a Bayesian who drew `draws` models from the posterior.

    Priors of a row, over the states that its pair may lead to: "weight" has the total weight
    `prior_weight`, the same for each state; "pooled" has it where steps of the row's state lead,
    whatever the action; "cautious" is both, and a third one that is against the policy, and makes
    the smallest claim of the three. "uniform" has weight 1 a state, "jeffreys" ½; "own" has the
    weights of the problem's support. "pooled" is read off the data, as the third is, which leaves
    no exact posterior. `starts` are "known" to be distributed as in the log, or have a
    prior that is the same for each state, of the same weight ("own": of weight `prior_weight`).

    Rewards that are not known: "deterministic" ones are the same each time, so that what was
    observed is exact; "bounded" ones are noise between `reward_low` and `reward_high`. What was
    never observed, or too rarely, is like what was; see `reward_draws`. A step that ends an episode
    earns between `ending_low` and `ending_high`, if these are given. With an `extreme_weight`, the
    third prior of "cautious" takes the worst end of its range for so many visits of every pair: a
    disaster that hardly ever shows is not impossible. Gains are held to the value bounds.

    `train_share` of the log may have chosen the policy, and is not looked at; see `Stitched` for
    what it is with a `logger` who may have learnt, and with one who has not (`seed` then draws the
    part, as it draws the models). 0: all of the log is looked at.
    """

    delta: Delta = 0.1
    prior: PriorName = "cautious"
    prior_weight: Annotated[float, Meta(ge=1e-3, le=1e9)] = DEFAULT_WEIGHT
    draws: Annotated[int, Meta(ge=1, le=10_000_000)] = 1000
    seed: Seed = 0
    starts: Starts = "posterior"
    rewards: RewardModel = "deterministic"
    reward_low: End = None
    reward_high: End = None
    ending_low: End = None
    ending_high: End = None
    extreme_weight: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    train_share: Share = 0.0
    logger: Logger = "adaptive"

    name: ClassVar = "posterior"
    value_figures: ClassVar = frozenset({"mean_gain", "median_gain", "evaluation_error"})
    needs: ClassVar = Needs()
    may_choose: ClassVar = True

    def __post_init__(self) -> None:
        """Checks the settings."""
        check_settings(self)
        common.check_ranges(self, "reward", "ending")
        weight, no_bounds = self.extreme_weight, self.reward_low is None
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
    def rank(self) -> int:
        """Returns r = ⌊δ(n + 1)⌋, n at most: L is the r-th smallest of n draws."""
        return min(math.floor(self.delta * (self.draws + 1) + 1e-9), self.draws)

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

    def with_draws(self, most: int) -> Posterior:
        """Returns the same with no more draws than these."""
        return replace(self, draws=min(self.draws, most))

    def has_prior(self, name: str, weight: float | None) -> bool:
        """Tells whether this is its prior, one of two in which a cautious one believes."""
        same = name == self.prior or (name, self.prior) == ("weight", "cautious")
        return same and weight in (None, self.prior_weight)

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns L = the r-th smallest of the Δ_k, each less what evaluating it may be off."""
        if not problem.alone and common.nothing_changed(problem, policy):
            part = self.judging(problem)  # of which nothing may be possible to draw, all the same
            question_of(stopped(part), [policy], self, self.priors_for(part))
            return self.claim(problem, policy, Gains(np.zeros((1, self.draws)), 0.0))
        (drawn,) = drawn_each([self], [problem], [[policy]])
        if isinstance(drawn, CertificateRefused):
            raise drawn
        return self.claim(problem, policy, drawn)

    def claim(self, problem: Problem, policy: Policy, drawn: Gains) -> Certificate:
        """Returns the certificate of gains that were drawn."""
        part = self.judging(problem)
        priors, problem = self.priors_for(part), stopped(part)
        notes = common.nothing_changed(problem, policy)
        gains = np.sort(drawn.lower[0])
        changed = policy.probability != problem.behavior.probability
        counts = problem.counts
        figures: dict[str, Scalar] = {
            "rank": self.rank,
            "mean_gain": float(gains.mean()),
            "median_gain": float(np.median(gains)),
            "draws_with_a_loss": int(np.count_nonzero(gains < 0)),
            "evaluation_error": drawn.error,
            "alpha": priors[0].alpha,
            "total_prior_weight": priors[0].total,
            "states": problem.num_states,
            **common.terms_of(problem),
            "visits": int(counts.visits.sum()),
            "episodes": int(counts.starts.sum()),
            "unseen_pairs": int(np.count_nonzero(problem.unseen_pairs())),
            "changed_pairs": int(np.count_nonzero(changed)),
        }
        if problem.alone:  # what is worth less than nothing is no loss
            del figures["draws_with_a_loss"]
        if problem.support is not None:
            figures["successors"] = problem.support.successor.size
        lower, assumptions = float(gains[self.rank - 1]), self.assumptions(problem, priors)
        return common.claim_of(self, problem, lower, "posterior", assumptions, figures, notes)

    def choosing(self, problem: Problem) -> Posterior:
        """Returns the certifier with other draws, as many as a choice in the problem goes by."""
        # What it would hold out is held out already.
        other = replace(self, seed=(self.seed + CHOOSING) % SEEDS, train_share=0.0)
        few = with_few_draws(other)
        wide = np.count_nonzero(problem.counts.times) > WIDE_TO_CHOOSE
        return few.with_draws(fewest_draws(self.delta)) if wide else few

    def cells(self, problem: Problem, taken: BoolArray) -> list[int]:
        """Returns how many transitions models drawn under each prior have, of the pairs taken."""
        counts = problem.counts
        used: BoolArray = taken & ~counts.terminal[counts.pairs.state]
        try:
            models = model_draws(stopped(problem), self, self.priors_for(problem))
            cells = [expected_cells(models, used)] * models.priors
            if models.others:  # and one against a policy
                against = replace(models, rows=models.rows._replace(weight=ADVERSE))
                cells.append(expected_cells(against, used))
            return cells
        except CertificateRefused:  # then nothing is drawn
            return [int(counts.successor.size)]

    def judging(self, problem: Problem) -> Problem:
        """Returns the part of the problem that is looked at: all that chose no policy."""
        return problem if self.train_share == 0 else held_out_part(problem, *split_of(self))

    def doubted(
        self, problem: Problem, policies: Sequence[Policy], gains: FloatArray
    ) -> FloatArray:
        """Returns gains [P, draws] over what π_b may be, where it is estimated."""
        if not problem.behavior_is_estimated or problem.alone:
            return gains
        counts, part = problem.counts, stopped(self.judging(problem))
        if self.train_share > 0:
            first, _ = parts_of_log(log_of(problem), *split_of(self))
            counts = counts if first is None else first.counts()
        drawn = BehaviorDoubt.of(part, counts).draws(self.draws, self.seed)
        low, high = part.value_bounds
        same = [[(p.probability == part.behavior.probability).all()] for p in policies]
        return np.where(same, gains, np.maximum(gains - drawn, low - high))

    def priors_for(self, problem: Problem) -> tuple[Prior, ...]:
        """Returns the priors of the problem's rows and starts; the claim holds under each."""
        return priors_of(problem, self.prior, float(self.prior_weight))

    def assumptions(self, problem: Problem, priors: tuple[Prior, ...]) -> tuple[Statement, ...]:
        """Returns what must hold for the claim, the prior first of all."""
        weight = {
            "states": int(priors[0].startable.sum()),
            "weight": priors[0].start_alpha,
        }
        *about_log, behavior = common.log_statements(problem)
        statements = [
            *prior_statements(problem, priors),
            *about_log,
            Statement("behavior-drawn") if problem.behavior_is_estimated else behavior,
            *reward_statements(problem, self.rewards, self.ranges, self.extreme_weight),
            Statement("starts-as-logged")
            if self.starts == "known"
            else Statement("starts-prior", weight),
            common.values_statement(problem),
            Statement("chosen-without-draws"),
        ]
        if self.train_share > 0:
            share, seed = split_of(self)
            statements.append(Statement("chosen-from-part", {"share": share, "seed": seed}))
        return tuple(statements)


def told_posterior(known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that follow from what is known: rewards that vary are noisy.

    Where ranges of rewards were declared, their worst ends count as a visit.
    Of a wide problem fewer models are drawn, as each takes its time. Any number from 1/δ − 1 on is
    as honest; fewer make L vary more from seed to seed.
    """
    noisy = given.get("rewards", "bounded" if known.rewards_vary else "deterministic")
    if known.rewards_vary and noisy == "deterministic":
        raise InvalidParameter(
            "rewards is 'deterministic', but one transition earned different rewards; expected "
            "'bounded', or leave it out"
        )
    told = known.usual() | {"rewards": "bounded" if known.rewards_vary else None}
    delta = given.get("delta", known.delta)
    enough = [
        draws
        for wide, draws in DRAWS_IF_WIDE.items()
        if known.transitions > wide and delta is not None and delta >= 1 / draws
    ]
    if enough:
        told["draws"] = enough[0]
    if known.ranges is not None:
        running, ending = known.ranges
        told |= ends("reward", running) | ends("ending", ending)
        cautious = given.get("prior", "cautious") == "cautious"
        return told | {"extreme_weight": EXTREME_WEIGHT if cautious else None}
    return told | (ends("reward", known.possible_rewards) if noisy == "bounded" else {})


def with_few_draws(certifier: Posterior) -> Posterior:
    """Returns the same with no more draws than 99, or what its δ needs: to compare, not to claim.

    99 rank policies at a tenth of the cost of 1000.
    """
    return certifier.with_draws(max(FEW_DRAWS, arrays.least_draws(certifier.delta)))


def fewest_draws(delta: float) -> int:
    """Returns how few draws tell whether a belief is wrong: three times what δ needs at the least.

    They are not claimed, only counted.
    """
    return 3 * arrays.least_draws(delta) + 2


def posterior_gains(
    problem: Problem,
    policies: Policy | Sequence[Policy],
    settings: Posterior,
    *,
    memory: int = MEMORY,
) -> FloatArray:
    """Returns Δ_k of one policy [draws], or of several in the same draws [P, draws], by k.

    Each is less by what evaluating it may be off. `memory` is the most bytes that drawn models
    take at a time, with what evaluating them takes; it changes nothing else.
    """
    arrays.expect("problem", problem, Problem)
    arrays.expect("settings", settings, Posterior)
    if not isinstance(policies, Policy | Sequence) or policies == []:
        raise InvalidParameter(f"policies is {policies!r}, expected a Policy or several")
    several = [policies] if isinstance(policies, Policy) else list(policies)
    for policy in several:
        arrays.expect("policy", policy, Policy)
        check_same_pairs("the problem", problem.counts.pairs, "the policy", policy.pairs)
    (gains,) = gains_each([settings], [problem], [several], memory)
    if isinstance(gains, CertificateRefused):
        raise gains
    return gains[0] if isinstance(policies, Policy) else gains


def gains_each(
    every: Sequence[Posterior],
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
    memory: int = MEMORY,
) -> list[FloatArray | CertificateRefused]:
    """Returns Δ_k [P, draws] of the policies of each problem by its settings, or a refusal."""
    drawn = drawn_each(every, problems, policies, memory)
    return [each if isinstance(each, CertificateRefused) else each.lower for each in drawn]


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
    answers: dict[int, Gains | CertificateRefused] = {}
    asked: dict[int, dict[int, tuple[DrawnQuestion, IntArray]]] = {}  # by the number of draws
    for place, (settings, problem) in enumerate(zip(every, problems, strict=True)):
        try:
            part = settings.judging(problem)
            priors = settings.priors_for(part)
            question = question_of(stopped(part), policies[place], settings, priors)
        except CertificateRefused as refusal:
            answers[place] = refusal
        else:
            asked.setdefault(settings.draws, {})[place] = question
    for draws, questions in asked.items():
        try:
            gains = least_gains_each(
                [question for question, _ in questions.values()], draws, memory
            )
        except CertificateRefused as refusal:
            if len(problems) == 1:
                return [refusal]
            for place in questions:  # one of them is refused, and the others are not
                single = ([every[place]], [problems[place]], [policies[place]])
                answers[place] = drawn_each(*single, memory)[0]
        else:
            for (place, (_, rows)), least in zip(questions.items(), gains, strict=True):
                doubted = every[place].doubted(problems[place], policies[place], least.lower[rows])
                answers[place] = Gains(doubted, least.error)
    return [answers[place] for place in range(len(problems))]


def question_of(
    problem: Problem, policies: Sequence[Policy], settings: Posterior, priors: tuple[Prior, ...]
) -> tuple[DrawnQuestion, IntArray]:
    """Returns the comparison of all different policies, and which of them each policy is."""
    # Bytes that begin with the highest rise with the chances: the order is that of the rows.
    keys = [policy.probability.astype(">f8").tobytes() for policy in policies]
    different = sorted(set(keys))
    rows = [policies[keys.index(key)].probability for key in different]
    models = model_draws(problem, settings, priors)
    question = DrawnQuestion(models, problem.behavior.probability, np.stack(rows))
    return question, np.array([different.index(key) for key in keys])


def least_gains_each(questions: Sequence[DrawnQuestion], draws: int, memory: int) -> list[Gains]:
    """Returns the gains of each question, as small as under any of its priors.

    Where there are several, one more is against each policy; see `adverse_questions`.
    """
    every = drawn_gains_each(questions, draws, memory)
    against = [
        (question, under_each, places)
        for asked, under_each in zip(questions, every, strict=True)
        if asked.models.others
        for question, places in adverse_questions(asked)
    ]
    answers = drawn_gains_each([question for question, _, _ in against], draws, memory)
    for (_, under_each, places), (gains,) in zip(against, answers, strict=True):
        lower = under_each[0].lower.copy()
        lower[places] = gains.lower
        under_each.append(Gains(lower, gains.error))
    return [least_of(under_each) for under_each in every]


def least_of(every: Sequence[Gains]) -> Gains:
    """Returns the gains under the first prior, made as small as under any other one.

    That is, each is no more than the gain of the same rank under any other prior.
    """
    lower = every[0].lower
    order = np.argsort(lower, axis=1)
    least = np.min([np.sort(gains.lower, axis=1) for gains in every], axis=0)
    np.put_along_axis(lower, order, least, axis=1)
    return Gains(lower, max(gains.error for gains in every))


def model_draws(problem: Problem, settings: Posterior, priors: Sequence[Prior]) -> ModelDraws:
    """Returns the posterior over models, once problem and settings are known to suit each other."""
    discount = common.usable_discount(problem)
    rewards = reward_draws(problem, settings.rewards, settings.ranges)
    if problem.support is not None:
        place = problem.support.places(problem.counts)
        rewards = rewards.moved(place, problem.support.successor.size)
    return ModelDraws(
        counts=problem.counts,
        rows=priors[0].rows,
        others=tuple(prior.rows for prior in priors[1:]),
        discount=discount,
        value_bounds=problem.value_bounds,
        start_weight=np.zeros(0)
        if settings.starts == "known"
        else problem.counts.starts + priors[0].start_alpha * priors[0].startable,
        rewards=rewards,
        extreme=float(settings.extreme_weight),
        seed=settings.seed,
        horizon=problem.horizon,
        alone=problem.alone,
    )
