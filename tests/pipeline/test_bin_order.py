"""Binned states and actions stand in the order of their numbers, in every file and reader."""

import csv

import numpy as np

import surestep
from surestep.pipeline import verify_result
from surestep.results.policy_files import policy_parquet_rows

AGES, DOSES = np.array([1.0, 5.0, 15.0, 150.0]), np.array([0.5, 3.0, 20.0])
BINS = {"age": {"edges": [2, 10, 100]}, "dose": {"width": 2}}
IN_ORDER = ["< 2", "2 to < 10", "10 to < 100", ">= 100"]
DOSES_IN_ORDER = ["0 to < 2", "2 to < 4", "20 to < 22"]


def rows(seed=0, times=40):
    """Ages and doses at random, in no order."""
    rng = np.random.default_rng(seed)
    size = times * AGES.size * DOSES.size
    age, dose = rng.choice(AGES, size), rng.choice(DOSES, size)
    return {
        "age": age,
        "dose": dose,
        "reward": (dose < 1) * 1.0,
        "next_age": rng.choice(AGES, size),
    }


def test_rows_of_every_file_are_in_the_order_of_the_bins(tmp_path):
    log = surestep.read_log(rows(), columns={"state": "age", "action": "dose"}, bins=BINS)
    improve = {"discount": 0.9, "n_wedge": 3, "certificates": ["a-priori"], "worlds": 0}
    result = surestep.improve(log, **improve)
    result.save(tmp_path / "out")
    with open(tmp_path / "out" / "policy.csv", encoding="utf-8", newline="") as file:
        written = [(row["age"], row["dose"]) for row in csv.DictReader(file)]
    assert written == [(age, dose) for age in IN_ORDER for dose in DOSES_IN_ORDER]
    read = [row[:2] for row in policy_parquet_rows(tmp_path / "out" / "policy.parquet")]
    assert read == written
    loaded = surestep.load(tmp_path / "out")
    assert loaded.table == result.table
    assert loaded.act(1e9, np.random.default_rng(0)) == "0 to < 2"
    # A table of the policy is put into the same order, whatever its own is.
    table = {
        "age": np.array([age for age, _ in reversed(written)], object),
        "dose": np.array([dose for _, dose in reversed(written)], object),
        "probability": result.table.behavior[result.table.decided][::-1].copy(),
    }
    given = surestep.improve(log, behavior=table, **improve)
    assert given.table.vocabulary == result.table.vocabulary
    assert verify_result(tmp_path / "out", rows()).level == "same bytes"
