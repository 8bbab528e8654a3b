"""Claims of a run in words and numbers: the cells of their tables."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import number
from surestep.experiments.claim_naming import certifier_names, claimant_of, task_name
from surestep.experiments.coverage import CellSummary
from surestep.experiments.naming import size_words
from surestep.report.text_tables import TextTable
from surestep.report.words.comparison import SHARES, interval_words

HEADINGS = (
    "claim", "standing", "δ", "wrong: Δ < L", "certifies a gain: L > 0", "refused", "tightness",
    "mean gain Δ", "mean L",
)  # fmt: skip
CLAIM_INTERVALS = (
    "Rates are over all repetitions, refusals included, with Clopper and Pearson's 95 % intervals, "
    "each on its own. A claim of confidence 1 − δ may be wrong in a share δ of the repetitions. "
    "Tightness is mean max(L, 0) / mean Δ. MDPs of a family are pooled."
)


def claim_tables(cells: Sequence[CellSummary]) -> list[TextTable]:
    """Returns a table for each algorithm in each family at each data size."""
    names = certifier_names(cells)
    together: dict[tuple[str, int], list[CellSummary]] = {}
    for cell in cells:
        together.setdefault((task_name(cell), cell.cell.episodes), []).append(cell)
    return [
        TextTable(
            place_of(mine[0]),
            HEADINGS,
            [[names[claimant_of(cell)], *numbers_of(cell)] for cell in mine],
            place_of(mine[0]),
        )
        for mine in together.values()
    ]


def place_of(cell: CellSummary) -> str:
    """Returns where claims are compared: 'gridworld: spibb, N∧ = 27, 100 trajectories, …'."""
    size = size_words(cell.cell.episodes, [cell.cell.family])
    return f"{task_name(cell)}, {size}, {cell.repetitions:,} repetitions"


def numbers_of(cell: CellSummary) -> list[str]:
    """Returns the cells of one certifier, behind its name."""
    return [
        " or ".join(cell.standing) or "refused",
        number(cell.delta),
        interval_words(cell.violation, SHARES),
        interval_words(cell.positive, SHARES),
        SHARES.number(cell.refused),
        SHARES.number(cell.tightness),
        number(cell.mean_gain),
        number(cell.mean_lower),
    ]
