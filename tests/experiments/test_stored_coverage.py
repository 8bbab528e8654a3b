"""The run behind docs/coverage.md: claims that are proved hold in every cell of it."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from surestep.experiments.metrics import FAMILY_WISE
from surestep.offpolicy.intervals import lower_limit

STORED = Path(__file__).parents[2] / "docs" / "coverage"
BROKEN = ("broken", "undeclared")  # an assumption does not hold: shown, and not judged
UNJUDGED = ("coarse", "hidden-cause", "copied", "outcome-in-state", "stops-that-know")
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
    return row["algorithm"] == "spibb" and "prior_weight=5," in row["certifier_setting"]


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
def test_no_cell_of_a_proof_or_of_the_default_posterior_is_refuted(wanted, names):
    cells = counted(stored_cells(wanted), names)
    assert cells
    level = FAMILY_WISE / len(cells)
    for key, (violations, repetitions, delta) in cells.items():
        assert lower_limit(violations, repetitions, level) <= delta, key


def test_the_proved_kinds_were_run_on_every_family():
    cells = stored_cells(proved)
    assert {"gridworld", "wet-chicken", "resource-gathering"} <= {row["family"] for row in cells}
    assert len({row["environment"] for row in cells if row["table"] == "random-mdps"}) == 200


@pytest.mark.parametrize("kind", ["stitched", "robust", "posterior"])
def test_every_kind_was_held_against_the_worlds_that_are_hard_for_claims(kind):
    rows = stored_cells(lambda row: row["certifier"] == kind and "," in row["family"])
    assert {row["family"].partition(",")[0] for row in rows} >= {
        "nearly-alike", "noisy", "bandit", "disaster", "jackpot", "adaptive", "adaptive/bandit",
        "icu-sepsis",
    }  # fmt: skip
    laws = {row["family"] for row in rows if row["table"] == "noisy"}
    assert len(laws) == 6


def test_where_nobody_declared_what_may_be_earned_nothing_is_called_proved():
    with (STORED / "undeclared.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["certifier"] for row in rows} == {"stitched", "robust", "posterior"}
    assert {row["standing"] for row in rows} == {"rewards-within-seen", "posterior"}
    assert max(int(row["violations"]) / int(row["repetitions"]) for row in rows) > 0.2


def test_no_verdict_of_a_proof_is_refuted():
    """Families in which an assumption does not hold are shown, and not judged."""
    with (STORED / "verdicts" / "counts.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["family"].split(",")[0] not in UNJUDGED]
    assert len(rows) >= 40
    level = FAMILY_WISE / len(rows)
    for row in rows:
        assert lower_limit(int(row["proved_wrong"]), int(row["logs"]), level) <= 0.1, row


@pytest.mark.parametrize("family", ["gridworld", "wet-chicken"])
def test_the_default_posterior_certifies_half_of_the_gain_from_100_trajectories_on(family):
    cells = [
        row
        for row in stored_cells(default_posterior)
        if row["table"] == family and int(row["episodes"]) >= 100
    ]
    assert len(cells) >= 4
    assert min(float(row["tightness"]) for row in cells) >= 0.5
