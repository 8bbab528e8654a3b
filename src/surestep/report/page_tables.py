"""Tables, figures and key numbers of a page; with JavaScript, tables are sorted and filtered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from surestep.report.html import Element, Node, element, label


class Column(NamedTuple):
    """A column and what its cells are sorted by: words, or numbers."""

    heading: Node
    kind: Literal["text", "number"] = "text"


class Cell(NamedTuple):
    """The content of a cell, and the number it is sorted by where that is not its text."""

    content: Node
    key: float | None = None


class Row(NamedTuple):
    """Cells in the order of the columns, and the group that a filter may ask for."""

    cells: Sequence[Cell]
    group: str | None = None


def row(*cells: Cell, group: str | None = None) -> Row:
    """Returns a row of these cells."""
    return Row(cells, group)


def number_columns(*headings: Node) -> list[Column]:
    """Returns columns of numbers with these headings."""
    return [Column(heading, "number") for heading in headings]


def data_table(
    identity: str,
    caption: Node,
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    sortable: bool = False,
) -> Element:
    """Returns a table that scrolls inside its own frame where the screen is narrow."""
    name = f"{identity}-caption"
    head = [
        element(
            "th",
            column.heading,
            scope="col",
            class_="number" if column.kind == "number" else None,
            data_kind=column.kind if sortable else None,
        )
        for column in columns
    ]
    body = [
        element(
            "tr",
            [
                element(
                    "td",
                    cell.content,
                    class_="number" if column.kind == "number" else None,
                    data_key=None if cell.key is None else repr(float(cell.key)),
                )
                for column, cell in zip(columns, row.cells, strict=True)
            ],
            data_group=row.group,
        )
        for row in rows
    ]
    table = element(
        "table",
        element("caption", caption, id=name),
        element("thead", element("tr", head)),
        element("tbody", body),
        id=identity,
        data_sortable=sortable,
    )
    return element("div", table, class_="frame", role="region", aria_labelledby=name, tabindex="0")


def filter_bar(table: str, finding: str, groups: Mapping[str, str]) -> Element:
    """Returns controls that narrow a table down; hidden until JavaScript is there to serve them."""
    options = [element("option", text, value=group) for group, text in groups.items()]
    search, select = f"{table}-search", f"{table}-select"
    return element(
        "div",
        element(
            "div",
            element("label", finding, for_=search),
            element("input", type="search", id=search, data_filter="text", autocomplete="off"),
        ),
        element(
            "div",
            element("label", "Show", for_=select),
            element(
                "select",
                element("option", "All of them", value=""),
                options,
                id=select,
                data_filter="group",
            ),
        ),
        element("p", class_="matches", role="status"),
        class_="filter",
        data_table=table,
        hidden=True,
    )


def further_bar(table: str) -> Element:
    """Returns buttons that show more rows of a long table; hidden without JavaScript, or rows."""
    return element(
        "p",
        element("button", "Show more rows", type="button", data_further="some"),
        element("button", "Show all", type="button", data_further="all"),
        class_="further",
        data_table=table,
        hidden=True,
    )


def facts(entries: Sequence[tuple[Node, Node]]) -> Element:
    """Returns terms with what they are."""
    return element(
        "dl",
        [element("div", element("dt", term), element("dd", meaning)) for term, meaning in entries],
        class_="facts",
    )


def more(summary: str, *content: Node) -> Element:
    """Returns what only some readers want, folded away."""
    return element("details", element("summary", summary), content)


def figure(
    picture: Element,
    caption: Node,
    *,
    legend: Node = None,
    numbers: Node = None,
    hover: bool = False,
) -> Element:
    """Returns a picture with its caption, and its numbers for those who do not look at it.

    With `hover`, JavaScript shows the notes of its points where somebody points.
    """
    return element(
        "figure",
        legend,
        picture,
        element("figcaption", caption),
        None if numbers is None else more("The numbers behind this picture", numbers),
        data_hover=hover,
    )


def key(name: str, value: Node, meaning: Node, *, mood: str = "", words: bool = False) -> Element:
    """Returns one number to remember, with its name above and its meaning below."""
    return element(
        "div",
        element("p", name, class_="name"),
        element("p", value, class_="value words" if words else "value"),
        element("p", meaning, class_="meaning"),
        class_=f"key {mood}".strip(),
    )


def small(text: str) -> Element:
    """Returns what belongs to a number, in smaller letters."""
    return element("small", text)


def amount(text: str) -> Element:
    """Returns a number beside a bar, in a column of its own."""
    return element("span", text, class_="amount")


def label_cells(labels: Sequence[str]) -> list[Cell]:
    """Returns the texts of a state or an action, a column each."""
    return [Cell(label(text)) for text in labels]
