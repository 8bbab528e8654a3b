"""Panels: where results stand where nobody says so, and lines whose names tell them apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.errors import SurestepError
from surestep.experiments import Interval, Method, Summary
from surestep.figures.curves import layout_of
from surestep.figures.figure import value_points

ANY = Interval(0.5, 0.4, 0.6)
PARTS = ("environment", "algorithm", "setting", "n-wedge", "metric")


def result(algorithm="spibb", n_wedge=None, setting="", environment="gridworld", episodes=10):
    method = Method(algorithm, setting, n_wedge)
    metrics = {"mean": ANY, "cvar10": ANY, "worse": ANY}
    return Summary(environment, episodes, method, n_wedge, 20, 0.4, 1.0, metrics)


def layout(results, metrics, columns=None, rows=None):
    return layout_of(value_points(results, metrics, "performance"), columns, rows)


PAPERS = [
    result("basic-rl"),
    *(result(name, n) for name in ("spibb", "spibb-2s") for n in (100, 200)),
]


def test_the_papers_form_has_a_column_for_each_n_wedge_and_a_row_for_each_metric():
    found = layout(PAPERS, ("mean", "cvar10"))
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


def test_a_legend_names_the_settings_of_a_method_also_where_it_has_no_others():
    several = [result("ramdp", setting="kappa=0.01"), result("spibb", 10), result("basic-rl")]
    found = layout(several, ("mean",))
    assert list(found.names.values()) == ["RaMDP, κ = 0.01", "SPIBB, N∧ = 10", "Basic RL"]


def test_a_long_row_of_panels_is_broken():
    many = [result(f"own-{i}") for i in range(9)]
    found = layout(many, ("mean",), "algorithm")
    assert found.shape == (3, 4)
    assert [(panel.row, panel.column) for panel in found.panels][-1] == (2, 0)


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
        lines = {found.line(point) for point in panel.points}
        assert len({found.names[line] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([result(setting=f"a={i}") for i in range(29)], ("mean",)), "29 lines cannot be told"),
        (([result(environment=str(i)) for i in range(41)], ("mean",)), "11 × 4 panels are too"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, words):
    with pytest.raises(SurestepError, match=words):
        layout(*arguments)


def test_panels_have_known_names():
    with pytest.raises(SurestepError, match=r"no panels by 'metrics'; did you mean metric\?"):
        layout(PAPERS, ("mean",), "metrics")
    with pytest.raises(SurestepError, match="both by metric"):
        layout(PAPERS, ("mean",), "metric", "metric")
