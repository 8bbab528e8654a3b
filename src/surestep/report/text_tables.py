"""Tables as text: Markdown, LaTeX and HTML, from the same cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from surestep.experiments.naming import MATHEMATICS
from surestep.report.html import element
from surestep.report.html import written as written_html

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
    subject: str = ""  # the caption without where it is, for who says that already


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


def as_html(table: TextTable) -> str:
    """Returns the table as an element of HTML, which pages of others can hold."""
    head = element("tr", [element("th", text, scope="col") for text in table.headings])
    body = [element("tr", [element("td", text) for text in row]) for row in table.rows]
    caption = element("caption", table.caption)
    return written_html(element("table", caption, element("thead", head), element("tbody", body)))


WRITERS: dict[str, Callable[[TextTable], str]] = {
    "markdown": as_markdown,
    "latex": as_latex,
    "html": as_html,
}
