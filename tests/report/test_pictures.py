"""Pictures: what is drawn is in proportion, inside its frame, and finite whatever the values."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.report.pictures import END, FOOT, LEFT, TOP, WIDTH, Axis, svg
from surestep.sections import (
    Bar,
    Bars,
    Caption,
    Curves,
    Flag,
    Histogram,
    Layer,
    Strip,
    Strips,
)

CAPTION = Caption("one", "A title", "What it shows.")
EXTREMES = st.sampled_from([0.0, 1e-300, -1e-300, 1e300, -1e300, 1.0, 1 + 2e-16, -5.0])
VALUES = EXTREMES | st.floats(-1e300, 1e300, allow_subnormal=False)
COUNTS = st.integers(0, 10**12)


def drawing(picture):
    """The tree of a picture, in which all numbers are finite."""
    text = str(svg(picture))
    assert "nan" not in text
    assert "inf" not in text.replace("infinite", "")
    root = ET.fromstring(text)
    assert [root.find(tag).text for tag in ("title", "desc")] == ["A title", "What it shows."]
    assert root.get("aria-labelledby") == "one-title one-description"
    return root


def boxes(root):
    """Left, top, width and height of each bar."""
    return [
        [float(rect.get(x)) for x in ("x", "y", "width", "height")] for rect in root.iter("rect")
    ]


def inside(root):
    """Checks that bars and lines lie inside of the picture."""
    _, _, width, height = map(float, root.get("viewBox").split())
    for x, y, wide, high in boxes(root):
        assert wide >= 0
        assert high >= 0
        assert 0 <= x <= x + wide <= width + 1
        assert 0 <= y <= y + high <= height + 1
    for text in root.iter("text"):
        assert 0 <= float(text.get("x")) <= width
        assert 0 <= float(text.get("y")) <= height


@given(st.lists(COUNTS | st.sampled_from([1e-300, 1e300]), max_size=9))
def test_bars_are_as_high_as_their_values(values):
    root = drawing(Bars(CAPTION, "visits", "pair", [Bar(f"≤ {v}", v) for v in values]))
    inside(root)
    heights = [box[3] for box in boxes(root)]
    assert len(heights) == len(values)
    room = FOOT - TOP - 24
    for height, value in zip(heights, values, strict=True):
        assert height == pytest.approx(room * value / (max(values) or 1), abs=0.051)


@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6),
    st.lists(VALUES, max_size=3),
)
def test_ranges_lie_inside_and_in_order(ranges, flags):
    strips = [
        Strip("name", min(a, b), max(a, b), point, inner=(min(a, b), min(a, b)))
        for a, b, point in ranges
    ]
    root = drawing(Strips(CAPTION, "gain", strips, [Flag(v, "here") for v in flags]))
    inside(root)
    outer = boxes(root)[::2]
    for one, (a, b, _) in zip(outer, ranges, strict=True):
        for other, (c, d, _) in zip(outer, ranges, strict=True):
            assert one[0] <= other[0] or min(a, b) > min(c, d)  # further left, further down
            assert one[0] + one[2] <= other[0] + other[2] + 1.1 or max(a, b) > max(c, d)


@given(st.lists(VALUES, max_size=5))
def test_ticks_are_inside_few_and_where_their_numbers_are(values):
    axis = Axis.around(values, LEFT, END)
    ticks = axis.ticks()
    assert len(ticks) <= 12
    for place, text in ticks:
        assert LEFT <= place <= END
        assert text
    assert [place for place, _ in ticks] == sorted(place for place, _ in ticks)
    for value in values:
        assert LEFT <= axis.at(value) <= END
        share = (value - axis.low) / (axis.high - axis.low)
        assert axis.at(value) == pytest.approx(LEFT + share * (END - LEFT), abs=1e-6)


@given(
    st.lists(VALUES, min_size=2, max_size=9, unique=True).map(sorted),
    st.lists(COUNTS, min_size=8, max_size=8),
    st.lists(VALUES, max_size=3),
)
def test_histograms_stack_their_layers(edges, times, flags):
    many = times[: len(edges) - 1]
    layers = [Layer(many, "vermilion", "worse"), Layer(many[::-1], "blue", "better")]
    root = drawing(
        Histogram(CAPTION, "gain", "world", edges, layers, [Flag(v, "L") for v in flags])
    )
    found = boxes(root)
    assert len(found) == 2 * sum(time > 0 for time in many)
    for left, top, width, height in found:
        assert LEFT <= left <= left + width <= END + 1
        assert TOP <= top <= top + height <= FOOT + 1.6


def test_names_are_text_and_are_cut():
    strips = [Strip('<b>"&\x00\u202e\ud800' + "x" * 99, 0.0, 1.0)]
    root = drawing(Strips(CAPTION, "gain", strips))
    (name,) = (text.text for text in root.iter("text") if "<b>" in (text.text or ""))
    assert name == '<b>"&␀\ufffd\ufffd' + "x" * 41 + "…"
    assert float(root.get("viewBox").split()[2]) == WIDTH


@given(
    st.lists(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5), max_size=3),
    st.lists(VALUES, max_size=2),
    st.lists(VALUES, max_size=2),
)
def test_lines_go_through_their_points_inside_the_frame(lines, levels, flags):
    curves = {str(i): line for i, line in enumerate(lines)}
    marks = [[Flag(v, "here") for v in values] for values in (levels, flags)]
    root = drawing(Curves(CAPTION, "episode", "mean return", curves, *marks))
    drawn = [path.get("d") for path in root.iter("path") if path.get("class").startswith("line")]
    assert len(drawn) == len(lines)
    for way, line in zip(drawn, lines, strict=True):
        points = [tuple(map(float, point.split())) for point in way.removeprefix("M").split("L")]
        assert len(points) == len(line)
        for (x, y), (a, b) in zip(points, line, strict=True):
            assert LEFT <= x <= END
            assert TOP <= y <= FOOT
            for (u, v), (c, d) in zip(points, line, strict=True):
                assert x <= u or a > c
                assert y >= v or b > d
