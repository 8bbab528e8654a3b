"""Writes the rules of a policy: a section of the first screen, and a card for staff."""

from surestep._words import counted, harmless, listed, percent, signed
from surestep.checks import failed
from surestep.io.labels.vocabulary import called
from surestep.report.groups import harm_words
from surestep.report.page import asset, environment
from surestep.report.signals import DIGITS
from surestep.results.findings import Findings
from surestep.results.rules import Rule, Rules
from surestep.sections import Item, Mood, Section

MOST_ON_CARD = 24  # situations: more do not fit on a printed page
SHOWN_EXCEPTIONS = 3
ESTIMATED = "“As before” is estimated: it is what the log shows was done."
SIGNS: dict[str, tuple[str, Mood]] = {"contradicted": ("✗", "bad"), "confirmed": ("✓", "good")}
WARNINGS = {"proved better": "", "believed better": "Only for a pilot: believed, not proved."}


def guideline_parts(findings: Findings) -> list[Section]:
    """Returns what a guideline is worth, or none where none is given."""
    estimates = findings.record.estimates
    if "guideline" not in estimates or "over_guideline" not in estimates:
        return []
    both = (*estimates["guideline"], *estimates["over_guideline"])
    over = [signed(value, DIGITS) for value in both]
    unit = findings.record.unit
    said = [
        f"The guideline gains {over[0]} {unit} over what is done now, probably {over[1]} to "
        f"{over[2]}.",
        f"The new policy gains {over[3]} over the guideline, probably {over[4]} to {over[5]}.",
        "These are estimates, no guarantees.",
    ]
    return [Section("guideline", "The guideline", said)]


def rules_parts(findings: Findings) -> list[Section]:
    """Returns the sections of the rules and the guideline, where there are any."""
    rules = findings.rules
    if rules is None:
        return guideline_parts(findings)
    situations = counted(findings.table.num_deciding, "situation")
    said = f"{counted(len(rules.rules), 'rule')} for all {situations}; card.html is for staff."
    items = [rule_item(findings, rule) for rule in rules.rules]
    told = Section("rules", "The rules", [said, *notes(rules)], items=items)
    return [told, *guideline_parts(findings)]


def rule_item(findings: Findings, rule: Rule) -> Item:
    """Returns a rule with today's share of its action, its gain and its evidence."""
    aside = [f"{rule.decisions:,} decisions"]
    if rule.today is not None:
        aside = [f"today {percent(rule.today)} of {rule.decisions:,} decisions"]
    if rule.gain and findings.chosen_gain > 0:
        part = percent(abs(rule.gain) / findings.chosen_gain)
        aside.append(f"{'costs' if rule.gain < 0 else 'brings'} {part} of the estimated gain")
    if rule.evidence:
        judged = listed([f"{many:,} {word}" for word, many in rule.evidence.items()])
        aside.append(f"situations by rows set aside: {judged}")
    sign, mood = next((SIGNS[word] for word in SIGNS if word in rule.evidence), ("•", "plain"))
    said = rule.text.removesuffix(".")
    return Item(said, exceptions(rule), "; ".join(aside).capitalize() + ".", sign, mood)


def exceptions(rule: Rule) -> str:
    """Says in which situations a rule is not followed; empty: it is in all."""
    named = [f"“{harmless(', '.join(label))}”" for label in rule.exceptions[:SHOWN_EXCEPTIONS]]
    more = len(rule.exceptions) - len(named)
    named += [counted(more, "other situation")] if more else []
    return f"As before if {listed(named, 'or')}: hardly tried, or not allowed." if named else ""


def notes(rules: Rules) -> list[str]:
    """Says that today's policy is estimated, where rules go on with it."""
    goes_on = any(rule.action is None or rule.exceptions for rule in rules.rules)
    return [ESTIMATED] if goes_on and rules.behavior_is_estimated else []


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
        run = range(table.pairs.offsets[s], table.pairs.offsets[s + 1])
        today = table.pairs.action[max(run, key=lambda k: table.behavior[k])]
        new = rules.action(words.states[s])
        asked = [findings.guideline.get(words.states[s])] if findings.guideline else []
        shown = (words.actions[today], *asked, new)
        done = [x and ", ".join(called(x, words.action_columns, words.names)) for x in shown]
        rows.append([*words.state_name(s), *(text or "as before" for text in done)])
    middle = ["Guideline"] if findings.guideline else []
    draft = "Draft, not for use"
    warning = WARNINGS.get(findings.verdict, f"{draft}: {findings.verdict}.")
    template = environment().get_template("templates/card.html")
    return template.render(
        title=findings.record.description.get("about", {}).get("title", "What to do"),
        warning=f"{draft}: a check failed." if failed(findings.record.checks) else warning,
        rules=[(rule.text, exceptions(rule)) for rule in rules.rules],
        notes=[*filter(None, [harm_words(findings.record)]), *notes(rules)],
        headings=[*words.state_columns, "Today, mostly", *middle, "New"],
        rows=rows,
        left=table.num_deciding - len(rows),
        style=asset("assets/card.css"),
    )
