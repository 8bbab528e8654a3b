"""Curves of any experiment: what is drawn, and what the legend says."""

import csv
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.made_runs import METHODS, made_run
from surestep._drawing import OF_METHODS, colour_of
from surestep.errors import SurestepError
from surestep.experiments import Interval, Method, Selection, Summary
from surestep.figures import curves
from surestep.figures.curves import layout_of, looks_of
from surestep.figures.figure import Request, draw, value_points

OWN = (("halfway", "", 5), ("ramdp", "kappa=0.1", None), ("mine $ 5 %", "n_min=3", None))
NAMES = [r"halfway, $N_\wedge$ = 5", r"RaMDP, $\kappa$ = 0.1", r"mine \$ 5 %, n_min = 3"]


@pytest.fixture
def seen(monkeypatch):
    """The figures that are drawn: what is asked of each, before it becomes a file."""
    figures = []

    def looked_at(figure, kind):
        figures.append(figure)
        return b"a picture"

    monkeypatch.setattr(curves.pen, "rendered", looked_at)
    return figures


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def labels(axes):
    return axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()


def drawn(directory, tmp_path, **asked):
    """The rows of the table beside a figure."""
    _, beside = draw("made", directory, tmp_path / "f.png", Request(**asked))
    return list(csv.DictReader(beside.read_text().splitlines()))


def test_the_legend_lists_what_is_there_and_nothing_else(tmp_path, seen):
    rows = drawn(made_run(tmp_path / "own", OWN), tmp_path, metrics=["mean"])
    assert legend_of(seen[0]) == [*NAMES, r"$\pi_b$", r"$\pi^{*}$", "95 % interval"]
    assert [(row["algorithm"], row["setting"], row["n_wedge"]) for row in rows[:3]] == [
        (name, setting, "" if n is None else str(n)) for name, setting, n in OWN
    ]
    lines = [line for line in seen[0].axes[0].lines if len(line.get_xdata()) == 2]
    drawn_thick = [line for line in lines if line.get_linewidth() == 1.5]
    assert len(drawn_thick) == 2 * 3 - 3  # bare points have no line
    drawn(tmp_path / "own", tmp_path, metrics=["mean"], selection=Selection(["ramdp"]))
    assert legend_of(seen[1]) == [NAMES[1], r"$\pi_b$", r"$\pi^{*}$", "95 % interval"]


# Machado, Oliveira and Fernandes (2009), full severity; of linear RGB.
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(colour, sight):
    """A colour as somebody with that sight sees it, in CIELAB: 10 apart is plainly another one."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(sight) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", [np.eye(3), *BLINDNESS.values()], ids=["all", *BLINDNESS])
def test_colours_are_told_apart_whatever_the_sight(sight):
    seen = {colour: lab(colour, sight) for colour in OF_METHODS}
    for (one, first), (other, second) in itertools.combinations(seen.items(), 2):
        assert np.linalg.norm(first - second) > 10, (one, other)


def test_there_is_no_title_and_names_are_set_as_latex_does(tmp_path, seen):
    run = made_run(
        tmp_path / "run", [*METHODS, ("spibb", "", 200), ("spibb-beta", "delta=0.1", 200)]
    )
    drawn(run, tmp_path)
    assert seen[0].get_suptitle() == ""
    title, below, beside = labels(seen[0].axes[0])
    assert title == r"$N_\wedge$ = 100"
    assert (below, beside) == ("", "performance $\\rho$\nmean")
    assert labels(seen[0].axes[-1])[1] == "trajectories in the data set"


def test_metrics_values_and_panels_are_as_asked_for(tmp_path, seen):
    run = made_run(tmp_path / "run", environments=("gridworld", "wet-chicken"))
    panels = {"columns": "metric", "rows": "environment"}
    rows = drawn(run, tmp_path, metrics=["cvar5", "worse"], value="gain", **panels)
    assert len(seen[0].axes) == 4
    assert labels(seen[0].axes[0])[0] == "gridworld\n5 % CVaR"
    assert labels(seen[0].axes[1])[0] == r"worse than $\pi_b$"
    assert labels(seen[0].axes[2])[::2] == (
        "wet-chicken\n5 % CVaR",
        "gain $\\rho$ − $\\rho$($\\pi_b$)",
    )
    assert {float(row["behavior_performance"]) for row in rows} == {0.0}
    assert all(row["cvar5"] and row["cvar5_high"] for row in rows)
    assert {row["cvar5_low"] for row in rows} == {""}  # of 20 repetitions
    assert legend_of(seen[0])[-1] == "too few to bound from below"


def test_results_at_one_data_size_are_points_with_their_intervals(tmp_path, seen):
    run = made_run(tmp_path / "run", episodes=(100,))
    rows = drawn(run, tmp_path, metrics=["mean"])
    axes = seen[0].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["100"]
    points = [container for container in axes.containers if container.has_yerr]
    assert len(points) == 3
    for row, (point, _, (bars,)) in zip(rows, points, strict=True):
        assert point.get_ydata() == pytest.approx([float(row["mean"])])
        ((_, low), (_, high)) = bars.get_segments()[0]
        assert (low, high) == pytest.approx((float(row["mean_low"]), float(row["mean_high"])))


def test_bands_are_the_intervals_of_the_table_as_light_lines_or_not_there(tmp_path, seen):
    run = made_run(tmp_path / "run", METHODS[:1])
    rows = drawn(run, tmp_path, metrics=["mean"])
    axes = seen[0].axes[0]
    assert not axes.collections  # no area
    thin = [line.get_ydata().tolist() for line in axes.lines if line.get_alpha() == 0.5]
    assert thin == [
        pytest.approx([float(row[f"mean_{end}"]) for row in rows]) for end in ("low", "high")
    ]
    drawn(run, tmp_path, bands=False)
    assert not any(line.get_alpha() for axes in seen[1].axes for line in axes.lines)
    assert legend_of(seen[1])[-1] == r"$\pi^{*}$"


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [
        ((10, 30, 100, 1000), ["10", "30", "100", "1k"]),
        ((7, 8, 9, 10, 11, 5000), ["", "", "", "10", "", "5k"]),
    ],
)
def test_ticks_are_at_the_sizes_that_were_run(sizes, shown, tmp_path, seen):
    drawn(made_run(tmp_path / "run", METHODS[:1], episodes=sizes), tmp_path, metrics=["mean"])
    axes = seen[0].axes[0]
    assert axes.get_xticks().tolist() == list(sizes)
    assert [label.get_text() for label in axes.get_xticklabels()] == shown
    assert not axes.get_xticks(minor=True).size


@pytest.mark.thorough
def test_fonts_are_in_the_file_as_journals_ask_for(tmp_path):
    """Type 42 is a font as it is, for which PDF says FontFile2; Type 3 a drawing of each letter."""
    run = made_run(tmp_path / "run", METHODS[:2], repetitions=3)
    draw("made", run, tmp_path / "f.pdf", Request(metrics=["mean"]))
    pdf = (tmp_path / "f.pdf").read_bytes()
    names = set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([\w-]+)", pdf))
    assert names <= {b"DejaVuSans", b"DejaVuSans-Oblique"}
    assert names
    assert pdf.count(b"/FontFile2") >= len(names)
    assert b"/Type3" not in pdf


@pytest.mark.thorough
def test_a_picture_has_room_for_as_many_lines_as_can_be_told_apart(tmp_path, recwarn):
    names = [(f"a-method-with-a-long-name-{i}", "kappa=0.123456", None) for i in range(28)]
    run = made_run(tmp_path / "run", names, repetitions=2)
    draw("made", run, tmp_path / "f.png", Request(metrics=["mean"]))
    assert not [str(each.message) for each in recwarn if "layout" in str(each.message)]


ANY = Interval(0.5, 0.4, 0.6)
PARTS = ("environment", "algorithm", "setting", "n-wedge", "metric")


def result(algorithm="spibb", n_wedge=None, setting="", environment="gridworld", episodes=10):
    method = Method(algorithm, setting, n_wedge)
    metrics = {"mean": ANY, "cvar10": ANY, "worse": ANY}
    return Summary(environment, episodes, method, n_wedge, 20, 0.4, 1.0, metrics)


def layout(results, metrics, columns=None, rows=None):
    return layout_of(value_points(results, metrics, "performance"), columns, rows)


AS_PUBLISHED = [
    result("basic-rl"),
    *(result(name, n) for name in ("spibb", "spibb-2s") for n in (100, 200)),
]


def test_the_papers_form_has_a_column_for_each_n_wedge_and_a_row_for_each_metric():
    found = layout(AS_PUBLISHED, ("mean", "cvar10"))
    assert (found.columns, found.rows, found.shape) == ("n-wedge", ("metric",), (2, 2))
    for panel in found.panels:
        assert [p.parts["n-wedge"] for p in panel.points] == [None] + [panel.of_column] * 2
    metrics = [{p.parts["metric"] for p in panel.points} for panel in found.panels]
    assert metrics == [{"mean"}, {"mean"}, {"cvar10"}, {"cvar10"}]
    assert list(found.names.values()) == ["Basic RL", "SPIBB", "2s"]


def test_other_experiments_have_a_column_for_each_environment():
    several = [
        result(name, n, environment=place)
        for place in ("gridworld", "random-mdp, ratio=0.5, seed=repetition")
        for name, n in (("ramdp", None), ("spibb", 10), ("spibb", 20))
    ]
    found = layout(several, ("mean",))
    assert (found.columns, found.rows) == ("environment", ("metric",))
    assert list(found.names.values()) == ["RaMDP", "SPIBB, N∧ = 10", "SPIBB, N∧ = 20"]
    both = layout(several, ("mean",), "algorithm", "environment")
    assert both.shape == (2, 2)
    assert list(both.names.values()) == ["", "N∧ = 10", "N∧ = 20"]


def test_a_row_has_three_panels_at_most_and_many_environments_are_rows():
    four = [result(environment=place) for place in "abcd"]
    found = layout(four, ("mean", "cvar10"))
    assert (found.columns, found.rows, found.shape) == ("metric", ("environment",), (4, 2))
    asked = layout(four, ("mean", "cvar10"), "environment")
    assert (asked.rows, asked.shape) == (("metric",), (4, 3))
    places = [(panel.of_row[0], panel.of_column, panel.row, panel.column) for panel in asked.panels]
    assert places[2:5] == [("mean", "c", 0, 2), ("mean", "d", 1, 0), ("cvar10", "a", 2, 0)]


def test_a_method_has_one_colour_in_every_picture_and_markers_tell_its_settings_apart():
    parts = ("algorithm", "n-wedge")
    alone = looks_of([("spibb", 5), ("spibb", 10), ("own", None)], parts)
    others = looks_of([("own", None), ("ramdp", None), ("spibb", 10)], parts)
    for line in (("spibb", 10), ("own", None)):
        assert alone[line]["color"] == others[line]["color"] == colour_of(line[0])
    assert alone["spibb", 5]["color"] == alone["spibb", 10]["color"]
    assert alone["spibb", 5]["marker"] != alone["spibb", 10]["marker"]
    many = looks_of([("spibb", n) for n in range(28)], parts).values()
    assert len({(look["marker"], look["linestyle"]) for look in many}) == 28
    claims = looks_of([("stitched, held out",), ("posterior, c = 5",)], ("claim",))
    colours = [look["color"] for look in claims.values()]
    assert colours == [colour_of("stitched"), colour_of("posterior")]


@given(
    st.lists(
        st.builds(
            result,
            algorithm=st.sampled_from(["spibb", "mine", "ramdp"]),
            n_wedge=st.sampled_from([None, 5, 10]),
            setting=st.sampled_from(["", "kappa=1", "kappa=2, delta=0.1"]),
            environment=st.sampled_from(["a", "b"]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([None, *PARTS]),
    st.sampled_from([None, *PARTS]),
)
def test_every_result_is_on_a_line_of_a_panel_and_names_tell_lines_of_a_panel_apart(
    results, columns, rows
):
    if columns is not None and columns == rows:
        return
    points = value_points(results, ("mean", "cvar10"), "performance")
    found = layout_of(points, columns, rows)
    for point in points:
        assert any(point in panel.points for panel in found.panels)
    assert len({(panel.row, panel.column) for panel in found.panels}) == len(found.panels)
    for panel in found.panels:
        assert len({point.parts["metric"] for point in panel.points}) <= 1
        lines = {tuple(point.parts[part] for part in found.parts) for point in panel.points}
        assert len({found.names[line] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ([result(setting=f"a={i}") for i in range(29)], ("mean",)),
            "1 panels, 29 lines, expected at most",
        ),
        (
            ([result(environment=str(i)) for i in range(41)], ("mean",)),
            "41 panels, 1 lines, expected at most",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, words):
    with pytest.raises(SurestepError, match=words):
        layout(*arguments)
