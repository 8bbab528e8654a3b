"""The full run behind docs/coverage.md: claims that are proved hold in every cell of it."""

import csv
from pathlib import Path

import pytest

from surestep.experiments.coverage import FAMILY_WISE, lower_limit

TABLES = sorted((Path(__file__).parents[2] / "docs" / "coverage").glob("*.csv"))


def stored_cells():
    """Every line of every table."""
    for path in TABLES:
        with path.open(newline="") as file:
            yield from csv.DictReader(file)


def test_no_cell_of_a_proved_kind_is_refuted():
    cells = [row for row in stored_cells() if "proved" in row["standing"]]
    assert len(cells) >= 1000
    assert {"gridworld", "wet-chicken", "resource-gathering"} <= {row["family"] for row in cells}
    assert len({row["environment"] for row in cells if row["family"].startswith("random")}) == 200
    level = FAMILY_WISE / len(cells)
    for row in cells:
        count, trials = int(row["violations"]), int(row["repetitions"])
        assert lower_limit(count, trials, level) <= float(row["delta"]), row


@pytest.mark.parametrize("family", ["gridworld", "wet-chicken"])
def test_the_posterior_with_weight_5_certifies_half_of_the_gain_from_100_trajectories_on(family):
    cells = [
        row
        for row in stored_cells()
        if row["family"] == family
        and row["algorithm"] == "spibb"
        and row["certifier_setting"].startswith("prior_weight=5,")
        and int(row["episodes"]) >= 100
    ]
    assert len(cells) >= 4
    assert min(float(row["tightness"]) for row in cells) >= 0.5


def test_the_posterior_with_weight_5_is_not_refuted():
    cells = [
        row for row in stored_cells() if row["certifier_setting"].startswith("prior_weight=5,")
    ]
    level = FAMILY_WISE / len(cells)
    for row in cells:
        count, trials = int(row["violations"]), int(row["repetitions"])
        assert lower_limit(count, trials, level) <= float(row["delta"]), row
