"""The way to repeat a result, and the words that a report uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import Cell, Column, data_table, facts, more, row
from surestep.report.words.rehearsal import worlds_words
from surestep.results.findings import Findings
from surestep.results.record import Record

GLOSSARY = (
    ("Situation", "What a decision depends on: a state, described by the columns you named."),
    ("Policy", "A rule that says how often each action is taken in each situation."),
    ("Current policy, π_b", "What made the decisions in the log; also called behavior policy."),
    ("New policy, π_I", "What this report is about: the improved policy."),
    ("Episode", "One course of events from its start to its end, such as one patient's stay."),
    ("Discount γ", "What a reward of the next step counts today; below 1, later counts less."),
    ("Gain", "The difference of what an episode earns under the two policies, on average."),
    ("Time spent there", "The share of all decisions made in a situation, later ones discounted."),
    ("Pair", "A situation and an action that is possible there."),
    ("N∧", "How often a pair must have been seen, and more, before the new policy may change it."),
    ("Trusted", "Seen more often than N∧."),
    ("δ", "The chance that a guarantee is wrong although its assumptions hold; 1 − δ is the "
          "confidence."),
    ("L", "What the guarantee claims: the true gain is at least L. Below 0, it limits a loss."),
    ("ζ", "The loss that a guarantee leaves open: −L, or none where L is above 0."),
    ("Value", "What an episode earns from a situation on; the values' span is the largest value "
              "less the smallest, and no two policies can differ by more."),
    ("Rehearsal", "A stress test: the whole way from a log to a guarantee, gone again in worlds in "
                  "which the truth is known."),
    ("World", "A way things could be that fits the log, made from it for the rehearsal."),
    ("Estimate", "What follows if the log's frequencies were exactly the truth. They are not."),
)  # fmt: skip


def record_section(findings: Findings) -> Element:
    """Returns all that is needed to make the same result again."""
    record = findings.record
    return element(
        "section",
        element("h2", "How to repeat this"),
        element("p", "With the files below in place, this command makes the same result again:"),
        element("pre", element("code", record.command)),
        inputs_table(record),
        element("h3", "Settings"),
        facts([(name, setting(record, name)) for name in record.parameters]),
        more(
            "Versions and machine",
            facts(
                [
                    *((label(name), label(text)) for name, text in record.versions.items()),
                    *((label(name), label(text)) for name, text in record.machine.items()),
                ]
            ),
        ),
        id="repeat",
    )


def setting(record: Record, name: str) -> list[Node]:
    """Returns a setting, marked where nobody gave it."""
    mark = element("span", "default", class_="tag") if name in record.defaults else None
    given = record.parameters
    words = worlds_words(given) if name == "worlds" else setting_words(given[name])
    return [words, " ", mark]


def setting_words(value: object) -> str:
    """Returns a setting as text: lists and mappings in one line."""
    if isinstance(value, Mapping):
        words = ", ".join(f"{name} = {setting_words(part)}" for name, part in value.items())
        return words or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(setting_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:.12g}"
    return "not given" if value is None else str(value)


def inputs_table(record: Record) -> Element:
    """Returns the files that went in, with their fingerprints."""
    rows = [
        row(
            Cell(file.role),
            Cell(label(file.name)),
            Cell(f"{file.size:,}"),
            Cell(element("span", file.sha256, class_="hash")),
        )
        for file in record.inputs
    ]
    counts = row(
        Cell("counts"),
        Cell("what the log counts up to"),
        Cell(""),
        Cell(element("span", record.counts_sha256, class_="hash")),
    )
    columns = [Column("Role"), Column("File"), Column("Bytes", "number"), Column("SHA-256")]
    return data_table("inputs", "What went into it", columns, [*rows, counts])


def glossary_section(_: Findings) -> Element:
    """Returns the words that not everybody knows."""
    return element(
        "section",
        element("h2", "Words used here"),
        more("What they mean", facts(GLOSSARY)),
        id="words",
    )
