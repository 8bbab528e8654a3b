"""Writes the page of a result for a log with a structure: rules, claim, and doubts about both."""

import math
from collections.abc import Iterator, Sequence

from surestep._words import counted, listed, number, signed
from surestep.checks import says, title
from surestep.checks.words import aside
from surestep.description import key_text, written
from surestep.model.structure import LEARN
from surestep.report.answer import (
    PER_EPISODE,
    Verdict,
    counted_on,
    spoken_of,
    than_estimated,
    verdict,
)
from surestep.report.certificates import certificates_section
from surestep.report.checks import HIDDEN, SIGNS
from surestep.report.page import page
from surestep.report.signals import DIGITS
from surestep.report.stress_test import TITLE, WHAT, keys_of, outcome_words, rates_table
from surestep.results.plots import gains_picture
from surestep.results.structured import StructuredResult
from surestep.sections import Amount, Column, Item, Key, Section, Table, numbers

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
            certificates_section(result),
            *further(result),
        ],
        ", ".join(about[key] for key in ("population", "period", "date") if key in about),
        title=about.get("title") or None,
    )


def structured_sections(result: StructuredResult) -> list[Section]:
    """Returns the first screen: what to do, how sure that is, and what speaks against it."""
    claims, checks, record = result.certificates, result.checks, result.record
    unit = record.description.get("stakes", {}).get("unit", PER_EPISODE)
    judged = verdict(claims, changed=True, rehearsal=result.rehearsal, checks=checks, unit=unit)
    over = than_estimated(result.belief or result.certificate)
    keys = [
        counted_on(claims, judged, unit=unit),
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
    tested = [] if result.rehearsal is None else [outcome_words(result.rehearsal)]
    return [
        Section("answer", judged.action, [*reasons(result, judged)], keys=keys, mood=judged.mood),
        Section("rules", "The rules", [how], items=rules),
        *([learnt_section(result)] if record.learnt else []),
        Section(
            "against",
            "What speaks against it",
            [compared_with(result), *tested],
            items=[
                *(Item(title(x), says(x), aside(x), *SIGNS[x.outcome]) for x in checks),
                Item("What nobody recorded", HIDDEN, sign="!", mood="caution"),
                Item(
                    "Not tested here",
                    "Are rows copied, was a column known only later, does stopping tell what was "
                    "done? `surestep inspect` tests that.",
                    sign="–",
                ),
            ],
        ),
    ]


def reasons(result: StructuredResult, judged: Verdict) -> Iterator[str]:
    """Says why that is to be done, and on what it rests."""
    if judged.rung == "proved within the rewards seen":
        columns = listed([f"“{name}”" for name in result.structure.open_columns])
        yield (
            f"Can {columns} ever have a value that this log does not show? If not, list the values "
            "(`values` in [structure]); then the gain is proved. If so, list that one too, say in "
            "the terms of the reward what it earns, and repeat the analysis."
        )
    else:
        yield judged.why
    if than_estimated(spoken_of(result.certificates, judged)):
        yield (
            "Nothing says that the estimate of the current policy is what is done now. Write that "
            "policy down (behavior.policy), or pilot the rules."
        )
    kind = "learnt structure" if result.structure.learnt else "structure"
    yield f"All claims rest on the {kind}: is it true?"


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
    """Returns what a wrong structure would do, and how to repeat the result."""
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
        Section(
            "repeat",
            "How to repeat it",
            [f"Made by surestep {record.surestep}."],
            facts=[(file.name, file.sha256) for file in record.inputs],
            command="surestep verify RESULT DESCRIPTION.toml",
            folded=True,
        ),
    ]
