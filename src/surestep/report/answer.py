"""Writes the first section of a report: the advice, the numbers behind it, and the doubts."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, get_args

from surestep._words import about, counted, floored, listed, number, percent, signed
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.registry import BY_EXTENSION, standing_name, standing_of
from surestep.checks import Check, failed, says, title
from surestep.checks.check import WHY
from surestep.checks.words import asked, speaking_against, summary
from surestep.io.logs.loading import UNFINISHED
from surestep.model.certificate import Certificate, Rung
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rehearsal
from surestep.report.changes import MOST_MATTER, changed_items
from surestep.report.checks import condition, hidden_words
from surestep.report.groups import STOCK, groups_section, harm_words, margin_words, perhaps_worse
from surestep.report.rules import rules_parts
from surestep.report.signals import (
    DIGITS,
    amount,
    at_most,
    broken_words,
    joint_sentence,
    signals_section,
    worst_words,
)
from surestep.report.totals import discount_words, discounted_unit, total_key
from surestep.results.findings import (
    Confirmation,
    Findings,
    belief_in,
    exceeding,
    is_proved,
    proves,
    rung_of,
    undone,
)
from surestep.results.record import Record
from surestep.sections import Caption, Flag, Item, Key, Mood, Section, Strip, Strips

STANDINGS = {
    "proved": "holds for every size of the log, if its assumptions hold",
    "asymptotic": "holds as the log grows without end, with no promise for this size",
    "posterior": "a degree of belief that rests on a prior",
    "believed": "holds if what was learnt from the log is true, which nobody confirmed",
    "as-published": "taken from the papers, with known gaps",
    BY_EXTENSION: "from a plug-in: nothing is known here of its proof",
    "none": "nothing is claimed",
}
PER_EPISODE = "per episode"
KEEP = "Keep what you do"
EXPLAIN = "First find out why a check failed"
CAUTIONS = (STOCK, "tied-times")  # checks that are told beside failed ones
AT_MOST_TIMES = 3  # the estimated episodes, which are few for the policy that looked best
ANY_LOSS = "This log cannot rule out a large loss."
NO_USE = f"No useful guarantee: {ANY_LOSS[0].lower()}{ANY_LOSS[1:]}"


class Verdict(NamedTuple):
    """The verdict on a result, with the line to act on and the reason."""

    rung: Rung
    mood: Mood
    action: str
    why: str


def answer_section(findings: Findings, most: int = MOST_MATTER) -> Section:
    """Returns the first section of a result; it shows at most `most` changes."""
    claims = findings.certificates
    record = findings.record
    judged = verdict(
        claims,
        changed=bool(findings.changes),
        rehearsal=findings.rehearsal,
        awaited=findings.awaits_stress_test,
        record=record,
    )
    doubted = bool(speaking_against(record.checks, claims[0]))
    least = counted_on(claims, judged, record)
    if judged.action == EXPLAIN:
        least = least._replace(name="At least, if the failed check does no harm", mood="bad")
    items = [*opposed(findings)]
    said = ["" if items else nothing_found(record.checks), hidden_words(record.checks)]
    against = Section(
        "against",
        "What speaks against it",
        [*filter(None, said)],
        items=items,
        mood="bad" if doubted else "plain",
    )
    parts = [against] if doubted else []  # doubts come first
    shown = spoken_of(claims, judged)
    if shown.signals:
        parts.append(
            signals_section(
                shown,
                () if findings.table.kept_by is None else findings.table.kept_by,
                record.description.get("unsafe", {}).get("within"),
                discount_words(record),
                # Totals that people count stand above; beside them, discounted ones would be read
                # as such.
                values=not record.totals,
            )
        )
    advice = [*rules_parts(findings), *groups_section(record)]
    if findings.changes and findings.rules is None:
        changed = [*islice(changed_items(findings), most)]
        heading = "The change that matters" if len(changed) == 1 else "The changes that matter most"
        advice.append(Section("top", heading, [how_many(findings)], items=changed))
    # Nobody is to act on what a failed check may undo.
    parts += [part._replace(folded=judged.action == EXPLAIN) for part in advice]
    if not doubted and (findings.changes or failed(record.checks)):
        last = -1 if parts and parts[-1].name == "top" else len(parts)
        parts.insert(last, against)
    split = record.parameters.train_share is not None  # so rows were given, or their first entries
    enough = "reward" in record.parameters.columns or split or judged.rung.startswith("proved")
    left_out = record.parameters.left_out
    further = [
        ""
        if enough
        else "Counts alone cannot show it; give rows of some episodes, which may prove a gain.",
        worst_words(claims[0], record.unit),
        ""
        if left_out is None
        else f"The new policy does not look at “{left_out}”: with it, situations are seen too "
        "rarely to learn from. The claim still tells them apart.",
    ]
    keys = [least]
    if findings.changes:
        keys.append(estimate_key(record, findings.estimated_gain))
        keys += [total_key(total, record) for total in record.totals]
    return Section(
        "answer",
        judged.action,
        [judged.why, *filter(None, further)],
        keys=keys,
        pictures=gain_picture(findings, shown, doubted=doubted),
        parts=parts,
        mood=judged.mood,
    )


# ---- the line to act on -------------------------------------------------------------------------


def verdict(
    certificates: Sequence[Certificate],
    *,
    changed: bool,
    rehearsal: Rehearsal | None = None,
    awaited: bool = False,
    fresh: bool = False,
    named: bool = True,
    record: Record | None = None,
    checks: Sequence[Check] = (),
    unit: str = PER_EPISODE,
) -> Verdict:
    """Returns the line to act on, and the reason for it.

    `changed`: the policy differs from π_b. `awaited`: a stress test is still to come. `fresh`: the
    policy was made without the data of the certificates. `named`: the first kind of certificate was
    named before the data, without which it proves nothing. A failed check of an assumption of the
    claim comes before everything that the claim says.
    """
    checks = checks if record is None else record.checks
    first = certificates[0]
    unit = unit if record is None else record.unit
    rung_with = partial(
        rung_of,
        certificates,
        changed=changed,
        rehearsal=rehearsal,
        awaited=awaited,
        fresh=fresh,
        groups=() if record is None else record.groups,
    )
    rung = rung_with(checks=checks)
    claimed = claim_sentence(first, unit)
    if rung == "nothing changed":
        why = "The log shows nothing better: there is nothing, or it is too short to tell."
        return Verdict(rung, "plain", KEEP, why)
    if question := asked(checks):
        return Verdict(rung, "bad", "Answer one question first", question)
    if rung.startswith("proved") and not named:
        why = "it was not settled on before: who keeps the best of several has proved nothing."
        return Verdict("not shown to be better", "caution", KEEP, f"{claimed} But {why}")
    belief = belief_in(certificates, fresh=fresh)
    # A group may make a proof of all a belief; what is not confirmed is no belief by a model.
    own = proves(first, checks) or (belief is first and first.standing == "believed")
    believed = belief if rung == "believed better" and not own else None
    doubts = doubt_words(checks, first if is_proved(first) else belief or first)
    if doubts and believed is None and rung != rung_with(checks=()):
        return Verdict(rung, "bad", EXPLAIN, f"{doubts} Until it is explained, keep what you do.")
    margin = "" if record is None else margin_words(record)
    if record is not None and any(group.spared is False for group in record.groups):
        return Verdict(rung, "caution", KEEP, f"{doubts} {claimed}{margin}".strip())
    harm = harm_words(record)
    whom = ", but not for everyone" if harm else ""
    if rung == "proved better":
        joint = f" {joint_sentence(first)}" if first.signals else ""
        why = f"{harm}{condition(checks)}{claimed}{joint}{margin}"
        return Verdict(rung, "caution" if harm else "good", f"Adopt it{whom}", why)
    if rung == "proved within the rewards seen":
        return Verdict(rung, "caution", "Answer one question first", open_question(first, unit))
    settling = "" if record is None else proof_words(record, certificates)
    if rung == "believed better":
        why = f"{harm}Try it on some cases, go on as before with others, and compare. " + (
            f"{claimed}{margin}"
            if believed is None
            else f"{belief_words(believed, rehearsal, unit)} {settling}"
        )
        return Verdict(rung, "caution", f"Pilot it{whom}", why.strip())
    said = not_shown(certificates, belief, record, unit, rehearsal=rehearsal, awaited=awaited)
    return Verdict(
        rung,
        "bad" if is_useless(first, record) else "caution",
        KEEP,
        " ".join(filter(None, (doubts, said, settling))),
    )


def doubt_words(checks: Sequence[Check], claim: Certificate) -> str:
    """Returns which assumptions of a claim failed their test; empty where none did."""
    doubts = [f"“{title(check)}”" for check in speaking_against(checks, claim)]
    many = "One check" if len(doubts) == 1 else f"{len(doubts)} checks"
    return f"{many} failed: {', '.join(doubts)}." if doubts else ""


def is_useless(claim: Certificate, record: Record | None) -> bool:
    """Tells whether a claim excludes no loss: it allows even the least possible value."""
    least = claim.figures.get("value_low")
    if record is None or claim.lower is None or not isinstance(least, float):
        return claim.says_nothing
    return claim.says_nothing or claim.lower <= least - record.estimates["behavior"]


def within_seen(claim: Certificate) -> str:
    """Returns ' within the rewards seen' for a claim that assumes it; else an empty text."""
    return " within the rewards seen" if claim.assumes(WITHIN_SEEN) else ""


def claim_sentence(claim: Certificate, unit: str) -> str:
    """Puts the lower bound of a certificate into a sentence."""
    if claim.lower is None:
        return f"There is no guarantee: {' '.join(map(str, claim.notes))}"
    sure = percent(1 - claim.delta)
    kind = standing_of(claim)
    said = {"proved": f"With {sure} confidence", "posterior": f"With {sure} belief"}
    start = said.get(kind, f"By a claim that {STANDINGS[kind]}")
    if claim.lower > 0:
        return (
            f"{start} the new policy gains at least {amount(claim.lower)} {unit}"
            f"{than_estimated(claim)}, if the assumptions of its certificate hold."
        )
    if claim.says_nothing:
        return NO_USE
    return (
        f"{start} the new policy loses at most {at_most(claim.lower)} {unit}{within_seen(claim)}."
    )


def than_estimated(claim: Certificate) -> str:
    """Says that a gain is over an estimate of the current policy; else returns an empty text."""
    return (
        " more than an estimate of what is done now"
        if claim.assumes("behavior-estimated-apart", "behavior-estimated")
        else ""
    )


def open_question(claim: Certificate, unit: str) -> str:
    """Asks the question whose answer would make the claim a proof, and explains both answers."""
    seen = next(said.values for said in claim.assumptions if said.code == WITHIN_SEEN)
    ends = {name: number(value) for name, value in seen.items() if isinstance(value, int | float)}
    return (
        f"Can one step ever earn less than {ends['running_low']} or more than "
        f"{ends['running_high']}, or the last step of an episode less than {ends['ending_low']} or "
        f"more than {ends['ending_high']}? It never happened in the log. If it cannot happen: "
        f"declare these ranges (`running` and `ending`); then a gain of at least "
        f"{amount(claim.lower or 0.0)} {unit}{than_estimated(claim)} is proved, with "
        f"{percent(1 - claim.delta)} confidence. If it can: declare wider ones, and repeat the "
        "analysis."
    )


def belief_words(belief: Certificate, rehearsal: Rehearsal | None, unit: str) -> str:
    """Puts a belief into words, and how often such beliefs were wrong without any gain."""
    wrong = None if rehearsal is None else rehearsal.wrong_beliefs
    measured = "How often such beliefs are wrong was not measured."
    if wrong is not None:
        worlds = counted(wrong.total, "simulated world")
        measured = f"In {wrong.happened:,} of {worlds} with nothing to gain it wrongly saw a gain."
    elif rehearsal is not None and belief.kind == NodePosterior.name:
        wrong = exceeding(rehearsal)
        worlds = counted(wrong.total, "simulated world")
        measured = f"In {wrong.happened:,} of {worlds} it believed in more than was true."
    kind = "" if standing_of(belief) == "posterior" else f" ({standing_name(belief)})"
    if belief.assumes(STOPPING.code):
        measured = f"It takes the lost cases for like the others in the same situation. {measured}"
    return (
        f"Believed{kind}, not proved: a model puts the chance of gaining at least "
        f"{amount(belief.lower or 0.0)} {unit}{than_estimated(belief)} at "
        f"{percent(1 - belief.delta)}. {measured}"
    )


def not_shown(
    claims: Sequence[Certificate],
    belief: Certificate | None,
    record: Record | None,
    unit: str,
    *,
    rehearsal: Rehearsal | None,
    awaited: bool,
) -> str:
    """Returns why a policy is not shown to be better; `belief` is a claim to believe in."""
    first = claims[0]
    if first.lower is None:
        return claim_sentence(first, unit)
    words = "The data do not show that the new policy is better."
    if first.lower > 0 and not first.none_worse:
        words = f"{claim_sentence(first, unit)} {broken_words(first)}"
    if is_useless(first, record):
        words = NO_USE
    elif first.lower <= 0:
        loss = f"Proved{within_seen(first)}: at worst it loses {at_most(first.lower)} {unit}."
        proved = standing_of(first) == "proved" and not first.assumes(STOPPING.code)
        words = f"Not shown to be better. {loss if proved else claim_sentence(first, unit)}"
    if belief is None and any(c.assumes(STOPPING.code) for c in claims if (c.lower or 0.0) > 0):
        return (
            f"{words} The claim leaves out cases that stopped for unknown reasons, and these may "
            "be the worst: find out why they stopped."
        )
    if belief is None or (belief.lower or 0.0) <= 0 or not (awaited or undone(belief, rehearsal)):
        return words
    undoes = (
        "that may undo it is still to come" if awaited else "undoes it: luck alone claims as much"
    )
    return (
        f"{words} A gain of at least {amount(belief.lower or 0.0)} is believed, but the stress "
        f"test {undoes}."
    )


def proof_words(record: Record, claims: Sequence[Certificate]) -> str:
    """Says how many episodes would prove a gain; empty if unknown, for example with lost cases."""
    claim = claims[0]
    estimates = record.estimates
    stops = any(
        one.assumes(STOPPING.code, "stopped-by-clock", "stopped-at-random") for one in claims
    )
    lost = estimates.get("held_out_gain", 1.0) <= 0 or claim.signals or stops
    if "episodes_for_proof" not in estimates or lost or claim.lower is None:
        return ""
    wanted = estimates["episodes_for_proof"]
    there = record.data["episodes"]
    ranges = " Declared `returns` may do with less." if claim.assumes(WITHIN_SEEN) else ""
    if wanted is None:
        return f"More episodes like these alone would not settle it.{ranges}"
    size = f"{about(wanted)} to {about(AT_MOST_TIMES * wanted).removeprefix('about ')} in all"
    said = (
        f"A proof was within reach: a log of this size to {AT_MOST_TIMES} times that"
        if wanted <= there
        else f"The log has {there:,} episodes; {size}"
    )
    return (
        f"{said} may settle it.{ranges} Fix now when to look again: looking until it turns green "
        "proves nothing."
    )


# ---- the numbers --------------------------------------------------------------------------------


def spoken_of(claims: Sequence[Certificate], judged: Verdict) -> Certificate:
    """Returns the belief if it is the verdict, or would be but for a check; else the first."""
    if judged.rung == "believed better" or (judged.action == EXPLAIN and not is_proved(claims[0])):
        return belief_in(claims) or claims[0]
    return claims[0]


def counted_on(
    claims: Sequence[Certificate],
    judged: Verdict,
    record: Record | None = None,
    unit: str = PER_EPISODE,
) -> Key:
    """Returns the lower bound that readers may count on, with its confidence."""
    rung = judged.rung
    unit = unit if record is None else discounted_unit(record)
    claim = spoken_of(claims, judged)
    if rung == "nothing changed":
        return Key("You may count on", "no change", "Nothing is gained and nothing lost.")
    if claim.lower is None or is_useless(claim, record):
        return Key(
            "You may count on",
            "nothing",
            "No guarantee covers this policy." if claim.lower is None else ANY_LOSS,
            "bad",
        )
    sure = percent(1 - claim.delta)
    if claim is belief_in(claims) and claim.lower > 0:
        return Key(
            "Believed, at least",
            signed(floored(claim.lower, DIGITS), DIGITS),
            f"{unit}{than_estimated(claim)}, {sure} by a model; no proof"
            if claim.standing != "believed"
            else f"{unit}{than_estimated(claim)}, with {sure} confidence; no proof",
        )
    sort = "belief" if standing_of(claim) == "posterior" else "confidence"
    standing = "" if standing_of(claim) == "proved" else f" ({standing_name(claim)})"
    meaning = f"{unit}{than_estimated(claim)}, with {sure} {sort}{standing}"
    name = "Claimed, but not proved" if rung.startswith("not") else "You may count on"
    if rung == "proved within the rewards seen":
        name = "If the answer is no, you may count on"
    if claim.lower <= 0:
        name = "At worst"
        meaning += within_seen(claim)
    return Key(
        name,
        signed(floored(claim.lower, DIGITS), DIGITS),
        meaning,
        "good" if judged.mood == "good" else "caution",
    )


def estimate_key(record: Record, gain: float) -> Key:
    """Returns the estimated gain with its interval, and the data it comes from."""
    estimates = record.estimates
    meaning = f"{discounted_unit(record)}; too high, as the rows that chose the policy flatter it"
    if "held_out_gain" in estimates:
        low, high = (signed(estimates[end], DIGITS) for end in ("held_out_low", "held_out_high"))
        meaning = f"probably {low} to {high}, by rows set aside for checking; do not promise it"
    return Key("Best guess", signed(gain, DIGITS), meaning)


def gain_picture(findings: Findings, claim: Certificate, *, doubted: bool = False) -> list[Strips]:
    """Draws the best guess, its interval and the lower bound on one bar with 0 on it.

    The bar is grey where a failed check leaves it in doubt.
    """
    record = findings.record
    estimates = record.estimates
    known = findings.changes and "held_out_gain" in estimates
    if not known or claim.lower is None or is_useless(claim, record):
        return []
    lower = floored(claim.lower, DIGITS)
    least = f"{'at least' if lower > 0 else 'at worst'} {signed(lower, DIGITS)}"
    guess = f"best guess {signed(findings.estimated_gain, DIGITS)}"
    bar = Strip(
        "",
        min(lower, estimates["held_out_low"]),
        estimates["held_out_high"],
        inner=(estimates["held_out_low"], estimates["held_out_high"]),
        point=findings.estimated_gain,
        tone="grey" if doubted else "green" if lower > 0 else "orange",
        words=guess,
    )
    return [
        Strips(
            Caption("gain", "What is gained", f"{least.capitalize()}, {guess}, and 0 is as today."),
            record.unit,
            [bar],
            sorted([Flag(0.0, "as today"), Flag(lower, least)]),
        )
    ]


# ---- against it ---------------------------------------------------------------------------------


def nothing_found(checks: Sequence[Check]) -> str:
    """Says how many assumptions were tested without a finding, and which could not be tested."""
    untested = [f"“{title(x)}”" for x in checks if WHY.get(x.why or "", "").startswith("Not")]
    return summary(checks) + (f" Not tested: {listed(untested)}." if untested else "")


def opposed(findings: Findings) -> Iterator[Item]:
    """Lists the reasons against the new policy: failed checks, contradicted changes, lost cases."""
    yield from (
        Item(title(check), says(check), sign="✗", mood="bad")
        for check in failed(findings.record.checks)
    )
    yield from (
        item._replace(title=f"Contradicted change: {item.title}")
        for item in changed_items(findings, contradicted=True)
    )
    yield from (
        Item(f"Worse for “{group.name}”", "So say rows set aside for checking.", "", "✗", "bad")
        for group in findings.record.groups
        if group.harmed
    )
    if named := perhaps_worse(findings.record):
        yield Item(
            f"Perhaps worse for {listed(named)}",
            "The best guess is a loss.",
            sign="!",
            mood="caution",
        )
    yield from (
        Item(title(check), says(check), sign="!", mood="caution")
        for check in findings.record.checks
        if check.code in CAUTIONS
    )
    if lost := findings.record.data["dropped"].get(UNFINISHED):
        yield lost_item(lost, findings)
    if findings.record.behavior_is_estimated:
        text = (
            "The guarantee compares with what episodes returned, all else with an estimate."
            if findings.certificates[0].assumes("practice-as-recorded")
            else "Gains compare with what the log shows was done, an estimate of it."
        )
        yield Item("The current policy was estimated", text, sign="!", mood="caution")


def lost_item(lost: int, findings: Findings) -> Item:
    """Counts the cases that stopped for unknown reasons, and says how they may change the gain."""
    estimates = findings.record.estimates
    many = findings.record.data["episodes"]
    cases = f"{lost:,} cases" if many is None else f"{lost:,} of {many:,} cases"
    what_if = "What they may change cannot be told without their rows."
    if "lost_worst" in estimates:
        worst, opposed = (
            signed(estimates[name], DIGITS) for name in ("lost_worst", "lost_opposed")
        )
        what_if = (
            f"If all of them went as badly as can be, the best guess is {worst}; if only those of "
            f"the new policy did, and those of today's policy went as well as can be, {opposed}."
        )
    return Item(
        "Lost cases",
        f"{cases} stopped for unknown reasons. {what_if}",
        "Find out why they stopped.",
        "!",
        "bad" if estimates.get("lost_worst", 0.0) <= 0 else "caution",
    )


def how_many(findings: Findings) -> str:
    """Says how many situations change, and how many of these changes the rows set aside confirm."""
    many = counted(findings.table.num_deciding, "situation")
    evidence = [change.evidence for change in findings.changes]
    judged = ", ".join(f"{evidence.count(word):,} {word}" for word in get_args(Confirmation))
    rest = f" By rows set aside for checking: {judged}." if any(evidence) else ""
    return (
        f"The new policy decides otherwise in {len(findings.changes):,} of {many}, and changes "
        f"{percent(findings.changed_share)} of today's decisions.{rest}"
    )
