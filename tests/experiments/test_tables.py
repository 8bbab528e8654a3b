"""Tables as text: what a name looks like never becomes markup."""

import os
import shutil
import string
import subprocess
from math import inf, nan

import html5lib
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from surestep._drawing import MATHEMATICS
from surestep.experiments import Interval, tables
from surestep.experiments.tables import (
    ALGORITHMS,
    LETTERS,
    TextTable,
    as_latex,
    as_markdown,
    metric_name,
)

TABLE = TextTable("N∧ of a & b", ["method", "mean"], [["spibb_2 | x", "0.5\n[0.4, –]"]])
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def test_each_form_has_the_same_cells():
    assert as_markdown(TABLE).splitlines() == [
        "**N∧ of a & b**",
        "",
        "| method | mean |",
        "| --- | ---: |",
        r"| spibb_2 \| x | 0.5 [0.4, –] |",
    ]
    latex = as_latex(TABLE)
    assert r"\caption{$N_\wedge$ of a \& b}" in latex
    stacked = r"\shortstack[r]{0.5\\{}\scriptsize [0.4, --]}"
    assert rf"    spibb\_2 \textbar{{}} x & {stacked} \\" in latex
    assert r"\begin{tabular}{lr}" in latex


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_a_name_stays_a_name(name):
    rows = as_markdown(TextTable("c", ["m", "x"], [[name, "1"]])).split("\n")
    assert len(rows) == 5
    assert sum(row_bar for row_bar in [len(unescaped(rows[4], "|"))]) == 3
    written = tables.in_latex(name)
    for sign in "&%#":
        assert not unescaped(written, sign)
    assert len(unescaped(written, "$")) % 2 == 0


def unescaped(text, sign):
    """The places of a sign that no backslash stands before."""
    return [i for i, c in enumerate(text) if c == sign and (i == 0 or text[i - 1] != "\\")]


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=12))
@example("a&amp;b ~~c~~ <d> [e](f) _g_ **h** `i` j\\ http://k.l ![m](n)")
def test_markdown_shows_a_name_as_it_is(name):
    markup = PARSER.render(as_markdown(TextTable("c", ["m", "x"], [[name, "1"]])))
    page = html5lib.parseFragment(markup, namespaceHTMLElements=False)
    cell = next(page.iter("td"))
    assert [*cell] == []
    assert (cell.text or "") == name.strip()


def has_latex():
    """Tells whether there is a LaTeX, with the packages that tables need."""
    asked = ["kpsewhich", "booktabs.sty", "graphicx.sty"]
    known = shutil.which("pdflatex") and shutil.which("kpsewhich")
    return bool(known) and subprocess.run(asked, capture_output=True).returncode == 0


@pytest.mark.skipif(not has_latex(), reason="there is no pdflatex with booktabs and graphicx")
def test_latex_sets_every_sign_within_the_width_of_the_text(tmp_path):
    """Also names that begin with what a command before them would take, and very long ones."""
    signs = " ".join([*string.printable.split()[0], *MATHEMATICS, *tables.IN_LATEX])
    wide = [f"{number}\n[0.123, 0.456]" for number in range(20)]
    shown = [
        TextTable(
            signs, ["[method]", *("Δ < L\nπ_b" for _ in wide)], [["*", *wide], ["[a]", *wide]]
        ),
        TextTable("narrow", ["[m]", "x"], [["[0]", "1"], ["*", "2"]]),
    ]
    body = "\n".join(map(as_latex, shown))
    (tmp_path / "tables.tex").write_text(
        rf"""\documentclass{{article}}\usepackage{{booktabs,graphicx}}
\begin{{document}}{body}\end{{document}}"""
    )
    told = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},  # where fonts go that it makes
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stdout
    assert "Overfull" not in told.stdout


def test_everything_that_tables_say_is_known_to_latex():
    """Of signs beyond ASCII, a plain LaTeX sets those only that the writer knows."""
    said = [
        *tables.CLAIM_HEADINGS,
        *tables.VALUES.values(),
        tables.INTERVALS,
        tables.CLAIM_INTERVALS,
        metric_name("worse"),
    ]
    said += [
        *LETTERS.values(),
        *ALGORITHMS.values(),
        tables.interval_words(Interval(-2e9, nan, inf), tables.SHARE_SCALE),
    ]
    assert all(map(str.isascii, map(tables.in_latex, said)))
