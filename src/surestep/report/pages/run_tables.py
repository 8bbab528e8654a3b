"""The tables of a run's page: each method in short, and side by side at each data size."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import counted, number, percent
from surestep.experiments.findings import InShort, RunFindings
from surestep.experiments.naming import environment_name, method_name, size_words
from surestep.report.html import Element, element, label
from surestep.report.page_tables import (
    Cell,
    Column,
    Row,
    data_table,
    facts,
    more,
    number_columns,
    row,
)
from surestep.report.text_tables import TextTable
from surestep.report.words.comparison import INTERVALS, comparison_tables, ends_words, place_words

GLOSSARY = (
    ("ρ, performance", "What an episode earns on average under a policy, in the true model."),
    ("π_b", "The behavior policy: what made the data, and what methods are to improve."),
    ("π*", "The best policy there is; nobody who has only data can know it."),
    ("10 % CVaR", "The mean of the worst tenth of the repetitions: how bad it gets."),
    ("better, worse than π_b", "The share of repetitions whose policy is; the rest is as good."),
    ("Normalised", "The gain over π_b as a share of the largest possible one: 1 is π*."),
    ("N∧", "How often a pair must have been seen, and more, before it may be changed."),
    ("Repetition", "A data set drawn anew; all methods see the same ones."),
)


def short_section(findings: RunFindings) -> Element:
    """Returns what was run, and each method in one line."""
    sizes = findings.setup.sizes
    last = size_words(sizes[-1], findings.setup.environments)
    data = last if len(sizes) == 1 else f"{len(sizes)} data sizes from {sizes[0]:,} to {last}"
    lead = (
        f"{counted(len(findings.setup.methods), 'method')} in "
        f"{counted(len(findings.setup.environments), 'environment')}, {data}, "
        f"{counted(findings.setup.repetitions, 'repetition')} each."
    )
    several = len(findings.setup.environments) > 1
    columns = [
        *([Column("Environment")] if several else []),
        Column("Method"),
        *number_columns(
            "Mean beats π_b from this data size on",
            "Most often worse than π_b",
            f"Mean at {last}",
        ),
    ]
    rows = [row(*short_cells(one)[0 if several else 1 :]) for one in findings.in_short]
    return in_short(lead, "Each method over all data sizes", columns, rows)


def short_cells(one: InShort) -> list[Cell]:
    """Returns the cells of a method in one environment."""
    worst, mean = one.most_often_worse, one.last.metrics["mean"]
    share = worst.metrics["worse"].value
    often = percent(share) + ("" if share == 0 else f" at {worst.episodes:,}")
    first = one.first_better
    return [
        Cell(label(environment_name(one.environment))),
        Cell(label(method_name(one.method))),
        Cell("never" if first is None else f"{first:,}", first),
        Cell(often, share),
        Cell(f"{number(mean.value)} {ends_words(mean)}", mean.value),
    ]


def tables_section(findings: RunFindings) -> Element:
    """Returns the methods side by side, a fold for each environment and data size."""
    folds = []
    for place, comparison in enumerate(findings.comparisons):
        tables = [
            side_by_side(f"compared-{place}-{which}", table)
            for which, table in enumerate(comparison_tables(comparison, findings.value))
        ]
        folds.append(more(place_words(comparison), tables))
    return folded_tables("Methods side by side", INTERVALS, folds)


# ---- what pages of claims have in the same form --------------------------------------------------


def in_short(lead: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> Element:
    """Returns the first section of a page: what was run, and a table that can be sorted."""
    return element(
        "section",
        element("h2", "In short"),
        element("p", lead, class_="lead"),
        data_table("methods", caption, columns, rows, sortable=True),
        id="short",
        class_="answer",
    )


def folded_tables(title: str, words: str, folds: Sequence[Element]) -> Element:
    """Returns the section of all tables, each in a fold, below words about their intervals."""
    return element("section", element("h2", title), element("p", words), folds, id="tables")


def side_by_side(identity: str, table: TextTable) -> Element:
    """Returns a table of texts as one of the page."""
    columns = [Column(table.headings[0]), *number_columns(*table.headings[1:])]
    rows = [
        row(Cell(label(name)), *(Cell(text or "–") for text in cells))
        for name, *cells in table.rows
    ]
    return data_table(identity, table.subject, columns, rows)


def words_section(words: Sequence[tuple[str, str]]) -> Element:
    """Returns the words that not everybody knows."""
    return element(
        "section",
        element("h2", "Words used here"),
        more("What they mean", facts(words)),
        id="words",
    )
