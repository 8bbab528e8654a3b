"""The run behind docs/coverage.md: claims that are proved hold in every cell of it."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from surestep.experiments.coverage import FAMILY_WISE, lower_limit

STORED = Path(__file__).parents[2] / "docs" / "coverage"
BROKEN = ("broken",)  # an assumption does not hold: shown, and not judged
TABLES = [path for path in sorted(STORED.glob("*.csv")) if path.stem not in BROKEN]
ABOUT = ("family", "algorithm", "setting", "n_wedge", "certifier", "certifier_setting", "episodes")


def stored_cells(wanted):
    """Every wanted line of every table."""
    rows = []
    for path in TABLES:
        with path.open(newline="") as file:
            rows += [row | {"table": path.stem} for row in csv.DictReader(file) if wanted(row)]
    return rows


def proved(row):
    return "proved" in row["standing"]


def default_posterior(row):
    """The default prior, on policies that change only what was seen more than N∧ times."""
    return row["algorithm"] == "spibb" and row["certifier_setting"].startswith("prior_weight=5,")


def counted(rows, names):
    """Violations, repetitions and δ of the rows, those pooled that agree in these columns."""
    violations, repetitions, deltas = Counter(), Counter(), {}
    for row in rows:
        key = tuple(row[name] for name in ("table", *names))
        violations[key] += int(row["violations"])
        repetitions[key] += int(row["repetitions"])
        deltas[key] = float(row["delta"])
    return {key: (violations[key], repetitions[key], deltas[key]) for key in deltas}


@pytest.mark.parametrize("names", [("environment", *ABOUT), ABOUT], ids=["alone", "pooled"])
@pytest.mark.parametrize("wanted", [proved, default_posterior])
def test_no_cell_is_refuted(wanted, names):
    cells = counted(stored_cells(wanted), names)
    for key, (violations, repetitions, delta) in cells.items():
        assert lower_limit(violations, repetitions, FAMILY_WISE / len(cells)) <= delta, key


def test_the_proved_kinds_were_run_on_every_family():
    cells = stored_cells(proved)
    assert {"gridworld", "wet-chicken", "resource-gathering"} <= {row["family"] for row in cells}
    assert len({row["environment"] for row in cells if row["table"] == "random-mdps"}) == 200


@pytest.mark.parametrize("family", ["gridworld", "wet-chicken"])
def test_the_default_posterior_certifies_half_of_the_gain_from_100_trajectories_on(family):
    cells = [
        row
        for row in stored_cells(default_posterior)
        if row["table"] == family and int(row["episodes"]) >= 100
    ]
    assert len(cells) >= 4
    assert min(float(row["tightness"]) for row in cells) >= 0.5
