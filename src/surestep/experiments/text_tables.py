"""Methods and claims of a run side by side: tables of words, as Markdown and LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import surestep.experiments.tables as naming
from surestep._drawing import MATHEMATICS
from surestep._words import Scale, number
from surestep.experiments.comparison import Compared, Comparison
from surestep.experiments.intervals import Interval
from surestep.experiments.metrics import SHARES as OF_REPETITIONS
from surestep.experiments.metrics import CellSummary

VALUES = {"performance": "ρ", "gain": "ρ − ρ(π_b)", "normalised": "(ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b))"}
SHARES = Scale(0, 3)
INTERVALS = (
    "All intervals are 95 % intervals, each on its own, and hold for every distribution between "
    "the bounds of what policies can earn: of means and differences by betting, of the CVaR by "
    "order statistics, of shares Clopper and Pearson's. A dash is an end that the repetitions are "
    "too few for, or for which no bound is known. Differences are taken on the same data."
)
OF_CLAIMS = (
    "claim", "standing", "δ", "wrong: Δ < L", "certifies a gain: L > 0", "refused", "tightness",
    "mean gain Δ", "mean L",
)  # fmt: skip
CLAIM_INTERVALS = (
    "Rates are over all repetitions, refusals included, with Clopper and Pearson's 95 % intervals, "
    "each on its own. A claim of confidence 1 − δ may be wrong in a share δ of the repetitions. "
    "Tightness is mean max(L, 0) / mean Δ. MDPs of a family are pooled."
)
IN_LATEX = {  # what would be obeyed, and what a font of LaTeX may not have
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$", "–": "--", "∞": r"$\infty$",
    "\u202f": r"\,", "<": "$<$", ">": "$>$", "|": r"\textbar{}",
}  # fmt: skip
OBEYED = re.compile(r"[\\|*`<>~$]|(?<!\w)_|_(?!\w)|\((?<=\]\()|&(?=#?\w+;)")  # by Markdown
# Controls, ends of lines and signs of direction: no letters.
BREAKS = re.compile(r"[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
SIGNS = re.compile("|".join(map(re.escape, [*MATHEMATICS, *IN_LATEX])))


class TextTable(NamedTuple):
    """A table: words first, then columns of numbers; a cell may break where a line of it ends."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def comparison_table(comparison: Comparison, value: str) -> TextTable:
    """Returns what methods reach in one environment at one data size, and how they differ."""
    methods = comparison.methods
    first = methods[0].summary
    shares = {name: name in OF_REPETITIONS for name in first.metrics}
    reached = [one.summary.metrics[name] for one in methods for name in shares if not shares[name]]
    apart = [one.difference.mean for one in methods if one.difference is not None]
    scale = Scale.of([interval.value for interval in reached or apart], 4)
    headings = ["method", *map(naming.metric_name, shares)]
    if len(methods) > 1:
        other = naming.method_name(comparison.against)
        headings += [
            f"{how}\n{other}" for how in ("mean difference to", "better than", "worse than")
        ]

    def cells(one: Compared) -> list[str]:
        reached = [
            interval_words(one.summary.metrics[name], SHARES if shares[name] else scale)
            for name in shares
        ]
        scales = (scale, SHARES, SHARES)
        beside = map(interval_words, one.difference, scales) if one.difference else [""] * 3
        return [naming.method_name(one.summary.method), *reached, *beside][: len(headings)]

    place = (
        f"{naming.environment_name(comparison.environment)}, "
        f"{naming.size_words(comparison.episodes, [comparison.environment])}, "
        f"{comparison.repetitions:,} repetitions, π_b {number(first.behavior_performance)}, "
        f"π* {number(first.optimal_performance)}: {VALUES[value]}"
    )
    return TextTable(place, headings, [cells(one) for one in methods])


def claim_tables(summaries: Sequence[CellSummary]) -> list[TextTable]:
    """Returns a table for each algorithm in each family at each data size."""
    together: dict[str, list[list[str]]] = {}
    for one, name in zip(summaries, naming.claim_names(summaries), strict=True):
        size = naming.size_words(one.cell.episodes, [one.cell.family])
        place = f"{naming.task_name(one)}, {size}, {one.repetitions:,} repetitions"
        together.setdefault(place, []).append(
            [
                name,
                " or ".join(one.standing) or "refused",
                number(one.delta),
                interval_words(one.violation, SHARES),
                interval_words(one.positive, SHARES),
                SHARES.number(one.refused),
                SHARES.number(one.tightness),
                number(one.mean_gain),
                number(one.mean_lower),
            ]
        )
    return [TextTable(place, OF_CLAIMS, rows) for place, rows in together.items()]


def interval_words(interval: Interval, scale: Scale) -> str:
    """Returns a number with its interval: '0.543', '[0.541, 0.546]'; a dash for an end without."""
    low, high = (
        "–" if math.isnan(end) else scale.number(end) for end in (interval.low, interval.high)
    )
    return f"{scale.number(interval.value)}\n[{low}, {high}]"


def as_markdown(table: TextTable) -> str:
    """Returns the table as Markdown has it, its caption above."""
    lines = [table.headings, ["---", *["---:"] * (len(table.headings) - 1)], *table.rows]
    bars = ["| " + " | ".join(map(in_markdown, line)) + " |" for line in lines]
    return "\n".join([f"**{in_markdown(table.caption)}**", "", *bars])


def in_markdown(text: str) -> str:
    r"""Returns a text that Markdown shows as it is.

    >>> print(in_markdown("0.5 [0.4, 0.6] a|b *c* π_b"))
    0.5 [0.4, 0.6] a\|b \*c\* π_b
    """
    return OBEYED.sub(r"\\\g<0>", BREAKS.sub(" ", text))


def as_latex(table: TextTable) -> str:
    r"""Returns the table as LaTeX has it, with the packages booktabs and graphicx.

    The second line of a cell stands below the first, and what is wider than the text is shrunk.
    """
    header, *rows = map(latex_row, [table.headings, *table.rows])
    return (
        (files("surestep.experiments") / "table.tex")
        .read_text("utf-8")
        .rstrip()
        .format(
            caption=in_latex(table.caption),
            columns="l" + "r" * (len(table.headings) - 1),
            header=header,
            rows="\n    ".join(rows),
        )
    )


def latex_row(row: Sequence[str]) -> str:
    r"""Returns a row of cells.

    >>> print(latex_row(["[a]", "0.5\n[0.4, 0.6]"]))
    {}[a] & \shortstack[r]{0.5\\{}\scriptsize [0.4, 0.6]} \\
    """
    cells = []
    for cell in row:
        first, *below = map(in_latex, cell.split("\n"))
        stacked = "".join(rf"\\{{}}\scriptsize {line}" for line in below)
        cells.append(rf"\shortstack[r]{{{first}{stacked}}}" if below else first)
    taken = "{}" if cells[0].startswith(("[", "*")) else ""  # by what stands before
    return f"{taken}{' & '.join(cells)} " + r"\\"


def in_latex(text: str) -> str:
    r"""Returns a text that LaTeX shows as it is, signs of mathematics as mathematics.

    >>> print(in_latex("50 % below π_b & N∧ = 5"))
    50 \% below $\pi_b$ \& $N_\wedge$ = 5
    """
    signs = MATHEMATICS | IN_LATEX
    return SIGNS.sub(lambda match: signs[match[0]], BREAKS.sub(" ", text))
