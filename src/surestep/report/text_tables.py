"""Methods and claims of a run side by side: tables of words, as Markdown and LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from surestep._drawing import MATHEMATICS
from surestep._words import Scale, number
from surestep.experiments.comparison import Compared, Comparison
from surestep.experiments.coverage import CellSummary
from surestep.experiments.intervals import Interval
from surestep.experiments.metrics import metric_of
from surestep.experiments.naming import (
    claim_names,
    environment_name,
    method_name,
    metric_name,
    size_words,
    task_name,
)

VALUES = {
    "performance": "ρ",
    "gain": "ρ − ρ(π_b)",
    "normalised": "(ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b))",
}
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
APART = r"\addlinespace"
OBEYED = re.compile(r"[\\|*`<>~$]|(?<!\w)_|_(?!\w)|\((?<=\]\()|&(?=#?\w+;)")  # by Markdown
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
    shares = {name: metric_of(name).is_share for name in first.metrics}
    reached = [one.summary.metrics[name] for one in methods for name in shares if not shares[name]]
    apart = [one.difference.mean for one in methods if one.difference is not None]
    scale = Scale.of([interval.value for interval in reached or apart], 4)
    headings = ["method", *map(metric_name, shares)]
    if len(methods) > 1:
        other = method_name(comparison.against)
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
        return [method_name(one.summary.method), *reached, *beside][: len(headings)]

    place = (
        f"{environment_name(comparison.environment)}, "
        f"{size_words(comparison.episodes, [comparison.environment])}, "
        f"{comparison.repetitions:,} repetitions, π_b {number(first.behavior_performance)}, "
        f"π* {number(first.optimal_performance)}: {VALUES[value]}"
    )
    return TextTable(place, headings, [cells(one) for one in methods])


def claim_tables(summaries: Sequence[CellSummary]) -> list[TextTable]:
    """Returns a table for each algorithm in each family at each data size."""
    together: dict[str, list[list[str]]] = {}
    for one, name in zip(summaries, claim_names(summaries), strict=True):
        size = size_words(one.cell.episodes, [one.cell.family])
        place = f"{task_name(one)}, {size}, {one.repetitions:,} repetitions"
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
    return OBEYED.sub(r"\\\g<0>", re.sub(r"[\t\r\n]+", " ", text))


def as_latex(table: TextTable) -> str:
    r"""Returns the table as LaTeX has it, with the packages booktabs and graphicx.

    The second line of a cell stands below the first, and what is wider than the text is shrunk.
    """
    body = [line for row in table.rows for line in [*latex_lines(row, r"\scriptsize "), APART]]
    lines = [
        r"\toprule",
        *latex_lines(table.headings),
        r"\midrule",
        *body[:-1],
        r"\bottomrule",
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{in_latex(table.caption)}}}",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{l{'r' * (len(table.headings) - 1)}}}",
            *(f"    {line}" for line in lines),
            r"  \end{tabular}}",
            r"\end{table}",
        ]
    )


def latex_lines(row: Sequence[str], below: str = "") -> list[str]:
    r"""Returns a row of cells, one line for each line of the longest; `below` begins all but one.

    >>> print(*latex_lines(["[a]", "0.5\n[0.4, 0.6]"], r"\scriptsize "), sep="\n")
    {}[a] & 0.5 \\
     & \scriptsize [0.4, 0.6] \\
    """
    written = []
    for place, cells in enumerate(zip_longest(*(cell.split("\n") for cell in row), fillvalue="")):
        texts = [f"{below if place and cell else ''}{in_latex(cell)}" for cell in cells]
        if texts[0].startswith(("[", "*")):  # which what stands before would take for its own
            texts[0] = f"{{}}{texts[0]}"
        written.append(" & ".join(texts) + r" \\")
    return written


def in_latex(text: str) -> str:
    r"""Returns a text that LaTeX shows as it is, signs of mathematics as mathematics.

    >>> print(in_latex("50 % below π_b & N∧ = 5"))
    50 \% below $\pi_b$ \& $N_\wedge$ = 5
    """
    signs = MATHEMATICS | IN_LATEX
    return SIGNS.sub(lambda match: signs[match[0]], re.sub(r"[\t\r\n]+", " ", text))
