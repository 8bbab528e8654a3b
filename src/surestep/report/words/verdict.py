"""The word of certificates on a policy, in plain words: loudly so where they say nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from surestep._words import about, counted, number, percent
from surestep.certificates.standing import BY_EXTENSION, standing_name, standing_of
from surestep.checks import Check
from surestep.checks.words import doubts
from surestep.model import Certificate
from surestep.model.certificate import Rung
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rehearsal
from surestep.report.words.rehearsal import belief_words
from surestep.results.findings import ZetaCurve
from surestep.results.ladder import belief_in, rung_of, undone
from surestep.results.record import Record
from surestep.results.table import PolicyTable

Mood = Literal["good", "plain", "caution", "bad"]

STANDINGS = {
    "proved": "it holds for every size of the log, if the assumptions hold",
    "asymptotic": "it holds as the log grows without end; no promise for a log of this size",
    "posterior": "a degree of belief, which rests on what was thought likely before (a prior)",
    "as-published": "taken over from the papers, with known gaps",
    BY_EXTENSION: "its kind is not built in, so that nothing is known here of how it was proved",
    "none": "nothing is claimed",
}


UNKNOWN_ENDS = (
    "A gain is claimed without the rows of which nobody knows where they led, and these may be the "
    "worst. So it is neither proved nor believed, until somebody says how their episodes ended."
)


class Verdict(NamedTuple):
    """The answer that a reader should take away from a result."""

    rung: Rung  # of the ladder of words
    mood: Mood
    short: str  # a few words
    headline: str
    sentences: tuple[str, ...]


def verdict(
    certificates: Sequence[Certificate],
    *,
    changed: bool,
    rehearsal: Rehearsal | None = None,
    awaited: bool = False,
    fresh: bool = False,
    named: bool = True,
    checks: Sequence[Check] = (),
) -> Verdict:
    """Returns what certificates say of a policy, in words; the first is the one to stand by.

    `changed` says whether the policy is another one than π_b, `awaited` that a stress test is still
    to come, `fresh` that the policy was made without the data of the certificates, and `named` that
    the first kind was named before the data: only then it may prove. A proof is nothing to rely on
    where failed checks speak against what it assumes.
    """
    rung = rung_of(
        certificates,
        changed=changed,
        rehearsal=rehearsal,
        awaited=awaited,
        fresh=fresh,
        checks=checks,
    )
    first, proved = certificates[0], rung.startswith("proved")
    if proved and not named:
        return Verdict(
            "not shown to be better",
            "caution",
            "Not shown to be better",
            "Claimed, but not named before the data",
            (
                claim_sentence(first),
                "Who makes several claims and keeps the best has proved nothing: only the one that "
                "was settled on before the data can.",
            ),
        )
    if rung == "nothing changed":
        return Verdict(
            rung,
            "plain",
            "Nothing changed",
            "The new policy is the old one",
            (
                "Nothing is gained and nothing lost. Either nothing better was found, or what "
                "looks better was seen too seldom to be trusted.",
            ),
        )
    if proved:
        words = proved_words(first) if rung == "proved better" else within_seen_words(first)
        against = doubts(checks, first)
        return doubted_words(words, against) if against else words
    belief = belief_in(certificates, fresh=fresh)
    if rung == "believed better" and belief is not None:
        return believed_words(first, belief, rehearsal, fresh=fresh)
    words = not_shown_words(first)
    if belief is None:
        gains = [claim for claim in certificates if (claim.lower or 0.0) > 0]
        left_out = any(claim.assumes(STOPPING.code) for claim in gains)
        return words._replace(sentences=(*words.sentences, UNKNOWN_ENDS)) if left_out else words
    more = undone_words(belief, rehearsal)
    if awaited and (belief.lower or 0.0) > 0:
        more = (
            f"{claimant(belief)} claims a gain of at least {number(belief.lower or 0.0)}, but the "
            "stress test that may undo that is still to come."
        )
    return words if more is None else words._replace(sentences=(*words.sentences, more))


def proved_words(certificate: Certificate) -> Verdict:
    """Returns the words for a gain that is proved."""
    sure, gain = percent(1 - certificate.delta), number(certificate.lower or 0.0)
    return Verdict(
        "proved better",
        "good",
        "Proved better",
        f"Proved better, with confidence {sure}, if its assumptions hold",
        (
            f"The new policy gains at least {gain} an episode over the current one. A proof of "
            f"this kind is wrong for at most {percent(certificate.delta)} of all logs, also where "
            "there is nothing to gain.",
        ),
    )


def within_seen_words(certificate: Certificate) -> Verdict:
    """Returns the words for a gain that is proved if rewards stay within those of the log."""
    proved = proved_words(certificate)
    return proved._replace(
        rung="proved within the rewards seen",
        mood="caution",
        short="Proved within the rewards seen",
        headline="Proved better, if no step ever earns what this log does not show",
        sentences=(*proved.sentences, open_question(certificate)),
    )


def open_question(certificate: Certificate) -> str:
    """Returns the one question whose answer would make it a proof."""
    seen = next(said.values for said in certificate.assumptions if said.code == WITHIN_SEEN)
    a, b, c, d = (
        number(seen[name])  # type: ignore[arg-type]
        for name in ("running_low", "running_high", "ending_low", "ending_high")
    )
    return (
        f"One question would settle it: can a step earn less than {a} or more than {b}, or an end "
        f"less than {c} or more than {d}? If not, declare these ranges, as running and as ending."
    )


def doubted_words(words: Verdict, against: int) -> Verdict:
    """Returns the words for a gain that is proved on grounds which the log itself puts in doubt."""
    failed = (
        "one of them failed its test" if against == 1 else f"{against} of them failed their tests"
    )
    return words._replace(
        mood="caution",
        short="Proved, on doubtful grounds",
        headline=f"Proved better only if its assumptions hold, and {failed}",
    )


def believed_words(
    first: Certificate, belief: Certificate, rehearsal: Rehearsal | None, *, fresh: bool
) -> Verdict:
    """Returns the words for a gain that is only believed, and how often such beliefs are wrong."""
    grounds = "It rests on a prior, and is no proof."
    if standing_of(belief) == BY_EXTENSION:
        grounds = f"Here that is no proof: {STANDINGS[BY_EXTENSION]}."
    sentences = [
        f"With belief {percent(1 - belief.delta)}, the new policy gains at least "
        f"{number(belief.lower or 0.0)} an episode: so says {claimant(belief, 'a')} of that part "
        f"of the data that did not choose the policy. {grounds}",
    ]
    if first is not belief:
        sentences.append(claim_sentence(first))
    measured = None if rehearsal is None else belief_words(rehearsal)
    unknown = ": the stress test held none"
    if rehearsal is None:
        unknown = " for this log" if fresh else ": there was no stress test of such a belief"
    sentences.append(
        measured
        or f"How often such beliefs are wrong where actions do little was not measured{unknown}."
    )
    return Verdict(
        "believed better",
        "caution",
        "Believed better",
        "Believed better, not proved",
        tuple(sentences),
    )


def not_shown_words(certificate: Certificate) -> Verdict:
    """Returns the words for a policy that nothing shows to be better."""
    rung: Rung = "not shown to be better"
    if certificate.lower is None:
        return Verdict(
            rung,
            "bad",
            "No guarantee",
            "Not shown to be better. No guarantee covers this policy",
            (
                *map(str, certificate.notes),
                "The estimated gain is no guarantee.",
            ),
        )
    loss = number(0.0 - certificate.lower)
    if certificate.says_nothing:
        return Verdict(
            rung,
            "bad",
            "Says nothing",
            "Not shown to be better. This guarantee says nothing",
            (
                f"It allows a loss of up to ζ = {loss}, while no two policies can differ by more "
                f"than {number(certificate.span)} here. Every policy keeps such a promise, good or "
                "bad.",
            ),
        )
    sure = percent(1 - certificate.delta)
    if certificate.lower > 0:
        return Verdict(
            rung,
            "caution",
            "Not shown to be better",
            "Not shown to be better: what is claimed is not proved",
            (claim_sentence(certificate),),
        )
    return Verdict(
        rung,
        "caution",
        "Not shown to be better",
        f"Not shown to be better: with confidence {sure}, it loses at most {loss}",
        (
            f"The guarantee limits the loss to ζ = {loss} an episode, if its assumptions "
            f"hold. No two policies can differ by more than {number(certificate.span)}. That the "
            "new policy is better at all is an estimate.",
        ),
    )


def claim_sentence(certificate: Certificate) -> str:
    """Returns what a certificate that proves no gain says all the same."""
    if certificate.lower is None:
        return "Nothing is proved: " + " ".join(map(str, certificate.notes))
    claim = (
        f"gains at least {number(certificate.lower)}"
        if certificate.lower > 0
        else f"loses at most {number(0.0 - certificate.lower)}"
    )
    return (
        f"By the guarantee that the result stands by, it {claim} an episode; its standing is "
        f"{claim_standing(certificate)}."
    )


def undone_words(belief: Certificate, rehearsal: Rehearsal | None) -> str | None:
    """Returns why a gain that a posterior claims is not even believed; None where it is none."""
    gain = belief.lower or 0.0
    if gain <= 0 or rehearsal is None or not undone(belief, rehearsal):
        return None
    luck = rehearsal.luck_bound_of_beliefs(belief.delta)
    if luck is not None and gain <= luck:
        many = int((rehearsal.lucky_belief >= gain).sum())
        return (
            f"{claimant(belief)} claims a gain of at least {number(gain)}, but luck alone "
            "would claim as much: in worlds made from this log in which all actions are alike, so "
            f"that nothing can be gained, it did in {many:,} of {rehearsal.lucky_belief.size:,}."
        )
    calibration = rehearsal.calibration
    strictest = "" if calibration is None else f" of the kind “{calibration.strictest}”"
    return (
        f"The stress test leaves nothing of the gain that {claimant(belief, 'a')} claims: in "
        f"worlds{strictest} such claims are wrong too often, however careful they are."
    )


def claimant(belief: Certificate, article: Literal["A", "a"] = "A") -> str:
    """Returns what a belief is a claim of."""
    if standing_of(belief) == BY_EXTENSION:
        return f"{article} certificate of the kind “{belief.kind}”, {standing_name(belief)},"
    return f"{article} posterior"


def claim_standing(certificate: Certificate) -> str:
    """Returns the standing of a claim and what it means."""
    return f"{standing_name(certificate)}, that is, {STANDINGS[standing_of(certificate)]}"


def standing_words(standing: str) -> str:
    """Returns a standing and what it means."""
    return f"{standing}, that is, {STANDINGS[standing]}"


def remedy(curves: Sequence[ZetaCurve], span: float) -> str | None:
    """Returns what it would take for the first of the published bounds to say something."""
    if not curves:
        return None
    first = [
        (visits, curve.bound)
        for curve in curves
        if (visits := curve.first_visits(span)) is not None
    ]
    if not first:
        return (
            f"None of the published bounds would say anything with {curves[0].visits[-1]:,} visits "
            "of each changed pair of situation and action."
        )
    visits, bound = min(first)
    return (
        f"What it would take: the first of the published bounds to say anything is {bound}, at "
        f"{about(visits)} visits of each changed pair of situation and action."
    )


def proof_words(record: Record, certificate: Certificate) -> str | None:
    """Returns what would make a result that is not proved a proof; None where nobody can say.

    Ranges of single rewards can be no narrower than those seen, but returns may vary by less.
    """
    lost = record.estimates.get("held_out_gain", 1.0) <= 0
    if "episodes_for_proof" not in record.estimates or lost or certificate.lower is None:
        return None
    wanted, there = record.estimates["episodes_for_proof"], record.data["episodes"]
    undeclared = certificate.assumes(WITHIN_SEEN)
    whole = "ranges of what whole episodes return, and their rest from any step on (returns)"
    if wanted is None:
        ranges = f" Declare {whole}: that may." if undeclared else ""
        return f"More episodes like these alone would not make it a proof.{ranges}"
    ranges = f" Declared {whole} may do with fewer." if undeclared else ""
    if wanted <= there:
        return f"A proof was within reach: another log of this size may give one.{ranges}"
    return (
        f"{about(wanted).capitalize()} episodes like these should make it a proof; the log has "
        f"{there:,}.{ranges}"
    )


# ---- limits that were set to the recommendations, in plain words --------------------------------


def limits_words(table: PolicyTable, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns which pairs may be recommended, a sentence a limit; none where all may."""
    said, coverage, possible = list[str](), table.coverage, parameters.get("possible")
    if table.allowed is not None:
        allowed = int(table.allowed.sum())
        said.append(
            f"Limits were set: {allowed:,} of {counted(coverage.pairs, 'pair')} of a situation and "
            "an action may be recommended, and no other is taken more often than before."
        )
    if possible == "seen":
        said.append(
            "No action is recommended where the log does not show it: "
            f"{coverage.never:,} of {counted(coverage.pairs, 'pair')} of a situation and an action "
            "were never tried."
        )
    if possible == "listed":
        said.append(
            f"What is possible was declared: {counted(coverage.pairs, 'pair')} of a situation and "
            "an action."
        )
    return tuple(said)
