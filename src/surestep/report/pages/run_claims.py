"""The page of a run with certifiers: how often claims are wrong, and how much they say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surestep._words import counted, number, percent
from surestep.experiments.claim_naming import certifier_names, claimant_of, task_name
from surestep.experiments.coverage import CellSummary
from surestep.experiments.findings import ClaimFindings, ClaimInShort
from surestep.experiments.naming import size_axis, size_words
from surestep.experiments.tails import Interval
from surestep.report.charts.svg import (
    TONES,
    Axis,
    Band,
    Caption,
    Level,
    Line,
    Note,
    legend,
    line_chart,
)
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import Cell, Column, figure, more, number_columns, row
from surestep.report.pages.run_curves import interval_note
from surestep.report.pages.run_tables import folded_tables, in_short, side_by_side
from surestep.report.words.claims import CLAIM_INTERVALS, claim_tables

METRICS = {
    "violation": "wrong: Δ < L, as a share of repetitions",
    "positive": "certifies a gain: L > 0, as a share of repetitions",
    "tightness": "tightness: mean max(L, 0) / mean Δ",
}
CLAIM_GLOSSARY = (
    ("Δ, gain", "What the new policy earns more than π_b, in the true model."),
    ("L", "What a certificate claims: Δ is at least L. Above 0 it certifies a gain."),
    ("δ", "How often a claim may be wrong although its assumptions hold."),
    ("Wrong", "Δ < L. A refusal claims nothing, and is not wrong."),
    ("Standing", "What a claim rests on: proved, posterior, asymptotic or as published."),
    ("Tightness", "Which share of the true gain is certified, on average."),
    ("N∧", "How often a pair must have been seen, and more, before it may be changed."),
)


def short_claims_section(findings: ClaimFindings) -> Element:
    """Returns what was run, and each certifier in one line."""
    setup, shorts = findings.setup, findings.in_short
    lead = (
        f"{counted(len({one.certifier for one in shorts}), 'certifier')} about "
        f"{counted(len({one.task for one in shorts}), 'task')}, "
        f"{counted(len(setup.sizes), 'data size')}, {counted(setup.repetitions, 'repetition')} of "
        f"{counted(len(setup.environments), 'MDP')}."
    )
    columns = [
        Column("Task"),
        Column("Claim"),
        *number_columns(
            "δ",
            "Most often wrong",
            "A gain is certified in half of the repetitions from this data size on",
            "Tightness at the largest data size",
        ),
    ]
    rows = [row(*short_cells(one)) for one in shorts]
    return in_short(lead, "Each certifier over all data sizes", columns, rows)


def short_cells(one: ClaimInShort) -> list[Cell]:
    """Returns the cells of a certifier about one task."""
    worst, first = one.worst, one.first_certified
    often = percent(worst.violation.value)
    if worst.violations:
        often += f" at {worst.cell.episodes:,}"
    return [
        Cell(label(one.task)),
        Cell(label(one.certifier)),
        Cell(number(worst.delta), worst.delta),
        Cell(often, worst.violation.value),
        Cell("none of these" if first is None else f"{first:,}", first),
        Cell(number(one.last.tightness), finite(one.last.tightness)),
    ]


def finite(value: float) -> float | None:
    """Returns a number to sort by; None for NaN."""
    return None if math.isnan(value) else value


def claim_curves_section(findings: ClaimFindings) -> Element:
    """Returns the pictures of each task: how often claims are wrong, say something, how much."""
    parts: list[Node] = []
    tasks = dict.fromkeys(task_name(cell) for cell in findings.cells)
    for place, task in enumerate(tasks):
        mine = [cell for cell in findings.cells if task_name(cell) == task]
        parts.append(element("h3", label(task)))
        parts += [claim_figure(mine, metric, f"claims-{place}-{metric}") for metric in METRICS]
    return element(
        "section",
        element("h2", "Claims as data grow"),
        element(
            "p",
            f"{CLAIM_INTERVALS} Point at a picture for its values, or move through it with the "
            "arrow keys.",
        ),
        parts,
        id="curves",
    )


def claim_figure(cells: Sequence[CellSummary], metric: str, identity: str) -> Element:
    """Returns one number of all certifiers about one task over data size."""
    lines, bands = [], []
    for place, (claimant, name) in enumerate(certifier_names(cells).items()):
        mine = sorted(
            (cell for cell in cells if claimant_of(cell) == claimant and is_known(cell, metric)),
            key=lambda cell: cell.cell.episodes,
        )
        if not mine:
            continue
        tone = TONES[place % len(TONES)]
        points = [(cell.cell.episodes, value_of(cell, metric)) for cell in mine]
        notes = [
            Note(size_words(cell.cell.episodes, [cell.cell.family]), words_of(cell, metric))
            for cell in mine
        ]
        lines.append(Line(name, points, tone, place // len(TONES) % 2 == 1, notes))
        if metric != "tightness" and len(mine) > 1:
            ends = [(float(cell.cell.episodes), *getattr(cell, metric)[1:]) for cell in mine]
            bands.append(Band(ends, tone))
    deltas = sorted({cell.delta for cell in cells}) if metric == "violation" else []
    heights = [height for line in lines for _, height in line.points]
    heights += [end for band in bands for _, *ends in band.points for end in ends]
    chart = line_chart(
        Caption(identity, METRICS[metric], f"{len(lines)} lines over data size."),
        lines,
        Axis.around(
            size_axis({cell.cell.family for cell in cells}),
            [cell.cell.episodes for cell in cells],
            log=True,
        ),
        Axis.around(METRICS[metric], [0.0, *heights, *deltas, 0.05]),
        levels=[Level(delta, f"δ = {delta:g}") for delta in deltas],
        bands=bands,
        dots=True,
    )
    caption: list[Node] = [label(task_name(cells[0])), f", {METRICS[metric]}"]
    return figure(chart, caption, legend=legend(lines), hover=True)


def value_of(cell: CellSummary, metric: str) -> float:
    """Returns the number of a metric."""
    found: float | Interval = getattr(cell, metric)
    return found.value if isinstance(found, Interval) else found


def is_known(cell: CellSummary, metric: str) -> bool:
    """Returns whether there is a number: nothing is gained where the tightness is none."""
    return not math.isnan(value_of(cell, metric))


def words_of(cell: CellSummary, metric: str) -> str:
    """Returns the number of a metric with its interval, where it has one."""
    found: float | Interval = getattr(cell, metric)
    return interval_note(found) if isinstance(found, Interval) else number(found)


def claim_tables_section(findings: ClaimFindings) -> Element:
    """Returns the claims side by side, a fold for each task and data size."""
    folds = [
        more(table.caption, side_by_side(f"claims-table-{place}", table))
        for place, table in enumerate(claim_tables(findings.cells))
    ]
    return folded_tables("Claims side by side", CLAIM_INTERVALS, folds)
