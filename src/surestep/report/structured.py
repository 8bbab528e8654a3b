"""Writes the page of a result for a log with a structure: rules, claim, and doubts about both."""

import math
from collections.abc import Sequence

from surestep._words import counted, floored, listed, number, percent, signed
from surestep.checks import says, title
from surestep.checks.structure import FEW, MOST_BLIND
from surestep.checks.words import aside, asked
from surestep.description import key_text, written
from surestep.model.structure import LEARN
from surestep.report.answer import than_estimated
from surestep.report.certificates import of_one
from surestep.report.checks import SIGNS
from surestep.report.page import page
from surestep.report.signals import DIGITS
from surestep.report.stress_test import TITLE, WHAT, keys_of, outcome_words, rates_table
from surestep.results.plots import gains_picture
from surestep.results.structured import StructuredResult
from surestep.sections import Amount, Column, Item, Key, Mood, Section, Table, numbers

MOST_NODES = 60  # nodes in the table, the scarcest first


def structured_page(result: StructuredResult, visits: Sequence[Sequence[int]]) -> str:
    """Returns the page; `visits` are the draws of each node in both parts of the log."""
    about = result.record.description.get("about", {})
    return page(
        "A better policy, by the structure of the world",
        [
            *structured_sections(result),
            stress_test(result),
            known_nodes(result, visits),
            *further(result),
        ],
        ", ".join(about[key] for key in ("population", "period", "date") if key in about),
        title=about.get("title") or None,
    )


def structured_sections(result: StructuredResult) -> list[Section]:
    """Returns the first screen: what to do, how sure that is, and what speaks against it."""
    claim, test, record = result.certificate, result.test, result.record
    unit = record.description.get("stakes", {}).get("unit", "per episode")
    line, step, mood = answer(result)
    least = signed(floored(claim.lower or 0.0, DIGITS), DIGITS)
    kind = "learnt structure" if result.structure.learnt else "structure"
    sure = f"with {percent(1 - claim.delta)} confidence, if the {kind} is true"
    sure = f"{than_estimated(claim).strip()} {sure}".strip()
    if test.failed:
        least = "nothing"
        sure = "the log contradicts the structure that the claim rests on"
    if record.checks:
        least = "nothing"
        sure = f"one assumption of the claim failed: {title(record.checks[0])}"
    over = than_estimated(result.belief or result.certificate)
    keys = [
        Key("Gain, at least", least, sure),
        *believed_key(result),
        Key("Best guess", signed(result.estimated_gain, DIGITS), f"{unit}{over}"),
        Key("Episodes", f"{record.data['episodes']:,}", f"{record.data['rows']:,} decisions"),
    ]
    rules = [Item("", text, sign=f"{i}.") for i, text in enumerate(result.rules.texts(), 1)]
    states = math.prod(len(values) for values in record.columns.values())
    how = f"The first rule that holds decides, in each of {states:,} situations."
    if result.rules.group:
        how = (
            f"The first rule that holds for any of {result.rules.group} decides, for the first of "
            f"them (@). There are {states:,} situations."
        )
    return [
        Section("answer", line, [step], keys=keys, mood=mood),
        Section("rules", "The rules", [how], items=rules),
        *([learnt_section(result)] if record.learnt else []),
        Section(
            "against",
            "What speaks against it",
            [
                compared_with(result),
                *([] if result.rehearsal is None else [outcome_words(result.rehearsal)]),
            ],
            items=[
                *(
                    Item(title(check), says(check), "", *SIGNS[check.outcome])
                    for check in filter(None, [result.too_much])
                ),
                Item(
                    "The structure",
                    structure_words(result),
                    "",
                    *SIGNS["failed" if test.failed else "passed"],
                ),
                Item(
                    "Where the log has not been",
                    blind_words(result),
                    "",
                    *SIGNS["failed" if test.is_blind else "passed"],
                ),
                *(Item(title(x), says(x), aside(x), *SIGNS[x.outcome]) for x in record.checks),
                Item(
                    "What nobody recorded",
                    "If people decided by what the log does not record, the gain may not exist.",
                    sign="!",
                    mood="caution",
                ),
                Item(
                    "Not tested here",
                    "Are rows copied, was a column known only later, does stopping tell what was "
                    "done? `surestep inspect` tests that.",
                    sign="–",
                ),
            ],
        ),
    ]


def learnt_section(result: StructuredResult) -> Section:
    """Returns what was learnt, to be confirmed by whoever knows that it is true."""
    words = (
        f"The {result.certificate.figures['training_episodes']:,} episodes that chose the rules "
        "say what depends on what. Nothing is proved until somebody who knows the world confirms "
        f'it: put these lines into your description in place of "{LEARN}", and run the command '
        "again. These episodes must be among those that choose then, too (method.train_share)."
    )
    missed = result.certificate.figures.get("could_miss")
    if missed:
        words += (
            f" From each claim {number(float(missed), 3)} is taken off: what the new policy could "
            "lose by a parent that the log shows too seldom to be noticed."
        )
    return Section(
        "learnt",
        "The learnt structure",
        [words],
        items=[
            Item(f"[structure.{key_text(name)}]", f"{key} = {written(value)}")
            for name, table in result.record.learnt.items()
            for key, value in table.items()
        ],
    )


def compared_with(result: StructuredResult) -> str:
    """Says which current policy the claim compares with."""
    current = result.record.current
    named = listed(current.get("columns") or ["no column"])
    words = {
        "uniform": "a trial, in which every action is as likely.",
        "estimate": f"an estimate of the current policy. It looks at {named}, and was made from "
        "the part of the log that found the rules.",
        "propensities": "the current policy, by the probabilities that the log names. They depend "
        f"on {named}.",
    }.get(current.get("from", ""), "the current policy, as it was written down.")
    if not current.get("whole", True):
        words += " Where that leaves open what is done, what follows counts as the most there is."
    if "practice_upper" in result.certificate.figures:
        words = "what the episodes of the log returned, "
        words += (
            "as nobody wrote down the current policy. With rules or a table of it "
            "(behavior.policy) less data would prove as much."
            if current.get("from") == "returns"
            else "as more was expected of that than of rollouts of the current policy."
        )
    return f"It is compared with {words}"


def answer(result: StructuredResult) -> tuple[str, str, Mood]:
    """Returns the line to act on, what to do next, and the mood."""
    proved = (result.certificate.lower or 0.0) > 0
    if result.test.failed:
        step = "Add the missing parent, or split what is shared, and run the command again."
        return "Do not act on it: the log contradicts the structure", step, "bad"
    if question := asked(result.record.checks):
        return "Answer one question first", question, "bad"
    if result.too_much is not None:
        step = "The structure, the data or stakes.returns may be wrong: find out which."
        return "Do not act on it: more is claimed than the best guess", step, "bad"
    if not proved and not result.believed_gain:
        return "Keep what you do", "This log cannot show a gain. More episodes may.", "plain"
    if result.test.is_blind:
        step = "There nobody can test the structure. A pilot needs none."
        why = (
            "it goes where the log has not been"
            if (result.test.blind or 0.0) > MOST_BLIND
            else "the log shows too little of where the current policy goes"
        )
        return f"Pilot it: {why}", step, "caution"
    if result.verdict == "proved within the rewards seen":
        columns = listed([f"“{name}”" for name in result.structure.open_columns])
        step = (
            f"Can {columns} ever have a value that this log does not show? If not, list the values "
            "(`values` in [structure]); then the gain is proved. If so, list that one too, say in "
            "the terms of the reward what it earns, and repeat the analysis."
        )
        return "Answer one question first", step, "caution"
    if proved and result.may_prove:
        return "Adopt it", "Follow the rules, and watch what comes of it.", "good"
    step = "Try it on some cases, go on as before with others, and compare."
    shown = result.certificate if proved or result.belief is None else result.belief
    if than_estimated(shown):
        step = (
            "Nothing says that the estimate of the current policy is what is done now. Write that "
            "policy down (behavior.policy), or pilot the rules."
        )
    elif proved:
        step = "If you know that the learnt structure is true, confirm it. Else pilot the rules."
    return "Pilot it: a gain is believed, not proved", step, "caution"


def believed_key(result: StructuredResult) -> list[Key]:
    """Returns what may be believed beyond the proof; empty if nothing was."""
    if result.test.failed or result.record.checks or result.belief is None:
        return []
    lower = result.belief.lower or 0.0
    sure = f"with {percent(1 - result.belief.delta)} confidence, under a prior for the nodes"
    sure = f"{than_estimated(result.belief).strip()} {sure}".strip()
    if lower > 0 and not result.believed_gain:
        sure = "but beliefs fail in the stress test"
    return [Key("Believed, at least", signed(floored(lower, DIGITS), DIGITS), sure)]


def stress_test(result: StructuredResult) -> Section:
    """Returns how often policy and claim failed in simulated worlds."""
    tested = result.rehearsal
    if tested is None:
        why = result.record.no_rehearsal or "results of this age have none"
        return Section("stress-test", TITLE, [f"Not stress tested: {why}.", WHAT], folded=True)
    summary = tested.summary()
    return Section(
        "stress-test",
        TITLE,
        [
            f"{WHAT} The laws of the nodes in each world are drawn from what the log leaves "
            "possible. There the current policy makes a log of the same size, and all else is done "
            "again."
        ],
        keys=keys_of(tested, summary),
        pictures=[gains_picture(result.estimated_gain, result.certificate.lower, tested)],
        tables=[rates_table({tested.family[0]: summary}, [])],
        items=[Item("", said) for said in tested.limits],
        folded=True,
    )


def structure_words(result: StructuredResult) -> str:
    """Says whether the structure passed its test, and which effect the test would have noticed."""
    test = result.test
    power = "The log is too small for a test that would notice much."
    if test.notices is not None:
        power = (
            f"The test would notice a chance that changes by {number(test.notices, 2)} or more, in "
            f"four of five logs, where {FEW} rows have that value."
        )
    worst = test.worst
    if worst is None or not test.failed:
        return f"{test.tests:,} comparisons found no further dependence. {power}"
    return (
        f"{worst.node} leads to {worst.drawn} in {percent(worst.chance)} of {worst.rows:,} rows "
        f"with {worst.variable} = {worst.value}, and in {percent(worst.elsewhere)} of "
        f"{worst.others:,} others. It depends on more than its parents. {power}"
    )


def blind_words(result: StructuredResult) -> str:
    """Says how often the new policy goes where nothing can be tested."""
    share, before = percent(result.test.blind or 0.0), ""
    if result.test.blind_before:
        before = (
            f"In {percent(result.test.blind_before)} of its steps the current policy meets a part "
            f"of the world that the log shows fewer than {FEW} times. "
        )
    return (
        f"In {share} of its steps the new policy meets a combination that the log "
        f"shows fewer than {FEW} times: a missing parent would go unnoticed there. {before}More "
        f"than {percent(MOST_BLIND)} is not called proved."
    )


def known_nodes(result: StructuredResult, visits: Sequence[Sequence[int]]) -> Section:
    """Returns a table of the draws of each node, the scarcest first."""
    structure = result.structure
    learnt = sorted(
        (k for k in range(structure.num_nodes) if structure.known[k] < 0),
        key=lambda k: visits[0][k] + visits[1][k],
    )
    rows = [
        [structure.node_names[k], *(Amount(f"{x[k]:,}", x[k]) for x in visits)]
        for k in learnt[:MOST_NODES]
    ]
    columns = [Column("Node"), *numbers("Seen, choosing", "Seen, judging")]
    return Section(
        "nodes",
        "Which parts of the world are well known",
        [f"{counted(len(learnt), 'node')} are learnt from the log; the scarcest come first."],
        tables=[Table("nodes", "How often the log shows each node", columns, rows, sortable=True)],
        folded=True,
    )


def further(result: StructuredResult) -> list[Section]:
    """Returns what a wrong structure would do, the certificate, and how to repeat it."""
    record = result.record
    return [
        Section(
            "wrong",
            "If the structure is wrong",
            [
                "The claim rests on the structure, wherever either policy can go. A parent that is "
                "left out can make a false proof: both policies are rolled out by the same wrong "
                "law."
            ],
        ),
        of_one(result.certificate, "stitched on nodes"),
        *([] if result.belief is None else [of_one(result.belief, "posterior on nodes", 2)]),
        Section(
            "repeat",
            "How to repeat it",
            [f"Made by surestep {record.surestep}."],
            facts=[(file.name, file.sha256) for file in record.inputs],
            command="surestep verify RESULT DESCRIPTION.toml",
            folded=True,
        ),
    ]
