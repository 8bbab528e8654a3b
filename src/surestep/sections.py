"""The values a report is made of: sections with sentences, lists, tables and pictures.

A page (`report/page.py`) and a terminal (`report/terminal.py`) show the same sections.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Mood = Literal["good", "plain", "caution", "bad"]
Tone = Literal["blue", "orange", "green", "vermilion", "purple", "grey"]


class Amount(NamedTuple):
    """A number in a table: how it is written, and what it is sorted by."""

    text: str
    key: float


Cell = str | Amount


class Column(NamedTuple):
    """A column of a table; one of numbers is aligned at the right."""

    heading: str
    number: bool = False


class Table(NamedTuple):
    """Rows of cells under their columns; readers of a page may sort one and search in it."""

    name: str  # unique on a page
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]  # cells
    sortable: bool = False


class Key(NamedTuple):
    """A number to remember, with its name above and its meaning below."""

    name: str
    value: str
    meaning: str
    mood: Mood = "plain"


# ---- pictures: the values that are drawn --------------------------------------------------------


class Caption(NamedTuple):
    """The name of a picture, unique on a page, its title, and what it shows in words."""

    name: str
    title: str
    description: str


class Bar(NamedTuple):
    """A bar: its name, how high it is, and its colour."""

    name: str
    value: float
    tone: Tone = "blue"


class Bars(NamedTuple):
    """Standing bars over their names; `noun` is what they count."""

    caption: Caption
    label: str
    noun: str
    bars: Sequence[Bar]


class Flag(NamedTuple):
    """A value to compare with, and its words."""

    value: float
    text: str


class Strip(NamedTuple):
    """A named range on an axis, cut at its ends, and a stroke at a point; without one, NaN."""

    name: str
    low: float
    high: float
    point: float | None = None
    tone: Tone = "blue"
    words: str = ""  # at the right end
    inner: tuple[float, float] | None = None  # a thicker range inside


class Strips(NamedTuple):
    """Ranges below each other over one axis, with flags through all of them."""

    caption: Caption
    label: str
    strips: Sequence[Strip]
    flags: Sequence[Flag] = ()


class Layer(NamedTuple):
    """Numbers of things of one sort between each edge and the next."""

    times: Sequence[int]
    tone: Tone = "blue"
    name: str = ""


class Histogram(NamedTuple):
    """Bars between rising edges, one more than bars; layers stand on each other."""

    caption: Caption
    label: str
    noun: str
    edges: Sequence[float]
    layers: Sequence[Layer]
    flags: Sequence[Flag] = ()


class Curves(NamedTuple):
    """Lines over one axis, with levels to compare them with, and flags at places on the way."""

    caption: Caption
    label: str
    noun: str  # what the lines are about
    curves: Mapping[str, Sequence[tuple[float, float]]]  # points from left to right, by names
    levels: Sequence[Flag] = ()
    flags: Sequence[Flag] = ()


Picture = Bars | Strips | Histogram | Curves


# ---- sections -----------------------------------------------------------------------------------


class Item(NamedTuple):
    """A line of a list: a sign, a title, a text, and a remark in smaller letters."""

    title: str
    text: str = ""
    aside: str = ""
    sign: str = ""
    mood: Mood = "plain"
    pictures: Sequence[Picture] = ()


class Section(NamedTuple):
    """A part of a report: a title, and sentences, lists, tables and pictures below it."""

    name: str  # unique on a page
    title: str
    sentences: Sequence[str] = ()
    keys: Sequence[Key] = ()
    items: Sequence[Item] = ()
    facts: Sequence[tuple[str, str]] = ()
    command: str = ""  # to be copied
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    parts: "Sequence[Section]" = ()  # with titles of their own
    mood: Mood = "plain"
    folded: bool = False


def numbers(*headings: str) -> list[Column]:
    """Returns columns of numbers with these headings."""
    return [Column(heading, number=True) for heading in headings]
