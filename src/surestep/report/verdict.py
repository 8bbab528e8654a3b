"""What a certificate says, in plain words: loudly so where it says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from surestep.model import Certificate
from surestep.rehearsal import Rehearsal
from surestep.report.numbers import about, number, percent
from surestep.results.findings import ZetaCurve

Mood = Literal["good", "plain", "caution", "bad"]

STANDINGS = {
    "proved": "it holds for every size of the log, if the assumptions hold",
    "asymptotic": "it holds as the log grows without end; no promise for a log of this size",
    "posterior": "a degree of belief, which rests on what was thought likely before (a prior)",
    "as-published": "taken over from the papers, with known gaps",
    "none": "nothing is claimed",
}


class Verdict(NamedTuple):
    """What a reader should take away from a certificate."""

    mood: Mood
    short: str  # a few words
    headline: str
    sentences: tuple[str, ...]


def verdict(
    certificate: Certificate,
    *,
    changed: bool,
    rehearsal: Rehearsal | None = None,
    to_come: bool = False,
) -> Verdict:
    """The certificate in words, and what a stress test leaves of it.

    `changed` says whether the policy is another one than π_b, `to_come` that the stress test is not
    finished.
    """
    judged = verdict_alone(certificate, changed=changed)
    if to_come and judged.mood == "good":
        sure = percent(1 - certificate.delta)
        headline = f"Claimed with confidence {sure}, but not yet stress tested"
        return Verdict("caution", "Not yet stress tested", headline, judged.sentences)
    doubt = None if rehearsal is None or judged.mood != "good" else doubts(certificate, rehearsal)
    if doubt is None:
        return judged
    sure = percent(1 - certificate.delta)
    headline = f"Claimed with confidence {sure}, but {doubt[0]}"
    return Verdict("caution", "Doubtful", headline, (*judged.sentences, doubt[1]))


def doubts(certificate: Certificate, rehearsal: Rehearsal) -> tuple[str, str] | None:
    """Why a claimed gain should not be relied on, in short and at length; None: no reason found."""
    luck = rehearsal.luck_bound
    lower = certificate.lower
    if luck is not None and lower is not None and lower <= luck:
        many = int((rehearsal.luck >= lower).sum())
        return (
            "luck alone would claim as much",
            "In worlds made from this log in which all actions are alike, so that nothing can be "
            f"gained, as much was claimed in {many:,} of {rehearsal.luck.size:,}: the best of many "
            "actions looks good by chance.",
        )
    if rehearsal.calibration is not None and rehearsal.calibration.rank == 0:
        return (
            "the stress test leaves nothing of it",
            f"In worlds of the kind “{rehearsal.calibration.strictest}”, made from this log, such "
            "claims are wrong too often, however careful they are. Of "
            f"{rehearsal.member.size // len(rehearsal.family):,} worlds of a kind, one that goes "
            "wrong may be enough: more of them say more.",
        )
    return None


def verdict_alone(certificate: Certificate, *, changed: bool) -> Verdict:
    """The certificate in words; `changed` says whether the policy is another one than π_b."""
    if certificate.lower is None:
        return Verdict(
            "bad",
            "No guarantee",
            "No guarantee covers this policy",
            (*certificate.notes, "The expected gain is an estimate from the log, and no more."),
        )
    sure, loss = percent(1 - certificate.delta), number(0.0 - certificate.lower)
    if certificate.says_nothing:
        return Verdict(
            "bad",
            "Says nothing",
            "This guarantee says nothing",
            (
                f"It allows a loss of up to ζ = {loss}, while no two policies can differ by more "
                f"than {number(certificate.span)} here. Every policy keeps such a promise, good or "
                "bad.",
            ),
        )
    if not changed:
        return Verdict(
            "plain",
            "Nothing is lost",
            "The new policy is the old one",
            (
                "Nothing is gained and nothing lost. Either nothing better was found, or what "
                "looks better was seen too seldom to be trusted.",
            ),
        )
    if certificate.lower > 0:
        return Verdict(
            "good",
            f"Better, with confidence {sure}",
            f"Better with confidence {sure}, if its assumptions hold",
            (
                f"The new policy gains at least {number(certificate.lower)} an episode over the "
                f"current one, says the guarantee. It may be wrong with probability "
                f"{percent(certificate.delta)}.",
            ),
        )
    return Verdict(
        "caution",
        f"Loses at most {loss}",
        f"Not shown to be better: with confidence {sure}, it loses at most {loss}",
        (
            f"The guarantee limits the loss to ζ = {loss} an episode, if its assumptions "
            f"hold. No two policies can differ by more than {number(certificate.span)}. That the "
            "new policy is better at all is an estimate.",
        ),
    )


def standing_words(standing: str) -> str:
    """A standing and what it means."""
    return f"{standing}, that is, {STANDINGS[standing]}"


def first_visits(curve: ZetaCurve, below: float) -> int | None:
    """The first number of visits on the curve whose ζ is below a value."""
    return next((n for n, loss in zip(curve.visits, curve.zeta, strict=True) if loss < below), None)


def remedy(curves: Sequence[ZetaCurve], span: float) -> str | None:
    """What it would take for the first of the published bounds to say something."""
    found = [
        (visits, curve.bound)
        for curve in curves
        if (visits := first_visits(curve, span)) is not None
    ]
    if not curves:
        return None
    if not found:
        return (
            f"None of the published bounds would say anything with {curves[0].visits[-1]:,} visits "
            "of each changed pair of situation and action."
        )
    visits, bound = min(found)
    return (
        f"What it would take: the first of the published bounds to say anything is {bound}, at "
        f"{about(visits)} visits of each changed pair of situation and action."
    )
