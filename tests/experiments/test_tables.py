"""Tables as text: what a name looks like never becomes markup."""

import html5lib
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from surestep.experiments.tables import TextTable, as_markdown

TABLE = TextTable("N∧ of a & b", ["method", "mean"], [["spibb_2 | x", "0.5\n[0.4, –]"]])
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def test_markdown_has_the_cells_of_the_table():
    assert as_markdown(TABLE).splitlines() == [
        "**N∧ of a & b**",
        "",
        "| method | mean |",
        "| --- | ---: |",
        r"| spibb_2 \| x | 0.5 [0.4, –] |",
    ]


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_a_name_stays_a_name(name):
    rows = as_markdown(TextTable("c", ["m", "x"], [[name, "1"]])).split("\n")
    assert len(rows) == 5
    assert sum(row_bar for row_bar in [len(unescaped(rows[4], "|"))]) == 3


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
