"""Panels: where results stand where nobody says so, and lines whose names tell them apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.errors import SurestepError
from surestep.experiments import Interval, Method, Summary
from surestep.experiments.panels import PARTS, Panels, check_drawable, layout_of

ANY = Interval(0.5, 0.4, 0.6)


def result(algorithm="spibb", n_wedge=None, setting="", environment="gridworld", episodes=10):
    method = Method(algorithm, setting, n_wedge)
    metrics = {"mean": ANY, "cvar10": ANY, "worse": ANY}
    return Summary(environment, episodes, method, n_wedge, 20, 0.4, 1.0, metrics)


PAPERS = [
    result("basic-rl"),
    *(result(name, n) for name in ("spibb", "spibb-2s") for n in (100, 200)),
]


def test_the_papers_form_has_a_column_for_each_n_wedge_and_a_row_for_each_metric():
    layout = layout_of(PAPERS, ("mean", "cvar10"))
    assert (layout.columns, layout.rows, layout.shape) == ("n-wedge", None, (2, 2))
    for panel in layout.panels:
        assert [one.method.n_wedge for one in panel.summaries] == [None] + [panel.of_column] * 2
    assert [panel.metric for panel in layout.panels] == ["mean", "mean", "cvar10", "cvar10"]
    assert list(layout.names.values()) == ["Basic RL", "SPIBB", "2s"]


def test_other_experiments_have_a_column_for_each_environment():
    several = [
        result(name, n, environment=place)
        for place in ("gridworld", "random-mdp, ratio=0.5, seed=repetition")
        for name, n in (("ramdp", None), ("spibb", 10), ("spibb", 20))
    ]
    layout = layout_of(several, ("mean",))
    assert (layout.columns, layout.rows) == ("environment", None)
    assert list(layout.names.values()) == ["RaMDP", "SPIBB, N∧ = 10", "SPIBB, N∧ = 20"]
    both = layout_of(several, ("mean",), Panels(columns="algorithm", rows="environment"))
    assert both.shape == (2, 2)
    assert list(both.names.values()) == ["", "N∧ = 10", "N∧ = 20"]


def test_a_legend_names_the_settings_of_a_method_also_where_it_has_no_others():
    several = [result("ramdp", setting="kappa=0.01"), result("spibb", 10), result("basic-rl")]
    layout = layout_of(several, ("mean",))
    assert list(layout.names.values()) == ["RaMDP, κ = 0.01", "SPIBB, N∧ = 10", "Basic RL"]


def test_a_long_row_of_panels_is_broken():
    many = [result(f"own-{i}") for i in range(9)]
    layout = layout_of(many, ("mean",), Panels(columns="algorithm"))
    assert layout.shape == (3, 4)
    assert [(panel.row, panel.column) for panel in layout.panels][-1] == (2, 0)


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
    layout = layout_of(results, ("mean", "cvar10"), Panels(columns, rows))
    for one in results:
        for metric in ("mean", "cvar10"):
            assert any(one in panel.summaries and metric == panel.metric for panel in layout.panels)
    assert len({(panel.row, panel.column) for panel in layout.panels}) == len(layout.panels)
    for panel in layout.panels:
        lines = {layout.line(one) for one in panel.summaries}
        assert len({layout.names[line] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([result(setting=f"a={i}") for i in range(29)], ("mean",)), "29 lines cannot be told"),
        (([result(environment=str(i)) for i in range(41)], ("mean",)), "11 × 4 panels are too"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, words):
    with pytest.raises(SurestepError, match=words):
        check_drawable(layout_of(*arguments))


def test_panels_have_known_names():
    with pytest.raises(SurestepError, match=r"no panels by 'metrics'; did you mean metric\?"):
        Panels(columns="metrics")
    with pytest.raises(SurestepError, match="both by metric"):
        Panels("metric", "metric")
