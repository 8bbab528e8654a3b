"""Writes the rules of a policy: a section of the first screen, and a card for staff."""

from surestep._words import counted, listed, percent, signed
from surestep.checks import failed
from surestep.io.labels.vocabulary import called
from surestep.report.changes import SIGNS
from surestep.report.groups import harm_words
from surestep.report.page import asset, environment
from surestep.report.signals import DIGITS
from surestep.results.findings import Findings
from surestep.results.rules import Rule, Rules
from surestep.sections import Item, Section

MOST_ON_CARD = 24  # situations: more do not fit on a printed page
NOT_SEEN = "There is no rule for situations that the log does not show, nor any test of one."
WARNINGS = {"proved better": "", "believed better": "Only for a pilot: believed, not proved."}


def guideline_parts(findings: Findings) -> list[Section]:
    """Returns what a guideline is worth, or none where none is given."""
    estimates = findings.record.estimates
    if "guideline" not in estimates or "over_guideline" not in estimates:
        return []
    gain, low, high = (signed(value, DIGITS) for value in estimates["guideline"])
    over, least, most = (signed(value, DIGITS) for value in estimates["over_guideline"])
    return [
        Section(
            "guideline",
            "The guideline",
            [
                f"The guideline gains {gain} {findings.record.unit} over what is done now, "
                f"probably {low} to {high}.",
                f"The new policy gains {over} over the guideline, probably {least} to {most}.",
                "These are estimates, no guarantees.",
            ],
        )
    ]


def rules_parts(findings: Findings) -> list[Section]:
    """Returns the sections of the rules and the guideline, where there are any."""
    rules = findings.rules
    if rules is None:
        return guideline_parts(findings)
    situations = counted(findings.table.num_deciding, "situation")
    return [
        Section(
            "rules",
            "The rules",
            [
                f"{counted(len(rules.rules), 'rule')} for all {situations}; card.html is for "
                "staff.",
                *notes(rules),
            ],
            items=[rule_item(findings, rule) for rule in rules.rules],
        ),
        *guideline_parts(findings),
    ]


def rule_item(findings: Findings, rule: Rule) -> Item:
    """Returns a rule with today's share of its action, its gain and its evidence."""
    share = "" if rule.today is None else f"today {percent(rule.today)} of "
    aside = [f"{share}{rule.decisions:,} decisions"]
    if rule.gain and findings.chosen_gain > 0:
        part = percent(abs(rule.gain) / findings.chosen_gain)
        aside.append(f"{'costs' if rule.gain < 0 else 'brings'} {part} of the estimated gain")
    if rule.evidence:
        counts = listed([f"{many:,} {word}" for word, many in rule.evidence.items()])
        aside.append(f"held-out data: {counts}")
    judged = (word for word in ("contradicted", "confirmed") if word in rule.evidence)
    return Item(
        rule.text.removesuffix("."),
        rule.why,
        f"{'; '.join(aside).capitalize()}.",
        *SIGNS[next(judged, None)],
    )


def notes(rules: Rules) -> list[str]:
    """Says that today's policy is estimated, where rules go on with it."""
    goes_on = any(rule.action is None or rule.exceptions for rule in rules.rules)
    return (
        ["“As before” is estimated: it is what the log shows was done."]
        if goes_on and rules.behavior_is_estimated
        else []
    )


def card_page(findings: Findings) -> str:
    """Returns the rules on one page for staff, as HTML; empty where there are none.

    Where the result is not proved, or a check failed, the card says that it is not for use.
    """
    rules = findings.rules
    if rules is None:
        return ""
    table = findings.table
    words = table.vocabulary
    often = sorted(range(table.num_deciding), key=lambda s: -findings.behavior_occupancy[s])
    rows = []
    for s in sorted(often[:MOST_ON_CARD]):
        run = slice(*table.pairs.offsets[s : s + 2])
        mostly = table.pairs.action[run][table.behavior[run] > max(table.behavior[run]) - 1e-9]
        today = words.actions[mostly[0]] if mostly.size == 1 else ()
        asked = [findings.guideline.get(words.states[s])] if findings.guideline else []
        shown = (today, *asked, rules.action(words.states[s]))
        done = [x and ", ".join(called(x, words.action_columns, words.names)) for x in shown]
        rows.append(
            [
                *words.state_name(s),
                done[0] or "no one action",
                *(text or "as before" for text in done[1:]),
            ]
        )
    reason = "a check failed" if failed(findings.record.checks) else findings.verdict
    harm = harm_words(findings.record)
    about = findings.record.about
    return (
        environment()
        .get_template("templates/card.html")
        .render(
            title=about.get("title", "What to do"),
            date=about.get("date"),
            warning=WARNINGS.get(reason, f"Draft, not for use: {reason}."),
            rules=[rule.text for rule in rules.rules],
            notes=[*[harm] * bool(harm), *notes(rules), NOT_SEEN],
            headings=[
                *words.state_columns,
                "Today, mostly",
                *["Guideline"] * bool(findings.guideline),
                "New",
            ],
            rows=rows,
            left=table.num_deciding - len(rows),
            style=asset("assets/card.css"),
        )
    )
