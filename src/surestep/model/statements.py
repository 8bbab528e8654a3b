"""Statements: what a certificate assumes and notes, each a code with the values it is about.

Programs tell statements apart by their codes. Words are made of them here and nowhere else:
certificates in files, the command line and the page of a result all have the sentences of
`SENTENCES`. docs/codes.md explains the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import surestep._arrays as arrays
from surestep.errors import InvalidCertificate, SurestepError
from surestep.model.scalars import Scalar, read_scalars

WITHIN_SEEN = "rewards-within-seen"  # nobody declared what steps may earn
OWN_WORDS = "in-own-words"  # of users and extensions, who may state what nobody here foresaw


def interval(low: float, high: float) -> str:
    """Returns 'between 0.0 and 1.0', also where other programs wrote the numbers as 0 and 1."""
    return f"between {float(low)!r} and {float(high)!r}"


def steps_earn(
    running_low: float, running_high: float, ending_low: float, ending_high: float
) -> str:
    """Returns what somebody declared of rewards, on the way and at ends."""
    return (
        f"As declared, a step after which it goes on earns {interval(running_low, running_high)}, "
        f"and one that ends its episode {interval(ending_low, ending_high)}."
    )


def steps_earned(
    running_low: float, running_high: float, ending_low: float, ending_high: float
) -> str:
    """Returns what was seen of rewards, where nobody declared anything."""
    return (
        "No step ever earns what this log does not show, which nobody declared: "
        f"{interval(running_low, running_high)} where it goes on, and "
        f"{interval(ending_low, ending_high)} where it ends."
    )


def part(share: float, seed: int | None) -> str:
    """Returns which part of a log is set aside: drawn with a seed, or without one the first."""
    if seed is None:
        return f"the first {share:.10g} of the log"
    return f"{share:.10g} of the episodes as shuffled with seed {seed}"


def rows_of_priors(
    prior: str, states: int | None, alpha: float | None, weight: float | None
) -> str:
    """Returns what is thought of rows before the data, over given successors or all states."""
    over = "the successors that were given" if states is None else f"all {states} states"
    pooled = (
        f"a weight of {weight:.6g} that lies where steps of its state lead, whatever the action "
        "(and with as many more steps, where all steps do)"
        if prior in ("pooled", "cautious")
        else ""
    )
    if alpha is not None:
        even = f"weight {alpha:.6g} each"
    elif weight is not None:
        even = f"a weight of {weight:.6g} shared evenly among those of the row"
    else:
        even = "the weights that were given"
    kinds = {"pooled": [pooled], "cautious": [even, pooled]}.get(prior, [even])
    weights = ", or ".join(f"with {words}" for words in kinds)
    meant = "this prior" if len(kinds) == 1 else "either prior, and the claim is the smaller one"
    return (
        f"The chances of each row of transitions are a draw from a Dirichlet prior over {over}, "
        f"{weights}, independent of all other rows: the confidence is meant under {meant}."
    )


def rewards_never_observed(per: str) -> str:
    """Returns what is thought of the reward of a pair, or a transition, that nobody saw."""
    alike = {
        "transition": "leads to the same state or is of the same pair",
        "pair": "is of the same state or the same action",
    }[per]
    return (
        f"The mean reward of a {per} never observed is like that of one that was, and likely of "
        f"one that {alike} (whichever predicts the observed ones better), so this is no exact "
        "posterior."
    )


def no_guarantee(asked: str | None, refusal: str) -> str:
    """Returns why there is no claim of the kind that was asked for, where that is known."""
    said = refusal if asked is None else f"{asked}: {refusal}"
    return f"Why there is no guarantee: {said}."


def own_words(sentence: str) -> str:
    """Returns what somebody states who is not of this package."""
    if not isinstance(sentence, str) or not sentence:
        raise ValueError("expected a sentence")
    return sentence


# By code, the sentence; its parameters are the names of the values.
SENTENCES: Mapping[str, Callable[..., str]] = {
    # the world, and what the data can show of it
    "markov": lambda: "The log is Markov in the given states, and its dynamics never change.",
    "no-hidden-causes": lambda: (
        "There are no hidden causes: what came of a step depended on its state and action alone, "
        "not on what else was known to whoever acted."
    ),
    "nothing-beyond-given": lambda: "There are no states and actions beyond those given.",
    "nothing-beyond-observed": lambda what: f"There are no {what} beyond those observed.",
    "pairs-declared": lambda: (
        "No action is possible in a state but those that were declared for it."
    ),
    "states-learnt": lambda: (
        "The states were learnt from the part of the log that chose the policy; a claim that "
        "counts that part too takes them as if they had been given before the data."
    ),
    "successors-given": lambda successors: (
        f"Each pair leads only to the successors that were given: {successors} in all, fixed "
        "before the data."
    ),
    "ends-as-marked": lambda: (
        "Episodes end in the states that the counts mark as terminal, and nowhere else."
    ),
    # the behavior policy
    "behavior-known": lambda: "The behavior policy is known.",
    "behavior-estimated": lambda: (
        "The behavior policy is only estimated: the claim is relative to the estimate."
    ),
    "behavior-estimated-apart": lambda: (
        "The behavior policy is only estimated, without the part of the log that certifies: the "
        "claim is relative to the estimate."
    ),
    "behavior-of-result": lambda: (
        "The behavior policy is the one in the result, also for this log, which the policy was not "
        "made from."
    ),
    "propensities-completed": lambda states: (
        "Where logged probabilities leave something, the actions never taken share it evenly "
        f"(states: {states:,})."
    ),
    "acted-on-more": lambda: (
        "Whoever acted looked at more than the state: the probabilities that the log names vary "
        "within states, where the current policy is a mean of what was done."
    ),
    "propensities-of-rows": lambda: (
        "Every action was taken with the probability that its row of the log names, given all that "
        "whoever acted looked at; the claim is relative to whoever acted, not to a policy of the "
        "states."
    ),
    "rows-supported": lambda: (
        "Whoever acted might have taken, in every row, each action that the new policy takes there."
    ),
    "undecided-states-any-action": lambda: (
        "In states that nobody decided in, the behavior policy takes any action."
    ),
    # how the log came about
    "episodes-independent": lambda: "Every episode was made independently of the others.",
    "logger-never-learnt": lambda: (
        "Whoever acted did so in all episodes alike, and did not learn from one for another."
    ),
    "order-of-decisions": lambda: (
        "The steps of the log are read in the order of the decisions: where episodes stand one "
        "after the other, none began before the one above it was over, unless nobody learnt from "
        "either."
    ),
    "nothing-left-out": lambda: (
        "How much was recorded was fixed beforehand, or by those who did not know what came of it; "
        "no episode or step was left out or cut short for how it went."
    ),
    "stopped-by-clock": lambda: (
        "Where a recording stopped before its episode was over, and its last row does not say "
        "where it led, a clock had stopped it: after so many steps, or at a date with steps of "
        "equal length, whatever came next."
    ),
    "stopping-tells-nothing": lambda: (
        "Where a recording stopped and nobody says why, that had nothing to do with what came "
        "next: such rows are left out."
    ),
    "file-order-is-decision-order": lambda: (
        "Rows of several episodes lie between each other in the log, which has no column of times: "
        "their order is taken for that of the decisions."
    ),
    "recorded-until-over": lambda: "Every episode is recorded until it is over.",
    "recorded-for-steps": lambda steps: (
        f"Recording stops after {steps} steps at the latest, a number that was fixed beforehand, "
        "and never earlier but where the episode is over."
    ),
    "many-episodes": lambda: (
        "The episodes are so many that their mean is normal: nothing is promised for this log."
    ),
    "visits-fixed": lambda: (
        "The numbers of visits count as fixed beforehand, although chance decided them."
    ),
    # how the policy came about
    "chosen-without-log": lambda: "The policy was chosen without this log.",
    "chosen-from-part": lambda share, seed: (
        f"The policy was chosen from the training part only, {part(share, seed)}; the rest had no "
        "part in it."
    ),
    "part-only-planned": lambda share, seed: f"Of this log, {part(share, seed)} only planned.",
    "chosen-without-draws": lambda: "The policy was not chosen by means of these very draws.",
    "seed-fixed": lambda: (
        "The seed was fixed beforehand: no other seed, and no other policy, was tried on the part "
        "that certifies."
    ),
    "log-partly-known": lambda: "Some of this log is what the policy was made from.",
    "log-unknown": lambda: (
        "No episode of this log is one that the policy was made from: files with the same bytes "
        "are known again, and nothing else is."
    ),
    # starts
    "starts-as-logged": lambda: "Episodes start exactly as they did in the log.",
    "starts-where-decided": lambda: (
        "Episodes start as often in a state as the log decides there: it names no starts."
    ),
    "starts-afresh": lambda: "Each episode starts afresh, with chances that never change.",
    "starts-unchosen": lambda: (
        "Episodes start independently of each other, in states that nobody chose."
    ),
    "starts-prior": lambda states, weight: (
        f"The chances of the starts are a draw from a Dirichlet prior over {states} states, with "
        f"weight {weight:.6g} each."
    ),
    # rewards, returns and values
    "rewards-known": lambda: "The rewards are known.",
    "rewards-given-known": lambda: "The rewards that are given are known.",
    "rewards-bounded": lambda low, high: f"Every reward lies {interval(low, high)}, as given.",
    "rewards-not-given-bounded": lambda low, high: (
        f"Rewards of transitions that are not given lie {interval(low, high)}."
    ),
    "reward-bounds-weighted": lambda low, high: (
        f"Rewards lie {interval(low, high)}, and these two are as likely as if one of them had "
        "been seen once more."
    ),
    "extremes-weighted": lambda weight: (
        f"Under the third prior {weight:.6g} more visit of one pair earned the worst that it may "
        "earn: of that pair whose rewards, if they were never seen, would cost the most."
    ),
    "rewards-never-vary": lambda per: (
        f"The reward of a {per} is always the same, so what was observed is exact."
    ),
    "rewards-bootstrapped": lambda per: (
        f"Rewards of a {per} that never varied, where noise as elsewhere would have shown, are "
        f"exact; the mean of others is drawn from what was observed of the {per} (Bayesian "
        "bootstrap) and of those like it, as far as these predict it."
    ),
    "rewards-unseen-alike": rewards_never_observed,
    "mean-rewards-exact": lambda: (
        "The mean rewards are those observed: their error is not counted."
    ),
    "rewards-as-declared": steps_earn,
    WITHIN_SEEN: steps_earned,
    "returns-bounded": lambda low, high: f"The return of every episode lies {interval(low, high)}.",
    "returns-bounded-from-any-step": lambda low, high: (
        f"Every episode returns {interval(low, high)}, and from no step on more or less than that, "
        "or 0, as given."
    ),
    "values-bounded": lambda low, high: f"Every value lies {interval(low, high)}.",
    # priors
    "rows-prior": rows_of_priors,
    "prior-read-off": lambda prior: (
        f"The {'latter ' if prior == 'cautious' else ''}prior was read off the same data, so this "
        "is no exact posterior."
    ),
    "prior-against-policy": lambda weight: (
        f"Under a third prior, which was read off the data too, a weight of {weight:.6g} of each "
        "row leads to the one state in which the policy gains the least over the behavior policy "
        "in the mean model: the claim is the smallest one of the three."
    ),
    # what published proofs leave open
    "n-wedge-fixed": lambda: "N∧ counts as fixed beforehand, although it was read off the data.",
    "rare-pairs-known": lambda: (
        "Pairs with at most N∧ visits count as known, as in the published proof."
    ),
    "radius-of-one-split": lambda: (
        "The radius is about one split, but counts for the error of a whole row."
    ),
    "later-splits-unvisited": lambda: (
        "Splits after the first of a row are asked for no visits, as in the published proof."
    ),
    "split-prior-uniform": lambda: "The chance of each split has a uniform prior.",
    "interval-centred": lambda: (
        "The credible interval counts as centred at the estimate, which it is not."
    ),
    # remarks on a claim, which assume nothing
    "nothing-changed": lambda: (
        "No pair is changed: the policy is the behavior policy, and loses nothing."
    ),
    "need-not-be-markov": lambda: "The states need not be Markov.",
    "first-steps-only": lambda steps: (
        f"The claim is about the first {steps} steps of an episode only, not about ρ: it must not "
        "stand beside claims about ρ."
    ),
    "no-guarantee": no_guarantee,
    # whatever else somebody states
    OWN_WORDS: own_words,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """An assumption of a claim, or a remark on it; `str` makes the sentence."""

    code: str  # one of SENTENCES
    values: Mapping[str, Scalar] = field(default_factory=dict)  # what its sentence needs

    def __post_init__(self) -> None:
        """Checks that there is a sentence of this code and these values."""
        if not isinstance(self.code, str) or self.code not in SENTENCES:
            raise InvalidCertificate(
                f"code is {arrays.shown(self.code)}, which no statement of this version of "
                f"surestep has; expected {OWN_WORDS!r} for a sentence of your own"
            )
        object.__setattr__(self, "values", read_scalars("values", self.values))
        try:
            str(self)
        except (TypeError, ValueError, KeyError, OverflowError) as problem:
            raise InvalidCertificate(
                f"values is {arrays.shown(dict(self.values))}, of which {self.code} makes no "
                f"sentence: {problem}"
            ) from None

    def __str__(self) -> str:
        """Returns the sentence."""
        return SENTENCES[self.code](**self.values)

    def __repr__(self) -> str:
        """Returns code and values, in the order in which they are given."""
        return f"Statement({self.code!r}, {dict(self.values)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies a plain dict: a read-only mapping has no pickle of its own."""
        return Statement, (self.code, dict(self.values))

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> dict[str, Any]:
        """Returns what files hold: code and values for programs, the sentence for people."""
        return {"code": self.code, "values": dict(self.values), "sentence": str(self)}


# Of claims by counts, which leave out what may have been the worst: they prove nothing.
STOPPING = Statement("stopping-tells-nothing")


def statement_from_json(path: str, content: object) -> Statement:
    """Returns the statement that `to_json` wrote; refused where its sentence says another thing."""
    if not isinstance(content, dict) or set(content) != {"code", "values", "sentence"}:
        raise InvalidCertificate(
            f"{path} is {arrays.shown(content)}, expected code, values and sentence"
        )
    try:
        statement = Statement(content["code"], content["values"])
    except InvalidCertificate as problem:
        raise InvalidCertificate(f"{path}: {problem}") from None
    if content["sentence"] != str(statement):
        raise InvalidCertificate(
            f"{path}: sentence is {arrays.shown(content['sentence'])}, expected "
            f"{str(statement)!r}, as code and values say"
        )
    return statement


def read_statements(name: str, given: object, error: type[SurestepError]) -> tuple[Statement, ...]:
    """Returns several statements; texts among them are sentences in somebody's own words."""
    if not isinstance(given, list | tuple):
        raise error(f"{name} is {arrays.shown(given)}, expected a list of statements or sentences")
    statements = []
    for place, said in enumerate(given):
        if not isinstance(said, str | Statement) or said == "":
            raise error(
                f"{name}[{place}] is {arrays.shown(said)}, expected a Statement, or a sentence of "
                "your own"
            )
        statements.append(
            said if isinstance(said, Statement) else Statement(OWN_WORDS, {"sentence": said})
        )
    return tuple(statements)
