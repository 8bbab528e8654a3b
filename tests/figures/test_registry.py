"""Which run is drawn by what."""

import json

import pytest

from surestep.errors import SurestepError
from surestep.experiments import catalog, read_experiments
from surestep.experiments.store import Store
from surestep.figures.coverage import draw_coverage
from surestep.figures.evaluation import draw_evaluation
from surestep.figures.heat_maps import draw_heat_maps
from surestep.figures.registry import OF_THE_CATALOG, drawer_of


@pytest.mark.parametrize("name", catalog())
def test_every_run_of_the_catalog_has_the_figure_of_its_content(name, tmp_path):
    (experiment,) = read_experiments(name)
    assert name.split("/")[0] in OF_THE_CATALOG
    Store(tmp_path).write_manifest(experiment, {}, {})
    drawer = drawer_of(tmp_path, experiment.name)
    assert Store(tmp_path).holds_claims() == bool(experiment.certifiers)
    assert (drawer is draw_coverage) == bool(experiment.certifiers)
    assert (drawer is draw_heat_maps) == name.startswith("comparison/")


def test_other_runs_are_drawn_by_what_they_hold(tmp_path):
    for content, drawer in (({"certifiers": []}, draw_coverage), ({}, draw_evaluation)):
        manifest = {"name": "mine", "identity": json.dumps({"name": '"certifiers"', **content})}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        assert drawer_of(tmp_path, "mine") is drawer
        assert drawer_of(tmp_path, "comparison") is drawer  # a file of that name, no folder


@pytest.mark.parametrize(
    "manifest", [{}, {"identity": 3}, {"identity": "spibb"}, {"identity": "3"}]
)
def test_a_manifest_that_does_not_say_what_was_run_is_refused(manifest, tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SurestepError, match="does not say what was run"):
        drawer_of(tmp_path, "mine")
