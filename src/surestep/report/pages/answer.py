"""The answer: what changes, what it is expected to gain, and how sure that is."""

from __future__ import annotations

from surestep._words import counted, listed, percent, signed
from surestep.certificates.registry import find_kind
from surestep.certificates.standing import BY_EXTENSION, standing_of
from surestep.checks import failed, says
from surestep.report.html import Element, element
from surestep.report.page_tables import key, more, small
from surestep.report.pages.shared_parts import none_made
from surestep.report.words.estimates import (
    baseline_words,
    estimate_words,
    evidence_words,
)
from surestep.report.words.rehearsal import harm_words, left_out_words, luck_words, more_data_words
from surestep.report.words.verdict import (
    STANDINGS,
    Verdict,
    claim_standing,
    proof_words,
    remedy,
    verdict,
)
from surestep.results.findings import Findings
from surestep.results.ladder import belief_in


def answer_section(findings: Findings) -> Element:
    """Returns the whole result for those who read no further."""
    judged = verdict(
        (findings.certificate, *findings.others),
        changed=bool(findings.changes),
        rehearsal=findings.rehearsal,
        awaited=findings.awaits_stress_test,
        checks=findings.record.checks,
    )
    return element(
        "section",
        element("h2", "The answer"),
        element("p", headline(findings), class_="lead"),
        key_figures(findings, judged),
        alarm_box(findings),
        verdict_box(findings, judged),
        stress_test_line(findings),
        caveat_box(findings),
        id="answer",
        class_="answer",
    )


def headline(findings: Findings) -> str:
    """Returns how much changes, in one sentence or two."""
    changed, all_states = len(findings.changes), findings.table.num_deciding
    if not changed:
        return f"The new policy does the same as the current one in all {all_states:,} situations."
    share = percent(findings.changed_share)
    alone = " In each of them it takes one action." if findings.table.one_action else ""
    return (
        f"In {changed:,} of {counted(all_states, 'situation')} the new policy does something else. "
        f"{'That is' if changed == 1 else 'Those are'} where {share} of the decisions of the "
        f"current policy are made.{alone} {evidence_words(findings.changes)}"
    )


def key_figures(findings: Findings, judged: Verdict) -> Element:
    """Returns the three numbers to remember."""
    gain = (
        f"Per episode, counted from its start. {estimate_words(findings.record)} "
        f"{baseline_words(findings.record)}"
    )
    return element(
        "div",
        key(
            "Situations that change",
            [f"{len(findings.changes):,} ", small(f"of {findings.table.num_deciding:,}")],
            "In all others the new policy does what the current one does.",
        ),
        key(
            "Estimated gain",
            [signed(findings.gain)],
            gain,
        ),
        key("How sure", judged.short, how_sure(findings, judged), mood=judged.mood, words=True),
        class_="keys",
    )


def alarm_box(findings: Findings) -> Element | None:
    """Returns what does not fit together, or rests on little, before anything else."""
    wrong = failed(findings.record.checks)
    if not wrong:
        return None
    return element(
        "div",
        element("p", counted(len(wrong), "failed check"), class_="loud"),
        element(
            "ul", [element("li", element("bdi", says(check))) for check in wrong], class_="plain"
        ),
        class_="box bad",
        id="alarms",
    )


def how_sure(findings: Findings, judged: Verdict) -> str:
    """Returns the sense in which the certificate is meant, for the smallest print there is."""
    if judged.rung == "believed better":
        belief = belief_in((findings.certificate, *findings.others))
        if belief is not None and standing_of(belief) == BY_EXTENSION:
            return f"The claim is {claim_standing(belief)}; nothing is proved."
        return f"This is {STANDINGS['posterior']}; nothing is proved."
    if findings.certificate.lower is None:
        return "The reason is given below."
    return f"The claim is {claim_standing(findings.certificate)}."


def verdict_box(findings: Findings, judged: Verdict) -> Element:
    """Returns how sure the result is, with the standing and the assumptions right there."""
    certificate = findings.certificate
    covered, proof = certificate.lower is not None, proof_words(findings.record, certificate)
    assumptions = [element("li", str(statement)) for statement in certificate.assumptions]
    return element(
        "div",
        element("p", judged.headline, class_="loud"),
        [element("p", sentence) for sentence in judged.sentences],
        None if proof is None else element("p", proof),
        element("p", remedy(findings.zeta_curves, certificate.span))
        if covered and certificate.says_nothing
        else None,
        element(
            "p",
            element("strong", "Standing: "),
            f"{claim_standing(certificate)}. ",
            element("a", "The certificate", href="#certificate"),
        )
        if covered and judged.rung != "believed better"  # whose words have said that already
        else None,
        more(
            f"{'The guarantee' if judged.rung == 'believed better' else 'It'} assumes "
            f"{counted(len(assumptions), 'thing')}",
            element("ol", assumptions, class_="plain"),
        )
        if covered
        else None,
        class_=f"box {judged.mood} verdict",
    )


def stress_test_line(findings: Findings) -> Element:
    """Returns how often the policy did harm in the stress test, and what more data would do."""
    rehearsal = findings.rehearsal
    if rehearsal is None:
        return none_made(findings, element("a", "The rehearsal", href="#rehearsal"))
    if rehearsal.worlds == 0:
        return element(
            "div",
            element(
                "p",
                element("strong", luck_words(rehearsal)),
                f" {left_out_words(findings.no_rehearsal.seconds)} ",
                element("a", "The rehearsal", href="#rehearsal"),
            ),
            class_="box plain",
        )
    said = more_data_words(rehearsal, findings.verdict)
    return element(
        "div",
        element(
            "p",
            element("strong", harm_words(rehearsal)),
            f" {said} " if said else " ",
            element("a", "The rehearsal", href="#rehearsal"),
        ),
        class_="box plain",
    )


def caveat_box(findings: Findings) -> Element | None:
    """Returns what was chosen or guessed rather than derived or known; None without any."""
    caveats = (n_wedge_caveat(findings), boldness_caveat(findings), behavior_caveat(findings))
    said = [sentence for sentence in caveats if sentence is not None]
    if not said:
        return None
    return element(
        "div",
        element("p", "Before you rely on it", class_="loud"),
        element("ul", [element("li", sentence) for sentence in said], class_="plain"),
        class_="box caution",
    )


def n_wedge_caveat(findings: Findings) -> str | None:
    """Returns where N∧ comes from; None where it was derived from a ζ, or there is none."""
    parameters = findings.record.parameters
    chooser, rounds = (
        parameters.get("n_wedge_chosen_by"),
        parameters.get("algorithm", {}).get("rounds"),
    )
    if chooser is not None and rounds is not None:
        return (
            f"The policy was chosen from the data, by {how_chosen(chooser)}: the best one whose "
            f"course as many data again could follow {rounds:g} times."
        )
    if findings.n_wedge is None or parameters.get("zeta") is not None:
        return None
    if chooser is None:
        origin = f"N∧ = {findings.n_wedge:,} is a hyper-parameter without a guarantee."
    elif not findings.changes:
        return (
            f"All stays as it was: of all N∧, one at which nothing changes ({findings.n_wedge:,}) "
            f"was chosen from the data, by {how_chosen(chooser)}."
        )
    else:
        origin = f"N∧ = {findings.n_wedge:,} was chosen from the data, by {how_chosen(chooser)}."
    return (
        f"{origin} An action seen more often than that counts as known well enough to be changed."
    )


def how_chosen(kind: str) -> str:
    """Returns by what a certificate of some kind chose, in words."""
    return getattr(find_kind(kind), "chooses_by", f"the lower bound of the {kind} guarantee")


def boldness_caveat(findings: Findings) -> str | None:
    """Returns that a prior protects little where the policy is bold on scarce data, or None."""
    if findings.n_wedge is not None or findings.certificate.standing != "posterior":
        return None
    return (
        "This algorithm may change what was seen but a few times. There a belief that rests on a "
        "prior can be far too sure: where the truth is known, such claims were wrong more often "
        "than δ."
    )


def behavior_caveat(findings: Findings) -> str | None:
    """Returns that π_b was estimated, or None where it was given."""
    if not findings.behavior_is_estimated:
        return None
    parts = ["what changes", "the gain"]
    if not findings.certificate.assumes("propensities-of-rows"):
        parts.append("the guarantee")
    return (
        "The current policy is not known: it was estimated from the log. So "
        f"{listed(parts)} are relative to that estimate."
    )
