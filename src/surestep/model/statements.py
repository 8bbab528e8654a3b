"""Defines the assumptions, notes and refusals of certificates, as codes with values.

Programs tell statements apart by their codes. Files of certificates, the command line and the page
of a result all take the sentences from `SENTENCES`. docs/codes.md explains the codes. Scalars are
simple JSON values: numbers, texts, true, false and null.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from string import Formatter
from types import MappingProxyType
from typing import Any

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidCertificate, SurestepError

WITHIN_SEEN = "rewards-within-seen"  # the ranges of rewards were not declared
OWN_WORDS = "in-own-words"  # a sentence of a user or an extension
Scalar = None | bool | int | float | str


def read_scalars(path: str, value: object) -> Mapping[str, Scalar]:
    """Returns a read-only mapping from names to scalars; numbers must be finite."""
    if not isinstance(value, Mapping):
        raise InvalidCertificate(
            f"{path} is {arrays.shown(value)}, expected names with their values"
        )
    scalars: dict[str, Scalar] = {}
    for name, given in value.items():
        if not (isinstance(name, str) and is_unicode(name)):
            raise InvalidCertificate(f"{path} has the name {arrays.shown(name)}, expected text")
        scalar = given.item() if isinstance(given, np.generic) else given
        plain = scalar is None or isinstance(scalar, bool)
        text = isinstance(scalar, str) and is_unicode(scalar)
        if not (plain or text or (arrays.is_number(scalar) and math.isfinite(scalar))):
            raise InvalidCertificate(
                f"{path}.{name} is {arrays.shown(given)}, expected a finite number, text, true, "
                "false or null"
            )
        scalars[name] = scalar
    return MappingProxyType(scalars)


def is_unicode(text: str) -> bool:
    """Tells whether a text can be written to a file: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def share_in_words(share: float, seed: int | None) -> str:
    """Names the part of a log that is set aside: drawn with a seed, or the first part without."""
    shuffled = f"{share:.10g} of the episodes as shuffled with seed {seed}"
    return f"the first {share:.10g} of the log" if seed is None else shuffled


def rows_of_priors(
    prior: str, states: int | None, alpha: float | None, weight: float | None
) -> str:
    """States the prior of rows of transitions, over given successors or all states."""
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
    """States the belief about the rewards of pairs, or transitions, that were never observed."""
    alike = {
        "transition": "leads to the same state or is of the same pair",
        "pair": "is of the same state or the same action",
    }[per]
    return (
        f"The mean reward of a {per} never observed is like that of one that was, and likely of "
        f"one that {alike} (whichever predicts the observed ones better), so this is no exact "
        "posterior."
    )


def own_words(sentence: str) -> str:
    """Returns the sentence of a user or a plug-in unchanged."""
    if not isinstance(sentence, str) or not sentence:
        raise ValueError("expected a sentence")
    return sentence


# The sentence of each code: a template, or a function of the values if the words depend on them.
SENTENCES: Mapping[str, str | Callable[..., str]] = {
    # the world behind the data
    "markov": "The log is Markov in the given states, and its dynamics never change.",
    "no-hidden-causes": "There are no hidden causes: what came of a step depended on its state "
    "and action alone, not on what else was known to whoever acted.",
    "structure-true": "The structure is true: given all that was known before, and the columns "
    "decided earlier in the step, every column has the law of its node, wherever either policy can "
    "go; columns that share nodes are alike.",
    "structure-learnt": "The learnt structure of {table} is true: its parents and part of the "
    "action were learnt from the part of the log that chose the policy, and nobody confirmed them.",
    "nothing-beyond-given": "There are no states and actions beyond those given.",
    "nothing-beyond-observed": "There are no {what} beyond those observed.",
    "pairs-declared": "No action is possible in a state but those that were declared for it.",
    "states-learnt": "The states were learnt from the part of the log that chose the policy; a "
    "claim that counts that part too takes them as if they had been given before the data.",
    "successors-given": "Each pair leads only to the successors that were given: {successors} in "
    "all, fixed before the data.",
    "ends-as-marked": "Episodes end in the states that the counts mark as terminal, and nowhere "
    "else.",
    # the behavior policy
    "behavior-known": "The behavior policy is known.",
    "behavior-estimated": "The behavior policy is only estimated: the claim is relative to the "
    "estimate.",
    "behavior-estimated-apart": "The behavior policy is only estimated, without the part of the "
    "log that certifies: the claim is relative to the estimate.",
    "behavior-drawn": "The behavior policy is only estimated: what else it may be counts in the "
    "draws, by a Dirichlet distribution for each state and to the first order.",
    "practice-as-recorded": "The claim is relative to what was done in the part of the log that "
    "certifies: to the mean of what its episodes could be expected to return, each given those "
    "before it. Where the new policy does as before, and that is estimated, it acts by the "
    "estimate.",
    "behavior-of-result": "The behavior policy is the one in the result, also for this log, which "
    "the policy was not made from.",
    "propensities-completed": "Where logged probabilities leave something, the actions never "
    "taken share it evenly (states: {states:,}).",
    "propensities-by-columns": "The current policy looks at {columns} alone, as the logged "
    "probabilities do.",
    "acted-on-more": "Whoever acted looked at more than the state: the probabilities that the log "
    "names vary within states, where the current policy is a mean of what was done.",
    "propensities-of-rows": "Every action was taken with the probability that its row of the log "
    "names, given all that whoever acted looked at; the claim is relative to whoever acted, not "
    "to a policy of the states.",
    "rows-supported": "Whoever acted might have taken, in every row, each action that the new "
    "policy takes there.",
    "undecided-states-any-action": "In states that nobody decided in, the behavior policy takes "
    "any action.",
    # how the log came about
    "episodes-independent": "Every episode was made independently of the others.",
    "logger-never-learnt": "Whoever acted did so in all episodes alike, and did not learn from "
    "one for another.",
    "order-of-decisions": "The steps of the log are read in the order of the decisions: where "
    "episodes stand one after the other, none began before the one above it was over, unless "
    "nobody learnt from either.",
    "nothing-left-out": "How much was recorded was fixed beforehand, or by those who did not know "
    "what came of it; no episode or step was left out or cut short for how it went.",
    "stopped-by-clock": "Where a recording stopped before its episode was over, and its last row "
    "does not say where it led, a clock had stopped it: after so many steps, or at a date with "
    "steps of equal length, whatever came next.",
    "stopped-at-random": "Where a recording stopped before its episode was over, and its last row "
    "does not say where it led, chance had stopped it, whatever was done and whatever came next.",
    "stopping-tells-nothing": "Where a recording stopped and nobody says why, that had nothing to "
    "do with what came next: such rows are left out.",
    "file-order-is-decision-order": "Rows of several episodes lie between each other in the log, "
    "which has no column of times: their order is taken for that of the decisions.",
    "recorded-until-over": "Every episode is recorded until it is over.",
    "recorded-for-steps": "Recording stops after {steps} steps at the latest, a number that was "
    "fixed beforehand, and never earlier but where the episode is over.",
    "many-episodes": "The episodes are so many that their mean is normal: nothing is promised for "
    "this log.",
    "visits-fixed": "The numbers of visits count as fixed beforehand, although chance decided "
    "them.",
    # how the policy came about
    "chosen-without-log": "The policy was chosen without this log.",
    "chosen-from-part": lambda share, seed: (
        f"The policy was chosen from the training part only, {share_in_words(share, seed)}; the "
        "rest had no part in it."
    ),
    "part-only-planned": lambda share, seed: (
        f"Of this log, {share_in_words(share, seed)} only planned."
    ),
    "chosen-without-draws": "The policy was not chosen by means of these very draws.",
    "seed-fixed": "The seed was fixed beforehand: no other seed, and no other policy, was tried "
    "on the part that certifies.",
    "log-partly-known": "Some of this log is what the policy was made from.",
    "log-unknown": "No episode of this log is one that the policy was made from: files with the "
    "same bytes are known again, and nothing else is.",
    # starts
    "starts-as-logged": "Episodes start exactly as they did in the log.",
    "starts-where-decided": "Episodes start as often in a state as the log decides there: it "
    "names no starts.",
    "starts-afresh": "Each episode starts afresh, with chances that never change.",
    "starts-unchosen": "Episodes start independently of each other, in states that nobody chose.",
    "starts-weighted": "Episodes start as those of the log did, with weights that were drawn "
    "(Bayesian bootstrap); returns of the log have the same weights.",
    "start-known": "All episodes start in the one state that was given.",
    "starts-prior": "The chances of the starts are a draw from a Dirichlet prior over {states} "
    "states, with weight {weight:.6g} each.",
    # rewards, returns and values
    "rewards-known": "The rewards are known.",
    "rewards-given-known": "The rewards that are given are known.",
    "rewards-bounded": "Every reward lies between {low} and {high}, as given.",
    "rewards-not-given-bounded": "Rewards of transitions that are not given lie between {low} and "
    "{high}.",
    "reward-bounds-weighted": "Rewards lie between {low} and {high}, and these two are as likely "
    "as if one of them had been seen once more.",
    "extremes-weighted": "Under the third prior {weight:.6g} more visit of one pair earned the "
    "worst that it may earn: of that pair whose rewards, if they were never seen, would cost the "
    "most.",
    "rewards-never-vary": "The reward of a {per} is always the same, so what was observed is "
    "exact.",
    "rewards-bootstrapped": "Rewards of a {per} that never varied, where noise as elsewhere would "
    "have shown, are exact; the mean of others is drawn from what was observed of the {per} "
    "(Bayesian bootstrap) and of those like it, as far as these predict it.",
    "rewards-unseen-alike": rewards_never_observed,
    "mean-rewards-exact": "The mean rewards are those observed: their error is not counted.",
    "rewards-as-declared": "As declared, a step after which it goes on earns between "
    "{running_low} and {running_high}, and one that ends its episode between {ending_low} and "
    "{ending_high}.",
    WITHIN_SEEN: "No step ever earns what this log does not show, which nobody declared: between "
    "{running_low} and {running_high} where it goes on, and between {ending_low} and "
    "{ending_high} where it ends.",
    "returns-bounded": "The return of every episode lies between {low} and {high}.",
    "returns-bounded-from-any-step": "Every episode returns between {low} and {high}, and from no "
    "step on more or less than that, or 0, as given.",
    "rest-bounded": "From any step on, whatever comes, the return lies between {low} and {high}.",
    "values-bounded": "Every value lies between {low} and {high}.",
    # priors
    "rows-prior": rows_of_priors,
    "prior-read-off": lambda prior: (
        f"The {'latter ' if prior == 'cautious' else ''}prior was read off the same data, so this "
        "is no exact posterior."
    ),
    "nodes-prior": "The chances of every node are a draw from a Dirichlet prior of weight "
    "{weight:.6g}, independent of all other nodes: the confidence is meant under this prior. It is "
    "shared evenly among the values of a node, or as all actions together showed them, and taken "
    "in full or by half, whichever claims least.",
    "unseen-draws-alike": "Draws that nobody saw were like those that were seen, so this is no "
    "exact posterior.",
    "rollouts-normal": "The mean of the rollouts in a world is normal around the gain there.",
    "prior-against-policy": "Under a third prior, which was read off the data too, a weight of "
    "{weight:.6g} of each row leads to the one state in which the policy gains the least over the "
    "behavior policy in the mean model: the claim is the smallest one of the three.",
    # gaps of published proofs
    "n-wedge-fixed": "N∧ counts as fixed beforehand, although it was read off the data.",
    "rare-pairs-known": "Pairs with at most N∧ visits count as known, as in the published proof.",
    "radius-of-one-split": "The radius is about one split, but counts for the error of a whole "
    "row.",
    "later-splits-unvisited": "Splits after the first of a row are asked for no visits, as in the "
    "published proof.",
    "split-prior-uniform": "The chance of each split has a uniform prior.",
    "interval-centred": "The credible interval counts as centred at the estimate, which it is not.",
    # remarks on a claim: they assume nothing
    "nothing-changed": "No pair is changed: the policy is the behavior policy, and loses nothing.",
    "need-not-be-markov": "The states need not be Markov.",
    "first-steps-only": "The claim is about the first {steps} steps of an episode only, not about "
    "ρ: it must not stand beside claims about ρ.",
    "no-guarantee": lambda asked, refusal: (
        f"Why there is no guarantee: {refusal if asked is None else f'{asked}: {refusal}'}."
    ),
    # any other sentence
    OWN_WORDS: own_words,
    # refusals (they follow the name of a kind, so they begin in lower case): of settings
    "delta-too-small": "delta is {delta}, expected at least {least:.3g} for {what}",
    "discount-0-or-1": "discount is {discount}, but the bounds divide by 1 − γ and are about γ "
    "above 0; expected more than 0 and less than 1",
    "discount-1": "discount is 1; expected less, or another estimator than dr and a claim about a "
    "horizon, or about whole episodes: with an asymptotic interval, or estimator='is' with "
    "return_low and return_high",
    "discount-per-pair": "the problem has a discount for each pair, but the claim has only one γ; "
    "expected one number as discount",
    "value-bounds-unusable": "value_bounds is ({low}, {high}), expected bounds that are not both "
    "0, with a finite difference",
    "no-successor-weights": "prior is 'own', but the problem has no weights of successors; "
    "expected Problem(support=Successors(…, weight=…)), or another prior",
    "no-claim": "a certificate of the kind {kind!r} claims nothing; expected one that does",
    "unknown-kind": "kind is {kind!r}, which cannot be verified here; expected one of {known}",
    "mismatch": "{path} is {claimed} in the certificate, but {computed} when computed from this "
    "problem and this policy; expected the problem and the policy that were certified",
    # … of the amount of data
    "no-log": "the problem has no log, and counts do not tell what followed what; expected whole "
    "episodes, as Problem(log=…)",
    "nothing-held-out": "train_share is {share}, which leaves none of {episodes} episodes to judge "
    "by; expected less",
    "one-episode": "the log is one episode, which shows one start and can only be split in time; "
    "expected more episodes, or logger='adaptive' and, where the counts say how episodes start, "
    "known_start=True",
    "too-few-episodes": "the log has {whole} {what}, {train} to choose and plan and {test} to "
    "judge; expected at least {least} each: take more {what}, or another train_share",
    "truncated-early": "episode {episode} is truncated after {steps} steps, and nobody knows what "
    "would have followed; expected a horizon of at most {most}, fixed without looking at "
    "returns{others}",
    "too-few-visits": "{does} {pair}, which the data visits {visits} times; the bound {bound} "
    "needs {needs}; expected more data, or a policy that keeps to π_b there{others}",
    "too-many-visits": "the counts add up to more than {most:.0e}, beyond which the intervals are "
    "not accurate; expected less data",
    "too-little-memory": "one drawn model takes {takes:.0f} MiB, expected at most {most:.0f}; take "
    "a smaller prior weight, or more memory",
    "never-ends": "in a drawn model an episode never ends, at discount 1; expected less than 1",
    # … of the behavior policy
    "behavior-not-known": "the behavior policy is only estimated, and weights relative to an "
    "estimate prove nothing; expected the policy that made the log, or the probability of each "
    "row's action",
    "behavior-from-judging-part": "the behavior policy is estimated from the {part} that is to "
    "certify; expected an estimate from the training part",
    "policy-beyond-behavior": "the policy takes {pair} with probability {chance:.10g}, but the "
    "behavior policy never does; expected a policy that does only what the behavior policy may "
    "do{others}",
    "policy-beyond-log": "weights do not tell what the policy earns: {reason}",
    # … of rewards and values
    "no-reward-observed": "no reward was ever observed, so none can be drawn; expected some data, "
    "known rewards, or reward_low and reward_high",
    "rewards-not-known": "the rewards are not known, only what was observed of them; expected "
    "reward_low and reward_high, the range of all rewards",
    "rewards-partly-known": "the known rewards of {pair} are given for {known} of {all} states "
    "only, and it may lead to any of them; expected known rewards for all, or reward_low and "
    "reward_high, the range of all rewards{others}",
    "rewards-not-deterministic": "{what} earned {least} and {most} in the log, so its reward is "
    "not deterministic; expected rewards='bounded' with reward_low and reward_high{others}",
    "rewards-beyond-bounds": "{what} is {reward}, expected reward_low = {low} to reward_high = "
    "{high}: wider bounds of rewards{others}",
    "rewards-beyond-ranges": "{where}, expected {running_low:g} to {running_high:g} where it goes "
    "on and {ending_low:g} to {ending_high:g} where it ends: declare wider ranges "
    "({which}){others}",
    "returns-beyond-bounds": "from {row} on, {earned:.10g} is earned, expected {low} to {high}: "
    "wider bounds of returns{others}",
    "rollouts-beyond-returns": "rollouts come to {worst:.10g}, but returns between {low} and "
    "{high} allow {least:.10g} at the least; expected wider bounds of returns",
    "earnings-beyond-values": "{pair} earns {least:.10g} to {most:.10g}, but values between "
    "value_bounds = ({low}, {high}) allow only {allowed_low:.10g} to {allowed_high:.10g}; expected "
    "wider bounds{others}",
    "values-beyond-bounds": "value_bounds is ({low}, {high}), but by the data a value of {state} "
    "is {side} {value:.6g}; expected bounds on the values of all policies in all states{others}",
    # … of the data behind a policy, and of a stress test
    "made-from-some-of-log": "a file of this log is one that the policy was made from, so that "
    "its episodes cannot judge it; expected episodes that had no part in it",
    "made-from-log": "the policy was chosen from this very log, so that its episodes cannot judge "
    "it; expected another log, or a policy made to stand by a certificate of kind {kind!r}, with "
    "the same train_share, logger and seed",
    "fails-stress-test": "in worlds of the kind '{kind}' even the least of {draws} draws exceeds "
    "the truth too often, so that no claim of this certificate survives the stress test; expected "
    "more data, or a prior of more weight",
}


@dataclass(frozen=True, slots=True, eq=False)
class Statement(arrays.ByValue):
    """An assumption of a claim, or a remark on it; `str` makes the sentence.

    Parameters
    ----------
    code : str
        One of the codes of docs/codes.md.
    values : mapping from str to None, bool, int, float or str, optional
        The values that its sentence needs.

    Raises
    ------
    InvalidCertificate
        If the code is unknown, or its sentence needs other values.

    Examples
    --------
    >>> from surestep.model import Statement
    >>> str(Statement("values-bounded", {"low": 0, "high": 1}))
    'Every value lies between 0.0 and 1.0.'
    """

    code: str
    values: Mapping[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.code, str) or self.code not in SENTENCES:
            raise InvalidCertificate(
                f"code is {arrays.shown(self.code)}, which no statement of this version of "
                f"surestep has; expected {OWN_WORDS!r} for a sentence of your own"
            )
        object.__setattr__(self, "values", read_scalars("values", self.values))
        try:
            str(self)
            if more := self.values.keys() - value_names(self.code):
                raise TypeError(f"unexpected value {min(more)!r}")
        except (TypeError, ValueError, KeyError, OverflowError) as problem:
            raise InvalidCertificate(
                f"values is {arrays.shown(dict(self.values))}, of which {self.code} makes no "
                f"sentence: {problem}"
            ) from None

    def __str__(self) -> str:
        """Returns the sentence; the ends of ranges are shown as floats, 0 as 0.0."""
        sentence = SENTENCES[self.code]
        if not isinstance(sentence, str):
            return sentence(**self.values)
        values = {
            name: float(value) if name.endswith(("low", "high")) else value  # type: ignore[arg-type]
            for name, value in self.values.items()
        }
        return sentence.format(**values)

    def __repr__(self) -> str:
        return f"Statement({self.code!r}, {dict(self.values)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles and copies as a plain dict, since a read-only mapping cannot be pickled."""
        return Statement, (self.code, dict(self.values))

    def to_json(self) -> dict[str, Any]:
        """Makes the JSON object of the statement.

        Returns
        -------
        dict
            Code and values for programs, the sentence for people.
        """
        return {"code": self.code, "values": dict(self.values), "sentence": str(self)}


def value_names(code: str) -> list[str]:
    """Returns the names of the values that the sentence of a code needs."""
    sentence = SENTENCES[code]
    if isinstance(sentence, str):
        return [*dict.fromkeys(name for _, name, _, _ in Formatter().parse(sentence) if name)]
    return [*signature(sentence).parameters]


# Claims from counts leave out such rows, which may have been the worst: they prove nothing.
STOPPING = Statement("stopping-tells-nothing")


def read_statements(name: str, given: object, error: type[SurestepError]) -> tuple[Statement, ...]:
    """Returns a list as statements; texts in it become sentences in the user's own words."""
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
