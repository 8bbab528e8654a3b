"""The paper's protocol gives the numbers that others got from it.

Spot values of 1000 repetitions each: mean and 10 % CVaR, rounded. Ours must lie within three
standard errors of the difference, theirs included, plus the rounding. Seeds are fixed; for values
drawn anew a single check would fail by chance once in some 370 times.
"""

import math

import numpy as np
import pytest

from reproduced_page import SPOTS
from surestep.experiments import read_experiments, summaries
from surestep.experiments.cell import CellBlock, run_methods
from surestep.experiments.intervals import cvar
from surestep.experiments.runs import OF_VALUES

REPETITIONS = 500


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("name", "algorithm", "n_wedge", "episodes", "mean", "tail", "digits"), SPOTS
)
def test_the_published_spot_values_come_out(name, algorithm, n_wedge, episodes, mean, tail, digits):
    (experiment,) = read_experiments(name)
    assert episodes in experiment.episodes
    (spec,) = (
        spec
        for spec in experiment.algorithms
        if spec.name == algorithm and (n_wedge is None or spec.n_wedge == n_wedge)
    )
    block = CellBlock(
        experiment.seed, experiment.environments[0], (episodes,), 0, REPETITIONS, (spec,)
    )
    rows = run_methods(block)
    assert tuple(rows) == OF_VALUES
    (found,) = summaries(rows)
    drawn = np.random.default_rng(1).choice(rows["performance"], (400, REPETITIONS))
    errors = drawn.mean(axis=1).std(), np.std([cvar(each, 0.1) for each in drawn])
    for ours, theirs, error in zip(
        (found.metrics["mean"], found.metrics["cvar10"]), (mean, tail), errors, strict=True
    ):
        both = math.sqrt(error**2 * (1 + REPETITIONS / experiment.repetitions))
        assert abs(ours.value - theirs) <= 3 * both + 0.5 * 10.0**-digits


def test_the_catalog_runs_the_papers_protocol():
    sizes = (1, 2, 5, 8, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
    for name in ("gridworld", "wet-chicken", "resource-gathering"):
        (experiment,) = read_experiments(f"paper/{name}")
        assert experiment.episodes == sizes
        assert experiment.repetitions == 1000
        assert [spec.name for spec in experiment.algorithms] == (
            ["basic-rl"] + ["spibb"] * 3 + ["spibb-2s"] * 3 + ["spibb-beta"] * 3
        )
