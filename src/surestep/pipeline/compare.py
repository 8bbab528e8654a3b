"""Comparing what was run: methods, or the claims of certifiers, as tables and as pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surestep._files import write_together
from surestep.errors import InvalidParameter, said
from surestep.experiments import Run, Selection, compare_run
from surestep.experiments.comparison import USUAL
from surestep.experiments.findings import claims_of, findings_of
from surestep.experiments.runs import output_for
from surestep.report.run_page import claims_page, run_page
from surestep.report.text_tables import TextTable
from surestep.report.words.claims import CLAIM_INTERVALS, claim_tables
from surestep.report.words.comparison import INTERVALS, comparison_tables


@dataclass(frozen=True, slots=True)
class Question:
    """The part of a run to compare, its metrics and value, and the method to compare with."""

    selection: Selection
    metrics: Sequence[str] = ()
    value: str | None = None  # None: the performance
    against: str | None = None


def tables_of(run: Run, question: Question) -> list[TextTable]:
    """Returns the tables of a run: two for each environment and data size, or one of claims."""
    if run.holds_claims:
        return claim_tables(claims_of(run, of_claims(question)).cells)
    value = question.value or "performance"
    compared = compare_run(
        run,
        question.selection,
        metrics=question.metrics or USUAL,
        value=value,
        against=question.against,
    )
    return [table for one in compared for table in comparison_tables(one, value)]


def intervals_of(run: Run) -> str:
    """Returns what is to be known of the intervals in the tables of a run."""
    return CLAIM_INTERVALS if run.holds_claims else INTERVALS


def write_pages(path: Path, runs: Sequence[Run], question: Question) -> list[Path]:
    """Writes a page for each run, or nothing; says where they are."""
    pages = {output_for(path, run, runs): page_of(run, question) for run in runs}
    read = [file for run in runs for file in run.files]
    write_together({place: [text.encode()] for place, text in pages.items()}, read)
    return list(pages)


def page_of(run: Run, question: Question) -> str:
    """Returns the page of a run."""
    if run.holds_claims:
        return claims_page(claims_of(run, of_claims(question)))
    return run_page(
        findings_of(
            run,
            question.selection,
            metrics=question.metrics,
            value=question.value or "performance",
            against=question.against,
        )
    )


def of_claims(question: Question) -> Selection:
    """Returns the part of a run of claims; refuses what only methods can be asked."""
    asked = {
        said("metrics", "--metric"): bool(question.metrics),
        said("value", "--value"): question.value is not None,
        said("against", "--against"): question.against is not None,
    }
    for name, is_given in asked.items():
        if is_given:
            raise InvalidParameter(
                f"{name} is given, but the run holds claims of certifiers, which are compared by "
                "how often they are wrong and how much they say"
            )
    return question.selection
